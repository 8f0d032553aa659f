"""What must prevent a planned change between its detection and its write."""

import json
import typing as t
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ...plugins.module_utils._core.changes.records import read_restorable
from ...plugins.module_utils._core.run.pack import pack_files
from ..unit.plugins.module_utils._core.plan.signed import sign
from .support import Ansible, Minicloud, Placement, has_detected, long

pytestmark = pytest.mark.usefixtures("healthy")

CLAIM = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
KINDS = ["unknown_consumer"]
FORGOTTEN = {"orphan_cleanup_remediate_kinds": KINDS}


@pytest.fixture
def orphans(minicloud: Minicloud, placement: Placement) -> Iterator[list[str]]:
    """Three consumers on compute-1 that Nova does not know."""
    placement.needs("1.38", "unknown consumers can be proven")
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
def detect(ansible: Ansible, tmp_path: Path) -> Callable[..., str]:
    """Detect, and return the path of the findings."""

    def run(**scope: t.Any) -> str:
        path = str(tmp_path / "findings.json")
        result = ansible.direct("orphan_detect", dest=path, **NO_AGE, **scope)
        assert result["summary"]["coverage"]["complete"], result
        return path

    return run


@pytest.fixture
def plan(ansible: Ansible, tmp_path: Path, orphans: list[str], detect: Callable[..., str]) -> Path:
    """Plan to remove the orphans, and nothing else."""
    ansible.direct(
        "orphan_plan",
        findings=detect(consumers=orphans),
        kinds=KINDS,
        dest=str(tmp_path / "plan.json"),
    )
    return tmp_path / "plan.json"


def test_remediation_plans_removes_reads_back_and_journals(
    ansible: Ansible,
    placement: Placement,
    tmp_path: Path,
    orphans: list[str],
    detect: Callable[..., str],
) -> None:
    path = str(tmp_path / "plan.json")
    before = placement.everything()
    planned = ansible.module(
        "orphan_plan", findings=detect(consumers=orphans), kinds=KINDS, dest=path
    )
    assert (planned["changed"], planned["changes"], planned["plan"]) == (False, 3, path)
    assert planned["actions"] == {"remove": 3} and planned["frees"] == {
        name: 3 * amount for name, amount in CLAIM.items()
    }
    # The journal has what a restore needs before anything is written.
    assert placement.everything() == before

    result = ansible.module("orphan_remediate", plan=path, output_dir=str(tmp_path), **NO_AGE)

    assert result["changed"] and result["tally"]["removed"] == 3
    assert [placement.held(consumer) for consumer in orphans] == [{}, {}, {}]
    journal = [json.loads(line) for line in Path(result["journal"]).read_text().splitlines()]
    assert [(record["event"], record["consumer"]) for record in journal] == [
        (event, consumer) for event in ("before", "after") for consumer in orphans
    ]
    records, _torn = read_restorable(planned["packed"])
    assert [_timeless(record) for record in journal[:3]] == [
        _timeless(dict(record)) for record in records
    ]

    again = ansible.module("orphan_remediate", plan=path, output_dir=str(tmp_path), **NO_AGE)

    assert (again["changed"], again["failed"], again["tally"]["skipped"], again["journal"]) == (
        False,
        False,
        3,
        None,
    )
    assert {outcome["reason_id"] for outcome in again["outcomes"]} == {"allocations_gone"}

    restored = ansible.module("orphan_restore", journal=planned["packed"], output_dir=str(tmp_path))

    assert restored["tally"] == {"restored": 3, "skipped": 0, "failed": 0}
    now = placement.everything()
    assert {consumer: now[consumer] for consumer in orphans} == {
        consumer: before[consumer] for consumer in orphans
    }


@pytest.mark.long
def test_check_mode_predicts_and_accepts_a_plan_as_data(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], plan: Path
) -> None:
    before = placement.everything()
    given = {"plan": json.loads(plan.read_text()), "output_dir": str(tmp_path), **NO_AGE}

    predicted = ansible.module("orphan_remediate", "--check", "--diff", **given)

    assert predicted["changed"] and predicted["tally"]["removed"] == 3
    assert all(consumer in predicted["printed_diff"] for consumer in orphans)
    assert placement.everything() == before
    assert not list(tmp_path.glob("journal-*"))

    made = ansible.module("orphan_remediate", **given)

    assert made["outcomes"] == predicted["outcomes"]
    assert [placement.held(consumer) for consumer in orphans] == [{}, {}, {}]


