# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Amounts in the form that people use."""

from __future__ import annotations

import pytest

from ......plugins.plugin_utils._report.units import (
    format_amounts,
    format_number,
    humanize_amount,
    humanize_amounts,
)


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


def test_usual_classes_come_first_in_their_order() -> None:
    assert (
        format_amounts({"VF": 1, "DISK_GB": 3, "CUSTOM_A\n": 9, "VCPU": 1})
        == "1 VCPU, 3 DISK_GB, 9 CUSTOM_A\\n, 1 VF"
    )


def test_amounts_for_people_have_units_and_fractions() -> None:
    amounts = {"CUSTOM_A\n": 9, "DISK_GB": 2048, "MEMORY_MB": 3072, "VCPU": 1}

    assert humanize_amounts(amounts) == "1 VCPU, 3 GiB, 2 TiB disk, 9 CUSTOM_A\\n"
    assert humanize_amounts({"VCPU": 1}, {"VCPU": 0.25}) == "1 VCPU (25.0%)"


def test_empty_amounts_give_no_text() -> None:
    assert format_amounts({}) == humanize_amounts({}) == ""
