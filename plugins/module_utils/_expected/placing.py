# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Where the resources of a request can be in the tree of a host. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
        AmountRule,
        HostTree,
        MissingInput,
        ResourceRequest,
    )


@d.dataclass(frozen=True)
class Expectation:
    """What a server should have, compared with what it has.

    matches: whether `present` is what one of the requests can have got; None where that cannot be
        known.
    allocations: the one allocation that the server should have; None where there is not exactly
        one, or where it cannot be known.
    why: why `matches` or `allocations` is None, as a part of a sentence; empty if neither is.
    rules: where each amount comes from.
    missing: what would have to be read to know more.
    """

    matches: bool | None
    allocations: Allocations | None
    why: str
    rules: tuple[AmountRule, ...]
    missing: tuple[MissingInput, ...]


def compare(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Allocations
) -> Expectation:
    """Compare what a server has with what Nova would have allocated on this host.

    present: all allocations of the server. What of it can be right is kept: the expected
        allocations differ from it as little as possible, and are certain only if no other
        placement of the requests differs as little or less.
    """
    raise NotImplementedError
