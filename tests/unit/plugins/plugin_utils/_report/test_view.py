"""One order for the terminal and all reports."""

import csv
import io
import json
import re
import typing as t

import pytest

from ......plugins.module_utils._core.models.kinds import KINDS
from ......plugins.plugin_utils._report import csv_file, html_page, markdown
from ......plugins.plugin_utils._report.view import list_items, sort_entries, sort_kinds
from .....browser import reports


def _entry(
    kind: str, host: str = "compute-1", age: int | None = 1, name: str = "a"
) -> dict[str, t.Any]:
    provider = {"root_name": host, "dropped": True}
    return {
        "id": f"{kind}/{name}",
        "kind": kind,
        "age_seconds": age,
        "providers": [provider],
        "service": None,
    }


@pytest.mark.parametrize(
    "entries",
    [
        [_entry(kind.name) for kind in KINDS],
        [_entry("stale_service"), _entry("booting"), _entry("foreign_type")],
        [_entry("extra_host", host) for host in ("compute-2", "compute-9", "compute-10", "node")],
        [_entry("extra_host", age=age) for age in (9, 8, None)],
        [_entry("extra_host", name=name) for name in ("a", "b")],
        [_entry("extra_host", f"h{'9' * 5000}"), _entry("wrong_owner", "a")],
    ],
)
def test_entries_are_sorted_by_kind_host_and_age(entries: t.Any) -> None:
    assert sort_entries(reversed(entries)) == entries


def test_kinds_are_in_the_order_of_their_table() -> None:
    counts = {kind.name: 1 for kind in reversed(KINDS)}

    assert [name for name, _count in sort_kinds(counts)] == [kind.name for kind in KINDS]


def test_all_formats_have_the_same_order() -> None:
    report = reports.remediated()
    ids = [item.entry["id"] for item in list_items(report)]
    subjects = [identity.partition("/")[2] for identity in ids]

    page = html_page.render(report)
    rows = json.loads(page.partition('id="index"')[2].partition(">")[2].partition("</script>")[0])
    table = csv.DictReader(io.StringIO(csv_file.render(report), newline=""))
    listed = re.findall(
        r"^\| \w+ \| [^|]*[0-9]Z \| `+ ?([^`]+?) ?`+ \|", markdown.render(report), re.M
    )
    assert len(ids) > 15
    assert [row["id"] for row in rows] == ids
    assert [row["subject"] for row in table] == subjects
    assert listed == subjects
