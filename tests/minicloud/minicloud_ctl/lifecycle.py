"""From nothing to a cloud that is ready, and back."""

import contextlib
import datetime
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from minicloud_ctl import (
    cinder,
    configs,
    cyborg,
    databases,
    files,
    forking,
    identity,
    install,
    neutron,
    processes,
    rest,
    services,
)
from minicloud_ctl import parts as real_parts
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.services import Service
from minicloud_ctl.state import CINDER, CYBORG, NEUTRON, State
from minicloud_ctl.waiting import wait_for

# Steps of ``up`` that are done once.
IDENTITY = "identity"
FLAVORS_AND_IMAGE = "flavors and image"
FIRST_NETWORK = "network"

PORT_SECONDS = 10.0
# It becomes part of file names.
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}")


def up(paths: Paths, computes: int, parts: Sequence[str] = (), without_date: bool = False) -> None:
    """Start everything that should run and does not, and wait until it answers.

    ``parts`` are added for good (``states.PARTS``), and so is ``without_date``.
    """
    install.install(paths)
    state = states.create(paths)
    _add_first_computes(paths, computes)
    real_parts.prepare(paths, parts)
    if without_date and not states.load(paths).without_date:
        processes.stop(paths, processes.names(paths))
        with states.changing(paths) as state:
            state.without_date = True
    state = states.load(paths)
    configs.write_all(paths, state)
    real_parts.write_configs(paths, state)
    for name in ("keystone", "placement", "glance"):
        databases.create(paths, name, name)
    for part in state.parts:
        databases.create(paths, part, part, part)
    for nova, cells in state.novas.items():
        prepare_nova(paths, state, nova, cells)

    everything = services.all_services(paths, state)
    # The other services log in to Keystone while they start, and some give up at the first refusal.
    apis = [service for service in everything if service.port]
    start(paths, apis)
    await_http(paths, [service for service in apis if service.kind == "keystone"])
    for step in (IDENTITY, *(f"{IDENTITY} of {part}" for part in state.parts)):
        # What exists already is kept, so a part that is added later only adds its own.
        _once(paths, step, lambda: identity.set_up(state))
    began = time.time()
    late = (services.NEUTRON_AGENTS, services.CYBORG_AGENT)
    agents = [service for service in everything if service.kind in late]
    others = [service for service in everything if not service.port and service.wanted]
    fresh = start(paths, [service for service in others if service not in agents])
    await_http(paths, apis)
    cloud = Cloud(state)
    _once(paths, FLAVORS_AND_IMAGE, lambda: (cloud.create_flavors(), cloud.create_image()))
    for nova in state.novas:
        computes = state.computes.items()
        hosts = [host for host, each in computes if each["running"] and each["nova"] == nova]
        await_computes(paths, nova, hosts, {service.host for service in fresh}, began)
    if CINDER in state.parts:
        cinder.await_services(paths)
    if NEUTRON in state.parts:
        # Neutron adds the bandwidth to the providers of the hosts. If these are not there yet, it
        # tries again only at the next report.
        start(paths, [service for service in agents if service.kind == services.NEUTRON_AGENTS])
        running = [host for host, compute in state.computes.items() if compute["running"]]
        neutron.await_agents(paths, running)
        # Its first subnet is given to a living DHCP agent.
        _once(paths, FIRST_NETWORK, lambda: neutron.create_network(cloud))
    _start_cyborg_agents(paths)


def _start_cyborg_agents(paths: Paths) -> None:
    """Start the agents of Cyborg that do not run, which need the providers of their hosts."""
    wanted = services.cyborg_agents(paths, states.load(paths))
    running = [service for service in wanted if service.wanted]
    if running:
        start(paths, running)
        cyborg.await_agents(paths, [service.host for service in running])


def _add_first_computes(paths: Paths, number: int) -> None:
    with states.changing(paths) as state:
        for index in range(1, number + 1):
            state.computes.setdefault(
                f"compute-{index}", {"nova": "first", "cell": "cell1", "running": True}
            )


def _once(paths: Paths, step: str, action: Callable[[], object]) -> None:
    if step in states.load(paths).done:
        return
    action()
    with states.changing(paths) as state:
        state.done.append(step)


