"""One cloud with everything in it, and runs of the collection between which it is set back."""

import contextlib
import dataclasses as d
import json
import random
import shutil
import time
import typing as t
from pathlib import Path

from minicloud_ctl import cells, servers
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.paths import Paths

from ....plugins.module_utils._core.models.kinds import DRIFT_KINDS, ORPHAN_KINDS
from ...integration.forks import Crash, Forks
from ...integration.support import Ansible, Minicloud
from ...integration.world import World
from . import oracle, truth
from .design import Design, Spec
from .oracle import Violation
from .scenery import CELL_HOST, interpose, read_recorded, read_scenarios
from .wire import Assignment

EVERY_KIND = [
    kind.name
    for kind in (*ORPHAN_KINDS, *DRIFT_KINDS)
    if kind.by_default in ("remediate", "opt-in")
]
NO_AGE = {"min_age": "0", "unknown_min_age": "0"}
LIMITS = {"max_changes": 1000, "max_share": 1.0}
API_TIMEOUT = 1
# A run waits a tenth of the time between two attempts.
PAUSES = 0.1
LONGEST_RUN = 150.0
READERS: dict[str, dict[str, t.Any]] = {
    "compute_host_info": {"hosts": ["compute-1", "compute-2"]},
    "migration_info": {},
    "placement_allocation_info": {"resource_provider": ["compute-1"]},
    "placement_provider_info": {},
    "compute_host": {"host": "compute-1", "state": "disabled", "_ansible_check_mode": True},
    "allocation_candidate_info": {"resources": {"VCPU": 1}},
}


@d.dataclass
class Result:
    """What became of one run."""

    number: int
    design: Design
    violations: list[Violation] = d.field(default_factory=list)
    applied: list[str] = d.field(default_factory=list)
    hit: set[Spec] = d.field(default_factory=set)
    requests: int = 0
    seconds: float = 0.0
    removed: int = 0
    proposed_falsely: int = 0
    endings: list[str] = d.field(default_factory=list)


