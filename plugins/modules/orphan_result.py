#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_result
short_description: Conclude a run of the role orphan_cleanup
version_added: 2.0.0
description:
  - Writes the reports of a run of the role P(osops.placement.orphan_cleanup#role), exports its
    result to the jobs that follow, and sends the notification.
  - In another task, shows the result on the terminal, and fails if the run has to fail.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
attributes:
  check_mode:
    support: full
    details:
      - This action does not modify the cloud. It writes reports in check mode too, and a report is
        not a change.
options:
  stage:
    description:
      - V(write) writes the reports, exports the result and sends the notification. Each of them is
        done also if another one fails.
      - V(show) shows the result, and fails if the run has to fail. A failed task exports nothing,
        so these are two tasks.
    type: str
    choices:
      - write
      - show
    required: true
  run:
    description:
      - The state of the run, as P(osops.placement.record_stage#filter) returns it.
    type: dict
    required: true
  fail_on:
    description:
      - What counts as a failure, as in the role's variable C(orphan_cleanup_fail_on).
    type: str
    choices:
      - never
      - error
      - partial
      - undecided
      - findings
    default: error
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote. It need not exist.
    type: path
    required: true
  kinds:
    description:
      - The kinds of findings that may be changed. Without this option, all kinds may be changed.
    type: list
    elements: str
  formats:
    description:
      - The formats in which to write the findings, as in
        O(osops.placement.orphan_report#module:formats).
    type: list
    elements: str
    choices:
      - json
      - html
      - markdown
      - csv
      - prometheus
    default: []
  output_dir:
    description:
      - Folder on the host for the files. It is created if it does not exist.
    type: path
    required: true
  metrics_path:
    description:
      - Path of the file of O(formats=prometheus), instead of a file in O(output_dir), as
        O(osops.placement.orphan_report#module:metrics_path).
    type: path
  host:
    description:
      - The inventory host of the run, if the play has several. Then each artifact has its contents
        under C(by_host) and this name.
    type: str
    default: ""
  notify_url:
    description:
      - The address of a webhook. A notification is sent to it if a finding is new or something
        failed. No notification is sent by default.
    type: str
    default: ""
  notify_format:
    description:
      - The format of the notification, as
        O(osops.placement.orphan_notification#module:format).
    type: str
    choices:
      - json
      - text
    default: json
  notify_required:
    description:
      - Whether the task fails if the notification cannot be delivered. By default, it only warns.
    type: bool
    default: false
notes:
  - This is an action plugin. It runs on the controller, reads the files from the host and writes
    the reports to the host.
seealso:
  - module: osops.placement.orphan_notification
  - module: osops.placement.orphan_report
  - plugin: osops.placement.record_stage
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Write the reports, and export the result
  osops.placement.orphan_result:
    stage: write
    run: "{{ run }}"
    findings: /var/lib/placement/findings.json
    formats:
      - html
    output_dir: /var/lib/placement
  register: reported
  failed_when: false

- name: Show the result
  osops.placement.orphan_result:
    stage: show
    run: "{{ run | osops.placement.record_stage('reported', reported) }}"
    findings: /var/lib/placement/findings.json
    output_dir: /var/lib/placement
"""

RETURN = r"""
reports:
  description: Paths of the files that were written, by format.
  returned: when O(stage=write)
  type: dict
  sample:
    html: /var/lib/placement/report.html
"""
