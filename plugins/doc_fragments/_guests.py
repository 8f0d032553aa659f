# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  guests:
    description:
      - Results of M(osops.placement.hypervisor_guest_info), one for each host. Each entry is such a
        dictionary, or the path of a JSON file with one.
      - A server with a domain on another host than the one where Nova has the server keeps all its
        allocations, whatever the state of the domain and however old the result is.
      - They also show which devices of its host the guest of a server uses, which no API does. Only
        with them an allocation of the kind V(leaked_child) may be removed. Nothing else is ever
        removed because of them.
      - A result belongs to a host by its C(compute_id). If that is V(null), C(host) must be the
        name of the host of the compute service.
      - A result proves nothing about devices if it is older than one hour, or if the server, its
        allocation or its instance actions changed later than one minute before the host was read.
    type: list
    elements: raw
    default: []
    version_added: 2.0.0
"""