class Cloudlet:
    """The cloud, and the modules with interposers between them and it."""

    def __init__(
        self,
        minicloud: Minicloud,
        ansible: Ansible,
        scenarios: t.Sequence[str],
        dead_cell: bool = False,
    ) -> None:
        """dead_cell: whether a second cell, with a live server, does not answer."""
        self.paths = Paths.choose(str(minicloud.home))
        self.cloud = Cloud(states.load(self.paths))
        self._folder = ansible.folder
        self.ansible = ansible
        self._stack = contextlib.ExitStack()
        self._wires = self._stack.enter_context(interpose(ansible, minicloud))
        self._forks = self._stack.enter_context(Forks(ansible, limit=LONGEST_RUN, pauses=PAUSES))
        self.consumers, self._needed, self._pairs = read_scenarios(minicloud, scenarios)
        self.hosts = sorted(self.cloud.hypervisors())
        world = World(minicloud.home)
        self._stack.callback(world.close)
        self._move_server(world)
        if dead_cell:
            self._lose_cell(world)
        self.before = truth.read_state(self.paths)
        self.providers = truth.read_providers(self.paths)
        self.allowed = oracle.Allowed({})
        try:
            self._calibrate()
        finally:
            self.set_back()

    def _move_server(self, world: World) -> None:
        """Move a server away after all was read, so that a cache may still show where it was."""
        server = world.boot("compute-1")
        self._take((), self._folder)
        self._detect(self._folder)
        self._detect(self._folder, consumers=[server])
        world.live_migrate(server, "compute-2")
        for wire in self._wires:
            wire.forget_all()
        self.consumers.append(server)
        self._needed.append((server, world.provider("compute-2")))

    def _lose_cell(self, world: World) -> None:
        if CELL_HOST not in self.hosts:
            cells.add(self.paths, "cell2", [CELL_HOST])
        server = servers.boot(world.cloud, "lives in a dead cell", CELL_HOST)
        self.consumers.append(server)
        self._needed.append((server, self.cloud.hypervisors()[CELL_HOST]))
        world.close_cell()
        self._stack.callback(world.open_cell)

    def close(self) -> None:
        truth.set_back(self.cloud, self.before, truth.read_state(self.paths))
        self._stack.close()

    def _calibrate(self) -> None:
        """Learn what runs without faults change, until they change nothing more."""
        contents: dict[str, set[oracle.Held | None]] = {
            consumer: {held.content} for consumer, held in self.before.items()
        }
        assignments = self._take((), self._folder)
        memory = self._folder / "memory.json"
        self._detect(self._folder, mode="incremental", memory=str(memory))
        for _attempt in range(4):
            then = truth.read_state(self.paths)
            # A reading of everything does not look up whom each allocation belongs to.
            self._remediate_all(consumers=self.consumers)
            self._remediate_all()
            now = truth.read_state(self.paths)
            for consumer in then.keys() | now.keys():
                held = now.get(consumer)
                contents.setdefault(consumer, {None}).add(held.content if held else None)
            if not truth.list_differences(then, now):
                break
        assert any(assignment.writes for assignment in assignments), "nothing was remediated"
        for consumer, provider in self._needed:
            for held in contents[consumer] if consumer not in self._pairs else ():
                has = {amounts[0] for amounts in held.amounts} if held else set()
                assert provider in has, f"{consumer} needs {provider}, and lost it without a fault"
        self.allowed = oracle.Allowed(contents)
        assert not list(self._check_pairs(truth.read_state(self.paths)))

    def _check_pairs(self, now: truth.State) -> t.Iterator[Violation]:
        """A migration has what its server needs, until the server has it."""
        for migration, (server, provider) in self._pairs.items():
            holders = (now.get(migration), now.get(server))
            has = {amounts[0] for held in holders if held for amounts in held.amounts}
            if provider not in has:
                yield oracle.Violation("an allocation was lost between two consumers", server)

    def _remediate_all(self, **scope: t.Any) -> None:
        found = self._detect(self._folder, **scope)
        planned = self._plan(self._folder, EVERY_KIND)
        done = self._remediate(self._folder)
        for result in (found, planned, done):
            assert not result["failed"], result["msg"]

    def set_back(self) -> None:
        """Give everybody what they had at the beginning."""
        now = truth.read_state(self.paths)
        if truth.list_differences(self.before, now):
            truth.set_back(self.cloud, self.before, now)
            for wire in self._wires:
                wire.forget()
            now = truth.read_state(self.paths)
            assert not truth.list_differences(self.before, now)

    # Runs ----------------------------------------------------------------------------------------

    def run(self, number: int, design: Design, specs: t.Sequence[Spec] | None = None) -> Result:
        """Make one run, with other mutations than its own where these are given."""
        self.set_back()
        before = truth.read_state(self.paths)
        result = Result(number, design)
        folder = self._folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        assignments = self._take(design.specs if specs is None else specs, folder)
        began = time.monotonic()
        try:
            if design.playbook:
                self._run_playbook(design, result, folder, before, assignments)
            elif design.info:
                self._run_readers(design, result)
            else:
                self._run_modules(design, result, folder, before, assignments)
        except Crash as crash:
            result.violations.append(
                oracle.Violation("a module ended without a result", str(crash)[-1500:])
            )
        result.seconds = time.monotonic() - began
        writes = [write for assignment in assignments for write in assignment.writes]
        now = truth.read_state(self.paths)
        result.violations += oracle.check_allocations(before, now, self.allowed, writes)
        result.violations += oracle.check_journal(writes)
        result.violations += self._check_pairs(now)
        if self.providers - truth.read_providers(self.paths):
            result.violations.append(oracle.Violation("a provider was deleted", ""))
        for assignment in assignments:
            result.requests += assignment.requests
            result.applied += assignment.applied
            result.hit |= assignment.hit
        for wire in self._wires:
            wire.errors.clear()
        return result

    def _run_modules(
        self,
        design: Design,
        result: Result,
        folder: Path,
        before: truth.State,
        assignments: list[Assignment],
    ) -> None:
        self._enter("detect", assignments)
        found = self._detect(folder, **self._choose_scope(design, folder))
        self._note("orphan_detect", found, result)
        if found["failed"]:
            return
        result.proposed_falsely += self._count_false(found)
        kinds = EVERY_KIND if design.kinds == "every" else []
        planned = self._plan(folder, kinds)
        self._note("orphan_plan", planned, result)
        if planned["failed"] or not planned["changes"]:
            return
        self._enter("remediate", assignments)
        done = self._remediate(folder)
        self._note("orphan_remediate", done, result)
        writes = [write for assignment in assignments for write in assignment.writes]
        now = truth.read_state(self.paths)
        result.violations += oracle.check_outcomes(before, now, done, writes)
        result.removed += len(truth.list_differences(before, now))
        if design.restores and done.get("journal"):
            self._restore(design, result, folder, done["journal"], assignments)

    def _restore(
        self,
        design: Design,
        result: Result,
        folder: Path,
        journal: str,
        assignments: list[Assignment],
    ) -> None:
        before = truth.read_state(self.paths)
        known = [len(assignment.writes) for assignment in assignments]
        self._enter("restore", assignments)
        restored = self._forks.run(
            "orphan_restore",
            journal=journal,
            output_dir=str(folder / "restored"),
            api_timeout=API_TIMEOUT,
        )
        self._note("orphan_restore", restored, result)
        writes = [
            write
            for assignment, count in zip(assignments, known, strict=True)
            for write in assignment.writes[count:]
        ]
        now = truth.read_state(self.paths)
        result.violations += oracle.check_outcomes(before, now, restored, writes)

    def _run_playbook(
        self,
        design: Design,
        result: Result,
        folder: Path,
        before: truth.State,
        assignments: list[Assignment],
    ) -> None:
        """Run a whole playbook; the one that retires a host only shows what it would do."""
        variables: dict[str, t.Any] = {
            "orphan_cleanup_output_dir": str(folder),
            "orphan_cleanup_api_timeout": API_TIMEOUT,
        }
        flags: tuple[str, ...] = ()
        if design.playbook == "decommission_host":
            flags = ("--check",)
            variables |= {
                "host_decommission_target": random.Random(design.seed).choice(self.hosts),
                "host_decommission_output_dir": str(folder),
                "host_decommission_api_timeout": API_TIMEOUT,
            }
        else:
            variables |= {
                "orphan_cleanup_remediate_kinds": EVERY_KIND,
                "orphan_cleanup_max_changes": 1000,
                "orphan_cleanup_max_share": 1.0,
            }
        run = self.ansible.playbook(design.playbook, *flags, variables=variables)
        result.violations += oracle.check_output(run.output)
        result.endings.append(f"{design.playbook}: {'succeeded' if run.status == 0 else 'failed'}")
        done = folder / "remediation.json"
        if done.exists():
            writes = [write for assignment in assignments for write in assignment.writes]
            now = truth.read_state(self.paths)
            remediated = json.loads(done.read_text())
            result.violations += oracle.check_outcomes(before, now, remediated, writes)
            result.removed += len(truth.list_differences(before, now))

    def _run_readers(self, design: Design, result: Result) -> None:
        chance = random.Random(design.seed)
        for name in chance.sample(sorted(READERS), 2):
            told = self._forks.run(name, api_timeout=API_TIMEOUT, **READERS[name])
            self._note(name, told, result)

    def _note(self, name: str, told: dict[str, t.Any], result: Result) -> None:
        result.violations += oracle.check_texts(name, told)
        ending = told.get("msg", "failed") if told["failed"] else "succeeded"
        result.endings.append(f"{name}: {ending}")

    def _count_false(self, found: dict[str, t.Any]) -> int:
        """Return how many findings propose to change what no run without faults changes."""
        return sum(
            1
            for entry in found["findings"]
            if entry.get("change")
            and entry["consumer"]
            and len(self.allowed.contents.get(entry["consumer"], {None})) < 2
        )

    def _choose_scope(self, design: Design, folder: Path) -> dict[str, t.Any]:
        chance = random.Random(design.seed)
        if design.scope == "consumers":
            return {
                "consumers": chance.sample(self.consumers, min(design.count, len(self.consumers)))
            }
        if design.scope == "hosts":
            return {"hosts": chance.sample(self.hosts, min(design.count, len(self.hosts)))}
        if design.scope == "incremental":
            # With a dead cell nothing is remembered, and everything is read.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(self._folder / "memory.json", folder / "memory.json")
            return {"mode": "incremental", "memory": str(folder / "memory.json")}
        return {}

    # Modules -------------------------------------------------------------------------------------

    def _take(self, specs: t.Sequence[Spec], folder: Path) -> list[Assignment]:
        return [wire.take(specs, lambda: read_recorded(folder)) for wire in self._wires]

    def _enter(self, phase: str, assignments: list[Assignment]) -> None:
        for assignment in assignments:
            assignment.phase = phase

    def _detect(self, folder: Path, **options: t.Any) -> dict[str, t.Any]:
        return self._forks.run(
            "orphan_detect",
            dest=str(folder / "findings.json"),
            allow_unknown_consumers=True,
            api_timeout=API_TIMEOUT,
            **NO_AGE,
            **options,
        )

    def _plan(self, folder: Path, kinds: list[str]) -> dict[str, t.Any]:
        return self._forks.run(
            "orphan_plan",
            findings=str(folder / "findings.json"),
            dest=str(folder / "plan.json"),
            **({"kinds": kinds} if kinds else {}),
            **LIMITS,
        )

    def _remediate(self, folder: Path) -> dict[str, t.Any]:
        return self._forks.run(
            "orphan_remediate",
            plan=str(folder / "plan.json"),
            output_dir=str(folder),
            api_timeout=API_TIMEOUT,
            **NO_AGE,
            **LIMITS,
        )
