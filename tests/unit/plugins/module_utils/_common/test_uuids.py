# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.uuids import require_uuid

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


@pytest.mark.parametrize(
    "text", [CONSUMER, CONSUMER.upper(), CONSUMER.replace("-", ""), "{" + CONSUMER + "}"]
)
def test_consumer_uuid_becomes_canonical(text: str) -> None:
    assert require_uuid(text, "consumer") == CONSUMER


@pytest.mark.parametrize("text", ["", "web-1", CONSUMER[:-1], f"{CONSUMER}/../x"])
def test_consumer_that_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid UUID"):
        require_uuid(text, "consumer")
