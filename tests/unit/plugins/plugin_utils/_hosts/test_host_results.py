"""The last lines about each host that is decommissioned or redeployed."""

import typing as t

import pytest

from ......plugins.filter.roles import host_result, redeploy_outcome

ALL = ("disable", "clean", "delete", "verify")
NAME = "compute-17"
SERVICE = {"id": "s-1", "status": "enabled", "state": "down"}
DISABLED = {**SERVICE, "status": "disabled"}
JOURNAL = "/out/compute-17/journal-1.jsonl"
LEFTOVER = {"kind": "deleted_server", "consumer": "c-1"}
REMOVAL = {"tally": {"removed": 2, "reduced": 1, "skipped": 0, "failed": 0}, "journal": JOURNAL}
FREE = {"complete": True, "message": "compute-17 is gone."}
TAKEN = {"complete": False, "message": "compute-17 was not removed completely."}
GONE = {"service": None, "known": False, "name": NAME, "removal": FREE}
VERIFIED = {"after": {"hosts": [GONE]}}
LEFT = {"after": {"hosts": [{**GONE, "removal": TAKEN}]}}
DELETED = {"service": "s-1", "providers": [{"uuid": "n-1"}, {"uuid": "c-1"}]}


def _host(**changes: t.Any) -> dict[str, t.Any]:
    return {
        "name": NAME,
        "known": True,
        "service": SERVICE,
        "left_over": [LEFTOVER] * 3,
        "blockers": [],
        "removal": TAKEN,
        **changes,
    }


def _delete(deleted: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"deletion": {"changed": bool(deleted), "deleted": deleted}}


def _tell(
    *stages: str, check: bool = False, before: t.Any = None, **tasks: t.Any
) -> tuple[str, str, str]:
    """Return the outcome, the sentence and the journal of a run with these stages."""
    given = {"now": _host(service=DISABLED), "remediation": REMOVAL, **_delete(DELETED), **tasks}
    result = host_result(before or _host(), stages, check, **given)
    assert result["subject"] == NAME
    return result["outcome"], result["reason"], result["journal"]


AGENT = {"uuid": "a-1", "type": "L3 agent"}
DRAINED = ("disable", "drain", "clean", "delete")
SERVERS = _host(servers=[{"uuid": "s-1"}, {"uuid": "s-2"}])
BLOCKED = _host(blockers=[{"kind": "server"}, {"kind": "resize"}, {"kind": "server"}])
UNKNOWN = {**_host(), **GONE, "agents": [AGENT], "left_over": []}
SKIPPED = {"tally": {"removed": 1, "skipped": 2}, "journal": None}
WHOLE = {**DELETED, "aggregates": [{"name": "ssd"}], "agents": [AGENT]}
CHECK = {"check": True}
READY = "nothing was changed. Without --check: "