@pytest.mark.acceptance
def test_changed_consumer_is_skipped_and_named(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], plan: Path
) -> None:
    moved, *others = orphans
    more = {**CLAIM, "VCPU": 2}
    _claim(placement, moved, more, placement.allocation(moved)["consumer_generation"])

    result = ansible.direct("orphan_remediate", plan=str(plan), output_dir=str(tmp_path), **NO_AGE)

    skipped = next(outcome for outcome in result["outcomes"] if outcome["consumer"] == moved)
    assert (skipped["outcome"], skipped["reason_id"]) == ("skipped", "generation_changed")
    assert list(placement.held(moved).values()) == [more]
    assert [placement.held(consumer) for consumer in others] == [{}, {}]


def test_different_allocation_at_the_same_generation_is_skipped(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], plan: Path
) -> None:
    """A consumer that was emptied starts again, so its generation alone would not show it."""
    replaced, *others = orphans
    more = {**CLAIM, "VCPU": 3}
    _claim(placement, replaced, None, 1)
    _claim(placement, replaced, more, None)
    assert placement.allocation(replaced)["consumer_generation"] == 1

    result = ansible.direct("orphan_remediate", plan=str(plan), output_dir=str(tmp_path), **NO_AGE)

    assert result["tally"]["skipped"] == 1
    assert list(placement.held(replaced).values()) == [more]
    assert [placement.held(consumer) for consumer in others] == [{}, {}]


@pytest.mark.follows("too_many_changes")
@pytest.mark.parametrize("module", ["orphan_plan", "orphan_remediate"])
def test_too_many_changes_stop_the_run_before_the_first(
    ansible: Ansible,
    placement: Placement,
    tmp_path: Path,
    orphans: list[str],
    plan: Path,
    module: str,
) -> None:
    """This also limits named consumers, which may be any fraction of all."""
    before = placement.everything()
    given = {} if module == "orphan_plan" else {"output_dir": str(tmp_path), **NO_AGE}

    result = ansible.direct(module, plan=str(plan), max_changes=2, **given)

    assert result["failed"] and "max_changes is 2" in result["msg"]
    assert "3 or more" in result["msg"]
    assert placement.everything() == before
    assert ansible.direct("orphan_plan", plan=str(plan), max_changes=3)["changes"] == 3


@pytest.mark.long
def test_too_large_a_fraction_stops_the_run_before_the_first_change(
    ansible: Ansible,
    placement: Placement,
    tmp_path: Path,
    minicloud: Minicloud,
    detect: Callable[..., str],
) -> None:
    """Named consumers are not limited, because any fraction of them may be orphans."""
    minicloud.scenario("healthy")
    crowd = [str(uuid.uuid4()) for count in range(21)]
    for consumer in crowd:
        _claim(placement, consumer, CLAIM, None)
    before = placement.everything()
    limits = {"kinds": KINDS, "max_share": 0.01, "max_changes": 1000}

    whole = ansible.direct(
        "orphan_plan", findings=detect(), dest=str(tmp_path / "plan.json"), **limits
    )
    reviewed = ansible.direct(
        "orphan_remediate",
        plan=str(tmp_path / "plan.json"),
        output_dir=str(tmp_path),
        max_share=0.01,
        max_changes=1000,
        **NO_AGE,
    )
    narrow = ansible.direct("orphan_plan", findings=detect(consumers=crowd), **limits)

    for result in (whole, reviewed):
        assert result["failed"] and "max_share" in result["msg"]
        assert f"of {len(before)} consumers" in result["msg"]
    assert (narrow.get("failed", False), narrow["changes"]) == (False, 21)
    assert placement.everything() == before
    for consumer in crowd:
        _claim(placement, consumer, None, 1)


def test_run_writes_nothing_without_a_place_for_the_journal(
    ansible: Ansible, placement: Placement, plan: Path
) -> None:
    before = placement.everything()

    result = ansible.direct(
        "orphan_remediate", plan=str(plan), output_dir=f"{plan}/below-a-file", **NO_AGE
    )

    assert result["failed"]
    assert "cannot be written" in result["msg"]
    assert placement.everything() == before


