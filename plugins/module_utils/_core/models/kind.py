# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kind of finding is. Each has a file in `kinds`."""

from __future__ import annotations

import dataclasses as d
import typing as t

# The groups: allocations that nothing needs, allocations of live servers that are not as they
# should be, and conditions that are not about one consumer.
ORPHAN = "orphan"
DRIFT = "drift"
CONDITION = "condition"

REMEDIATE = "remediate"
OPT_IN = "opt-in"
REPORT = "report"

# Of which cells the answers must be complete: those of the consumer's hosts (`facts.gaps`), or, for
# a proof that rests on absence, all of them.
OWN = "own"
EVERY = "every"


@d.dataclass(frozen=True)
class Requirement:
    """The microversion of a service that a proof needs, and what it shows."""

    service: str
    since: tuple[int, int]
    proof: str


@d.dataclass(frozen=True)
class Kind:
    """A kind of finding.

    meaning: what it is, as a sentence without its full stop; the README has the same words.
    by_default: `remediate`, `opt-in` (changed only if the user chooses the kind) or `report` (never
        changed).
    needs: the requests that its proof rests on (`models.snapshot`), beside the three for the
        allocation, the migrations and the server of each consumer.
    named_needs: what is asked as well if the user names the kind or chooses it for remediation,
        because it costs too much in every run.
    cells: `OWN` or `EVERY`.
    version: the microversion without which it cannot be proven, beyond those that every kind needs.
    was: its name before the version `renamed_in`, which files of older versions contain. They must
        go on being read, because a journal is what an allocation is restored from.
    """

    name: str
    meaning: str
    group: str
    by_default: str
    needs: tuple[str, ...] = ()
    named_needs: tuple[str, ...] = ()
    cells: str = OWN
    version: Requirement | None = None
    was: str = ""
    renamed_in: str = "2.0.0"


def define_kind(module: str, doc: str | None, group: str, by_default: str, **fields: t.Any) -> Kind:
    """Return the kind of a file: it has the file's name, and the first sentence says what it is.

    module, doc: `__name__` and `__doc__` of the file. Python has no texts of files with -OO.
    fields: the others of `Kind`.
    """
    meaning = " ".join((doc or "").partition("\n\n")[0].split()).removesuffix(".")
    name = module.rpartition(".")[2]
    return Kind(name, meaning, group, by_default, **fields)
