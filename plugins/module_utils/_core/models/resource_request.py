# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Nova requests from Placement for a server, and everything that it depends on.

The classes are frozen, and made of JSON's types. The words are Nova's: a resource request has
request groups (nova/objects/request_spec.py, RequestGroup).
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from .placement import Inventory, Resources


@d.dataclass(frozen=True)
class RequestGroup:
    """Resources that are requested together.

    name: its suffix; empty for the group without one, whose resources may be of several providers.
        All resources of any other group are of one provider.
    required, forbidden: traits. Of the group without a suffix, Placement looks for required traits
        in the whole tree.
    provider: the provider that has the resources, where an answer names it; else None.
    pci: whether it is a device of a PCI alias, which is in Placement only where Nova is configured
        so.
    """

    name: str
    resources: Resources
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    provider: str | None = None
    pci: bool = False


@d.dataclass(frozen=True)
class AmountRule:
    """Where an amount comes from.

    group: the name of the request group. source: for people, such as `the VCPUs of the flavor` or
        `extra spec resources1:VGPU`.
    """

    group: str
    resource_class: str
    amount: int
    source: str


@d.dataclass(frozen=True)
class MissingInput:
    """Something that decides on the request and could not be read.

    name: `flavor`, `image`, `volume`, `ports`, `pci_alias`, `device_profile`, `accelerators` or
        `tree`: the summary counts servers by it.
    reason: what is missing and why, as a part of a sentence.
    classes: of which resource classes it could change the amounts; None where only the host shows.
    pci: whether it could only add PCI devices, to which Nova gives allocations of its own accord.
    """

    name: str
    reason: str
    classes: frozenset[str] | None = None
    pci: bool = False


@d.dataclass(frozen=True)
class ResourceRequest:
    """What Nova requests for a server (nova/scheduler/utils.py, ResourceRequest).

    groups: by name; without amounts of zero and without empty groups.
    isolate: whether no two groups with a name may be of the same provider.
    same_subtree: names of groups whose providers have to be in one subtree.
    rules: for each amount, where it comes from.
    missing: what could not be read. The groups are then as if nothing depended on it.
    """

    groups: t.Mapping[str, RequestGroup]
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    rules: tuple[AmountRule, ...] = ()
    missing: tuple[MissingInput, ...] = ()


@d.dataclass(frozen=True)
class PortGroup:
    """A group of the resources that a port requests.

    uuid: of the group; the port's own where Neutron has no groups.
    """

    uuid: str
    resources: Resources
    required: frozenset[str] = frozenset()


@d.dataclass(frozen=True)
class RootVolume:
    """The volume from which a server boots (Cinder, `volume_image_metadata`)."""

    uuid: str
    image_properties: t.Mapping[str, str]


@d.dataclass(frozen=True)
class Attachment:
    """A volume that is attached to a server (`GET /servers/{id}/os-volume_attachments`)."""

    volume: str
    device: str | None


@d.dataclass(frozen=True)
class AcceleratorRequest:
    """A device that Cyborg has for a server (`GET /v2/accelerator_requests`).

    group: the number of the group in the device profile.
    """

    uuid: str
    device_profile: str
    group: int
    provider: str | None


@d.dataclass(frozen=True)
class DeviceProfile:
    """A device profile of Cyborg (`GET /v2/device_profiles?name=…`).

    groups: its request groups, as Cyborg returns them.
    """

    name: str
    groups: tuple[t.Mapping[str, str], ...]


@d.dataclass(frozen=True)
class PciAlias:
    """An alias of `[pci]alias` in nova.conf, which no API shows; the user names it.

    resource_class: as Nova calculates it from the alias.
    """

    name: str
    resource_class: str
    traits: frozenset[str] = frozenset()


@d.dataclass(frozen=True)
class TreeProvider:
    """A provider of a host's tree, or one that shares its inventory with it."""

    uuid: str
    name: str
    parent: str | None
    sharing: bool
    inventories: t.Mapping[str, Inventory]
    traits: frozenset[str]


@d.dataclass(frozen=True)
class HostTree:
    """All providers that a server on a host can have allocations on.

    root: the uuid of the host's root provider.
    """

    root: str
    providers: t.Mapping[str, TreeProvider]


@d.dataclass(frozen=True)
class ServerInputs:
    """Everything that decides on the resource request of one server; None where it is unknown.

    flavor: the parts of the flavor that is kept with the server, as in `Flavor`.
    volume_backed: whether its root disk is a volume.
    image_properties: those of the image, or of the volume that it boots from.
    ports: the ports of Neutron, if they are just those that Nova lists.
    device_profiles: the request groups of each Cyborg device profile by its name, as Cyborg returns
        them.
    unread: why each part that is None could not be read, as a part of a sentence, by the name of
        the field.
    """

    vcpus: int
    ram: int
    disk: int
    ephemeral: int
    swap: int
    extra_specs: t.Mapping[str, str] | None
    volume_backed: bool | None
    image_properties: t.Mapping[str, str] | None
    ports: tuple[ServerPort, ...] | None
    pci_aliases: t.Mapping[str, PciAlias] = d.field(default_factory=dict)
    device_profiles: t.Mapping[str, tuple[t.Mapping[str, str], ...]] = d.field(default_factory=dict)
    accelerators: tuple[AcceleratorRequest, ...] | None = None
    unread: t.Mapping[str, str] = d.field(default_factory=dict)


@d.dataclass(frozen=True)
class ServerPort:
    """What of a port decides on the allocations of its server.

    groups: the resources that it requests (`resource_request`); None where these credentials may
        not see it.
    providers: by group uuid, the providers that its binding profile names (`allocation`). Under an
        empty key where the profile has no groups.
    same_subtree: uuids of groups.
    device_profile: the Cyborg device profile of the port.
    shows_request: whether Neutron's answer has `resource_request` at all.
    device_owner, host: what Neutron has the port for, and on which host it is bound.
    has_trunk: whether it is the parent of a trunk.
    """

    uuid: str
    vnic_type: str | None
    groups: tuple[PortGroup, ...] | None
    providers: t.Mapping[str, str] = d.field(default_factory=dict)
    same_subtree: tuple[str, ...] = ()
    device_profile: str | None = None
    shows_request: bool = False
    device_owner: str | None = None
    host: str | None = None
    has_trunk: bool = False
