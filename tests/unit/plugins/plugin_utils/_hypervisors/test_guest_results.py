"""The last lines about hypervisors."""

import typing as t

import pytest

from ......plugins.filter.roles import guest_results
from ......plugins.plugin_utils._hypervisors.guest_results import select_leftover_changes

BOTH = ("leftover_domain", "leftover_directory")
UUID, OTHER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11", "0b6c0f3e-9a55-4c59-9d55-4f0a7a4b9f22"
INSTANCES, BACKUP = "/var/lib/nova/instances", "/var/lib/osops-placement"
FULL = "The disk is full."
OPTIONS = {"virsh": "virsh", "uri": "qemu:///system", "become": True}


def _detected(domains: int = 1, directories: int = 1, undecided: int = 0) -> dict[str, t.Any]:
    return {
        "summary": {
            "kinds": {"leftover_domain": domains, "leftover_directory": directories},
            "verdicts": {"orphaned": domains + directories, "undecided": undecided},
            "coverage": {"hosts": 3},
        }
    }


def _item(kind: str, uuid: str, host: str, guest: dict[str, t.Any], name: str) -> dict[str, t.Any]:
    found = {"id": f"{kind}/{host}/{uuid}", "kind": kind, "uuid": uuid, "host": host, "name": name}
    return {**found, "server": {"name": "web-1"}, "guest": guest}


def _domain(uuid: str = UUID, host: str = "compute-1", **changes: t.Any) -> dict[str, t.Any]:
    """Return the round of the loop that undefined a domain."""
    item = _item("leftover_domain", uuid, host, {"state": "shut off"}, "instance-0000002a")
    done = {"actions": ["undefine"], "xml_path": f"{BACKUP}/{uuid}.20261025T201351Z.xml"}
    return {"item": item, "changed": True, "quarantined": None, **done, **changes}


def _directory(
    uuid: str = UUID, host: str = "compute-1", kind: str = "instance", **changes: t.Any
) -> dict[str, t.Any]:
    """Return the round of the loop that quarantined a directory."""
    name = uuid if kind == "instance" else f"{uuid}_{kind}"
    guest = {"kind": kind, "path": f"{INSTANCES}/{name}", "size_bytes": 1}
    moved = f"{INSTANCES}/.quarantine/{name}.20261025T201351Z"
    done = {"actions": ["quarantine"], "quarantined": moved, "xml_path": None}
    item = _item("leftover_directory", uuid, host, guest, name)
    return {"item": item, "changed": True, **done, **changes}


def _tell(
    rounds: dict[str, list[dict[str, t.Any]]],
    kinds: t.Sequence[str] = BOTH,
    check: bool = False,
    detected: t.Any = None,
    **options: t.Any,
) -> dict[str, t.Any]:
    return guest_results(detected or _detected(), rounds, kinds, check, {**OPTIONS, **options})


def _list(told: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(result["outcome"], result["subject"]) for result in told["results"]]


def _require_parts(told: dict[str, t.Any], *parts: tuple[str, ...]) -> None:
    """Require that the line of each result has these parts."""
    for result, expected in zip(told["results"], parts, strict=True):
        assert all(part in result["reason"] for part in expected), result


def test_what_was_changed_is_listed_with_where_it_is() -> None:
    told = _tell({"one": [_domain(), _directory()], "two": [_directory(OTHER, "compute-2")]})

    assert _list(told) == [
        ("undefined", "compute-1"),
        ("quarantined", "compute-1"),
        ("quarantined", "compute-2"),
    ]
    _require_parts(
        told,
        (f"domain {UUID} (web-1)", BACKUP),
        (f"directory {UUID} (web-1)", f"{INSTANCES}/.quarantine"),
        (f"directory {OTHER} (web-1)", f"{INSTANCES}/.quarantine"),
    )
    # The inventory may have other names than Nova.
    arguments = {"uuid": UUID, "domain": "defined", "directory": "present"}
    undo = {"host": "one", "module": "hypervisor_guest", "become": True, "others": 1}
    assert told["undo"] == {**undo, "arguments": arguments}
    assert told["failures"] == {}


def test_undo_has_what_differs_from_the_defaults_and_the_kind_of_the_directory() -> None:
    resize = _directory(kind="resize", quarantined=f"/spare/{UUID}_resize.1")
    resize["item"]["guest"]["path"] = f"/instances/{UUID}_resize"

    undo = _tell({"one": [resize]}, become=False)["undo"]
    assert undo.pop("arguments") == {
        "uuid": UUID,
        "directory": "present",
        "quarantine_path": "/spare",
        "instances_path": "/instances",
        "directory_kind": "resize",
    }
    assert undo == {"host": "one", "module": "hypervisor_guest", "become": False, "others": 0}
    domain = _domain(xml_path=f"/backup/{UUID}.1.xml")
    virsh = "docker exec -i nova_libvirt virsh"
    assert _tell({"one": [domain]}, virsh=virsh, uri="test:///x")["undo"]["arguments"] == {
        "uuid": UUID,
        "domain": "defined",
        "virsh": virsh,
        "uri": "test:///x",
        "backup_path": "/backup",
    }