# The stages of a run and what else there was; the outcome, the sentence and the journal.
RESULTS: dict[str, tuple[tuple[str, ...], dict[str, t.Any], tuple[str, str, str]]] = {
    # Nothing can be restored on a provider that is gone.
    "all": (
        ALL,
        VERIFIED,
        (
            "gone",
            "service disabled, 3 leftovers removed, service and 2 providers deleted. "
            "compute-17 is gone.",
            "",
        ),
    ),
    "all, in check mode": (
        ALL,
        CHECK,
        (
            "ready",
            f"{READY}service disabled, 3 leftovers removed, service and 2 providers deleted.",
            "",
        ),
    ),
    # Some stages have the outcome of the last one.
    "disable": (("disable",), {}, ("disabled", "service disabled.", "")),
    "clean": (("clean",), {}, ("cleaned", "3 leftovers removed.", JOURNAL)),
    "disable, clean": (
        ("disable", "clean"),
        {},
        ("cleaned", "service disabled, 3 leftovers removed.", JOURNAL),
    ),
    "delete": (("delete",), {}, ("deleted", "service and 2 providers deleted.", "")),
    "clean, delete": (
        ("clean", "delete"),
        {},
        ("deleted", "3 leftovers removed, service and 2 providers deleted.", ""),
    ),
    # The tasks of the first host have registered what they removed, and its journal.
    "no leftovers": (("clean",), {"now": _host(left_over=[])}, ("cleaned", "no leftovers.", "")),
    "skipped": (
        ("clean",),
        {"remediation": SKIPPED},
        ("cleaned", "1 leftover removed and 2 skipped.", ""),
    ),
    "disabled before": (
        ("disable",),
        {"before": _host(service=DISABLED)},
        ("disabled", "service already disabled.", ""),
    ),
    "no service": (
        ("disable", "delete"),
        {"before": _host(service=None), **_delete({**DELETED, "service": None})},
        ("deleted", "2 providers deleted.", ""),
    ),
    "nothing to delete": (("delete",), _delete({}), ("deleted", "nothing deleted.", "")),
    "blocked": (
        ("check",),
        {"before": BLOCKED},
        ("blocked", "3 blockers (2 server, 1 resize), 3 removable leftovers.", ""),
    ),
    "checked": (
        ("check",),
        {},
        ("ready", "no blockers, 3 removable leftovers; nothing was changed.", ""),
    ),
    # Nothing is verified in check mode.
    "verify, in check mode": (
        ("verify",),
        CHECK,
        ("ready", "no blockers, 3 removable leftovers; nothing was changed.", ""),
    ),
    "all parts": (
        ("delete",),
        _delete(WHOLE),
        (
            "deleted",
            "host removed from 1 aggregate, service, 2 providers and 1 network agent deleted.",
            "",
        ),
    ),
    "agents of a host that nobody knows": (
        ("delete",),
        {"before": UNKNOWN, **_delete({"agents": [AGENT]})},
        ("deleted", "1 network agent deleted.", ""),
    ),
    "drain": (
        ("disable", "drain"),
        {"before": SERVERS},
        ("drained", "service disabled, 2 servers moved away.", ""),
    ),
    # Nothing is predicted beyond it.
    "drain, in check mode": (
        DRAINED,
        {"before": SERVERS, "deletion": {}, **CHECK},
        (
            "ready",
            f"{READY}service disabled, 2 servers moved away, 3 leftovers removed, "
            "what remains checked again before it is deleted.",
            "",
        ),
    ),
    "nothing to drain": (
        ("drain",),
        {"before": _host(servers=[])},
        ("drained", "nothing to do.", ""),
    ),
    # A stage without a sentence is named, and never called a mere check.
    "another stage": (("evict",), {}, ("done", "evict.", "")),
    "another stage too": (("evict", "disable"), {}, ("disabled", "evict, service disabled.", "")),
    "another stage, in check mode": (("check", "evict"), CHECK, ("ready", f"{READY}evict.", "")),
    **{
        f"a host that nobody knows: {stages[-1]}": (
            stages,
            {"before": _host(**GONE), **VERIFIED},
            ("gone", "compute-17 is gone.", ""),
        )
        for stages in (("check",), ALL)
    },
}


@pytest.mark.parametrize(("stages", "given", "expected"), RESULTS.values(), ids=RESULTS)
def test_last_line_says_what_was_or_would_be_done(
    stages: tuple[str, ...], given: dict[str, t.Any], expected: tuple[str, str, str]
) -> None:
    assert _tell(*stages, **given) == expected


@pytest.mark.parametrize(
    ("stages", "tasks"),
    [
        # What a play that ignores errors gets to.
        (ALL, {"after": {"failed": True, "msg": "No answer."}}),
        (ALL, LEFT),
        (ALL, {"before": UNKNOWN, **LEFT}),
        # Nobody knew it, and yet a provider has its name.
        (("verify",), {"before": _host(**GONE), **LEFT}),
        (["disable", "clean"], {"disabling": {"failed": True, "msg": "No."}}),
        (["delete"], {"deletion": {"failed": True, "msg": "No."}}),
        (["delete"], {"deletion": {"failed": True, "deleted": DELETED}}),
    ],
)
def test_nothing_is_called_gone_or_deleted_that_may_remain(
    stages: t.Sequence[str], tasks: dict[str, t.Any]
) -> None:
    outcome, reason, journal = _tell(*stages, **tasks)

    assert outcome == "failed" and reason and not journal


OLD = "11111111-1111-4111-8111-111111111111"
UNCALLED = {"skipped": True}
CHANGE = {"before": {"allocations": {OLD: {"resources": {"VCPU": 1}}}}}
PROVEN = {"kind": "former_provider", "reason": "Server a …", "change": CHANGE}
DOUBTFUL = {"kind": "former_provider", "reason": "But a stranger …", "change": None}
NEW = "22222222-2222-4222-8222-222222222222"
BUSY = {
    "kind": "task",
    "verdict": "protected",
    "reason": "Its server has the task image_uploading.",
    "change": None,
    "providers": [{"root": OLD}],
}
BUSY_HERE = {**BUSY, "providers": [{"root": NEW}]}
OTHERS = {"kind": "deleted_server", "reason": "…", "change": CHANGE}


def _found(
    findings: t.Sequence[t.Any] = (),
    undecided: t.Sequence[t.Any] = (),
    failed: t.Sequence[str] = (),
    more: int = 0,
    protected: t.Sequence[t.Any] = (),
) -> dict[str, t.Any]:
    verdicts = {
        "drifted": len(findings) + more,
        "undecided": len(undecided),
        "protected": len(protected),
    }
    return {
        "summary": {"verdicts": verdicts, "coverage": {"failed_checks": list(failed)}},
        "findings": findings,
        "undecided": undecided,
        "protected": protected,
    }


