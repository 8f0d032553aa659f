# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The resource requests that Nova may have made for a server. Pure."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
        ResourceRequest,
        ServerInputs,
    )


def build_requests(inputs: ServerInputs) -> tuple[ResourceRequest, ...]:
    """Return the resource requests that Nova may have made for a server, the usual one first.

    There are two for a server with pinned CPUs: Nova requests VCPU instead of PCPU from hosts that
    have no PCPU (nova/scheduler/manager.py, select_destinations).
    """
    raise NotImplementedError
