"""Which requests a run sends, and what it finds, over all situations of the minicloud at once.

`goldens.json` has what they were. A change of the code that is meant to change neither shows here
that it does not; `make goldens` writes the file anew after one that is.
"""

import collections
import difflib
import json
import os
import re
import typing as t
from pathlib import Path

import pytest
from minicloud_ctl import databases

from ...tools.benchmark.requests_made import count_endpoints
from ...tools.json_text import format_json
from .support import ROOT, Ansible, Minicloud, Run
from .test_scenarios import EVERY_KIND, EXPECTED
from .world import World

OWN_CLOUD = True

GOLDENS = Path(__file__).with_name("goldens.json")
PROBE = ROOT / "tools" / "benchmark" / "probe"
# What differs from run to run.
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
_UUID = re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b", re.IGNORECASE)
_SUFFIX = re.compile(r"-[0-9a-f]{8}\b")
_AGE = re.compile(r"(?<=unchanged for )\w+(?: \d+[hms])?")
_NUMBER = re.compile(r"\b\d+\b")

Golden = dict[str, t.Any]


@pytest.fixture(scope="module")
def names(minicloud: Minicloud, world: World) -> dict[str, str]:
    """The names of all uuids that the situations say something about."""
    minicloud.scenario(*EXPECTED)
    databases.set_back(world.paths, hours=2)
    found: dict[str, str] = {}
    for scenario in EXPECTED:
        for path, value in _walk(minicloud.truth(scenario)):
            if isinstance(value, str) and _UUID.fullmatch(value):
                found.setdefault(value, f"{scenario}{path}")
    return found


# How often a proof is renewed, and on how many hosts servers are looked for that show what these
# credentials may see, depends on the order of the random ids.
_BY_RANDOM_IDS = re.compile(r"^orphan_remediate|/servers/detail\?.*host=")


@pytest.fixture(scope="module")
def now(
    minicloud: Minicloud, names: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Golden:
    """What a detection, a check and a cleanup send and find now."""
    golden: Golden = {}
    for stage, name, flags in (
        ("detect", "detect_orphans", ()),
        ("check", "cleanup_orphans", ("--check",)),
        ("cleanup", "cleanup_orphans", ()),
        ("again", "cleanup_orphans", ()),
    ):
        folder = tmp_path_factory.mktemp(stage)
        probed = folder / "probed"
        probed.mkdir()
        environment = {
            **minicloud.environment,
            "PYTHONPATH": str(PROBE),
            "BENCHMARK_PROBE": str(probed),
        }
        run = Ansible(minicloud.root, folder, environment).playbook(
            name, *flags, variables=EVERY_KIND
        )
        assert run.status == 0, run.output
        golden[stage] = {
            "requests": _count_requests(probed, minicloud),
            "findings": _describe_findings(run, names),
        }
    return golden


def _count_requests(probed: Path, minicloud: Minicloud) -> list[str]:
    """Return a line for each request of each module, with how often it was sent, or with `n`."""
    services = {port: name for name, port in minicloud.ports.items()}
    counts: collections.Counter[str] = collections.Counter()
    for path in probed.iterdir():
        record = json.loads(path.read_text())
        for endpoint, number in count_endpoints(record["requests"], services):
            counts[f"{record['module']}: {_hide_identity(endpoint, {})}"] += number
    lines = []
    for endpoint, number in sorted(counts.items()):
        times = "n" if _BY_RANDOM_IDS.search(endpoint) else number
        lines.append(f"{times} x {endpoint}")
    return lines


def _describe_findings(run: Run, names: dict[str, str]) -> list[str]:
    """Return a line for each finding, without what differs from run to run."""
    document = run.read("findings.json")
    lines = []
    for key in ("findings", "protected", "undecided"):
        for entry in document[key]:
            asked = [answer["request"] for answer in entry["evidence"]]
            dropped = [each["name"] for each in entry["providers"] if each["dropped"]]
            told = [entry["kind"], entry["verdict"], entry["reason_id"], entry["reason"]]
            hidden = json.loads(_hide_identity(json.dumps([*told, dropped, asked]), names))
            # Not in the order of the random ids.
            lines.append(json.dumps([*hidden[:4], *map(sorted, hidden[4:])]))
    return sorted(lines)


def _hide_identity(text: str, names: dict[str, str]) -> str:
    text = _UUID.sub(lambda found: names.get(found[0], "UUID"), _TIME.sub("TIME", text))
    return _NUMBER.sub("N", _AGE.sub("AGE", _SUFFIX.sub("", text)))


def _walk(value: t.Any, path: str = "") -> t.Iterator[tuple[str, t.Any]]:
    yield path, value
    children: t.Iterable[tuple[t.Any, t.Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for name, child in children:
        yield from _walk(child, f"{path}.{name}")


@pytest.mark.long
@pytest.mark.parametrize("stage", ["detect", "check", "cleanup", "again"])
@pytest.mark.parametrize("part", ["requests", "findings"])
def test_a_run_sends_and_finds_what_it_did(now: Golden, stage: str, part: str) -> None:
    if "WRITE_GOLDENS" in os.environ:
        GOLDENS.write_text(format_json(now), encoding="utf-8")
    before = json.loads(GOLDENS.read_text(encoding="utf-8"))[stage][part]

    differences = [
        line for line in difflib.ndiff(before, now[stage][part]) if line.startswith(("+", "-"))
    ]
    assert not differences, "\n".join(differences)
