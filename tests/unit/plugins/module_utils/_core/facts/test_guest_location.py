# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A live server whose failed cold migration has the allocation on its host.

The server gets it back only if its guest is proven to be there.

First everything that proves it, then the attacks: servers whose guest, or disk, may be on the host
that would be freed.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable

import pytest

from .......plugins.module_utils._core.facts.guest_location import list_relevant_request_ids
from .......plugins.module_utils._core.models.nova import Action
from .......plugins.module_utils._core.models.verdict import Finding
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import judge
from ...world import LATER, World

Situation = Callable[["Cloud"], object]


EARLIER = "2026-11-20T11:00:00.000000"
MUCH_LATER = "2026-11-20T14:00:00.000000"


class Cloud(World):
    """A server on the host `here` with an allocation on `there`.

    A move from here to there has ended and has the allocation on `here`.
    """

    def __init__(self, status: str = "error", type: str = "migration") -> None:
        super().__init__()
        self.here, self.there, self.third = (self.host(f"compute-{number}") for number in (1, 2, 3))
        self.subject = self.server(self.here, self.there)
        self.move = self.moved(status, self.here, type=type)

    def moved(self, status: str, *holds: str, dest: str = "", type: str = "migration") -> str:
        """Add another move of the server, away from `here`."""
        move = self.migration(
            self.subject, self.here, dest or self.there, status, *holds, type=type
        )
        self.migrations[move] = d.replace(
            self.migrations[move], updated_at=self.migrations[move].created_at
        )
        return move

    def copied(self, result: str, move: str = "", in_copy: bool = False) -> None:
        """The move reached the source."""
        events = (
            ("compute_prep_resize", self.there, "Success"),
            ("compute_resize_instance", self.here, result),
        )
        self.recorded(move or self.move, *events, in_copy=in_copy)

    def started(self, action: str = "start", root: str = "", **fields: str) -> None:
        self.recorded_later(
            self.subject, action, f"compute_{action}_instance", root or self.here, **fields
        )

    @property
    def finding(self) -> Finding:
        return next(
            found
            for found in judge(self.snapshot(), Policy(min_age=0))
            if found.consumer == self.subject
        )


def gave_up_the_copy(cloud: Cloud) -> None:
    cloud.copied("Error", in_copy=True)


def never_came_to_the_source(cloud: Cloud) -> None:
    cloud.recorded(cloud.move, ("cold_migrate", cloud.third, "Error"))


def refused_by_the_destination(cloud: Cloud) -> None:
    cloud.recorded(cloud.move, ("compute_prep_resize", cloud.there, "Error"))


def started_since(cloud: Cloud) -> None:
    cloud.copied("Error")
    cloud.started()


def rebooted_since(cloud: Cloud) -> None:
    cloud.copied("Error")
    cloud.started("reboot")


def started_and_stopped_since(cloud: Cloud) -> None:
    started_since(cloud)
    cloud.recorded_later(cloud.subject, "stop", "compute_stop_instance", cloud.here, at=MUCH_LATER)


def destroyed_at_the_destination(cloud: Cloud) -> None:
    cloud.copied("Success")
    cloud.recorded_later(cloud.subject, "revertResize", "compute_revert_resize", cloud.there)


def destroyed_in_another_cell(cloud: Cloud) -> None:
    went_to_another_cell(cloud)
    revert = "compute_revert_snapshot_based_resize_at_dest"
    cloud.recorded_later(cloud.subject, "revertResize", revert, cloud.there)


def tried_again_in_vain(cloud: Cloud) -> None:
    """Source document 000: another migration, for which no host was found."""
    cloud.copied("Error", in_copy=True)
    cloud.recorded(cloud.moved("error"), ("cold_migrate", cloud.third, "Error"))


def started_between_two_attempts(cloud: Cloud) -> None:
    cloud.copied("Error")
    again = cloud.moved("error")
    cloud.migrations[again] = d.replace(
        cloud.migrations[again], created_at=MUCH_LATER, updated_at=MUCH_LATER
    )
    cloud.started()
    cloud.recorded(again, ("cold_migrate", cloud.third, "Error"))


