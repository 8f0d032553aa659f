"""Every figure adds up: totals, their parts and their fractions, and from format to format.

For random clouds, of which everything or a part is read.
"""

import collections
import csv
import io
import json
import re
import typing as t
from collections.abc import Iterable, Mapping

import hypothesis
import hypothesis.strategies as st
import pytest

from ......plugins.module_utils._core.findings.sightings import History
from ......plugins.module_utils._core.models.placement import Inventory, ProviderDetails
from ......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard
from ......plugins.plugin_utils._report import csv_file, html_page, markdown, prometheus
from ......plugins.plugin_utils._report.phrases import (
    COMMON_CLASSES,
    format_number,
    humanize_amount,
)
from ......plugins.plugin_utils._report.view import Report
from ...module_utils.judging import NO_MINIMUM_AGE, build_findings
from ...module_utils.world import World
from ...module_utils.worlds import worlds
from ..hostile import plan_of, remediation_of

Amounts = Mapping[str, int]


_LISTS = ("findings", "undecided", "protected")
_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VF")


@st.composite
def documents(draw: st.DrawFn) -> t.Any:
    """Draw the contents of a `findings.json`."""
    world = draw(worlds())
    changes = draw(st.sampled_from([_read_all, _read_a_host, _read_a_shard, _read_a_group]))(world)
    snapshot = world.snapshot(**changes)
    details = dict(snapshot.details)
    for uuid in draw(st.lists(st.sampled_from(sorted(world.providers)), unique=True)):
        stock = Inventory(draw(st.integers(0, 64)), 0, 1, 64, 1, 1.0)
        traits = details.get(uuid, ProviderDetails()).traits
        details[uuid] = ProviderDetails(dict.fromkeys(_CLASSES, stock), traits)
    whole = world.snapshot(**changes, details=details)
    first = build_findings(whole, NO_MINIMUM_AGE)
    ids = sorted(entry["id"] for key in _LISTS for entry in first[key])
    known = draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    history = History(dict.fromkeys(known, "2026-01-02T03:04:05Z"))
    # As it comes from the file.
    return json.loads(json.dumps(build_findings(whole, NO_MINIMUM_AGE, history=history)))


@st.composite
def reports(draw: st.DrawFn) -> Report:
    findings = draw(documents())
    remediation = None
    if draw(st.booleans()):
        outcome = draw(st.sampled_from(["removed", "skipped", "failed"]))
        remediation = t.cast("t.Any", remediation_of(findings, outcome, check_mode=True))
        remediation["check_mode"] = draw(st.booleans())
    return Report(findings, plan=t.cast("t.Any", plan_of(findings)), remediation=remediation)


def _read_all(world: World) -> dict[str, t.Any]:
    return {}


def _read_a_host(world: World) -> dict[str, t.Any]:
    root = next(iter(world.nodes))
    return {"scope": Scope(hosts=(root,)), "trees": (root,)}


def _read_a_group(world: World) -> dict[str, t.Any]:
    root = next(iter(world.nodes))
    groups = HostGroups(("uuid",), ("rack-7",), ("7",), hosts=(world.nodes[root].host,))
    return {"scope": Scope(groups=groups), "trees": (root,)}


def _read_a_shard(world: World) -> dict[str, t.Any]:
    roots = sorted(uuid for uuid, provider in world.providers.items() if provider.root == uuid)
    return {"scope": Scope(shard=Shard(1, 2)), "trees": tuple(roots[::2])}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("stranded", [True, False])
def test_generated_documents_have_fractions_and_parts(stranded: bool) -> None:
    """Without them the properties below would prove nothing."""
    hypothesis.find(
        documents(),
        lambda found: (
            bool(found["summary"]["stranded"]["share_of_claimed"]) is stranded
            and 0
            < _sum_class(found, "stranded")
            < sum(found["summary"]["stranded"]["resource_classes"].values())
        ),
        settings=hypothesis.settings(max_examples=5000, phases=[hypothesis.Phase.generate]),
    )


