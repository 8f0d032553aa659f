"""The real services that ``up --with`` adds to a cloud."""

from collections.abc import Collection

from minicloud_ctl import cinder, cyborg, install, processes
from minicloud_ctl import state as states
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import CINDER, CYBORG, State


def prepare(paths: Paths, wanted: Collection[str]) -> None:
    """Install the parts that this cloud has, or gets now.

    A running cloud that gets one ends first: Nova asks only once in ten minutes what its Neutron
    can do, and its tokens have the catalogue of their time.
    """
    present = states.load(paths).parts
    added = [part for part in wanted if part not in present]
    for part in [*present, *added]:
        install.install_part(paths, part)
    if not added:
        return
    processes.stop(paths, processes.names(paths))
    with states.changing(paths) as state:
        # The real Neutron has the port of the stub.
        missing = tuple(part for part in added if part not in state.ports)
        state.ports.update(states.free_ports(missing, state.ports.values()))
        state.parts += added


def write_configs(paths: Paths, state: State) -> None:
    if CINDER in state.parts:
        cinder.write_config(paths, state)
    if CYBORG in state.parts:
        cyborg.write_config(paths, state)