def prepare_nova(paths: Paths, state: State, nova: str, cells: list[str]) -> None:
    """Prepare the databases of one Nova, and its cells with their final URLs.

    A running service never notices a change.
    """
    api = f"{nova}_nova_api"
    databases.create(paths, api, "nova_api")
    for cell in ["cell0", *cells]:
        databases.create(paths, f"{nova}_{cell}", "nova_cell")
        transport = "none:///" if cell == "cell0" else configs.transport_url(state, nova, cell)
        databases.map_cell(paths, api, cell, paths.database_url(f"{nova}_{cell}"), transport)


def start(paths: Paths, wanted: list[Service]) -> list[Service]:
    """Start the services that do not run, and return them.

    Two commands at once do not start the same one twice.
    """
    started = []
    with files.locked(paths.run / ".starting"):
        if any(forking.can_fork(paths, service) for service in wanted):
            forking.prepare(paths)
        for service in wanted:
            if processes.alive(paths, service.name):
                continue
            # A leader that was killed may have left workers that still use the queue or the port.
            processes.stop(paths, [service.name], now=True)
            if service.port:
                _await_port(service)
            begin = forking.start if forking.can_fork(paths, service) else processes.start
            begin(
                paths, service.name, service.argv, services.environment(paths, service.environment)
            )
            started.append(service)
    return started


def _await_port(service: Service) -> None:
    """Wait until the port is free, which takes a moment after its last owner was killed."""

    def free() -> bool:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", service.port))
            except OSError:
                return False
            return True

    try:
        wait_for(f"port {service.port}", free, PORT_SECONDS)
    except MinicloudError:
        raise MinicloudError(
            f"Port {service.port} of {service.name} is in use by another process; 'minicloud down "
            "--purge' chooses new ports."
        ) from None


def await_http(paths: Paths, wanted: list[Service]) -> None:
    """Wait until each of the services answers on its port."""
    for service in wanted:

        def ready(service: Service = service) -> bool:
            processes.must_live(paths, [service.name])
            return (
                _listens(service.port) if service.kind == "broker" else rest.answers(service.port)
            )

        try:
            wait_for(f"{service.name} to answer on port {service.port}", ready)
        except MinicloudError as error:
            raise MinicloudError(
                str(error), error.detail or files.tail(paths.logs / f"{service.name}.log")
            ) from None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def await_computes(
    paths: Paths, nova: str, hosts: list[str], fresh: Collection[str], began: float
) -> None:
    """Wait until the hosts report, belong to a cell, and offer their inventory to the scheduler.

    The ``fresh`` ones have to report again since ``began``.
    """
    state = states.load(paths)
    cloud = Cloud(state, nova)
    prefix = services.prefix(nova)
    names = [f"nova-compute-{host}" for host in hosts] + [f"{prefix}nova-scheduler"]
    names += [f"{prefix}nova-conductor-{cell}" for cell in state.novas[nova]]
    # Nova knows no hosts of a cell that is out of reach, and then lists no hypervisors at all.
    reachable = [host for host in hosts if state.computes[host]["cell"] not in state.closed_cells]

    def ready() -> bool:
        processes.must_live(paths, names)
        known = cloud.compute_services()
        if not all(_reports(known.get(host), began if host in fresh else 0) for host in reachable):
            return False
        if state.closed_cells:
            return True
        listed = cloud.hypervisors()
        return all(host in listed and _is_offered(cloud, host) for host in hosts)

    try:
        wait_for(f"the hosts {', '.join(hosts)} to be ready", ready, interval=0.5)
    except MinicloudError as error:
        raise MinicloudError(
            str(error), error.detail or files.tail(paths.logs / f"{prefix}nova-scheduler.log")
        ) from None


def _reports(service: dict | None, since: float) -> bool:
    """Return whether Nova calls the service up, because of a report later than ``since``.

    It still does so for a while after a death.
    """
    if service is None or service["state"] != "up" or not service["updated_at"]:
        return False
    reported = datetime.datetime.fromisoformat(service["updated_at"]).replace(tzinfo=datetime.UTC)
    return reported.timestamp() >= since


def _is_offered(cloud: Cloud, host: str) -> bool:
    """nova-compute sets the trait after the inventory.

    The provider is looked up by name, because a host may not be able to create its provider
    (scenario name_conflict).
    """
    query = f"name={host}&required=COMPUTE_IMAGE_TYPE_RAW"
    return bool(cloud.placement("GET", f"/resource_providers?{query}")["resource_providers"])


