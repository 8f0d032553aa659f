"""A live server whose failed cold migration has the allocation on its host.

The server gets it back only if its guest is proven to be there.

First everything that proves it, then the attacks: servers whose guest, or disk, may be on the host
that would be freed.
"""

import dataclasses as d
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.moves import list_relevant_request_ids
from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Action
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import list_cases
from ...world import LATER
from ..scene import Scene

EARLIER = "2026-11-20T11:00:00.000000"
MUCH_LATER = "2026-11-20T14:00:00.000000"


class Cloud(Scene):
    """A server on the host `here` with an allocation on `there`.

    A move from here to there has ended and has the allocation on `here`.
    """

    def __init__(self, status: str = "error", type: str = "migration") -> None:
        super().__init__()
        self.third = self.host("compute-3")
        self.subject = self.server(self.here, self.there)
        self.move = self.moved(status, self.here, type=type)

    def moved(self, status: str, *holds: str, dest: str = "", type: str = "migration") -> str:
        """Add another move of the server, away from `here`."""
        move = self.migration(
            self.subject, self.here, dest or self.there, status, *holds, type=type
        )
        return self.alter(move, updated_at=self.migrations[move].created_at)

    def copied(self, result: str, move: str = "", in_copy: bool = False) -> None:
        """The move reached the source."""
        events = (
            ("compute_prep_resize", self.there, "Success"),
            ("compute_resize_instance", self.here, result),
        )
        self.recorded(move or self.move, *events, in_copy=in_copy)

    def prepared(self, result: str) -> None:
        """The move reached the destination."""
        self.recorded(self.move, ("compute_prep_resize", self.there, result))

    def reverted(self, root: str, event: str = "compute_revert_resize", **fields: str) -> None:
        self.recorded_later(self.subject, "revertResize", event, root, **fields)

    def stopped(self, **fields: str) -> None:
        self.recorded_later(self.subject, "stop", "compute_stop_instance", self.here, **fields)

    def started(self, action: str = "start", root: str = "", **fields: str) -> None:
        self.recorded_later(
            self.subject, action, f"compute_{action}_instance", root or self.here, **fields
        )

    @property
    def finding(self) -> Finding:
        return self.found(self.subject, Policy(min_age=0))


Situation = Callable[[Cloud], object]
REVERT_AT_DESTINATION = "compute_revert_snapshot_based_resize_at_dest"


def all_of(*situations: Situation) -> Situation:
    def happen(cloud: Cloud) -> None:
        for situation in situations:
            situation(cloud)

    return happen


def failed(cloud: Cloud) -> None:
    """The disk is on the destination, and the source in the API: the row was not saved."""
    cloud.copied("Error")


def copied(cloud: Cloud) -> None:
    cloud.copied("Success")


def gave_up_the_copy(cloud: Cloud) -> None:
    cloud.copied("Error", in_copy=True)


def started(cloud: Cloud) -> None:
    cloud.started()


def went_to_another_cell(cloud: Cloud) -> None:
    """A resize between cells has other steps.

    The guest may be created before the last of them fails.
    """
    cloud.recorded(
        cloud.move, ("compute_finish_snapshot_based_resize_at_dest", cloud.there, "Success")
    )


def started_between_two_attempts(cloud: Cloud) -> None:
    cloud.copied("Error")
    again = cloud.moved("error")
    cloud.alter(again, created_at=MUCH_LATER, updated_at=MUCH_LATER)
    cloud.started()
    cloud.recorded(again, ("cold_migrate", cloud.third, "Error"))


