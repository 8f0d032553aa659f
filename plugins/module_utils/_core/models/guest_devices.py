# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests and the devices that they use, as `hypervisor_guest_info` saw them on their hosts."""

from __future__ import annotations

import dataclasses as d
import typing as t


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
