"""Whether the hosts of a plan are still in the groups that it was made for."""

import typing as t

import pytest

from .......plugins.module_utils._core.changes import group_check
from .......plugins.module_utils._core.changes.group_check import EVERY_HOST, GroupCheck
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.snapshot import HostGroups, Snapshot
from ...judging import NO_MINIMUM_AGE, judge
from ...world import World

RACK = HostGroups(aggregates=("uuid",), aggregate_names=("rack\x1b7",))


class Site(World):
    """Two hosts, a child of the second one, and a pool of both."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("node-1", "compute-1"), self.host("node-2", "compute-2")
        self.pool = self.provider("pool", sharing=True)

    def change(self, kind: str) -> tuple[Change, Snapshot]:
        """Return the change of the only finding of a kind, and the reading."""
        snapshot = self.snapshot()
        (finding,) = [found for found in judge(snapshot, NO_MINIMUM_AGE) if found.kind == kind]
        assert isinstance(finding.change, Change)
        return finding.change, snapshot


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def _explain(change: Change, snapshot: Snapshot, *hosts: str) -> str:
    (reason,) = GroupCheck(RACK, frozenset(hosts)).explain_changes([change], snapshot)
    return reason


@pytest.mark.parametrize(
    ("hosts", "allowed"),
    [(["compute-2"], True), (["compute-1"], False), (["node-2"], False), ([], False)],
    ids=str,
)
def test_the_host_that_is_freed_decides_and_not_that_of_the_server(
    site: Site, hosts: list[str], allowed: bool
) -> None:
    site.server(site.here, site.here, site.there)
    change, snapshot = site.change("extra_host")

    reason = _explain(change, snapshot, *hosts)

    assert (reason is None) is allowed
    if not allowed:
        assert reason.id == "host_left_groups"
        assert reason.startswith("compute-2 ") and r"rack\x1b7" in reason


@pytest.mark.parametrize("host", ["compute-1", "compute-2"])
def test_a_consumer_on_several_hosts_is_removed_for_one_of_them(site: Site, host: str) -> None:
    site.delete(site.server(site.here, site.here, site.there))
    change, snapshot = site.change("deleted_server")

    assert _explain(change, snapshot, host) is None
    assert _explain(change, snapshot, "compute-3").startswith("compute-1, compute-2 ")


def test_a_pool_belongs_to_no_host(site: Site) -> None:
    site.delete(site.server(site.here, site.here, site.pool))
    change, snapshot = site.change("deleted_server")

    assert _explain(change, snapshot, "compute-1") is None
    assert _explain(change, snapshot, "pool").startswith("compute-1 ")


def test_the_hosts_of_the_groups_are_read_now(monkeypatch: pytest.MonkeyPatch) -> None:
    session: t.Any = object()
    members = {(session, RACK): frozenset({"compute-1"})}
    monkeypatch.setattr(
        group_check, "read_hosts_still_in_groups", lambda *arguments: members[arguments]
    )

    assert GroupCheck.read(session, RACK) == GroupCheck(RACK, frozenset({"compute-1"}))


def test_a_name_of_a_host_has_at_most_100_characters(site: Site) -> None:
    host = site.host("node-3", "c" * 101)
    site.delete(site.server(host, host))
    change, snapshot = site.change("deleted_server")

    assert _explain(change, snapshot, "compute-1").startswith(f"{'c' * 99}… ")


def test_another_owner_changes_all_hosts_of_the_server(site: Site) -> None:
    site.server(site.here, site.here, user="another")
    change, snapshot = site.change("wrong_owner")

    assert _explain(change, snapshot, "compute-1") is None
    assert _explain(change, snapshot, "compute-2") is not None


def test_a_provider_without_a_node_goes_by_its_name(site: Site) -> None:
    ghost, snapshot = site.provider("gone"), site.snapshot()

    assert GroupCheck(RACK, frozenset({"gone"})).explain_provider(ghost, snapshot) is None
    assert GroupCheck(RACK, frozenset({"compute-1"})).explain_provider(ghost, snapshot)


@pytest.mark.parametrize("is_child", [True, False])
def test_a_provider_whose_root_is_gone_is_of_no_host(site: Site, is_child: bool) -> None:
    root = site.provider("gone")
    child = site.provider("gone_nic", root)
    del site.providers[root]
    provider = child if is_child else root

    reason = GroupCheck(RACK, frozenset({"gone"})).explain_provider(provider, site.snapshot())

    assert reason is not None and reason.id == "host_left_groups"


def test_a_plan_without_groups_may_change_every_host(site: Site) -> None:
    site.server(site.here, site.here, site.there)

    change, snapshot = site.change("extra_host")

    assert EVERY_HOST.explain_changes([change, change], snapshot) == [None, None]
    assert EVERY_HOST.explain_provider(site.there, snapshot) is None
