"""What the tests of races do to the minicloud, with the verbs of its scenarios.

It is undone at the end of each module.
"""

import contextlib
import typing as t
import uuid
from pathlib import Path

from minicloud_ctl import databases, holdings, lifecycle, neutron, processes, servers, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.configs import REGIONS
from minicloud_ctl.paths import Paths
from minicloud_ctl.waiting import wait_for

CLAIM = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
_ENDPOINT = ("service_id", "region_id", "interface", "url")
# Placement's project and user of a consumer whose owner it does not know.
NOBODY = "00000000-0000-0000-0000-000000000000"
API, CELL1, CELL2 = "first_nova_api", "first_cell1", "first_cell2"

# How often a detection checks that all cells answer: before the listings, after them, and after the
# lookups.
CELLS_ASKED = 3

# What Nova reads of a cell. Without these tables each of its queries fails as if the database could
# not be reached, and a running process notices at once: it reads a mapping only at its start, and
# keeps an SQLite file open that is moved.
_TABLES = ("instances", "services", "compute_nodes", "migrations", "instance_actions")


class World:
    """The cloud and everything that one module of tests created in it."""

    def __init__(self, home: Path) -> None:
        self.paths = Paths.choose(str(home))
        self.state = states.load(self.paths)
        self.cloud = Cloud(self.state, project="demo")
        self._providers: dict[str, str] = {}
        self._new_names: dict[str, str] = {}
        self._undo = contextlib.ExitStack()

    def close(self) -> None:
        self._undo.close()

    def provider(self, host: str) -> str:
        if host not in self._providers:
            self._providers = self.cloud.hypervisors()
        return self._providers[host]

    def own_host(self, name: str, driver: str = "") -> None:
        """Start a new host, to be killed at will; its service is deleted at the end."""
        lifecycle.start_computes(self.paths, [name], driver=driver)
        self._undo.callback(self._remove_host, name)

    def restart(self, host: str) -> None:
        """End a host's nova-compute and start it, which makes it check everything that it has."""
        lifecycle.kill_compute(self.paths, host)
        lifecycle.start_computes(self.paths, [host])

    def log(self, host: str) -> str:
        """Return the log of a host's nova-compute."""
        return (self.paths.logs / f"nova-compute-{host}.log").read_text(encoding="utf-8")

    def kill(self, host: str) -> None:
        """Let a host die, and let Nova know of it at once."""
        self.crash(host)
        servers.force_down(self.cloud, host)

    def crash(self, host: str) -> None:
        """Let a host die, to which Nova continues to send servers for a while."""
        lifecycle.kill_compute(self.paths, host)

    def delete_service(self, host: str) -> None:
        """Have Nova delete a compute service, as any client would."""
        self.cloud.nova("DELETE", f"/os-services/{self.cloud.compute_services()[host]['id']}")

    def rename_host(self, host: str, new: str) -> None:
        """Rename an own host as operators do: in Nova's databases, while nova-compute is stopped.

        Migrations and instance actions keep the old name. The root provider gets the new one too:
        nova-compute asks Placement for the provider of this name.
        """
        root = self.provider(host)
        lifecycle.kill_compute(self.paths, host)
        node = "UPDATE compute_nodes SET host = ?, hypervisor_hostname = ? WHERE host = ?"
        self.sql(CELL1, node, new, new, host)
        self.sql(CELL1, "UPDATE services SET host = ? WHERE host = ?", new, host)
        self.sql(API, "UPDATE host_mappings SET host = ? WHERE host = ?", new, host)
        self.sql("placement", "UPDATE resource_providers SET name = ? WHERE uuid = ?", new, root)
        # Its file `compute_id` keeps the compute node what it is.
        self.paths.compute(new).mkdir(exist_ok=True)
        identity = (self.paths.compute(host) / "compute_id").read_bytes()
        (self.paths.compute(new) / "compute_id").write_bytes(identity)
        self._new_names[host] = new
        lifecycle.start_computes(self.paths, [new])

    def _remove_host(self, host: str) -> None:
        host = self._new_names.get(host, host)
        lifecycle.kill_compute(self.paths, host)
        if host in self.cloud.compute_services():
            servers.force_down(self.cloud, host)
            self.delete_service(host)

    def boot(
        self,
        host: str,
        flavor: str = "m1.tiny",
        project: str = "demo",
        name: str = "",
        networks: object = "none",
    ) -> str:
        """Boot a live server on `host`, and return its uuid."""
        server = servers.boot(
            Cloud(self.state, project=project),
            name or f"race-{uuid.uuid4()}",
            host,
            flavor,
            networks=networks,
        )
        self.forget(server)
        return server

    def forget(self, *made: str) -> None:
        """Have servers deleted at the end that a test booted in its own way."""
        for server in made:
            self._undo.callback(self._delete, server)

    def bandwidth_port(self, kilobits: int) -> str:
        """Create a port that asks Placement for bandwidth in both directions; returns its uuid."""
        policy = neutron.create_policy(self.cloud, kilobits)
        self._undo.callback(self.cloud.neutron, "DELETE", f"/qos/policies/{policy}")
        port = neutron.create_port(self.cloud, policy)
        self._undo.callback(self._delete_port, port)
        return port

    def ports(self, server: str) -> list[dict[str, t.Any]]:
        """Return the ports of a server in Neutron."""
        return self.cloud.neutron("GET", f"/ports?device_id={server}")["ports"]

    def _delete_port(self, port: str) -> None:
        if self.cloud.neutron("GET", f"/ports?id={port}")["ports"]:
            self.cloud.neutron("DELETE", f"/ports/{port}")

    def boot_samples(self) -> None:
        """Boot the newest servers of a host, on which a reading tests its credentials.

        No other server is looked up before its turn.

        Which host that is depends on which nova-compute has already written its number of servers.
        """
        for host in ("compute-1", "compute-2", "compute-3", "compute-4"):
            for _count in range(3):
                self.boot(host)

    def _delete(self, server: str) -> None:
        moves = [migration["uuid"] for migration in servers.migrations(self.cloud, server)]
        if self.cloud.nova_call("GET", f"/servers/{server}").status == 200:
            servers.delete(self.cloud, server)
        holdings.await_providers(self.cloud, server)
        for migration in moves:
            self.hold(migration, {})

    def live_migrate(self, server: str, host: str) -> None:
        servers.act(self.cloud, server, "os-migrateLive", {"host": host, "block_migration": "auto"})
        servers.await_migration(self.cloud, server, "completed")
        servers.settle(self.cloud, server, host)
        holdings.await_providers(self.cloud, server, self.provider(host))

    def flavor(
        self,
        vcpus: int,
        ram: int,
        disk: int,
        ephemeral: int = 0,
        name: str = "",
        extra_specs: t.Mapping[str, str] | None = None,
    ) -> str:
        """Create a flavor, and return its name."""
        name = name or f"race-{uuid.uuid4()}"
        shape = {
            "name": name,
            "vcpus": vcpus,
            "ram": ram,
            "disk": disk,
            "OS-FLV-EXT-DATA:ephemeral": ephemeral,
        }
        reference = self.cloud.nova("POST", "/flavors", {"flavor": shape})["flavor"]["id"]
        self._undo.callback(self.cloud.nova, "DELETE", f"/flavors/{reference}")
        if extra_specs:
            self.cloud.nova(
                "POST", f"/flavors/{reference}/os-extra_specs", {"extra_specs": dict(extra_specs)}
            )
        return name

    def resize_in_place(self, server: str, host: str, **flavor: int) -> None:
        """Resize a server on its host to these vcpus, ram and disk, and leave it unconfirmed."""
        trait = f"CUSTOM_{host.upper().replace('-', '_')}"
        self.give_trait(trait, [host])
        reference = self.cloud.flavor(
            self.flavor(**flavor, extra_specs={f"trait:{trait}": "required"})
        )
        servers.act(self.cloud, server, "resize", {"flavorRef": reference})
        servers.settle(self.cloud, server, host, "VERIFY_RESIZE")
        servers.await_migration(self.cloud, server, "finished")

    def give_trait(self, trait: str, hosts: t.Iterable[str]) -> None:
        """Give hosts a trait until the end."""
        self.cloud.placement("PUT", f"/traits/{trait}")
        for host in hosts:
            self._change_traits(host, lambda traits: {*traits, trait})
            self._undo.callback(self._change_traits, host, lambda traits: {*traits} - {trait})

    def _change_traits(self, host: str, change: t.Callable[[t.Iterable[str]], set[str]]) -> None:
        path = f"/resource_providers/{self.provider(host)}/traits"
        traits = self.cloud.placement("GET", path)
        self.cloud.placement("PUT", path, {**traits, "traits": sorted(change(traits["traits"]))})

    def ended_events(self, server: str, action: str) -> set[str]:
        """Return the finished events of the newest action of this name."""
        return servers.ended_events(self.cloud, server, action)

    def hold(self, consumer: str, allocations: holdings.Allocations) -> None:
        """Give a consumer exactly this allocation, if it does not have it already."""
        now = holdings.of(self.cloud, consumer)
        if now.allocations != allocations:
            holdings.put(
                self.cloud, consumer, allocations, now if now.project else holdings.somebody()
            )

    def disown(self, server: str) -> holdings.Holding:
        """Let Placement not know who owns a server, as of one from before Rocky.

        Return what it has, with its owner.
        """
        held = holdings.of(self.cloud, server)
        holdings.put(self.cloud, server, held.allocations, holdings.Holding({}, NOBODY, NOBODY))
        return held

    def claim(self, host: str, consumer: str | None = None) -> str:
        """Create a consumer unknown to Nova, with an allocation on `host`."""
        consumer = consumer or str(uuid.uuid4())
        self.hold(consumer, {self.provider(host): CLAIM})
        self._undo.callback(self.hold, consumer, {})
        return consumer

    def fill(self, host: str, resources: t.Mapping[str, int]) -> None:
        """Give a consumer unknown to Nova these amounts on `host`, until the end."""
        consumer = str(uuid.uuid4())
        self.hold(consumer, {self.provider(host): dict(resources)})
        self._undo.callback(self.hold, consumer, {})

    def claim_also(self, server: str, host: str) -> None:
        """Give a server an additional allocation on `host`."""
        self.hold(
            server, {**holdings.of(self.cloud, server).allocations, self.provider(host): CLAIM}
        )

    def sql(self, database: str, statement: str, *values: object) -> None:
        with databases.writing(self.paths, database) as connection:
            assert connection.execute(statement, values).rowcount, (
                f"no row for {statement} {values}"
            )

    @contextlib.contextmanager
    def lost_mapping(self, server: str) -> t.Iterator[None]:
        """Remove a server's instance mapping.

        Nova lists the server and answers 404 to a direct lookup.
        """
        with databases.writing(self.paths, API) as connection:
            row = connection.execute(
                "SELECT * FROM instance_mappings WHERE instance_uuid = ?", [server]
            ).fetchone()
            connection.execute("DELETE FROM instance_mappings WHERE instance_uuid = ?", [server])
        try:
            yield
        finally:
            columns, marks = ", ".join(row.keys()), ", ".join("?" for _value in row)
            self.sql(API, f"INSERT INTO instance_mappings ({columns}) VALUES ({marks})", *row)

    def mapped_hosts(self) -> set[str]:
        """Return the hosts that Nova has assigned to a cell, which no API shows."""
        with databases.writing(self.paths, API) as connection:
            return {row["host"] for row in connection.execute("SELECT host FROM host_mappings")}

    def close_cell(self) -> None:
        """Let every query of the second cell's database fail."""
        self._rename(_TABLES, tuple(f"{table}_away" for table in _TABLES))

    def open_cell(self) -> None:
        self._rename(tuple(f"{table}_away" for table in _TABLES), _TABLES)

    def _rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        with databases.writing(self.paths, CELL2) as connection:
            there = {
                row["name"]
                for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            for before, after in zip(old, new, strict=True):
                if before in there:
                    connection.execute(f"ALTER TABLE {before} RENAME TO {after}")

    def paused(self, service: str) -> contextlib.AbstractContextManager[t.Callable[[], None]]:
        return processes.paused(self.paths, service)

    def assign(self, user: str, project: str, *roles: str) -> None:
        """Give a user, whose password is the name, roles in a project.

        Missing users and roles are created.
        """
        member = self._named("user", user, domain_id="default", password=user)
        place = f"/v3/projects/{self._named('project', project)}/users/{member}/roles"
        for role in roles:
            self.cloud.session.must("keystone", "PUT", f"{place}/{self._named('role', role)}")

    @contextlib.contextmanager
    def service(self, kind: str, url: str) -> t.Iterator[None]:
        """Add a service of this type to the catalogue."""
        must = self.cloud.session.must
        service = must(
            "keystone", "POST", "/v3/services", {"service": {"type": kind, "name": kind}}
        )["service"]["id"]
        endpoint = {
            "service_id": service,
            "region_id": "RegionOne",
            "interface": "public",
            "url": url,
        }
        must("keystone", "POST", "/v3/endpoints", {"endpoint": endpoint})
        try:
            yield
        finally:
            must("keystone", "DELETE", f"/v3/services/{service}")

    @contextlib.contextmanager
    def one_region(self) -> t.Iterator[None]:
        """Delete the endpoints of the other region, which are there even when nobody answers."""
        must, others = self.cloud.session.must, self._endpoints_of_second()
        for endpoint in others:
            must("keystone", "DELETE", f"/v3/endpoints/{endpoint['id']}")
        try:
            yield
        finally:
            for endpoint in others:
                kept = {name: endpoint[name] for name in _ENDPOINT}
                must("keystone", "POST", "/v3/endpoints", {"endpoint": kept})

    @contextlib.contextmanager
    def hidden_region(self) -> t.Iterator[None]:
        """Disable the endpoints of the other region, so that no catalogue has them."""
        others = self._endpoints_of_second()
        for enabled in (False, True):
            for endpoint in others:
                path, change = f"/v3/endpoints/{endpoint['id']}", {"enabled": enabled}
                self.cloud.session.must("keystone", "PATCH", path, {"endpoint": change})
            if not enabled:
                yield

    def _endpoints_of_second(self) -> list[dict[str, t.Any]]:
        listed = self.cloud.session.must("keystone", "GET", "/v3/endpoints")["endpoints"]
        return [known for known in listed if known["region_id"] == REGIONS["second"]]

    def picture(self) -> dict[str, t.Any]:
        """Return the state of Nova and Placement, except for what changes by itself.

        It is equal before and after if and only if nobody changed anything.
        """
        nova, placement = self.cloud.nova, self.cloud.placement
        providers = placement("GET", "/resource_providers")["resource_providers"]
        services = nova("GET", "/os-services")["services"]
        migrations = nova("GET", "/os-migrations", version="2.80")["migrations"]
        claims = {
            known["uuid"]: placement("GET", f"/resource_providers/{known['uuid']}/allocations")[
                "allocations"
            ]
            for known in providers
        }
        return {
            "services": {
                row["id"]: (row["host"], row["status"], row["forced_down"], row["disabled_reason"])
                for row in services
            },
            "nodes": self.cloud.hypervisors(),
            "servers": {
                row["id"]: row["status"]
                for row in nova("GET", "/servers/detail?all_tenants=1")["servers"]
            },
            "migrations": {row["uuid"]: row["status"] for row in migrations},
            "providers": {
                row["uuid"]: (row["name"], row["parent_provider_uuid"]) for row in providers
            },
            "claims": claims,
        }

    def _named(self, kind: str, name: str, **made_with: str) -> str:
        found = self.cloud.session.must("keystone", "GET", f"/v3/{kind}s?name={name}")[f"{kind}s"]
        if found:
            return found[0]["id"]
        return self.cloud.session.must(
            "keystone", "POST", f"/v3/{kind}s", {kind: {"name": name, **made_with}}
        )[kind]["id"]

    @contextlib.contextmanager
    def without_placement(self) -> t.Iterator[None]:
        with lifecycle.without_placement(self.paths):
            yield

    @contextlib.contextmanager
    def nova_setting(self, lines: str) -> t.Iterator[None]:
        """Add lines to the configuration file that all of Nova reads last.

        Nova-api restarts with it, and new services use it too.
        """
        local = self.paths.etc / "nova-first" / "local.conf"
        before = local.read_text()
        try:
            local.write_text(f"{before}\n{lines}")
            self._restart_nova_api()
            yield
        finally:
            local.write_text(before)
            self._restart_nova_api()

    def _restart_nova_api(self) -> None:
        lifecycle.restart(
            self.paths, [services.nova_api(self.paths, states.load(self.paths), "first")]
        )

    def wait(self, what: str, probe: t.Callable[[], t.Any]) -> t.Any:
        return wait_for(what, probe)
