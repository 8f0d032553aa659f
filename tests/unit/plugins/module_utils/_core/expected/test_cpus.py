"""Masks of CPUs."""

import pytest

from .......plugins.module_utils._core.expected.cpus import parse_cpus
from .......plugins.module_utils._core.expected.specs import RefusedByNovaError


@pytest.mark.parametrize(
    ("mask", "cpus"),
    [
        ("0", {0}),
        ("0-3", {0, 1, 2, 3}),
        ("0-3,^1", {0, 2, 3}),
        ("^1,0-3", {0, 2, 3}),
        ("0-7,^1-3", {0, 4, 5, 6, 7}),
        (" 0 - 1 , 3 ", {0, 1, 3}),
        (",,2,", {2}),
        ("^1", set()),
        ("", set()),
    ],
)
def test_masks(mask: str, cpus: set[int]) -> None:
    assert parse_cpus(mask) == cpus


@pytest.mark.parametrize("mask", ["a", "3-1", "1-", "-1", "^", "^x", "1-^2", "0-99999999999"])
def test_masks_that_are_refused(mask: str) -> None:
    with pytest.raises(RefusedByNovaError, match="mask of CPUs"):
        parse_cpus(mask)