PROOFS: dict[str, Situation] = {
    "gave up the copy": gave_up_the_copy,
    "never came to the source": lambda cloud: cloud.recorded(
        cloud.move, ("cold_migrate", cloud.third, "Error")
    ),
    "refused by the destination": lambda cloud: cloud.prepared("Error"),
    "started since": all_of(failed, started),
    "rebooted since": all_of(failed, lambda cloud: cloud.started("reboot")),
    "started and stopped since": all_of(
        failed, started, lambda cloud: cloud.stopped(at=MUCH_LATER)
    ),
    "destroyed at the destination": all_of(copied, lambda cloud: cloud.reverted(cloud.there)),
    "destroyed in another cell": all_of(
        went_to_another_cell, lambda cloud: cloud.reverted(cloud.there, REVERT_AT_DESTINATION)
    ),
    # Source document 000: another migration, for which no host was found.
    "tried again in vain": all_of(
        gave_up_the_copy,
        lambda cloud: cloud.recorded(cloud.moved("error"), ("cold_migrate", cloud.third, "Error")),
    ),
    "started between two attempts": started_between_two_attempts,
}


@pytest.mark.parametrize("type", ["migration", "resize"])
@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS)
def test_guest_proven_at_the_source_gets_its_host_back(proof: Situation, type: str) -> None:
    cloud = Cloud(type=type)
    proof(cloud)
    finding = cloud.finding

    assert finding.change, finding.reason
    assert (finding.kind, finding.verdict) == ("unreverted_allocation", "drifted")
    assert set(finding.change.after["allocations"]) == {cloud.here}
    assert finding.change.partner and finding.change.partner.after["allocations"] == {}


def test_reverted_move_has_destroyed_the_guest_on_the_destination() -> None:
    assert Cloud("reverted").finding.change


def cut_while_it_copied(cloud: Cloud) -> None:
    cloud.copied("Error")
    newest, *older = cloud.actions[cloud.subject]
    cut = d.replace(newest.events[-1], finish_time=None, result=None)
    cloud.actions[cloud.subject] = (d.replace(newest, events=(*newest.events[:-1], cut)), *older)


def moved_since(cloud: Cloud) -> None:
    """It moved away and back: the move's allocation may be of an earlier flavor."""
    gave_up_the_copy(cloud)
    cloud.migration(cloud.subject, cloud.here, cloud.there, "confirmed")
    cloud.migration(cloud.subject, cloud.there, cloud.here, "confirmed")


def live_migrated_in_vain_before(cloud: Cloud) -> None:
    """The guest may run where the server has its allocation."""
    cloud.alter(cloud.moved("error", type="live-migration"), created_at=EARLIER)
    gave_up_the_copy(cloud)


