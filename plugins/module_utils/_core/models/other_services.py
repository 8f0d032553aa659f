# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Neutron, Cinder, Cyborg, Ironic, Keystone and hypervisors say, and what servers need of it.

The words are Nova's: a resource request has request groups (nova/objects/request_spec.py,
RequestGroup). The classes are frozen, and made of JSON's types.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from .nova import Action, Server
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


# The states of a node that has been taken from a server and is not yet free for the next one
# (nova/virt/ironic/ironic_states.py has all states).
CLEANING_STATES = frozenset(
    {"deleting", "cleaning", "clean wait", "clean hold", "clean failed", "error"}
)
AVAILABLE_STATE = "available"


@d.dataclass(frozen=True)
class BareMetalNode:
    """A node of Ironic (`GET /v1/nodes`).

    power_state: None while Ironic does not know it.
    instance: the uuid of what the node is in use by; None for a node that is not in use.
    owner, lessee: the projects that may see the node although they do not see all nodes.
    provisioned_at: when `provision_state` last changed. updated_at: when anything of it did; None
        in a listing, which does not have it.
    """

    uuid: str
    provision_state: str | None
    maintenance: bool
    power_state: str | None
    instance: str | None
    resource_class: str | None
    owner: str | None = None
    lessee: str | None = None
    provisioned_at: str | None = None
    updated_at: str | None = None
    last_error: str | None = None

    @property
    def is_free(self) -> bool:
        """Whether nova-compute offers the node to the scheduler.

        It reserves every other node (nova/virt/ironic/driver.py, update_provider_tree).
        """
        return (
            self.provision_state == AVAILABLE_STATE
            and self.instance is None
            and not self.maintenance
            and self.power_state not in (None, "error")
        )

    @property
    def changed_at(self) -> str | None:
        """When Ironic last changed the node; a node without either time has none."""
        return max(self.provisioned_at or "", self.updated_at or "") or None


@d.dataclass(frozen=True)
class Project:
    """A project of Keystone; `domain` is the uuid of its domain."""

    uuid: str
    name: str
    domain: str


@d.dataclass(frozen=True)
class DeletedServer:
    """A server that Nova should have deleted, as Nova lists it.

    vm_state: `deleted` where Nova has recorded the end of a deletion that did not end.
    fault: the message of the newest error of the server; empty without one.
    locked: None where that is not known.
    """

    server: Server
    vm_state: str | None
    fault: str = ""
    locked: bool | None = None


@d.dataclass(frozen=True)
class Deletion:
    """The newest delete action of a server, read by itself.

    action: None where Nova has none. is_newest: whether no other action has followed it.
    """

    action: Action | None
    is_newest: bool


BLOCK_STORAGE_API = "block-storage"
"""The service type of Cinder in the catalogue."""


@d.dataclass(frozen=True)
class OtherService:
    """A service other than nova-compute with the name of a host.

    api: the service type in the catalogue. id: None for services of block storage.
    """

    api: str
    id: str | None
    binary: str
    host: str
    status: str
    state: str | None


@d.dataclass(frozen=True)
class GuestDevices:
    """The devices of the host that one guest uses.

    state: that of its domain in libvirt. persistent: whether the domain is defined on the host, and
        not only running. managed_save: whether libvirt has saved its memory.
    addresses: the PCI addresses of all these devices, of the physical functions that they belong to
        and of the devices that mediated devices are parts of.
    unidentified: what may be such a device, and of which the host does not show what it belongs to.
    """

    state: str
    persistent: bool
    managed_save: bool
    addresses: frozenset[str]
    unidentified: tuple[str, ...] = ()


@d.dataclass(frozen=True)
class HostGuests:
    """The guests of one host, all read at one time.

    host: the name of the host of its compute service.
    node: the uuid of its compute node by nova-compute's own file; None without that file.
    read_at: by the clock of the host, before the first guest was read.
    guests: those that Nova defined, by the uuid of their server.
    states: the states of all domains by their uuid, also of those that Nova did not define.
    """

    host: str
    node: str | None
    read_at: str
    guests: t.Mapping[str, GuestDevices]
    states: t.Mapping[str, str] = d.field(default_factory=dict)
