# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user asks of the judge: the options that `doc_fragments/_policy.py` documents, and what they mean."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._collector.exclusions import exclusions
from ansible_collections.osops.placement.plugins.module_utils._common.clock import now
from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.times import seconds
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import canonical, required
from ansible_collections.osops.placement.plugins.module_utils._models.policy import ALLOCATORS, Policy

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.osops.placement.plugins.module_utils._collector.exclusions import Exclusion
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Cloud


def policy_options() -> dict[str, dict[str, t.Any]]:
    return {
        "min_age": {"type": "str", "default": "1h"},
        "forgotten_min_age": {"type": "str", "default": "24h"},
        "parked_min_age": {"type": "str", "default": "7d"},
        "stuck_min_age": {"type": "str", "default": "24h"},
        "stale_min_age": {"type": "str", "default": "7d"},
        "exclude_consumers": {"type": "list", "elements": "raw", "default": []},
        "exclude_providers": {"type": "list", "elements": "raw", "default": []},
        "ignore_allocators": {"type": "list", "elements": "str", "default": []},
    }


def policy(options: Mapping[str, t.Any], at: str | None = None) -> Policy:
    """Return the policy that the options describe, some of them or all. Raises InvalidInput for what is no duration, date or UUID.

    at: the time by which exclusions have ended or not; None for now.
    """
    at = at or now()
    options = {**{name: option["default"] for name, option in policy_options().items()}, **options}
    consumers = [
        d.replace(known, name=required(known.name, "exclude_consumers:"))
        for known in exclusions(options["exclude_consumers"], "exclude_consumers")
    ]
    providers = [
        d.replace(known, name=canonical(known.name) or known.name)
        for known in exclusions(options["exclude_providers"], "exclude_providers")
    ]
    valid = [known for known in (*consumers, *providers) if not known.ended(at)]
    return Policy(
        min_age=seconds(options["min_age"]),
        forgotten_min_age=seconds(options["forgotten_min_age"]),
        parked_min_age=seconds(options["parked_min_age"]),
        stuck_min_age=seconds(options["stuck_min_age"]),
        stale_min_age=seconds(options["stale_min_age"]),
        exclude_consumers=_names(consumers, at),
        exclude_providers=_names(providers, at),
        ignore_allocators=_allocators(options["ignore_allocators"]),
        exclusion_notes={known.name: known.note for known in valid if known.note},
        ended_exclusions=(*_ended("exclude_consumers", consumers, at), *_ended("exclude_providers", providers, at)),
    )


def _allocators(told: Iterable[str]) -> frozenset[str]:
    listed = list(told)
    if unknown := sorted(set(listed) - set(ALLOCATORS)):
        raise InvalidInput(
            f"ignore_allocators: {unknown[0]!r} is not the type of a service that is known to allocate from Placement. "
            f"Known are {', '.join(sorted(ALLOCATORS))}."
        )
    return frozenset(ALLOCATORS[name] for name in listed)


def _names(told: Iterable[Exclusion], at: str) -> frozenset[str]:
    return frozenset(known.name for known in told if not known.ended(at))


def _ended(option: str, told: Iterable[Exclusion], at: str) -> list[str]:
    """Return a sentence for each exclusion that has ended, unless another one of the same name has not."""
    listed = list(told)
    names = _names(listed, at)
    return [
        f"{option}: {known.name} is excluded no longer, its exclusion ended with {known.until}."
        for known in listed
        if known.ended(at) and known.name not in names
    ]


def idle_allocators(spare: Policy, cloud: Cloud) -> list[str]:
    """Return the services that are to be ignored and that the catalogue does not have."""
    return sorted(spare.ignore_allocators - set(cloud.allocators))


def unknown_exclusions(spare: Policy, providers: Iterable[Provider]) -> list[str]:
    """Return the excluded providers that Placement does not have: misspelt perhaps, and then not excluded at all."""
    known = {identity for provider in providers for identity in (provider.uuid, provider.name)}
    return sorted(spare.exclude_providers - known)


def warn_of_ended(module: AnsibleModule, spare: Policy) -> None:
    """Say which exclusions have ended. Ansible shows the same warning of several tasks once."""
    for sentence in spare.ended_exclusions:
        module.warn(sentence)
