# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The compute services, which say whether every cell answers."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    has_every_cell_answered,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Service
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

# The pause in seconds before a cell that did not answer is asked once more.
_RETRY_PAUSE = 1.0


def list_services(nova: NovaReader) -> Answer[tuple[Service, ...]]:
    """List the services. While a cell is down, a 500 of Nova is taken for an answer at once.

    Once something was read, a cell that did not answer counts: it was left out of what was read
    before.
    """
    answer = nova.list_services()
    nova.believe_errors(not has_every_cell_answered(answer))
    return answer


def list_services_with_retry(nova: NovaReader) -> Answer[tuple[Service, ...]]:
    """List the services before anything else is read.

    A cell that does not answer is asked once more before it counts as down.
    """
    answer = list_services(nova)
    if has_every_cell_answered(answer):
        return answer
    time.sleep(_RETRY_PAUSE)
    return list_services(nova)
