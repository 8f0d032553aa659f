"""A page that is safe whatever it contains, before any browser sees it.

tests/browser checks its look and function.
"""

import base64
import collections
import dataclasses as d
import hashlib
import json
import os
import re
import subprocess
import sys
import typing as t
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict

from ......plugins.module_utils._common.text import make_printable
from ......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS, KINDS
from ......plugins.module_utils._core.models.snapshot import HostGroups, Scope
from ......plugins.plugin_utils._report.html_page import render
from ......plugins.plugin_utils._report.proposed_commands import ENVIRONMENT
from ......plugins.plugin_utils._report.view import Report
from .....browser import reports
from ...module_utils.judging import NO_MINIMUM_AGE, build_findings
from ...module_utils.world import World

ROOT = Path(__file__).parents[5]
UNEXPLAINED = "Complaints of hosts that no finding explains"
DOCUMENTATION = "https://github.com/osops/ansible-placement/blob/main"

RENDER = """
import hashlib
from ansible_collections.osops.placement.plugins.plugin_utils._report.html_page import render
from ansible_collections.osops.placement.tests.browser import reports
print(hashlib.sha256(render(reports.remediated()).encode()).hexdigest())
"""


class Page(HTMLParser):
    """The elements of a page with their attributes, and all text.

    The text of elements without children is kept separately.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = collections.defaultdict(list)
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = f"{tag} {dict(attrs).get('type', '')}".strip()
            self.raw[self._inside].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside][-1] += data
        else:
            self.text += data

    @property
    def data(self) -> list[t.Any]:
        return [json.loads(text) for text in self.raw["script application/json"]]

    @property
    def policy(self) -> str:
        [policy] = [
            attrs["content"]
            for tag, attrs in self.elements
            if attrs.get("http-equiv") == "Content-Security-Policy"
        ]
        return t.cast("str", policy)


def _strings(value: t.Any) -> t.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from (key, *_strings(part))
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_allows_only_the_pages_own_style_and_script() -> None:
    page = Page(render(reports.remediated()))
    [style], [script] = page.raw["style"], page.raw["script"]
    assert page.policy == (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src "
        "data:; base-uri 'none'; form-action 'none'"
    )


def test_policy_comes_before_everything_it_governs() -> None:
    names = [
        attrs.get("http-equiv") or tag for tag, attrs in Page(render(reports.remediated())).elements
    ]
    assert names.index("Content-Security-Policy") < min(
        names.index(name) for name in ("style", "script", "link", "title")
    )


def test_page_fetches_nothing_and_has_no_style_or_script_attributes() -> None:
    elements = Page(render(reports.remediated())).elements

    assert elements
    for tag, attrs in elements:
        assert not {"src", "srcset", "style", "action", "formaction", "srcdoc"} & set(attrs), (
            tag,
            attrs,
        )
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        href = attrs.get("href") or "#"
        # Only the reader follows a link, and the page that it leads to does not learn where from.
        if tag == "a" and href.startswith(f"{DOCUMENTATION}/docs/kinds.md#"):
            assert attrs["rel"] == "noopener noreferrer"
        else:
            assert href.startswith(("#", "data:image/svg+xml,")), (tag, attrs)


@pytest.mark.parametrize("name", reports.HOSTILE)
def test_hostile_name_creates_and_closes_no_element(name: str) -> None:
    text = render(reports.named(reports.HOSTILE[name]))
    text.encode("utf-8")
    page, harmless = Page(text), Page(render(reports.named("x")))
    assert collections.Counter(tag for tag, attrs in page.elements) == collections.Counter(
        tag for tag, attrs in harmless.elements
    )
    assert [sorted(attrs) for tag, attrs in page.elements] == [
        sorted(attrs) for tag, attrs in harmless.elements
    ]
    assert page.policy == harmless.policy and page.raw["script"] == harmless.raw["script"]
    assert page.text.count(make_printable(reports.HOSTILE[name])) >= 20


@pytest.mark.parametrize("name", reports.HOSTILE)
def test_data_is_ascii_in_html_and_escaped_for_the_reader(name: str) -> None:
    page = Page(render(reports.named(reports.HOSTILE[name])))
    for text in page.raw["script application/json"]:
        assert not set("<>&\u2028\u2029") & set(text)
    found = list(_strings(page.data))
    assert all(text.isprintable() for text in found)
    assert sum(make_printable(reports.HOSTILE[name]) in text for text in found) >= 50


def test_text_of_a_page_is_escaped() -> None:
    page = Page(render(reports.named("a\u202eb\x00c\x1b[2Jd")))
    assert "a\\u202eb\\x00c\\x1b[2Jd" in page.text
    assert all(char.isprintable() or char == "\n" for char in page.text)


def test_text_that_only_looks_like_an_escape_is_unchanged() -> None:
    name = "C:\\new\\u0041"
    page = Page(render(reports.named(name)))
    assert name in page.text and name in {row["server"] for row in page.data[0]}


def test_same_report_gives_the_same_page() -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    digests = {
        subprocess.run(
            [sys.executable, "-c", RENDER],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(digests) == 1


def test_each_row_has_its_details() -> None:
    report = reports.many(200)
    page = Page(render(report))
    listed, details = page.data[0], [told for chunk in page.data[1:] for told in chunk]
    assert sorted(row["id"] for row in listed) == sorted(
        entry["id"] for entry in reports.entries_of(report)
    )
    assert [row["id"] for row in listed] == [dict(told["known"])["Finding"] for told in details]


def test_finding_shows_whether_it_may_be_changed() -> None:
    def states(report: Report) -> dict[str, str]:
        return {row["kind"]: row["state"] for row in Page(render(report)).data[0]}

    found = reports.planned().findings
    assert states(reports.remediated())["extra_host"] == "skipped"
    assert states(reports.remediated())["deleted_server"] == "removed"
    assert states(reports.planned())["deleted_server"] == "would be removed"
    assert states(reports.planned())["misplaced_allocation"] == "could be rewritten"
    assert states(reports.planned())["foreign_type"] == "not changed"
    assert states(Report(found))["misplaced_allocation"] == "would be rewritten"
    assert states(Report(found, ("extra_host",)))["deleted_server"] == "could be removed"
    unselected = {
        **found,
        "findings": [{**entry, "selected": False} for entry in found["findings"]],
    }
    assert states(Report(unselected))["deleted_server"] == "could be removed"


def test_check_mode_report_does_not_claim_any_write() -> None:
    report = reports.remediated()
    proven = Report(
        report.findings, report.kinds, report.plan, {**report.remediation, "check_mode": True}
    )
    page = Page(render(proven))
    assert "Check mode" in page.text and "Changes were made" not in page.text
    assert {row["state"] for row in page.data[0]} >= {
        "would be removed",
        "would be reduced",
        "skipped",
    }


def test_narrow_reading_shows_no_fractions() -> None:
    findings: t.Any = reports.planned().findings
    findings["summary"]["stranded"]["share_of_claimed"] = findings["summary"]["capacity"] = {}
    for provider in findings["capacity"]:
        for stock in provider["resource_classes"].values():
            stock["used"] = None

    page = Page(render(Report(findings)))

    assert "7 GiB" in page.text and "%" not in page.text


def test_capacity_says_which_providers_it_counts() -> None:
    """In a large cloud the inventories of a few providers are read."""
    report = reports.planned()
    page = Page(render(report))
    assert "Of 30 allocated" in page.text
    read = "12 on 11 providers whose inventory was read: < 0.1 % of the capacity there (40 040)."
    assert read in page.text

    report.findings["summary"]["capacity"] = {}
    assert "Of 30 allocated" in Page(render(report)).text
    assert "the capacity there" not in Page(render(report)).text


def test_page_of_an_older_file_compares_with_no_capacity() -> None:
    """Its stranded amounts are not only of the providers whose inventory was read."""
    report = reports.planned()
    summary: t.Any = report.findings["summary"]
    del summary["stranded"]["allocated"], summary["coverage"]["scope"]
    for stock in summary["capacity"].values():
        del stock["stranded"], stock["providers"]

    page = Page(render(report))

    assert "Of all allocations" in page.text
    assert "the whole cloud." in page.text
    assert "the capacity there" not in page.text


def test_page_explains_each_kind_and_links_its_heading_in_this_repository() -> None:
    galaxy: t.Any = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "kinds.md").read_text(), re.M)
    report = reports.planned()
    report.findings["summary"]["kinds"] = dict.fromkeys((kind.name for kind in KINDS), 1)

    page = Page(render(report))

    linked = [attrs["href"] for tag, attrs in page.elements if tag == "a" and "rel" in attrs]
    address = f"{galaxy['repository']}/blob/main/docs/kinds.md"
    assert linked == [f"{address}#{kind.name}" for kind in KINDS]
    assert {kind.name for kind in KINDS} <= set(headings)
    assert f"{KINDS[0].meaning}. Changed" in page.text
    commands = page.text.count("of this kind only")
    assert commands == len(CHANGEABLE_KINDS) < len(KINDS)


def test_kind_of_another_version_is_shown_without_help() -> None:
    report = reports.planned()
    report.findings["summary"]["kinds"] = {"lost_server": 2}

    page = Page(render(report))

    assert {"data-kind": "lost_server"} in [attrs for tag, attrs in page.elements]
    assert not [attrs for tag, attrs in page.elements if "rel" in attrs and tag == "a"]


@pytest.mark.parametrize(
    ("scope", "lines"),
    [
        (Scope(), []),
        (Scope(hosts=("a", "b"), mode="triage"), ["hosts: a, b", "mode: triage"]),
        (
            Scope(
                groups=HostGroups(
                    ("uuid-7", "uuid-8"),
                    ("rack-7", "rack-8"),
                    ("7", "8"),
                    availability_zones=("az1",),
                    cells=("cell1",),
                    hosts=("a",),
                )
            ),
            ["aggregates: rack-7, rack-8", "availability zones: az1", "cells: cell1"],
        ),
    ],
    ids=["everything", "hosts", "groups"],
)
def test_page_says_to_what_the_reading_was_narrowed(scope: Scope, lines: list[str]) -> None:
    findings: t.Any = build_findings(World().snapshot(scope=scope), NO_MINIMUM_AGE)

    page = Page(render(Report(json.loads(json.dumps(findings)))))

    assert re.findall(r"^Only (.*)$", page.text, re.M) == lines


def test_page_of_a_version_without_groups_is_about_everything() -> None:
    findings: t.Any = json.loads(json.dumps(build_findings(World().snapshot(), NO_MINIMUM_AGE)))
    del findings["scope"]["groups"]

    assert "the whole cloud." in Page(render(Report(findings))).text


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the command line of Ansible to that of a run with an inventory and a limit."""
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    given = ("orphan_cleanup_hosts=compute-2",)
    options = {"args": ("osops.placement.cleanup_orphans",), "inventory": ("/inv",)}
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(extra_vars=given, **options))


