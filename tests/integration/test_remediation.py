# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must keep a planned change from being made, between its detection and its write."""

from __future__ import annotations

import json
import typing as t
import uuid

import pytest

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ansible_collections.osops.placement.tests.integration.support import Ansible, Minicloud, Placement

CLAIM = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
NO_AGE = {"min_age": "0", "forgotten_min_age": "0"}
FORGOTTEN = {**NO_AGE, "kinds": ["forgotten_consumer"]}


@pytest.fixture
def orphans(minicloud: Minicloud, placement: Placement) -> Iterator[list[str]]:
    """Three consumers on compute-1 that Nova knows nothing of."""
    minicloud.scenario("healthy")
    consumers = sorted(str(uuid.uuid4()) for count in range(3))
    for consumer in consumers:
        _claim(placement, consumer, CLAIM, None)
    yield consumers
    for consumer in consumers:
        generation = placement.allocation(consumer).get("consumer_generation")
        if generation is not None:
            _claim(placement, consumer, None, generation)


@pytest.fixture
def detect(ansible: Ansible, tmp_path: Path) -> Callable[[], str]:
    """Detect, and return the path of what was found."""

    def run() -> str:
        path = str(tmp_path / "findings.json")
        result = ansible.module("orphan_detect", dest=path, **NO_AGE)
        assert result["summary"]["coverage"]["complete"], result
        return path

    return run


def test_removes_reads_back_and_journals(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], detect: Callable[[], str]
) -> None:
    result = ansible.module("orphan_remediate", findings=detect(), output_dir=str(tmp_path), **FORGOTTEN)

    assert result["changed"]
    assert result["tally"]["removed"] >= 3
    assert [placement.held(consumer) for consumer in orphans] == [{}, {}, {}]
    with open(result["journal"], encoding="utf-8") as journal:
        records = [json.loads(line) for line in journal]
    assert {record["consumer"] for record in records} >= set(orphans)


def test_a_consumer_that_moved_is_skipped_and_named(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], detect: Callable[[], str]
) -> None:
    findings = detect()
    moved, *others = orphans
    more = {**CLAIM, "VCPU": 2}
    _claim(placement, moved, more, placement.allocation(moved)["consumer_generation"])

    result = ansible.module("orphan_remediate", findings=findings, output_dir=str(tmp_path), **FORGOTTEN)

    skipped = next(outcome for outcome in result["outcomes"] if outcome["consumer"] == moved)
    assert skipped["outcome"] == "skipped"
    assert "generation 1 then, 2 now" in skipped["reason"]
    assert list(placement.held(moved).values()) == [more]
    assert [placement.held(consumer) for consumer in others] == [{}, {}]


def test_too_many_changes_stop_before_the_first(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], detect: Callable[[], str]
) -> None:
    before = placement.everything()

    result = ansible.module("orphan_remediate", findings=detect(), output_dir=str(tmp_path), max_changes=2, **FORGOTTEN)

    assert result["failed"]
    assert "max_changes is 2" in result["msg"]
    assert placement.everything() == before


def test_without_a_place_for_the_journal_nothing_is_written(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], detect: Callable[[], str]
) -> None:
    before = placement.everything()
    findings = detect()

    result = ansible.module("orphan_remediate", findings=findings, output_dir=f"{findings}/below-a-file", **FORGOTTEN)

    assert result["failed"]
    assert "cannot be written" in result["msg"]
    assert placement.everything() == before


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (None, "cannot be read"),
        ("", "is not JSON"),
        ('{"format": 1', "is not JSON"),
        ("{}", "not as orphan_detect writes them"),
        ("[]", "not as orphan_detect writes them"),
        ('{"format": 99}', "format 99"),
    ],
)
def test_findings_that_are_none_are_refused(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, tmp_path: Path, contents: str | None, said: str
) -> None:
    before = placement.everything()
    path = tmp_path / "findings.json"
    if contents is not None:
        path.write_text(contents)

    result = ansible.module("orphan_remediate", findings=str(path), output_dir=str(tmp_path), **FORGOTTEN)

    assert result["failed"]
    assert said in result["msg"]
    assert placement.everything() == before


def test_findings_of_another_cloud_are_refused(ansible: Ansible, tmp_path: Path, orphans: list[str], detect: Callable[[], str]) -> None:
    path = detect()
    with open(path, encoding="utf-8") as stream:
        findings = json.load(stream)
    findings["cloud"]["placement_endpoint"] = "http://elsewhere/placement"
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(findings, stream)

    result = ansible.module("orphan_remediate", findings=path, output_dir=str(tmp_path), **FORGOTTEN)

    assert result["failed"]
    assert "http://elsewhere/placement" in result["msg"]


def test_a_forged_finding_is_not_believed(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, tmp_path: Path, orphans: list[str], detect: Callable[[], str]
) -> None:
    """Findings say that a live server is an orphan; the renewed proof says no."""
    path = detect()
    server = minicloud.truth("healthy")["server"]
    with open(path, encoding="utf-8") as stream:
        forged = json.loads(stream.read().replace(orphans[0], server))
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(forged, stream)
    before = placement.held(server)

    result = ansible.module("orphan_remediate", findings=path, output_dir=str(tmp_path), **FORGOTTEN)

    assert next(outcome for outcome in result["outcomes"] if outcome["consumer"] == server)["outcome"] == "skipped"
    assert placement.held(server) == before != {}


def test_a_snapshot_is_judged_alike_without_the_cloud(ansible: Ansible, tmp_path: Path, orphans: list[str]) -> None:
    there, here, snapshot = tmp_path / "there.json", tmp_path / "here.json", tmp_path / "snapshot.json"
    seen = ansible.module("orphan_detect", dest=str(there), snapshot_dest=str(snapshot), **NO_AGE)
    secret = ansible.environment["OS_PASSWORD"]
    ansible.environment = {name: value for name, value in ansible.environment.items() if not name.startswith("OS_")}

    judged = ansible.module("orphan_detect", dest=str(here), snapshot_src=str(snapshot), **NO_AGE)

    assert judged["findings"] == seen["findings"] != []
    assert here.read_bytes() == there.read_bytes()
    assert secret not in snapshot.read_text()
    assert snapshot.stat().st_mode & 0o777 == 0o600


def test_age_protects(ansible: Ansible, orphans: list[str]) -> None:
    result = ansible.module("orphan_detect", min_age="1h", forgotten_min_age="0")

    assert {entry["kind"] for entry in result["protected"] if entry["consumer"] in orphans} == {"too_young"}


def test_exclusions_protect(ansible: Ansible, orphans: list[str]) -> None:
    by_consumer = ansible.module("orphan_detect", exclude_consumers=orphans[:1], **NO_AGE)
    by_provider = ansible.module("orphan_detect", exclude_providers=["compute-1"], **NO_AGE)

    assert [entry["consumer"] for entry in by_consumer["protected"] if entry["kind"] == "excluded"] == orphans[:1]
    assert {entry["consumer"] for entry in by_provider["protected"] if entry["kind"] == "excluded"} >= set(orphans)


def _claim(placement: Placement, consumer: str, resources: dict[str, int] | None, generation: int | None) -> None:
    claims = {placement.providers()["compute-1"]: {"resources": resources}} if resources else {}
    placement.put(consumer, {"allocations": claims, "consumer_generation": generation, "project_id": "p", "user_id": "u"})
