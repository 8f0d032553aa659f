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


def test_a_whole_run_says_what_each_stage_did_and_that_nothing_remains() -> None:
    assert _tell(*ALL, **VERIFIED) == (
        "gone",
        "service disabled, 3 leftovers removed, service and 2 providers deleted. "
        "compute-17 is gone.",
        # Nothing can be restored on a provider that is gone.
        "",
    )


def test_check_mode_says_what_would_be_done() -> None:
    assert _tell(*ALL, check=True) == (
        "ready",
        "nothing was changed. Without --check: service disabled, 3 leftovers removed, "
        "service and 2 providers deleted.",
        "",
    )


@pytest.mark.parametrize(
    ("stages", "outcome", "reason", "journal"),
    [
        (["disable"], "disabled", "service disabled.", ""),
        (["clean"], "cleaned", "3 leftovers removed.", JOURNAL),
        (["disable", "clean"], "cleaned", "service disabled, 3 leftovers removed.", JOURNAL),
        (["delete"], "deleted", "service and 2 providers deleted.", ""),
        (
            ["clean", "delete"],
            "deleted",
            "3 leftovers removed, service and 2 providers deleted.",
            "",
        ),
    ],
)
def test_some_stages_have_the_outcome_of_the_last_one(
    stages: list[str], outcome: str, reason: str, journal: str
) -> None:
    assert _tell(*stages) == (outcome, reason, journal)


def test_a_host_without_leftovers_has_nothing_of_the_host_before_it() -> None:
    """The tasks of the first host have registered what they removed, and its journal."""
    assert _tell("clean", now=_host(left_over=[])) == ("cleaned", "no leftovers.", "")


def test_what_was_skipped_is_not_counted_as_removed() -> None:
    removal = {"tally": {"removed": 1, "skipped": 2}, "journal": None}

    assert _tell("clean", remediation=removal)[1] == "1 leftover removed and 2 skipped."


def test_a_service_that_was_disabled_before_is_said_to_be() -> None:
    assert _tell("disable", before=_host(service=DISABLED))[1] == "service already disabled."
    left = _delete({**DELETED, "service": None})
    assert _tell("disable", "delete", before=_host(service=None), **left)[1] == (
        "2 providers deleted."
    )
    assert _tell("delete", **_delete({}))[1] == "nothing deleted."


def test_a_check_counts_blockers_and_leftovers() -> None:
    blockers = [{"kind": "server"}, {"kind": "resize"}, {"kind": "server"}]

    assert _tell("check", before=_host(blockers=blockers)) == (
        "blocked",
        "3 blockers (2 server, 1 resize), 3 removable leftovers.",
        "",
    )
    assert _tell("check") == (
        "ready",
        "no blockers, 3 removable leftovers; nothing was changed.",
        "",
    )
    # Nothing is verified in check mode.
    assert _tell("verify", check=True)[0] == "ready"


AGENT = {"uuid": "a-1", "type": "L3 agent"}
DRAINED = ["disable", "drain", "clean", "delete"]


def test_agents_and_aggregates_go_with_the_host() -> None:
    deleted = {**DELETED, "aggregates": [{"name": "ssd"}], "agents": [AGENT]}

    assert _tell("delete", **_delete(deleted)) == (
        "deleted",
        "host removed from 1 aggregate, service, 2 providers and 1 network agent deleted.",
        "",
    )


def test_agents_of_a_host_that_nobody_knows_are_deleted() -> None:
    before = {**_host(), **GONE, "agents": [AGENT], "left_over": []}

    assert _tell("delete", before=before, **_delete({"agents": [AGENT]}))[:2] == (
        "deleted",
        "1 network agent deleted.",
    )
    assert _tell(*ALL, before=before, **LEFT)[0] == "failed"


def test_a_drain_is_said_and_nothing_is_predicted_beyond_it() -> None:
    before = _host(servers=[{"uuid": "s-1"}, {"uuid": "s-2"}])

    assert _tell("disable", "drain", before=before)[:2] == (
        "drained",
        "service disabled, 2 servers moved away.",
    )
    assert _tell(*DRAINED, before=before, check=True, deletion={})[1].endswith(
        "2 servers moved away, 3 leftovers removed, "
        "what remains checked again before it is deleted."
    )
    assert _tell("drain", before=_host(servers=[]))[:2] == ("drained", "nothing to do.")


def test_a_stage_without_a_sentence_is_named_and_never_called_a_mere_check() -> None:
    assert _tell("evict") == ("done", "evict.", "")
    assert _tell("evict", "disable")[:2] == ("disabled", "evict, service disabled.")
    assert _tell("check", "evict", check=True)[:2] == (
        "ready",
        "nothing was changed. Without --check: evict.",
    )


def test_a_host_that_nobody_knows_is_gone() -> None:
    for stages in (["check"], ["verify"], list(ALL)):
        outcome, reason, _journal = _tell(*stages, before=_host(**GONE), **VERIFIED)

        assert (outcome, reason) == ("gone", "compute-17 is gone.")


@pytest.mark.parametrize(
    ("stages", "tasks"),
    [
        # What a play that ignores errors gets to.
        (ALL, {"after": {"failed": True, "msg": "No answer."}}),
        (ALL, LEFT),
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
    # Nobody knew it, and yet a provider has its name.
    assert _tell("verify", before=_host(**GONE), **LEFT)[0] == "failed"
