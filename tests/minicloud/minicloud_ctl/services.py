"""The processes of the minicloud, and how each is started."""

import os
from dataclasses import dataclass, field, replace

from minicloud_ctl import configs, nested
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import CINDER, CYBORG, NEUTRON, State

API_THREADS = 8
NEUTRON_SERVER = "neutron-server"
NEUTRON_AGENTS = "neutron-agents"
CINDER_API, CINDER_SCHEDULER, CINDER_VOLUME = "cinder-api", "cinder-scheduler", "cinder-volume"
CYBORG_API, CYBORG_CONDUCTOR, CYBORG_AGENT = "cyborg-api", "cyborg-conductor", "cyborg-agent"
# Those of each real part.
PROCESSES = {
    NEUTRON: [NEUTRON_SERVER, NEUTRON_AGENTS],
    CINDER: [CINDER_API, CINDER_SCHEDULER, CINDER_VOLUME],
    # Its agents run on a part of the hosts only.
    CYBORG: [CYBORG_API, CYBORG_CONDUCTOR],
}
# Keeps eventlet out of Nova.
UNPATCHED = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}


@dataclass(frozen=True)
class Service:
    """``name`` is also the name of the log and of the pid file.

    ``port`` is only set for services with HTTP or the broker's protocol.
    """

    name: str
    kind: str
    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    port: int | None = None
    host: str = ""
    wanted: bool = True


def all_services(paths: Paths, state: State) -> list[Service]:
    """Return the services in the order in which they depend on each other."""
    found = [
        broker(paths, state),
        *neutron(paths, state),
        keystone(paths, state),
        placement(paths, state),
        glance(paths, state),
        *cinder(paths, state),
        *cyborg(paths, state),
    ]
    for nova, cells in state.novas.items():
        found += control_plane(paths, state, nova, cells)
    found += [nova_api_worker(paths, state, name) for name in state.workers]
    found += [compute(paths, host, **settings) for host, settings in sorted(state.computes.items())]
    return [*found, *cyborg_agents(paths, state)]


