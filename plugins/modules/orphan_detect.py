#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_detect
short_description: Find orphaned allocations in the Placement service and prove each of them
version_added: 1.0.0
description:
  - Reads Placement and then Nova, and gives a verdict on every consumer that is not plainly a
    server on its host.
  - An orphan is only what Nova itself proves to be one. What cannot be proven is reported as
    undecided, and what is in use, on its way, too young or somebody else's as protected; neither is
    ever changed.
  - Never writes to the cloud.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._policy
  - osops.placement._scope
  - osops.placement._attributes
  - osops.placement._attributes.read_only
  - osops.placement._attributes.action_group
options:
  select:
    description:
      - A JMESPath expression over the list of findings, which gives findings or their ids. Only
        those may be changed by M(osops.placement.orphan_remediate); the others are reported all the
        same.
      - An expression that gives nothing selects nothing, with a warning.
    type: str
  min_sightings:
    description:
      - How many runs must have seen a finding before it may be changed, this one included. Until
        then it waits, and RV(findings[].waiting) says so.
      - A run counts when its reading is sound, when it finds the same kind at the same generations,
        and when it writes what O(state), or without it O(dest), remembers; in check mode it does.
        Whatever was looked at and not found in the same way begins anew; what a reading of single
        hosts, consumers, projects or kinds did not look at stays as it was.
      - It needs O(state) or O(dest), at a path that lasts from run to run.
    type: int
    default: 1
    version_added: 2.0.0
  known_for:
    description:
      - For how long a finding must be known, in the same way, before it may be changed. With
        O(min_sightings) both must be so.
      - Seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: '0'
    version_added: 2.0.0
  dest:
    description:
      - Path of the file to write everything to that was found, as JSON of mode 0600. It is written
        in check mode too.
    type: path
  state:
    description:
      - Path of a small file that remembers from run to run when each finding was first seen, and
        how often. It is read first and written anew in the end, with mode 0600 and in check mode
        too.
      - Without it the file that O(dest) had before is read.
      - A file that is not there makes all findings new. One that cannot be understood does so as
        well, with a warning, and is kept beside the new one with C(.broken) at the end of its name.
      - What is not found any more is forgotten after a sound reading of the whole cloud. Readings
        of single hosts, consumers, projects or kinds and those with O(mode=triage) forget nothing.
    type: path
  snapshot_dest:
    description:
      - Path of the file to write the whole reading to, as JSON of mode 0600, to be judged again
        with O(snapshot_src).
      - It holds no credentials, but the names and UUIDs of servers, hosts, projects and users.
    type: path
  snapshot_src:
    description:
      - Path of a file that O(snapshot_dest) wrote. Nothing is asked of any cloud, and the result is
        the same as it was there.
    type: path
seealso:
  - module: osops.placement.orphan_remediate
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Find orphaned allocations
  osops.placement.orphan_detect:
    cloud: admin
    dest: /var/lib/placement/findings.json
  register: orphans

- name: Tell new findings from known ones, with nothing kept but when each was first seen
  osops.placement.orphan_detect:
    cloud: admin
    state: /var/lib/placement/state.json
  register: orphans

- name: Keep the whole reading, for a bug report
  osops.placement.orphan_detect:
    cloud: admin
    snapshot_dest: /var/lib/placement/snapshot.json

- name: Judge somebody's reading, without a cloud
  osops.placement.orphan_detect:
    snapshot_src: snapshot.json
    dest: findings.json

- name: Read the second of eight parts of a very large cloud
  osops.placement.orphan_detect:
    cloud: admin
    shard: 2/8
    dest: findings-2.json

- name: Say how many there are
  ansible.builtin.debug:
    msg: >-
      {{ orphans.summary.verdicts.orphaned }} orphans hold
      {{ orphans.summary.stranded.resource_classes }}
"""

RETURN = r"""
dest:
  description: The file that everything was written to.
  returned: when O(dest) is given
  type: str
  sample: /var/lib/placement/findings.json
