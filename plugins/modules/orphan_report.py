#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_report
short_description: Show what was found and what was done about it
version_added: 1.0.0
description:
  - Draws the findings of M(osops.placement.orphan_detect) and the outcomes of M(osops.placement.orphan_remediate) on the terminal.
  - Names from the cloud are shown as data, with every character that a terminal would act on spelled out.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
options:
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
      - At least one of O(findings), O(remediation), O(hosts) and O(guests) must be given.
    type: path
  kinds:
    description:
      - The kinds of findings that may be changed. Of the others the table says that they are left alone. Any kind without this option.
    type: list
    elements: str
  complaints:
    description:
      - What hosts complained of, as M(osops.placement.nova_log_info) returns it in RV(osops.placement.nova_log_info#module:records),
        of one or of many hosts. A list, or the path of a JSON file with such a list or with the whole result.
      - A complaint is shown with the finding that explains it. Those without a finding are shown after all findings.
      - It is used with O(findings) only.
    type: raw
  remediation:
    description:
      - Path of the file C(remediation.json) that M(osops.placement.orphan_remediate) wrote.
    type: path
  hosts:
    description:
      - Path of the file that M(osops.placement.compute_host_info) wrote.
    type: path
  guests:
    description:
      - Path of the file that M(osops.placement.hypervisor_guest_detect) wrote.
    type: path
  journal:
    description:
      - Path of the journal to point to.
    type: path
notes:
  - This is an action plugin. It runs on the controller and reads the files from the host.
seealso:
  - module: osops.placement.nova_log_info
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_remediate
"""

EXAMPLES = r"""
---
- name: Show what was found
  osops.placement.orphan_report:
    findings: /var/lib/placement/findings.json

- name: Read what the hypervisors complained of
  hosts: compute
  tasks:
    - name: Read the log of nova-compute
      osops.placement.nova_log_info:
        since: 7d
      become: true
      register: log

    - name: Show it with what was found
      osops.placement.orphan_report:
        findings: /var/lib/placement/findings.json
        complaints: "{{ ansible_play_hosts | map('extract', hostvars) | map(attribute='log.records') | flatten }}"
      delegate_to: localhost
      run_once: true
"""

RETURN = r"""#"""
