"""The outcome of a server that Nova was to heal, and the hosts of cells in a table of nova-manage.

The outcome for every exit status of nova-manage and every allocation afterwards.
"""

from __future__ import annotations

import itertools
import re
import typing as t
from pathlib import Path

import pytest

from ......plugins.filter.roles import FilterModule
from ......plugins.module_utils._core.options.policy import Policy
from ......plugins.plugin_utils._stage.nova_manage import (
    EXIT_CODES,
    FAILED,
    HEALED,
    SKIPPED,
    WOULD_BE_HEALED,
    describe_cell_hosts,
)
from ...module_utils.judging import build_findings
from ...module_utils.world import World, answer

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
    """Return a detection of a server on `home` with allocations on the named hosts."""
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

# The later answers of Placement and of a new detection.
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
def test_allocations_decide_the_outcome_and_not_the_exit_code(
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
def test_server_still_without_allocation_failed_unless_another_gave_it(
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
def test_changed_ports_are_a_failure_with_a_change_whatever_the_allocations(
    now: t.Any,
) -> None:
    healed = _outcome(_ended(7), now)

    assert (healed["outcome"], healed["changed"]) == (FAILED, True)
    assert healed["reason"].startswith(EXIT_CODES[7])


@pytest.mark.parametrize(
    ("now", "outcome", "changed"),
    [(NOTHING, FAILED, False), (ITS_OWN, HEALED, True), (UNKNOWN_AND_UNJUDGED, FAILED, False)],
)
def test_lost_controller_may_have_healed_the_server(
    now: t.Any, outcome: str, changed: bool
) -> None:
    healed = _outcome(UNREACHABLE, now)

    assert (healed["outcome"], healed["changed"]) == (outcome, changed)
    assert healed["reason"].startswith(
        "nova-manage was not reached: check the connection to orphan_cleanup_nova_manage_host. "
    )
    assert healed["reason"].endswith(" Ansible says: Failed to connect to the host via ssh.")


@pytest.mark.parametrize("code", EVERY_CODE)
def test_only_a_completed_dry_run_predicts_healing(code: int) -> None:
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


def test_dry_run_that_reached_no_server_predicts_nothing() -> None:
    healed = _outcome(UNREACHABLE, dry=True)

    assert (healed["outcome"], healed["changed"]) == (FAILED, False)
    assert healed["reason"].startswith("nova-manage was not reached: ")


def test_output_that_only_looks_like_a_dry_run_predicts_nothing() -> None:
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
def test_unproven_server_is_skipped_with_the_reason(
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
def test_message_is_stdout_or_else_stderr(output: str, errors: str, said: str) -> None:
    assert _outcome(_ended(3, output, errors), NOTHING)["reason"].endswith(f" and said: {said}")


def test_empty_output_is_reported_as_empty() -> None:
    assert _outcome(_ended(0, ""), NOTHING)["reason"].endswith(" and said: nothing")


@pytest.mark.parametrize("output", ["word " * 1000, "x" * 5000])
def test_long_output_is_cut(output: str) -> None:
    said = _outcome(_ended(3, output), NOTHING)["reason"].partition(" and said: ")[2]

    assert (
        1990 < len(said) <= 2000
        and said.endswith("...")
        and output.startswith(said.removesuffix("..."))
    )


def test_every_documented_exit_code_is_explained() -> None:
    assert list(EXIT_CODES) == [*range(9), 125, 126, 127, 255]
    assert all(told.endswith(".") for told in EXIT_CODES.values())


def test_healing_page_has_a_row_for_every_exit_code() -> None:
    page = (Path(__file__).parents[5] / "docs" / "heal.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9, ]+) \|", page, re.MULTILINE)

    assert [int(code) for row in rows for code in row.split(",")] == list(EXIT_CODES)


CELL_1, CELL_2, TWIN = (f"0000000{number}-0000-4000-8000-00000000000a" for number in range(3))
RULE = f"+{'-' * 13}+{'-' * 38}+{'-' * 12}+"
HEADER = f"|  Cell Name  | {'Cell UUID':^36} |  Hostname  |"


def _print(*rows: tuple[str, str, str]) -> str:
    """Return what nova-manage prints, with a warning before the table."""
    lines = ["Deprecated: Option | is old", RULE, HEADER, RULE]
    lines += [f"| {cell:^11} | {uuid} | {host:^10} |" for cell, uuid, host in rows]
    return "\n".join([*lines, RULE, ""])


TABLE = _print(
    ("cell1", CELL_1, "compute-1"),
    ("cell1", CELL_1, "compute-2"),
    ("cell | two", CELL_2, "compute-3"),
    ("twin", CELL_2, "compute-4"),
    ("twin", TWIN, "compute-5"),
)


def _describe(cells: t.Any, **result: t.Any) -> t.Mapping[str, t.Any]:
    listing: t.Any = {"rc": 0, "stdout": TABLE, "stderr": "", **result}
    return describe_cell_hosts(listing, cells)


@pytest.mark.parametrize(
    ("cells", "hosts"),
    [
        (["cell1"], {"cell1": ["compute-1", "compute-2"]}),
        # The command line gives a text for a list.
        ("cell1", {"cell1": ["compute-1", "compute-2"]}),
        (f"cell1,{TWIN}", {"cell1": ["compute-1", "compute-2"], TWIN: ["compute-5"]}),
        ([CELL_1.upper()], {CELL_1.upper(): ["compute-1", "compute-2"]}),
        (["cell | two"], {"cell | two": ["compute-3", "compute-4"]}),
    ],
    ids=itertools.count(),
)
def test_cells_are_named_by_name_or_uuid(cells: t.Any, hosts: dict[str, list[str]]) -> None:
    assert _describe(cells) == {"hosts": hosts, "fault": ""}


@pytest.mark.parametrize(
    ("cells", "result", "sentence"),
    [
        (
            ["cell9"],
            {},
            "orphan_cleanup_cells: Nova has no cell cell9 with hosts. Did you mean cell1?",
        ),
        (["twin"], {}, f"orphan_cleanup_cells: 2 cells are named twin: {CELL_2}, {TWIN}."),
        (
            ["cell1", CELL_1],
            {},
            f"orphan_cleanup_cells names one cell twice: cell1 and {CELL_1}.",
        ),
        # An empty table is no table of a cell without hosts.
        (["cell1"], {"stdout": _print()}, "orphan_cleanup_cells: Nova has no cell cell1 with"),
        (["cell1"], {"stdout": ""}, "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` print"),
        (["cell1"], {"stdout": "cell1 compute-1"}, "orphan_cleanup_cells: `nova-manage cell_v2"),
        # A row of which only a part can be read must not leave out a host.
        (
            ["cell1"],
            {"stdout": f"{TABLE}\n| cell1 | {CELL_1} | two hosts |"},
            "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be read",
        ),
        (
            ["cell1"],
            {"stdout": f"{TABLE}\n| cell1 | {CELL_1} |"},
            "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be read",
        ),
        (
            ["cell1"],
            {"rc": 127, "stdout": "", "stderr": "env: nova-manage: No such file"},
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            "cells, and said: env: nova-manage: No such file",
        ),
        # The table of a command that failed is not read.
        (["cell1"], {"rc": 1}, "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not"),
        (
            ["cell1"],
            {"rc": None, "unreachable": True, "msg": "no route to host"},
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            "cells, and said: no route to host",
        ),
    ],
    ids=itertools.count(),
)
def test_cells_that_are_not_certain_have_no_hosts(
    cells: list[str], result: dict[str, t.Any], sentence: str
) -> None:
    described = _describe(cells, **result)

    assert described["hosts"] == {}
    assert described["fault"].startswith(sentence)
    assert described["fault"].endswith("Nothing was changed.")
