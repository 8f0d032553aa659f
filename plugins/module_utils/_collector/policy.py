# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user asks of the judge: the options that `doc_fragments/_policy.py` documents, and what
they mean.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._collector.exclusions import (
    parse_exclusions,
)
from ansible_collections.osops.placement.plugins.module_utils._common.clock import get_utc_now
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import parse_duration
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import (
    normalize_uuid,
    require_uuid,
)
from ansible_collections.osops.placement.plugins.module_utils._models.policy import (
    ALLOCATORS,
    Policy,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.osops.placement.plugins.module_utils._collector.exclusions import (
        Exclusion,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Cloud


def policy_options() -> dict[str, dict[str, t.Any]]:
    return {
        "min_age": {"type": "str", "default": "1h"},
        "unknown_min_age": {"type": "str", "default": "24h"},
        "unconfirmed_min_age": {"type": "str", "default": "7d"},
        "stuck_min_age": {"type": "str", "default": "24h"},
        "stale_min_age": {"type": "str", "default": "7d"},
        "exclude_consumers": {"type": "list", "elements": "raw", "default": []},
        "exclude_providers": {"type": "list", "elements": "raw", "default": []},
        "ignore_allocators": {"type": "list", "elements": "str", "default": []},
    }


def parse_policy(options: Mapping[str, t.Any], at: str | None = None) -> Policy:
    """Return the policy that the options describe, some of them or all. Raises InvalidInput for
    what is no duration, date or UUID.

    at: the time by which exclusions have ended or not; None for now.
    """
    at = at or get_utc_now()
    options = {**{name: option["default"] for name, option in policy_options().items()}, **options}
    consumers = [
        d.replace(known, name=require_uuid(known.name, "exclude_consumers:"))
        for known in parse_exclusions(options["exclude_consumers"], "exclude_consumers")
    ]
    providers = [
        d.replace(known, name=normalize_uuid(known.name) or known.name)
        for known in parse_exclusions(options["exclude_providers"], "exclude_providers")
    ]
    valid = [known for known in (*consumers, *providers) if not known.has_ended(at)]
    return Policy(
        min_age=parse_duration(options["min_age"]),
        unknown_min_age=parse_duration(options["unknown_min_age"]),
        unconfirmed_min_age=parse_duration(options["unconfirmed_min_age"]),
        stuck_min_age=parse_duration(options["stuck_min_age"]),
        stale_min_age=parse_duration(options["stale_min_age"]),
        exclude_consumers=_list_active_names(consumers, at),
        exclude_providers=_list_active_names(providers, at),
        ignore_allocators=_parse_allocators(options["ignore_allocators"]),
        exclusion_notes={known.name: known.note for known in valid if known.note},
        ended_exclusions=(
            *_describe_ended_exclusions("exclude_consumers", consumers, at),
            *_describe_ended_exclusions("exclude_providers", providers, at),
        ),
    )


def _parse_allocators(service_types: Iterable[str]) -> frozenset[str]:
    listed = list(service_types)
    if unknown := sorted(set(listed) - set(ALLOCATORS)):
        raise InvalidInput(
            f"ignore_allocators: {unknown[0]!r} is not the type of a service that is known to "
            "allocate from Placement. "
            f"Known are {', '.join(sorted(ALLOCATORS))}."
        )
    return frozenset(ALLOCATORS[name] for name in listed)


def _list_active_names(entries: Iterable[Exclusion], at: str) -> frozenset[str]:
    return frozenset(known.name for known in entries if not known.has_ended(at))


def _describe_ended_exclusions(option: str, entries: Iterable[Exclusion], at: str) -> list[str]:
    """Return a sentence for each exclusion that has ended, unless another one of the same name has
    not.
    """
    listed = list(entries)
    names = _list_active_names(listed, at)
    return [
        f"{option}: {known.name} is excluded no longer, its exclusion ended with {known.until}."
        for known in listed
        if known.has_ended(at) and known.name not in names
    ]


def find_absent_allocators(policy: Policy, cloud: Cloud) -> list[str]:
    """Return the services that are to be ignored and that the catalogue does not have."""
    return sorted(policy.ignore_allocators - set(cloud.allocators))


def find_unknown_exclusions(policy: Policy, providers: Iterable[Provider]) -> list[str]:
    """Return the excluded providers that Placement does not have: misspelt perhaps, and then not
    excluded at all.
    """
    known = {identity for provider in providers for identity in (provider.uuid, provider.name)}
    return sorted(policy.exclude_providers - known)


def warn_ended_exclusions(module: AnsibleModule, policy: Policy) -> None:
    """Say which exclusions have ended. Ansible shows the same warning of several tasks once."""
    for sentence in policy.ended_exclusions:
        module.warn(sentence)
