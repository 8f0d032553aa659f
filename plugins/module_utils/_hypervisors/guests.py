# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libvirt domains and instance directories, as `hypervisor_guest_info` returned them. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from .._common.errors import InvalidInput, describe_form_error
from .._common.text import normalize_uuid
from .._common.times import seconds_between
from .on_host.domain_xml import SHUT_OFF

LEFTOVER_DOMAIN, LEFTOVER_DIRECTORY = "leftover_domain", "leftover_directory"
# A domain that runs although Nova has its server on another host: two guests of one server.
RUNNING_LEFTOVER = "running_leftover"

# The facts that the rules use for each kind of guest.
_REQUIRED_FACTS = {
    LEFTOVER_DOMAIN: ("nova", "state", "disks"),
    LEFTOVER_DIRECTORY: ("age_seconds", "link", "open", "shared"),
}


@d.dataclass(frozen=True)
class Guest:
    """A domain or an instance directory on the host of a compute service.

    host: the name of that host.
    facts: what `hypervisor_guest_info` returned about the guest.
    read_at: when it was read, by the clock of the host.
    node: the uuid of the compute node by nova-compute's own file, None where there is no file.
    domain_state: for a directory the state of the domain with its uuid, None without a domain.
    used_by: for a directory the names of other domains that have a disk in it, running or not.
    quarantined: whether it is a directory in the quarantine.
    inodes: by host, the inode of the directory that the server has there; without hosts that were
        not read, that may be another host, or whose storage is or may be shared.
    """

    kind: str
    host: str
    uuid: str
    name: str
    facts: Mapping[str, t.Any]
    read_at: str
    node: str | None = None
    domain_state: str | None = None
    used_by: tuple[str, ...] = ()
    quarantined: bool = False
    inodes: Mapping[str, int | None] = d.field(default_factory=dict)

    @property
    def id(self) -> str:
        own_name = self.name if self.kind == LEFTOVER_DIRECTORY else self.uuid
        return f"{self.kind}/{self.host}/{own_name}"

    @property
    def noun(self) -> str:
        return self.kind.removeprefix("leftover_")

    @property
    def age_seconds(self) -> int | None:
        """Seconds since the guest last changed.

        For a directory by its newest file, for a domain by when Nova last defined it.
        """
        if self.kind == LEFTOVER_DIRECTORY:
            age: int | None = self.facts["age_seconds"]
            return age
        metadata = self.facts["nova"] or {}
        return seconds_between(metadata.get("created_at"), self.read_at)

    @property
    def is_put_aside(self) -> bool:
        """Whether Nova put the directory aside to move its server, which does not run here."""
        return self.name == f"{self.uuid}_resize" and self.domain_state in (None, SHUT_OFF)

    @property
    def is_active(self) -> bool:
        """Whether the guest is a domain that is not shut off, whoever defined it."""
        return self.kind == LEFTOVER_DOMAIN and self.facts["state"] != SHUT_OFF


def parse_guests(document: Mapping[str, t.Any], quarantined: bool = False) -> list[Guest]:
    """Return the guests in one result of `hypervisor_guest_info`.

    quarantined: whether the directories in the quarantine are among them.
    Raises InvalidInput if the document is anything else.
    """
    try:
        guests = [*_parse_domains(document), *_parse_directories(document, "directories")]
        if quarantined:
            guests += _parse_directories(document, "quarantined")
        for guest in guests:
            _check_facts(guest)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            "guests must be results of hypervisor_guest_info, but an entry is not one "
            f"({describe_form_error(error)})."
        ) from error
    for guest in guests:
        # The UUID becomes a part of requests and, on the host, of paths.
        if not isinstance(guest.uuid, str) or normalize_uuid(guest.uuid) != guest.uuid:
            raise InvalidInput(f"guests names {guest.uuid!r}, which is not a valid UUID.")
    return guests


def _parse_domains(document: Mapping[str, t.Any]) -> Iterator[Guest]:
    # Read before the loop: a document without these keys is wrong even if it lists nothing.
    host, read_at, node = document["host"], document["read_at"], document.get("compute_id")
    for domain in document["domains"] or ():
        yield Guest(LEFTOVER_DOMAIN, host, domain["uuid"], domain["name"], domain, read_at, node)


def _parse_directories(document: Mapping[str, t.Any], part: str) -> Iterator[Guest]:
    quarantined = part == "quarantined"
    domains = document["domains"] or ()
    states = {domain["uuid"]: domain["state"] for domain in domains}
    # If the domains were not listed, a directory may belong to one that runs.
    default_state = "of unknown state" if document["domains"] is None else None
    for directory in document[part] or ():
        yield Guest(
            LEFTOVER_DIRECTORY,
            document["host"],
            directory["uuid"],
            directory["name"],
            # Whether a file in the quarantine is open is checked before it is deleted.
            {**directory, "open": False, "link": False} if quarantined else directory,
            document["read_at"],
            document.get("compute_id"),
            states.get(directory["uuid"], default_state),
            tuple(_find_disk_owners(directory, domains)),
            quarantined,
        )


def _check_facts(guest: Guest) -> None:
    """Raise KeyError or TypeError now where judging the guest would raise it later."""
    missing = sorted(set(_REQUIRED_FACTS[guest.kind]) - set(guest.facts))
    if missing:
        raise KeyError(missing[0])
    if not isinstance(guest.age_seconds, (int, type(None))):
        raise TypeError("age_seconds is not a number")


def _find_disk_owners(
    directory: Mapping[str, t.Any], domains: Iterable[Mapping[str, t.Any]]
) -> Iterator[str]:
    """Yield the names of the domains of other servers that have a disk in a directory."""
    for domain in domains:
        if domain["uuid"] == directory["uuid"]:
            continue
        # Only the name is compared, because the path can begin differently in a container.
        if any(directory["name"] in disk.split("/") for disk in domain["disks"]):
            yield domain["name"]
