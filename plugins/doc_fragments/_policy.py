# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - Younger allocations are protected.
        The age is the time since the newest write of the allocation, by Placement's own clock.
      - Seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description:
      - The same for V(unknown_consumer), which is convicted by absence.
    type: str
    default: 24h
  unconfirmed_min_age:
    description:
      - A resize that has waited for longer to be confirmed or reverted is reported
        as V(unconfirmed_resize), which only M(osops.placement.orphan_detect) does.
    type: str
    default: 7d
  stuck_min_age:
    description:
      - A migration under way that has not changed for longer is reported as
        V(stuck_migration), and a server that has been in BUILD for longer without a host
        and a task as V(unhosted_server), which only M(osops.placement.orphan_detect) does.
    type: str
    default: 24h
  stale_min_age:
    description:
      - A compute service that is down, has not reported for longer, and is
        disabled, forced down or without a compute node is reported as
        V(stale_service), which only M(osops.placement.orphan_detect) does.
    type: str
    default: 7d
  exclude_consumers:
    description:
      - UUIDs of consumers that are never touched. They are reported as protected.
      - An entry is a UUID, or a dictionary with the UUID
        as C(name) and, optionally, C(until) and C(reason).
        C(until) is the last day on which it holds (UTC), or a time such as V(2026-12-31T18:00:00Z).
        After that the entry excludes nothing any more, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - Names or UUIDs of resource providers that are never touched,
        with everything that holds a share of them or of their tree.
      - An entry is a name or a UUID, or a dictionary with it
        as C(name) and, optionally, C(until) and C(reason).
        C(until) is the last day on which it holds (UTC), or a time such as V(2026-12-31T18:00:00Z).
        After that the entry excludes nothing any more, and a warning says so.
    type: list
    elements: raw
    default: []
  ignore_allocators:
    description:
      - Types of services that hold nothing on Nova's hosts, such as
        V(container) (Zun), V(reservation) (Blazar) or V(accelerator) (Cyborg).
        Somebody must have looked.
      - Such a service allocates for itself, and Zun does
        so on Nova's own hosts and without a consumer type.
        While the service catalogue has one that is not named
        here, a V(unknown_consumer) without a type is undecided.
      - A type that is not known to allocate is an error, and one
        that the catalogue does not have is reported as a warning.
    type: list
    elements: str
    default: []
    version_added: 2.0.0
"""
