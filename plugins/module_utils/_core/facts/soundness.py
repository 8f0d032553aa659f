# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the reading as a whole is sound enough for anything to be changed.

The wrong region, a second Nova on the same Placement, a role that lists everything and may look at
nothing, API workers that do not know the same cells: each makes every allocation look like an
orphan. A cell that does not answer fails no check here: what that means is decided for each
consumer, in `facts.gaps`.
"""

from __future__ import annotations

from collections.abc import Collection, Container

from ..._common.errors import Reason
from ..._common.text import summarize_names
from ..models.kind import Requirement
from ..models.kinds import KINDS
from ..models.nova import Hypervisor, Server
from ..models.snapshot import Answer, Cloud, Listings, Snapshot
from .agreement import list_disagreements, list_doubtful_hosts
from .services import list_hosts_without_service, list_silent_hosts


def list_failed_checks(listings: Listings) -> tuple[Reason, ...]:
    """Return a sentence for each reason why nothing may be changed after this reading.

    The result is empty when the reading is sound. Of listings alone, it says whether the reading is
    sound so far; of a `Snapshot`, the evidence counts as well.
    """
    checks = (
        _check_services,
        _check_listings,
        _check_hypervisor_listing,
        _check_region,
        _check_credentials,
        _check_migration_hosts,
        _check_filters,
    )
    failures = filter(None, (check(listings) for check in checks))
    return (*_list_unmet(listings.cloud), *failures, *list_disagreements(listings))


def _check_services(listings: Listings) -> Reason | None:
    """Nova does not list its services before or after the reading, so it is unknown which cells
    answer.
    """
    for when, answer in (("before", listings.services), ("after", listings.services_after)):
        if answer.value is None:
            return Reason(
                "services_unread",
                f"Nova answered {answer.status} when asked for its services {when} the reading.",
            )
    return None


def list_failed_absence_checks(snapshot: Snapshot) -> tuple[Reason, ...]:
    """Return a sentence for each reason why nothing may be concluded from absence.

    The result is empty when the reading is sound and every cell answered.
    """
    silent = summarize_names(list_silent_hosts(snapshot))
    without_service = summarize_names(list_hosts_without_service(snapshot))
    doubtful = summarize_names(list_doubtful_hosts(snapshot))
    down = Reason(
        "cell_down", f"A cell is not answering: Nova could not say anything about {silent}."
    )
    left_out = Reason(
        "listings_leave_out_hosts",
        f"Nova's listings leave out {doubtful}, "
        "and GET /os-hosts did not show whether there is a compute node.",
    )
    deleted = Reason(
        "hosts_without_service",
        f"Nova's listings leave out {without_service}, whose compute service was deleted from its "
        "database, but not the compute node.",
    )
    more = ((down, silent), (left_out, doubtful), (deleted, without_service))
    return (*list_failed_checks(snapshot), *(reason for reason, hosts in more if hosts))


def _check_listings(listings: Listings) -> Reason | None:
    """Nova does not list its compute nodes or its migrations."""
    for what, answer in (
        ("compute nodes", listings.hypervisors),
        ("migrations", listings.migrations),
    ):
        if answer.value is not None:
            continue
        # 400 is the answer of a worker that does not know the cell of the marker of a page.
        if answer.status == 400:
            return Reason(
                "listing_not_continued",
                f"Nova could not continue the listing of its {what} in several attempts: "
                "its API workers do not all know the same cells. "
                "Restart every nova-api, then run again.",
            )
        # Any other status below 500 is the answer of a proxy.
        cause = ": a cell is not answering" if answer.status >= 500 else ""
        return Reason(
            "listing_unread", f"Nova answered {answer.status} when asked for its {what}{cause}."
        )
    return None


def _check_hypervisor_listing(listings: Listings) -> Reason | None:
    """Nova could not list its compute nodes, although no listing of its services shows a cell that
    is down.

    The compute nodes that the servers of other hosts show instead are not all of them, and it is
    unknown which hosts are missing.
    """
    if listings.every_cell_listed or list_silent_hosts(listings):
        return None
    return Reason(
        "cell_was_down",
        "Nova could not list its compute nodes because a cell did not answer for a while. "
        "All cells answer now: run again.",
    )


def _check_region(listings: Listings) -> Reason | None:
    """Fewer than half of the compute nodes have a resource provider in this Placement: the region
    is wrong, or this Placement belongs to another Nova.
    """
    nodes = listings.hypervisors.value
    return None if nodes is None else find_region_mismatch(nodes, listings.providers)


def find_region_mismatch(nodes: Collection[Hypervisor], providers: Container[str]) -> Reason | None:
    """Return a sentence when most compute nodes of a Nova have no provider in this Placement.

    A Nova without any compute node gets the same sentence. The result is None otherwise.
    """
    here = sum(node.uuid in providers for node in nodes)
    if here and here * 2 >= len(nodes):
        return None
    have = "has" if here == 1 else "have"
    return Reason(
        "nodes_not_in_placement",
        f"{here} of {len(nodes)} hypervisors {have} a resource provider in this Placement: "
        "check that the region is right and that this Placement belongs to this Nova.",
    )


def _check_credentials(listings: Listings) -> Reason | None:
    """These credentials list servers that they may not look up, or do not see hosts: every server
    then looks deleted.
    """
    judged = _list_foreign_samples(listings) or listings.samples
    # A host that was not asked for its servers may have some.
    nodes = listings.hypervisors.value or ()
    if not judged and any(node.servers or node.servers is None for node in nodes):
        return Reason(
            "server_hosts_not_shown",
            "These credentials do not see the host of any server, although there are servers on "
            "hosts: use a role that sees the hosts of servers (admin by default).",
        )
    # One server with its host shows that these credentials may see both.
    if not judged or any(sample.value is not None and sample.value.host for sample in judged):
        return None
    refused = judged[0]
    return Reason(
        "servers_not_shown",
        "These credentials list servers that they may not look up "
        f"({refused.request}: {refused.status}): use a role that sees all projects.",
    )


def _list_foreign_samples(listings: Listings) -> list[Answer[Server]]:
    """Return the sampled servers of other projects: servers of the own one prove less.

    The project is that of the listing, or that of the lookup where the listing has none.
    """
    looked_up = [one.value.project if one.value else None for one in listings.samples]
    sampled = zip(listings.samples, listings.sampled_projects or looked_up, strict=True)
    return [sample for sample, project in sampled if project != listings.cloud.project]


def _check_migration_hosts(listings: Listings) -> Reason | None:
    """These credentials do not see the hosts of migrations, so it is unknown where a failed
    migration may have left a guest.
    """
    rows = listings.migrations.value or ()
    # Each has a source: Nova gives it one when it makes the row.
    if not rows or any(row.source_compute for row in rows):
        return None
    return Reason(
        "migration_hosts_not_shown",
        f"Nova lists migrations without their hosts ({listings.migrations.request}): "
        "use a role that sees the hosts of migrations (admin by default).",
    )


def _check_filters(listings: Listings) -> Reason | None:
    """Nova lists a live server as deleted: these credentials may not use the filter, or a proxy
    answers instead of Nova.
    """
    if listings.control is None or listings.control.value == ():
        return None
    return Reason(
        "filter_ignored",
        f"Nova lists a live server as deleted ({listings.control.request}): use a role that may "
        "filter servers (servers:allow_all_filters in the policy of Nova, admin by default), or "
        "look for a proxy that answers instead of Nova.",
    )


# Each with the kind that is not proven without it; None stands for any kind.
_GENERATIONS = "the generations of consumers, without which no allocation can be changed safely"
REQUIREMENTS: tuple[tuple[Requirement, str | None], ...] = (
    (Requirement("Nova", (2, 59), "which consumers are migrations"), None),
    (Requirement("Nova", (2, 69), "whether every cell answers"), None),
    (Requirement("Placement", (1, 28), _GENERATIONS), None),
    *((kind.version, kind.name) for kind in KINDS if kind.version is not None),
)


def list_unmet_requirements(cloud: Cloud) -> tuple[Reason, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    sentences = _list_unmet(cloud, *(kind.name for kind in KINDS))
    if cloud.tells_time:
        return tuple(sentences)
    no_time = Reason(
        "placement_sends_no_time",
        f"Placement at {cloud.placement_endpoint} sends neither a Date nor its own time "
        "(Last-Modified of GET /), so no age is known and nothing is old enough to be "
        "changed: look for a proxy that removes these headers.",
    )
    return (*sentences, no_time)


def explain_unprovable(kind: str, cloud: Cloud) -> Reason | None:
    """Return why no finding of `kind` can be proven, or None if one can."""
    return next(iter(_list_unmet(cloud, kind)), None)


def _list_unmet(cloud: Cloud, *kinds: str) -> list[Reason]:
    """Return a sentence for each service that is too old for every proof, or for one of `kinds`."""
    offered = {"Nova": cloud.compute_version, "Placement": cloud.placement_version}
    return [
        Reason(
            "microversion_too_old",
            f"{needed.service} offers microversions up to "
            f"{format_version(offered[needed.service])}, but {format_version(needed.since)} is "
            f"needed to see {needed.proof}: {kind or 'everything'} is undecided.",
        )
        for needed, kind in REQUIREMENTS
        if kind in (None, *kinds) and offered[needed.service] < needed.since
    ]


def format_version(version: tuple[int, int]) -> str:
    """Return a microversion as the APIs write it, such as `2.69`."""
    return f"{version[0]}.{version[1]}"
