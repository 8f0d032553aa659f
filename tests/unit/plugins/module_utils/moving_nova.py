"""A Nova that moves servers, behind the adapter of a session.

The code under test sends its own requests to it. A hook runs before or after a request, and can
raise, which loses the request or its answer.
"""

import dataclasses as d
import json
import re
import types
import typing as t

from .....plugins.module_utils._common.errors import CloudError
from .....plugins.module_utils._core.clients.api import Api

HOSTS = ("compute-1", "compute-2", "compute-3")
NODES = {host: f"00000000-0000-0000-0000-00000000000{number}" for number, host in enumerate(HOSTS)}
CHILD, POOL = "child", "pool"
PROVIDERS = {
    **NODES,
    CHILD: "00000000-0000-0000-0000-0000000000c1",
    POOL: "00000000-0000-0000-0000-0000000000d1",
}
ADMIN = "admin"
FLAVOR = {
    "original_name": "m1.tiny",
    "vcpus": 1,
    "ram": 512,
    "disk": 1,
    "ephemeral": 0,
    "swap": 0,
    "extra_specs": {},
}

_LONG_AGO = "Thu, 19 Nov 2026 03:00:00 GMT"

_EMPTY_LISTINGS = {
    "/os-server-groups": "server_groups",
    "/os-aggregates": "aggregates",
    "/flavors/detail": "flavors",
}

# How often Nova is asked for a server before its move goes on by a step.
_LOOKS = 2


@d.dataclass
class Hook:
    """Runs for the `nth` request that matches; 0 stands for each of them."""

    method: str
    path: re.Pattern[str]
    nth: int
    before: t.Callable[[], None] | None
    after: t.Callable[[], None] | None
    body: str
    seen: int = 0


