#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_notification
short_description: Write a notification about a run for a chat or a webhook
version_added: 2.0.0
description:
  - Says what a run of M(osops.placement.orphan_detect) and M(osops.placement.orphan_remediate)
    found and did, as data for a program or as a text for a chat.
  - It does not send the notification. M(ansible.builtin.uri) can send it.
  - Names from the cloud are treated as data. They cannot contain markup, links or mentions.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
  - osops.placement._attributes.read_only
attributes:
  check_mode:
    support: full
    details:
      - This action modifies nothing, and returns the same in check mode.
options:
  format:
    description:
      - V(json) is data for any program.
      - V(text) is one text under the key C(text), as the incoming webhooks of Slack, Mattermost and
        Microsoft Teams take it.
    type: str
    choices:
      - json
      - text
    required: true
  findings:
    description:
      - Path of the file that M(osops.placement.orphan_detect) wrote.
      - Without it the notification is about O(failure) alone, such as a cloud that could not be
        read.
    type: path
  plan:
    description:
      - Path of the plan that M(osops.placement.orphan_plan) wrote.
      - If the plan was made of other findings than O(findings), the notification leaves out
        O(findings).
    type: path
  remediation:
    description:
      - Path of the file C(remediation.json) that M(osops.placement.orphan_remediate) wrote.
      - Without it the notification has no outcomes of changes.
    type: path
  failure:
    description:
      - The message that the run failed with. Empty if the run did not fail.
    type: str
    default: ""
  reports:
    description:
      - Paths of reports, by format. The notification names the first of them.
    type: dict
    default: {}
notes:
  - This is an action plugin. It runs on the controller and reads the files from the host.
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_remediate
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Write a notification about new findings
  osops.placement.orphan_notification:
    format: text
    findings: /var/lib/placement/findings.json
  register: written

- name: Send the notification
  when: written.notable
  ansible.builtin.uri:
    url: "{{ vault_webhook }}"
    method: POST
    body_format: json
    body: "{{ written.notification }}"
"""

RETURN = r"""
notable:
  description: Whether there is a reason to send the notification, which is when a finding is new or
    something failed.
  returned: success
  type: bool
  sample: true
notification:
  description: The JSON document for the webhook. It lists at most 20 new findings.
  returned: success
  type: dict
  sample:
    text: "Orphaned allocations: 1 new finding\n\n- cloud: `http://placement RegionOne`"
"""
