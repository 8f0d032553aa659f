"""What a run does, and what happens to its answers: all of it follows from a seed and a number."""

import dataclasses as d
import random
import re

from .bodies import WEIGHTS

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

# The requests of all runs by their shape. `any` is whichever request is the n-th.
TARGETS: dict[str, tuple[str, str, str, float]] = {
    "services": ("nova", "GET", "/os-services", 3),
    "hypervisors": ("nova", "GET", "/os-hypervisors", 3),
    "migrations": ("nova", "GET", r"/os-migrations\?limit=1000", 3),
    "migrations of server": ("nova", "GET", r"/os-migrations\?.*instance_uuid=", 3),
    "marker": ("nova", "GET", r"/os-migrations\?.*marker=", 4),
    "migrations of host": ("nova", "GET", r"/os-migrations\?.*host=", 3),
    "servers of host": ("nova", "GET", r"/servers(/detail)?\?.*host=", 3),
    "servers": ("nova", "GET", r"/servers/detail\?", 3),
    "deleted server": ("nova", "GET", r"/servers.*deleted=True", 5),
    "server rows": ("nova", "GET", r"/servers\?.*soft_deleted=True", 4),
    "server": ("nova", "GET", f"/servers/{_UUID}$", 8),
    "actions": ("nova", "GET", "/os-instance-actions$", 6),
    "action": ("nova", "GET", "/os-instance-actions/", 3),
    "parts of a server": ("nova", "GET", "/os-interface|/os-volume_attachments", 1),
    "any of Nova": ("nova", "GET", "", 8),
    "providers": ("placement", "GET", r"^/resource_providers(\?|$)", 4),
    "allocations of provider": ("placement", "GET", "/allocations$", 4),
    "allocation": ("placement", "GET", f"/allocations/{_UUID}$", 8),
    "parts of a provider": ("placement", "GET", "/(inventories|usages|traits|aggregates)$", 2),
    "any of Placement": ("placement", "GET", "", 6),
    "login": ("keystone", "POST", "/auth/tokens", 0.4),
    "any of Keystone": ("keystone", "GET", "", 0.6),
    "write": ("placement", "POST", "^/allocations", 8),
}
# What can happen to a write beside the damage of its answer.
WRITES = {
    "write not done, success reported": 2.0,
    "write not done, conflict reported": 1.0,
    "write not done, failure reported": 1.0,
    "write not done, no answer": 1.0,
    "write done, conflict reported": 2.0,
    "write done, failure reported": 2.0,
    "write done, no answer": 2.0,
    "write done twice": 2.0,
}
# Damage after which an answer still has the form of the service.
_FORGERIES = frozenset(
    {
        "error_of_the_service",
        "value_strange",
        "every_value_strange",
        "list_changed",
        "rows_mixed",
        "number",
        "word",
        "identity",
        "host",
        "time",
        "generation",
        "earlier",
        "mixed_up",
        "swapped",
    }
)
_NTH = (1, 1, 1, 1, 2, 2, 3, 4)
_EVERY = 0
# A playbook takes as long as many runs of the modules, so few of a hundred runs are one.
_PLAYBOOKS = {29: "cleanup_orphans", 59: "decommission_host", 89: "cleanup_orphans"}


@d.dataclass(frozen=True)
class Spec:
    """One mutation: of the `nth` request of a shape in a phase, of each with 0.

    The same numbers decide how each answer is damaged, so that the same answer is damaged in the
    same way.
    """

    target: str
    phase: str
    nth: int
    name: str
    seed: int

    def __str__(self) -> str:
        which = "every answer" if self.nth == _EVERY else f"answer {self.nth}"
        when = f" of the phase {self.phase}" if self.phase else ""
        return f"{which} to [{self.target}]{when}: {self.name} ({self.seed})"

    @property
    def forges(self) -> bool:
        """Whether the service appears to say the same untruth each time, in its own form."""
        return self.nth == _EVERY and self.name in _FORGERIES

    @property
    def service(self) -> str:
        return TARGETS[self.target][0]

    def takes(self, method: str, path: str) -> bool:
        _service, its_method, pattern, _weight = TARGETS[self.target]
        return method == its_method and re.search(pattern, path) is not None


@d.dataclass(frozen=True)
class Design:
    """One run: what it reads, what it does, and the mutations.

    scope: `full`, `consumers`, `hosts` or `incremental`.
    count: how many consumers or hosts are named.
    seed: for the choice of these.
    restores: whether the journal is restored through the interposer afterwards.
    info: whether modules that only read run instead.
    playbook: the playbook that runs instead, by `ansible-playbook`; mostly none.
    """

    scope: str
    count: int
    seed: int
    restores: bool
    info: bool
    kinds: str
    playbook: str
    specs: tuple[Spec, ...]


def design_run(seed: int, number: int) -> Design:
    """Return the run of this number. It depends on nothing else."""
    chance = random.Random(f"{seed}/{number}")
    info = chance.random() < 0.06
    playbook = _PLAYBOOKS.get(number % 100, "")
    scope = chance.choices(("full", "consumers", "hosts", "incremental"), (12, 70, 6, 12))[0]
    count = chance.randint(2, 10) if scope == "consumers" else chance.randint(1, 2)
    restores = chance.random() < 0.12
    number_of_specs = chance.choices((1, 2, 3, 5, 8, 15), (20, 20, 20, 20, 10, 10))[0]
    kinds = chance.choices(("every", "default"), (4, 1))[0]
    specs = tuple(
        _design_spec(chance, info, restores, bool(playbook)) for _count in range(number_of_specs)
    )
    return Design(scope, count, chance.randrange(2**31), restores, info, kinds, playbook, specs)


def _design_spec(chance: random.Random, info: bool, restores: bool, playbook: bool) -> Spec:
    names = list(TARGETS)
    if playbook:
        phase = ""
        target = chance.choices(names, [TARGETS[name][3] for name in names])[0]
    elif info:
        phase = "info"
        target = chance.choices(names[:-1], [TARGETS[name][3] for name in names[:-1]])[0]
    else:
        phases, weights = ("", "detect", "remediate"), (2, 2, 5)
        phase = "restore" if restores and chance.random() < 0.4 else ""
        phase = phase or chance.choices(phases, weights)[0]
        if phase == "detect":
            names.remove("write")
        if phase == "restore":
            names = [name for name in names if TARGETS[name][0] == "placement"]
        target = chance.choices(names, [TARGETS[name][3] for name in names])[0]
    if target == "write" and chance.random() < 0.7:
        name = chance.choices(list(WRITES), list(WRITES.values()))[0]
    else:
        name = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    nth = _EVERY if chance.random() < 0.2 else chance.choice(_NTH)
    if target.startswith("any") and nth != _EVERY:
        nth = chance.randint(1, 60)
    return Spec(target, phase, nth, name, chance.randrange(2**31))
