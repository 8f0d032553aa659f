# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be judged: the options that `doc_fragments/_scope.py` documents, and their meaning."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping

from ..._common.errors import InvalidInput
from ..._common.uuids import normalize_uuid, require_uuid
from ..models.kinds import KINDS, collect_needs
from ..models.snapshot import EVERY_CONSUMER, HostGroups, Scope, Shard

MAX_SHARDS = 256

GROUP_OPTIONS = ("aggregates", "availability_zones", "cells")
_NAMES = ("hosts", "consumers", "projects", *GROUP_OPTIONS)


def scope_options() -> dict[str, dict[str, t.Any]]:
    """Return the options of the scope, as an argument spec."""
    return {
        **{name: {"type": "list", "elements": "str", "default": []} for name in _NAMES},
        "cell_hosts": {"type": "dict", "default": {}},
        "kinds": {
            "type": "list",
            "elements": "str",
            "default": [],
            "choices": [kind.name for kind in KINDS],
        },
        "mode": {
            "type": "str",
            "default": "full",
            "choices": ["full", "incremental"],
        },
        "shard": {"type": "str"},
    }


def parse_scope(options: Mapping[str, t.Any]) -> Scope:
    """Return the scope that the options describe.

    Raises InvalidInput for what is not a UUID or a shard, and for options that exclude each other.
    """
    hosts = {normalize_uuid(name) or name for name in options["hosts"]}
    consumers = {require_uuid(text, "consumers:") for text in options["consumers"]}
    projects = {_parse_project(text) for text in options["projects"]}
    shard = _parse_shard(options["shard"]) if options["shard"] else None
    if options["mode"] == "incremental":
        _reject_incremental(options)
    chosen = Scope(
        hosts=tuple(sorted(hosts)),
        consumers=tuple(sorted(consumers)),
        projects=tuple(sorted(projects)),
        kinds=tuple(options["kinds"]),
        also_kinds=tuple(options.get("also_kinds", ())),
        shard=shard,
        groups=HostGroups(
            **{option: _parse_group_names(options, option) for option in GROUP_OPTIONS}
        ),
    )
    _reject_contradictions(chosen)
    return chosen


def is_needed(request: str, scope: Scope) -> bool:
    """Return whether a kind that is searched, or is to be remediated, needs a request."""
    return request in collect_needs(scope.kinds, scope.also_kinds)


def needs_every_lookup(scope: Scope) -> bool:
    """Return whether each consumer is looked up, even if the listings show it to be in order."""
    return scope.is_narrow or is_needed(EVERY_CONSUMER, scope)


def _parse_group_names(options: Mapping[str, t.Any], option: str) -> tuple[str, ...]:
    """Return the names of groups of hosts, each once and in order."""
    names = set()
    for text in options[option]:
        name = text.strip()
        # An empty name must not become an empty list, which means all hosts.
        if not name:
            raise InvalidInput(f"{option}: a name is empty. Leave out {option} to read all hosts.")
        # Zones have no uuids.
        if option != "availability_zones":
            name = normalize_uuid(name) or name
        names.add(name)
    return tuple(sorted(names))


def _parse_project(text: str) -> str:
    """Return the uuid of a project as Keystone writes it, or its name as the user has written it.

    Keystone takes the spaces at both ends of a name away too.
    """
    stripped = text.strip()
    if not stripped:
        raise InvalidInput("projects: a name is empty. Give the names or UUIDs of projects.")
    uuid = normalize_uuid(stripped)
    if uuid:
        # Keystone writes uuids without dashes.
        return uuid.replace("-", "")
    return stripped


def _reject_incremental(options: Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for named hosts, consumers and groups, which are always read in full."""
    for name in ("hosts", "consumers", *GROUP_OPTIONS):
        if options[name]:
            raise InvalidInput(
                f"mode=incremental is for whole clouds and shards: leave out {name}, or use "
                "mode=full."
            )


def _reject_contradictions(scope: Scope) -> None:
    """Raise InvalidInput for parts of a scope that cannot go together."""
    named = "named hosts and consumers"
    if not scope.groups.is_empty:
        named = "named aggregates, zones and cells"
    if scope.is_limited_to_hosts and scope.shard:
        raise InvalidInput(
            f"shard={scope.shard} is a part of a whole cloud: {named} are not divided into shards."
        )
    if scope.consumers and not scope.groups.is_empty:
        raise InvalidInput(
            "consumers names each consumer by itself, wherever it has its allocations: leave out "
            "aggregates, availability_zones and cells, or consumers."
        )


def _parse_shard(text: str) -> Shard:
    """Return the shard that `text` names, as `2/8`."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text.strip())
    number, count = 0, 0
    if match:
        number, count = map(int, match.groups())
    if not 1 <= number <= count <= MAX_SHARDS:
        raise InvalidInput(
            f"shard={text!r} is not valid: give the number of the shard and how many shards there "
            f"are, such as 2/8 (at most {MAX_SHARDS})."
        )
    return Shard(number, count)
