# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options by which it is judged whether hosts can go, and the file with what they had."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Mapping, Sequence

from .._common.folders import require_private_file
from .._common.json_files import read_json, write_json
from .._common.options import List
from .._core.clients.session import CloudContext, Session
from .._core.findings.entries import FORMAT
from .._core.options.policy import parse_policy, warn_ended_exclusions
from .host_decommission import DeletionOptions, HostDecommissionOptions
from .host_info import HostReader
from .parts import PartPolicy


class RetirementOptions(DeletionOptions):
    kinds = List(
        HostDecommissionOptions.remediate_kinds.default,
        choices=HostDecommissionOptions.remediate_kinds.choices,
    )
    """
    The kinds of findings that count as left over, see O(osops.placement.orphan_plan#module:kinds).
    Findings of other kinds are blockers.
    """

    disabled_reasons = List()
    """
    The reasons with which earlier tasks disable a compute service. The record of a service that is
    disabled for one of these has its state of an earlier record.

    Since 3.0.0.
    """

    ignore_other_regions = DeletionOptions.ignore_other_regions
    """
    Whether former providers of a host are to be deleted although other regions have a Nova of their
    own on the same Placement. Otherwise these are blockers.

    Only one Nova is asked for its compute nodes. Before you set this option, make sure that no
    compute node of the other Nova is behind these providers.

    Since 3.0.0.
    """


def parse_part_policy(options: Mapping[str, t.Any]) -> PartPolicy:
    """Return what may happen to the parts of a host."""
    return PartPolicy(
        delete_agents=options["delete_agents"],
        delete_running_agents=options["delete_running_agents"],
        allow_empty_zone=options["allow_empty_zone"],
    )


def make_host_reader(context: CloudContext, session: Session) -> HostReader:
    """Return a reader that judges hosts as the options say."""
    options = context.options
    policy = parse_policy(options)
    warn_ended_exclusions(context, policy)
    part_policy = parse_part_policy(options)
    return HostReader(
        session, policy, options["kinds"], part_policy, options["ignore_other_regions"]
    )


def read_host_file(path: str | None) -> t.Any:
    """Return the contents of a file of an earlier task; None if there is none."""
    if not path or not os.path.exists(path):
        return None
    require_private_file(path)
    return read_json(path)


def write_host_file(path: str, hosts: Sequence[Mapping[str, t.Any]]) -> None:
    """Write hosts with what each had."""
    write_json(path, {"format": FORMAT, "hosts": hosts})
