#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_report
short_description: Show and write reports of runs
version_added: 1.0.0
description:
  - Draws on the terminal what M(osops.placement.orphan_detect) found, what became of it in
    M(osops.placement.orphan_remediate), and the summary of several clouds.
  - Reports a run of the role P(osops.placement.orphan_cleanup#role) from the state in its folder,
    says what it has to fail with, exports its result to the jobs that follow, and sends a
    notification.
  - Writes findings and outcomes to the host as files, for people (HTML, Markdown, CSV) and for
    programs (Prometheus metrics).
  - Names from the cloud are treated as data. Characters that a terminal or one of these formats
    would interpret are escaped.
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
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
      - At least one of O(run), O(clouds), O(findings), O(remediation), O(hosts), O(guests),
        O(summary), O(results) and O(fail) is required.
    type: path
  run:
    description:
      - The run to report, as M(osops.placement.validate_variables) returns it. Its files are in its
        folder.
      - The report of a run that another task has begun shows it, also if it was killed. It exports
        nothing and sends no notification.
      - With O(failure), the message is only recorded in the folder, for the report that follows.
    type: dict
    version_added: 3.0.0
  clouds:
    description:
      - The inventory hosts of the play, for each of which the role has run. Their results are added
        up in C(summary.json) in O(output_dir) and shown.
      - The task fails if one of the runs has failed.
    type: list
    elements: str
    version_added: 3.0.0
  fail_on:
    description:
      - What counts as a failure of O(run), as in the role's variable C(orphan_cleanup_fail_on).
    type: str
    choices:
      - never
      - error
      - partial
      - undecided
      - findings
    default: error
    version_added: 3.0.0
  kinds:
    description:
      - The kinds of findings that may be changed. The report says of other kinds that they are left
        alone.
      - Without this option, all kinds may be changed.
    type: list
    elements: str
  complaints:
    description:
      - Complaints from the logs of one or many hosts, as M(osops.placement.nova_log_info) returns
        them in RV(osops.placement.nova_log_info#module:records). It is a list, or the path of a
        JSON file with such a list or with the whole result.
      - The report shows a complaint with the finding that explains it, and complaints without such
        a finding after all findings.
      - It requires O(findings).
    type: raw
  plan:
    description:
      - Path of the plan that M(osops.placement.orphan_plan) wrote. It is used in the files only.
      - If the plan was made of other findings than O(findings), no file is written.
      - It requires O(findings).
    type: path
  remediation:
    description:
      - Path of the file C(remediation.json) that M(osops.placement.orphan_remediate) or
        M(osops.placement.orphan_restore) wrote.
    type: path
  hosts:
    description:
      - Path of the file that M(osops.placement.compute_host_info) wrote.
    type: path
  guests:
    description:
      - Path of the file that M(osops.placement.hypervisor_guest_detect) wrote.
    type: path
  summary:
    description:
      - Path of the file that this module wrote for O(clouds).
    type: path
    version_added: 2.0.0
  journal:
    description:
      - Path of the journal that the reports name.
    type: path
  failure:
    description:
      - The message that the run failed with. Empty if the run did not fail.
    type: str
    default: ""
  fail:
    description:
      - Whether the task fails with O(failure), or with what O(run) has to fail with, after
        everything was shown and written. A failed task exports nothing, so a run needs a task with
        O(terminal=false) before the one that fails.
    type: bool
    version_added: 2.0.0
  results:
    description:
      - What a play did, to be shown one line each, failures first.
      - Each has an C(outcome) such as V(failed), the name or UUID of its C(subject), and a sentence
        as its C(reason).
      - With the path of a C(journal), the journal and the command that restores what it records
        are shown after all results.
    type: list
    elements: dict
    version_added: 2.0.0
  undo:
    description:
      - A module of this collection that undoes a change, shown as a command to type after
        O(results). Nothing is shown in a job of AWX.
    type: dict
    suboptions:
      host:
        description: The name of the inventory host.
        type: str
        required: true
      module:
        description: The name of the module, without the collection.
        type: str
        required: true
      arguments:
        description: The arguments of the module.
        type: dict
        required: true
      become:
        description: Whether the module runs as root.
        type: bool
        default: false
      others:
        description: How many more changes the same module undoes with other arguments.
        type: int
        default: 0
    version_added: 2.0.0
  next:
    description:
      - A playbook of this collection to run next, shown as a command to type at the end.
      - Nothing is shown in a job of AWX, and if the run was not started with this playbook.
      - Inventories and C(--limit) are repeated, as the user gave them. Other extra variables are
        not, because they can be secret.
    type: dict
    suboptions:
      playbook:
        description: The name of the playbook, without the collection.
        type: str
        required: true
      variables:
        description: The extra variables.
        type: dict
        default: {}
      check:
        description: Whether to run it with C(--check).
        type: bool
        default: false
    version_added: 2.0.0
  terminal:
    description:
      - Whether to draw on the terminal. Colors follow Ansible's own settings.
    type: bool
    default: true
  formats:
    description:
      - The formats in which to write O(findings), with O(plan), O(remediation), O(journal) and
        O(failure). None by default. The files are written in check mode too.
      - V(json) is the file O(findings) itself, and nothing is written for it.
      - The files are C(report.html), C(report.md), C(findings.csv) and
        C(placement_orphans.prom), with mode 0600.
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
      - It requires O(findings) or O(clouds), and every format except V(json) requires it, unless
        O(metrics_path) replaces it. A O(run) has a folder of its own.
    type: path
  metrics_path:
    description:
      - Path of the file of O(formats=prometheus), instead of a file in O(output_dir). The file gets
        mode 0644. For node_exporter, use a path in the folder of its textfile collector that ends
        with C(.prom).
      - The time of the last success is copied from the existing file if this run was not a success.
      - It requires O(findings) or O(run).
    type: path
  notify_url:
    description:
      - The address of a webhook. A notification is sent to it if a finding is new or something
        failed. No notification is sent by default.
      - Names from the cloud cannot contain markup, links or mentions there.
    type: str
    default: ""
    version_added: 3.0.0
  notify_format:
    description:
      - V(json) is data for any program, with at most 20 new findings.
      - V(text) is one text under the key C(text), as the incoming webhooks of Slack, Mattermost and
        Microsoft Teams take it.
    type: str
    choices:
      - json
      - text
    default: json
    version_added: 3.0.0
  notify_required:
    description:
      - Whether a notification that cannot be delivered is a failure. By default, it only warns.
    type: bool
    default: false
    version_added: 3.0.0
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
- name: Show the findings
  osops.placement.orphan_report:
    findings: /var/lib/placement/findings.json

- name: Write reports for a merge request and for node_exporter, and draw nothing
  osops.placement.orphan_report:
    findings: /var/lib/placement/findings.json
    terminal: false
    formats:
      - markdown
      - prometheus
    output_dir: /var/lib/placement
    metrics_path: /var/lib/prometheus/node-exporter/placement_orphans.prom

- name: Send a notification about new findings to a chat
  osops.placement.orphan_report:
    findings: /var/lib/placement/findings.json
    terminal: false
    notify_url: "{{ vault_webhook }}"
    notify_format: text

- name: Read the log of nova-compute, in a play over the hypervisors
  osops.placement.nova_log_info:
    since: 7d
  become: true
  register: log

- name: Show the complaints of all hypervisors with the findings, in the same play
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
  returned: when there are findings and the plan, if there is one, was made of them
  type: dict
  sample:
    markdown: /var/lib/placement/report.md
failure:
  description: What the run has to fail with, empty if it does not fail.
  returned: with O(run)
  type: str
  sample: 2 consumers are undecided, see /var/lib/placement/findings.json.
  version_added: 3.0.0
outcome:
  description: What the run came to. It is V(clean), V(findings), V(undecided), V(partial),
    V(unsound), V(applied) or V(failed).
  returned: with O(run)
  type: str
  sample: findings
  version_added: 3.0.0
"""
