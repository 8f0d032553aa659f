# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reading leaves for the next one, so that only what changed has to be read again.

A memory chooses what is looked up. It proves nothing: whatever it says, each consumer is judged by
direct answers of the same run.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ..._common.errors import InvalidInput
from .placement import Allocations

MEMORY_FORMAT = 1

_TEXTS = ("source", "full_at", "read_at", "changes_since")


@d.dataclass(frozen=True)
class RememberedNode:
    """A compute node, with the number of its servers."""

    uuid: str
    host: str
    name: str
    servers: int


@d.dataclass(frozen=True)
class Memory:
    """What one reading found, as far as the next one needs it.

    source: the cloud and the part of it: endpoints, region and scope. Of another source a memory
        says nothing.
    full_at: when the last full reading began, in UTC.
    read_at: when this reading began, by Nova's clock.
    changes_since: from when on the next reading lists changes of servers and of migrations, by
        Nova's clock. Each change is listed by two readings: Nova leaves a cell that does not answer
        for a moment out of such a listing, and says nothing of it.
    generations: by uuid of the provider, the generation under which its allocations were read.
    allocations: by consumer.
    hosts: the hosts with a nova-compute service.
    watched: the consumers with a finding; they are looked up again in every run.
    has_open_migrations: whether a migration had not ended.
    """

    source: str
    full_at: str
    read_at: str
    changes_since: str
    generations: Mapping[str, int]
    allocations: Mapping[str, Allocations]
    hosts: frozenset[str]
    nodes: tuple[RememberedNode, ...]
    watched: frozenset[str]
    has_open_migrations: bool


def encode_memory(memory: Memory) -> dict[str, t.Any]:
    """Return a memory as JSON's types.

    Each uuid and each set of amounts is written once, and a number stands for it everywhere else:
    100 000 consumers take about 7 MB.
    """
    # A JSON file keeps the order of a list, and not that of an object.
    providers = sorted(memory.generations)
    provider_numbers = {uuid: number for number, uuid in enumerate(providers)}
    amount_numbers: dict[tuple[tuple[str, int], ...], int] = {}
    rows = []
    for allocations in memory.allocations.values():
        row: list[int] = []
        for provider, resources in allocations.items():
            amounts = tuple(sorted(resources.items()))
            row.append(provider_numbers[provider])
            row.append(amount_numbers.setdefault(amounts, len(amount_numbers)))
        rows.append(row)
    return {
        "format": MEMORY_FORMAT,
        **{key: getattr(memory, key) for key in _TEXTS},
        "providers": providers,
        "generations": [memory.generations[uuid] for uuid in providers],
        "amounts": [dict(amounts) for amounts in amount_numbers],
        "consumers": list(memory.allocations),
        "allocations": rows,
        "hosts": sorted(memory.hosts),
        "nodes": [d.astuple(node) for node in memory.nodes],
        "watched": sorted(memory.watched),
        "has_open_migrations": memory.has_open_migrations,
    }


def decode_memory(contents: t.Any) -> Memory:
    """Return the memory of which `encode_memory` made `contents`.

    Raises InvalidInput with the reason in one sentence for anything else.
    """
    try:
        if contents["format"] != MEMORY_FORMAT:
            raise InvalidInput(
                f"It has format {contents['format']}, and this version reads format "
                f"{MEMORY_FORMAT}."
            )
        return _decode(contents)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput("It is not complete: it was edited or cut short.") from error


def _decode(contents: t.Any) -> Memory:
    texts = {key: contents[key] for key in _TEXTS}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("the source or a time is not a text")
    providers, amounts = contents["providers"], contents["amounts"]
    allocations: dict[str, Allocations] = {}
    for consumer, row in zip(contents["consumers"], contents["allocations"], strict=True):
        pairs = zip(row[::2], row[1::2], strict=True)
        allocations[consumer] = {providers[provider]: amounts[used] for provider, used in pairs}
    return Memory(
        **texts,
        generations=dict(zip(providers, contents["generations"], strict=True)),
        allocations=allocations,
        hosts=frozenset(contents["hosts"]),
        nodes=tuple(RememberedNode(*fields) for fields in contents["nodes"]),
        watched=frozenset(contents["watched"]),
        has_open_migrations=contents["has_open_migrations"] is not False,
    )
