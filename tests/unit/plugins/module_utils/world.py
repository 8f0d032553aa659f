"""A small cloud in memory, from which snapshots are made as the readers would make them.

They are input for the pure rooms.
"""

import dataclasses as d
import types
import typing as t

from .....plugins.module_utils._core.facts.agreement import list_host_names
from .....plugins.module_utils._core.facts.moves import list_relevant_request_ids
from .....plugins.module_utils._core.models.change import Change
from .....plugins.module_utils._core.models.nova import (
    COLD_MIGRATION_TYPES,
    MOVING_STATUSES,
    PLACING_ACTIONS,
    REBUILD_ACTION,
    UNSHELVE_ACTION,
    Action,
    ActionEvent,
    Flavor,
    Hypervisor,
    Migration,
    Server,
    Service,
)
from .....plugins.module_utils._core.models.other_services import (
    Attachment,
    HostTree,
    RootVolume,
    ServerPort,
    TreeProvider,
)
from .....plugins.module_utils._core.models.placement import (
    Allocation,
    Inventory,
    Provider,
    ProviderDetails,
    Totals,
    sum_amounts,
)
from .....plugins.module_utils._core.models.snapshot import (
    Answer,
    Cloud,
    Evidence,
    HostAllocations,
    Listings,
    Snapshot,
)

T = t.TypeVar("T")

