"""The original servers, of which the seeded cloud is made of copies.

Nova's API creates each of them on a separate minicloud.

`originals.json`, beside a copy of the databases with their rows:
  {"servers": {original: {"server": uuid, "migration": uuid or null, "home": host,
                          "other": host or null}}}
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import typing as t
from pathlib import Path

from minicloud_ctl import configs, databases, files, lifecycle, servers, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from running import run_minicloud

from benchmark.layout import ORIGINALS, SMALL, TINY

if t.TYPE_CHECKING:
    from minicloud_ctl.paths import Paths

HOME, DESTINATION, DEAD = "compute-1", "compute-2", "compute-3"
SEEDED = ("placement", "first_nova_api", "first_cell1")

# Copied hosts have no nova-compute that reports, and must look alive during the whole benchmark.
_DOWN_SECONDS = 10**8
# The services that a reading needs, and `openstack server list`, which asks for images. The
# collection itself sends requests to two of them.
_READ_FROM = ("keystone", "placement", "glance", "neutron", "nova-api")
_READ_BY_US = ("placement", "nova-api")


def create(paths: Paths) -> None:
    """Start a new cloud, create the originals, stop it, and keep its databases.

    This does nothing if the originals exist.
    """
    # Those of an older version of the benchmark may be fewer.
    if _find_record(paths).exists() and read(paths).keys() >= ORIGINALS:
        return
    lifecycle.down(paths, purge=True)
    settings = {"service_down_time": _DOWN_SECONDS, "allow_resize_to_same_host": "false"}
    configs.ini(configs.nova_folder(paths, "first") / "local.conf", {"DEFAULT": settings})
    try:
        run_minicloud(paths.home, paths.venv, "up", "--computes", "3")
        record = {"servers": _create_all(paths, Cloud(states.load(paths), project="demo"))}
    finally:
        lifecycle.down(paths, purge=False)
    for name in SEEDED:
        _checkpoint(paths.database(name))
        shutil.copyfile(paths.database(name), find_copy(paths, name))
    files.write(_find_record(paths), json.dumps(record, indent=2) + "\n")


def read(paths: Paths) -> dict[str, dict[str, str | None]]:
    record = json.loads(_find_record(paths).read_text(encoding="utf-8"))
    found: dict[str, dict[str, str | None]] = record["servers"]
    return found


def find_copy(paths: Paths, name: str) -> Path:
    return paths.databases / f"{name}.original"


def stop(paths: Paths) -> None:
    lifecycle.down(paths, purge=False)


def start(paths: Paths, api_processes: int) -> None:
    """Start the services that answer readings, and no others.

    No nova-compute, conductor or scheduler uses the machine meanwhile.

    api_processes: the number of processes of nova-api and of Placement each. A single process
        handles several requests in threads; each of several processes handles one at a time.
    """
    wanted = []
    for service in services.all_services(paths, states.load(paths)):
        if service.kind in _READ_BY_US:
            service.argv.append(str(api_processes))
        if service.kind in _READ_FROM:
            wanted.append(service)
    lifecycle.start(paths, wanted)
    lifecycle.await_http(paths, wanted)


def _find_record(paths: Paths) -> Path:
    return paths.databases / "originals.json"


def _checkpoint(database: Path) -> None:
    """Move the contents of the write-ahead log into the file itself."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _create_all(paths: Paths, cloud: Cloud) -> dict[str, dict[str, str | None]]:
    def describe(
        server: str, migration: str | None = None, other: str | None = None, home: str = HOME
    ) -> dict[str, str | None]:
        return {"server": server, "migration": migration, "home": home, "other": other}

    made = {"live": describe(servers.boot(cloud, "live", HOME))}

    deleted = servers.boot(cloud, "deleted", HOME)
    servers.delete(cloud, deleted)
    made["deleted"] = describe(deleted)

    moved, migration = _move(cloud, "moved")
    servers.confirm(cloud, moved)
    made["moved"] = describe(moved, migration, HOME, home=DESTINATION)

    unconfirmed, migration = _move(cloud, "unconfirmed")
    made["unconfirmed"] = describe(unconfirmed, migration, HOME, home=DESTINATION)

    # Its migration's row is deleted with it.
    moved_deleted, migration = _move(cloud, "moved_deleted")
    servers.confirm(cloud, moved_deleted)
    servers.delete(cloud, moved_deleted)
    made["moved_deleted"] = describe(moved_deleted, migration, HOME, home=DESTINATION)

    made["resized"] = _resize(cloud, "resized")

    # Reverted in Nova, and ended as error: so it is when Placement did not answer meanwhile.
    unreverted, migration = _move(cloud, "unreverted")
    servers.revert(cloud, unreverted)
    _mark_failed(paths, migration)
    made["unreverted"] = describe(unreverted, migration, DESTINATION)

    shelved = servers.boot(cloud, "shelved", HOME)
    servers.shelve(cloud, shelved)
    made["shelved"] = describe(shelved)

    evacuated = servers.boot(cloud, "evacuated", DEAD)
    lifecycle.kill_compute(paths, DEAD)
    servers.force_down(cloud, DEAD)
    made["evacuated"] = describe(evacuated, servers.evacuate(cloud, evacuated, HOME), DEAD)
    return made


def _move(cloud: Cloud, name: str) -> tuple[str, str]:
    """Boot a server and move it; return it and its migration, which waits to be confirmed."""
    server = servers.boot(cloud, name, HOME)
    return server, servers.migrate(cloud, server, DESTINATION)


def _resize(cloud: Cloud, name: str) -> dict[str, str | None]:
    """Boot a server and resize it; the scheduler chooses the destination."""
    server = servers.boot(cloud, name, HOME, TINY)
    servers.act(cloud, server, "resize", {"flavorRef": cloud.flavor(SMALL)})
    destination = servers.settle(cloud, server, None, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    migration = servers.await_migration(cloud, server, "finished")
    servers.confirm(cloud, server)
    return {"server": server, "migration": migration, "home": destination, "other": HOME}


def _mark_failed(paths: Paths, migration: str) -> None:
    with databases.writing(paths, "first_cell1") as connection:
        connection.execute("UPDATE migrations SET status = 'error' WHERE uuid = ?", [migration])
