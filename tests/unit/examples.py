"""How many random examples a test tries."""

from __future__ import annotations

import itertools
import os
import typing as t
from collections.abc import Iterable

FEWEST = 50
_FEW = 5


def count_examples(number: int) -> int:
    """Return the number, or a quarter of it in `make test`, which sets EXAMPLES=some.

    EXAMPLES=few is for the oldest Python, on which the examples of the newest one are not repeated.
    """
    examples = os.environ.get("EXAMPLES")
    if examples == "few":
        return min(_FEW, number)
    if examples == "some":
        return max(FEWEST, number // 4)
    return number


_Example = t.TypeVar("_Example")


def choose_examples(examples: Iterable[_Example]) -> Iterable[_Example]:
    """Return all examples, or each fourth in `make test`."""
    return itertools.islice(examples, 0, None, 4 if os.environ.get("EXAMPLES") else 1)
