"""What Placement really has, read from its database, and how it is set back."""

from __future__ import annotations

import contextlib
import dataclasses as d
import sqlite3
import typing as t

from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

_ALLOCATIONS = """
SELECT c.uuid AS consumer, p.external_id AS project, u.external_id AS user,
       t.name AS type, c.generation AS generation, r.uuid AS provider,
       k.name AS class, a.used AS used
FROM consumers c
JOIN projects p ON p.id = c.project_id
JOIN users u ON u.id = c.user_id
LEFT JOIN consumer_types t ON t.id = c.consumer_type_id
JOIN allocations a ON a.consumer_id = c.uuid
JOIN resource_providers r ON r.id = a.resource_provider_id
JOIN resource_classes k ON k.id = a.resource_class_id
"""


@d.dataclass(frozen=True)
class Held:
    """What one consumer has; `amounts` are (provider, resource class, amount), in order."""

    amounts: tuple[tuple[str, str, int], ...]
    project: str
    user: str
    type: str
    generation: int

    @property
    def content(self) -> Held:
        """All of it but the generation, which says only that somebody wrote."""
        return d.replace(self, generation=0)


State = dict[str, Held]


def read_state(paths: Paths) -> State:
    """Return the allocations of every consumer."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    owners: dict[str, tuple[str, str, str, int]] = {}
    location = f"file:{paths.database('placement')}?mode=ro"
    with contextlib.closing(sqlite3.connect(location, uri=True, timeout=30)) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute(_ALLOCATIONS):
            found.setdefault(row["consumer"], []).append(
                (row["provider"], row["class"], row["used"])
            )
            owners[row["consumer"]] = (
                row["project"],
                row["user"],
                row["type"] or "",
                row["generation"],
            )
    return {
        consumer: Held(tuple(sorted(amounts)), *owners[consumer])
        for consumer, amounts in found.items()
    }


def read_providers(paths: Paths) -> set[str]:
    """Return the uuids of all providers."""
    location = f"file:{paths.database('placement')}?mode=ro"
    with contextlib.closing(sqlite3.connect(location, uri=True, timeout=30)) as connection:
        return {row[0] for row in connection.execute("SELECT uuid FROM resource_providers")}


def list_differences(before: State, now: State) -> set[str]:
    """Return the consumers that do not have the same, apart from the generation."""
    return {
        consumer
        for consumer in before.keys() | now.keys()
        if _get_content(before, consumer) != _get_content(now, consumer)
    }


def _get_content(state: State, consumer: str) -> Held | None:
    held = state.get(consumer)
    return held.content if held else None


def set_back(cloud: Cloud, wanted: State, now: State) -> None:
    """Give every consumer what it is wanted to have."""
    by_version: dict[str, dict[str, t.Any]] = {"1.28": {}, "1.38": {}}
    for consumer in sorted(list_differences(wanted, now)):
        target, present = wanted.get(consumer), now.get(consumer)
        owner = target or present
        assert owner is not None
        allocations: dict[str, dict[str, dict[str, int]]] = {}
        for provider, resource_class, used in target.amounts if target else ():
            resources = allocations.setdefault(provider, {"resources": {}})["resources"]
            resources[resource_class] = used
        document: dict[str, t.Any] = {
            "allocations": allocations,
            "project_id": owner.project,
            "user_id": owner.user,
            "consumer_generation": present.generation if present else None,
        }
        version = "1.28"
        if target and target.type and (present is None or present.type != target.type):
            version = "1.38"
            document["consumer_type"] = target.type
        by_version[version][consumer] = document
    for version, documents in by_version.items():
        for consumer, document in documents.items():
            answer = cloud.placement_call("PUT", f"/allocations/{consumer}", document, version)
            if not answer.ok:
                raise MinicloudError(f"{consumer} cannot be set back: {answer.body}")