summary:
  description: Counts, what the orphans hold, and what was read.
  returned: success
  type: dict
  contains:
    verdicts:
      description:
        - Number of findings by verdict. V(orphaned) is claimed by nobody who needs it; V(drifted)
          is what a live server claims, or something else in the cloud, that is not as it should be.
      returned: success
      type: dict
      sample:
        orphaned: 2
        drifted: 1
        protected: 5
        undecided: 0
    kinds:
      description: Number of findings by kind.
      returned: success
      type: dict
      sample:
        deleted_server: 1
        evacuated_source: 1
    new:
      description: Number of findings by kind that were not known before, see O(state).
      returned: success
      type: dict
      sample:
        evacuated_source: 1
    stranded:
      description: What is claimed for nothing, and would be free if all changes were made that the
        findings propose.
      returned: success
      type: dict
      contains:
        resource_classes:
          description: Amounts by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 3
            MEMORY_MB: 2560
            DISK_GB: 11
        share_of_claimed:
          description: Which part that is of all that is claimed, by resource class, as a fraction.
          returned: success
          type: dict
          sample:
            VCPU: 0.0125
        providers:
          description: Amounts by provider name and resource class.
          returned: success
          type: dict
          sample:
            compute-17:
              VCPU: 3
        projects:
          description: Amounts by project UUID and resource class.
          returned: success
          type: dict
          sample:
            2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908:
              VCPU: 3
    capacity:
      description:
        - By resource class C(total), C(reserved), C(capacity) and C(used) of the providers whose
          inventory was read. These are the named O(hosts), all with V(capacity_mismatch) in
          O(kinds), and up to 100 that consumers hold who were looked at closely.
      returned: success
      type: dict
      sample:
        VCPU:
          total: 64
          reserved: 0
          capacity: 256
          used: 120
    coverage:
      description: How much was read, and whether that is enough to change anything.
      returned: success
      type: dict
      contains:
        complete:
          description:
            - Whether the whole cloud was read, and no two answers contradict each other.
            - While a cell does not answer it is false and RV(summary.coverage.failed_checks) is
              empty. What is proven without that cell may then be changed.
          returned: success
          type: bool
          sample: true
        failed_checks:
          description: Why the reading is not sound, a sentence each with what to do. Unless this is
            empty, nothing may be changed.
          returned: success
          type: list
          elements: str
          sample:
            - "0 of 40 hypervisors are providers here: is this the right region, and does this
              Placement belong to this Nova?"
        not_provable:
          description: What services that are older than the proofs need cannot prove, a sentence
            each, with the kinds that are undecided for it.
          returned: success
          type: list
          elements: str
          sample: []
        silent_hosts:
          description: Number of hosts of which Nova could say nothing, for their cell does not
            answer.
          returned: success
          type: int
          sample: 0
        partial:
          description: Whether hosts were not judged because their cell does not answer, while the
            others were.
          returned: success
          type: bool
          sample: false
        unjudged_hosts:
          description: Names of the hosts that were not judged because their cell does not answer.
          returned: success
          type: list
          elements: str
          sample: []
        retried:
          description: Number of requests that were sent again because their answer was broken or
            did not come.
          returned: success
          type: int
          sample: 0
        providers:
          description: Number of resource providers; of a O(shard), those in it.
          returned: success
          type: int
          sample: 40
        consumers:
          description: Number of consumers that were read. With O(shard), one that holds shares in
            several shards counts in each.
          returned: success
          type: int
          sample: 812
        servers:
          description: Number of servers that the hosts report of themselves; of a O(shard), those
            of its hosts.
          returned: success
          type: int
          sample: 798
        hypervisors:
          description: Number of compute nodes that Nova lists; of a O(shard), those in it.
          returned: success
          type: int
          sample: 40
        looked_at_closely:
          description: Number of consumers about which Nova and Placement were asked directly.
          returned: success
          type: int
          sample: 9
        left_out:
          description: Number of consumers that were not looked at because nothing may be changed
            anyway.
          returned: success
          type: int
          sample: 0
