# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The compute services, which say whether every cell answers."""

from __future__ import annotations

import time

from ..clients.nova import NovaReader
from ..facts.soundness import has_every_cell_answered
from ..models.nova import Service
from ..models.snapshot import Answer

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
