"""A real Ironic API for one test module: no conductor, and nodes that Ironic's own code creates."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from minicloud_ctl import configs, databases, install, lifecycle, processes, services
from minicloud_ctl import state as states
from minicloud_ctl.paths import Paths
from minicloud_ctl.services import Service

IRONIC = "ironic"
_SECONDS = 120


def get_requirements(paths: Paths) -> Path:
    """Return the packages of Ironic; a release without this file has none."""
    return paths.release.folder / "ironic.txt"


def get_folder(paths: Paths) -> Path:
    return paths.venv.with_name(f"{paths.venv.name}-ironic")


def start(paths: Paths) -> str:
    """Install Ironic once, start its API with an empty database, and return its URL."""
    install.install_beside(paths, get_folder(paths), get_requirements(paths))
    with states.changing(paths) as state:
        if IRONIC not in state.ports:
            state.ports.update(states.free_ports((IRONIC,), state.ports.values()))
    _write_config(paths)
    if not paths.database(IRONIC).exists():
        _run(paths, "schema", "")
    port = state.ports[IRONIC]
    serve = [paths.program("python"), "-m", "minicloud_venv.serve"]
    argv = [*serve, IRONIC, str(port), str(services.API_THREADS)]
    service = Service(IRONIC, IRONIC, argv, _environment(paths), port)
    lifecycle.start(paths, [service])
    lifecycle.await_http(paths, [service])
    return state.url(IRONIC)


def stop(paths: Paths) -> None:
    processes.stop(paths, [IRONIC])


def start_compute(paths: Paths, host: str) -> None:
    """Start a nova-compute with Nova's own driver for Ironic; its nodes are in Placement later."""
    settings = {"nova": "first", "cell": "cell1", "driver": "ironic.IronicDriver"}
    with states.changing(paths) as state:
        state.computes.setdefault(host, dict(settings))["running"] = True
    configs.write_compute(paths, host, settings["nova"], settings["driver"])
    lifecycle.start(paths, [services.compute(paths, host, **settings, running=True)])


def create_nodes(paths: Paths, nodes: Iterable[Mapping[str, object]]) -> None:
    """Create nodes with these values of their columns."""
    _run(paths, "nodes", json.dumps(list(nodes)))


def change_node(paths: Paths, uuid: str, **values: object) -> None:
    """Change columns of a node, as a conductor does. Times are SQLite's, in UTC."""
    columns = ", ".join(f"{column} = ?" for column in values)
    with databases.writing(paths, IRONIC) as connection:
        connection.execute(f"UPDATE nodes SET {columns} WHERE uuid = ?", [*values.values(), uuid])


def delete_node(paths: Paths, uuid: str) -> None:
    with databases.writing(paths, IRONIC) as connection:
        connection.execute("DELETE FROM nodes WHERE uuid = ?", [uuid])


def _environment(paths: Paths) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{configs.python_path(paths)}:{get_folder(paths)}",
        "IRONIC_CONFIG_FILE": str(_get_config(paths)),
    }


def _get_config(paths: Paths) -> Path:
    return paths.etc / IRONIC / "ironic.conf"


def _write_config(paths: Paths) -> None:
    state = states.load(paths)
    configs.ini(
        _get_config(paths),
        {
            "DEFAULT": {
                "auth_strategy": "keystone",
                "host": "controller",
                # Otherwise only a user whose scope is the whole system sees the nodes of others.
                "rbac_service_role_elevated_access": "true",
                "transport_url": f"loopback://127.0.0.1:{state.ports['broker']}/ironic",
                "state_path": paths.service(IRONIC),
            },
            "api": {"public_endpoint": state.url(IRONIC)},
            "database": {"connection": paths.database_url(IRONIC)},
            "keystone_authtoken": configs.authtoken(state, "nova"),
        },
    )


def _run(paths: Paths, command: str, text: str) -> None:
    subprocess.run(
        [paths.program("python"), "-m", "minicloud_venv.ironic_database", command],
        env=services.environment(paths, _environment(paths)),
        input=text,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
