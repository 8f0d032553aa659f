#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate_variables
short_description: Validate the variables of a role of this collection
version_added: 2.0.0
description:
  - Fails with one sentence for each variable of the role that has a wrong value, and for each
    variable that looks like one of the roles' and is none. It sends no request.
  - Each entry point of the roles runs it before anything else. There is no reason to use it
    elsewhere, except to check variables without running a role.
  - It replaces Ansible's own validation, which does not know misspelt variables and prints the
    whole specification of the role. The option C(rolespec_validate) of
    M(ansible.builtin.include_role) and M(ansible.builtin.import_role) turns that off.
  - The names of variables that begin with V(orphan_cleanup_), V(host_decommission_) and
    V(hypervisor_cleanup_), or with something that is one typing mistake away from it, belong to the
    roles. Besides the variables of the roles, these are allowed. V(orphan_cleanup_clouds) and
    V(hypervisor_cleanup_hosts) choose the hosts of playbooks, and V(orphan_cleanup_run) and
    V(host_decommission_drained) are artifacts of earlier jobs.
  - Variables that begin with V(_orphan_cleanup_), V(_host_decommission_) and
    V(_hypervisor_cleanup_) are internal, and are refused as extra variables.
  - An extra variable that nothing uses is refused, because it may have been meant as a limit. These
    are used. The variables of the roles, those that Ansible reads (C(ansible_user)) and those that
    AWX gives to its jobs (C(awx_job_id)); whatever a template or a condition of the playbook, its
    roles or the inventory uses, as far as Ansible has read them; and the names in
    V(orphan_cleanup_ignore_variables).
  - Limits of another role or entry point, and what Ansible does not understand after C(-e), are
    refused too.
  - The roles have no tags. Tags of the command line are refused, unless the playbook has them and
    they leave out the role as a whole. With the tag C(always), this task can do so.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
options:
  role:
    description:
      - The role whose variables are validated, P(osops.placement.orphan_cleanup#role),
        P(osops.placement.host_decommission#role) or P(osops.placement.hypervisor_cleanup#role).
    type: str
    choices:
      - orphan_cleanup
      - host_decommission
      - hypervisor_cleanup
    required: true
  entry_point:
    description:
      - The entry point of the role that is about to run.
    type: str
    default: main
  extra_only:
    description:
      - Whether to validate only extra variables, which are the same for all hosts of a play. Then a
        play over several hosts can fail once, before it fails on each of them. A template that this
        host cannot evaluate is not a mistake then.
    type: bool
    default: false
notes:
  - This is an action plugin. It runs on the controller, in check mode too.
seealso:
  - module: ansible.builtin.validate_argument_spec
"""

EXAMPLES = r"""
---
- name: Validate the variables without running the role
  osops.placement.validate_variables:
    role: orphan_cleanup

- name: Run the role, which validates its variables itself
  ansible.builtin.include_role:
    name: osops.placement.orphan_cleanup
    rolespec_validate: false
"""

RETURN = r"""
fenced:
  description: The hosts that V(host_decommission_fenced) names, or whether all hosts of the run are
    fenced.
  returned: when O(role=host_decommission)
  type: raw
  sample:
    - compute-17
  version_added: 3.0.0
run:
  description: A new run, which each stage of the role takes as its option C(run). The C(host) is
    empty if the play has one inventory host only.
  returned: when O(role=orphan_cleanup) and not O(extra_only)
  type: dict
  sample:
    id: 01764151200000000000-4711
    host: ''
    folder: /var/lib/placement
    check_mode: false
    detects: true
    remediates: false
    continues: false
"""
