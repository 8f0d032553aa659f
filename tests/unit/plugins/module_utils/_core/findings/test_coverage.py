"""The sentence about hosts that were not judged, in every report."""

import typing as t

import pytest

from .......plugins.module_utils._core.findings.coverage import (
    describe_amounts,
    describe_unjudged_hosts,
    list_unjudged_hosts,
)
from .......plugins.module_utils._core.findings.summary import RunResult, summarize_runs
from .......plugins.plugin_utils._report import html_page, markdown, prometheus
from .......plugins.plugin_utils._report.notification import NOTICE_FORMATTERS, Notice
from .......plugins.plugin_utils._report.view import Report
from .......plugins.plugin_utils._terminal.clouds import format_summary
from .......plugins.plugin_utils._terminal.terminal import format_findings
from ....plugin_utils.hostile import hostile, told

FOUR = ["compute-4", "compute-2", "compute-3", "compute-1"]
SENTENCE = (
    "4 hosts were not judged, because their cell does not answer: compute-1, compute-2, compute-3 "
    "and 1 more."
)


def _findings(**coverage: t.Any) -> dict[str, t.Any]:
    findings = t.cast("dict[str, t.Any]", told(hostile("x")))
    findings["summary"]["coverage"] |= {"complete": True, "failed_checks": [], **coverage}
    return findings


@pytest.mark.parametrize(
    ("coverage", "sentence"),
    [
        ({}, ""),
        ({"partial": False, "unjudged_hosts": []}, ""),
        ({"unjudged_hosts": None}, ""),
        (
            {"partial": True, "unjudged_hosts": []},
            "Part of the cloud was not judged, because a cell does not answer.",
        ),
        ({"unjudged_hosts": ["a"]}, "1 host was not judged, because its cell does not answer: a."),
        ({"unjudged_hosts": FOUR}, SENTENCE),
    ],
)
def test_coverage_sentence_counts_and_names_hosts(
    coverage: dict[str, t.Any], sentence: str
) -> None:
    assert describe_unjudged_hosts(coverage) == sentence


def test_files_of_an_older_version_name_no_hosts() -> None:
    assert list_unjudged_hosts({}) == []


@pytest.mark.parametrize("name", ["html", "markdown", "terminal", "text"])
def test_every_report_lists_hosts_not_judged(name: str) -> None:
    def shown(report: Report) -> str:
        if name == "terminal":
            return " ".join(format_findings(report.findings, "findings.json", None, 1000))
        if name in NOTICE_FORMATTERS:
            return str(NOTICE_FORMATTERS[name](Notice(report, None, "", {})))
        return {"html": html_page, "markdown": markdown}[name].render(report)

    assert all(host in shown(Report(_findings(unjudged_hosts=FOUR))) for host in sorted(FOUR)[:3])
    assert "not judged" not in shown(Report(_findings()))


def test_hosts_not_judged_are_no_failure_by_themselves() -> None:
    notice = Notice(Report(_findings(unjudged_hosts=FOUR)), None, "", {})

    assert notice.troubles == []
    assert NOTICE_FORMATTERS["json"](notice)["summary"]["coverage"]["unjudged_hosts"] == FOUR


@pytest.mark.parametrize(("hosts", "number"), [(None, 0), (FOUR, 4)])
def test_coverage_metric_exists_for_every_version_of_the_file(
    hosts: list[str] | None, number: int
) -> None:
    lines = prometheus.render(
        Report(_findings(**({"unjudged_hosts": hosts} if hosts else {})))
    ).splitlines()

    assert [
        line.rpartition(" ")[2]
        for line in lines
        if line.startswith("placement_orphan_unjudged_hosts{")
    ] == [str(number)]


def test_each_host_counts_once_per_cloud_over_several_runs() -> None:
    runs = [
        RunResult("north-1", findings=_findings(unjudged_hosts=FOUR)),
        RunResult("north-2", findings=_findings(unjudged_hosts=FOUR[:2])),
    ]
    other = _findings(unjudged_hosts=FOUR[:1])
    other["cloud"]["region"] = "elsewhere"
    summary = summarize_runs(
        [
            *runs,
            RunResult("south", findings=other),
            RunResult("east", error="It cannot be reached."),
        ]
    )

    assert summary["totals"]["unjudged_hosts"] == 5
    assert [row["unjudged_hosts"] for row in summary["runs"]] == [
        sorted(FOUR),
        sorted(FOUR[:2]),
        FOUR[:1],
        [],
    ]
    assert SENTENCE in "\n".join(format_summary(summary, "/summary.json", 200))


@pytest.mark.parametrize(
    ("amounts", "said"),
    [
        (None, ""),
        ({"servers": 0, "checked": 0, "by_host": 0, "unchecked": {}}, ""),
        (
            {"servers": 1, "checked": 1, "by_host": 0, "unchecked": {}},
            "Amounts checked for 1 of 1 server.",
        ),
        (
            {
                "servers": 840,
                "checked": 812,
                "by_host": 700,
                "unchecked": {"pci_alias": 8, "volume_image": 20},
            },
            "Amounts checked for 812 of 840 servers (700 only by the sums of their host); "
            "20 need Cinder; 8 need the alias of a PCI device.",
        ),
        (
            {"servers": 2, "checked": 0, "by_host": 0, "unchecked": {"later": 2}},
            "Amounts checked for 0 of 2 servers; 2 lack later.",
        ),
    ],
)
def test_amounts_are_one_sentence(amounts: t.Any, said: str) -> None:
    coverage: t.Any = {"amounts": amounts} if amounts else {}

    assert describe_amounts(coverage) == said
