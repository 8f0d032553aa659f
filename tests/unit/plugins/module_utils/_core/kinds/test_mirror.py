"""Which differences between the groups of Nova and of Placement are findings, and which are not."""

import dataclasses as d
import shlex
import typing as t

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Aggregate, Service
from .......plugins.module_utils._core.models.placement import ProviderAggregates
from .......plugins.module_utils._core.models.snapshot import (
    NOT_ASKED,
    Answer,
    Mirror,
    Scope,
    Shard,
)
from ...world import answer
from ..scene import Scene

RACK, OTHER = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
TRAIT = "CUSTOM_LICENSED"
SYNC = "nova-manage placement sync_aggregates"


def _uuids(*uuids: str) -> Answer[tuple[str, ...]]:
    return answer("GET /resource_providers", 200, uuids)


class Site(Scene):
    """Three hosts, of which Nova and Placement have the first two in an aggregate."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = self.here, self.there, self.host("compute-3")
        self.server(self.one, self.one)
        self.rack = Aggregate(RACK, "rack", None, ("compute-1", "compute-2"), id=7)
        self.members: tuple[str, ...] = (self.one, self.two)
        self.lacking: tuple[str, ...] = ()
        self.disabled: tuple[str, ...] = ()
        # All aggregates of each provider.
        self.aggregates: dict[str, tuple[str, ...]] = {}

    def groups(self, **changes: t.Any) -> Mirror:
        groups = Mirror(
            aggregates=(self.rack,),
            members={RACK: _uuids(*self.members)},
            lacking={RACK: {TRAIT: _uuids(*self.lacking)}},
            disabled=_uuids(*self.disabled),
            provider_aggregates={
                uuid: answer("GET", 200, ProviderAggregates(5, self.aggregates.get(uuid, (RACK,))))
                for uuid in self.nodes
            },
        )
        return d.replace(groups, **changes)

    def findings(self, kind: str, again: Mirror | None = None, **changes: t.Any) -> list[Finding]:
        groups = {"mirror": self.groups(), "mirror_again": again or self.groups()}
        return self.find_kind(kind, **{**groups, **changes})

    def gains(self, *members: str) -> None:
        """Let Placement have more providers in the aggregate."""
        self.members = (*self.members, *members)

    def names(self, host: str) -> None:
        """Let Nova have another host in the aggregate."""
        self.rack = d.replace(self.rack, hosts=(*self.rack.hosts, host))

    def requires(self, *traits: str) -> None:
        """Let the aggregate require these traits."""
        metadata = {f"trait:{name}": "required" for name in traits}
        self.rack = d.replace(self.rack, metadata=metadata)

    def disable(self, host: str, state: str = "up") -> None:
        changed = Service("nova-compute", host, "disabled", state)
        self.services = [changed if service.host == host else service for service in self.services]


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


@pytest.mark.parametrize("kind", ["aggregate_mismatch", "trait_mismatch"])
def test_groups_that_agree_are_no_finding(site: Site, kind: str) -> None:
    assert site.findings(kind) == []


@pytest.mark.parametrize("kind", ["aggregate_mismatch", "trait_mismatch"])
def test_groups_that_were_not_read_are_no_finding(site: Site, kind: str) -> None:
    assert site.findings(kind, mirror=None, mirror_again=None) == []


def test_host_that_placement_lacks_is_added_by_novas_command(site: Site) -> None:
    site.members = (site.one,)
    (finding,) = site.findings("aggregate_mismatch")

    assert (finding.id, finding.verdict) == (f"aggregate_mismatch/{RACK}", "drifted")
    assert finding.reason.id == "hosts_missing_in_placement" and RACK in finding.reason
    assert finding.providers == (site.two,)
    assert finding.commands == (SYNC,)
    assert finding.change is None


def test_host_without_a_compute_node_leaves_the_others_to_novas_command(site: Site) -> None:
    """It goes on, and names such a host at the end (nova/cmd/manage.py, sync_aggregates)."""
    site.members = (site.one,)
    site.names("compute-9")
    (finding,) = site.findings("aggregate_mismatch")

    assert finding.providers == (site.two,)
    assert finding.commands == (SYNC,)


def test_host_that_nova_lacks_is_taken_out_with_all_its_other_aggregates_kept(site: Site) -> None:
    site.members = (site.one, site.two, site.three)
    site.aggregates[site.three] = (RACK, OTHER)
    (finding,) = site.findings("aggregate_mismatch")

    assert finding.reason.id == "hosts_missing_in_nova"
    assert finding.commands == (
        "openstack --os-placement-api-version 1.19 resource provider aggregate set "
        f"--generation 5 --aggregate {OTHER} {site.three}",
    )


def test_host_is_taken_out_of_all_wrong_aggregates_at_once(site: Site) -> None:
    """The command of one of them would otherwise put the host into the other again."""
    site.members = (site.one, site.two, site.three)
    second = Aggregate(OTHER, "other", None, (), id=8)
    site.aggregates[site.three] = (RACK, OTHER)
    groups = site.groups(
        aggregates=(site.rack, second),
        members={RACK: _uuids(*site.members), OTHER: _uuids(site.three)},
    )
    findings = site.findings("aggregate_mismatch", groups, mirror=groups)

    assert [finding.subject for finding in findings] == [RACK, OTHER]
    for finding in findings:
        assert "--aggregate" not in shlex.split(finding.commands[0])


def _spell_host_otherwise(site: Site) -> None:
    site.names("Compute-3")
    site.gains(site.three)


def _make_bare_metal(site: Site) -> None:
    site.names("ironic")
    site.host("node-1", "ironic")
    site.gains(site.host("node-2", "ironic"))


def _name_node_by_uuid(site: Site) -> None:
    site.names("ironic")
    site.host("cccccccc-0000-4000-8000-000000000000", "ironic")


def _lose_provider(site: Site) -> None:
    site.members = (site.one,)
    del site.providers[site.two]


@pytest.mark.parametrize(
    "arrange",
    [
        lambda site: site.gains(site.three, site.provider("pool", sharing=True)),
        _spell_host_otherwise,
        lambda site: site.gains(site.provider("child", site.three)),
        lambda site: site.gains(site.provider("of-another-nova")),
        lambda site: site.gains(OTHER),
        lambda site: site.names("compute-9"),
        _make_bare_metal,
        _name_node_by_uuid,
        _lose_provider,
    ],
    ids=[
        "sharing provider",
        "host in another spelling",
        "child",
        "root without a node",
        "unknown provider",
        "unknown host",
        "bare metal",
        "node named by its UUID",
        "lost provider",
    ],
)
def test_what_may_be_right_is_no_aggregate_mismatch(
    site: Site, arrange: t.Callable[[Site], None]
) -> None:
    arrange(site)

    assert site.findings("aggregate_mismatch") == []


def test_missing_and_surplus_hosts_are_both_told(site: Site) -> None:
    site.members = (site.one, site.three)
    (finding,) = site.findings("aggregate_mismatch")

    assert finding.reason.id == "hosts_missing_in_placement"
    assert "compute-2" in finding.reason and "compute-3" in finding.reason


def test_each_trait_that_is_required_and_missing_is_told(site: Site) -> None:
    names = ("CUSTOM_A", "CUSTOM_B")
    site.requires(*names)
    groups = site.groups(lacking={RACK: dict.fromkeys(names, _uuids(site.two))})
    (finding,) = site.findings("trait_mismatch", groups, mirror=groups)

    assert all(name in finding.reason for name in names)
    assert len(finding.commands) == len(finding.evidence) == 2


def test_hosts_with_several_nodes_rule_out_novas_command(site: Site) -> None:
    """It ends at the first such host (nova/cmd/manage.py, sync_aggregates)."""
    _make_bare_metal(site)
    site.members = (site.one,)
    site.aggregates[site.two] = (OTHER,)
    (finding,) = site.findings("aggregate_mismatch")

    assert finding.providers == (site.two,)
    assert finding.commands == (
        "openstack --os-placement-api-version 1.19 resource provider aggregate set "
        f"--generation 5 --aggregate {RACK} --aggregate {OTHER} {site.two}",
    )


@pytest.mark.parametrize("is_asked", [True, False])
def test_without_the_aggregates_of_the_provider_there_is_no_command(
    site: Site, is_asked: bool
) -> None:
    site.members = (site.one, site.two, site.three)
    unread = dict.fromkeys(site.nodes, answer("GET", 503)) if is_asked else {}
    (finding,) = site.findings("aggregate_mismatch", site.groups(provider_aggregates=unread))

    assert finding.commands == ()
    assert finding.reason.endswith("leave out 1 of the hosts: detect again after them.")


@pytest.mark.parametrize(
    "again",
    [
        {"members": {RACK: answer("GET", 500)}},
        {"members": {}},
        {"aggregates": ()},
        {"members": {RACK: _uuids("00000002-0000-4000-8000-000000000000")}},
    ],
    ids=["not answered", "not read", "aggregate deleted", "another host is missing"],
)
def test_what_the_second_reading_does_not_show_is_no_finding(
    site: Site, again: dict[str, t.Any]
) -> None:
    site.members = (site.one,)

    assert site.findings("aggregate_mismatch", site.groups(**again)) == []


def test_aggregate_that_agrees_in_the_end_does_not_hide_a_later_one(site: Site) -> None:
    other = Aggregate(OTHER, "other", None, ("compute-1",), id=8)
    first, again = (
        site.groups(
            aggregates=(site.rack, other), members={RACK: _uuids(*members), OTHER: _uuids()}
        )
        for members in ((), (site.one, site.two))
    )
    (finding,) = site.findings("aggregate_mismatch", again, mirror=first)

    assert finding.subject == OTHER


def test_host_that_nova_adds_meanwhile_is_no_finding(site: Site) -> None:
    before = site.groups(members={RACK: _uuids(site.one)})

    assert site.findings("aggregate_mismatch", mirror=before) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"services": answer("GET /os-services", 500)},
        {"scope": Scope(hosts=("compute-1",)), "trees": ()},
    ],
    ids=["unsound", "out of scope"],
)
@pytest.mark.parametrize("kind", ["aggregate_mismatch", "trait_mismatch"])
def test_unsound_reading_and_other_hosts_have_no_finding(
    site: Site, kind: str, changes: dict[str, t.Any]
) -> None:
    site.members, site.disabled, site.lacking = (site.one,), (site.three,), (site.two,)
    site.requires(TRAIT)
    assert site.findings(kind)

    assert site.findings(kind, **changes) == []


def test_hosts_of_a_silent_cell_have_no_finding(site: Site) -> None:
    site.members, site.disabled, site.lacking = (site.one,), (site.two,), (site.two,)
    site.requires(TRAIT)
    for kind in ("aggregate_mismatch", "trait_mismatch"):
        assert site.findings(kind, **site.silence("compute-2")) == []


def test_trait_that_the_aggregate_requires_is_added_to_those_of_the_host(site: Site) -> None:
    site.requires(TRAIT)
    # The third has no such requirement, and is only in Placement's aggregate.
    site.lacking = (site.two, site.three)
    (finding,) = site.findings("trait_mismatch")

    assert finding.id == f"trait_mismatch/{RACK}"
    assert finding.providers == (site.two,)
    assert finding.reason.id == "required_trait_missing" and TRAIT in finding.reason
    # Only an operator sets it.
    assert "nova-compute" not in finding.reason
    (command,) = finding.commands
    assert command.startswith("traits=$(openstack ") and " && " in command
    assert command.endswith(f"--trait {TRAIT} {site.two}")


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {f"trait:{TRAIT}": "forbidden"},
        {f"trait:{TRAIT}; reboot": "required"},
        {"trait:CUSTOM_OTHER": "required"},
    ],
)
def test_trait_that_is_not_required_may_be_missing(site: Site, metadata: dict[str, str]) -> None:
    site.rack = d.replace(site.rack, metadata=metadata)
    site.lacking = (site.two,)

    assert site.findings("trait_mismatch") == []


def test_trait_that_is_there_in_the_end_does_not_hide_a_later_one(site: Site) -> None:
    names = ("CUSTOM_A", "CUSTOM_B")
    site.requires(*names)
    first, again = (
        site.groups(lacking={RACK: dict(zip(names, map(_uuids, lacking), strict=True))})
        for lacking in ((site.one, site.two), ("", site.two))
    )
    (finding,) = site.findings("trait_mismatch", again, mirror=first)

    assert finding.providers == (site.two,)
    assert finding.evidence == (again.lacking[RACK]["CUSTOM_B"],)
    assert "CUSTOM_B" in finding.reason and "CUSTOM_A" not in finding.reason


def test_aggregate_that_has_its_traits_in_the_end_does_not_hide_a_later_one(site: Site) -> None:
    site.requires(TRAIT)
    aggregates = (site.rack, d.replace(site.rack, uuid=OTHER, id=8))
    lacking = {TRAIT: _uuids(site.two)}
    members = dict.fromkeys((RACK, OTHER), _uuids(*site.members))
    first, again = (
        site.groups(aggregates=aggregates, members=members, lacking={RACK: rack, OTHER: lacking})
        for rack in (lacking, {TRAIT: _uuids()})
    )
    (finding,) = site.findings("trait_mismatch", again, mirror=first)

    assert finding.subject == OTHER


def test_trait_of_nova_compute_is_not_to_be_added_by_hand(site: Site) -> None:
    site.requires("HW_CPU_X86_VMX")
    groups = site.groups(lacking={RACK: {"HW_CPU_X86_VMX": _uuids(site.two)}})
    (finding,) = site.findings("trait_mismatch", groups, mirror=groups)

    assert "nova-compute reports this trait itself" in finding.reason
    assert finding.commands == ()


def test_enabled_host_loses_the_trait_of_disabled_ones(site: Site) -> None:
    site.disabled = (site.two,)
    (finding,) = site.findings("trait_mismatch")

    assert finding.id == f"trait_mismatch/{site.two}"
    assert finding.reason.id == "disabled_trait_left"
    assert finding.service is not None and finding.service.host == "compute-2"
    (command,) = finding.commands
    assert " | grep -vx COMPUTE_STATUS_DISABLED) && " in command
    assert command.endswith(f"'s/^/--trait /') {site.two}")


def test_host_that_is_right_in_the_end_does_not_hide_a_later_one(site: Site) -> None:
    first = site.groups(disabled=_uuids(site.one, site.two))
    again = site.groups(disabled=_uuids(site.two))
    (finding,) = site.findings("trait_mismatch", again, mirror=first)

    assert finding.subject == site.two


def test_disabled_host_gets_its_trait(site: Site) -> None:
    site.disable("compute-2")
    (finding,) = site.findings("trait_mismatch")

    (command,) = finding.commands
    assert command.endswith(f"--trait COMPUTE_STATUS_DISABLED {site.two}")
    assert finding.reason.id == "disabled_trait_missing"


def _disable_everywhere(site: Site) -> dict[str, t.Any]:
    site.disable("compute-2")
    site.disabled = (site.two,)
    return {}


def _disable_dead_host(site: Site) -> dict[str, t.Any]:
    site.disable("compute-2", "down")
    return {}


def _enable_meanwhile(site: Site) -> dict[str, t.Any]:
    before = answer("GET /os-services", 200, tuple(site.services))
    site.disable("compute-2")
    return {"services": before}


def _list_service_twice(site: Site) -> dict[str, t.Any]:
    site.disabled = (site.two,)
    site.services.append(Service("nova-compute", "compute-2", "enabled", "up"))
    return {}


def _do_not_answer(site: Site) -> dict[str, t.Any]:
    site.disable("compute-2")
    return {"mirror_again": site.groups(disabled=NOT_ASKED)}


@pytest.mark.parametrize(
    "arrange",
    [
        _disable_everywhere,
        _disable_dead_host,
        _enable_meanwhile,
        _list_service_twice,
        _do_not_answer,
    ],
    ids=lambda arrange: arrange.__name__.strip("_"),
)
def test_what_may_be_right_is_no_wrong_status(
    site: Site, arrange: t.Callable[[Site], dict[str, t.Any]]
) -> None:
    changes = arrange(site)

    assert site.findings("trait_mismatch", **changes) == []


def test_names_of_the_cloud_are_in_no_command(site: Site) -> None:
    """Only their uuids are, whatever a host or an aggregate is called."""
    hostile = "$(reboot); `reboot`"
    host = site.host(hostile)
    site.disabled, site.members, site.lacking = (host,), (host,), (host,)
    metadata = {f"trait:{TRAIT}": "required"}
    site.rack = d.replace(site.rack, name=hostile, hosts=(hostile, "compute-2"), metadata=metadata)
    commands: list[str] = []
    for kind in ("aggregate_mismatch", "trait_mismatch"):
        for finding in site.findings(kind):
            assert hostile in finding.reason
            commands += finding.commands

    assert len(commands) == 3 and not any("reboot" in command for command in commands)


def test_each_shard_reports_the_status_of_its_own_hosts(site: Site) -> None:
    site.disabled = (site.one, site.two)
    shard = Scope(shard=Shard(1, 2))
    found = site.findings("trait_mismatch", scope=shard, trees=(site.two,))

    assert [finding.subject for finding in found] == [site.two]


def test_a_shard_compares_all_hosts_of_its_aggregates(site: Site) -> None:
    site.members = (site.one,)
    shard = Scope(shard=Shard(1, 2))

    assert len(site.findings("aggregate_mismatch", scope=shard, trees=())) == 1
