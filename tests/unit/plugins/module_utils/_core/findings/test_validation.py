"""Files that the modules write for each other, and other files."""

import json
import pathlib
import re
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.findings.entries import ENTRY_LISTS, validate_document
from .......plugins.module_utils._core.findings.sightings import parse_history
from .......plugins.module_utils._core.models.snapshot import encode
from .......plugins.module_utils._core.options.policy import Policy
from .......plugins.module_utils._core.plan.plan import Plan
from ...judging import build_findings
from ...world import World

WORLD = World()
HERE = WORLD.host("compute-1")
WORLD.delete(WORLD.server(HERE, HERE))
SNAPSHOT = WORLD.snapshot()
FINDINGS = build_findings(SNAPSHOT, Policy())
FILES: dict[str, t.Any] = {
    "findings": FINDINGS,
    "plan": Plan.from_findings(FINDINGS, set()).as_dict(),
    "remediation": {"format": 1, "check_mode": True, "tally": {}, "journal": None, "outcomes": []},
    "hosts": {"format": 1, "hosts": []},
    "guests": {
        "format": 1,
        "summary": {"coverage": {"domains": 1}},
        "findings": [],
        "protected": [],
        "undecided": [],
    },
}
OTHERS = [
    encode(SNAPSHOT),
    [],
    "text",
    None,
    {"format": 1, "summary": []},
    {**FINDINGS, "format": 2},
]


@pytest.mark.parametrize(
    "key",
    ["id", "kind", "verdict", "reason", "providers", "evidence", "change", "first_seen", "new"],
)
@pytest.mark.parametrize("name", ENTRY_LISTS)
def test_entry_that_lacks_a_key_is_named(name: str, key: str) -> None:
    (whole,) = FINDINGS["findings"]
    complete = {**FINDINGS, name: [whole]}
    assert validate_document("findings", complete, "file.json") is complete
    broken = {**FINDINGS, name: [whole, {k: value for k, value in whole.items() if k != key}]}

    with pytest.raises(InvalidInput, match=rf"\({name}\.2\.{key} is missing\)"):
        validate_document("findings", broken, "file.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"findings": {}}, "findings has another type"),
        ({"protected": [1]}, "protected.1 has another type"),
        ({"scope": {"hosts": [1]}}, "scope.hosts.1 has another type"),
        ({"cloud": {}}, "cloud.placement_endpoint is missing"),
        ({"known": {"deleted_server/x": None}}, "known.deleted_server/x has another type"),
    ],
)
def test_wrong_type_is_named(change: t.Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"({said})")):
        validate_document("findings", {**FINDINGS, **change}, "file.json")


@pytest.mark.parametrize("key", ["cloud", "summary", "known", "held", "capacity", "started_at"])
def test_missing_part_is_named(key: str) -> None:
    broken = {name: value for name, value in FINDINGS.items() if name != key}

    with pytest.raises(InvalidInput, match=rf"\({key} is missing"):
        validate_document("findings", broken, "file.json")


def test_findings_of_version_1_0_are_only_the_state_of_a_run() -> None:
    path = pathlib.Path(__file__).parents[5] / "fixtures" / "porting" / "findings-1.0.0.json"
    findings = json.loads(path.read_text(encoding="utf-8"))

    with pytest.raises(InvalidInput, match=r"\(summary\.coverage\.failed_checks is missing\)"):
        validate_document("findings", findings, "file.json")
    history = parse_history(findings, "file.json")
    assert len(history.first_seen) == sum(len(findings[key]) for key in ENTRY_LISTS)


def test_other_version_is_named() -> None:
    with pytest.raises(InvalidInput, match="format is 7"):
        validate_document("findings", {**FINDINGS, "format": 7}, "file.json")


@pytest.mark.parametrize("what", FILES)
def test_each_file_is_accepted_only_as_what_it_is(what: str) -> None:
    assert validate_document(what, FILES[what], "file.json") is FILES[what]
    for other in [*(told for name, told in FILES.items() if name != what), *OTHERS]:
        with pytest.raises(InvalidInput, match=r"^file\.json "):
            validate_document(what, other, "file.json")
