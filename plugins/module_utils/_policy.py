# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""From module options to the judge's policy."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._duration import seconds
from ansible_collections.osops.placement.plugins.module_utils._model import Policy

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping


def policy(options: Mapping[str, t.Any]) -> Policy:
    """Return the policy that the options of `policy_options` describe. Raises InvalidInput for a wrong duration."""
    return Policy(
        min_age=seconds(options["min_age"]),
        forgotten_min_age=seconds(options["forgotten_min_age"]),
        exclude_consumers=frozenset(options["exclude_consumers"]),
        exclude_providers=frozenset(options["exclude_providers"]),
    )
