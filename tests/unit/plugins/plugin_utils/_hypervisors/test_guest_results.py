"""The last lines about hypervisors."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.filter.roles import guest_results
from ......plugins.plugin_utils._hypervisors.guest_results import select_leftover_changes

BOTH = ("leftover_domain", "leftover_directory")
UUID, OTHER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11", "0b6c0f3e-9a55-4c59-9d55-4f0a7a4b9f22"
INSTANCES, BACKUP = "/var/lib/nova/instances", "/var/lib/osops-placement"
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
    return {
        "id": f"{kind}/{host}/{uuid}",
        "kind": kind,
        "uuid": uuid,
        "host": host,
        "name": name,
        "server": {"name": "web-1"},
        "guest": guest,
    }


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


def _list(told: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    return [(result["outcome"], result["subject"], result["reason"]) for result in told["results"]]


def test_what_was_changed_is_listed_with_where_it_is() -> None:
    told = _tell({"one": [_domain(), _directory()], "two": [_directory(OTHER, "compute-2")]})

    assert _list(told) == [
        ("undefined", "compute-1", f"domain {UUID} (web-1), its XML is in {BACKUP}"),
        ("quarantined", "compute-1", f"directory {UUID} (web-1) to {INSTANCES}/.quarantine"),
        ("quarantined", "compute-2", f"directory {OTHER} (web-1) to {INSTANCES}/.quarantine"),
    ]
    # The inventory may have other names than Nova.
    assert told["undo"] == {
        "host": "one",
        "module": "hypervisor_guest",
        "arguments": {"uuid": UUID, "domain": "defined", "directory": "present"},
        "become": True,
        "others": 1,
    }
    assert told["failures"] == {}


def test_undo_has_what_differs_from_the_defaults_and_the_kind_of_the_directory() -> None:
    resize = _directory(kind="resize", quarantined=f"/spare/{UUID}_resize.1")
    resize["item"]["guest"]["path"] = f"/instances/{UUID}_resize"

    assert _tell({"one": [resize]}, become=False)["undo"] == {
        "host": "one",
        "module": "hypervisor_guest",
        "arguments": {
            "uuid": UUID,
            "directory": "present",
            "quarantine_path": "/spare",
            "instances_path": "/instances",
            "directory_kind": "resize",
        },
        "become": False,
        "others": 0,
    }
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

    assert _list(told) == [
        (
            "ready",
            "3 hypervisors",
            "nothing was changed. Without --check: 1 domain undefined, 2 directories quarantined.",
        )
    ]
    assert told["undo"] is None


def test_failures_are_one_sentence_for_their_host_that_shows_the_rest_itself() -> None:
    failed = _directory(msg="The disk is full.", actions=[], changed=False)
    told = _tell({"one": [_domain(), failed], "two": [_directory(OTHER, "compute-2")]})

    assert _list(told) == [
        ("failed", "compute-1", f"directory {UUID} (web-1): The disk is full."),
        ("quarantined", "compute-2", f"directory {OTHER} (web-1) to {INSTANCES}/.quarantine"),
    ]
    assert told["undo"]["host"] == "two"
    (host,) = told["failures"]
    failure = told["failures"][host]
    assert (host, failure["message"]) == (
        "one",
        f"1 of 2 changes failed on compute-1. leftover_directory {UUID}: The disk is full.",
    )
    assert [result["outcome"] for result in failure["results"]] == ["undefined"]
    assert failure["undo"]["arguments"] == {"uuid": UUID, "domain": "defined"}


def test_a_module_that_returned_nothing_has_failed() -> None:
    broken = {"item": _domain()["item"], "changed": False}
    told = _tell({"one": [broken]}, check=True)

    assert "the module did not return a result" in told["failures"]["one"]["message"]
    assert "1 of 1 change would fail on compute-1." in told["failures"]["one"]["message"]
    assert [outcome for outcome, _host, _reason in _list(told)] == ["failed"]


def test_many_failures_are_counted() -> None:
    message = _tell({"one": [_domain(msg="No.")] * 5})["failures"]["one"]["message"]

    assert message.startswith("5 of 5 changes failed") and message.endswith("No. And 2 more.")
    assert message.count("No.") == 3


def test_a_leftover_that_is_gone_meanwhile_is_skipped() -> None:
    gone = _domain(actions=[], changed=False, xml_path=None)

    told = _tell({"one": [gone]})

    assert _list(told) == [
        ("skipped", "compute-1", f"domain {UUID} (web-1): it is not there any more")
    ]
    assert told["undo"] is None


@pytest.mark.parametrize(
    ("kinds", "detected", "expected"),
    [
        (BOTH, _detected(0, 0), ("clean", "no leftovers.")),
        (BOTH, _detected(0, 0, undecided=2), ("kept", "nothing to change; 2 undecided.")),
        (
            (),
            _detected(2, 1),
            (
                "found",
                "2 domains and 1 directory left over. Nothing was changed, because these kinds "
                "are not chosen.",
            ),
        ),
        (
            ["leftover_domain"],
            _detected(0, 1),
            (
                "found",
                "1 directory left over. Nothing was changed, because these kinds are not chosen.",
            ),
        ),
        (
            BOTH,
            _detected(1, 0),
            (
                "clean",
                "what was found first is not left over any more, and nothing was changed.",
            ),
        ),
    ],
)
@pytest.mark.parametrize("rounds", [{}, {"one": [{"skipped": True, "item": {}}]}])
def test_a_run_with_nothing_to_change_says_so_in_one_line(
    kinds: t.Sequence[str], detected: t.Any, expected: tuple[str, str], rounds: t.Any
) -> None:
    told = _tell(rounds, kinds, detected=detected)

    ((outcome, subject, reason),) = _list(told)
    assert (outcome, reason) == expected and subject == "3 hypervisors"
    assert told["undo"] is None and told["failures"] == {}
    assert set(told["kinds"]) == {
        kind for kind, count in detected["summary"]["kinds"].items() if count
    }


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("rounds", [{}, {"one": [_domain()]}])
def test_a_running_leftover_is_told_and_offered_to_no_command(rounds: t.Any, check: bool) -> None:
    detected = _detected(1, 0)
    detected["summary"]["kinds"]["running_leftover"] = 1
    running = _item("running_leftover", OTHER, "compute-2", {"state": "running"}, "instance-2")
    detected["findings"] = [running, _domain()["item"]]

    told = _tell(rounds, detected=detected, check=check)

    (line,) = [each for each in _list(told) if each[0] == "running"]
    assert line[1] == "compute-2" and OTHER in line[2]
    assert "clean" not in {outcome for outcome, _host, _reason in _list(told)}
    assert told["kinds"] == ["leftover_domain"]


FOUND_KINDS = {"leftover_domain": 2, "leftover_directory": 3}


def _left(hosts: t.Sequence[str], kinds: dict[str, int], orphaned: int) -> dict[str, t.Any]:
    return {
        "findings": [{"host": host} for host in hosts],
        "summary": {"kinds": kinds, "verdicts": {"orphaned": orphaned}},
    }


@pytest.mark.parametrize(
    ("hosts", "kinds", "orphaned", "chosen", "expected"),
    [
        ([], {}, 0, ["leftover_domain"], (0, False)),
        (["here"], FOUND_KINDS, 1, [], (0, False)),
        (["here"], FOUND_KINDS, 1, ["leftover_domain"], (2, True)),
        (["here"], FOUND_KINDS, 1, ["leftover_domain", "leftover_directory"], (5, True)),
        (["there"], FOUND_KINDS, 1, ["leftover_domain"], (2, False)),
        (["there", "here"], FOUND_KINDS, 2, ["leftover_directory"], (3, True)),
        # Not all findings are returned, and the others may be on any host.
        (["there"], FOUND_KINDS, 2, ["leftover_domain"], (2, True)),
        (["there"], FOUND_KINDS, 2, [], (0, False)),
        (["here"], {"leftover_domain": 2}, 1, ["leftover_directory"], (0, False)),
    ],
)
def test_a_host_without_a_chosen_leftover_is_left_alone(
    hosts: list[str],
    kinds: dict[str, int],
    orphaned: int,
    chosen: list[str],
    expected: tuple[int, bool],
) -> None:
    left = _left(hosts, kinds, orphaned)

    count, on_host = expected
    assert select_leftover_changes(left, chosen, "here") == {"count": count, "on_host": on_host}