@hypothesis.given(documents())
def test_counts_are_those_of_the_entries(found: t.Any) -> None:
    summary = found["summary"]
    verdicts = collections.Counter(entry["verdict"] for key in _LISTS for entry in found[key])
    kinds = collections.Counter(entry["kind"] for entry in found["findings"])
    new = collections.Counter(entry["kind"] for entry in found["findings"] if entry["new"])

    assert collections.Counter(summary["verdicts"]) == verdicts
    assert collections.Counter(summary["kinds"]) == kinds
    assert collections.Counter(summary["new"]) == new
    assert sum(summary["kinds"].values()) == verdicts["orphaned"] + verdicts["drifted"]


@hypothesis.given(documents())
def test_stranded_amounts_are_the_sums_of_their_parts(found: t.Any) -> None:
    stranded = found["summary"]["stranded"]
    freed = [
        amounts
        for entry in found["findings"]
        if entry["change"]
        for amounts in entry["change"].get("frees", {}).values()
    ]
    whole = _sum(freed)

    assert stranded["resource_classes"] == whole
    assert _sum(stranded["providers"].values()) == whole
    assert _sum(stranded["projects"].values()) == whole
    assert _sum(_stranded_by_provider(found).values()) == whole


@hypothesis.given(documents())
def test_fractions_are_of_what_they_say(found: t.Any) -> None:
    stranded, scope = found["summary"]["stranded"], found["scope"]
    groups = scope["groups"]["hosts"]
    narrow = bool(scope["hosts"] or scope["consumers"] or scope["shard"] or groups)

    assert (found["summary"]["coverage"]["scope"] == "the whole cloud") is not narrow
    if narrow:
        assert stranded["allocated"] == stranded["share_of_claimed"] == {}
    assert set(stranded["allocated"]) == set(stranded["share_of_claimed"])
    for cls, fraction in stranded["share_of_claimed"].items():
        amount, allocated = stranded["resource_classes"][cls], stranded["allocated"][cls]
        assert fraction == round(amount / allocated, 4)


@hypothesis.given(documents())
def test_capacity_and_what_is_stranded_of_it_are_of_the_same_providers(found: t.Any) -> None:
    parts: dict[str, list[int]] = {cls: [] for cls in found["summary"]["capacity"]}
    for provider in found["capacity"]:
        for cls, stock in provider["resource_classes"].items():
            # Only where both the inventory and all allocations were read.
            if stock["capacity"] is not None and stock["used"] is not None:
                parts[cls].append(stock["stranded"])

    for cls, stock in found["summary"]["capacity"].items():
        assert stock["stranded"] == sum(parts[cls])
        assert stock["providers"] >= len(parts[cls])


@hypothesis.given(reports())
def test_formats_have_the_figures_of_the_file(report: Report) -> None:
    found: t.Any = report.findings
    kinds, verdicts = found["summary"]["kinds"], found["summary"]["verdicts"]
    freed = _get_common(found["summary"]["stranded"]["resource_classes"])
    new = sum(found["summary"]["new"].values())

    rows = list(csv.DictReader(io.StringIO(csv_file.render(report), newline="")))
    findings = [row for row in rows if row["verdict"] in ("orphaned", "drifted")]
    assert collections.Counter(row["kind"] for row in findings) == kinds
    assert collections.Counter(row["verdict"] for row in rows) == +collections.Counter(verdicts)
    assert _sum_columns(rows) == freed
    assert sum(row["new"] == "yes" for row in findings) == new

    text = markdown.render(report)
    counts = [verdicts["orphaned"], verdicts["drifted"], new]
    counts += [verdicts["undecided"], verdicts["protected"]]
    assert f"| {' | '.join(map(str, counts))} |" in text
    for key, title in zip(_LISTS, ("Findings", "Undecided", "Protected"), strict=True):
        assert (f"## {title}" in text) is bool(found[key])
    for cls, amount in found["summary"]["stranded"]["resource_classes"].items():
        assert re.search(rf"\| `{cls}` \| {re.escape(humanize_amount(cls, amount))} \|", text)

    samples = _read_samples(prometheus.render(report))
    assert +samples["findings"] == +collections.Counter(kinds)
    left = len(found["findings"]) - _count_remediated(report)
    assert sum(samples["findings_left"].values()) == left
    assert sum(samples["new_findings"].values()) == new
    assert samples["undecided"][""] == verdicts["undecided"]
    assert sum(samples["protected"].values()) == verdicts["protected"]
    assert sum(samples["stranded"].values()) == sum(
        found["summary"]["stranded"]["resource_classes"].values()
    )


