#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_drain
short_description: Move all servers away from a compute host
version_added: 2.0.0
description:
  - Disables the compute service of a host, and moves its servers to other hosts, a few at a time.
    Servers that are active or paused move live, and servers that are shut off move cold; their
    cold migration is confirmed without a question. If the host is down and fenced, its servers
    are evacuated.
  - In check mode, it returns for each server how it would move and which hosts have room for it,
    by Placement's answer to what the server needs, and whether all servers fit together.
  - Nova's scheduler selects the host for each server, with all of its filters. The module never
    names a host and never sends C(force), because that would skip the checks of resources, server
    groups and availability zones. Only with O(move_back) does a request name the host, which the
    scheduler may still refuse.
  - Right before each request, the server is looked up again. It is left where it is if it is no
    longer on the host, if it has a task, if it is in a migration of somebody else, or if its
    allocation is not exactly on the host.
  - A run that was interrupted can be started again. It recognises the moves that are under way by
    Nova's migrations, follows them to their end, and goes on with the other servers.
  - A cold migration is confirmed, and a server counted as moved, only if Nova recorded the move
    under the ID of a request of this module (response header C(x-openstack-request-id)). If the
    response was lost, if a proxy drops the header, or if somebody else began the migration,
    nothing is confirmed.
  - A move is no longer waited for when nova-compute on its source or destination is down, or when
    nothing goes on with its migration. If the guest may then be on either host, RV(outcomes) has
    both, and the journal keeps the move open. The next run follows it, and moves the server again
    only if nova-compute on the source shows that the guest runs there
    (C(GET /servers/{id}/diagnostics)).
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._options.connection
  - osops.placement._options.progress
  - osops.placement._attributes
  - osops.placement._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - Placement and Nova's API do not show all that the scheduler knows, such as its additional
        filters, and in which cell a host is. A move that is predicted can still fail.
  diff_mode:
    support: none
    details:
      - The plan in RV(plan) says what would be done.
  idempotent:
    support: full
options:
  host:
    description:
      - The host, by the name of its compute service.
    type: str
    required: true
  state:
    description:
      - With V(drained), the service is disabled, and the servers are moved away.
      - With V(returned), the service becomes what it was before the drain, and with O(move_back)
        the servers that were moved away come back.
    type: str
    choices:
      - drained
      - returned
    default: drained
  output_dir:
    description:
      - Directory for the journal of moves, whose name begins with C(moves-). The module creates
        the directory if it does not exist; the file has mode 0600.
      - To continue an interrupted run, and to return the host, use the same directory.
    type: path
    required: true
  journal:
    description:
      - With O(state=returned), the path of a journal of moves, or packs, which a drain returns in
        RV(packed), as a list or as one text. Without it, all journals in O(output_dir) count.
      - A journal that has no record of O(host) is refused.
    type: raw
  disabled_reason:
    description:
      - Why the service is disabled. If it is disabled already, its present reason stays.
      - With O(state=returned) and no journal, only a service that is disabled for this reason is
        enabled.
    type: str
    default: drained with osops.placement
  fenced:
    description:
      - Your confirmation that no guest can still run on the host, for example because its power is
        off. Only then does the module force down the service of a host that is down, and evacuate
        its servers.
      - While a guest still runs, its evacuation starts it a second time, on the same volumes and
        with the same addresses.
      - Before the first evacuation, the module asks the nova-compute of the host about one of the
        servers, and waits until every other nova-compute has reported twice. A host whose
        nova-compute answers or reports is refused, and so is every host while no other reports.
      - An evacuated server keeps its state. Its disk is lost unless it is on storage that the
        other hosts can reach.
    type: bool
    default: false
  cold:
    description:
      - Which servers may move cold. With V(active), active servers that cannot move live, for
        example because of a PCI device, are shut down while they move. With V(shut_off), they
        stay.
    type: str
    choices:
      - shut_off
      - active
    default: shut_off
  move_back:
    description:
      - With O(state=returned), move the servers back that were moved away and are still where
        they were moved to. This needs compute API microversion 2.56, and the journal of the drain.
    type: bool
    default: false
  parallel:
    description:
      - How many servers move at the same time.
    type: int
    default: 2
  retries:
    description:
      - How many times a failed move is tried again, after the other servers.
    type: int
    default: 1
  max_failures:
    description:
      - After this many servers that could not be moved, no further move is begun.
    type: int
    default: 5
  move_timeout:
    description:
      - How long to wait for one move, in seconds or with a unit such as V(30m) or V(2h). Nova
        goes on with a move that takes longer, and the next run follows it.
    type: str
    default: 1h
  lock_timeout:
    description:
      - How many seconds to wait for another run on this machine that drains the same host.
    type: int
    default: 300
  exclude_consumers:
    description:
      - UUIDs of servers that are never moved, for example because they are pinned to the host by
        hand. They stay on the host, and are listed with the reason.
      - Each entry is a UUID, or a dictionary with a UUID as C(name) and, optionally, C(until) and
        C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z).
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - Names or UUIDs of hosts that are never changed. If O(host) is one of them, it is not
        drained. Each entry has the form of those of O(exclude_consumers).
    type: list
    elements: raw
    default: []
  show:
    description:
      - What to show on the terminal. With V(plan), how each server would leave the host, the
        biggest problems first. With V(result), each server that was not moved, the totals, the
        journal and the next command; in check mode, the plan and the next command.
    type: str
    choices:
      - nothing
      - plan
      - result
    default: nothing
  export:
    description:
      - Whether to export the result as an artifact for following jobs, as
        M(ansible.builtin.set_stats) does. Its name is C(host_decommission_drained). It is a list
        with an entry for each host that a job drains, which has C(host), C(check_mode), C(empty),
        C(remaining), C(outcomes), C(journal) and C(packed). Then RV(packed) is empty.
    type: bool
    default: false
