# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Allocation documents: the bodies that `PUT /allocations/{consumer}` takes, with the consumer's generation in them."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._model import Allocation, Change

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Set as AbstractSet


def document(allocation: Allocation) -> dict[str, t.Any]:
    """Return the body that would write `allocation`: its generation guards it, and an untyped consumer has no type in it."""
    body: dict[str, t.Any] = {
        "allocations": {provider: {"resources": dict(sorted(share.items()))} for provider, share in sorted(allocation.resources.items())},
        "consumer_generation": allocation.generation,
        "project_id": allocation.project,
        "user_id": allocation.user,
    }
    return body if allocation.type is None else {**body, "consumer_type": allocation.type}


def change_to(allocation: Allocation, dropped: AbstractSet[str]) -> Change:
    """Return the change that takes the `dropped` providers from `allocation` and leaves every other share as it is."""
    kept = {provider: share for provider, share in allocation.resources.items() if provider not in dropped}
    if allocation.generation is None:
        raise ValueError(f"{allocation.consumer} holds nothing that could be changed")
    return Change(
        consumer=allocation.consumer,
        generation=allocation.generation,
        before=document(allocation),
        after=document(d.replace(allocation, resources=kept)),
    )