PROJECT = "project-of-others"
OUR_PROJECT = "project-of-ours"
PLENTY = Inventory(
    total=1000, reserved=0, min_unit=1, max_unit=1000, step_size=1, allocation_ratio=1.0
)
CLAIM = types.MappingProxyType({"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1})
FLAVOR = Flavor(vcpus=1, ram=512, disk=1, ephemeral=0, swap=0, extra_specs={})
OLD = 30 * 86400
NOW = "2026-11-20T12:00:00Z"
LATER = "2026-11-20T13:00:00.000000"
# When the services answer: what was done to a server is older than the minimum age by then.
ASKED_AT = "2026-11-20T15:00:00Z"


def answer(request: str, status: int, value: T | None = None) -> Answer[T]:
    return Answer(request, "2.68", status, ASKED_AT, value)


class World:
    """Hosts, servers, migrations and their allocations. Methods return uuids."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.nodes: dict[str, Hypervisor] = {}
        self.servers: dict[str, Server] = {}
        self.deleted: dict[str, Server] = {}
        self.migrations: dict[str, Migration] = {}
        self.unlisted_migrations: set[str] = set()
        self.left_out_migrations: set[str] = set()
        self.unmapped: set[str] = set()
        # By root, what is in use of it and in no listing.
        self.unlisted: dict[str, dict[str, int]] = {}
        self.marked_deleted: set[str] = set()
        self.were_novas: set[str] = set()
        self.allocations: dict[str, Allocation] = {}
        self.actions: dict[str, tuple[Action, ...]] = {}
        self.services: list[Service] = []
        self.ports: dict[str, tuple[ServerPort, ...]] = {}
        self.volume_properties: dict[str, dict[str, str]] = {}
        self.traits: dict[str, frozenset[str]] = {}
        self.stock: dict[str, dict[str, Inventory]] = {}
        self.statuses: dict[tuple[str, str], int] = {}
        # Hosts of a cell that the listings omit.
        self.unlisted_hosts: set[str] = set()
        self._count = 0

    def uuid(self) -> str:
        self._count += 1
        return f"{self._count:08x}-0000-4000-8000-000000000000"

    def provider(self, name: str, parent: str | None = None, sharing: bool = False) -> str:
        uuid = self.uuid()
        root = self.providers[parent].root if parent else uuid
        self.providers[uuid] = Provider(uuid, name, 1, root, parent, sharing)
        return uuid

    def host(self, name: str, service: str | None = None) -> str:
        """Add a compute node with its root provider; several of one `service` are ironic's."""
        root = self.provider(name)
        self.nodes[root] = Hypervisor(root, name, service or name, "up", "enabled", ())
        self.services.append(Service("nova-compute", service or name, "enabled", "up"))
        return root

    def server(
        self, root: str | None = None, *holds: str, status: str = "ACTIVE", **fields: t.Any
    ) -> str:
        """Add a live server on the compute node `root`, with an allocation on each of `holds`."""
        uuid = self.uuid()
        node = self.nodes[root] if root else None
        server = Server(
            uuid=uuid,
            name=f"server-{self._count}",
            status=status,
            project=PROJECT,
            user="user",
            host=node.host if node else None,
            node=node.name if node else None,
            task_state=None,
            task_known=True,
            host_known=True,
            created=NOW,
            updated=NOW,
            terminated_at=None,
            image="image",
            flavor=FLAVOR,
            image_properties={},
            root_device="/dev/vda",
        )
        self.servers[uuid] = d.replace(server, **fields)
        self.hold(uuid, *holds)
        return uuid

    def delete(self, server: str, remembered: bool = True) -> None:
        """Delete a server as Nova does.

        Its allocation stays, which is the fault to be found.
        """
        gone = self.servers.pop(server)
        if remembered:
            self.deleted[server] = d.replace(gone, status="DELETED", terminated_at=NOW)

    def delete_by_hand(self, server: str) -> None:
        """Mark the row of a server as deleted, but not as Nova does.

        It is in no listing, and its actions are still shown.
        """
        del self.servers[server]
        self.marked_deleted.add(server)
        if server not in self.actions:
            self.did(server, "create", NOW)

    def remove_host(self, root: str) -> None:
        """Delete the compute service of a host.

        Its provider stays, as it does while somebody has an allocation on it.
        """
        gone = self.nodes.pop(root)
        self.services = [service for service in self.services if service.host != gone.host]
        self.were_novas.add(root)

    def rename_host(
        self, root: str, host: str | None = None, node: str | None = None, provider: bool = False
    ) -> None:
        """Rename a compute node and the service on it, with all servers there.

        Migrations and instance actions keep the old names.

        provider: whether its root provider gets the name of the compute node too.
        """
        old = self.nodes[root]
        new = d.replace(old, host=host or old.host, name=node or old.name)
        self.nodes[root] = new
        self.services = [
            d.replace(service, host=new.host) if service.host == old.host else service
            for service in self.services
        ]
        for uuid, row in self.servers.items():
            if (row.host, row.node) == (old.host, old.name):
                self.servers[uuid] = d.replace(row, host=new.host, node=new.name)
        if provider:
            self.providers[root] = d.replace(self.providers[root], name=new.name)

    def migration(
        self, server: str, source: str, dest: str, status: str, *holds: str, type: str = "migration"
    ) -> str:
        """Add a migration of `server` between two compute nodes, newer than earlier ones.

        Its consumer has an allocation on each of `holds`. Nova evacuates only from a host that is
        down.
        """
        uuid = self.uuid()
        here, there = self.nodes.get(source), self.nodes.get(dest)
        self.migrations[uuid] = Migration(
            uuid=uuid,
            server=server,
            type=type,
            status=status,
            source_compute=here.host if here else self.providers[source].name,
            source_node=here.name if here else self.providers[source].name,
            dest_compute=there.host if there else None,
            dest_node=there.name if there else None,
            created_at=self._time(),
            updated_at=self._time(),
        )
        if here and type == "evacuation" and status != "completed":
            self.set_service(source, "down")
        self.hold(uuid, *holds)
        return uuid

    def set_service(self, root: str, state: str) -> None:
        """Have nova-compute of the compute node `root` be up or down."""
        host = self.nodes[root].host
        self.services = [
            d.replace(service, state=state) if service.host == host else service
            for service in self.services
        ]

    def hold(
        self,
        consumer: str,
        *providers: str,
        amounts: t.Mapping[str, int] = CLAIM,
        age: int | None = OLD,
        type: str | None = None,
    ) -> str:
        """Add an allocation of `amounts` on each of `providers`."""
        held = dict(self.allocations[consumer].resources) if consumer in self.allocations else {}
        held.update((provider, dict(amounts)) for provider in providers)
        if held:
            self.allocations[consumer] = Allocation(consumer, 1, PROJECT, "user", type, held, age)
        return consumer

    def did(
        self,
        server: str,
        action: str,
        *finished: str | None,
        event: str | None = None,
        host: str | None = None,
    ) -> None:
        """Record a newest action of a server, by `host` or the one where it is.

        With an event for each end in `finished` (None while it runs).
        """
        shelving = {
            "shelve": "compute_shelve_instance",
            "shelveOffload": "compute_shelve_offload_instance",
        }
        event = event or {**PLACING_ACTIONS, **shelving}.get(action, f"compute_{action}")
        host = host or next(iter(self._hosts_behind(server)), None)
        events = tuple(
            ActionEvent(event, NOW, end, "Success" if end else None, host) for end in finished
        )
        known = self.actions.get(server, ())
        self._count += 1
        self.actions[server] = (
            Action(action, f"req-{len(known)}", "user", self._time(), None, events),
            *known,
        )

    def fail_newest_action(self, server: str) -> None:
        """Have each event of the newest action of a server end with an error."""
        newest, *older = self.actions[server]
        failed = tuple(d.replace(event, result="Error") for event in newest.events)
        self.actions[server] = (d.replace(newest, events=failed), *older)

    def pass_time(self) -> None:
        """Let a minute pass, as between two moves of a server."""
        self._count += 60

    def _time(self) -> str:
        """Return a later time than any before."""
        return f"2026-11-20T12:{self._count // 60:02}:{self._count % 60:02}.000000"

    def recorded(
        self,
        migration: str,
        *events: tuple[str, str, str],
        action: str = "migrate",
        in_copy: bool = False,
    ) -> None:
        """Record the newest action of a migration's server, in which conductor created it.

        `events` by name, root of the host and result.

        in_copy: whether the driver of the source gave up the copy.
        """
        move = self.migrations[migration]
        began = ActionEvent(
            "conductor_migrate_server", move.created_at, move.created_at, "Success", "conductor"
        )
        rows = (
            ActionEvent(
                event,
                move.created_at,
                move.created_at,
                result,
                self.nodes[root].host,
                in_copy and event == "compute_resize_instance",
            )
            for event, root, result in events
        )
        self._act(move.server, action, move.created_at, began, *rows)

    def recorded_later(
        self,
        server: str,
        action: str,
        event: str,
        root: str,
        result: str = "Success",
        at: str = LATER,
    ) -> None:
        """Record the newest action of a server, later than all others.

        It has one event on a host.
        """
        self._act(server, action, at, ActionEvent(event, at, at, result, self.nodes[root].host))

    def _act(self, server: str, action: str, at: str | None, *events: ActionEvent) -> None:
        known = self.actions.get(server, ())
        self.actions[server] = (
            Action(action, f"req-{len(known)}", "user", at, None, events),
            *known,
        )

    def stranger(self, *providers: str, **fields: t.Any) -> str:
        """Add a consumer that Nova does not know."""
        return self.hold(self.uuid(), *providers, **fields)

    def apply(self, change: Change) -> None:
        """Apply `change` as Placement does.

        The consumer then has the allocation in its document, or is deleted.
        """
        after = change.after
        left = {provider: share["resources"] for provider, share in after["allocations"].items()}
        self.allocations.pop(change.consumer, None)
        if left:
            owner = (after["project_id"], after["user_id"], after.get("consumer_type"))
            self.allocations[change.consumer] = Allocation(
                change.consumer, (change.generation or 0) + 1, *owner, left, OLD
            )
        if change.partner:
            self.apply(change.partner)

    def answers(self, question: str, uuid: str, status: int) -> None:
        """Let Nova answer a `question` about `uuid` with another status than its own.

        The question is a field of Evidence.
        """
        self.statuses[question, uuid] = status

    def snapshot(self, **changes: t.Any) -> Snapshot:
        subjects = {
            *self.allocations,
            *self.servers,
            *self.migrations,
            *(migration.server for migration in self.migrations.values()),
        }
        snapshot = Snapshot(
            cloud=Cloud("http://placement", "http://nova", "RegionOne", OUR_PROJECT, ()),
            started_at=NOW,
            finished_at=NOW,
            providers=dict(self.providers),
            allocations={
                consumer: allocation.resources for consumer, allocation in self.allocations.items()
            },
            services=answer("GET /os-services", 200, tuple(self.services)),
            hypervisors=answer(
                "GET /os-hypervisors/detail",
                200,
                tuple(map(self._with_servers, self.nodes.values())),
            ),
            migrations=answer("GET /os-migrations", 200, self._listed_migrations()),
            samples=tuple(
                answer(f"GET /servers/{uuid}", 200, server)
                for uuid, server in sorted(self.servers.items())[:1]
            ),
            control=answer("GET /servers/detail?deleted=True", 200, ()) if self.servers else None,
            candidates=(
                *self.allocations,
                *(
                    uuid
                    for uuid, server in self.servers.items()
                    if server.host and uuid not in self.allocations
                ),
            ),
            evidence={uuid: self._evidence(uuid) for uuid in sorted(subjects)},
            services_after=answer("GET /os-services", 200, tuple(self.services)),
            host_trees={
                root: self._answer("host_tree", root, 200, self.host_tree(root))
                for root in self.nodes
                if root in self.providers
            },
            host_allocations={root: self._host_allocations(root) for root in self.nodes},
            host_totals={root: self.totals(root) for root in self.nodes},
            other_novas=answer("GET /endpoints", 200, ()),
            unlisted_moves=self._answer("unlisted_moves", "", 200, self._list_unlisted_moves()),
            host_lookups={name: self._lookup(name) for name in self._names_without_node()},
            details={
                root: ProviderDetails(traits=frozenset({"COMPUTE_NODE"}))
                for root in self.were_novas
            },
        )
        return d.replace(snapshot, **changes)

    def listings(self, **changes: t.Any) -> Listings:
        """The first part of a reading: a snapshot without all that follows the listings."""
        snapshot = self.snapshot()
        fields = {field.name: getattr(snapshot, field.name) for field in d.fields(Listings)}
        return Listings(**{**fields, **changes})

    def allocations_of_tree(self, root: str) -> dict[str, dict[str, t.Any]]:
        """Return the allocations on the providers of a tree, by consumer."""
        tree: dict[str, dict[str, t.Any]] = {}
        for consumer, allocation in self.allocations.items():
            for provider, amounts in allocation.resources.items():
                if provider in self.providers and self.providers[provider].root == root:
                    tree.setdefault(consumer, {})[provider] = amounts
        return tree

    def _host_allocations(self, root: str) -> HostAllocations:
        host = self.nodes[root].host
        servers = tuple(uuid for uuid, server in self.servers.items() if server.host == host)
        return HostAllocations(
            tree=self._answer("tree_allocations", root, 200, self.allocations_of_tree(root)),
            servers=self._answer("host_servers", root, 200, servers),
            actions={
                uuid: self._answer("actions", uuid, 200, self.actions.get(uuid, ()))
                for uuid in servers
            },
            lookups={
                uuid: self._answer("server", uuid, 200, self.servers[uuid]) for uuid in servers
            },
        )

    def totals(self, provider: str) -> Answer[Totals]:
        """Return what is in use on a provider, and what of it is listed."""
        listed = sum_amounts(held.resources.get(provider, {}) for held in self.allocations.values())
        used = sum_amounts((listed, self.unlisted.get(provider, {})))
        return self._answer("host_totals", provider, 200, Totals(used, listed))

    def _list_unlisted_moves(self) -> tuple[str, ...]:
        """Return the servers that are being moved although Nova lists no such migration."""
        moving = {
            migration.server for migration in self._listed_migrations() if not migration.ended
        }
        return tuple(
            uuid
            for uuid, server in self.servers.items()
            if server.status in MOVING_STATUSES and uuid not in moving
        )

    def _names_without_node(self) -> list[str]:
        """Return the possible names of hosts behind root providers without a compute node."""
        roots = [
            provider
            for uuid, provider in self.providers.items()
            if provider.is_host and uuid not in self.nodes
        ]
        return [name for root in roots for name in list_host_names(root.name)]

    def _lookup(self, name: str) -> Answer[bool]:
        return answer(
            f"GET /os-hosts/{name}", *((200, True) if name in self.unlisted_hosts else (404, None))
        )

    def _listed_migrations(self) -> tuple[Migration, ...]:
        """Return the whole listing.

        Nova omits what is in a cell that is too slow for it (`left_out_migrations`).
        """
        return tuple(
            migration
            for uuid, migration in self.migrations.items()
            if uuid not in self.left_out_migrations
        )

    def _hosts_behind(self, consumer: str) -> list[str]:
        held = self.allocations[consumer].resources if consumer in self.allocations else ()
        roots = {
            self.providers[uuid].root
            for uuid in held
            if uuid in self.providers and not self.providers[uuid].sharing
        }
        names = {
            **{uuid: provider.name for uuid, provider in self.providers.items()},
            **{uuid: node.host for uuid, node in self.nodes.items()},
        }
        return sorted(names.get(root, root) for root in roots)

    def _migrations_at(self, host: str) -> tuple[Migration, ...]:
        return tuple(
            migration
            for migration in self.migrations.values()
            if host in (migration.source_compute, migration.dest_compute)
        )

    def _with_servers(self, node: Hypervisor) -> Hypervisor:
        return d.replace(
            node,
            servers=(
                *node.servers,
                *(uuid for uuid, server in self.servers.items() if server.host == node.host),
            ),
        )

    def _evidence(self, uuid: str) -> Evidence:
        nothing = Allocation(uuid, None, None, None, None, {}, None)
        allocation = answer(f"GET /allocations/{uuid}", 200, self.allocations.get(uuid, nothing))
        moves = tuple(
            migration for migration in self.migrations.values() if migration.server == uuid
        )
        server = None if uuid in self.unmapped else self.servers.get(uuid)
        asked = {
            "migrations": self._answer("migrations", uuid, 200, moves),
            "server": self._answer("server", uuid, 200 if server else 404, server),
        }
        if server:
            root = next(
                (
                    node.uuid
                    for node in self.nodes.values()
                    if (node.host, node.name) == (server.host, server.node)
                ),
                None,
            )
            asked["shape"] = self._answer("shape", uuid, 200, server)
            ports = self.ports.get(uuid, ())
            asked["interfaces"] = self._answer(
                "interfaces", uuid, 200, tuple(port.uuid for port in ports)
            )
            asked["server_ports"] = self._answer("server_ports", uuid, 200, ports)
            asked.update(self._volumes(uuid, server))
            asked.update(self._former_tree(uuid, server, root))
        if server:
            asked["actions"] = self._answer("actions", uuid, 200, self.actions.get(uuid, ()))
        if server and not server.host:
            asked["last_actions"] = tuple(
                self._answer("last_actions", uuid, 200, action)
                for action in self._last_actions(uuid)
            )
        elif server:
            did = self.actions.get(uuid, ())
            placing = (UNSHELVE_ACTION, REBUILD_ACTION)
            wanted = {action.request_id for action in did if action.action in placing}
            failed = next((move for move in moves if self._holds_host_of(move, server)), None)
            if failed:
                wanted.update(list_relevant_request_ids(did, failed.created_at))
            if any(move.is_without_nodes for move in moves):
                wanted.update(one.request_id for one in did if one.action == "live-migration")
            asked["last_actions"] = tuple(
                self._answer("last_actions", uuid, 200, action)
                for action in did
                if action.request_id in wanted
            )
        if asked["server"].status == 404:
            gone = self.deleted.get(uuid)
            deletion = (Action("delete", "req-1", "admin", NOW, None),)
            known = uuid in self.migrations or uuid in self.unlisted_migrations
            asked["deleted_listing"] = self._answer(
                "deleted_listing", uuid, 200, (gone,) if gone else ()
            )
            told = (
                deletion
                if gone
                else self.actions.get(uuid, ())
                if uuid in self.marked_deleted
                else None
            )
            asked["actions"] = self._answer("actions", uuid, 404 if told is None else 200, told)
            asked["marker"] = self._answer("marker", uuid, 200 if known else 400, known or None)
            if not gone:
                asked["host_migrations"] = tuple(
                    self._answer("host_migrations", uuid, 200, self._migrations_at(host))
                    for host in self._hosts_behind(uuid)
                )
        return Evidence(uuid, allocation, **asked)

    def _volumes(self, uuid: str, server: Server) -> dict[str, t.Any]:
        """Return what is asked of Nova and Cinder about the volumes; the first is the root disk."""
        if not server.volumes:
            return {}
        devices = ["/dev/vda", "/dev/vdb", "/dev/vdc"]
        if server.image:
            devices = devices[1:]
        attachments = tuple(
            Attachment(volume, device)
            for volume, device in zip(server.volumes, devices, strict=False)
        )
        root = server.volumes[0]
        properties = self.volume_properties.get(root, {})
        return {
            "attachments": self._answer("attachments", uuid, 200, attachments),
            "root_volume": self._answer("root_volume", uuid, 200, RootVolume(root, properties)),
        }

    def host_tree(self, root: str) -> HostTree:
        """The tree of a host, with all sharing providers, and with what `stock` says of each."""
        providers = {}
        for uuid, provider in self.providers.items():
            if provider.root != root and not provider.sharing:
                continue
            classes = dict.fromkeys(CLAIM, PLENTY) if uuid == root else self._held_of(uuid)
            providers[uuid] = TreeProvider(
                uuid=uuid,
                name=provider.name,
                parent=provider.parent,
                sharing=provider.sharing,
                inventories=self.stock.get(uuid, classes),
                traits=self.traits.get(uuid, frozenset()),
            )
        return HostTree(root, providers)

    def _held_of(self, provider: str) -> dict[str, Inventory]:
        classes: set[str] = set()
        for allocation in self.allocations.values():
            classes |= set(allocation.resources.get(provider, ()))
        return dict.fromkeys(sorted(classes), PLENTY)

    def _former_tree(self, uuid: str, server: Server, own: str | None) -> dict[str, t.Any]:
        """Return what is asked if the only allocation is on a tree without a compute node."""
        held = self.allocations[uuid].resources if uuid in self.allocations else {}
        roots = {self.providers[provider].root for provider in held if provider in self.providers}
        if own is None or len(roots) != 1 or not roots.isdisjoint(self.nodes):
            return {}
        (former,) = roots
        tree = self.allocations_of_tree(former)
        used: dict[str, int] = {}
        for allocation in self.allocations.values():
            for cls, amount in allocation.resources.get(own, {}).items():
                used[cls] = used.get(cls, 0) + amount
        here = tuple(key for key, one in self.servers.items() if one.host == server.host)
        return {
            "former_tree": self._answer("former_tree", uuid, 200, tree),
            "host_servers": self._answer("host_servers", uuid, 200, here),
            "own_usages": self._answer("own_usages", uuid, 200, used),
        }

    def _last_actions(self, uuid: str) -> list[Action]:
        """Return the newest ten, back to one that can place the server and that a host began.

        Or back to a finished shelve and then the one that placed it.
        """
        did, asked = self.actions.get(uuid, ()), []
        for number, action in enumerate(did[:10]):
            asked.append(action)
            if action.placing_hosts:
                break
            if action.shelving_hosts:
                asked += [older for older in did[number:] if older.action in PLACING_ACTIONS][:1]
                break
        return asked

    def _holds_host_of(self, move: Migration, server: Server | None) -> bool:
        """Return whether an ended cold migration has the allocation on the server's host.

        The server itself has none there.
        """
        root = next(
            (
                node.uuid
                for node in self.nodes.values()
                if server and (node.host, node.name) == (server.host, server.node)
            ),
            None,
        )
        held = {
            uuid: self.allocations[uuid].resources if uuid in self.allocations else {}
            for uuid in (move.uuid, move.server)
        }
        return (
            move.ended
            and move.type in COLD_MIGRATION_TYPES
            and root in held[move.uuid]
            and root not in held[move.server]
        )

    def _answer(self, question: str, uuid: str, status: int, value: t.Any) -> Answer[t.Any]:
        forced = self.statuses.get((question, uuid), status)
        return answer(f"{question} {uuid}", forced, value if forced == status else None)