class Refused(Exception):
    """Nova refuses a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class MovingNova:
    """Servers, migrations and actions, as Nova's API shows them."""

    def __init__(self) -> None:
        self.servers: dict[str, dict[str, t.Any]] = {}
        self.migrations: list[dict[str, t.Any]] = []
        self.actions: dict[str, list[dict[str, t.Any]]] = {}
        self.services = {
            host: {
                "id": f"id-of-{host}",
                "binary": "nova-compute",
                "host": host,
                "status": "enabled",
                "state": "up",
                "zone": "nova",
                "forced_down": False,
            }
            for host in HOSTS
        }
        # All requests, and those of them that change something.
        self.requests: list[str] = []
        self.writes: list[tuple[str, str]] = []
        self.user = ADMIN
        # Where the next moves go; otherwise to the host after the present one.
        self.destination: str | None = None
        self.fails: set[str] = set()
        # The hosts whose nova-compute does what Nova asks of it.
        self.living = set(HOSTS)
        # The names of servers whose moves Nova gives up after it has handed them to the hosts, with
        # the status that the server gets.
        self.cut_off: dict[str, str] = {}
        # The servers whose guest does not run where Nova records.
        self.strays: set[str] = set()
        # The hosts with allocations of servers that have them not on their host alone.
        self.held: dict[str, tuple[str, ...]] = {}
        # The servers whose allocation is a bare metal node.
        self.bare_metal: set[str] = set()
        # The hosts that have room for every server.
        self.roomy: tuple[str, ...] = ()
        self._hooks: list[Hook] = []
        self._refused: set[str] = set()
        self._steps: dict[str, list[t.Callable[[], None]]] = {}
        self._looks: dict[str, int] = {}
        self._second = 0
        self._actions = 0
        self._repeats = False
        self.lost_ids = False

    # For the tests

    def boot(self, name: str, status: str = "ACTIVE", host: str = "compute-1") -> str:
        uuid = f"uuid-of-{name}"
        self.servers[uuid] = {
            "id": uuid,
            "name": name,
            "status": status,
            "tenant_id": "project",
            "user_id": "user",
            "OS-EXT-SRV-ATTR:host": host,
            "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
            "OS-EXT-STS:task_state": None,
            "image": {"id": "image"},
            "flavor": FLAVOR,
        }
        self.actions[uuid] = []
        return uuid

    def host(self, uuid: str) -> str:
        return str(self.servers[uuid]["OS-EXT-SRV-ATTR:host"])

    def status(self, uuid: str) -> str:
        return str(self.servers[uuid]["status"])

    def on(
        self,
        method: str,
        path: str,
        nth: int = 1,
        before: t.Callable[[], None] | None = None,
        after: t.Callable[[], None] | None = None,
        body: str = "",
    ) -> None:
        self._hooks.append(Hook(method, re.compile(path), nth, before, after, body))

    def session(self) -> t.Any:
        """Return a session whose Nova this is, with a Placement that has what it needs."""
        return types.SimpleNamespace(
            compute=Api("Nova", self, (2, 53)),
            network=None,
            project=None,
            roles=frozenset(),
            placement=Api("Placement", MovingPlacement(self), (1, 14)),
        )

    def add_migration(self, uuid: str, type_: str, status: str, to: str) -> dict[str, t.Any]:
        """Have a migration from the first host that ended before the test."""
        row = {
            "uuid": f"migration-{len(self.migrations)}",
            "instance_uuid": uuid,
            "migration_type": type_,
            "status": status,
            "source_compute": HOSTS[0],
            "source_node": HOSTS[0],
            "dest_compute": to,
            "dest_node": to,
            "created_at": "2026-11-20T02:00:00",
            "updated_at": "2026-11-20T02:01:00",
        }
        self.migrations.insert(0, row)
        return row

    def delete(self, uuid: str) -> None:
        del self.servers[uuid]
        self._steps.pop(uuid, None)

    def resize_as_user(self, uuid: str) -> None:
        """Have the user of a server resize it, and leave it unconfirmed."""
        self._act(uuid, "resize", None, "somebody")
        self.finish(uuid)

    def confirm_as_user(self, uuid: str) -> None:
        self._act(uuid, "confirmResize", None, "somebody")
        self.finish(uuid)

    def repeat_next(self) -> None:
        """Have a proxy send the next request twice, and lose the headers of Nova."""
        self._repeats = True
        self.lost_ids = True

    def move_by_hand(self, uuid: str) -> None:
        """Have the administrator, who also runs the drain, move a server, and let Nova end that."""
        self.request_as_user(uuid)
        self.finish(uuid)

    def request_as_user(self, uuid: str) -> None:
        """Have the administrator begin to move a server."""
        action = "migrate" if self.status(uuid) == "SHUTOFF" else "os-migrateLive"
        self._act(uuid, action, None, ADMIN)

    def give_up(self, uuid: str) -> None:
        """Let Nova end a request before it makes a migration."""
        self._steps.pop(uuid)
        self.servers[uuid]["OS-EXT-STS:task_state"] = None

    def abort_as_user(self, uuid: str, status: str) -> None:
        """Have a live migration aborted, which then has this status."""
        self._steps.pop(uuid).pop(0)()
        self.migrations[0]["status"] = status
        self.servers[uuid]["OS-EXT-STS:task_state"] = None
        self._record_action(uuid, "live_migration_cancel", "somebody")

    def control_guest(self, uuid: str, action: str, event: str, result: str, host: str) -> None:
        """Have a host do something with the guest of a server that somebody asks for."""
        self._record_action(uuid, action, "somebody")
        times = {"start_time": self._format_now(), "finish_time": self._format_now()}
        row = {"event": event, "result": result, "host": host, **times}
        self.actions[uuid][0]["events"] = [row]

    def refuse(self, path: str) -> None:
        """Have each later request for a path end with an error of the server."""
        self._refused.add(path)

    def wait(self, uuid: str, steps: int) -> None:
        """Let Nova take longer for what it is doing with a server."""
        self._steps[uuid][1:1] = [lambda: None] * steps

    def stand_still(self, uuid: str, status: str) -> None:
        """Let nobody go on with a move, whose migration has this status."""
        self._steps[uuid].pop(0)()
        self._steps.pop(uuid)
        self.migrations[0]["status"] = status

    def finish(self, uuid: str) -> None:
        """Let Nova end what it is doing with a server."""
        for step in self._steps.pop(uuid, []):
            step()

    # The adapter

    def get_endpoint(self) -> str:
        return "http://nova"

    def get_endpoint_data(self) -> t.Any:
        return types.SimpleNamespace(max_microversion=(2, 96))

    def request(self, url: str, method: str, **options: t.Any) -> t.Any:
        path = url.removeprefix("http://nova")
        body = options.get("json")
        matching = []
        for hook in self._hooks:
            if hook.method != method or not hook.path.search(path):
                continue
            if hook.body and hook.body not in json.dumps(body):
                continue
            hook.seen += 1
            if hook.nth in (0, hook.seen):
                matching.append(hook)
        self.requests.append(f"{method} {path}")
        for hook in matching:
            if hook.before:
                hook.before()
        status, answer, headers = self._answer(method, path, options.get("params") or {}, body)
        for hook in matching:
            if hook.after:
                hook.after()
        date = f"Fri, 20 Nov 2026 03:{self._second // 60:02}:{self._second % 60:02} GMT"
        return types.SimpleNamespace(
            status_code=status,
            headers={"Date": date, **headers},
            content=b"x" if answer is not None else b"",
            json=lambda: json.loads(json.dumps(answer)),
        )

    def _answer(
        self, method: str, path: str, params: t.Mapping[str, str], body: t.Any
    ) -> tuple[int, t.Any, dict[str, str]]:
        self._second += 1
        try:
            if method == "GET":
                return 200, self._read(path, params), {}
            uuid = path.split("/")[2]
            (action, arguments), *_rest = body.items()
            self.writes.append((uuid, action))
            request_id = self._act(uuid, action, arguments, self.user)
            if self._repeats:
                self._repeats = False
                raise Refused(409, "it is in task_state moving")
            return 202, None, {} if self.lost_ids else {"x-openstack-request-id": request_id}
        except Refused as refusal:
            key = "itemNotFound" if refusal.status == 404 else "conflictingRequest"
            headers = {"x-openstack-request-id": f"req-{len(self.requests)}-refused"}
            if self.lost_ids:
                headers = {}
            return refusal.status, {key: {"message": str(refusal)}}, headers

    def _read(self, path: str, params: t.Mapping[str, str]) -> t.Any:
        if path in self._refused:
            raise Refused(503, "the database is down")
        parts = path.strip("/").split("/")
        if path in _EMPTY_LISTINGS:
            return {_EMPTY_LISTINGS[path]: []}
        if parts == ["os-services"]:
            return {"services": list(self.services.values())}
        if parts == ["os-hypervisors", "detail"]:
            return {"hypervisors": [] if "marker" in params else list(map(_build_node, HOSTS))}
        if parts == ["os-migrations"]:
            rows = [row for row in self.migrations if self._is_asked_for(row, params)]
            return {"migrations": rows if "marker" not in params else []}
        if parts == ["servers", "detail"]:
            on_host = [
                row
                for row in self.servers.values()
                if row["OS-EXT-SRV-ATTR:host"] == params["host"]
            ]
            return {"servers": on_host if "marker" not in params else []}
        uuid = parts[1]
        if parts[2:] == ["diagnostics"]:
            if self.host(uuid) not in self.living:
                raise Refused(500, "MessagingTimeout")
            if uuid in self.strays:
                raise Refused(409, "its power state is NOSTATE")
            return {"state": "running"}
        if parts[2:] == ["os-instance-actions"]:
            return {"instanceActions": self.actions[uuid]}
        if parts[2:3] == ["os-instance-actions"]:
            rows = [row for row in self.actions[uuid] if row["request_id"] == parts[3]]
            return {"instanceAction": {"events": [], **rows[0]}}
        self._look(uuid)
        if uuid not in self.servers:
            raise Refused(404, f"Instance {uuid} could not be found.")
        return {"server": self.servers[uuid]}

    def _is_asked_for(self, row: t.Mapping[str, t.Any], params: t.Mapping[str, str]) -> bool:
        if "instance_uuid" in params:
            return bool(row["instance_uuid"] == params["instance_uuid"])
        if "migration_type" in params:
            return bool(row["migration_type"] == params["migration_type"])
        return params["host"] in (row["source_compute"], row["dest_compute"])

    def _look(self, uuid: str) -> None:
        """Let a move go on by a step after some looks at its server."""
        self._looks[uuid] = self._looks.get(uuid, 0) + 1
        if self._looks[uuid] % _LOOKS == 0 and self._steps.get(uuid):
            self._steps[uuid].pop(0)()

    # What Nova does

    def _act(self, uuid: str, action: str, arguments: t.Any, user: str) -> str:
        if uuid not in self.servers:
            raise Refused(404, f"Instance {uuid} could not be found.")
        server = self.servers[uuid]
        if server["OS-EXT-STS:task_state"] is not None:
            raise Refused(409, f"it is in task_state {server['OS-EXT-STS:task_state']}")
        names = {"os-migrateLive": "live-migration", "confirmResize": "confirmResize"}
        request_id = self._record_action(uuid, names.get(action, action), user)
        if action == "confirmResize":
            self._confirm(server)
        else:
            self._move(server, action, arguments)
        return request_id

    def _record_action(self, uuid: str, action: str, user: str) -> str:
        """Return the id of the request that begins an action."""
        self._actions += 1
        request_id = f"req-{self._actions}-{action}"
        self.actions[uuid].insert(
            0,
            {
                "action": action,
                "request_id": request_id,
                "user_id": user,
                "start_time": f"{self._format_now()}.500000",
                "message": None,
            },
        )
        return request_id

    def _format_now(self) -> str:
        return f"2026-11-20T03:{self._second // 60:02}:{self._second % 60:02}"

    def _move(self, server: dict[str, t.Any], action: str, arguments: t.Any) -> None:
        allowed = {
            "os-migrateLive": ("ACTIVE", "PAUSED"),
            "migrate": ("ACTIVE", "SHUTOFF"),
            "resize": ("ACTIVE", "SHUTOFF"),
            "evacuate": ("ACTIVE", "SHUTOFF"),
        }
        if server["status"] not in allowed[action]:
            raise Refused(409, f"it is {server['status']}")
        types_ = {
            "os-migrateLive": "live-migration",
            "migrate": "migration",
            "resize": "resize",
            "evacuate": "evacuation",
        }
        source = server["OS-EXT-SRV-ATTR:host"]
        target = (arguments or {}).get("host") or self.destination
        target = target or HOSTS[(HOSTS.index(source) + 1) % len(HOSTS)]
        row = {
            "uuid": f"migration-{len(self.migrations)}",
            "instance_uuid": server["id"],
            "migration_type": types_[action],
            "status": "running",
            "source_compute": source,
            "source_node": source,
            "dest_compute": target,
            # Conductor, which finds no host, records none.
            "dest_node": target if server["name"] not in self.fails else None,
            "created_at": None,
            "updated_at": None,
        }
        server["OS-EXT-STS:task_state"] = "moving"
        before = server["status"]

        def record() -> None:
            # Conductor makes the record a while after the API has accepted the request.
            row["created_at"] = self._format_now()
            self.migrations.insert(0, row)

        def end() -> None:
            server["OS-EXT-STS:task_state"] = None
            if server["name"] in self.fails:
                row["status"] = "error"
                return
            if server["name"] in self.cut_off:
                row["status"] = "error"
                server["status"] = self.cut_off[server["name"]]
                return
            server["OS-EXT-SRV-ATTR:host"] = target
            if row["migration_type"] in ("migration", "resize"):
                row["status"] = "finished"
                server["before"] = before
                server["status"] = "VERIFY_RESIZE"
            elif row["migration_type"] == "evacuation":
                row["status"] = "done"
            else:
                row["status"] = "completed"

        self._steps[server["id"]] = [record, end]

    def _confirm(self, server: dict[str, t.Any]) -> None:
        if server["status"] != "VERIFY_RESIZE":
            raise Refused(409, f"it is {server['status']}")
        row = next(
            row
            for row in self.migrations
            if row["instance_uuid"] == server["id"] and row["status"] == "finished"
        )
        row["status"] = "confirming"

        def end_migration() -> None:
            row["status"] = "confirmed"

        def change_status() -> None:
            server["status"] = server.pop("before")

        self._steps[server["id"]] = [end_migration, change_status]


