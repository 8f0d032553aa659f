#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_restore
short_description: Put back what was removed from the Placement service
version_added: 1.0.0
description:
  - Takes the journal of M(osops.placement.orphan_remediate) and puts back what that run took, as it
    was, with project, user and type.
  - A consumer is given back what it had only if it holds exactly what the run left it with. One
    that holds something else by now is skipped, and so is one that still has everything.
  - Nothing is ever taken from a consumer. A claim that was created for a live server, or moved to
    the host where it is, therefore stays. Only a V(unreverted_allocation) is taken back whole, the
    documents of the server and of its migration in one request. What the server loses, its
    migration then holds again.
  - A tree of providers that was deleted is not created. When C(nova-compute) has made it again,
    with the same UUID or with the same name, the aggregates that it was in and the traits that
    operators set are added again. C(nova-compute) does not do that.
  - These traits are those that no driver of Nova reports, C(CUSTOM_*), C(HW_GPU_*), C(HW_NIC_*) and
    C(STORAGE_DISK_*). All others are left to C(nova-compute), such as those that say what a host
    can do and C(COMPUTE_STATUS_DISABLED). Providers of PCI devices, of Cyborg and of Neutron, and
    bare metal nodes, get no traits, because their services replace all of them.
  - A host aggregate of Nova is added only while Nova has the host in it. No inventory is written,
    nothing is taken from a provider, and whatever is different or left out is in
    RV(outcomes[].reason).
  - Trees come first, then allocations, each the newest first. What is put back is journalled as
    well, before it is written, and read back.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._connection
  - osops.placement._failures
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
      - The journal; its path, or its records, such as the C(records) that
        M(osops.placement.orphan_plan) returned.
      - A last line that a power cut tore is left out, for what it was to record was not written to
        Placement.
    type: raw
    required: true
  consumers:
    description:
      - Put back only what these consumers had, by UUID. Empty for all, or for none when
        O(providers) names any.
    type: list
    elements: str
    default: []
  providers:
    description:
      - Restore only these deleted trees, by name or UUID of their root. Empty for all, or for none
        when O(consumers) names any.
    type: list
    elements: str
    default: []
  output_dir:
    description:
      - Folder for C(restoration.json) and the journal of what is put back. It is made if need be;
        files have mode 0600.
    type: path
    required: true
  lock_timeout:
    description:
      - For how many seconds to wait for another run on this machine that changes the same
        Placement. If it is not over by then, this one fails and nothing is changed.
    type: int
    default: 300
seealso:
  - module: osops.placement.orphan_remediate
  - module: osops.placement.placement_allocation
"""

EXAMPLES = r"""
---
- name: Put back everything that one run removed
  osops.placement.orphan_restore:
    cloud: admin
    journal: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
    output_dir: /var/lib/placement

- name: Put back what one consumer had
  osops.placement.orphan_restore:
    cloud: admin
    journal: /var/lib/placement/journal-2026-11-20T030405Z-4711.jsonl
    consumers:
      - 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    output_dir: /var/lib/placement

- name: Add a host to the aggregates that it was in before its provider was deleted
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
    - Number of changes by what became of them. In check mode, of those that would be taken back.
    - V(restored) counts only what was read back from Placement.
  returned: success or when one failed
  type: dict
  sample:
    restored: 3
    skipped: 1
    failed: 0
outcomes:
  description:
    - What became of each change in the journal, deleted trees first, the newest first. At most 200
      are returned here; C(restoration.json) has all.
  returned: success or when one failed
  type: list
  elements: dict
  contains:
    finding:
      description: Id of the finding that the change settled.
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
      description: UUID and name that the root of a deleted tree had; V(null) for a consumer.
      returned: success
      type: dict
      sample: null
    outcome:
      description:
        - V(restored), V(skipped) or V(failed).
        - A tree is V(restored) when at least one of its providers was given something and none
          failed. It is V(skipped) while C(nova-compute) has not made it again, and when it lacks
          nothing.
      returned: success
      type: str
      sample: restored
    reason:
      description: Why it was skipped or failed; for a tree also what of it is different now or was
        left out. Else empty.
      returned: success
      type: str
      sample: ""
    write:
      description:
        - The change that puts it back, in the shape of a change of M(osops.placement.orphan_plan);
          V(null) when there is none.
        - That of a tree has C(action=restore_providers) and C(providers), each with C(uuid),
          C(name), C(generation), and the traits and aggregates C(before) and C(after).
      returned: success
      type: dict
      sample: null
torn:
  description: Whether the last line of the journal was torn.
  returned: success or when one failed
  type: bool
  sample: false
stopped:
  description: Why the run ended before its end, empty when it did not.
  returned: success or when one failed
  type: str
  sample: ""
restoration:
  description: Path of the file with the tally and all outcomes.
  returned: success or when one failed
  type: str
  sample: /var/lib/placement/restoration.json
journal:
  description: Path of the journal of what was put back, or V(null) when nothing was written to
    Placement.
  returned: success or when one failed
  type: str
  sample: /var/lib/placement/journal-2026-11-20T050607Z-4712.jsonl
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._clients.allocation_writer import (
    AllocationWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import require_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    build_diff,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    failures_option,
    parse_max_failures,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
    Journal,
    read_journal,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.lock import acquire_lock
from ansible_collections.osops.placement.plugins.module_utils._remediation.outcomes import (
    conclude_run,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.restore import (
    OUTCOMES,
    find_restore_steps,
    restore,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.signals import (
    watch_for_stop,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.tree_records import (
    find_deleted_providers,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.tree_restore import (
    TreeRestorer,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.argspec import Connect


def work(module: AnsibleModule, connect: Connect) -> dict[str, t.Any]:
    """Restore what the journal says was removed, and return the outcome of each change."""
    params, max_failures = module.params, parse_max_failures(module.params)
    # Checked before the journal is read: a wrong option should fail at once.
    consumers = [require_uuid(text, "consumers:") for text in params["consumers"]]
    # A torn last line is normal after a power cut: its write was never sent.
    records, torn = read_journal(params["journal"])
    session = connect()
    placement = session.placement
    steps = find_restore_steps(records, placement.endpoint, consumers, params["providers"])
    # All of them, also when only consumers are restored: it explains missing providers.
    deleted = find_deleted_providers(records, placement.endpoint)
    # Without a journal nothing below can write.
    journal = None if module.check_mode else Journal(params["output_dir"], placement.endpoint)
    with (
        watch_for_stop() as stopped,
        acquire_lock(placement.endpoint, params["lock_timeout"], stopped, journal is not None),
    ):
        done = restore(
            steps,
            PlacementReader(placement),
            AllocationWriter(placement),
            TreeRestorer(placement, session.compute, journal),
            deleted,
            journal,
            stopped,
            max_failures,
        )
        why_stopped = stopped()
    if torn:
        module.warn(
            "The last line of the journal is incomplete. "
            "Its change was never sent to Placement, and the line is left out."
        )

    path = os.path.join(params["output_dir"], "restoration.json")
    result = conclude_run(done, OUTCOMES, journal, why_stopped, path, "restored")
    result["restoration"] = path
    result["torn"] = torn
    if module._diff:
        result["diff"] = build_diff(entry.write for entry in done if entry.changed and entry.write)
    return result


def main() -> None:
    argument_spec = {
        **connection_options(),
        **failures_option(),
        "journal": {"type": "raw", "required": True},
        "consumers": {"type": "list", "elements": "str", "default": []},
        "providers": {"type": "list", "elements": "str", "default": []},
        "output_dir": {"type": "path", "required": True},
        "lock_timeout": {"type": "int", "default": 300},
    }
    run(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