@pytest.mark.parametrize(
    "how",
    [
        long("empty"),
        long("nothing"),
        long("missing"),
        "cut_short",
        long("of_another_cloud"),
        long("edited"),
    ],
)
def test_playbook_with_an_invalid_plan_does_not_detect_instead(
    ansible: Ansible, placement: Placement, orphans: list[str], plan: Path, how: str
) -> None:
    before = placement.everything()
    given: t.Any = {
        "empty": "",
        "nothing": {},
        "missing": str(plan.parent / "nonesuch.json"),
        "cut_short": str(plan),
    }.get(how)
    document = json.loads(plan.read_text())
    if how == "cut_short":
        plan.write_text(plan.read_text()[:-10])
    elif how == "of_another_cloud":
        # Whoever edits a plan can compute its digest again.
        given = sign({**document, "placement_endpoint": "http://elsewhere/placement"})
    elif how == "edited":
        given = {**document, "consumers": 10**9}

    run = ansible.playbook("cleanup_orphans", variables={**FORGOTTEN, "orphan_cleanup_plan": given})

    assert run.status != 0
    assert not has_detected(run)
    assert not (run.folder / "orphan-cleanup" / "findings.json").exists()
    assert placement.everything() == before


def test_playbook_applies_a_reviewed_plan_once(
    ansible: Ansible, placement: Placement, orphans: list[str], plan: Path
) -> None:
    late = str(uuid.uuid4())
    _claim(placement, late, CLAIM, None)
    variables = {**FORGOTTEN, "orphan_cleanup_plan": plan.name}

    run = ansible.playbook("cleanup_orphans", variables=variables)
    again = ansible.playbook("cleanup_orphans", variables=variables)

    assert (run.status, run.changed, again.status, again.changed) == (0, 1, 0, 0)
    assert [placement.held(consumer) for consumer in (*orphans, late)][:3] == [{}, {}, {}]
    assert placement.held(late), "it is no part of the plan"
    _claim(placement, late, None, 1)


def _forge_plan(plan: Path, orphan: str, held: dict[str, t.Any], server: str) -> dict[str, t.Any]:
    """Return a consistent plan that removes what a live server holds, in place of an orphan."""
    forged: dict[str, t.Any] = json.loads(plan.read_text().replace(orphan, server))
    owner = {key: held[key] for key in ("project_id", "user_id", "consumer_generation")}
    amounts = {provider: part["resources"] for provider, part in held["allocations"].items()}
    allocations = {provider: {"resources": part} for provider, part in amounts.items()}
    for change in forged["changes"]:
        if change["consumer"] == server:
            change["generation"] = held["consumer_generation"]
            change["before"] = {**owner, "allocations": allocations}
            change["after"] = {**owner, "allocations": {}}
            change["frees"] = amounts
    return sign(forged)


def test_forged_plan_from_another_job_fails_its_renewed_proof(
    ansible: Ansible, placement: Placement, minicloud: Minicloud, orphans: list[str], plan: Path
) -> None:
    """A consistent plan says that a live server is an orphan, in a pack whose digests all fit.

    It has the server's real allocation; the renewed proof refuses it.
    """
    server = minicloud.truth("healthy")["server"]
    held = placement.allocation(server)
    text = pack_files({"plan": _forge_plan(plan, orphans[0], held, server)})

    run = ansible.playbook("cleanup_orphans", variables={**FORGOTTEN, "orphan_cleanup_plan": text})

    skipped = run.outcome(server)
    assert (skipped["outcome"], skipped["reason_id"]) == ("skipped", "healthy_now"), run.output
    assert run.read("remediation.json")["tally"]["removed"] == 2
    assert placement.allocation(server) == held


def test_exclusions_and_minimum_ages_apply_to_a_plan_too(
    ansible: Ansible, placement: Placement, tmp_path: Path, orphans: list[str], plan: Path
) -> None:
    before = placement.everything()

    old = ansible.direct(
        "orphan_remediate",
        plan=str(plan),
        output_dir=str(tmp_path),
        min_age="0",
        unknown_min_age="24h",
    )
    spared = ansible.direct(
        "orphan_remediate",
        plan=str(plan),
        output_dir=str(tmp_path),
        exclude_providers=["compute-1"],
        **NO_AGE,
    )

    assert old["tally"]["skipped"] == spared["tally"]["skipped"] == 3
    assert placement.everything() == before


