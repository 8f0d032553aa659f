# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""This machine as a host that Ansible does not know to be the controller."""

from __future__ import annotations

from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: elsewhere
short_description: This machine as another host
description: The connection of a host whose files only modules can read and write.
options:
  become_success_timeout:
    type: int
    default: 10
  become_strip_preamble:
    type: bool
    default: true
extends_documentation_fragment:
  - connection_pipelining
"""


class Connection(LocalConnection):
    transport = "elsewhere"
