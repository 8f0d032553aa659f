#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_guest_detect
short_description: Judge what M(osops.placement.hypervisor_guest_info) found on hypervisors
version_added: 1.0.0
description:
  - Asks Nova about every domain and every instance directory that hypervisors have and
    that Nova does not show there, and says which of them are left over, with the proof.
  - A guest is left over when its server is deleted, when Nova has no memory of
    it at all, or when it rests on another host after a move that took it away.
    Whatever runs, is in use, is on its way, may be shared
    or could not be read is protected or undecided.
  - Runs where the API can be reached; nothing is changed.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  guests:
    description:
      - What M(osops.placement.hypervisor_guest_info) returned on each host,
        with C(host) replaced by the name of the compute service there.
      - Each is such a dictionary, or the path of a JSON file with one.
      - It must have been read before, and not after, Nova is asked.
    type: list
    elements: raw
    required: true
  min_age:
    description:
      - What is left over for less long is protected, and
        so is a directory in which something changed since.
      - Seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description: The same for what belongs to a server of which Nova has no memory.
    type: str
    default: 24h
  exclude_consumers:
    description:
      - UUIDs of servers of which nothing is ever touched. It is reported as protected.
      - An entry is a UUID, or a dictionary with the UUID
        as C(name) and, optionally, C(until) and C(reason).
        C(until) is the last day on which it holds (UTC), or a time such as V(2026-12-31T18:00:00Z).
        After that the entry excludes nothing any more, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - Names of hosts on which nothing is ever touched,
        or the names or UUIDs of their resource providers.
      - An entry is a name or a UUID, or a dictionary with it
        as C(name) and, optionally, C(until) and C(reason).
        C(until) is the last day on which it holds (UTC), or a time such as V(2026-12-31T18:00:00Z).
        After that the entry excludes nothing any more, and a warning says so.
    type: list
    elements: raw
    default: []
  findings:
    description:
      - What this module wrote to O(dest) before.
        Of what is left over only what it told of then is returned again;
        what was found since is left out, for nobody has counted or seen it.
    type: path
  dest:
    description:
      - Where to write all that was found, with mode 0600.
    type: path
seealso:
  - module: osops.placement.hypervisor_guest_info
  - module: osops.placement.hypervisor_guest
  - module: osops.placement.orphan_detect
"""

EXAMPLES = r"""
---
- name: See what there is on a hypervisor
  osops.placement.hypervisor_guest_info:
  delegate_to: compute-17
  become: true
  register: found

- name: Find what of it is left over
  osops.placement.hypervisor_guest_detect:
    cloud: admin
    guests:
      - "{{ found | combine({'host': 'compute-17'}) }}"
    dest: /var/lib/placement/guests.json
"""

RETURN = r"""
summary:
  description: What was found, in numbers.
  returned: success
  type: dict
  contains:
    verdicts:
      description: How many guests there are of each verdict,
        V(orphaned), V(protected) and V(undecided).
      returned: success
      type: dict
      sample: {orphaned: 2, protected: 1, undecided: 0}
    kinds:
      description: How many of the orphaned are of each kind.
      returned: success
      type: dict
      sample: {leftover_directory: 1, leftover_domain: 1}
    coverage:
      description: What was read.
      returned: success
      type: dict
      contains:
        complete:
          description: Whether the reading of Nova was sound. If not, nothing may be changed.
          returned: success
          type: bool
          sample: true
        failed_checks:
          description: Why nothing may be changed, a sentence each.
          returned: success
          type: list
          elements: str
          sample: []
        hosts:
          description: How many hosts there were in O(guests).
          returned: success
          type: int
          sample: 2
        domains:
          description: How many domains.
          returned: success
          type: int
          sample: 41
        directories:
          description: How many instance directories.
          returned: success
          type: int
          sample: 42
        looked_at_closely:
          description: About how many servers Nova was asked directly.
          returned: success
          type: int
          sample: 3
