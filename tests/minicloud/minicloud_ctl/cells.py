"""Adds a further cell to the first Nova while it runs.

It follows Nova's guide "Adding a new cell to an existing deployment".

nova-api itself and the scheduler are restarted and know the cell. Other workers of nova-api
(``api_workers``) are left alone: each continues with the cells that it found when it first looked.
"""

import re
from collections.abc import Sequence

from minicloud_ctl import configs, lifecycle, services
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

# It becomes part of file names and of a URL.
NAME = re.compile(r"cell[1-9][0-9]?")


def add(paths: Paths, cell: str, hosts: Sequence[str] = ()) -> None:
    """Create the cell if it does not exist, and wait until it can be used.

    With its database, its conductor and these hosts.
    """
    if not NAME.fullmatch(cell):
        raise MinicloudError(f"'{cell}' cannot be the name of a cell: cell1 to cell99.")
    with states.changing(paths) as state:
        cells = state.novas["first"]
        is_new = cell not in cells
        if is_new:
            cells.append(cell)
    if is_new:
        _create(paths, cells)
    if hosts:
        lifecycle.start_computes(paths, list(hosts), cell=cell)


def _create(paths: Paths, cells: list[str]) -> None:
    state = states.load(paths)
    configs.write_nova(paths, state, "first", cells)
    lifecycle.prepare_nova(paths, state, "first", cells)
    api, *others = services.control_plane(paths, state, "first", cells)
    # Both know only the cells that existed when they started.
    lifecycle.restart(paths, [api, others[-1]])
    lifecycle.start(paths, others)
