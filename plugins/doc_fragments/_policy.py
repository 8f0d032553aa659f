# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - Allocations that are younger than this are protected. The age is the time since the
        allocation was last written, by the clock of Placement.
      - So are allocations whose server, or a migration of it, Nova has changed within this time.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description:
      - The minimum age for the kind V(unknown_consumer), which rests on absence of evidence alone.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
    version_added: 2.0.0
  exclude_consumers:
    description:
      - The UUIDs of consumers that are never changed. They are reported as protected.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - The names or UUIDs of resource providers or hosts that are never changed, and neither is any
        consumer with an allocation on them or on another provider of their trees. Where nothing has
        exactly that name, letter case and domain do not matter.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  ignore_allocators:
    description:
      - The types of services that have no allocations on Nova's hosts, such as V(container) (Zun),
        V(reservation) (Blazar) or V(accelerator) (Cyborg). Name a service only after you have
        checked that.
      - Such a service makes allocations itself, and Zun makes them on Nova's own hosts and without
        a consumer type. While the service catalogue has such a service that is not named here, an
        V(unknown_consumer) without a type is undecided.
      - Any other type is an error. A type that is not in the service catalogue leads to a warning.
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  pci_aliases:
    description:
      - The aliases of PCI devices that flavors of this cloud request, as C([pci]alias) in the
        configuration of Nova has them. No API shows them, so that without this option the amounts
        of servers with such devices are not certain.
      - Each entry has Nova's own keys C(name), C(vendor_id), C(product_id), C(resource_class),
        C(traits), C(device_type), C(numa_policy) and C(live_migratable). Put hexadecimal numbers in
        quotes.
    type: list
    elements: dict
    default: []
    version_added: 2.0.0
  unconfirmed_min_age:
    description:
      - A resize that has waited for longer than this to be confirmed or reverted is reported as
        V(unconfirmed_resize). Only a detection reports this kind.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 7d
    version_added: 2.0.0
  stuck_min_age:
    description:
      - A migration that is under way but has not changed for longer than this is reported as
        V(stuck_migration). Only a detection reports this kind.
      - The same is the least age of a V(stuck_deletion), and of the cleaning of a bare metal node
        that is reported as V(bare_metal_mismatch).
      - A server that has been in BUILD for longer than this with neither a host nor a task is no
        longer protected as booting.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
  stale_min_age:
    description:
      - A compute service that is down, has not reported for longer than this, and is disabled,
        forced down or without a compute node is reported as V(stale_service). Only a detection
        reports this kind.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 7d
"""
