# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of a server that Nova was to heal.

For everything that nova-manage may end with and the server may hold then.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.osops.placement.plugins.filter.heal_outcome import FilterModule
from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
from ansible_collections.osops.placement.plugins.plugin_utils._nova_manage import (
    EXIT_CODES,
    FAILED,
    HEALED,
    SKIPPED,
    WOULD_BE_HEALED,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    build_findings,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World, answer

heal_outcome = FilterModule().filters()["heal_outcome"]

NOT_RUN = {"changed": False, "skipped": True, "skip_reason": "Conditional result was False"}
UNREACHABLE = {
    "changed": False,
    "unreachable": True,
    "msg": "Failed to connect\nto the host via ssh.",
}
# Killed by a signal, nova-manage ends with 143 in a shell and with -15 outside of it.
STOPPED = [143, -15]
EVERY_CODE = [*EXIT_CODES, *STOPPED]
ORDINARY = [code for code in EVERY_CODE if code not in (4, 7)]


def _detected(*holds: str, complete: bool = True, **fields: t.Any) -> dict[str, t.Any]:
    """What a detection returns of a server on `home` that holds claims on the named hosts."""
    world = World()
    roots = {name: world.host(name) for name in ("home", "elsewhere")}
    world.server(roots["home"], *(roots[name] for name in holds), **fields)
    changes = {} if complete else {"services": answer("GET /os-services", 500)}
    return {"changed": False, **build_findings(world.snapshot(**changes), Policy(min_age=0))}


def _read(*holds: str) -> dict[str, t.Any]:
    return {
        "changed": False,
        "allocations": [{"consumer": "server", "providers": [{"name": name} for name in holds]}],
    }


def _ended(code: int, output: str = "out", errors: str = "") -> dict[str, t.Any]:
    return {
        "changed": False,
        "rc": code,
        "stdout": output,
        "stderr": errors,
        "msg": "non-zero return code" if code else "",
    }


BARE = _detected()
MOVED = _detected("elsewhere")
BUSY = _detected(task_state="rebooting")
UNREAD = {"changed": False, "msg": "Placement cannot be reached."}
UNSOUND = _detected("home", complete=False)

# What Placement and a new detection say afterwards.
NOTHING = (_read(), BARE)
GONE = ({"changed": False, "allocations": []}, _detected("home"))
ITS_OWN = (_read("home"), _detected("home"))
ANOTHERS = (_read("home", "elsewhere"), _detected("home", "elsewhere"))
UNVERIFIED = (_read("home"), UNSOUND)
UNVERIFIED_BY_FAILURE = (_read("home"), UNREAD)
UNKNOWN = (UNREAD, _detected("home"))
UNKNOWN_AND_UNJUDGED = (UNREAD, UNREAD)


def _outcome(
    called: dict[str, t.Any],
    now: tuple[t.Any, t.Any] = (NOT_RUN, NOT_RUN),
    before: t.Any = BARE,
    dry: bool = False,
) -> t.Any:
    return heal_outcome(called, before=before, read=now[0], after=now[1], dry=dry)


@pytest.mark.parametrize("code", ORDINARY)
@pytest.mark.parametrize(
    ("now", "outcome", "changed", "left"),
    [
        (NOTHING, FAILED, False, "It has no allocations."),
        (GONE, FAILED, False, "It has no allocations."),
        (ITS_OWN, HEALED, True, "It now has an allocation on its own host, and no other."),
        (ANOTHERS, FAILED, True, ANOTHERS[1]["findings"][0]["reason"]),
        (UNVERIFIED, FAILED, True, "It has allocations that could not be verified."),
        (UNVERIFIED_BY_FAILURE, FAILED, True, "It has allocations that could not be verified."),
        (UNKNOWN, FAILED, False, "Its allocations are not known: Placement cannot be reached."),
        (
            UNKNOWN_AND_UNJUDGED,
            FAILED,
            False,
            "Its allocations are not known: Placement cannot be reached.",
        ),
    ],
)
def test_what_it_holds_decides_and_not_the_code(
    code: int, now: t.Any, outcome: str, changed: bool, left: str
) -> None:
    healed = _outcome(_ended(code), now)

    assert (healed["outcome"], healed["changed"]) == (outcome, changed)
    meaning = (
        "nova-manage was stopped: find out why, and heal again."
        if code in STOPPED
        else EXIT_CODES[code]
    )
    assert healed["reason"] == f"{meaning} {left} nova-manage ended with {code} and said: out"


@pytest.mark.parametrize(
    ("now", "outcome", "left"),
    [
        (NOTHING, FAILED, BARE["findings"][0]["reason"]),
        (GONE, SKIPPED, "It has no allocations."),
        (ITS_OWN, SKIPPED, "It now has an allocation on its own host, and no other."),
        (ANOTHERS, SKIPPED, ANOTHERS[1]["findings"][0]["reason"]),
        (UNVERIFIED_BY_FAILURE, FAILED, "It has allocations that could not be verified."),
        (UNKNOWN, SKIPPED, "Its allocations are not known: Placement cannot be reached."),
        (
            UNKNOWN_AND_UNJUDGED,
            FAILED,
            "Its allocations are not known: Placement cannot be reached.",
        ),
    ],
)
def test_with_nothing_written_it_misses_its_claim_still_or_another_gave_it(
    now: t.Any, outcome: str, left: str
) -> None:
    healed = _outcome(_ended(4), now)

    assert (healed["outcome"], healed["changed"]) == (outcome, False)
    assert healed["reason"] == f"{EXIT_CODES[4]} {left} nova-manage ended with 4 and said: out"


@pytest.mark.parametrize(
    "now",
    [
        NOTHING,
        GONE,
        ITS_OWN,
        ANOTHERS,
        UNVERIFIED,
        UNVERIFIED_BY_FAILURE,
        UNKNOWN,
        UNKNOWN_AND_UNJUDGED,
    ],
)
def test_with_ports_changed_it_failed_and_something_was_changed_whatever_it_holds(
    now: t.Any,
) -> None:
    healed = _outcome(_ended(7), now)

    assert (healed["outcome"], healed["changed"]) == (FAILED, True)
    assert healed["reason"].startswith(EXIT_CODES[7])


@pytest.mark.parametrize(
    ("now", "outcome", "changed"),
    [(NOTHING, FAILED, False), (ITS_OWN, HEALED, True), (UNKNOWN_AND_UNJUDGED, FAILED, False)],
)
def test_a_controller_that_was_lost_on_the_way_may_have_healed_it(
    now: t.Any, outcome: str, changed: bool
) -> None:
    healed = _outcome(UNREACHABLE, now)

    assert (healed["outcome"], healed["changed"]) == (outcome, changed)
    assert healed["reason"].startswith(
        "nova-manage was not reached: check the connection to orphan_cleanup_nova_manage_host. "
    )
    assert healed["reason"].endswith(" Ansible says: Failed to connect to the host via ssh.")


@pytest.mark.parametrize("code", EVERY_CODE)
def test_only_the_end_of_a_dry_run_foretells_that_it_would_be_healed(code: int) -> None:
    written = _outcome(_ended(code, "[dry-run] Create allocations"), dry=True)
    unwritten = _outcome(_ended(code, "Processed 0 instances."), dry=True)

    assert (unwritten["outcome"], unwritten["changed"]) == (FAILED, False)
    assert unwritten["reason"].endswith(
        f" nova-manage ended with {code} and said: Processed 0 instances."
    )
    if code == 4:
        assert written == {
            "outcome": WOULD_BE_HEALED,
            "changed": True,
            "reason": "Nova would write its allocation: [dry-run] Create allocations",
        }
    else:
        assert (written["outcome"], written["changed"]) == (FAILED, False)


def test_a_dry_run_that_reached_nobody_foretells_nothing() -> None:
    healed = _outcome(UNREACHABLE, dry=True)

    assert (healed["outcome"], healed["changed"]) == (FAILED, False)
    assert healed["reason"].startswith("nova-manage was not reached: ")


def test_what_looks_like_a_dry_run_but_was_none_foretells_nothing() -> None:
    assert _outcome(_ended(4, "[dry-run]"), NOTHING)["outcome"] == FAILED


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize(
    ("before", "outcome", "reason"),
    [
        (
            UNREAD,
            FAILED,
            (
                "Nothing can be proven now, and nova-manage was not called: Placement cannot be "
                "reached."
            ),
        ),
        (
            UNSOUND,
            FAILED,
            (
                "Nothing can be proven now, and nova-manage was not called: "
                f"{' '.join(UNSOUND['summary']['coverage']['failed_checks'])}"
            ),
        ),
        *(
            (
                before,
                SKIPPED,
                f"It has changed since detection, and nova-manage was not called. {why}",
            )
            for before, why in [
                (_detected("home"), "Its allocations are right, or the server no longer exists."),
                (MOVED, MOVED["findings"][0]["reason"]),
                (BUSY, BUSY["protected"][0]["reason"]),
            ]
        ),
    ],
)
def test_what_is_not_proven_is_not_called_and_says_why(
    before: t.Any, outcome: str, reason: str, dry: bool
) -> None:
    assert _outcome(NOT_RUN, before=before, dry=dry) == {
        "outcome": outcome,
        "changed": False,
        "reason": reason,
    }


@pytest.mark.parametrize(
    ("output", "errors", "said"),
    [
        ("  one\n\n two ", "three", "one two"),
        (" \n", "three\nfour", "three four"),
        ("", "", "non-zero return code"),
    ],
)
def test_what_it_said_is_what_it_printed_or_else_complained_of(
    output: str, errors: str, said: str
) -> None:
    assert _outcome(_ended(3, output, errors), NOTHING)["reason"].endswith(f" and said: {said}")


def test_who_said_nothing_is_told_to_have_said_nothing() -> None:
    assert _outcome(_ended(0, ""), NOTHING)["reason"].endswith(" and said: nothing")


@pytest.mark.parametrize("output", ["word " * 1000, "x" * 5000])
def test_who_said_much_is_cut_short(output: str) -> None:
    said = _outcome(_ended(3, output), NOTHING)["reason"].partition(" and said: ")[2]

    assert (
        1990 < len(said) <= 2000
        and said.endswith("...")
        and output.startswith(said.removesuffix("..."))
    )


def test_every_code_that_nova_manage_documents_is_told_and_those_of_what_starts_it() -> None:
    assert list(EXIT_CODES) == [*range(9), 125, 126, 127, 255]
    assert all(told.endswith(".") for told in EXIT_CODES.values())


def test_the_page_on_healing_has_a_row_for_every_code() -> None:
    page = (Path(__file__).parents[4] / "docs" / "heal.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9, ]+) \|", page, re.MULTILINE)

    assert [int(code) for row in rows for code in row.split(",")] == list(EXIT_CODES)