notes:
  - The host may become empty only after several runs. Servers that stay are listed with the
    reason and with what to do about them.
  - The credentials need the rules of Nova's policy for C(os_compute_api:os-services:update),
    C(os_compute_api:os-migrate-server:migrate), C(os_compute_api:os-migrate-server:migrate_live),
    C(os_compute_api:os-evacuate), C(os_compute_api:servers:confirm_resize) and
    C(os_compute_api:os-server-diagnostics), which administrators have.
seealso:
  - module: osops.placement.compute_host_info
  - module: osops.placement.compute_host
  - module: osops.placement.allocation_candidate_info
"""

EXAMPLES = r"""
---
- name: Show where the servers of a host would go
  osops.placement.host_drain:
    cloud: admin
    host: compute-17
    output_dir: /var/lib/drain
  check_mode: true
  register: drain

- name: Move the servers away, four at a time
  osops.placement.host_drain:
    cloud: admin
    host: compute-17
    output_dir: /var/lib/drain
    disabled_reason: new memory
    parallel: 4

- name: Evacuate the servers of a dead host whose power is off
  osops.placement.host_drain:
    cloud: admin
    host: compute-17
    output_dir: /var/lib/drain
    fenced: true

- name: Take the host back into service, with the servers that were on it
  osops.placement.host_drain:
    cloud: admin
    host: compute-17
    output_dir: /var/lib/drain
    state: returned
    move_back: true
"""

RETURN = r"""
---
plan:
  description: How the servers would leave the host, as seen before the first move.
  returned: when state is drained
  type: dict
  contains:
    host:
      description: The host.
      returned: always
      type: str
      sample: compute-17
    servers:
      description: The servers on the host, in the order in which they move.
      returned: always
      type: list
      elements: dict
      contains:
        uuid:
          description: UUID of the server.
          returned: always
          type: str
          sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
        name:
          description: Name of the server.
          returned: always
          type: str
          sample: db-7
        status:
          description: Status of the server.
          returned: always
          type: str
          sample: ACTIVE
        flavor:
          description: Name of the flavor of the server.
          returned: always
          type: str
          sample: m1.large
        how:
          description: How the server would move. V(live), V(cold), V(evacuation), or V(stays).
          returned: always
          type: str
          sample: live
        hosts:
          description: Names of the hosts that have room for this server alone.
          returned: always
          type: list
          elements: str
          sample:
            - compute-3
            - compute-9
        to:
          description: The host of this server if all servers are placed together, the biggest
            first; V(null) for a server that does not fit. Nova may select another host.
          returned: always
          type: str
          sample: compute-9
        reason:
          description: Why the server moves in this way, or why it stays.
          returned: always
          type: str
          sample: it is ACTIVE
        advice:
          description: What to do about a server that stays; otherwise empty.
          returned: always
          type: str
          sample: ''
        warnings:
          description: What to know before the server moves.
          returned: always
          type: list
          elements: str
          sample:
            - 'its disk is copied with it unless it is on storage that other hosts can reach'
    warnings:
      description: What the cloud lacks while the host is disabled.
      returned: always
      type: list
      elements: str
      sample:
        - Availability zone az1 is left without a host that is up and enabled.
    movable:
      description: How many of the servers can move alone.
      returned: always
      type: int
      sample: 33
    fitting:
      description: How many of the servers have room on other hosts, all together.
      returned: always
      type: int
      sample: 31
    summary:
      description: The plan in one sentence.
      returned: always
      type: str
      sample: '33 of 34 servers on compute-17 can leave (db-7: it needs 512 GiB of memory, and no
        other host has that free).'
service:
  description: The compute service of the host, afterwards. Its fields are those of
    M(osops.placement.compute_host).
  returned: success
  type: raw
  sample:
    host: compute-17
    status: disabled
