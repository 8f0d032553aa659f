# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the stages that write have in common: the journal, the lock and the way to end them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ..._common.context import Context
from ..._common.errors import Reason
from ..changes.journal import Journal
from ..run.folder import note
from ..run.lock import acquire_lock
from ..run.signals import watch_for_stop


@contextlib.contextmanager
def begin_writing(
    context: Context, stage: str, endpoint: str
) -> Iterator[tuple[Journal | None, Callable[[], Reason]]]:
    """Keep other runs from writing to a Placement for as long as the context lasts.

    Yield the journal and a function that returns why to stop, if anything does. In check mode there
    is no journal, without which nothing can write.
    """
    options = context.options
    journal = None if context.check_mode else Journal(options["output_dir"], endpoint)
    if journal:
        note(context, stage, journal=journal.path)
    with (
        watch_for_stop() as stopped,
        acquire_lock(endpoint, options["lock_timeout"], stopped, journal is not None),
    ):
        yield journal, stopped