def _determine(
    found: dict[str, t.Any],
    rewrite: bool = True,
    outcome: str = "ok",
    discovered: t.Mapping[str, t.Any] = UNCALLED,
) -> dict[str, t.Any]:
    checks = [{"name": "service", "outcome": outcome, "detail": "up"}]
    restored = {"checks": checks, "recorded": True, "node": NEW, "former_node": OLD}
    return redeploy_outcome(restored, found, discovered, rewrite)


def _outcome_of(outcome: dict[str, t.Any], subject: str) -> str:
    (line,) = [line for line in outcome["results"] if line["subject"] == subject]
    return str(line["outcome"])


# What was found: whether the host is complete, what moves, and the outcome of its allocations.
FOUND: dict[str, tuple[dict[str, t.Any], bool, list[str], str]] = {
    "nothing stranded": (_found([OTHERS]), True, [], "ok"),
    "proven": (_found([PROVEN, OTHERS]), True, [OLD], "moving"),
    "busy on the host itself": (_found([PROVEN], protected=[BUSY_HERE]), True, [OLD], "moving"),
    "one is undecided": (_found([PROVEN], [DOUBTFUL]), False, [], "missing"),
    "one has no change": (_found([PROVEN, DOUBTFUL]), False, [], "missing"),
    "not all are shown": (_found([PROVEN], more=1), False, [], "missing"),
    "unsound": (_found([PROVEN], failed=["No list of services."]), False, [], "failed"),
    "one is protected": (_found([PROVEN], protected=[BUSY]), False, [], "missing"),
    "all are protected": (_found(protected=[BUSY]), False, [], "missing"),
    "detection failed": ({"failed": True, "msg": "No answer."}, False, [], "failed"),
}


@pytest.mark.parametrize(("found", "complete", "moving", "expected"), FOUND.values(), ids=FOUND)
def test_one_doubt_keeps_all_allocations(
    found: dict[str, t.Any], complete: bool, moving: list[str], expected: str
) -> None:
    outcome = _determine(found)

    assert (outcome["complete"], outcome["rewriting"]) == (complete, bool(moving))
    assert outcome["former_roots"] == moving
    assert _outcome_of(outcome, "allocations") == expected


@pytest.mark.parametrize(("findings", "complete"), [([OTHERS], True), ([PROVEN], False)])
def test_nothing_moves_unless_it_is_wanted(findings: list[t.Any], complete: bool) -> None:
    outcome = _determine(_found(findings), rewrite=False)

    assert (outcome["complete"], outcome["rewriting"]) == (complete, False)
    assert outcome["former_roots"] == []
    assert ("host_decommission_restore" in outcome["results"][-1]["reason"]) != complete


@pytest.mark.parametrize("outcome", ["missing", "failed", "ok", "restored", "differs"])
def test_bad_check_makes_the_host_not_whole(outcome: str) -> None:
    is_complete = outcome not in ("missing", "failed")

    assert _determine(_found(), outcome=outcome)["complete"] == is_complete


def test_host_without_a_provider_has_no_line_about_allocations() -> None:
    outcome = _determine(dict(UNCALLED), outcome="missing")

    assert [line["subject"] for line in outcome["results"]] == ["service"]


@pytest.mark.parametrize(
    ("discovered", "reason"),
    [
        ({"rc": 127, "stdout": "", "stderr": "nova-manage: not found"}, "nova-manage: not found"),
        ({"rc": 1, "stdout": "No cells", "stderr": " "}, "No cells"),
        ({"unreachable": True, "msg": "ssh failed"}, "ssh failed"),
        ({"rc": 2}, "It did not say why."),
    ],
)
def test_failed_nova_manage_is_a_line(discovered: dict[str, t.Any], reason: str) -> None:
    outcome = _determine(_found(), discovered=discovered)

    assert _outcome_of(outcome, "nova-manage") == "failed" and not outcome["complete"]
    assert reason in [line["reason"] for line in outcome["results"]]


@pytest.mark.parametrize("discovered", [UNCALLED, {"rc": 0}])
def test_nova_manage_that_succeeded_has_no_line(discovered: dict[str, t.Any]) -> None:
    assert len(_determine(_found(), discovered=discovered)["results"]) == 2


def test_missing_record_is_a_line_and_no_fault() -> None:
    restored: dict[str, t.Any] = {"checks": [], "recorded": False}
    outcome = redeploy_outcome(restored, _found(), UNCALLED, False)

    assert outcome["complete"] and _outcome_of(outcome, "record") == "skipped"
