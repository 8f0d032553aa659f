"""What is true by the databases of Nova and Placement, and not by their APIs.

Rows are read from the connections of the in-memory databases, below SQLAlchemy: no transaction of a
test is touched. `State.classify` says of one allocation whether anything needs it. It is written
from Nova's own lifecycle, and uses nothing of the rules that it judges.
"""

from __future__ import annotations

import collections
import dataclasses as d
import hashlib
import json
import math
import typing as t

# A migration with one of these has ended. `finished` waits to be confirmed or reverted, and `done`
# is an evacuation whose source has not started again.
_ENDED = frozenset({"completed", "failed", "error", "cancelled", "confirmed", "reverted", "done"})
# A server with one of these is still about to write the allocations of a move that has ended.
_RESIZING = ("prep", "migrating", "migrated", "finish", "reverting", "confirming")
_MOVING_TASKS = frozenset({"migrating", *(f"resize_{step}" for step in _RESIZING)})

# What an allocation is: needed by a server, a move or a boot; the only one of its server, in the
# wrong place or of the wrong consumer; left behind; kept by Nova for now, although its server does
# not use it; or of a consumer of which Nova has no row.
NEEDED, ONLY, LEFT, KEPT, FOREIGN = "needed", "only", "left", "kept", "foreign"

Row = dict[str, t.Any]
Amounts = dict[str, int]

_INSTANCES = (
    "SELECT i.uuid, i.host, i.node, i.vm_state, i.task_state, i.deleted, i.hidden, i.project_id,"
    " i.image_ref, x.flavor FROM instances i"
    " LEFT JOIN instance_extra x ON x.instance_uuid = i.uuid"
)
_MIGRATIONS = (
    "SELECT uuid, instance_uuid, source_compute, dest_compute, source_node, dest_node, status,"
    " migration_type, deleted FROM migrations"
)
_NODES = "SELECT uuid, host, hypervisor_hostname, deleted, cpu_allocation_ratio FROM compute_nodes"
_SERVICES = 'SELECT host, "binary", disabled, forced_down, deleted FROM services'
_ACTIONS = "SELECT count(*) AS begun, count(finish_time) AS ended FROM instance_actions"
_BUILD_REQUESTS = "SELECT instance_uuid FROM build_requests"
_PROVIDERS = (
    "SELECT p.uuid, p.name, r.uuid AS root FROM resource_providers p"
    " JOIN resource_providers r ON r.id = p.root_provider_id"
)
_ALLOCATIONS = (
    "SELECT a.consumer_id AS consumer, p.uuid AS provider, c.name AS class, a.used, k.generation"
    " FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id"
    " JOIN resource_classes c ON c.id = a.resource_class_id"
    " LEFT JOIN consumers k ON k.uuid = a.consumer_id"
)


def get_connection(engine: t.Any) -> t.Any:
    """Return the DBAPI connection of an engine; an in-memory database has a single one."""
    return engine.pool.connection.dbapi_connection


def _read(engine: t.Any, query: str) -> list[Row]:
    cursor = get_connection(engine).cursor()
    try:
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    finally:
        cursor.close()


