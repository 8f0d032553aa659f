"""One test of Nova, with passes of the collection between its steps.

A step is a place where a pass may run. One runs where anything that decides on allocations has
changed since the last one, so that a test that polls costs nothing. Nova stands still meanwhile:
its green threads wait at their next step.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import json
import logging
import pathlib
import shutil
import time
import traceback
import typing as t

import eventlet
from nova import conf
from nova.db.api import api as api_db
from nova.objects import CellMapping
from placement import db_api as placement_db

from ....plugins.module_utils._core.kinds import leaked_port
from . import bystander, clock, cloud, truth
from .cleaner import DEFAULT_AGES, NO_AGES, Cleaner

# In seconds: how long a green thread of Nova waits for the end of a pass.
_LONGEST_PASS = 120


@d.dataclass
class Trial:
    """The run of one test: what it has set up, and what was seen.

    mode: `steps`, between the steps of the test, at ages 0; `deep`, also between those of Nova's
        own operations; `aged`, the same at the default ages, as if allocations were years old.
    folder: where the files of the passes are written.
    """

    mode: str
    folder: pathlib.Path
    fixtures: dict[str, t.Any] = d.field(default_factory=dict)
    cells: dict[str, t.Any] = d.field(default_factory=dict)
    is_over: bool = False
    in_pass: bool = False
    # The kind of the finding for which each consumer is changed, and those that were changed.
    kinds: dict[str, str] = d.field(default_factory=dict)
    changed: set[str] = d.field(default_factory=set)
    # What the result has.
    steps: int = 0
    unseen_steps: int = 0
    passes: int = 0
    requests: int = 0
    seconds: float = 0.0
    checked: int = 0
    removals: collections.Counter[str] = d.field(default_factory=collections.Counter)
    violations: list[dict[str, t.Any]] = d.field(default_factory=list)
    conflicts: list[dict[str, t.Any]] = d.field(default_factory=list)
    missed: list[dict[str, t.Any]] = d.field(default_factory=list)
    errors: list[str] = d.field(default_factory=list)
    faults: list[str] = d.field(default_factory=list)
    _fingerprint: str = ""
    _label: str = ""

    @property
    def is_deep(self) -> bool:
        return self.mode != "steps"

    @property
    def ages(self) -> str:
        return "default" if self.mode == "aged" else "0"

    @property
    def is_ready(self) -> bool:
        has_cell = bool(self.cells.keys() - {CellMapping.CELL0_UUID})
        return has_cell and {"Nova", "Placement"} <= self.fixtures.keys()

    def step(self, label: str, during_write: bool = False) -> None:
        """Run a pass if anything has changed since the last one.

        during_write: whether Nova has read an allocation that it is about to write.
        """
        if self.is_over or not self.is_ready:
            return
        # Ages 0 switch off the protection of exactly this moment (docs/safety.md).
        if during_write and self.mode == "deep":
            return
        self.steps += 1
        if not self._wait_for_pass():
            self.unseen_steps += 1
            return
        try:
            state = self._read_state()
        except Exception:
            self.faults.append(f"{label}: {traceback.format_exc(limit=-3)}")
            return
        if state.is_empty or state.fingerprint == self._fingerprint:
            return
        self._fingerprint = state.fingerprint
        self._run_pass(label, self._clean)

    def end(self) -> None:
        """Run the last pass, while all fixtures are there, and keep what it left."""
        if self.is_over or not self.is_ready:
            return
        self._wait_for_pass()
        self.is_over = True
        self.steps += 1
        self._run_pass("end of the test", self._last_pass)

    def note_conflict(self, consumers: t.Iterable[str]) -> None:
        """Record that Placement refused a write of Nova, if it was for a change of a pass."""
        for consumer in consumers:
            if consumer in self.changed:
                self.conflicts.append({"consumer": consumer, "step": self.steps})

    def judge_write(self, changes: t.Iterable[t.Mapping[str, t.Any]]) -> None:
        """Judge changes by the state of the moment in which they are written."""
        state = self._read_state()
        for change in changes:
            self._judge(state, "written", self.kinds.get(change["consumer"], ""), change)
            for part in (change, *filter(None, [change["partner"]])):
                self.changed.add(part["consumer"])

    def _wait_for_pass(self) -> bool:
        """Return whether no pass runs, after waiting for the end of one."""
        until = time.monotonic() + _LONGEST_PASS
        while self.in_pass and not self.is_over and time.monotonic() < until:
            eventlet.sleep(0.02)
        return not self.in_pass and not self.is_over

    def _read_state(self) -> truth.State:
        neutron = self.fixtures.get("Neutron")
        return truth.State.read(
            [manager.writer.get_engine() for manager in self.cells.values()],
            api_db.context_manager.writer.get_engine(),
            self._placement_engine,
            neutron.list_ports(is_admin=True)["ports"] if neutron else [],
        )

    @property
    def _placement_engine(self) -> t.Any:
        return placement_db.placement_context_manager.writer.get_engine()

    def _run_pass(self, label: str, run: t.Callable[[], None]) -> None:
        self.in_pass, self._label = True, label
        started, count = time.monotonic(), cloud.ServiceAdapter.count
        cell = next(name for name in self.cells if name != CellMapping.CELL0_UUID)
        try:
            with (
                clock.paused(),
                _without_logs(),
                bystander.present(
                    self.cells[cell].writer.get_engine(),
                    api_db.context_manager.writer.get_engine(),
                    self._placement_engine,
                ),
            ):
                # In a green thread of its own, no value of a thread of the test changes.
                eventlet.spawn(run).wait()
        except Exception:
            self.faults.append(f"{label}: {traceback.format_exc(limit=-4)}")
        finally:
            self.in_pass = False
            self.passes += 1
            self.seconds += time.monotonic() - started
            self.requests += cloud.ServiceAdapter.count - count

    def _last_pass(self) -> None:
        # As if a minute had passed, in which a port could have been attached.
        settling, leaked_port._SETTLING_SECONDS = leaked_port._SETTLING_SECONDS, 0
        try:
            document = self._clean()
        finally:
            leaked_port._SETTLING_SECONDS = settling
        # At the default ages, everything of a test is too young.
        if self.mode != "aged":
            self._note_missed(document)

    def _age_allocations(self) -> None:
        """Make all allocations old enough for the default ages, but no event of Nova."""
        connection = truth.get_connection(self._placement_engine)
        for column in ("created_at", "updated_at"):
            connection.execute(f"UPDATE allocations SET {column} = '2020-01-01 00:00:00'")
        connection.commit()

    def _clean(self) -> dict[str, t.Any] | None:
        """Run a pass, and return the findings document; None after an error."""
        ages = NO_AGES
        if self.mode == "aged":
            self._age_allocations()
            ages = DEFAULT_AGES
        folder = self.folder / f"pass-{self.passes}"
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        cleaner = Cleaner(lambda: cloud.connect(self.fixtures), folder, ages, _list_pci_aliases())
        before = self._read_state()
        document = cleaner.detect()
        after = self._read_state()
        found = len(self.violations)
        for row in after.classify_all():
            self.checked += row[2] == truth.NEEDED and row[0] != bystander.UUID
        if document:
            self._judge_findings(document, before, after)
            for outcome in cleaner.remediate():
                self.removals[f"{outcome['kind']} {outcome['outcome']}"] += 1
        self.errors += [f"{self._label}: {error}" for error in cleaner.errors]
        self.faults += [f"{self._label}: {fault}" for fault in cleaner.faults]
        if len(self.violations) == found:
            shutil.rmtree(folder)
        return document

    def _judge_findings(
        self, document: t.Mapping[str, t.Any], before: truth.State, after: truth.State
    ) -> None:
        """Judge the proposed changes. What Nova does during a pass may make one right."""
        self.kinds = {}
        is_sound = not document["summary"]["coverage"]["failed_checks"]
        for finding in document["findings"]:
            change = finding["change"]
            if not change or not is_sound:
                continue
            if finding["consumer"]:
                self.kinds[finding["consumer"]] = finding["kind"]
            if truth.judge_change(before, finding["kind"], change):
                self._judge(after, "proposed", finding["kind"], change, finding["reason"])

    def _judge(
        self,
        state: truth.State,
        stage: str,
        kind: str,
        change: t.Mapping[str, t.Any],
        reason: str = "",
    ) -> None:
        wrong = truth.judge_change(state, kind, change)
        consumer = change.get("consumer", "")
        # Nova has done something to every server of a test within the last hour.
        if self.mode == "aged" and state.find_live(state.find_server(consumer)):
            wrong.append(f"changes {consumer} while Nova is about to write an allocation")
        if not wrong:
            return
        where = {"step": self.steps, "label": self._label, "ages": self.ages, "stage": stage}
        found = {"kind": kind, "wrong": wrong, "reason": reason, "change": change}
        rows = state.describe(state.find_server(consumer))
        self.violations.append({**where, **found, "state": rows})

    def _note_missed(self, document: t.Mapping[str, t.Any] | None) -> None:
        """Keep what nothing needs and is left, with what the document says about it."""
        entries: dict[str, str] = {}
        for verdict in ("findings", "protected", "undecided") if document else ():
            for entry in document[verdict]:
                if entry["consumer"]:
                    said = f"{entry['verdict']} {entry['kind']}"
                    entries[entry["consumer"]] = said
        for consumer, root, verdict, why in self._read_state().classify_all():
            if verdict == truth.LEFT:
                said = entries.get(consumer, "not reported" if document else "no detection")
                self.missed.append({"consumer": consumer, "root": root, "why": why, "said": said})

    def as_dict(self) -> dict[str, t.Any]:
        """Return the result as JSON's types."""
        counts = ("steps", "unseen_steps", "passes", "requests", "checked", "removals")
        names = (*counts, "violations", "conflicts", "missed", "errors", "faults")
        return {"pass_seconds": round(self.seconds, 1), **{n: getattr(self, n) for n in names}}


@contextlib.contextmanager
def _without_logs() -> t.Iterator[None]:
    """Write no log: the tests run at the level of debugging, and some count messages."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _list_pci_aliases() -> list[dict[str, str]]:
    """Return the aliases of nova.conf, as an operator gives them in `orphan_cleanup_pci_aliases`.

    Several entries with one name are alternatives, which the option refuses.
    """
    aliases = []
    for text in conf.CONF.pci.alias:
        with contextlib.suppress(ValueError):
            aliases.append({key: str(value) for key, value in json.loads(text).items()})
    names = [alias.get("name") for alias in aliases]
    return [alias for alias in aliases if names.count(alias.get("name")) == 1]