def down(paths: Paths, purge: bool) -> None:
    """End every process that was ever recorded.

    With ``purge`` delete everything but the virtual environment.

    Further workers of nova-api are always forgotten: only their memory made them special.
    """
    processes.stop(paths, processes.names(paths))
    if paths.state.exists():
        # A state file of another release has no workers.
        with contextlib.suppress(MinicloudError), states.changing(paths) as state:
            state.workers.clear()
    if purge:
        # By name, because the folder may belong to somebody and contain other things, such as a
        # second minicloud below the first.
        for entry in paths.made():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)


def kill_compute(paths: Paths, host: str) -> None:
    """Send SIGKILL, and remember that the host stays dead until ``start``."""
    with states.changing(paths) as state:
        if host not in state.computes:
            raise MinicloudError(
                f"There is no compute host {host}; there are: "
                f"{', '.join(sorted(state.computes)) or 'none'}."
            )
        state.computes[host]["running"] = False
    processes.stop(paths, [f"nova-compute-{host}"], now=True)


def start_computes(
    paths: Paths, hosts: list[str], nova: str = "first", cell: str = "cell1", driver: str = ""
) -> None:
    """Start the hosts, and wait until the scheduler can use them.

    New ones get ``driver``, one of ``minicloud_venv.virt``.
    """
    with states.changing(paths) as state:
        for host in hosts:
            if not HOST_NAME.fullmatch(host):
                raise MinicloudError(
                    f"'{host}' cannot be the name of a host: letters, digits, dots and hyphens "
                    "only."
                )
            kind = {"driver": driver} if driver else {}
            state.computes.setdefault(host, {"nova": nova, "cell": cell, **kind})["running"] = True
    for host in hosts:
        configs.write_compute(
            paths, host, state.computes[host]["nova"], state.computes[host].get("driver", "")
        )
    began = time.time()
    fresh = start(paths, [services.compute(paths, host, **state.computes[host]) for host in hosts])
    by_nova: dict[str, list[str]] = {}
    for host in hosts:
        by_nova.setdefault(state.computes[host]["nova"], []).append(host)
    for name, its_hosts in by_nova.items():
        _lift_forced_down(Cloud(state, name), its_hosts)
        await_computes(paths, name, its_hosts, {service.host for service in fresh}, began)
    if NEUTRON in state.parts:
        neutron.await_agents(paths, hosts)
    if CYBORG in state.parts:
        for host in hosts:
            cyborg.write_agent(paths, host)
        _start_cyborg_agents(paths)


def _lift_forced_down(cloud: Cloud, hosts: list[str]) -> None:
    """Call the hosts up again.

    Nova refuses until a started host has processed the evacuations from it.
    """
    for host in hosts:

        def lifted(host: str = host) -> bool:
            service = cloud.compute_services().get(host, {})
            if not service.get("forced_down"):
                return True
            return cloud.nova_call(
                "PUT", f"/os-services/{service['id']}", {"forced_down": False}
            ).ok

        wait_for(f"Nova to let {host} be up again", lifted, interval=0.5)


def restart(paths: Paths, wanted: list[Service]) -> None:
    """End and start services, and wait until those with an API answer again."""
    processes.stop(paths, [service.name for service in wanted])
    start(paths, wanted)
    await_http(paths, [service for service in wanted if service.port])


@contextlib.contextmanager
def without_placement(paths: Paths) -> Iterator[None]:
    """Stop Placement for a while."""
    service = services.placement(paths, states.load(paths))
    processes.stop(paths, [service.name])
    try:
        yield
    finally:
        start(paths, [service])
        await_http(paths, [service])


def nova_manage(paths: Paths, arguments: list[str], nova: str = "first") -> int:
    """Run ``nova-manage`` with the configuration of the first cell.

    As an operator has it on a controller. Returns its exit status.
    """
    states.load(paths)
    config = services.nova_config_arguments(paths, nova, ["cell1.conf"])
    argv = [paths.program("nova-manage"), *config, *arguments]
    return subprocess.run(argv, env=services.environment(paths, {}), check=False).returncode


def status(paths: Paths) -> list[tuple[str, str, str, str]]:
    """Return (service, host, pid, "up" | "down" | "killed") of everything that should exist.

    "killed" is down on purpose.
    """
    state = states.load(paths)
    rows = []
    for service in services.all_services(paths, state):
        lives = processes.alive(paths, service.name)
        word = "up" if lives else "down" if service.wanted else "killed"
        pid = processes.pid(paths, service.name) if lives else None
        rows.append((service.name, service.host, str(pid or "-"), word))
    return rows