@d.dataclass
class State:
    """All rows that decide whether anything needs an allocation.

    port_requests: what the ports of each server request, by the UUID of the server.
    """

    instances: list[Row] = d.field(default_factory=list)
    migrations: list[Row] = d.field(default_factory=list)
    nodes: list[Row] = d.field(default_factory=list)
    services: list[Row] = d.field(default_factory=list)
    actions: list[Row] = d.field(default_factory=list)
    build_requests: set[str] = d.field(default_factory=set)
    providers: dict[str, Row] = d.field(default_factory=dict)
    allocations: list[Row] = d.field(default_factory=list)
    port_requests: dict[str, Amounts] = d.field(default_factory=dict)

    @classmethod
    def read(
        cls,
        cells: t.Iterable[t.Any],
        api: t.Any,
        placement: t.Any,
        ports: t.Iterable[t.Mapping[str, t.Any]],
    ) -> State:
        """Read the databases behind these engines.

        ports: all ports of Neutron.
        """
        state = cls(port_requests=_sum_port_requests(ports))
        for cell in cells:
            state.instances += _read(cell, _INSTANCES)
            state.migrations += _read(cell, _MIGRATIONS)
            state.nodes += _read(cell, _NODES)
            state.services += _read(cell, _SERVICES)
            state.actions += _read(cell, _ACTIONS)
        state.build_requests = {row["instance_uuid"] for row in _read(api, _BUILD_REQUESTS)}
        state.providers = {row["uuid"]: row for row in _read(placement, _PROVIDERS)}
        state.allocations = _read(placement, _ALLOCATIONS)
        return state

    @property
    def is_empty(self) -> bool:
        return not (self.instances or self.allocations or self.build_requests)

    @property
    def fingerprint(self) -> str:
        """A digest of everything that decides on a finding."""
        parts = [sorted(self.build_requests), *d.astuple(d.replace(self, build_requests=set()))]
        return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()

    def find_root(self, provider: str) -> str:
        """Return the root of a provider; of one that is gone, the provider itself."""
        row = self.providers.get(provider)
        return row["root"] if row else provider

    def list_providers(self, consumer: str) -> dict[str, Amounts]:
        """Return what a consumer has allocated, by provider."""
        found: dict[str, Amounts] = collections.defaultdict(dict)
        for row in self.allocations:
            if row["consumer"] == consumer:
                found[row["provider"]][row["class"]] = row["used"]
        return found

    def classify_all(self) -> list[tuple[str, str, str, str]]:
        """Return the consumer, the root, the class and the reason for every allocation."""
        pairs = {(row["consumer"], self.find_root(row["provider"])) for row in self.allocations}
        return [(*pair, *self.classify(*pair)) for pair in sorted(pairs)]

    def classify(self, consumer: str, root: str) -> tuple[str, str]:
        """Return whether anything needs what a consumer has in the tree of `root`, and why."""
        if consumer in self.build_requests:
            return NEEDED, "being scheduled"
        if any(row["uuid"] == consumer for row in self.instances):
            return self._classify_server(consumer, root)
        for move in self.migrations:
            if move["uuid"] == consumer:
                return self._classify_migration(move, root)
        return FOREIGN, "Nova has no row"

    def find_server(self, consumer: str) -> str:
        """Return the server of a migration; any other consumer is returned as it is."""
        for move in self.migrations:
            if move["uuid"] == consumer:
                return move["instance_uuid"]
        return consumer

    def describe(self, server: str) -> dict[str, t.Any]:
        """Return all rows about a server, for a reader."""
        moves = [row for row in self.migrations if row["instance_uuid"] == server]
        rows = [row for row in self.instances if row["uuid"] == server]
        consumers = {server, *(row["uuid"] for row in moves)}
        return {
            "instances": [{**row, "flavor": self.count_needed(server)} for row in rows],
            "migrations": moves,
            "allocations": {name: self.list_providers(name) for name in sorted(consumers)},
        }

    def find_live(self, uuid: str) -> list[Row]:
        """Return the rows of a server that is not deleted: two during a move between cells."""
        return [row for row in self.instances if row["uuid"] == uuid and not row["deleted"]]

    def find_own_roots(self, uuid: str) -> set[str | None]:
        """Return the compute nodes where Nova has a server; None for one without a row."""
        placed = [row for row in self.find_live(uuid) if row["host"] and not row["hidden"]]
        return {self._find_node(row["host"], row["node"]) for row in placed}

    def _find_node(self, host: str, name: str) -> str | None:
        for row in self.nodes:
            if row["host"] == host and row["hypervisor_hostname"] == name and not row["deleted"]:
                return row["uuid"]
        return None

    def _find_host(self, root: str) -> str | None:
        rows = [row for row in self.nodes if row["uuid"] == root]
        rows.sort(key=lambda row: bool(row["deleted"]))
        return rows[0]["host"] if rows else None

    def _classify_server(self, uuid: str, root: str) -> tuple[str, str]:
        live = self.find_live(uuid)
        if not live:
            return LEFT, "its server is deleted"
        moves = [row for row in self.migrations if row["instance_uuid"] == uuid]
        for move in moves:
            if move["status"] not in _ENDED and not move["deleted"]:
                return NEEDED, f"moving ({move['migration_type']} {move['status']})"
        for row in live:
            if row["task_state"] or row["vm_state"] in ("building", "resized"):
                return NEEDED, f"{row['vm_state']}, task {row['task_state']}"
        own = self.find_own_roots(uuid)
        if root in own:
            return NEEDED, "on its own host"
        if not own:
            states = {row["vm_state"] for row in live}
            is_left = states <= {"error", "shelved_offloaded"}
            return LEFT if is_left else NEEDED, f"{', '.join(sorted(states))} without a host"
        if not any(row["uuid"] == root for row in self.nodes):
            return NEEDED, "on a provider that is no compute node"
        if own == {None}:
            return NEEDED, "its own compute node has no row"
        if own.isdisjoint(map(self.find_root, self.list_providers(uuid))):
            return ONLY, "on a host where it is not"
        return self._classify_former_host(moves, self._find_host(root))

    def _classify_former_host(self, moves: list[Row], host: str | None) -> tuple[str, str]:
        for move in moves:
            is_evacuation = move["migration_type"] == "evacuation"
            if is_evacuation and move["source_compute"] == host and move["status"] == "done":
                return KEPT, "on the source of its evacuation, which has not started again"
        return LEFT, "on another host"

    def _classify_migration(self, move: Row, root: str) -> tuple[str, str]:
        what = f"{move['migration_type']} {move['status']}"
        live = self.find_live(move["instance_uuid"])
        if move["deleted"] or not live:
            return LEFT, f"{what}, its server is deleted"
        if move["status"] not in _ENDED:
            return NEEDED, what
        for row in live:
            if row["task_state"] in _MOVING_TASKS:
                return NEEDED, f"{what}, its server has the task {row['task_state']}"
        roots = set(map(self.find_root, self.list_providers(move["instance_uuid"])))
        if root in self.find_own_roots(move["instance_uuid"]) - roots:
            return ONLY, f"{what}, its server has nothing else on its host"
        return LEFT, what

    def count_needed(self, uuid: str) -> Amounts:
        """Return the least that a server needs on its host, by resource class.

        VCPU stands for VCPU and PCPU together. A class that is not named may be needed or not.
        """
        needed: Amounts = collections.Counter(self.port_requests.get(uuid, {}))
        for row in self.find_live(uuid):
            flavor = json.loads(row["flavor"])["cur"]["nova_object.data"]
            disk = flavor["ephemeral_gb"] + math.ceil((flavor["swap"] or 0) / 1024)
            if row["image_ref"]:
                disk += flavor["root_gb"]
            vcpus, memory = flavor["vcpus"], flavor["memory_mb"]
            amounts = {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": disk}
            for key, value in (flavor.get("extra_specs") or {}).items():
                group, _colon, name = key.partition(":")
                if group == "resources":
                    amounts["VCPU" if name == "PCPU" else name] = int(value)
                elif group.startswith("resources"):
                    amounts[name] = amounts.get(name, 0) + int(value)
            for name, amount in amounts.items():
                needed[name] += amount
        return needed


def _sum_port_requests(ports: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, Amounts]:
    found: dict[str, Amounts] = collections.defaultdict(collections.Counter)
    for port in ports:
        request = port.get("resource_request") or {}
        for group in request.get("request_groups") or [request]:
            for name, amount in (group.get("resources") or {}).items():
                found[port.get("device_id") or ""][name] += amount
    return {server: dict(amounts) for server, amounts in found.items()}


def judge_change(state: State, kind: str, change: t.Mapping[str, t.Any]) -> list[str]:
    """Return a sentence for everything that is wrong with a change of a plan, by this state."""
    if change["action"] == "delete_providers":
        return _judge_deletion(state, change)
    wrong = []
    parts = [change, *filter(None, [change.get("partner")])]
    has_gains = any(_subtract(part["after"], part["before"]) for part in parts)
    for part in parts:
        wrong += _judge_losses(state, kind, part, has_gains)
        wrong += _judge_gains(state, part)
    return wrong


def _judge_deletion(state: State, change: t.Mapping[str, t.Any]) -> list[str]:
    deleted = {provider["uuid"] for provider in change["providers"]}
    wrong = []
    for row in state.nodes:
        if row["uuid"] in deleted and not row["deleted"]:
            wrong.append(f"deletes the provider of the compute node {row['host']}")
    for row in state.allocations:
        if row["provider"] in deleted:
            wrong.append(f"deletes a provider on which {row['consumer']} has an allocation")
    return wrong


def _judge_losses(
    state: State, kind: str, part: t.Mapping[str, t.Any], has_gains: bool
) -> list[str]:
    consumer = part["consumer"]
    wrong = []
    for provider, lost in _subtract(part["before"], part["after"]).items():
        root = state.find_root(provider)
        verdict, why = state.classify(consumer, root)
        if verdict == NEEDED and why == "on its own host":
            lost = _find_short(state, consumer, root, lost, part["after"])
        is_wrong = {
            NEEDED: True,
            # Where it belongs is judged as a gain.
            ONLY: not has_gains,
            FOREIGN: kind != "unknown_consumer",
        }
        if lost and is_wrong.get(verdict, False):
            wrong.append(f"takes {lost} on {provider} from {consumer}: {verdict}, {why}")
    return wrong


def _find_short(
    state: State, server: str, root: str, lost: Amounts, after: t.Mapping[str, t.Any]
) -> Amounts:
    """Return what of `lost` a server needs on its own host, because less than enough is left."""
    left: Amounts = collections.Counter()
    for provider, entry in after["allocations"].items():
        if state.find_root(provider) == root:
            for name, amount in entry["resources"].items():
                left["VCPU" if name == "PCPU" else name] += amount
    needed = state.count_needed(server)
    short = {}
    for name, amount in lost.items():
        known = "VCPU" if name == "PCPU" else name
        # Bandwidth that no port requests was left by a port that is gone.
        is_known = known in needed or name.startswith("NET_")
        if not is_known or left[known] < needed[known]:
            short[name] = amount
    return short


def _judge_gains(state: State, part: t.Mapping[str, t.Any]) -> list[str]:
    consumer = part["consumer"]
    wrong = []
    for provider, gained in _subtract(part["after"], part["before"]).items():
        root = state.find_root(provider)
        is_compute = any(row["uuid"] == root for row in state.nodes)
        if is_compute and root not in state.find_own_roots(consumer):
            wrong.append(f"gives {gained} on {provider} to {consumer}, which is not there")
    for row in state.find_live(consumer)[:1]:
        if part["after"]["allocations"] and part["after"]["project_id"] != row["project_id"]:
            wrong.append(f"gives {consumer} the project {part['after']['project_id']}")
    return wrong


def _subtract(
    minuend: t.Mapping[str, t.Any], subtrahend: t.Mapping[str, t.Any]
) -> dict[str, Amounts]:
    """Return by how much the first document of a consumer has more than the second."""
    more = {}
    for provider, entry in minuend["allocations"].items():
        less = subtrahend["allocations"].get(provider, {}).get("resources", {})
        amounts = {name: used - less.get(name, 0) for name, used in entry["resources"].items()}
        amounts = {name: amount for name, amount in amounts.items() if amount > 0}
        if amounts:
            more[provider] = amounts
    return more
