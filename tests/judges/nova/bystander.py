"""A healthy server of another project, on a host of its own, which is there during passes only.

Most of Nova's tests have a single server. When that is deleted, no server shows what the
credentials may see, the soundness checks fail, and a pass could change nothing. A server that
stayed between passes would be counted by the tests.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import typing as t

from nova import objects
from nova.objects import service

from .truth import get_connection

UUID = "b5257a4d-e200-4000-8000-000000000001"
_NODE = "b5257a4d-e200-4000-8000-000000000002"
_SERVICE = "b5257a4d-e200-4000-8000-000000000003"
_HOST = "bystander"
_PROJECT = "b5257a4de20040008000000000000004"
_IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
_SIZES, _DISKS = {"vcpus": 1, "memory_mb": 512}, {"root_gb": 1, "ephemeral_gb": 0}
_AMOUNTS = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}

Insert = t.Callable[..., int]


@contextlib.contextmanager
def present(cell: t.Any, api: t.Any, placement: t.Any) -> t.Iterator[None]:
    """Have the server in a cell, and in Placement.

    cell, api, placement: the engines of the databases; the cell has its UUID as its address.
    """
    tables: dict[t.Any, list[tuple[str, int]]] = {}

    def insert(engine: t.Any, table: str, **values: t.Any) -> int:
        columns = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        cursor = get_connection(engine).cursor()
        cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", list(values.values()))
        tables.setdefault(engine, []).append((table, cursor.lastrowid))
        return cursor.lastrowid

    try:
        _insert_server(insert, cell)
        _map_to_cell(insert, cell, api)
        _allocate(insert, placement)
        _commit(tables)
        yield
    finally:
        for engine, rows in tables.items():
            connection = get_connection(engine)
            for table, rowid in reversed(rows):
                connection.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])
        _commit(tables)


def _commit(engines: t.Iterable[t.Any]) -> None:
    for engine in engines:
        get_connection(engine).commit()


def _insert_server(insert: Insert, cell: t.Any) -> None:
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    # By the default ages, too, nothing about it is new.
    old = {"created_at": str(now - datetime.timedelta(days=30)), "deleted": 0}
    used = {"vcpus_used": 1, "memory_mb_used": 512, "local_gb_used": 1, "running_vms": 1}
    ratios = dict.fromkeys((f"{kind}_allocation_ratio" for kind in ("cpu", "ram", "disk")), 1.0)
    reports = {"updated_at": str(now), "last_seen_up": str(now), "report_count": 1}
    state = {"disabled": 0, "forced_down": 0, "version": service.SERVICE_VERSION}
    kind = {"binary": "nova-compute", "topic": "compute"}
    insert(cell, "services", **old, **kind, **reports, **state, uuid=_SERVICE, host=_HOST)
    node = {"uuid": _NODE, "host": _HOST, "hypervisor_hostname": _HOST, "mapped": 1}
    driver = {"hypervisor_type": "fake", "hypervisor_version": 1, "cpu_info": "{}"}
    sizes = {**_SIZES, "local_gb": 1}
    insert(cell, "compute_nodes", **old, **node, **driver, **sizes, **used, **ratios)
    server = {"uuid": UUID, "project_id": _PROJECT, "user_id": _PROJECT}
    place = {"host": _HOST, "node": _HOST, "launched_on": _HOST, "launched_at": old["created_at"]}
    named = {"display_name": "bystander", "hostname": "bystander", "image_ref": _IMAGE}
    state = {"vm_state": "active", "power_state": 1, "hidden": 0, "cleaned": 0}
    insert(cell, "instances", **old, **server, **place, **named, **state, **_SIZES, **_DISKS)
    insert(cell, "instance_extra", instance_uuid=UUID, flavor=_format_flavor(), deleted=0)
    insert(cell, "instance_info_caches", instance_uuid=UUID, network_info="[]", deleted=0)


def _format_flavor() -> str:
    names = {"id": 7777, "name": "bystander", "flavorid": "bystander", "description": None}
    others = {"swap": 0, "rxtx_factor": 1.0, "vcpu_weight": 0, "extra_specs": {}}
    times = dict.fromkeys(("created_at", "updated_at", "deleted_at"))
    shown = {"disabled": False, "is_public": True, "deleted": False}
    flavor = objects.Flavor(**names, **_SIZES, **_DISKS, **others, **times, **shown)
    return json.dumps({"cur": flavor.obj_to_primitive(), "old": None, "new": None})


def _map_to_cell(insert: Insert, cell: t.Any, api: t.Any) -> None:
    cursor = get_connection(api).execute(
        "SELECT id FROM cell_mappings WHERE uuid != ? ORDER BY id", [objects.CellMapping.CELL0_UUID]
    )
    number = cursor.fetchone()[0]
    insert(api, "host_mappings", cell_id=number, host=_HOST)
    owner = {"project_id": _PROJECT, "user_id": _PROJECT}
    mapping = {"instance_uuid": UUID, "cell_id": number, "queued_for_delete": 0}
    insert(api, "instance_mappings", **mapping, **owner)


def _allocate(insert: Insert, placement: t.Any) -> None:
    connection = get_connection(placement)

    def find(table: str, name: str) -> int:
        row = connection.execute(f"SELECT id FROM {table} WHERE name = ?", [name]).fetchone()
        return row[0]

    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    old = {"created_at": str(now - datetime.timedelta(days=30))}
    provider = insert(placement, "resource_providers", **old, uuid=_NODE, name=_HOST, generation=1)
    connection.execute(
        "UPDATE resource_providers SET root_provider_id = id WHERE id = ?", [provider]
    )
    trait = {"resource_provider_id": provider, "trait_id": find("traits", "COMPUTE_NODE")}
    insert(placement, "resource_provider_traits", **trait)
    consumer = {
        "project_id": insert(placement, "projects", **old, external_id=_PROJECT),
        "user_id": insert(placement, "users", **old, external_id=_PROJECT),
    }
    insert(placement, "consumers", **old, uuid=UUID, generation=1, **consumer)
    for name, amount in _AMOUNTS.items():
        resource_class = find("resource_classes", name)
        resource = {**old, "resource_provider_id": provider, "resource_class_id": resource_class}
        # It is full, so the scheduler never chooses it.
        limits = {"total": amount, "reserved": 0, "allocation_ratio": 1.0}
        units = {"min_unit": 1, "max_unit": amount, "step_size": 1}
        insert(placement, "inventories", **resource, **limits, **units)
        insert(placement, "allocations", **resource, consumer_id=UUID, used=amount)
