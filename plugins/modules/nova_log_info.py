#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nova_log_info
short_description: Show what nova-compute complains of in its log
version_added: 1.0.0
description:
  - Reads the logs of nova-compute on a hypervisor and returns each complaint of allocations
    that should not be there, of servers that the database and the hypervisor count differently,
    of a resource provider's name that is taken, and of RPC versions that do not fit.
  - Files are read as a stream, whatever their size,
    also rotated ones and those compressed with gzip.
  - What a log says is a hint and no proof.
    M(osops.placement.orphan_report) shows it with the findings of M(osops.placement.orphan_detect).
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only_host
requirements:
  - Python 3.9 or newer on the hypervisor
options:
  paths:
    description:
      - Patterns of the files to read, as the shell has them.
        The default has those of packages and of Kolla.
      - A pattern without a file is no error.
    type: list
    elements: path
    default:
      - /var/log/nova/nova-compute.log*
      - /var/log/kolla/nova/nova-compute.log*
  units:
    description:
      - Systemd units whose journal to read with C(journalctl),
        such as V(openstack-nova-compute) or V(devstack@n-cpu).
    type: list
    elements: str
    default: []
  since:
    description:
      - Only what was logged within this time, such as V(24h) or V(7d).
        All that is there without this option.
      - Lines that tell no time are not left out.
    type: str
  host:
    description:
      - The host's name as Nova and Placement have it, if
        that is neither its hostname nor what the log says.
    type: str
  utc:
    description:
      - Whether the times in the files are UTC, as those of a
        container may be that does not have the zone of its host.
      - Otherwise a time without a zone is taken to be
        in that of the machine, as oslo.log writes it.
    type: bool
    default: false
  max_records:
    description:
      - The most complaints to return, so that no log can take all memory.
        Once there are that many, only these are counted on.
    type: int
    default: 10000
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: See what a hypervisor complained of in the last week
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
  description: The complaints, each once, those seen last before others.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(not_in_database), allocations against this host
          of a server that Nova's database does not have.
        - V(not_managed), allocations of a server that is not managed by this host.
        - V(moved_away), allocations of a server that has moved to another host.
        - V(power_state_counts), other numbers of servers in the database and on the hypervisor.
        - V(provider_conflict), a resource provider that
          cannot be created because another one has its name.
        - V(rpc_version_cap), an RPC version that is above what an older service allows.
      returned: success
      type: str
      sample: not_managed
    host:
      description: Who complained, which is O(host), else what the line says, else the hostname.
      returned: success
      type: str
      sample: compute-17
    instance:
      description: UUID that Nova took for that of a server,
        V(null) where the complaint is not about one.
        It may be that of a migration.
      returned: success
      type: str
      sample: b32e5792-427c-43b1-83dc-2d3e3c8d74c4
    amounts:
      description: What is claimed of this host, by resource
        class, or V(null) where the line does not say.
      returned: success
      type: dict
      sample:
        DISK_GB: 80
        MEMORY_MB: 32768
        VCPU: 12
    other_host:
      description: The host to which the server has moved, or V(null).
      returned: success
      type: str
      sample: null
    counts:
      description: The number of servers in the C(database) and on the C(hypervisor), or V(null).
      returned: success
      type: dict
      sample: null
    versions:
      description: The version that was C(requested) and the C(cap) above which it is, or V(null).
      returned: success
      type: dict
      sample: null
    provider:
      description: The C(uuid) of the resource provider that could not be
        created, and the C(name) that is taken, or V(null).
      returned: success
      type: dict
      sample: null
    count:
      description: The number of lines that say so. An error with a traceback may be two lines.
      returned: success
      type: int
      sample: 288
    first_seen:
      description: The time of the first of them, in UTC, or V(null) where no line tells it.
      returned: success
      type: str
      sample: '2026-11-02T03:00:00Z'
    last_seen:
      description: The time of the last of them, in UTC, or V(null) where no line tells it.
      returned: success
      type: str
      sample: '2026-11-02T07:48:00Z'
    source:
      description: The file or the unit where it was last seen.
      returned: success
      type: str
      sample: /var/log/nova/nova-compute.log
truncated:
  description: Whether there were more complaints than O(max_records).
  returned: success
  type: bool
  sample: false
sources:
  description: What was read, and what could not be. There is a warning for the latter.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The file or the unit.
      returned: success
      type: str
      sample: /var/log/nova/nova-compute.log
    bytes:
      description: How much was read of it, unpacked.
      returned: success
      type: int
      sample: 48210331
    lines:
      description: How many lines that were.
      returned: success
      type: int
      sample: 260114
    skipped:
      description: Whether the file was not read because it was last written before O(since).
      returned: success
      type: bool
      sample: false
    error:
      description: Why it could not be read, or not to its end, else V(null).
      returned: success
      type: str
      sample: null
"""

import dataclasses as d
import datetime
import socket
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.runner import run_offline
from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    UTC,
    parse_duration,
)
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.nova_log import Complaints
from ansible_collections.osops.placement.plugins.module_utils._hypervisor.nova_log_reader import (
    Source,
    read_files,
    read_unit,
)


def work(module: AnsibleModule) -> dict[str, t.Any]:
    """Read the logs, and return the result of the module."""
    options = module.params
    if options["max_records"] < 1:
        raise InvalidInput("max_records must be 1 or more.")
    since = _parse_since(options["since"])
    zone = None
    if options["utc"]:
        zone = UTC
    complaints = Complaints(
        options["host"], socket.gethostname(), options["max_records"], since, zone
    )
    sources = read_files(options["paths"], complaints, since)
    if options["units"]:
        journalctl = module.get_bin_path("journalctl")
        sources += [read_unit(journalctl, unit, complaints, since) for unit in options["units"]]
    _warn_unread(module, sources)
    if complaints.truncated:
        module.warn(
            f"There are more complaints than max_records ({options['max_records']}): "
            "the others are left out."
        )
    return {
        "changed": False,
        "records": complaints.records(),
        "truncated": complaints.truncated,
        "sources": [d.asdict(source) for source in sources],
    }


def _parse_since(age: str | None) -> datetime.datetime | None:
    """Return the time from which on lines are read; None for all of them."""
    if not age:
        return None
    try:
        return datetime.datetime.now(UTC) - datetime.timedelta(seconds=parse_duration(age))
    except OverflowError:
        raise InvalidInput(f"since {age!r} is longer ago than any log.") from None


def _warn_unread(module: AnsibleModule, sources: list[Source]) -> None:
    for source in sources:
        if source.error:
            module.warn(source.error)
    if all(source.error for source in sources):
        names = ", ".join([*module.params["paths"], *module.params["units"]])
        module.warn(
            f"No log was read: there is nothing readable at {names or 'no path and no unit'}."
        )


def main() -> None:
    argument_spec = {
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
    }
    run_offline(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
