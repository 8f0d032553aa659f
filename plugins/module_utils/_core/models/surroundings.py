# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Ironic, Keystone and Cinder say, and what Nova says of servers that are being deleted.

The classes are frozen, and made of JSON's types.
"""

from __future__ import annotations

import dataclasses as d

from .nova import Action, Server

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