findings:
  description:
    - What is orphaned, and then what is drifted. At most 200 are returned here; O(dest) has all.
  returned: success
  type: list
  elements: dict
  contains: &entry
    id:
      description: The kind and what it is about, which together stay the same from run to run.
      returned: success
      type: str
      sample: evacuated_source/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: What it is, or why it is protected or undecided.
      returned: success
      type: str
      sample: evacuated_source
    verdict:
      description: V(orphaned), V(drifted), V(protected) or V(undecided).
      returned: success
      type: str
      sample: orphaned
    first_seen:
      description: When it was seen first, in UTC.
      returned: success
      type: str
      sample: "2026-11-19T03:04:05Z"
    new:
      description: Whether the run before did not know it, see O(state).
      returned: success
      type: bool
      sample: false
    selected:
      description: Whether it is among those that O(select) gives. Only what is in C(findings) has
        it.
      returned: success
      type: bool
      sample: true
    sightings:
      description: How many runs have seen it as it is, this one included. Only what is in
        C(findings) has it.
      returned: success
      type: int
      sample: 1
    waiting:
      description: Why it may not be changed yet, see O(min_sightings) and O(known_for); else empty.
        Only what is in C(findings) has it.
      returned: success
      type: str
      sample: it was seen 1 of 2 times
    consumer:
      description: UUID of the consumer; V(null) for what is not about one.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    reason:
      description: Why, in plain words.
      returned: success
      type: str
      sample: Server 6f7a1f5c-… left compute-17 by evacuation 0b0c… (done,
        2026-11-02T03:04:05.000000), rests on compute-18 and still holds both.
    server:
      description:
        - The server that the consumer is, or whose migration it is, as Nova shows it; V(null) when
          Nova shows none.
        - Has C(uuid), C(name), C(status), C(project), C(user), C(host), C(node), C(task_state),
          C(task_known), C(host_known), C(created), C(updated), C(terminated_at), C(image),
          C(volumes), C(flavor) and C(image_properties).
      returned: success
      type: dict
      sample:
        uuid: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name: web-1
        status: ACTIVE
        host: compute-18
    migration:
      description:
        - The migration that the consumer is, or that explains the finding; V(null) without one.
        - Has C(uuid), C(server), C(type), C(status), C(source_compute), C(source_node),
          C(dest_compute), C(dest_node), C(created_at) and C(updated_at).
      returned: success
      type: dict
      sample:
        uuid: 0b0c1a7e-93b5-4d0e-9d57-1f6f0b9b0a55
        type: evacuation
        status: done
    service:
      description:
        - The compute service that the finding is about; V(null) without one.
        - Has C(id), C(binary), C(host), C(zone), C(status), C(state), C(forced_down),
          C(disabled_reason) and C(updated_at).
      returned: success
      type: dict
      sample:
        binary: nova-compute
        host: compute-17
        status: disabled
        state: down
    project:
      description: UUID of the project that the allocation counts for.
      returned: success
      type: str
      sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
    user:
      description: UUID of the user that the allocation counts for.
      returned: success
      type: str
      sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
    type:
      description: The consumer's type, or V(null) when it has none.
      returned: success
      type: str
      sample: INSTANCE
    generation:
      description: The consumer's generation.
      returned: success
      type: int
      sample: 2
    age_seconds:
      description: Seconds since the newest write of the allocation, by Placement's own clock.
      returned: success
      type: int
      sample: 86400
    providers:
      description:
        - Everything that the consumer holds, by provider, or the providers that the finding is
          about.
        - Each has C(uuid), C(name), C(root), C(root_name), C(resources), and in C(dropped) whether
          this share is an orphan.
      returned: success
      type: list
      elements: dict
      sample:
        - uuid: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          name: compute-17
          root: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
          root_name: compute-17
          resources:
            VCPU: 2
          dropped: true
    evidence:
      description:
        - What was asked and answered, to be replayed.
        - Each has C(request), C(microversion), C(status), C(at), and in C(facts) what mattered of
          the answer.
      returned: success
      type: list
      elements: dict
      sample:
        - request: GET /servers/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
          microversion: "2.68"
          status: 404
          at: "2026-11-20T03:04:05Z"
          facts:
    change:
      description:
        - The write that would settle it; V(null) when nothing may be written.
        - Has C(action) (V(remove), V(reduce), V(rewrite) or V(create)), C(consumer), C(generation),
          the whole documents C(before) and C(after) as C(PUT /allocations) takes them, in C(frees)
          and C(claims) the amounts by provider and resource class, and in C(partner) the change of
          another consumer that has to be made in the same request, or V(null).
        - For a provider tree it has the action V(delete_providers) and in C(providers) their
          C(uuid), C(name), C(generation) and C(parent), children first.
      returned: success
      type: dict
      sample:
        action: remove
        consumer: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        generation: 2
protected:
  description: What looked like an orphan and is never changed, with the reason. At most 200 are
    returned here; O(dest) has all.
  returned: success
  type: list
  elements: dict
  contains: *entry