outcomes:
  description: What became of each server. In check mode, only the servers that a return cannot
    move back.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the server.
      returned: always
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the server.
      returned: always
      type: str
      sample: db-7
    outcome:
      description: V(moved); V(gone) if it was deleted, or not provably moved by this module;
        V(left) if it must not be moved; V(failed); V(under_way) if the move has not ended;
        V(skipped) if it was not tried.
      returned: always
      type: str
      sample: moved
    how:
      description: How it was moved. V(live), V(cold), V(evacuation), or V(stays).
      returned: always
      type: str
      sample: live
    source:
      description: The host where it was.
      returned: always
      type: str
      sample: compute-17
    to:
      description: The host where it is, or V(null).
      returned: always
      type: str
      sample: compute-9
    may_be_on:
      description: The hosts where its guest may be, if Nova's record does not prove where.
      returned: always
      type: list
      elements: str
      sample: []
    seconds:
      description: How long the move took, with all attempts.
      returned: always
      type: int
      sample: 74
    attempts:
      description: How many times this run has asked Nova to move it.
      returned: always
      type: int
      sample: 1
    reason:
      description: Why it has this outcome, if possible in Nova's own words.
      returned: always
      type: str
      sample: ''
tally:
  description: How many servers have each outcome.
  returned: success
  type: dict
  sample:
    moved: 31
    left: 3
remaining:
  description: UUIDs of the servers that are still on the host, soft-deleted ones too.
  returned: when state is drained
  type: list
  elements: str
  sample: []
migrations:
  description: The migrations from or to the host that have not ended, also those that wait to be
    confirmed. Their fields are those of M(osops.placement.migration_info).
  returned: when state is drained
  type: list
  elements: raw
  sample: []
occupants:
  description: What is on the host or may yet come to it. A server that is being built has an
    allocation before it has a host.
  returned: when state is drained
  type: list
  elements: dict
  contains:
    kind:
      description: V(server), V(migration), V(resize), V(claim) for another consumer with an
        allocation on the host, V(enabled) if somebody has enabled the host during the
        drain, or V(unsound_reading) if the services do not show everything.
      returned: always
      type: str
      sample: claim
    subject:
      description: UUID of the server, the migration or the consumer, or the name of the host.
      returned: always
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the server, if it is known.
      returned: always
      type: str
      sample: db-7
    reason:
      description: Why the host is not empty, and what to do.
      returned: always
      type: str
      sample: 'Server 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11 (SOFT_DELETED) is on compute-17:
        restore it, or delete it for good.'
    stops:
      description: The first stage of a decommissioning that it blocks.
      returned: always
      type: str
      sample: disable
  sample: []
empty:
  description: Whether RV(occupants) is empty. Every migration that has not ended is an occupant.
    Allocations that a cleanup would remove are none, such as those of servers that were evacuated.
  returned: when state is drained
  type: bool
  sample: true
unfinished_evacuations:
  description: UUIDs of the evacuations from the host that its nova-compute has not completed. Its
    next start destroys their servers if they are on the host then.
  returned: when O(state) is V(returned), not in check mode
  type: list
  elements: str
  sample: []
  version_added: 3.0.0
departures:
  description: The servers to move back. One that is on the host again is not among them; one that
    cannot be moved is in RV(outcomes).
  returned: when state is returned
  type: list
  elements: dict
  contains:
    server:
      description: UUID of the server.
      returned: always
      type: str
      sample: 6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11
    name:
      description: Name of the server.
      returned: always
      type: str
      sample: db-7
    source:
      description: The host that was drained.
      returned: always
      type: str
      sample: compute-17
    to:
      description: The host where it was moved to.
      returned: always
      type: str
      sample: compute-9
journal:
  description: Path of the journal of this run; V(null) if nothing was requested.
  returned: success
  type: str
  sample: /var/lib/drain/moves-2026-11-20T030405Z-4711.jsonl
packed:
  description:
    - A pack, which is what the journals in O(output_dir) have about the host as one text without
      spaces, for O(journal) in another job. It begins with C(osops.placement.run), has a SHA-256,
      and has no names of servers.
    - Empty if there is none, and if the text would have more than 400 000 characters. Then a
      warning says so.
  returned: success
  type: str
  sample: osops.placement.run:1:9f86d081…:eNrT0yMAAGTvBe8
  version_added: 3.0.0
"""

from ..module_utils._core.clients.session import CloudTask
from ..module_utils._core.options.policy import ExclusionOptions
from ..module_utils._core.options.run import ProgressFileOptions
from ..module_utils._hosts.drain_stage import drain_or_return
from ..module_utils._hosts.host_decommission import MoveOptions

TASK = CloudTask(
    drain_or_return,
    {
        **ProgressFileOptions.build_spec(),
        "host": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["drained", "returned"], "default": "drained"},
        "output_dir": {"type": "path", "required": True},
        "journal": {"type": "raw"},
        "disabled_reason": {"type": "str", "default": "drained with osops.placement"},
        "fenced": {"type": "bool", "default": False},
        **MoveOptions.build_spec(),
        **ExclusionOptions.build_spec(),
        "move_back": {"type": "bool", "default": False},
        # The action plugin uses these.
        "show": {"type": "str", "choices": ["nothing", "plan", "result"], "default": "nothing"},
        "export": {"type": "bool", "default": False},
    },
)


if __name__ == "__main__":
    TASK.run_module()
