"""The outcome of a server that Nova was to heal, and the hosts of cells in a table of nova-manage.

The outcome for every exit status of nova-manage and every allocation afterwards.
"""

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
UNREACHABLE: t.Any = {"changed": False, "unreachable": True, "msg": "Failed to\nconnect via ssh."}
# Killed by a signal, nova-manage ends with 143 in a shell and with -15 outside of it.
STOPPED = [143, -15]
EVERY_CODE = [*EXIT_CODES, *STOPPED]


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


NO_ALLOCATIONS = "It has no allocations."
RIGHT = "It now has an allocation on its own host, and no other."
UNVERIFIABLE = "It has allocations that could not be verified."
NOT_KNOWN = "Its allocations are not known: Placement cannot be reached."
# What there is afterwards: what is said of it, the outcome and whether it is a change, and the
# outcome if nova-manage wrote nothing.
STATES: dict[str, tuple[t.Any, str, tuple[str, bool], str]] = {
    "nothing": (NOTHING, NO_ALLOCATIONS, (FAILED, False), FAILED),
    "no server": (GONE, NO_ALLOCATIONS, (FAILED, False), SKIPPED),
    "its own": (ITS_OWN, RIGHT, (HEALED, True), SKIPPED),
    "others too": (ANOTHERS, ANOTHERS[1]["findings"][0]["reason"], (FAILED, True), SKIPPED),
    "unsound": (UNVERIFIED, UNVERIFIABLE, (FAILED, True), FAILED),
    "not judged": (UNVERIFIED_BY_FAILURE, UNVERIFIABLE, (FAILED, True), FAILED),
    "not read": (UNKNOWN, NOT_KNOWN, (FAILED, False), SKIPPED),
    "neither": (UNKNOWN_AND_UNJUDGED, NOT_KNOWN, (FAILED, False), FAILED),
}


def _say(code: int, text: str) -> str:
    return f"nova-manage ended with {code} and said: {text}"


@pytest.mark.parametrize("code", EVERY_CODE)
@pytest.mark.parametrize("name", STATES)
def test_allocations_decide_the_outcome_and_not_the_exit_code(name: str, code: int) -> None:
    now, left, outcome, outcome_unwritten = STATES[name]
    if code == 4 and name == "nothing":
        left = BARE["findings"][0]["reason"]

    healed = _outcome(_ended(code), now)

    expected = {4: (outcome_unwritten, False), 7: (FAILED, True)}.get(code, outcome)
    assert (healed["outcome"], healed["changed"]) == expected
    meaning = EXIT_CODES.get(code, "nova-manage was stopped: find out why, and heal again.")
    assert healed["reason"] == f"{meaning} {left} {_say(code, 'out')}"


@pytest.mark.parametrize(
    ("now", "outcome", "changed"),
    [(NOTHING, FAILED, False), (ITS_OWN, HEALED, True), (UNKNOWN_AND_UNJUDGED, FAILED, False)],
)
def test_lost_controller_may_have_healed_the_server(
    now: t.Any, outcome: str, changed: bool
) -> None:
    healed = _outcome(UNREACHABLE, now)

    assert (healed["outcome"], healed["changed"]) == (outcome, changed)
    assert "orphan_cleanup_nova_manage_host" in healed["reason"]
    assert healed["reason"].endswith(" ".join(UNREACHABLE["msg"].split()))


@pytest.mark.parametrize("code", EVERY_CODE)
def test_only_a_completed_dry_run_predicts_healing(code: int) -> None:
    written = _outcome(_ended(code, "[dry-run] Create allocations"), dry=True)
    unwritten = _outcome(_ended(code, "Processed 0 instances."), dry=True)

    assert (unwritten["outcome"], unwritten["changed"]) == (FAILED, False)
    assert unwritten["reason"].endswith(_say(code, "Processed 0 instances."))
    predicted = (WOULD_BE_HEALED, True) if code == 4 else (FAILED, False)
    assert (written["outcome"], written["changed"]) == predicted
    assert "[dry-run] Create" in written["reason"]


def test_dry_run_that_reached_no_server_predicts_nothing() -> None:
    healed = _outcome(UNREACHABLE, dry=True)

    assert (healed["outcome"], healed["changed"]) == (FAILED, False)
    assert "orphan_cleanup_nova_manage_host" in healed["reason"]


def test_output_that_only_looks_like_a_dry_run_predicts_nothing() -> None:
    assert _outcome(_ended(4, "[dry-run]"), NOTHING)["outcome"] == FAILED


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize(
    ("before", "outcome", "why"),
    [
        (UNREAD, FAILED, UNREAD["msg"]),
        (UNSOUND, FAILED, " ".join(UNSOUND["summary"]["coverage"]["failed_checks"])),
        (_detected("home"), SKIPPED, "no longer exists."),
        (MOVED, SKIPPED, MOVED["findings"][0]["reason"]),
        (BUSY, SKIPPED, BUSY["protected"][0]["reason"]),
    ],
)
def test_unproven_server_is_skipped_with_the_reason(
    before: t.Any, outcome: str, why: str, dry: bool
) -> None:
    healed = _outcome(NOT_RUN, before=before, dry=dry)

    assert (healed["outcome"], healed["changed"]) == (outcome, False)
    assert healed["reason"].endswith(why)


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
        (["cell9"], {}, "cell9 .* cell1"),
        (["twin"], {}, f"2 cells .* twin: {CELL_2}, {TWIN}"),
        (["cell1", CELL_1], {}, f"twice: cell1 and {CELL_1}"),
        # An empty table is no table of a cell without hosts.
        (["cell1"], {"stdout": _print()}, "no cell cell1 "),
        (["cell1"], {"stdout": ""}, "no table"),
        (["cell1"], {"stdout": "cell1 compute-1"}, "no table"),
        # A row of which only a part can be read must not leave out a host.
        (["cell1"], {"stdout": f"{TABLE}\n| cell1 | {CELL_1} | two hosts |"}, "two hosts"),
        (["cell1"], {"stdout": f"{TABLE}\n| cell1 | {CELL_1} |"}, "cannot be read"),
        (["cell1"], {"rc": 127, "stderr": "env: No such file"}, "and said: env: No such file"),
        # The table of a command that failed is not read.
        (["cell1"], {"rc": 1}, "and said: nothing"),
        (["cell1"], {"rc": None, "unreachable": True, "msg": "no route"}, "and said: no route"),
    ],
    ids=itertools.count(),
)
def test_cells_that_are_not_certain_have_no_hosts(
    cells: list[str], result: dict[str, t.Any], sentence: str
) -> None:
    described = _describe(cells, **result)

    assert described["hosts"] == {}
    assert re.search(f"^orphan_cleanup_cells.*{sentence}", described["fault"])
    assert described["fault"].endswith("Nothing was changed.")
