"""Which capacities of hosts are findings, and which are not."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.models.finding import Finding
from .......plugins.module_utils._core.models.nova import Aggregate
from .......plugins.module_utils._core.models.placement import Inventory, ProviderDetails
from .......plugins.module_utils._core.models.snapshot import Scope
from ...world import PLENTY, answer
from ..scene import Scene

USUAL = {"VCPU": d.replace(PLENTY, allocation_ratio=4.0), "MEMORY_MB": PLENTY}


class Site(Scene):
    """Five hosts of an aggregate, with the same inventories, and a server on the first."""

    def __init__(self) -> None:
        super().__init__()
        more = (self.host(f"compute-{number}") for number in range(3, 6))
        self.hosts = [self.here, self.there, *more]
        self.server(self.here, self.here)
        self.details = {host: ProviderDetails(dict(USUAL)) for host in self.hosts}
        names = tuple(node.host for node in self.nodes.values())
        self.aggregates = [Aggregate("rack-uuid", "rack", None, names)]

    def vary(self, number: int, cls: str, **fields: t.Any) -> str:
        host = self.hosts[number]
        inventories = dict(self.details[host].inventories)
        inventories[cls] = d.replace(inventories[cls], **fields)
        self.details[host] = ProviderDetails(inventories)
        return host

    def findings(self, kind: str, **changes: t.Any) -> list[Finding]:
        fields = {"details": self.details, "aggregates": tuple(self.aggregates)}
        return self.find_kind(kind, **{**fields, "scope": Scope(kinds=(kind,)), **changes})

    def subjects(self, kind: str = "uneven_capacity") -> list[str]:
        return [finding.subject for finding in self.findings(kind)]

    def names(self, *hosts: str) -> None:
        """Let these hosts be in the aggregate."""
        self.aggregates = [d.replace(self.aggregates[0], hosts=hosts)]


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def stock(total: int, reserved: int = 0) -> Inventory:
    return d.replace(PLENTY, total=total, reserved=reserved)


EXCEEDED, DIFFERENT = "more_allocated_than_capacity", "inventory_differs"


@pytest.mark.parametrize(
    ("inventory", "reported", "reason", "named"),
    [
        ({"VCPU": stock(8)}, {"VCPU": 8}, None, ""),
        ({"VCPU": stock(0)}, {}, EXCEEDED, "1 VCPU are allocated, but the capacity is 0."),
        ({"VCPU": stock(1, 1)}, {}, EXCEEDED, "but the capacity is 0."),
        ({"VCPU": stock(8)}, {"VCPU": 16}, DIFFERENT, "8 VCPU, but the hypervisor reports 16"),
        # Of dedicated CPUs the hypervisor reports nothing.
        ({"VCPU": stock(8), "PCPU": stock(24)}, {"VCPU": 8}, None, ""),
        ({"PCPU": stock(24)}, {"VCPU": 0}, None, ""),
        ({"VCPU": stock(1)}, {}, None, ""),
        ({"CUSTOM_X": stock(0)}, {}, None, ""),
        ({"VCPU": stock(1, 1)}, {"VCPU": 16}, EXCEEDED, "is 0; the inventory has 1 VCPU"),
        ({"MEMORY_MB": PLENTY}, {"MEMORY_MB": 0}, None, ""),
        ({"CUSTOM_X": PLENTY}, {"VCPU": 16}, None, ""),
    ],
)
def test_exceeded_or_mismatched_capacity_is_reported(
    site: Site,
    inventory: dict[str, Inventory],
    reported: dict[str, int],
    reason: str | None,
    named: str,
) -> None:
    site.nodes[site.here] = d.replace(site.nodes[site.here], has=reported)
    site.details[site.here] = ProviderDetails(inventory)
    found = site.findings("capacity_mismatch")

    assert [(one.subject, one.reason.id) for one in found] == [(site.here, reason)] * bool(reason)
    for finding in found:
        assert named in finding.reason and finding.change is None
        assert ("remove the orphans" in finding.reason) is (reason == EXCEEDED)
        assert ("Restart nova-compute" in finding.reason) is ("hypervisor" in finding.reason)


def test_hosts_that_are_right_do_not_hide_a_later_one(site: Site) -> None:
    last = site.hosts[-1]
    site.nodes[last] = d.replace(site.nodes[last], has={"VCPU": 1})

    found = site.findings("capacity_mismatch")
    assert [(one.subject, one.reason.id) for one in found] == [(last, DIFFERENT)]


def test_hosts_that_are_all_alike_are_no_finding(site: Site) -> None:
    assert site.findings("uneven_capacity") == []


@pytest.mark.parametrize(
    ("cls", "fields", "told", "advice"),
    [
        (
            "VCPU",
            {"allocation_ratio": 16.0},
            "the allocation_ratio of VCPU is 16.0, but 4.0 on the 4 other hosts of aggregate rack",
            "cpu_allocation_ratio in nova.conf",
        ),
        ("MEMORY_MB", {"reserved": 512}, "is 512, but 0", "reserved_host_memory_mb"),
        ("MEMORY_MB", {"total": 500}, "total of MEMORY_MB is 500, but 1000", "hardware"),
    ],
)
def test_the_only_host_that_differs_is_reported(
    site: Site, cls: str, fields: dict[str, t.Any], told: str, advice: str
) -> None:
    host = site.vary(2, cls, **fields)
    (finding,) = site.findings("uneven_capacity")

    assert (finding.subject, finding.change) == (host, None)
    assert told in finding.reason and advice in finding.reason


def test_the_command_sets_only_the_ratios(site: Site) -> None:
    site.vary(2, "VCPU", allocation_ratio=16.0, reserved=1)
    host = site.vary(2, "MEMORY_MB", allocation_ratio=1.5)
    (finding,) = site.findings("uneven_capacity")

    assert finding.commands == (
        "openstack resource provider inventory set --amend "
        "--resource MEMORY_MB:allocation_ratio=1.0 "
        f"--resource VCPU:allocation_ratio=4.0 {host}",
    )
    assert finding.reason.id == "inventory_unlike_neighbors"


def test_three_neighbors_are_enough(site: Site) -> None:
    site.names(*site.aggregates[0].hosts[:4])
    host = site.vary(2, "VCPU", allocation_ratio=16.0)

    assert site.subjects() == [host]


def test_each_advice_is_given_once(site: Site) -> None:
    """No option of nova.conf reserves the amount of a class of one's own."""
    for host in site.hosts:
        site.details[host] = ProviderDetails({**USUAL, "CUSTOM_X": PLENTY, "CUSTOM_Y": PLENTY})
    site.vary(2, "CUSTOM_X", reserved=1)
    site.vary(2, "CUSTOM_Y", reserved=1)
    (finding,) = site.findings("uneven_capacity")

    assert finding.reason.count("Look at the hardware") == 1
    assert finding.reason.count("CUSTOM_") == 2