@pytest.mark.usefixtures("start")
def test_page_offers_the_commands_that_are_possible() -> None:
    plan = "-e orphan_cleanup_plan=/srv/orphan-cleanup/plan.json"
    command = "ansible-playbook -i /inv osops.placement"
    restore = f"{command}.restore_allocations -e orphan_cleanup_journal="
    kind = """-e '{"orphan_cleanup_remediate_kinds": ["deleted_server"]}'"""

    planned = Page(render(d.replace(reports.planned(), plan_path="/srv/orphan-cleanup/plan.json")))
    assert f"{command}.cleanup_orphans {plan}" in planned.text
    # The scope of the run is repeated, except where the plan has it.
    scope = "-e orphan_cleanup_hosts=compute-2"
    assert f"{command}.cleanup_orphans {scope} {kind} --check" in planned.text
    assert f"{command}.cleanup_orphans {scope} --check" in planned.text
    assert restore not in planned.text

    done = d.replace(reports.remediated(), plan_path="/srv/orphan-cleanup/plan.json")
    page = Page(render(done))
    assert f"{restore}{done.journal}" in page.text
    # The plan has been carried out.
    assert plan not in page.text

    unsound = d.replace(reports.closed(), plan=done.plan, plan_path="/srv/orphan-cleanup/plan.json")
    assert plan not in Page(render(unsound)).text


