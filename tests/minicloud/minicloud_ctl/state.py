"""What one minicloud remembers between commands.

Ports, passwords, and which nova-compute services there should be.

``state.json``:
  {"ports": {service: number},
   "secrets": {user: password},
   "computes": {host: {"nova": "first"|"second", "cell": name, "running": bool,
                       "driver": name (rarely)}},
   "novas": {name: [cells that have a conductor]},
   "closed_cells": [cells that scenario cell_down has put out of reach],
   "workers": [further processes of the first nova-api],
   "parts": [real parts that were added with "up --with"; see PARTS],
   "dead_agents": {host: [binaries of its network agents that do not report]},
   "without_date": whether the APIs answer without a Date,
   "done": [steps of ``up`` that need no repetition],
   "release": name of the OpenStack release}
"""

import contextlib
import json
import random
import secrets
import socket
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from minicloud_ctl import files, releases
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

SERVERS = ("broker", "neutron", "keystone", "placement", "glance", "nova-api", "second-nova-api")
# What "up --with" can add. Without "neutron", a stub answers in its place.
NEUTRON = "neutron"
CINDER = "cinder"
CYBORG = "cyborg"
PARTS = (NEUTRON, CINDER, CYBORG)
USERS = ("admin", "service", "demo", "reader")
# Below the range from which the kernel takes the ports of outgoing connections, so that nobody
# takes ours while a service restarts.
PORTS = range(20000, 32000)


@dataclass
class State:
    """See the module's docstring for the fields."""

    ports: dict[str, int]
    secrets: dict[str, str]
    computes: dict[str, dict[str, Any]] = field(default_factory=dict)
    novas: dict[str, list[str]] = field(default_factory=lambda: {"first": ["cell1"]})
    closed_cells: list[str] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    dead_agents: dict[str, list[str]] = field(default_factory=dict)
    without_date: bool = False
    done: list[str] = field(default_factory=list)
    release: str = releases.NEWEST.name

    def url(self, service: str, path: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[service]}{path}"


def load(paths: Paths) -> State:
    """Return the state of a minicloud that was started before."""
    try:
        state = State(**json.loads(paths.state.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise MinicloudError(
            f"There is no minicloud in {paths.home}: start one with 'minicloud up'."
        ) from None
    if state.release != paths.release.name:
        raise MinicloudError(
            f"The minicloud in {paths.home} is of release {state.release}: set "
            f"MINICLOUD_RELEASE={state.release}."
        )
    return state


def create(paths: Paths) -> State:
    """Return the existing state, or a new one with free ports and fresh passwords."""
    with changing(paths, new=True) as state:
        return state


@contextlib.contextmanager
def changing(paths: Paths, new: bool = False) -> Iterator[State]:
    """Read the state, let the caller change it, and write it: one at a time."""
    with files.locked(paths.lock):
        state = _fresh(paths) if new and not paths.state.exists() else load(paths)
        yield state
        files.write(paths.state, json.dumps(asdict(state), indent=2) + "\n")


def _fresh(paths: Paths) -> State:
    return State(
        free_ports(SERVERS),
        {user: secrets.token_hex(12) for user in USERS},
        release=paths.release.name,
    )


def free_ports(names: tuple[str, ...], taken: Collection[int] = ()) -> dict[str, int]:
    """Return a free port for each name, none of ``taken``.

    All are kept open until the last is found, so that none is returned twice.
    """
    if not names:
        return {}
    with contextlib.ExitStack() as held:
        found: dict[str, int] = {}
        for port in random.sample(PORTS, k=len(PORTS)):
            if port in taken:
                continue
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found[names[len(found)]] = port
            if len(found) == len(names):
                return found
    raise MinicloudError("There are not enough free ports on 127.0.0.1.")