@hypothesis.given(reports())
def test_page_has_the_figures_of_the_file(report: Report) -> None:
    found: t.Any = report.findings
    page = html_page.render(report)
    rows = json.loads(page.partition('id="index"')[2].partition(">")[2].partition("</script>")[0])

    cards = re.findall(r'<div class="card (\w+)">.*?<p class="figure">([^<]*)</p>', page)
    verdicts = found["summary"]["verdicts"]
    expected = {name: format_number(count) for name, count in verdicts.items()}
    if found["findings"]:
        expected["fresh"] = format_number(sum(found["summary"]["new"].values()))
    assert dict(cards) == expected
    kinds = re.findall(r'of-kind">(\w+)</span><span class="number">([^<]*)</span>', page)
    assert {name: int(count) for name, count in kinds} == found["summary"]["kinds"]
    assert collections.Counter(row["verdict"] for row in rows) == +collections.Counter(verdicts)
    freed = [sum(row["frees"][place] for row in rows) for place in range(3)]
    stranded = found["summary"]["stranded"]["resource_classes"]
    assert freed == [stranded.get(cls, 0) for cls in ("VCPU", "MEMORY_MB", "DISK_GB")]
    shown = dict(
        re.findall(r'<bdi title="(\w+)">[^<]*</bdi></dt>\s*<dd><span class="figure">([^<]*)', page)
    )
    if found["findings"]:
        assert shown == {cls: humanize_amount(cls, amount) for cls, amount in stranded.items()}
    # A percentage without its whole would be of anything.
    assert page.count('class="percent"') == len(found["summary"]["stranded"]["share_of_claimed"])
    for cls, amount in found["summary"]["stranded"]["allocated"].items():
        assert f"Of {humanize_amount(cls, amount)} allocated in " in page


@hypothesis.given(reports())
def test_rows_of_hosts_add_up_to_what_is_stranded(report: Report) -> None:
    by_provider = _stranded_by_provider(report.findings)
    names = set(by_provider)

    assert names == set(report.findings["summary"]["stranded"]["providers"])
    for name, amounts in by_provider.items():
        assert amounts == report.findings["summary"]["stranded"]["providers"][name]


def _stranded_by_provider(found: t.Any) -> dict[str, Amounts]:
    """Return what is stranded on each provider, of the list of providers."""
    by_provider: dict[str, list[Amounts]] = collections.defaultdict(list)
    for provider in found["capacity"]:
        stranded = {
            cls: stock["stranded"]
            for cls, stock in provider["resource_classes"].items()
            if stock["stranded"]
        }
        if stranded:
            by_provider[provider["name"]].append(stranded)
    return {name: _sum(parts) for name, parts in by_provider.items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: dict[str, int] = {}
    for amounts in parts:
        for cls, amount in amounts.items():
            total[cls] = total.get(cls, 0) + amount
    return {cls: amount for cls, amount in sorted(total.items()) if amount}


def _sum_class(found: t.Any, field: str) -> int:
    return sum(stock[field] for stock in found["summary"]["capacity"].values())


def _get_common(amounts: Amounts) -> Amounts:
    return {cls: amounts.get(cls, 0) for cls in COMMON_CLASSES}


def _sum_columns(rows: list[dict[str, str]]) -> Amounts:
    return {cls: sum(int(row[f"frees_{cls.lower()}"]) for row in rows) for cls in COMMON_CLASSES}


def _count_remediated(report: Report) -> int:
    if report.remediation is None or report.remediation["check_mode"]:
        return 0
    outcomes = report.remediation["outcomes"]
    return sum(outcome["outcome"] not in ("skipped", "failed") for outcome in outcomes)


def _read_samples(text: str) -> dict[str, collections.Counter[str]]:
    """Return the values of each metric, by their label `kind` or by all labels of their own."""
    samples: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in text.splitlines():
        if not line.startswith("#"):
            [(name, labels, value)] = re.findall(r"^placement_orphan_(\w+)\{(.*)\} (\S+)$", line)
            own = re.sub(r'^cloud="[^"]*",region="[^"]*",?', "", labels)
            kind = re.search(r'kind="(\w+)"', own)
            samples[name][kind[1] if kind else own] += int(float(value))
    return samples
