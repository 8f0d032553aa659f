# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a host from being empty."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._hosts.blockers import Blocker
from ......plugins.module_utils._hosts.draining import GONE, MOVE_OUTCOMES, MOVED
from ......plugins.module_utils._hosts.emptiness import describe_others, list_occupants


def block(kind: str, subject: str = "subject") -> Blocker:
    return Blocker(kind, subject, "", f"Why {subject} blocks.")


def end(outcome: str, uuid: str = "server") -> t.Any:
    return {"uuid": uuid, "name": "web-1", "outcome": outcome}


@pytest.mark.parametrize(
    ("kind", "is_empty"),
    [
        ("server", False),
        ("migration", False),
        ("resize", False),
        ("claim", False),
        ("unsound_reading", False),
        # These block a deletion of a host that is empty.
        ("excluded", True),
        ("service_up", True),
        ("agent_up", True),
        ("port", True),
        ("empty_zone", True),
    ],
)
def test_what_is_on_a_host_or_may_come_to_it_counts(kind: str, is_empty: bool) -> None:
    assert (list_occupants([block(kind)]) == []) == is_empty


@pytest.mark.parametrize("outcome", MOVE_OUTCOMES)
def test_a_server_that_was_not_moved_counts_whatever_the_listings_say(outcome: str) -> None:
    occupants = list_occupants([], [end(outcome)])

    assert [entry.subject for entry in occupants] == (
        [] if outcome in (MOVED, GONE) else ["server"]
    )


def test_a_server_that_a_listing_has_counts_once() -> None:
    occupants = list_occupants([block("server", "server")], [end("left")])

    assert [entry.subject for entry in occupants] == ["server"]


def test_what_no_line_about_a_server_shows_is_described() -> None:
    blockers = [block("server"), block("migration"), block("claim", "c1"), block("excluded")]
    blockers += [block("claim", f"c{number}") for number in (2, 3, 4, 5)]

    assert describe_others(list_occupants(blockers)) == (
        "Why subject blocks. Why c1 blocks. Why c2 blocks. And 3 more."
    )
