"""The results of all runs, kept as JSON.

A run of a part of the matrix does not change the other results.

{"releases": {name: the fields of `clouds.Release`},
 "controllers": {title: {"ansible_core", "python", "sdk", "exactly": the whole version of
                                 ansible-core}},
 "cells": {title of the controller: {name of the release: the fields of `Cell`}}}
"""

from __future__ import annotations

import dataclasses as d
import typing as t
import xml.etree.ElementTree
from pathlib import Path

from json_text import load_record, save_record

if t.TYPE_CHECKING:
    from matrix.clouds import Release
    from matrix.controllers import Controller

KEPT = Path(__file__).parent / "results.json"


@d.dataclass
class Cell:
    """The result of one controller with one release; `not_run` is the reason if there is none."""

    date: str
    passed: int = 0
    failed: list[str] = d.field(default_factory=list)
    # The names of skipped tests, with their reasons.
    skipped: dict[str, str] = d.field(default_factory=dict)
    seconds: int = 0
    not_run: str = ""

    def __str__(self) -> str:
        if self.not_run:
            return "not run"
        parts = [f"{self.passed} passed"]
        if self.skipped:
            parts.append(f"{len(self.skipped)} skipped")
        if self.failed:
            parts.append(f"**{len(self.failed)} failed**")
        return ", ".join(parts)

    @property
    def good(self) -> bool:
        return not self.failed


def read_junit(path: Path, date: str, seconds: int) -> Cell:
    cell = Cell(date, seconds=seconds)
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            cell.failed.append(name)
        elif skipped is not None:
            cell.skipped[name] = skipped.get("message", "")
        else:
            cell.passed += 1
    return cell


@d.dataclass
class Results:
    """The newest results of all combinations of the matrix."""

    releases: dict[str, dict[str, t.Any]] = d.field(default_factory=dict)
    controllers: dict[str, dict[str, str]] = d.field(default_factory=dict)
    cells: dict[str, dict[str, Cell]] = d.field(default_factory=dict)

    @classmethod
    def load(cls) -> Results:
        return load_record(cls, KEPT) if KEPT.exists() else cls()

    def save(self) -> None:
        save_record(KEPT, self)

    def add_release(self, release: Release) -> None:
        self.releases[release.name] = d.asdict(release)

    def add_row(self, controller: Controller) -> None:
        """Add a row for a controller, even without results."""
        self.cells.setdefault(str(controller), {})
        before = self.controllers.get(str(controller), {})
        # Its environment can have been removed since the run.
        exactly = controller.exactly or before.get("exactly", "")
        self.controllers[str(controller)] = {**d.asdict(controller), "exactly": exactly}

    def add(self, controller: Controller, release: str, cell: Cell) -> None:
        self.add_row(controller)
        self.cells[str(controller)][release] = cell

    def keep_only(self, controllers: t.Collection[str], releases: t.Collection[str]) -> None:
        """Remove versions that are no longer part of the matrix."""
        self.releases = {name: found for name, found in self.releases.items() if name in releases}
        self.controllers = {
            title: found for title, found in self.controllers.items() if title in controllers
        }
        rows = {title: row for title, row in self.cells.items() if title in controllers}
        self.cells = {
            title: {name: cell for name, cell in row.items() if name in releases}
            for title, row in rows.items()
        }
