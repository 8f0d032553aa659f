"""This machine as a host that Ansible does not know to be the controller."""

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
