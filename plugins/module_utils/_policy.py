# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user asks of the judge: the options that `doc_fragments/_policy.py` documents, and what they mean."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clock import seconds
from ansible_collections.osops.placement.plugins.module_utils._model import Policy
from ansible_collections.osops.placement.plugins.module_utils._uuid import canonical, required

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._model import Provider


def policy_options() -> dict[str, dict[str, t.Any]]:
    return {
        "min_age": {"type": "str", "default": "1h"},
        "forgotten_min_age": {"type": "str", "default": "24h"},
        "parked_min_age": {"type": "str", "default": "7d"},
        "stuck_min_age": {"type": "str", "default": "24h"},
        "stale_min_age": {"type": "str", "default": "7d"},
        "exclude_consumers": {"type": "list", "elements": "str", "default": []},
        "exclude_providers": {"type": "list", "elements": "str", "default": []},
    }


def policy(options: Mapping[str, t.Any]) -> Policy:
    """Return the policy that the options describe, some of them or all. Raises InvalidInput for what is no duration or no UUID."""
    options = {**{name: option["default"] for name, option in policy_options().items()}, **options}
    return Policy(
        min_age=seconds(options["min_age"]),
        forgotten_min_age=seconds(options["forgotten_min_age"]),
        parked_min_age=seconds(options["parked_min_age"]),
        stuck_min_age=seconds(options["stuck_min_age"]),
        stale_min_age=seconds(options["stale_min_age"]),
        exclude_consumers=frozenset(required(text, "exclude_consumers:") for text in options["exclude_consumers"]),
        exclude_providers=frozenset(canonical(name) or name for name in options["exclude_providers"]),
    )


def unknown_exclusions(spare: Policy, providers: Iterable[Provider]) -> list[str]:
    """Return the excluded providers that Placement does not have: misspelt perhaps, and then not excluded at all."""
    known = {identity for provider in providers for identity in (provider.uuid, provider.name)}
    return sorted(spare.exclude_providers - known)
