#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_report
short_description: Show, write and tell what was found and what was done about it
version_added: 1.0.0
description:
  - Draws the findings of M(osops.placement.orphan_detect) and the outcomes of
    M(osops.placement.orphan_remediate) on the terminal.
  - Writes them to the host as files for people (Markdown, CSV) and for programs (JUnit XML,
    Prometheus metrics), and puts them into the words of a notice for a chat.
  - Names from the cloud are shown as data, with every character that a terminal would act on
    spelled out, and nothing in them that any of these formats would act on.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
attributes:
  check_mode:
    support: full
    details:
      - This action does not modify the cloud. The reports are written in check mode too, and are no
        change.
options:
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
      - At least one of O(findings), O(remediation), O(hosts), O(guests) and O(notice) must be
        given.
    type: path
  kinds:
    description:
      - The kinds of findings that may be changed. Of the others the table says that they are left
        alone. Any kind without this option.
    type: list
    elements: str
  complaints:
    description:
      - What hosts complained of, as M(osops.placement.nova_log_info) returns it in
        RV(osops.placement.nova_log_info#module:records), of one or of many hosts. A list, or the
        path of a JSON file with such a list or with the whole result.
      - A complaint is shown with the finding that explains it. Those without a finding are shown
        after all findings.
      - It is used with O(findings) only.
    type: raw
  plan:
    description:
      - Path of the plan that M(osops.placement.orphan_plan) wrote. It is told of in the files only.
      - If it was made of other findings than O(findings), those are left out of everything, and no
        file is written.
    type: path
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
  failure:
    description:
      - What the run failed with, to be told in the files and in the notice. Empty if it did not
        fail.
    type: str
    default: ""
  terminal:
    description:
      - Whether to draw on the terminal. There are colours where Ansible itself has them.
    type: bool
    default: true
  formats:
    description:
      - In which formats to write O(findings), and with them O(plan), O(remediation), O(journal) and
        O(failure). In check mode, too.
      - V(json) is the file O(findings) itself, and nothing is written for it.
      - The files are C(report.html), C(report.md), C(findings.csv), C(junit.xml) and
        C(placement_orphans.prom), of mode 0600.
    type: list
    elements: str
    choices:
      - json
      - html
      - markdown
      - csv
      - junit
      - prometheus
    default: []
  output_dir:
    description:
      - Folder on the host to write the files to. It is made if need be.
    type: path
  metrics_path:
    description:
      - Where to write the file of O(formats=prometheus) instead, with mode 0644; for node_exporter
        a path in the folder of its textfile collector, with C(.prom) at the end.
      - When the last run succeeded is taken from the file that is there, if this one did not.
    type: path
  notice:
    description:
      - Return a RV(notice) in the words of this product.
    type: str
    choices:
      - slack
      - mattermost
      - teams
      - json
  reports:
    description:
      - Paths of reports by format that a O(notice) is to name.
    type: dict
    default: {}
notes:
  - This is an action plugin. It runs on the controller, reads the files from the host and writes
    the reports to the host.
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

- name: Write what was found for a merge request and for node_exporter, and draw nothing
  osops.placement.orphan_report:
    findings: /var/lib/placement/findings.json
    terminal: false
    formats:
      - markdown
      - prometheus
    output_dir: /var/lib/placement
    metrics_path: /var/lib/prometheus/node-exporter/placement_orphans.prom

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
        complaints: >-
          {{ ansible_play_hosts | map('extract', hostvars)
          | map(attribute='log.records') | flatten }}
      delegate_to: localhost
      run_once: true
"""

RETURN = r"""
reports:
  description: Paths of the files that were written, by format.
  returned: when O(findings) is given, and O(plan), if there is one, was made of them
  type: dict
  sample:
    markdown: /var/lib/placement/report.md
notable:
  description: Whether there is anything to send a notice for, which is when a finding is new or
    something failed.
  returned: when O(notice) is given
  type: bool
  sample: true
notice:
  description: What to send as JSON to the webhook of the product that O(notice) names. At most 20
    new findings are in it.
  returned: when O(notice) is given
  type: dict
  sample:
    text: "*Orphaned allocations: 1 new finding*"
"""
