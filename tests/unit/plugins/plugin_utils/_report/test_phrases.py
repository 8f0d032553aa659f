"""What projects get back of their quota, and amounts, as people read them."""

import typing as t

import pytest

from ......plugins.plugin_utils._report.phrases import (
    format_amounts,
    format_number,
    humanize_amount,
    humanize_amounts,
    label_project,
    list_quota_lines,
)


def make_stranded(**projects: dict[str, t.Any]) -> t.Any:
    quota = {}
    for uuid, fields in projects.items():
        known = {"name": "", "exists": True, "consumers": 1, "cores": 0, "ram_mib": 0}
        quota[uuid] = {**known, **fields}
    return {"quota": quota}


def test_projects_with_the_largest_amounts_come_first() -> None:
    stranded = make_stranded(
        a={"name": "web", "cores": 1, "ram_mib": 2048},
        b={"name": "db", "cores": 4},
        c={"name": "ram", "ram_mib": 512},
        d={"name": "gpu", "resource_classes": {"VGPU": 1, "DISK_GB": 20, "VCPU": 0}},
    )

    lines = ["db (b): 4 VCPU", "web (a): 1 VCPU, 2 GiB", "ram (c): 512 MiB"]
    lines.append("gpu (d): 20 GiB disk, 1 VGPU")
    assert list_quota_lines(stranded) == lines


@pytest.mark.parametrize(
    "fields",
    [{"exists": False, "cores": 1}, {"exists": None, "cores": 1}, {"cores": 0}],
    ids=["gone", "unknown", "nothing"],
)
def test_what_gets_no_quota_back_has_no_line(fields: dict[str, t.Any]) -> None:
    assert list_quota_lines(make_stranded(a=fields)) == []


@pytest.mark.parametrize(
    ("uuid", "fields", "label"),
    [
        ("a", {"name": "web"}, "web (a)"),
        ("a", {"exists": None}, "a"),
        ("a", {"exists": False}, "a, which no longer exists"),
        ("a", {"name": "\x1b[31m"}, "\\x1b[31m (a)"),
        ("", {}, "no project"),
        ("other", {}, "other"),
    ],
)
def test_project_is_named_as_far_as_it_is_known(
    uuid: str, fields: dict[str, t.Any], label: str
) -> None:
    assert label_project(uuid, make_stranded(a=fields)) == label


def test_file_of_an_older_version_has_no_lines() -> None:
    assert list_quota_lines(t.cast("t.Any", {})) == []
    assert label_project("a", t.cast("t.Any", {})) == "a"


@pytest.mark.parametrize(
    ("resource_class", "amount", "told"),
    [
        ("VCPU", 0, "0"),
        ("VCPU", 1234567, "1 234 567"),
        ("MEMORY_MB", 512, "512 MiB"),
        ("MEMORY_MB", 1023, "1023 MiB"),
        ("MEMORY_MB", 1024, "1 GiB"),
        ("MEMORY_MB", 741376, "724 GiB"),
        ("MEMORY_MB", 1536, "1.5 GiB"),
        ("MEMORY_MB", 3 * 1024**2, "3 TiB"),
        ("DISK_GB", 10, "10 GiB"),
        ("DISK_GB", 2048, "2 TiB"),
        ("DISK_GB", 1024**4, "1024 EiB"),
        ("CUSTOM_PCI_X", 4096, "4 096"),
    ],
)
def test_amounts_use_the_largest_unit_that_fits(
    resource_class: str, amount: int, told: str
) -> None:
    assert humanize_amount(resource_class, amount) == told


def test_thousands_are_separated() -> None:
    assert [format_number(number) for number in (7, 999, 1000, 20009, -1000)] == [
        "7",
        "999",
        "1 000",
        "20 009",
        "-1 000",
    ]


AMOUNTS = {"VF": 1, "DISK_GB": 2048, "CUSTOM_A\n": 9, "MEMORY_MB": 3072, "VCPU": 1}


@pytest.mark.parametrize(
    ("amounts", "fractions", "text", "for_people"),
    [
        (
            AMOUNTS,
            {"VCPU": 0.25},
            "1 VCPU, 3072 MEMORY_MB, 2048 DISK_GB, 9 CUSTOM_A\\n, 1 VF",
            "1 VCPU (25.0%), 3 GiB, 2 TiB disk, 9 CUSTOM_A\\n, 1 VF",
        ),
        ({"VCPU": 1}, None, "1 VCPU", "1 VCPU"),
        ({}, {}, "", ""),
    ],
)
def test_usual_classes_come_first_and_people_get_units_and_fractions(
    amounts: dict[str, int], fractions: dict[str, float] | None, text: str, for_people: str
) -> None:
    assert format_amounts(amounts) == text
    assert humanize_amounts(amounts, fractions) == for_people