findings:
  description:
    - What is left over, at most 200 of it.
      RV(dest) has all, and the protected and the undecided in the same form.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Kind, host, and the UUID of a domain or the name of a directory.
      returned: success
      type: str
      sample: leftover_domain/compute-17/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: V(leftover_domain) or V(leftover_directory).
      returned: success
      type: str
      sample: leftover_domain
    verdict:
      description: V(orphaned), V(protected) or V(undecided).
      returned: success
      type: str
      sample: orphaned
    host:
      description: Name of the compute service.
      returned: success
      type: str
      sample: compute-17
    uuid:
      description: UUID of the server that it belongs to.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the domain or of the directory.
      returned: success
      type: str
      sample: instance-0000002a
    reason:
      description: Why, in a sentence.
      returned: success
      type: str
      sample: Server 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 is
        deleted, by user 4f8e at 2026-10-25T20:13:51.
        It stayed on compute-17.
    server:
      description: What Nova says or remembers of its server, or V(null).
      returned: success
      type: dict
    guest:
      description: The domain or directory as M(osops.placement.hypervisor_guest_info) returned it.
      returned: success
      type: dict
    evidence:
      description: The requests that it rests on, with their answers.
      returned: success
      type: list
      elements: dict
dest:
  description: Path of the file with all that was found, or V(null).
  returned: success
  type: str
  sample: /var/lib/placement/guests.json
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.policy import (
    parse_policy,
    policy_options,
    warn_ended_exclusions,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import (
    read_json,
    read_json_option,
    write_json,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import MAX_RETURNED
from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
    validate_document,
)
from ansible_collections.osops.placement.plugins.module_utils._hosts.guest_detection import (
    GuestDetector,
    parse_leftover_ids,
)
from ansible_collections.osops.placement.plugins.module_utils._hosts.guest_rules import parse_guests

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect

_POLICY_OPTIONS = ("min_age", "unknown_min_age", "exclude_consumers", "exclude_providers")


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Judge the guests of all hosts, and return the result of the module."""
    options = module.params
    answers = _read_answers(options["guests"])
    guests = []
    for answer in answers:
        guests.extend(parse_guests(answer))
    hosts = [answer["host"] for answer in answers]
    # Which compute service the guests belong to would be a guess.
    if len(set(hosts)) < len(hosts):
        raise InvalidInput(
            "guests has two results for one host: each needs the name of its own compute service."
        )
    # Read before the cloud is: a wrong path should fail at once.
    earlier_ids = _read_earlier_ids(options["findings"])
    policy = parse_policy(options)
    warn_ended_exclusions(module, policy)
    document = GuestDetector(connect(), policy).detect(guests, hosts, earlier_ids)
    if options["dest"]:
        write_json(options["dest"], document)
    return {
        "changed": False,
        "summary": document["summary"],
        "findings": document["findings"][:MAX_RETURNED],
        "dest": options["dest"],
    }


def _read_answers(guests: list[t.Any]) -> list[dict[str, t.Any]]:
    """Return what hypervisor_guest_info returned on each host."""
    answers = [read_json_option("guests", value) for value in guests]
    if not all(isinstance(answer, dict) for answer in answers):
        raise InvalidInput(
            "guests must be what hypervisor_guest_info returned, a dictionary for each host."
        )
    return answers


def _read_earlier_ids(path: str | None) -> frozenset[str] | None:
    """Return the ids of what is left over in an earlier result; None without one."""
    if path is None:
        return None
    return parse_leftover_ids(validate_document("guests", read_json(path), path))


def main() -> None:
    all_policy_options = policy_options()
    argument_spec = {
        **connection_options(),
        **{name: all_policy_options[name] for name in _POLICY_OPTIONS},
        "guests": {"type": "list", "elements": "raw", "required": True},
        "findings": {"type": "path"},
        "dest": {"type": "path"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
