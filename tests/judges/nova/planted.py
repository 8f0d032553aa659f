"""Faults that are put into the collection, to show that the judge finds them."""

from __future__ import annotations

import typing as t

from ....plugins.module_utils._common.errors import Reason
from ....plugins.module_utils._core.facts import protections
from ....plugins.module_utils._core.judging import engine
from ....plugins.module_utils._core.models.finding import Decision, orphaned


def _free_every_migration() -> None:
    """A resize that waits for its confirmation loses what it needs to be reverted."""

    def ended_migration(view: t.Any, _policy: t.Any) -> Decision | None:
        if view.migration is None:
            return None
        return orphaned(Reason("planted_fault", "A planted fault."), *view.state_evidence)

    engine.PROTECTIONS = {}
    engine.PROOFS = {**engine.PROOFS, "ended_migration": ended_migration}


def _forget_events() -> None:
    """The age of an allocation alone says that nobody is about to write it."""
    protections.explain_recent_event = lambda _view, _policy: None


FAULTS: dict[str, t.Callable[[], None]] = {
    "free_every_migration": _free_every_migration,
    "forget_events": _forget_events,
}