def test_hosts_of_an_aggregate_that_nova_does_not_have_are_left_out(site: Site) -> None:
    site.names("absent", *site.aggregates[0].hosts)
    host = site.vary(2, "VCPU", allocation_ratio=16.0)

    assert site.subjects() == [host]


def test_small_aggregates_do_not_hide_a_larger_one(site: Site) -> None:
    site.aggregates.append(Aggregate("pair-uuid", "pair", None, ("compute-1", "compute-2")))
    host = site.vary(2, "VCPU", allocation_ratio=16.0)

    assert site.subjects() == [host]


def test_ratio_of_a_class_without_an_option_is_to_be_set_in_placement(site: Site) -> None:
    for host in site.hosts:
        site.details[host] = ProviderDetails({**USUAL, "CUSTOM_X": PLENTY})
    site.vary(2, "CUSTOM_X", allocation_ratio=2.0)
    (finding,) = site.findings("uneven_capacity")

    assert finding.reason.endswith("Set the ratio in Placement if it is not on purpose.")


def test_a_reserved_amount_has_no_command(site: Site) -> None:
    site.vary(2, "MEMORY_MB", reserved=512)
    (finding,) = site.findings("uneven_capacity")

    assert finding.commands == ()


def _be_usual_elsewhere(site: Site) -> None:
    """The host is one of another type, and its zone has one of it."""
    names = ["compute-3"]
    for number in range(6, 9):
        host = site.host(f"compute-{number}")
        names.append(f"compute-{number}")
        site.details[host] = site.details[site.hosts[2]]
    site.aggregates.append(Aggregate("type-uuid", "type", None, tuple(names)))


def test_hosts_that_all_differ_elsewhere_explain_nothing(site: Site) -> None:
    odd = site.vary(0, "VCPU", allocation_ratio=16.0)
    names = ["compute-1", "compute-2"]
    for number in (6, 7, 8, 9):
        host = site.host(f"compute-{number}")
        names.append(f"compute-{number}")
        stock = d.replace(USUAL["VCPU"], allocation_ratio=float(number))
        site.details[host] = ProviderDetails({**USUAL, "VCPU": stock})
    site.aggregates.append(Aggregate("mixed-uuid", "mixed", None, tuple(names)))

    assert site.subjects() == [odd]


NO_PROOF: dict[str, t.Callable[[Site], object]] = {
    "two differ": lambda site: site.vary(3, "VCPU", allocation_ratio=16.0),
    "all differ": lambda site: site.vary(3, "VCPU", allocation_ratio=8.0),
    "two neighbors": lambda site: site.names("compute-1", "compute-2", "compute-3"),
    "usual elsewhere": _be_usual_elsewhere,
    "one was not read": lambda site: site.details.pop(site.here),
    "one has no inventory": lambda site: site.details.update({site.here: ProviderDetails({})}),
}


@pytest.mark.parametrize("arrange", NO_PROOF.values(), ids=NO_PROOF)
def test_a_difference_that_proves_nothing_is_no_finding(
    site: Site, arrange: t.Callable[[Site], object]
) -> None:
    site.vary(2, "VCPU", allocation_ratio=16.0)
    assert len(site.subjects()) == 1
    arrange(site)

    assert site.subjects() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": Scope(hosts=("compute-1",), kinds=("uneven_capacity",)), "trees": "all"},
        {"scope": Scope()},
        {"services": answer("GET /os-services", 500)},
    ],
    ids=["hosts are named", "no kind is named", "unsound"],
)
def test_a_difference_is_compared_in_a_whole_and_sound_reading_only(
    site: Site, changes: dict[str, t.Any]
) -> None:
    site.vary(2, "VCPU", allocation_ratio=16.0)
    if "trees" in changes:
        changes = {**changes, "trees": tuple(site.hosts)}

    assert site.findings("uneven_capacity", **changes) == []


def test_more_reserved_than_there_is_leaves_less_than_nothing(site: Site) -> None:
    host = site.vary(1, "VCPU", total=4, reserved=5)
    (finding,) = site.findings("capacity_mismatch")

    assert (finding.subject, finding.reason.id) == (host, EXCEEDED)
    assert "0 VCPU are allocated, but the capacity is -4" in finding.reason


def test_host_that_an_aggregate_names_twice_is_one_member(site: Site) -> None:
    odd = site.vary(0, "VCPU", allocation_ratio=2.0)
    names = [node.host for node in site.nodes.values()]
    site.names(*names, names[-1])

    assert site.subjects() == [odd]
