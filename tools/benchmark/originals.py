# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The servers that everything is cloned from.

Each is made for real through Nova's API on a minicloud of its own.

`originals.json`, beside a copy of the databases in which their rows are:
  {"servers": {original: {"server": uuid, "migration": uuid or null, "home": host,
                          "other": host or null}}}
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import typing as t
from pathlib import Path

from minicloud_ctl import configs, files, lifecycle, servers, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.paths import SOURCE

if t.TYPE_CHECKING:
    from minicloud_ctl.paths import Paths

HOME, DESTINATION, DEAD = "compute-1", "compute-2", "compute-3"
SEEDED = ("placement", "first_nova_api", "first_cell1")

# Cloned hosts have no nova-compute that reports, and are to look alive for as long as a benchmark
# lasts.
_DOWN_SECONDS = 10**8
# All that a reading speaks with, and what these ask in turn.
_READ_FROM = ("keystone", "placement", "neutron", "nova-api")
_READ_BY_US = ("placement", "nova-api")


def make(paths: Paths) -> None:
    """Start a new cloud, make the originals, stop it, and keep its databases.

    There is nothing to do where that was done before.
    """
    if _record(paths).exists():
        return
    lifecycle.down(paths, purge=True)
    settings = {"service_down_time": _DOWN_SECONDS, "allow_resize_to_same_host": "false"}
    configs.ini(configs.nova_folder(paths, "first") / "local.conf", {"DEFAULT": settings})
    try:
        _up(paths, computes=3)
        record = {"servers": _make_all(paths, Cloud(states.load(paths), project="demo"))}
    finally:
        lifecycle.down(paths, purge=False)
    for name in SEEDED:
        _fold(paths.database(name))
        shutil.copyfile(paths.database(name), kept(paths, name))
    files.write(_record(paths), json.dumps(record, indent=2) + "\n")


def _up(paths: Paths, computes: int) -> None:
    """By the command, never by `lifecycle.up`.

    That installs for the Python it runs in, and would take an environment that was made for the
    command's own Python, shared with other clouds perhaps, for outdated and replace it.
    """
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("OS_", "PYTHON"))
    }
    environment["MINICLOUD_VENV"] = str(paths.venv)
    command = [
        str(SOURCE / "minicloud"),
        "--home",
        str(paths.home),
        "up",
        "--computes",
        str(computes),
    ]
    subprocess.run(command, env=environment, stdout=sys.stderr, check=True)


def read(paths: Paths) -> dict[str, dict[str, str | None]]:
    return json.loads(_record(paths).read_text(encoding="utf-8"))["servers"]


def kept(paths: Paths, name: str) -> Path:
    return paths.databases / f"{name}.original"


def stop(paths: Paths) -> None:
    lifecycle.down(paths, purge=False)


def start(paths: Paths, api_processes: int) -> None:
    """Start what answers readings, and nothing else.

    No nova-compute, conductor or scheduler shares the machine.
    """
    wanted = [
        service
        for service in services.all_services(paths, states.load(paths))
        if service.kind in _READ_FROM
    ]
    wanted = [
        d.replace(each, argv=[*each.argv, str(api_processes)]) if each.kind in _READ_BY_US else each
        for each in wanted
    ]
    lifecycle.start(paths, wanted)
    lifecycle.await_http(paths, wanted)


def _record(paths: Paths) -> Path:
    return paths.databases / "originals.json"


def _fold(database: Path) -> None:
    """Move what is in the write-ahead log into the file itself."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _make_all(paths: Paths, cloud: Cloud) -> dict[str, dict[str, str | None]]:
    def told(
        server: str, migration: str | None = None, other: str | None = None, home: str = HOME
    ) -> dict[str, str | None]:
        return {"server": server, "migration": migration, "home": home, "other": other}

    made = {"live": told(servers.boot(cloud, "live", HOME))}

    deleted = servers.boot(cloud, "deleted", HOME)
    servers.delete(cloud, deleted)
    made["deleted"] = told(deleted)

    moved = servers.boot(cloud, "moved", HOME)
    migration = servers.migrate(cloud, moved, DESTINATION)
    servers.confirm(cloud, moved)
    made["moved"] = told(moved, migration, HOME, home=DESTINATION)

    parked = servers.boot(cloud, "parked", HOME)
    made["parked"] = told(
        parked, servers.migrate(cloud, parked, DESTINATION), HOME, home=DESTINATION
    )

    evacuated = servers.boot(cloud, "evacuated", DEAD)
    lifecycle.kill_compute(paths, DEAD)
    servers.force_down(cloud, DEAD)
    made["evacuated"] = told(evacuated, servers.evacuate(cloud, evacuated, HOME), DEAD)
    return made
