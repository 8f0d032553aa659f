#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nova_log_info
short_description: Show complaints about allocations in the log of nova-compute
version_added: 1.0.0
description:
  - Reads the logs of nova-compute on a hypervisor and returns its complaints about allocations
    that should not exist, about different numbers of servers in the database and on the
    hypervisor, about a resource provider whose name is taken, and about RPC versions that do not
    match.
  - Files are read as a stream, whatever their size, including rotated files and files that are
    compressed with gzip.
  - A complaint in a log proves nothing. M(osops.placement.orphan_report) shows it together with
    the findings of M(osops.placement.orphan_detect).
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
requirements:
  - Python 3.9 or newer on the hypervisor
options:
  paths:
    description:
      - Glob patterns of the files to read. The default matches the files of distribution packages
        and of Kolla.
      - A pattern that matches no file is not an error.
    type: list
    elements: path
    default:
      - /var/log/nova/nova-compute.log*
      - /var/log/kolla/nova/nova-compute.log*
  units:
    description:
      - Systemd units whose journal is read with C(journalctl), for example
        V(openstack-nova-compute) or V(devstack@n-cpu). By default no journal is read.
    type: list
    elements: str
    default: []
  since:
    description:
      - Return only complaints that were logged within this time. Without it, all complaints are
        returned.
      - Lines without a time are always included.
      - Seconds, or a number with C(s), C(m), C(h) or C(d), for example V(90), V(15m) or V(7d).
    type: str
  host:
    description:
      - Name of the host in Nova and Placement. Set it if this name is neither the hostname nor
        the name in the log.
    type: str
  utc:
    description:
      - Whether the times in the files are in UTC, as in a container that does not have the time
        zone of its host.
      - Otherwise a time without a zone is in the time zone of the machine, as oslo.log writes it.
    type: bool
    default: false
  max_records:
    description:
      - The maximum number of complaints to return, which limits the use of memory. Once this
        number is reached, only further lines of the same complaints are counted.
    type: int
    default: 10000
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Show the complaints of a hypervisor in the last week
  osops.placement.nova_log_info:
    since: 7d
    host: "{{ inventory_hostname }}"
  become: true

- name: Read the journal instead of files
  osops.placement.nova_log_info:
    paths: []
    units:
      - openstack-nova-compute
"""

RETURN = r"""
records:
  description: The complaints, each once, those with the latest lines first.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(not_in_database) for an allocation on this host of a server that is not in the
          database of Nova.
        - V(not_managed) for an allocation of a server that this host does not manage.
        - V(moved_away) for an allocation of a server that has moved to another host.
        - V(power_state_counts) for different numbers of servers in the database and on the
          hypervisor.
        - V(provider_conflict) for a resource provider that cannot be created because another
          provider has its name.
        - V(port_deleted) for a port that was deleted in Neutron while it was bound, and whose
          bandwidth Nova does not free (LP 1820588).
        - V(rpc_version_cap) for an RPC version that is newer than an older service allows.
        - V(renamed_host), V(lost_identity) and V(unknown_to_database) for a nova-compute that does
          not start, because its compute node is recorded for another host, its file C(compute_id)
          is gone, or its database has no service of this host (since version 3.0.0).
        - V(no_such_provider) for a provider that Nova has and Placement lacks, V(inventory_in_use)
          for a resource class that the host no longer reports and that is allocated (since version
          3.0.0).
      returned: success
      type: str
      sample: not_managed
    host:
      description: 'Name of the host: O(host), or else the name in the line, or else the hostname.'
      returned: success
      type: str
      sample: compute-17
    instance:
      description: UUID of the server in the complaint, which can be the UUID of a migration;
        V(null) if the complaint is not about a server.
      returned: success
      type: str
      sample: b32e5792-427c-43b1-83dc-2d3e3c8d74c4
    amounts:
      description: The amounts of the allocation on this host, by resource class; V(null) if the
        line does not say.
      returned: success
      type: dict
      sample:
        DISK_GB: 80
        MEMORY_MB: 32768
        VCPU: 12
    port:
      description: UUID of the deleted port; V(null) if the complaint is not about one.
      returned: success
      type: str
      sample: 3e1c2b3a-9f0d-4c58-8e0a-5d2b7c1f6a90
      version_added: 2.0.0
    other_host:
      description: The host to which the server has moved, or V(null).
      returned: success
      type: str
      sample: null
    counts:
      description: The numbers of servers, or V(null).
      returned: success
      type: dict
      sample: null
      contains:
        database:
          description: Number in the database.
          returned: success
          type: int
          sample: 3
        hypervisor:
          description: Number on the hypervisor.
          returned: success
          type: int
          sample: 2
    versions:
      description: The RPC versions, or V(null).
      returned: success
      type: dict
      sample: null
      contains:
        requested:
          description: The requested version.
          returned: success
          type: str
          sample: '6.2'
        cap:
          description: The newest version that is allowed.
          returned: success
          type: str
          sample: '6.0'
    provider:
      description: The resource provider that could not be created, or V(null).
      returned: success
      type: dict
      sample: null
      contains:
        uuid:
          description: Its UUID.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Its name, which another provider has.
          returned: success
          type: str
          sample: compute-17
    count:
      description: Number of lines with this complaint. An error with a traceback can take two
        lines.
      returned: success
      type: int
      sample: 288
    first_seen:
      description: Time of the first of these lines, in UTC; V(null) if no line has a time.
      returned: success
      type: str
      sample: '2026-11-02T03:00:00Z'
    last_seen:
      description: Time of the last of these lines, in UTC; V(null) if no line has a time.
      returned: success
      type: str
      sample: '2026-11-02T07:48:00Z'
    source:
      description: The file or unit with the last of these lines.
      returned: success
      type: str
      sample: /var/log/nova/nova-compute.log
truncated:
  description: Whether there were more complaints than O(max_records).
  returned: success
  type: bool
  sample: false
sources:
  description: The files and units that were read, and those that could not be read. The module
    warns about the latter.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The file or unit.
      returned: success
      type: str
      sample: /var/log/nova/nova-compute.log
    bytes:
      description: Number of bytes that were read, after decompression.
      returned: success
      type: int
      sample: 48210331
    lines:
      description: Number of lines that were read.
      returned: success
      type: int
      sample: 260114
    skipped:
      description: Whether the file was not read because it was last written before O(since).
      returned: success
      type: bool
      sample: false
    error:
      description: Why the file or unit could not be read, or not to its end; otherwise V(null).
      returned: success
      type: str
      sample: null
"""

from ..module_utils._common.context import Task
from ..module_utils._hypervisors.on_host.nova_log import read_complaints

TASK = Task(
    read_complaints,
    {
        "paths": {
            "type": "list",
            "elements": "path",
            "default": ["/var/log/nova/nova-compute.log*", "/var/log/kolla/nova/nova-compute.log*"],
        },
        "units": {"type": "list", "elements": "str", "default": []},
        "since": {"type": "str"},
        "host": {"type": "str"},
        "utc": {"type": "bool", "default": False},
        "max_records": {"type": "int", "default": 10000},
    },
)


if __name__ == "__main__":
    TASK.run_module()