@pytest.mark.parametrize("type", ["migration", "resize"])
@pytest.mark.parametrize(
    "proof",
    [
        gave_up_the_copy,
        never_came_to_the_source,
        refused_by_the_destination,
        started_since,
        rebooted_since,
        started_and_stopped_since,
        destroyed_at_the_destination,
        destroyed_in_another_cell,
        tried_again_in_vain,
        started_between_two_attempts,
    ],
    ids=lambda proof: proof.__name__,
)
def test_guest_proven_at_the_source_gets_its_host_back(proof: Situation, type: str) -> None:
    cloud = Cloud(type=type)
    proof(cloud)
    finding = cloud.finding

    assert finding.change, finding.reason
    assert (finding.kind, finding.verdict, set(finding.change.after["allocations"])) == (
        "unreverted_allocation",
        "drifted",
        {cloud.here},
    )
    assert finding.change.partner and finding.change.partner.after["allocations"] == {}


def test_reverted_move_has_destroyed_the_guest_on_the_destination() -> None:
    assert Cloud("reverted").finding.change


def nothing_is_recorded(cloud: Cloud) -> None:
    """Its actions were archived, or these credentials see no events."""


def failed_after_the_copy(cloud: Cloud) -> None:
    """The disk is on the destination, and the source in the API: the row was not saved."""
    cloud.copied("Error")


def came_to_the_destination(cloud: Cloud) -> None:
    """Somebody has written the source into Nova's database.

    The guest was created on the destination.
    """
    cloud.recorded(
        cloud.move,
        ("compute_prep_resize", cloud.there, "Success"),
        ("compute_resize_instance", cloud.here, "Success"),
        ("compute_finish_resize", cloud.there, "Success"),
    )


def failed_at_the_destination(cloud: Cloud) -> None:
    cloud.recorded(
        cloud.move,
        ("compute_resize_instance", cloud.here, "Success"),
        ("compute_finish_resize", cloud.there, "Error"),
    )


def cut_while_it_copied(cloud: Cloud) -> None:
    cloud.copied("Error")
    newest, *older = cloud.actions[cloud.subject]
    cut = d.replace(newest.events[-1], finish_time=None, result=None)
    cloud.actions[cloud.subject] = (d.replace(newest, events=(*newest.events[:-1], cut)), *older)


def went_to_another_cell(cloud: Cloud) -> None:
    """A resize between cells has other steps.

    The guest may be created before the last of them fails.
    """
    cloud.recorded(
        cloud.move, ("compute_finish_snapshot_based_resize_at_dest", cloud.there, "Success")
    )


def failed_to_revert_from_another_cell(cloud: Cloud) -> None:
    """The server is back in its own cell, where a reboot starts a second guest."""
    went_to_another_cell(cloud)
    revert = "compute_revert_snapshot_based_resize_at_dest"
    cloud.recorded_later(cloud.subject, "revertResize", revert, cloud.there, result="Error")
    cloud.started("reboot", at=MUCH_LATER)


def started_at_the_destination(cloud: Cloud) -> None:
    cloud.copied("Error")
    cloud.started(root=cloud.there)


def failed_to_start(cloud: Cloud) -> None:
    cloud.copied("Error")
    cloud.started(result="Error")


def stopped_only(cloud: Cloud) -> None:
    """A shut off guest can be stopped without its disk."""
    cloud.copied("Error")
    cloud.recorded_later(cloud.subject, "stop", "compute_stop_instance", cloud.here)


def started_before_it_ended(cloud: Cloud) -> None:
    cloud.copied("Error")
    cloud.migrations[cloud.move] = d.replace(cloud.migrations[cloud.move], updated_at=MUCH_LATER)
    cloud.started()


def started_before_it_began(cloud: Cloud) -> None:
    cloud.started()
    cloud.copied("Error")


def reverted_to_an_earlier_host(cloud: Cloud) -> None:
    """This is the revert of an earlier move from the same destination."""
    cloud.recorded_later(
        cloud.subject, "revertResize", "compute_revert_resize", cloud.there, at=EARLIER
    )
    cloud.copied("Error")


