# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!
"""From findings to the changes that a run may make, and the limits that it must keep. Pure."""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import GateClosed, InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import canonical
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Shard
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, TreeStep, count_told, sorted_steps

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._plan.limits import Limits

# What gives capacity back comes before what takes it.
_ORDER = ("remove", "reduce", "rewrite", "create")

# What Nova itself can put right, also where the right claim cannot be told from here.
HEALED = "missing_allocation"


class OfCloud(t.Protocol):
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
    def of(cls, findings: t.Any, kinds: Collection[str], approved: bool = False) -> Plan:
        """Plan the selected findings of the chosen `kinds`, but for those that have not been seen often enough.

        approved: whether a plan of them was reviewed; they had been seen often enough when it was made.

        Raises GateClosed when the reading behind the findings was not sound, InvalidInput when they are not of our making.
        """
        with _detected(findings):
            chosen = [entry for entry in _selected(findings, kinds, approved) if entry["change"]]
            steps, removals = sorted_steps((entry["id"], entry["kind"], entry["change"]) for entry in chosen)
            return cls(
                placement_endpoint=findings["cloud"]["placement_endpoint"],
                region=findings["cloud"]["region"],
                detected_at=findings["finished_at"],
                consumers=_consumers(findings),
                steps=_checked(sorted(steps, key=lambda step: (_ORDER.index(step.change.action), step.change.consumer))),
                removals=removals,
                shard=_shard_told(findings["scope"]["shard"]),
            )

    @classmethod
    def read(cls, told: t.Any) -> Plan:
        """Return the plan that `as_dict` wrote. Raises InvalidInput for anything else, also if only one change of it is not right."""
        if is_compact(told):
            raise InvalidInput("The plan is a compact one, without its documents: give it to orphan_plan, with findings of its consumers.")
        _check_format(told, "plan", "orphan_plan")
        try:
            steps, removals = sorted_steps(
                (entry["finding"], entry["kind"], _without(entry, "finding", "kind")) for entry in told["changes"]
            )
            plan = cls(
                placement_endpoint=told["placement_endpoint"],
                region=told["region"],
                detected_at=told["detected_at"],
                consumers=None if told["consumers"] is None else count_told(told["consumers"]),
                steps=_checked(steps),
                removals=removals,
                shard=_shard_told(told["shard"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The plan is not as orphan_plan writes it ({_spelled(error)}): plan again.") from error
        return plan

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "format": FORMAT,
            "placement_endpoint": self.placement_endpoint,
            "region": self.region,
            "detected_at": self.detected_at,
            "consumers": self.consumers,
            "shard": d.asdict(self.shard) if self.shard else None,
            "changes": [*(step.as_dict() for step in self.steps), *(step.as_dict() for step in self.removals)],
        }

    def check(self, limits: Limits) -> None:
        """Raise BreakerTripped when there are more changes than one run may make, or more than it may make of the consumers read."""
        limits.keep(len(self.steps) + len(self.removals), self.consumers, self.shard)


def is_compact(told: t.Any) -> t.TypeGuard[Mapping[str, t.Any]]:
    """Tell whether `told` is a plan without its documents, or passes for one."""
    return isinstance(told, dict) and bool(told.get("compact"))


def check_cloud(planned: OfCloud, here: OfCloud) -> None:
    """Raise InvalidInput when a plan is for another cloud than that which is `here`."""
    for what in ("placement_endpoint", "region"):
        if getattr(planned, what) != getattr(here, what):
            raise InvalidInput(f"The plan is for another cloud: {what} is {getattr(planned, what)} there and {getattr(here, what)} here.")


def to_heal(findings: t.Any, limits: Limits) -> list[str]:
    """Return the servers that Nova is to give their claim: the selected ones that miss it and do not wait, whether or not it can be told from here.

    Raises GateClosed and InvalidInput as `Plan.of` does, and BreakerTripped as `Plan.check` does.
    """
    with _detected(findings):
        servers = sorted(entry["consumer"] for entry in _selected(findings, [HEALED]))
        consumers, shard = _consumers(findings), _shard_told(findings["scope"]["shard"])
        if wrong := [server for server in servers if canonical(server) != server]:
            raise InvalidInput(f"The findings name the server {wrong[0]!r}, which is no UUID.")
    limits.keep(len(servers), consumers, shard)
    return servers


def _shard_told(told: t.Any) -> Shard | None:
    if told is None:
        return None
    number, count = count_told(told["number"]), count_told(told["count"])
    if not 1 <= number <= count:
        raise InvalidInput(f"There is no shard {number} of {count}.")
    return Shard(number, count)


@contextlib.contextmanager
def _detected(findings: t.Any) -> Iterator[None]:
    """Raise GateClosed when the reading behind the findings was not sound, and InvalidInput when they are not of our making."""
    _check_format(findings, "findings", "orphan_detect")
    try:
        if closed := findings["summary"]["coverage"]["closed_gates"]:
            raise GateClosed(f"Nothing may be changed after this reading. {' '.join(closed)}")
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The findings are not as orphan_detect writes them ({_spelled(error)}): detect again.") from error


def _selected(findings: t.Any, kinds: Collection[str], approved: bool = False) -> list[t.Any]:
    chosen = [entry for entry in findings["findings"] if entry["kind"] in kinds and entry["selected"]]
    # Those that version 1.0 wrote do not wait.
    return [entry for entry in chosen if approved or not entry.get("waiting")]


def _consumers(findings: t.Any) -> int | None:
    """Return how many consumers were read, None after a reading of named hosts or consumers."""
    if findings["scope"]["hosts"] or findings["scope"]["consumers"]:
        return None
    # A triage reads few of the consumers; of how many they are, the hosts' own figures tell enough.
    return count_told(findings["summary"]["coverage"]["servers" if findings["scope"]["mode"] == "triage" else "consumers"])


def _check_format(told: t.Any, what: str, writer: str) -> None:
    if not isinstance(told, dict) or "format" not in told:
        raise InvalidInput(f"The {what} given is not as {writer} writes it: it has no format.")
    if told["format"] != FORMAT:
        raise InvalidInput(f"The {what} given has format {told['format']!r} and this version of the collection reads format {FORMAT}.")


def _checked(steps: list[Step]) -> tuple[Step, ...]:
    counts = collections.Counter(part.consumer for step in steps for part in step.change.parts)
    if twice := sorted(consumer for consumer, count in counts.items() if count > 1):
        raise InvalidInput(f"Consumer {twice[0]} is changed twice in one plan.")
    return tuple(steps)


def _without(entry: Mapping[str, t.Any], *names: str) -> dict[str, t.Any]:
    return {key: value for key, value in entry.items() if key not in names}


def _spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