undecided:
  description: What could not be proven either way. At most 200 are returned here; O(dest) has all.
  returned: success
  type: list
  elements: dict
  contains: *entry
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.collector import Collector
from ansible_collections.osops.placement.plugins.module_utils._collector.policy import (
    find_absent_allocators,
    find_unknown_exclusions,
    parse_policy,
    policy_options,
    warn_ended_exclusions,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.scope import (
    parse_scope,
    scope_options,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import (
    read_json,
    read_or_put_aside,
    write_json,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.document import (
    build_document,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    ENTRY_LISTS,
    MAX_RETURNED,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.first_seen import (
    HISTORY_LOST,
    extract_history,
    parse_history,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.selection import Selection
from ansible_collections.osops.placement.plugins.module_utils._findings.sightings import (
    parse_sighting_policy,
    sighting_policy_options,
)
from ansible_collections.osops.placement.plugins.module_utils._models.codec import decode, encode
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._snapshot.microversions import (
    list_unmet_requirements,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    options = module.params
    policy, scope = parse_policy(options), parse_scope(options)
    # These are checked before the cloud is read, which takes long.
    sighting_policy = parse_sighting_policy(options, options["state"] or options["dest"])
    selection = Selection(options["select"]) if options["select"] else None
    if options["snapshot_src"]:
        snapshot = _load_snapshot(options["snapshot_src"], scope)
        # Exclusions that have ended since were in force when the snapshot was taken.
        policy = parse_policy(options, snapshot.finished_at)
    else:
        snapshot = _read_cloud(module, connect, scope)
    # Kept before it is judged, so that a fault of a rule can be examined.
    if options["snapshot_dest"]:
        write_json(options["snapshot_dest"], encode(snapshot))
    dest, state = options["dest"], options["state"]
    # Read before dest is written, which may be the same file.
    history = read_or_put_aside(state or dest, parse_history, HISTORY_LOST, module.warn)
    # The index is expensive for a large cloud: it is built once for the rules and the document.
    index = SnapshotIndex(snapshot)
    findings = judge(index, policy)
    document = build_document(index, findings, selection, history, sighting_policy)
    # Written in check mode too: detection changes nothing.
    if dest:
        write_json(dest, document)
    if state:
        write_json(state, extract_history(document))
    _warn_about_policy(module, policy, snapshot)
    # Most likely a typo in the expression, which would otherwise end in an empty plan.
    if selection and not any(entry["selected"] for entry in document["findings"]):
        module.warn("select matches none of the findings: nothing may be changed.")
    result = {"changed": False, "summary": document["summary"]}
    for key in ENTRY_LISTS:
        result[key] = document[key][:MAX_RETURNED]
    if dest:
        result["dest"] = dest
    return result


def _load_snapshot(path: str, scope: Scope) -> Snapshot:
    """Return the snapshot in the file `path`. Raises InvalidInput when it should be narrowed."""
    # What was not read cannot be judged, and what was read belongs together.
    if scope != Scope():
        raise InvalidInput(
            "snapshot_src is judged as it was read: it cannot be combined with hosts, consumers, "
            "projects, kinds, mode or shard."
        )
    return decode(read_json(path))


def _read_cloud(module: AnsibleModule, connect: Connect, scope: Scope) -> Snapshot:
    session = connect()
    # Older services prove less: said before the reading, which takes long.
    for sentence in list_unmet_requirements(session.cloud):
        module.warn(sentence)
    return Collector(session).collect(scope)


def _warn_about_policy(module: AnsibleModule, policy: Policy, snapshot: Snapshot) -> None:
    """Warn about options that have no effect, or none any more."""
    warn_ended_exclusions(module, policy)
    # A typo in a name would leave it without effect, and nobody would notice.
    for name in find_absent_allocators(policy, snapshot.cloud):
        module.warn(
            f"ignore_allocators names {name}, which the service catalogue of this cloud does not "
            "have."
        )
    for name in find_unknown_exclusions(policy, snapshot.providers.values()):
        module.warn(
            f"exclude_providers names {name}, which is not a resource provider of this "
            "cloud: it excludes nothing."
        )


def main() -> None:
    argument_spec = {
        **connection_options(),
        **policy_options(),
        **scope_options(),
        **sighting_policy_options(),
        "select": {"type": "str"},
        "dest": {"type": "path"},
        "state": {"type": "path"},
        "snapshot_dest": {"type": "path"},
        "snapshot_src": {"type": "path"},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
