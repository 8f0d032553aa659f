"""CSV as a spreadsheet opens it: one row per finding, and every cell is only text."""

import csv
import io

import pytest

from ......plugins.module_utils._common.text import make_printable
from ......plugins.plugin_utils._report.csv_file import COLUMNS, render
from ......plugins.plugin_utils._report.view import Report
from ..hostile import HOSTILE, hostile, hostile_report, remediation_of, told

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _rows(report: Report) -> list[dict[str, str]]:
    text = render(report).encode("utf-8").decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_starts_a_formula(name: str) -> None:
    cells = [cell for row in _rows(hostile_report(name)) for cell in row.values()]

    assert cells
    assert not [cell for cell in cells if cell.lstrip(" ").startswith(FORMULA)]
    assert all(cell.isprintable() for cell in cells)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_adds_no_rows_or_cells_and_can_be_read_back(name: str) -> None:
    rows = _rows(hostile_report(name))

    assert len(rows) == len(_rows(Report(told(hostile("x"))))) == 4
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert {row["server_name"].removeprefix("'") for row in rows if row["kind"] == "booting"} == {
        make_printable(HOSTILE[name])
    }


def test_line_ends_and_quotes_follow_the_standard() -> None:
    lines = render(Report(told(hostile('a"b')))).split("\r\n")

    assert lines[-1] == "" and len(lines) == 6
    assert all(
        line.startswith('"') and line.endswith('"') and "\n" not in line for line in lines[:-1]
    )
    assert '"a""b"' in lines[1]


def test_row_shows_freed_amounts_and_outcome() -> None:
    findings = told(hostile("x"), known={"nothing/else": "2026-01-01T00:00:00Z"})
    first_seen = "2026-01-02T03:04:05Z"
    findings["findings"][0] |= {"new": False, "first_seen": first_seen, "selected": False}
    row, *_others = _rows(Report(findings, remediation=remediation_of(findings, "removed")))

    expected = {"verdict": "orphaned", "kind": "deleted_server", "new": "no", "selected": "no"}
    expected |= {"first_seen": first_seen, "server_name": "x", "hosts": "x", "frees_vcpu": "1"}
    expected |= {"frees_memory_mb": "512", "outcome": "removed", "reason_id": "server_deleted"}
    assert {column: row[column] for column in expected} == expected


def test_check_mode_outcome_is_a_prediction() -> None:
    findings = told(hostile("x"))
    remediation = remediation_of(findings, "removed", check_mode=True)

    assert _rows(Report(findings, remediation=remediation))[0]["outcome"] == "would be removed"
