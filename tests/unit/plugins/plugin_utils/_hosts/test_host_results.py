"""The last line about each host that is decommissioned."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.filter.roles import host_result

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