ATTACKS: dict[str, dict[str, Situation]] = {
    "guest_not_proven_at_source": {
        # Its actions were archived, or these credentials see no events.
        "nothing is recorded": lambda cloud: None,
        "failed after the copy": failed,
        # Somebody has written the source into Nova's database. The guest was created elsewhere.
        "came to the destination": lambda cloud: cloud.recorded(
            cloud.move,
            ("compute_prep_resize", cloud.there, "Success"),
            ("compute_resize_instance", cloud.here, "Success"),
            ("compute_finish_resize", cloud.there, "Success"),
        ),
        "failed at the destination": lambda cloud: cloud.recorded(
            cloud.move,
            ("compute_resize_instance", cloud.here, "Success"),
            ("compute_finish_resize", cloud.there, "Error"),
        ),
        "cut while it copied": cut_while_it_copied,
        "started at the destination": all_of(failed, lambda cloud: cloud.started(root=cloud.there)),
        "failed to start": all_of(failed, lambda cloud: cloud.started(result="Error")),
        # A shut off guest can be stopped without its disk.
        "stopped only": all_of(failed, lambda cloud: cloud.stopped()),
        "started before it ended": all_of(
            failed, lambda cloud: cloud.alter(cloud.move, updated_at=MUCH_LATER), started
        ),
        "started before it began": all_of(started, failed),
        # This is the revert of an earlier move from the same destination.
        "reverted to an earlier host": all_of(
            lambda cloud: cloud.reverted(cloud.there, at=EARLIER), failed
        ),
        "failed to revert": all_of(
            copied, lambda cloud: cloud.reverted(cloud.there, result="Error")
        ),
        "tried again and failed after the copy": all_of(
            gave_up_the_copy,
            lambda cloud: cloud.copied("Error", cloud.moved("error", dest=cloud.third)),
        ),
    },
    "moved_across_cells": {
        "went to another cell": went_to_another_cell,
        # The server is back in its own cell, where a reboot starts a second guest.
        "failed to revert from another cell": all_of(
            went_to_another_cell,
            lambda cloud: cloud.reverted(cloud.there, REVERT_AT_DESTINATION, result="Error"),
            lambda cloud: cloud.started("reboot", at=MUCH_LATER),
        ),
    },
    "later_move_not_provable": {"moved since": moved_since},
    "move_may_have_ended": {
        # The hypervisors may have continued without Nova, to where the server has no allocation.
        "live migrated in vain since": all_of(
            gave_up_the_copy,
            lambda cloud: cloud.moved("error", dest=cloud.third, type="live-migration"),
        ),
        "live migrated in vain before": live_migrated_in_vain_before,
        "evacuated in vain": all_of(
            gave_up_the_copy, lambda cloud: cloud.moved("failed", type="evacuation")
        ),
    },
    "migration_left_other_host": {
        "left another host": all_of(
            lambda cloud: cloud.alter(
                cloud.move, source_compute="compute-3", source_node="compute-3"
            ),
            failed,
            started,
        )
    },
    "actions_unread": {
        "an action is refused": all_of(
            gave_up_the_copy, lambda cloud: cloud.answers("last_actions", cloud.subject, 500)
        )
    },
}


@pytest.mark.parametrize(("reason", "attack"), list_cases(ATTACKS))
def test_guest_possibly_elsewhere_keeps_its_allocation_there(
    reason: str, attack: Situation
) -> None:
    cloud = Cloud()
    attack(cloud)
    finding = cloud.finding

    assert (finding.kind, finding.verdict) == ("unreverted_allocation", "undecided")
    assert finding.reason.id == reason


def test_server_whose_actions_are_refused_keeps_its_allocations() -> None:
    cloud = Cloud()
    gave_up_the_copy(cloud)
    cloud.answers("actions", cloud.subject, 403)

    assert (cloud.finding.verdict, cloud.finding.change) == ("undecided", None)
    assert cloud.finding.reason.id == "actions_unread"


@pytest.mark.parametrize("status", ["error", "failed", "cancelled", "reverted"])
def test_failed_live_migration_is_only_reported(status: str) -> None:
    """Of two guests the one at the source may be the one that was started.

    This is so whatever was recorded since.
    """
    cloud = Cloud(status, type="live-migration")
    cloud.started()
    finding = cloud.finding

    told = (finding.kind, finding.verdict, finding.change)
    assert told == ("unreverted_allocation", "drifted", None)
    assert finding.reason.id == "guest_may_have_moved"


def test_request_of_a_move_is_found_although_two_clocks_differ() -> None:
    """The API's clock is ahead of conductor's.

    By its time the request came after the migration that it began.
    """
    asked = [
        ("lock", MUCH_LATER),
        ("start", MUCH_LATER),
        ("migrate", LATER),
        ("stop", LATER),
        ("resize", EARLIER),
        ("migrate", EARLIER),
    ]
    actions = [Action(name, f"{name} at {at}", None, at, None) for name, at in asked]

    assert list_relevant_request_ids(actions, "2026-11-20T12:59:59.000000") == [
        f"start at {MUCH_LATER}",
        f"migrate at {LATER}",
        f"resize at {EARLIER}",
    ]


def test_few_actions_of_a_long_lived_server_are_read() -> None:
    actions = [Action("reboot", f"req-{number}", None, LATER, None) for number in range(100)]

    assert len(list_relevant_request_ids(actions, EARLIER)) == 20
