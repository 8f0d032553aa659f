"""A Placement with providers, and a Nova that lists their compute nodes.

They fail and change on request, which real ones cannot.
"""

import json
import types
import typing as t

import keystoneauth1.exceptions as ksa

from .....plugins.module_utils._core.clients.api import Api
from .service import build_compute_node, open_service

Body = dict[str, t.Any]
Fault = t.Callable[[], "int | None"]
"""What happens instead of a PUT, or before it: a status, an exception, or nothing."""

ROOT, CHILD, OTHER = (f"aaaaaaa{number}-0000-4000-8000-000000000000" for number in range(3))
RACK, DISKS = (f"ccccccc{number}-0000-4000-8000-000000000000" for number in range(2))


def inventory(total: int = 8, reserved: int = 0, allocation_ratio: float = 1.0) -> Body:
    return {
        "total": total,
        "reserved": reserved,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": allocation_ratio,
    }


class Trees:
    """Providers, and the compute nodes and host aggregates of Nova."""

    def __init__(self) -> None:
        self.providers: dict[str, Body] = {}
        self.traits = {"CUSTOM_A", "CUSTOM_B"}
        self.nodes: list[tuple[str, str]] = []
        self.aggregates: list[Body] = []
        self.puts: list[str] = []
        self.deletes: list[str] = []
        self.listing_status = 200
        self.faults: list[Fault | None] = []
        self.nova_status = 200
        # What happens between two requests of a reading.
        self.while_read: list[t.Callable[[], None]] = []

    def make(self, uuid: str, name: str, parent: str | None = None, **has: t.Any) -> None:
        root = self.providers[parent]["root"] if parent else uuid
        had = {"inventories": {"VCPU": inventory()}, "traits": set(), "aggregates": set(), **has}
        self.providers[uuid] = {
            "name": name,
            "generation": 1,
            "root": root,
            "parent": parent,
            **had,
        }

    def node(self, uuid: str, host: str) -> None:
        self.nodes.append((uuid, host))

    def rack(self, *hosts: str, uuid: str = RACK) -> None:
        self.aggregates.append({"uuid": uuid, "name": "rack-1", "hosts": list(hosts)})

    def give(self, uuid: str, part: str, *names: str) -> None:
        """Add something, as somebody else would."""
        self.providers[uuid][part] |= set(names)
        self.providers[uuid]["generation"] += 1

    def placement(self) -> Api:
        return self._api("placement", (1, 39), self._placement)

    def nova(self) -> Api:
        return self._api("nova", (2, 90), self._nova)

    @staticmethod
    def _api(name: str, newest: tuple[int, int], answer: t.Callable[..., tuple[int, Body]]) -> Api:
        def request(url: str, method: str, **options: t.Any) -> t.Any:
            status, body = answer(url.removeprefix(f"http://{name}/"), method, options)
            return types.SimpleNamespace(
                status_code=status,
                headers={},
                content=b"{}",
                json=lambda: json.loads(json.dumps(body)),
            )

        return open_service(name, request, newest, (1, 20))

    def _nova(self, path: str, _method: str, options: Body) -> tuple[int, Body]:
        if path == "os-aggregates":
            return self.nova_status, {"aggregates": self.aggregates}
        assert path == "os-hypervisors/detail", path
        rows = [build_compute_node(uuid, host) for uuid, host in self.nodes]
        return self.nova_status, {"hypervisors": [] if options["params"].get("marker") else rows}

    def _placement(self, path: str, method: str, options: Body) -> tuple[int, Body]:
        kind, _slash, rest = path.partition("/")
        if (method, kind) == ("PUT", "traits"):
            self.traits.add(rest)
            return 201, {}
        assert kind == "resource_providers", path
        if not rest:
            return self._list(options["params"] or {})
        uuid, _slash, part = rest.partition("/")
        if method == "DELETE":
            return self._delete(uuid)
        if method == "PUT":
            return self._put(uuid, part, options["json"])
        status, body = self._told(uuid, part)
        if self.while_read:
            self.while_read.pop(0)()
        return status, body

    def _list(self, wanted: Body) -> tuple[int, Body]:
        """List the providers in a tree, or with a UUID, or all; none is a sharing one."""
        listed = []
        for uuid, known in self.providers.items():
            if "required" in wanted or wanted.get("uuid", uuid) != uuid:
                continue
            if wanted.get("in_tree", known["root"]) == known["root"]:
                listed.append(self._entry(uuid))
        return self.listing_status, {"resource_providers": listed}

    def _delete(self, uuid: str) -> tuple[int, Body]:
        self.deletes.append(uuid)
        fault = self.faults.pop(0) if self.faults else None
        if fault and (status := fault()):
            return status, {"errors": [{"detail": "for the test"}]}
        return (204 if self.providers.pop(uuid, None) else 404), {}

    def _entry(self, uuid: str) -> Body:
        known = self.providers[uuid]
        ancestors = {"root_provider_uuid": known["root"], "parent_provider_uuid": known["parent"]}
        return {"uuid": uuid, "name": known["name"], "generation": known["generation"], **ancestors}

    def _told(self, uuid: str, part: str) -> tuple[int, Body]:
        if uuid not in self.providers:
            return 404, {"errors": [{"detail": "No resource provider with that uuid found."}]}
        known = self.providers[uuid]
        has = known[part] if part == "inventories" else sorted(known[part])
        return 200, {part: has, "resource_provider_generation": known["generation"]}

    def _put(self, uuid: str, part: str, body: Body) -> tuple[int, Body]:
        self.puts.append(part)
        fault = self.faults.pop(0) if self.faults else None
        if fault and (status := fault()):
            return status, {"errors": [{"detail": "for the test"}]}
        return self.take(uuid, part, body)

    def take(self, uuid: str, part: str, body: Body) -> tuple[int, Body]:
        if uuid not in self.providers:
            return 404, {"errors": [{"detail": "No resource provider with that uuid found."}]}
        known = self.providers[uuid]
        if body["resource_provider_generation"] != known["generation"]:
            return 409, {"errors": [{"detail": "generation already changed"}]}
        if part == "traits" and (
            unknown := {name for name in body[part] if name.startswith("CUSTOM_")} - self.traits
        ):
            return 400, {"errors": [{"detail": f"No such trait {', '.join(unknown)}"}]}
        known[part] = set(body[part])
        known["generation"] += 1
        return self._told(uuid, part)


def refused() -> int:
    return 409


def lost() -> int:
    raise ksa.ConnectFailure("lost")