def environment(paths: Paths, extra: dict[str, str]) -> dict[str, str]:
    """Return the environment of every process.

    It has none of the caller's OpenStack settings, and no cache outside of the state folder.
    """
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("OS_", "PYTHON"))
    }
    return {
        **kept,
        "PYTHONPATH": configs.python_path(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(paths.cache),
        **({} if paths.release.green else UNPATCHED),
        **extra,
    }


def broker(paths: Paths, state: State) -> Service:
    return _module(paths, state, "broker", "minicloud_venv.broker")


def neutron_stub(paths: Paths, state: State) -> Service:
    return _module(paths, state, NEUTRON, "minicloud_venv.neutron_stub")


def neutron(paths: Paths, state: State) -> list[Service]:
    """Return the stub, or the real Neutron on the same port, with the agents of all hosts."""
    if NEUTRON not in state.parts:
        return [neutron_stub(paths, state)]
    path = _path_of(paths, NEUTRON)
    folder = {"OS_NEUTRON_CONFIG_DIR": str(configs.neutron_folder(paths))}
    files = {"OS_NEUTRON_CONFIG_FILES": "neutron.conf;local.conf"}
    server = _api(paths, state, NEUTRON, NEUTRON, {**path, **folder, **files})
    url, seconds = configs.neutron_transport_url(state), str(configs.REPORT_SECONDS)
    argv = [paths.program("python"), "-m", "minicloud_venv.neutron_agents"]
    argv += [str(paths.state), url, seconds]
    agents = Service(NEUTRON_AGENTS, NEUTRON_AGENTS, argv, path)
    return [replace(server, name=NEUTRON_SERVER), agents]


def cinder(paths: Paths, state: State) -> list[Service]:
    """Return the API, the scheduler and one host with volumes, where a cloud has Cinder."""
    if CINDER not in state.parts:
        return []
    config = str(configs.part_folder(paths, CINDER) / "cinder.conf")
    extra = {**_path_of(paths, CINDER), "OS_CINDER_DISABLE_EVENTLET_PATCHING": "1"}
    api = _api(paths, state, CINDER, CINDER, {**extra, "MINICLOUD_CINDER_CONFIG": config})
    programs = paths.part(CINDER) / "bin"
    found = [replace(api, name=CINDER_API)]
    for name in (CINDER_SCHEDULER, CINDER_VOLUME):
        argv = [paths.program("python"), str(programs / name), "--config-file", config]
        found.append(Service(name, name, argv, extra))
    return found


def cyborg(paths: Paths, state: State) -> list[Service]:
    """Return the API and the conductor, where a cloud has Cyborg."""
    if CYBORG not in state.parts:
        return []
    config = str(configs.part_folder(paths, CYBORG) / "cyborg.conf")
    path = _path_of(paths, CYBORG)
    api = _api(paths, state, CYBORG, CYBORG, {**path, "MINICLOUD_CYBORG_CONFIG": config})
    return [replace(api, name=CYBORG_API), _cyborg(paths, CYBORG_CONDUCTOR, [config])]


def cyborg_agents(paths: Paths, state: State) -> list[Service]:
    """Return the agent of each host with devices."""
    if CYBORG not in state.parts:
        return []
    folder = configs.part_folder(paths, CYBORG)
    found = []
    for host, compute in sorted(state.computes.items()):
        if compute.get("driver") not in nested.DRIVERS:
            continue
        files = [str(folder / "cyborg.conf"), str(folder / "hosts" / f"{host}.conf")]
        agent = _cyborg(paths, CYBORG_AGENT, files)
        name = f"{CYBORG_AGENT}-{host}"
        found.append(replace(agent, name=name, host=host, wanted=compute["running"]))
    return found


def _cyborg(paths: Paths, name: str, files: list[str]) -> Service:
    argv = [paths.program("python"), str(paths.part(CYBORG) / "bin" / name)]
    for file in files:
        argv += ["--config-file", file]
    return Service(name, name, argv, _path_of(paths, CYBORG))


def _path_of(paths: Paths, part: str) -> dict[str, str]:
    return {"PYTHONPATH": f"{configs.python_path(paths)}:{paths.part(part)}"}


def _module(paths: Paths, state: State, name: str, module: str) -> Service:
    port = state.ports[name]
    return Service(name, name, [paths.program("python"), "-m", module, str(port)], {}, port)


def keystone(paths: Paths, state: State) -> Service:
    url = state.url("keystone", "/v3")
    extra = {
        "OS_KEYSTONE_CONFIG_DIR": str(paths.etc / "keystone"),
        # keystone-manage bootstrap reads these; minicloud_venv.serve runs it first.
        "OS_BOOTSTRAP_PASSWORD": state.secrets["admin"],
        "OS_BOOTSTRAP_SERVICE_NAME": "keystone",
        "OS_BOOTSTRAP_REGION_ID": configs.REGIONS["first"],
    }
    extra |= {f"OS_BOOTSTRAP_{name}_URL": url for name in ("PUBLIC", "INTERNAL", "ADMIN")}
    return _api(paths, state, "keystone", "keystone", extra)


def placement(paths: Paths, state: State) -> Service:
    folder = {"OS_PLACEMENT_CONFIG_DIR": str(paths.etc / "placement")}
    return _api(paths, state, "placement", "placement", folder)


def glance(paths: Paths, state: State) -> Service:
    folder = {"OS_GLANCE_CONFIG_DIR": str(paths.etc / "glance")}
    return _api(paths, state, "glance", "glance", folder)


def _api(paths: Paths, state: State, name: str, application: str, extra: dict[str, str]) -> Service:
    port = state.ports[name]
    serve = [paths.program("python"), "-m", "minicloud_venv.serve"]
    argv = [*serve, application, str(port), str(API_THREADS)]
    without = {"MINICLOUD_WITHOUT_DATE": "1"} if state.without_date else {}
    return Service(name, application, argv, {**extra, **without}, port)


def prefix(nova: str) -> str:
    return "" if nova == "first" else f"{nova}-"


def nova_api(paths: Paths, state: State, nova: str) -> Service:
    return _nova_api(paths, state, nova, f"{prefix(nova)}nova-api")


def _nova_api(paths: Paths, state: State, nova: str, name: str) -> Service:
    folder = configs.nova_folder(paths, nova)
    paste = paths.venv / "etc" / "nova" / "api-paste.ini"
    config_files = [paste, folder / "nova.conf", folder / "local.conf"]
    extra = {"OS_NOVA_CONFIG_FILES": ";".join(map(str, config_files)), **UNPATCHED}
    return _api(paths, state, name, "nova-api", extra)


def worker_name(name: str) -> str:
    return f"nova-api-{name}"


def nova_api_worker(paths: Paths, state: State, name: str) -> Service:
    """Return another process of the first nova-api, on a port of its own."""
    return _nova_api(paths, state, "first", worker_name(name))


def control_plane(paths: Paths, state: State, nova: str, cells: list[str]) -> list[Service]:
    """Return nova-api, one conductor for each cell, and the scheduler.

    The conductor of cell1 is also the super conductor.
    """
    api, scheduler = nova_api(paths, state, nova), f"{prefix(nova)}nova-scheduler"
    conductors = []
    for cell in cells:
        name = f"{prefix(nova)}nova-conductor-{cell}"
        conductors.append(_nova(paths, nova, name, "nova-conductor", [f"{cell}.conf"], cell))
    return [api, *conductors, _nova(paths, nova, scheduler, "nova-scheduler", [])]


def compute(
    paths: Paths, host: str, nova: str, cell: str, running: bool, driver: str = ""
) -> Service:
    files = [f"{cell}.conf", f"hosts/{host}.conf"]
    service = _nova(paths, nova, f"nova-compute-{host}", "nova-compute", files, host, running)
    if not driver:
        return service
    argv = [paths.program("python"), "-m", "minicloud_venv.compute", *service.argv[1:]]
    return replace(service, argv=argv)


def nova_config_arguments(paths: Paths, nova: str, more: list[str]) -> list[str]:
    folder = configs.nova_folder(paths, nova)
    return [
        argument
        for name in ["nova.conf", *more, "local.conf"]
        for argument in ("--config-file", str(folder / name))
    ]


def _nova(
    paths: Paths,
    nova: str,
    name: str,
    program: str,
    config_files: list[str],
    host: str = "",
    wanted: bool = True,
) -> Service:
    argv = [paths.program(program), *nova_config_arguments(paths, nova, config_files)]
    return Service(name, program, argv, {}, None, host, wanted)