def failed_to_revert(cloud: Cloud) -> None:
    cloud.copied("Success")
    cloud.recorded_later(
        cloud.subject, "revertResize", "compute_revert_resize", cloud.there, result="Error"
    )


def tried_again_and_failed_after_the_copy(cloud: Cloud) -> None:
    cloud.copied("Error", in_copy=True)
    cloud.copied("Error", cloud.moved("error", dest=cloud.third))


def moved_since(cloud: Cloud) -> None:
    """It moved away and back: the move's allocation may be of an earlier flavor."""
    gave_up_the_copy(cloud)
    cloud.migration(cloud.subject, cloud.here, cloud.there, "confirmed")
    cloud.migration(cloud.subject, cloud.there, cloud.here, "confirmed")


def live_migrated_in_vain_since(cloud: Cloud) -> None:
    """The hypervisors may have continued without Nova, to where the server has no allocation."""
    gave_up_the_copy(cloud)
    cloud.moved("error", dest=cloud.third, type="live-migration")


def live_migrated_in_vain_before(cloud: Cloud) -> None:
    """The guest may run where the server has its allocation."""
    older = cloud.moved("error", type="live-migration")
    cloud.migrations[older] = d.replace(cloud.migrations[older], created_at=EARLIER)
    gave_up_the_copy(cloud)


def evacuated_in_vain(cloud: Cloud) -> None:
    gave_up_the_copy(cloud)
    cloud.moved("failed", type="evacuation")


def left_another_host(cloud: Cloud) -> None:
    cloud.migrations[cloud.move] = d.replace(
        cloud.migrations[cloud.move], source_compute="compute-3", source_node="compute-3"
    )
    started_since(cloud)


def an_action_is_refused(cloud: Cloud) -> None:
    gave_up_the_copy(cloud)
    cloud.answers("last_actions", cloud.subject, 500)


@pytest.mark.parametrize(
    ("attack", "reason"),
    [
        (nothing_is_recorded, "guest_not_proven_at_source"),
        (failed_after_the_copy, "guest_not_proven_at_source"),
        (came_to_the_destination, "guest_not_proven_at_source"),
        (failed_at_the_destination, "guest_not_proven_at_source"),
        (cut_while_it_copied, "guest_not_proven_at_source"),
        (went_to_another_cell, "moved_across_cells"),
        (failed_to_revert_from_another_cell, "moved_across_cells"),
        (started_at_the_destination, "guest_not_proven_at_source"),
        (failed_to_start, "guest_not_proven_at_source"),
        (stopped_only, "guest_not_proven_at_source"),
        (started_before_it_ended, "guest_not_proven_at_source"),
        (started_before_it_began, "guest_not_proven_at_source"),
        (reverted_to_an_earlier_host, "guest_not_proven_at_source"),
        (failed_to_revert, "guest_not_proven_at_source"),
        (tried_again_and_failed_after_the_copy, "guest_not_proven_at_source"),
        (moved_since, "later_move_not_provable"),
        (live_migrated_in_vain_since, "move_may_have_ended"),
        (live_migrated_in_vain_before, "move_may_have_ended"),
        (evacuated_in_vain, "move_may_have_ended"),
        (left_another_host, "migration_left_other_host"),
        (an_action_is_refused, "actions_unread"),
    ],
    ids=lambda part: getattr(part, "__name__", None),
)
def test_guest_possibly_elsewhere_keeps_its_allocation_there(
    attack: Situation, reason: str
) -> None:
    cloud = Cloud()
    attack(cloud)
    finding = cloud.finding

    assert (finding.kind, finding.verdict, finding.change) == (
        "unreverted_allocation",
        "undecided",
        None,
    ), finding.reason
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

    assert (finding.kind, finding.verdict, finding.change) == (
        "unreverted_allocation",
        "drifted",
        None,
    )
    assert finding.reason.id == "guest_may_have_moved"


def test_finding_says_what_to_do() -> None:
    cloud = Cloud()
    cloud.copied("Error")

    assert cloud.finding.reason.id == "guest_not_proven_at_source"


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
