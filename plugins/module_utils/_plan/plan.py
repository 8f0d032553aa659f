# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""From findings to the changes that a run may make, and the limits that it must keep. Pure."""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    InvalidInput,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Shard
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import (
    Step,
    TreeStep,
    parse_count,
    parse_steps,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._plan.limits import Limits

# What gives capacity back comes before what takes it.
_ACTION_ORDER = ("remove", "reduce", "rewrite", "create")

# What Nova itself can put right, also where the right claim cannot be told from here.
HEALED_KIND = "missing_allocation"


class HasCloud(t.Protocol):
    """What names the cloud that it is of."""

    @property
    def placement_endpoint(self) -> str: ...

    @property
    def region(self) -> str | None: ...


@d.dataclass(frozen=True)
class Plan:
    """The changes of one run, in their order, for the cloud whose findings they settle; trees of providers go last.

    consumers: how many were read to find them; None after a reading of named hosts or consumers, for of a dead host everything is
        rightly an orphan.
    shard: the part of the cloud that was read; None for all of it, or for what was named.
    """

    placement_endpoint: str
    region: str | None
    detected_at: str
    consumers: int | None
    steps: tuple[Step, ...]
    removals: tuple[TreeStep, ...] = ()
    shard: Shard | None = None

    @classmethod
    def from_findings(cls, findings: t.Any, kinds: Collection[str], approved: bool = False) -> Plan:
        """Plan the selected findings of the chosen `kinds`, but for those that have not been seen often enough.

        approved: whether a plan of them was reviewed; they had been seen often enough when it was made.

        Raises GateClosed when the reading behind the findings was not sound, InvalidInput when they are not of our making.
        """
        with _validate_findings(findings):
            chosen = [
                entry for entry in _select_entries(findings, kinds, approved) if entry["change"]
            ]
            steps, removals = parse_steps(
                (entry["id"], entry["kind"], entry["change"]) for entry in chosen
            )
            return cls(
                placement_endpoint=findings["cloud"]["placement_endpoint"],
                region=findings["cloud"]["region"],
                detected_at=findings["finished_at"],
                consumers=_count_consumers(findings),
                steps=_check_unique(
                    sorted(
                        steps,
                        key=lambda step: (
                            _ACTION_ORDER.index(step.change.action),
                            step.change.consumer,
                        ),
                    )
                ),
                removals=removals,
                shard=_parse_shard(findings["scope"]["shard"]),
            )

    @classmethod
    def parse(cls, told: t.Any) -> Plan:
        """Return the plan that `as_dict` wrote. Raises InvalidInput for anything else, also if only one change of it is not right."""
        if is_compact(told):
            raise InvalidInput(
                "The plan is a compact one, without its documents: give it to orphan_plan, with findings of its consumers."
            )
        _check_format(told, "plan", "orphan_plan")
        try:
            steps, removals = parse_steps(
                (entry["finding"], entry["kind"], _omit_keys(entry, "finding", "kind"))
                for entry in told["changes"]
            )
            plan = cls(
                placement_endpoint=told["placement_endpoint"],
                region=told["region"],
                detected_at=told["detected_at"],
                consumers=None if told["consumers"] is None else parse_count(told["consumers"]),
                steps=_check_unique(steps),
                removals=removals,
                shard=_parse_shard(told["shard"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"The plan is not as orphan_plan writes it ({_format_error(error)}): plan again."
            ) from error
        return plan

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "format": FORMAT,
            "placement_endpoint": self.placement_endpoint,
            "region": self.region,
            "detected_at": self.detected_at,
            "consumers": self.consumers,
            "shard": d.asdict(self.shard) if self.shard else None,
            "changes": [
                *(step.as_dict() for step in self.steps),
                *(step.as_dict() for step in self.removals),
            ],
        }

    def check_limits(self, limits: Limits) -> None:
        """Raise BreakerTripped when there are more changes than one run may make, or more than it may make of the consumers read."""
        limits.check_count(len(self.steps) + len(self.removals), self.consumers, self.shard)


def is_compact(document: t.Any) -> t.TypeGuard[Mapping[str, t.Any]]:
    """Tell whether `build_body` is a plan without its documents, or passes for one."""
    return isinstance(document, dict) and bool(document.get("compact"))


def check_cloud(planned: HasCloud, here: HasCloud) -> None:
    """Raise InvalidInput when a plan is for another cloud than that which is `here`."""
    for what in ("placement_endpoint", "region"):
        if getattr(planned, what) != getattr(here, what):
            raise InvalidInput(
                f"The plan is for another cloud: {what} is {getattr(planned, what)} there and {getattr(here, what)} here."
            )


def list_servers_to_heal(findings: t.Any, limits: Limits) -> list[str]:
    """Return the servers that Nova is to give their claim: the selected ones that miss it and do not wait, whether or not it can be told from here.

    Raises GateClosed and InvalidInput as `Plan.from_findings` does, and BreakerTripped as `Plan.check_limits` does.
    """
    with _validate_findings(findings):
        servers = sorted(entry["consumer"] for entry in _select_entries(findings, [HEALED_KIND]))
        consumers, shard = _count_consumers(findings), _parse_shard(findings["scope"]["shard"])
        if wrong := [server for server in servers if normalize_uuid(server) != server]:
            raise InvalidInput(f"The findings name the server {wrong[0]!r}, which is no UUID.")
    limits.check_count(len(servers), consumers, shard)
    return servers


def _parse_shard(document: t.Any) -> Shard | None:
    if document is None:
        return None
    number, count = parse_count(document["number"]), parse_count(document["count"])
    if not 1 <= number <= count:
        raise InvalidInput(f"There is no shard {number} of {count}.")
    return Shard(number, count)


@contextlib.contextmanager
def _validate_findings(findings: t.Any) -> Iterator[None]:
    """Raise GateClosed when the reading behind the findings was not sound, and InvalidInput when they are not of our making."""
    _check_format(findings, "findings", "orphan_detect")
    try:
        if closed := findings["summary"]["coverage"]["failed_checks"]:
            raise UnsoundReading(f"Nothing may be changed after this reading. {' '.join(closed)}")
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"The findings are not as orphan_detect writes them ({_format_error(error)}): detect again."
        ) from error


def _select_entries(findings: t.Any, kinds: Collection[str], approved: bool = False) -> list[t.Any]:
    chosen = [
        entry for entry in findings["findings"] if entry["kind"] in kinds and entry["selected"]
    ]
    # Those that version 1.0 wrote do not wait.
    return [entry for entry in chosen if approved or not entry.get("waiting")]


def _count_consumers(findings: t.Any) -> int | None:
    """Return how many consumers were read, None after a reading of named hosts or consumers."""
    if findings["scope"]["hosts"] or findings["scope"]["consumers"]:
        return None
    # A triage reads few of the consumers; of how many they are, the hosts' own figures tell enough.
    return parse_count(
        findings["summary"]["coverage"][
            "servers" if findings["scope"]["mode"] == "triage" else "consumers"
        ]
    )


def _check_format(document: t.Any, what: str, writer: str) -> None:
    if not isinstance(document, dict) or "format" not in document:
        raise InvalidInput(f"The {what} given is not as {writer} writes it: it has no format.")
    if document["format"] != FORMAT:
        raise InvalidInput(
            f"The {what} given has format {document['format']!r} and this version of the collection reads format {FORMAT}."
        )


def _check_unique(steps: list[Step]) -> tuple[Step, ...]:
    counts = collections.Counter(part.consumer for step in steps for part in step.change.parts)
    if twice := sorted(consumer for consumer, count in counts.items() if count > 1):
        raise InvalidInput(f"Consumer {twice[0]} is changed twice in one plan.")
    return tuple(steps)


def _omit_keys(entry: Mapping[str, t.Any], *names: str) -> dict[str, t.Any]:
    return {key: value for key, value in entry.items() if key not in names}


def _format_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
