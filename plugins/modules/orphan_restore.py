#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_restore
short_description: Restore what was removed from the Placement service
version_added: 1.0.0
description:
  - Restores the allocations that a run of M(osops.placement.orphan_remediate) removed, from the
    journal of that run, with their project, user and type.
  - The allocations of a consumer are restored only if the consumer has exactly those allocations
    that the run left it with. A consumer that now has other allocations is skipped, and so is a
    consumer that still has all of them.
  - 'Nothing is removed from a consumer, so an allocation that the run created for a live server,
    or moved to the host where the server is, stays. The exception is V(unreverted_allocation):
    the allocations of the server and of its migration are restored in one request, and the
    migration has its allocation again.'
  - A deleted tree of providers is not created again. Once C(nova-compute) has created it, with
    the same UUID or with the same name, this module adds its aggregates and the traits that
    operators set, which C(nova-compute) does not do.
  - 'The restored traits are those that no driver of Nova reports: C(CUSTOM_*), C(HW_GPU_*),
    C(HW_NIC_*) and C(STORAGE_DISK_*). All others are left to C(nova-compute), such as the traits
    for the capabilities of a host and C(COMPUTE_STATUS_DISABLED). Providers of PCI devices, of
    Cyborg and of Neutron, and bare metal nodes, get no traits, because their services replace all
    of them.'
  - An aggregate of a host aggregate in Nova is added only while the host is in that host
    aggregate. Inventories are not written, and nothing is removed from a provider.
    RV(outcomes[].reason) says what differs or was left out.
  - 'Nova is asked about each consumer first, because a journal is a file that anybody can write:
    a server that Nova is changing, and a consumer for which Nova contradicts the journal, are
    skipped. A server gives its allocation to a migration only if Nova lists this migration as one
    of that server which failed, and no later move.'
  - What Placement would refuse for the capacity of a provider is C(blocked), also in check mode.
    The task then fails at its end, but this does not count for O(max_failures).
  - The limits O(max_changes) and O(max_share) apply as in a cleanup. If they are exceeded, nothing
    is restored.
  - Trees are restored first and then allocations, each with the newest first. Each write is
    journalled before it is sent, and read back afterwards.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.progress
  - osops.placement._options.failures
  - osops.placement._options.limits
  - osops.placement._options.run
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  journal:
    description:
      - 'The journal: its path, or a list of its records.'
      - 'It can also be packs, which M(osops.placement.orphan_remediate) returns in
        RV(osops.placement.orphan_remediate#module:packed): one or several, as a list, or as one
        text with spaces or line breaks between them, or with all artifacts of a job of AWX. If one
        of them was edited or cut short, nothing is restored.'
      - A pack of M(osops.placement.orphan_plan) counts as a journal of all changes of the plan. It
        is for a job that was killed while it made them.
      - An incomplete last line, for example after a power failure, is ignored, because its change
        was never sent to Placement.
    type: raw
    required: true
  consumers:
    description:
      - Restore only the allocations of these consumers, by UUID. If it is empty, all consumers
        are restored, or none if O(providers) is set.
    type: list
    elements: str
    default: []
  providers:
    description:
      - Restore only these deleted trees, by the name or UUID of their root. If it is empty, all
        trees are restored, or none if O(consumers) is set.
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  exclude_consumers:
    description:
      - Consumers that are not restored, as for M(osops.placement.orphan_detect), each by UUID. The
        migrations of an excluded server are excluded too.
    type: list
    elements: raw
    default: []
    version_added: 3.0.0
  exclude_providers:
    description:
      - Providers to which nothing is restored, as for M(osops.placement.orphan_detect), each by
        name or UUID. The whole tree of such a provider is excluded.
    type: list
    elements: raw
    default: []
    version_added: 3.0.0
  output_dir:
    description:
      - Directory for C(restoration.json) and the journal of the restored changes. The module
        creates it if it does not exist; the files have mode 0600.
    type: path
    required: true
  lock_timeout:
    description:
      - How many seconds to wait for another run on this machine that changes the same Placement.
        If that run has not ended by then, this task fails and changes nothing.
    type: int
    default: 300
  show:
    description:
      - Whether to show each change of the journal on the terminal before it is restored, in one
        line. Names come from C(findings.json) in O(output_dir), if it has them.
    type: bool
    default: false
    version_added: 2.0.0
seealso:
  - module: osops.placement.orphan_remediate
  - module: osops.placement.placement_allocation
"""

EXAMPLES = r"""
---
- name: Restore everything that one run removed
  osops.placement.orphan_restore:
    cloud: admin
    journal: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
    output_dir: /var/lib/placement

- name: Restore the allocations of one consumer
  osops.placement.orphan_restore:
    cloud: admin
    journal: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
    consumers:
      - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    output_dir: /var/lib/placement

- name: Restore the aggregates of a host whose provider was deleted
  osops.placement.orphan_restore:
    cloud: admin
    journal: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
    providers:
      - compute-17
    output_dir: /var/lib/placement
"""

RETURN = r"""
tally:
  description:
    - Number of changes in the journal by outcome; in check mode, of the changes that would be
      restored.
    - V(restored) counts only changes that were read back from Placement.
    - V(blocked) is there only if it is not zero.
  returned: success or when one failed
  type: dict
  sample:
    restored: 3
    skipped: 1
    failed: 0
outcomes:
  description:
    - 'The outcome of each change in the journal: deleted trees first, and the newest first. At
      most 200 are returned here; C(restoration.json) has all of them.'
  returned: success or when one failed
  type: list
  elements: dict
  contains:
    finding:
      description: Id of the finding that the change resolved.
      returned: success
      type: str
      sample: deleted_server/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    kind:
      description: Kind of that finding.
      returned: success
      type: str
      sample: deleted_server
    consumer:
      description: UUID of the consumer; V(null) for a tree of providers.
      returned: success
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    provider:
      description: The root of a deleted tree; V(null) for a consumer.
      returned: success
      type: dict
      sample: null
      version_added: 2.0.0
      contains:
        uuid:
          description: UUID that the root had.
          returned: success
          type: str
          sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        name:
          description: Name that the root had.
          returned: success
          type: str
          sample: compute-17
    outcome:
      description:
        - V(restored), V(skipped), V(blocked) or V(failed).
        - A tree is V(restored) if something was added to at least one of its providers and
          nothing failed. It is V(skipped) if C(nova-compute) has not created it again, or if
          nothing is missing.
      returned: success
      type: str
      sample: restored
    reason:
      description: Why the change was skipped, blocked or failed; for a tree also what differs or
        was left out. Otherwise empty.
      returned: success
      type: str
      sample: ''
    reason_id:
      description: The ID of the reason, empty without one, from docs/reasons.md of the collection.
      returned: success
      type: str
      sample: ''
      version_added: 3.0.0
    write:
      description: The change that restores it; V(null) if there is none.
      returned: success
      type: dict
      sample: null
      contains:
        action:
          description: 'What the change does: V(rewrite) or another action of a plan for a
            consumer, or V(restore_providers) for a tree, which has C(finding), C(kind) and
            C(providers) and none of the other fields.'
          returned: success
          type: str
          sample: rewrite
        providers:
          description: The providers of a tree to which something is added.
          returned: success
          type: list
          elements: dict
          contains:
            uuid:
              description: UUID of the provider.
              returned: success
              type: str
              sample: f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
            name:
              description: Name of the provider.
              returned: success
              type: str
              sample: compute-17
            generation:
              description: Generation of the provider before the change.
              returned: success
              type: int
              sample: 3
            before:
              description: Its traits and aggregates before the change.
              returned: success
              type: dict
              contains:
                traits:
                  description: Names of the traits.
                  returned: success
                  type: list
                  elements: str
                  sample:
                    - CUSTOM_GOLD
                aggregates:
                  description: UUIDs of the aggregates.
                  returned: success
                  type: list
                  elements: str
                  sample: []
            after:
              description: Its traits and aggregates after the change.
              returned: success
              type: dict
              contains:
                traits:
                  description: Names of the traits.
                  returned: success
                  type: list
                  elements: str
                  sample:
                    - CUSTOM_GOLD
                aggregates:
                  description: UUIDs of the aggregates.
                  returned: success
                  type: list
                  elements: str
                  sample: []
          sample: []
        consumer:
          description: UUID of the consumer.
          returned: success
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        generation:
          description: Generation of the consumer at detection; V(null) for a consumer without
            allocations.
          returned: success
          type: int
          sample: 2
        before:
          description: The allocations of the consumer before the change, in the format of C(PUT
            /allocations/{consumer}).
          returned: success
          type: dict
          contains:
            allocations:
              description: The amounts by provider UUID, each as C(resources) with the amounts by
                resource class.
              returned: success
              type: dict
              sample: {}
            consumer_generation:
              description: Generation of the consumer at detection; V(null) for a consumer without
                allocations.
              returned: success
              type: int
              sample: 2
            project_id:
              description: UUID of the project.
              returned: success
              type: str
              sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id:
              description: UUID of the user.
              returned: success
              type: str
              sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
            consumer_type:
              description: Type of the consumer. It is missing for a consumer without a type.
              returned: success
              type: str
              sample: INSTANCE
          sample:
            consumer_generation: 2
            allocations: {}
            project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        after:
          description: The allocations of the consumer after the change, in the same format.
          returned: success
          type: dict
          contains:
            allocations:
              description: The amounts by provider UUID, each as C(resources) with the amounts by
                resource class.
              returned: success
              type: dict
              sample: {}
            consumer_generation:
              description: Generation of the consumer at detection; V(null) for a consumer without
                allocations.
              returned: success
              type: int
              sample: 2
            project_id:
              description: UUID of the project.
              returned: success
              type: str
              sample: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id:
              description: UUID of the user.
              returned: success
              type: str
              sample: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
            consumer_type:
              description: Type of the consumer. It is missing for a consumer without a type.
              returned: success
              type: str
              sample: INSTANCE
          sample:
            consumer_generation: 2
            allocations: {}
            project_id: 2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908
            user_id: 7d1b0e6f3c2a4b5d9e8f7a6b5c4d3e2f
        partner:
          description: The change of another consumer that must be made in the same request, with
            the fields of a change; otherwise V(null).
          returned: success
          type: dict
        frees:
          description: The amounts that the change frees, by provider UUID and resource class.
          returned: success
          type: dict
          sample:
            f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08:
              VCPU: 2
        claims:
          description: The amounts that the change allocates, by provider UUID and resource class.
          returned: success
          type: dict
          sample: {}
        finding:
          description: Id of the finding; only for a tree.
          returned: success
          type: str
          sample: orphaned_provider/f3bfbfa8-4dcb-4cf1-b8b3-5b3069870d08
        kind:
          description: Kind of the finding; only for a tree.
          returned: success
          type: str
          sample: orphaned_provider
torn:
  description: Whether the last line of the journal was incomplete.
  returned: success or when one failed
  type: bool
  sample: false
stopped:
  description: Why the run ended early; empty if it did not.
  returned: success or when one failed
  type: str
  sample: ''
restoration:
  description: Path of the file with the tally and all outcomes.
  returned: success or when one failed
  type: str
  sample: /var/lib/placement/restoration.json
journal:
  description: Path of the journal of the restored changes; V(null) if nothing was written to
    Placement.
  returned: success or when one failed
  type: str
  sample: /var/lib/placement/journal-2026-11-20T050607Z-4712.jsonl
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.policy import ExclusionOptions
from ..module_utils._core.options.run import ChangeOptions
from ..module_utils._core.stages.restore import restore_journal

TASK = CloudTask(
    restore_journal,
    {
        **ChangeOptions.build_spec(),
        **ExclusionOptions.build_spec(),
        "journal": {"type": "raw", "required": True},
        "consumers": {"type": "list", "elements": "str", "default": []},
        "providers": {"type": "list", "elements": "str", "default": []},
        "output_dir": {"type": "path", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
        # The action plugin shows it.
        "show": {"type": "bool", "default": False},
    },
)


if __name__ == "__main__":
    TASK.run_module()