def test_check_mode_says_in_one_line_what_would_be_done() -> None:
    told = _tell({"one": [_domain(), _directory()], "two": [_directory(OTHER)]}, check=True)

    assert _list(told) == [("ready", "3 hypervisors")] and told["undo"] is None
    _require_parts(told, ("Without --check: 1 domain undefined, 2 directories",))


def test_failures_are_one_sentence_for_their_host_that_shows_the_rest_itself() -> None:
    failed = _directory(msg=FULL, actions=[], changed=False)
    told = _tell({"one": [_domain(), failed], "two": [_directory(OTHER, "compute-2")]})

    assert _list(told) == [("failed", "compute-1"), ("quarantined", "compute-2")]
    _require_parts(told, (f"directory {UUID} (web-1)", FULL), (OTHER,))
    assert told["undo"]["host"] == "two"
    ((host, failure),) = told["failures"].items()
    assert host == "one" and failure["message"].startswith("1 of 2 changes")
    assert f"compute-1. leftover_directory {UUID}: {FULL}" in failure["message"]
    assert [result["outcome"] for result in failure["results"]] == ["undefined"]
    assert failure["undo"]["arguments"] == {"uuid": UUID, "domain": "defined"}


def test_a_module_that_returned_nothing_has_failed() -> None:
    broken = {"item": _domain()["item"], "changed": False}
    told = _tell({"one": [broken]}, check=True)

    message = told["failures"]["one"]["message"]
    assert message.startswith("1 of 1 change ") and " would " in message
    assert "not return a result" in message
    assert _list(told) == [("failed", "compute-1")]


def test_many_failures_are_counted() -> None:
    message = _tell({"one": [_domain(msg="No.")] * 5})["failures"]["one"]["message"]

    assert message.startswith("5 of 5 changes ") and message.endswith("No. And 2 more.")
    assert message.count("No.") == 3


def test_a_leftover_that_is_gone_meanwhile_is_skipped() -> None:
    gone = _domain(actions=[], changed=False, xml_path=None)

    told = _tell({"one": [gone]})

    assert _list(told) == [("skipped", "compute-1")] and told["undo"] is None
    _require_parts(told, (f"domain {UUID} (web-1)",))


@pytest.mark.parametrize(
    ("kinds", "detected", "outcome", "parts"),
    [
        (BOTH, _detected(0, 0), "clean", ()),
        (BOTH, _detected(0, 0, undecided=2), "kept", ("2 undecided",)),
        ((), _detected(2, 1), "found", ("2 domains and 1 directory", "not chosen")),
        (["leftover_domain"], _detected(0, 1), "found", ("1 directory", "not chosen")),
        (BOTH, _detected(1, 0), "clean", ("not left over any more",)),
    ],
)
@pytest.mark.parametrize("rounds", [{}, {"one": [{"skipped": True, "item": {}}]}])
def test_a_run_with_nothing_to_change_says_so_in_one_line(
    kinds: t.Sequence[str], detected: t.Any, outcome: str, parts: tuple[str, ...], rounds: t.Any
) -> None:
    told = _tell(rounds, kinds, detected=detected)

    assert _list(told) == [(outcome, "3 hypervisors")]
    _require_parts(told, parts)
    assert told["undo"] is None and told["failures"] == {}
    counts = detected["summary"]["kinds"]
    assert told["kinds"] == [kind for kind in counts if counts[kind]]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("rounds", [{}, {"one": [_domain()]}])
def test_a_running_leftover_is_told_and_offered_to_no_command(rounds: t.Any, check: bool) -> None:
    detected = _detected(1, 0)
    detected["summary"]["kinds"]["running_leftover"] = 1
    running = _item("running_leftover", OTHER, "compute-2", {"state": "running"}, "instance-2")
    detected["findings"] = [running, _domain()["item"]]

    told = _tell(rounds, detected=detected, check=check)

    (line,) = [each for each in told["results"] if each["outcome"] == "running"]
    assert line["subject"] == "compute-2" and OTHER in line["reason"]
    assert "clean" not in {outcome for outcome, _host in _list(told)}
    assert told["kinds"] == ["leftover_domain"]


DOMAINS, DIRECTORIES = BOTH


@pytest.mark.parametrize(
    ("hosts", "orphaned", "chosen", "expected"),
    [
        ([], 0, [DOMAINS], (0, False)),
        (["here"], 1, [], (0, False)),
        (["here"], 1, [DOMAINS], (2, True)),
        (["here"], 1, BOTH, (5, True)),
        (["there"], 1, [DOMAINS], (2, False)),
        (["there", "here"], 2, [DIRECTORIES], (3, True)),
        # Not all findings are returned, and the others may be on any host.
        (["there"], 2, [DOMAINS], (2, True)),
        (["there"], 2, [], (0, False)),
        (["here"], 1, ["running_leftover"], (0, False)),
    ],
)
def test_a_host_without_a_chosen_leftover_is_left_alone(
    hosts: list[str], orphaned: int, chosen: t.Sequence[str], expected: tuple[int, bool]
) -> None:
    kinds = {DOMAINS: 2, DIRECTORIES: 3} if hosts else {}
    summary = {"kinds": kinds, "verdicts": {"orphaned": orphaned}}
    left = {"findings": [{"host": host} for host in hosts], "summary": summary}

    count, on_host = expected
    assert select_leftover_changes(left, chosen, "here") == {"count": count, "on_host": on_host}
