"""A live server without an instance mapping keeps its allocation while Nova skips its cell.

Nova says nothing when it leaves a cell out of a search because the servers there cannot be read
(nova/compute/multi_cell_list.py, query_wrapper), for example before its database is migrated. The
services and compute nodes of the cell are listed as ever.
"""

import contextlib
import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError, UnsoundReading
from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.findings.memory import build_memory
from .......plugins.module_utils._core.judging.engine import judge
from .......plugins.module_utils._core.models.snapshot import Answer, Scope, Snapshot
from .......plugins.module_utils._core.reading.incremental import FullReadingNeeded
from ...judging import NO_MINIMUM_AGE
from ...nova_lives import boot
from ...world import answer
from ..changes.test_nova_races import open_collector, remediate
from .test_incremental import ChangingCloud, read_fully


class SkippedCell(ChangingCloud):
    """A cloud that skips the servers of a cell in every search, and fails where only one is asked.

    The server of the life has no instance mapping, and an allocation on a second host.
    """

    def __init__(self) -> None:
        moment, self.server = boot(0, 1)
        self.home, self.other, _third = moment.nodes
        self.is_skipped = False
        super().__init__([moment])

    def _leave_out(self, found: Answer[t.Any], uuid: str) -> Answer[t.Any]:
        if uuid == self.server:
            return answer(found.request, 404)
        return found

    def get_allocations(self, consumers: t.Iterable[str]) -> t.Any:
        return [self.get_allocation(uuid).value for uuid in consumers]

    def get_server(self, uuid: str) -> t.Any:
        return self._leave_out(super().get_server(uuid), uuid)

    def list_instance_actions(self, uuid: str) -> t.Any:
        return self._leave_out(super().list_instance_actions(uuid), uuid)

    def list_server_rows(self, uuid: str, attempt: int = 0) -> t.Any:
        found = super().list_server_rows(uuid, attempt)
        if self.is_skipped and uuid == self.server:
            return d.replace(found, value=())
        return found

    def list_servers_on_host(self, host: str) -> t.Any:
        if self.is_skipped and host == self.world.nodes[self.home].host:
            return ()
        return super().list_servers_on_host(host)

    def list_changed_servers(self, since: str) -> t.Any:
        found = super().list_changed_servers(since)
        if self.is_skipped:
            return d.replace(found, value=())
        return found

    def list_hypervisors(self, with_servers: bool, roots: t.Iterable[str]) -> t.Any:
        found = super().list_hypervisors(with_servers, roots)
        if self.is_skipped and with_servers:
            return answer(found.request, 500)
        return found

    def list_hypervisor_servers(self, node: str) -> t.Any:
        if self.is_skipped and node == self.home:
            raise CloudError("Nova answered 500 when asked for the servers of the compute node.")
        return super().list_hypervisor_servers(node)


@pytest.fixture(name="cloud")
def _cloud() -> SkippedCell:
    return SkippedCell()


def clean_up(cloud: SkippedCell, read: t.Callable[[t.Any], Snapshot]) -> None:
    """Detect and remediate while the cell is skipped; a reading that fails changes nothing."""
    cloud.is_skipped = True
    with (
        contextlib.suppress(FullReadingNeeded, UnsoundReading, CloudError),
        open_collector(cloud) as reading,
    ):
        remediate(cloud, reading, judge(SnapshotIndex(read(reading)), NO_MINIMUM_AGE))
    assert not cloud.wrong, cloud.wrong


def test_incremental_run_keeps_it(cloud: SkippedCell) -> None:
    """It is looked up in every run, because a full reading could not decide."""
    snapshot, findings = read_fully(cloud)
    memory = build_memory(SnapshotIndex(snapshot), findings)
    assert memory and cloud.server in memory.watched
    cloud.remember()
    clean_up(cloud, lambda reading: reading.collect_changes(Scope(), memory))


@pytest.mark.parametrize("is_full", [True, False])
def test_run_for_all_or_for_the_other_host_keeps_it(cloud: SkippedCell, is_full: bool) -> None:
    scope = Scope() if is_full else Scope(hosts=(cloud.world.nodes[cloud.other].name,))
    clean_up(cloud, lambda reading: reading.collect(scope))
