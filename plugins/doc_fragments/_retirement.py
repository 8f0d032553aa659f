# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options by which it is judged whether a host can be decommissioned."""

    DOCUMENTATION = r"""
options:
  ignore_other_regions:
    description:
      - Whether former providers of a host are to be deleted although other regions have a Nova of
        their own on the same Placement. Otherwise these are blockers.
      - Only one Nova is asked for its compute nodes. Before you set this option, make sure that no
        compute node of the other Nova is behind these providers.
    type: bool
    default: false
    version_added: 3.0.0
  delete_agents:
    description:
      - Whether the network agents of the host are deleted with it in Neutron. Set it to V(false) if
        the host stays a network node.
    type: bool
    default: true
    version_added: 2.0.0
  delete_running_agents:
    description:
      - Whether that includes the network agents that are alive. By default, these block the
        deletion, because a running agent registers itself again.
      - An agent that still serves a network or a router, or under which a port is still in use, is
        never deleted.
    type: bool
    default: false
    version_added: 2.0.0
  allow_empty_zone:
    description:
      - Whether an availability zone may be left without a host. By default, its last host is
        blocked.
    type: bool
    default: false
    version_added: 2.0.0
  kinds:
    description:
      - The kinds of findings that count as left over, see
        O(osops.placement.orphan_plan#module:kinds). Findings of other kinds are blockers.
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
    default:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unreverted_allocation
  disabled_reasons:
    description:
      - The reasons with which earlier tasks disable a compute service. The record of a service that
        is disabled for one of these has its state of an earlier record.
    type: list
    elements: str
    default: []
    version_added: 3.0.0
"""