def test_page_has_words_where_the_command_of_the_run_is_not_known() -> None:
    page = Page(render(reports.planned()))

    assert "ansible-playbook" not in page.text
    assert "run osops.placement.cleanup_orphans with --check" in page.text


@pytest.mark.usefixtures("start")
def test_row_has_the_command_for_its_host_and_the_names_of_its_uuids() -> None:
    page = Page(render(reports.remediated()))
    details = [told for chunk in page.data[1:] for told in chunk]
    [found] = [told for told in details if told["known"][0][1].startswith("evacuated_source/")]

    hosts = """'{"orphan_cleanup_hosts": ["dead-evacuated-source"]}'"""
    assert found["command"] == (
        f"ansible-playbook -i /inv osops.placement.cleanup_orphans -e {hosts} --check"
    )
    assert "dead-evacuated-source" in found["names"].values()
    assert all(uuid in json.dumps(found) for uuid in found["names"])


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "1 more candidate was not looked up"), (2, "2 more candidates were not looked up")],
)
def test_candidates_that_were_left_out_are_counted(count: int, sentence: str) -> None:
    report = reports.closed()
    report.findings["summary"]["coverage"]["left_out"] = count

    assert sentence in Page(render(report)).text


def test_long_list_without_a_script_is_cut_and_says_so() -> None:
    report = reports.many(600)
    page = Page(render(report))
    assert len(re.findall(r"\((?:orphaned|drifted|undecided|protected)\)", page.text)) == 500
    left = len(reports.entries_of(report)) - 500
    assert f"and {left} more in findings.json" in page.text


def test_complaints_without_a_finding_are_shown() -> None:
    assert UNEXPLAINED in Page(render(reports.remediated())).text
    assert UNEXPLAINED not in Page(render(reports.planned())).text


@pytest.mark.parametrize("key", ["findings", "protected", "undecided"])
def test_finding_without_allocations_or_service_has_a_row(key: str) -> None:
    report = reports.planned()
    bare = {
        **reports.entries_of(report)[0],
        "id": "missing_allocation/bare",
        "providers": [],
        "service": None,
        "change": None,
    }
    told = {**report.findings, key: [*report.findings[key], bare]}

    assert "missing_allocation/bare" in render(Report(told))