def test_saved_snapshot_is_judged_alike_without_the_cloud(
    ansible: Ansible, tmp_path: Path, orphans: list[str]
) -> None:
    there, here, snapshot = (
        tmp_path / "there.json",
        tmp_path / "here.json",
        tmp_path / "snapshot.json",
    )
    seen = ansible.module("orphan_detect", dest=str(there), snapshot_dest=str(snapshot), **NO_AGE)
    secret = ansible.environment["OS_PASSWORD"]
    ansible.environment = {
        name: value for name, value in ansible.environment.items() if not name.startswith("OS_")
    }

    judged = ansible.module("orphan_detect", dest=str(here), snapshot_src=str(snapshot), **NO_AGE)

    assert judged["findings"] == seen["findings"] != []
    assert here.read_bytes() == there.read_bytes()
    assert secret not in snapshot.read_text()
    assert snapshot.stat().st_mode & 0o777 == 0o600


def test_minimum_age_protects(ansible: Ansible, orphans: list[str]) -> None:
    result = ansible.module("orphan_detect", min_age="1h", unknown_min_age="0")

    assert {entry["kind"] for entry in result["protected"] if entry["consumer"] in orphans} == {
        "too_young"
    }


@pytest.mark.long
def test_exclusion_with_an_end_protects_until_then_and_is_reported_once(
    ansible: Ansible, tmp_path: Path, orphans: list[str]
) -> None:
    """The exclusions are given as YAML and as the JSON of the command line.

    In YAML a date without quotes is an object of its own type.
    """
    variables = tmp_path / "variables.yml"
    variables.write_text(f"""
orphan_cleanup_exclude_consumers:
  - {{name: {orphans[0]}, until: 2999-12-31, reason: under repair}}
  - {{name: {orphans[1]}, until: 2020-01-01}}
""")
    told = json.dumps([{"name": orphans[2], "until": "2999-12-31T18:00:00Z"}])
    run = ansible.playbook("cleanup_orphans", "--check", "-e", f"@{variables}")
    as_text = ansible.playbook("detect_orphans", "-e", f"orphan_cleanup_exclude_consumers='{told}'")

    assert run.status == 0, run.output
    assert run.entry(orphans[1])["verdict"] == "orphaned"
    assert run.told.count("no longer excluded") == 1
    assert "2999-12-31T18:00:00Z." in as_text.entry(orphans[2])["reason"]


@pytest.mark.long
def test_orphan_is_removed_at_the_second_sighting(
    ansible: Ansible, placement: Placement, orphans: list[str]
) -> None:
    """A reading in check mode counts; a reading elsewhere neither counts nor resets the count.

    An allocation that was written again starts again.
    """
    chosen = {
        "orphan_cleanup_remediate_kinds": KINDS,
        "orphan_cleanup_min_sightings": 2,
        "orphan_cleanup_state": "kept/state.json",
        "orphan_cleanup_select": f"[?contains(`{json.dumps(orphans)}`, consumer)]",
    }
    before = placement.everything()
    first = ansible.playbook("cleanup_orphans", "--check", variables=chosen)
    elsewhere = ansible.playbook(
        "cleanup_orphans", variables={**chosen, "orphan_cleanup_hosts": ["compute-2"]}
    )

    assert first.status == elsewhere.status == 0, first.output + elsewhere.output
    assert "1 of 2 times" in first.told and "in the plan" not in first.told
    assert placement.everything() == before

    held = placement.allocation(orphans[0])
    owner = {key: held[key] for key in ("project_id", "user_id", "consumer_generation")}
    shares = {
        provider: {"resources": share["resources"]}
        for provider, share in held["allocations"].items()
    }
    placement.put(orphans[0], {**owner, "allocations": shares})
    second = ansible.playbook("cleanup_orphans", variables=chosen)

    assert "1 of 2" in second.entry(orphans[0])["waiting"]
    assert {
        outcome["consumer"]: outcome["outcome"]
        for outcome in second.read("remediation.json")["outcomes"]
    } == dict.fromkeys(orphans[1:], "removed")

    third = ansible.playbook("cleanup_orphans", variables=chosen)
    assert third.outcome(orphans[0])["outcome"] == "removed"


def _claim(
    placement: Placement, consumer: str, resources: dict[str, int] | None, generation: int | None
) -> None:
    claims = {placement.providers()["compute-1"]: {"resources": resources}} if resources else {}
    placement.put(
        consumer,
        {
            "allocations": claims,
            "consumer_generation": generation,
            "project_id": "p",
            "user_id": "u",
        },
    )


def _timeless(record: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return a record without when and why it was made."""
    return {key: value for key, value in record.items() if key not in ("at", "event")}