def lose() -> None:
    """Lose a request or its answer."""
    raise CloudError("Nova does not answer in time.")


class MovingPlacement:
    """A Placement behind the adapter of a session, with the allocations of the servers of a Nova.

    Each host has a provider, whose UUID is that of its compute node. The first host has a child.
    There is a sharing provider.
    """

    def __init__(self, nova: MovingNova) -> None:
        self._nova = nova

    def get_endpoint(self) -> str:
        return "http://placement"

    def get_endpoint_data(self) -> t.Any:
        return types.SimpleNamespace(max_microversion=(1, 39))

    def request(self, url: str, _method: str, **options: t.Any) -> t.Any:
        body = self._read(url.removeprefix("http://placement"), options.get("params") or {})
        return types.SimpleNamespace(
            status_code=200,
            headers={"Date": "Fri, 20 Nov 2026 03:00:00 GMT", "Last-Modified": _LONG_AGO},
            content=b"x",
            json=lambda: body,
        )

    def _read(self, path: str, params: t.Mapping[str, str]) -> t.Any:
        if path.startswith("/allocations/"):
            server = path.rpartition("/")[2]
            hosts = self._nova.held.get(server, (self._nova.host(server),))
            cls = "CUSTOM_BAREMETAL" if server in self._nova.bare_metal else "VCPU"
            held = {PROVIDERS[name]: {"generation": 1, "resources": {cls: 1}} for name in hosts}
            if not held:
                return {"allocations": {}}
            owner = {"project_id": "project", "user_id": "user", "consumer_generation": 1}
            return {"allocations": held, **owner}
        if path == "/allocation_candidates":
            return self._offer()
        if path.endswith("/traits"):
            return {"traits": [], "resource_provider_generation": 1}
        wanted = {params.get("uuid"), params.get("in_tree")}
        if "required" in params:
            wanted = {PROVIDERS[POOL]}
        rows = []
        for name, uuid in PROVIDERS.items():
            root = PROVIDERS[HOSTS[0]] if name == CHILD else uuid
            if uuid in wanted or (root in wanted and "in_tree" in params):
                rows.append(
                    {
                        "uuid": uuid,
                        "name": name,
                        "generation": 1,
                        "root_provider_uuid": root,
                        "parent_provider_uuid": None if root == uuid else root,
                    }
                )
        return {"resource_providers": rows}

    def _offer(self) -> t.Any:
        """Return the candidates of all hosts that have room."""
        requests, summaries = [], {}
        for host in self._nova.roomy:
            root = PROVIDERS[host]
            room = {"VCPU": 100, "MEMORY_MB": 100_000, "DISK_GB": 100_000}
            requests.append({"allocations": {root: {"resources": dict.fromkeys(room, 1)}}})
            summaries[root] = {
                "resources": {cls: {"capacity": amount, "used": 0} for cls, amount in room.items()},
                "traits": [],
                "parent_provider_uuid": None,
                "root_provider_uuid": root,
            }
        return {"allocation_requests": requests, "provider_summaries": summaries}


def _build_node(host: str) -> dict[str, t.Any]:
    return {
        "id": NODES[host],
        "hypervisor_hostname": host,
        "service": {"host": host},
        "state": "up",
        "status": "enabled",
    }
