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
import math
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._change import DELETE_PROVIDERS, Change, ProviderRemoval, child_first
from ansible_collections.osops.placement.plugins.module_utils._errors import BreakerTripped, GateClosed, InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._judge import KINDS, REPORT
from ansible_collections.osops.placement.plugins.module_utils._model import Provider, Shard
from ansible_collections.osops.placement.plugins.module_utils._uuid import canonical

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._model import Cloud

CHANGEABLE = tuple(kind for kind in KINDS if kind.by_default != REPORT)
# Those of them whose change is one of an allocation; that of the others is the deletion of a tree of providers.
OF_CONSUMERS = tuple(kind for kind in CHANGEABLE if kind.prove)

# What gives capacity back comes before what takes it.
_ORDER = ("remove", "reduce", "rewrite", "create")

# What Nova itself can put right, also where the right claim cannot be told from here.
HEALED = "missing_allocation"

# A share of few is no sign of anything: below this many changes only max_changes counts.
_SHARE_COUNTS_ABOVE = 20


@d.dataclass(frozen=True)
class Step:
    """One change of a plan: which finding it settles, and the exact write."""

    finding: str
    kind: str
    change: Change

    @property
    def subject(self) -> str:
        """The consumer that the finding is about."""
        return self.change.consumer

    def as_dict(self) -> dict[str, t.Any]:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


@d.dataclass(frozen=True)
class TreeStep:
    """The deletion of a provider tree that is one step of a plan."""

    finding: str
    kind: str
    change: ProviderRemoval

    @property
    def subject(self) -> str:
        """The root provider that the finding is about."""
        return self.change.providers[-1].uuid

    def as_dict(self) -> dict[str, t.Any]:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


AnyStep = t.TypeVar("AnyStep", Step, TreeStep)


@d.dataclass(frozen=True)
class Limits:
    """How much one run may change; `max_share` is a fraction of all consumers that were read, and not of named ones."""

    max_changes: int
    max_share: float


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
    def of(cls, findings: t.Any, kinds: Collection[str]) -> Plan:
        """Plan the selected findings of the chosen `kinds`.

        Raises GateClosed when the reading behind the findings was not sound, InvalidInput when they are not of our making.
        """
        with _detected(findings):
            chosen = [entry for entry in _selected(findings, kinds) if entry["change"]]
            steps, removals = _sorted((entry["id"], entry["kind"], entry["change"]) for entry in chosen)
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
        if isinstance(told, dict) and told.get("compact"):
            raise InvalidInput("The plan is a compact one, without its documents: give it to orphan_plan, with findings of its consumers.")
        _check_format(told, "plan", "orphan_plan")
        try:
            steps, removals = _sorted((entry["finding"], entry["kind"], _without(entry, "finding", "kind")) for entry in told["changes"])
            plan = cls(
                placement_endpoint=told["placement_endpoint"],
                region=told["region"],
                detected_at=told["detected_at"],
                consumers=None if told["consumers"] is None else _count(told["consumers"]),
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

    def check_cloud(self, cloud: Cloud) -> None:
        """Raise InvalidInput when the plan is for another cloud than `cloud`."""
        for what in ("placement_endpoint", "region"):
            if getattr(self, what) != getattr(cloud, what):
                raise InvalidInput(f"The plan is for another cloud: {what} is {getattr(self, what)} there and {getattr(cloud, what)} here.")

    def check(self, limits: Limits) -> None:
        """Raise BreakerTripped when there are more changes than one run may make, or more than it may make of the consumers read."""
        _keep(limits, len(self.steps) + len(self.removals), self.consumers, self.shard)


def limits_options() -> dict[str, dict[str, t.Any]]:
    """Return the options that `doc_fragments/_limits.py` documents."""
    return {"max_changes": {"type": "int", "default": 100}, "max_share": {"type": "float", "default": 0.1}}


def limits(options: Mapping[str, t.Any]) -> Limits:
    return Limits(options["max_changes"], options["max_share"])


def to_heal(findings: t.Any, limits: Limits) -> list[str]:
    """Return the servers that Nova is to give their claim: the selected ones that miss it, whether or not it can be told from here.

    Raises GateClosed and InvalidInput as `Plan.of` does, and BreakerTripped as `Plan.check` does.
    """
    with _detected(findings):
        servers = sorted(entry["consumer"] for entry in _selected(findings, [HEALED]))
        consumers, shard = _consumers(findings), _shard_told(findings["scope"]["shard"])
        if wrong := [server for server in servers if canonical(server) != server]:
            raise InvalidInput(f"The findings name the server {wrong[0]!r}, which is no UUID.")
    _keep(limits, len(servers), consumers, shard)
    return servers


def _shard_told(told: t.Any) -> Shard | None:
    if told is None:
        return None
    number, count = _count(told["number"]), _count(told["count"])
    if not 1 <= number <= count:
        raise InvalidInput(f"There is no shard {number} of {count}.")
    return Shard(number, count)


def change_told(told: Mapping[str, t.Any]) -> Change:
    """Return the change that `Change.as_dict` told.

    Raises InvalidInput when any of it does not agree with the rest, or what Python raises (KeyError, TypeError, AttributeError) when it
    is not of that shape.
    """
    partner = told["partner"]
    consumer, generation = told["consumer"], told["generation"]
    if canonical(consumer) != consumer:
        raise InvalidInput(f"A change names the consumer {consumer!r}, which is no UUID.")
    for side in ("before", "after"):
        _check_document(f"The document {side} the change of {consumer}", told[side], generation)
    if (generation is None) != (not told["before"]["allocations"]):
        raise InvalidInput(f"The change of {consumer} starts from generation {generation}, which does not go with what it holds before.")
    if partner and (partner["partner"] or partner["consumer"] == consumer):
        raise InvalidInput(f"The partner in the change of {consumer} must be one other consumer, without a partner of its own.")
    change = Change(consumer, generation, told["before"], told["after"], change_told(partner) if partner else None)
    if change.as_dict() != told:
        wrong = sorted(key for key, value in change.as_dict().items() if told.get(key) != value) or sorted(
            set(told) - set(change.as_dict())
        )
        raise InvalidInput(f"The change of {consumer} does not agree with itself: {', '.join(wrong)} must follow from its documents.")
    return change


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


def _selected(findings: t.Any, kinds: Collection[str]) -> list[t.Any]:
    return [entry for entry in findings["findings"] if entry["kind"] in kinds and entry["selected"]]


def _consumers(findings: t.Any) -> int | None:
    """Return how many consumers were read, None after a reading of named hosts or consumers."""
    if findings["scope"]["hosts"] or findings["scope"]["consumers"]:
        return None
    # A triage reads few of the consumers; of how many they are, the hosts' own figures tell enough.
    return _count(findings["summary"]["coverage"]["servers" if findings["scope"]["mode"] == "triage" else "consumers"])


def _keep(limits: Limits, count: int, consumers: int | None, shard: Shard | None) -> None:
    """Raise BreakerTripped when that is more than one run may change."""
    allowed, needed, whose = limits.max_changes, count, ""
    if shard:
        # Of what all shards may change together, the first ones have one more where it cannot be divided.
        allowed = (limits.max_changes + shard.count - shard.number) // shard.count
        needed = max(count - 1, 0) * shard.count + shard.number
        whose = f", of which shard {shard} may make {allowed}"
    if count > allowed:
        raise BreakerTripped(
            f"{count} changes are planned and max_changes is {limits.max_changes}{whose}: nothing was changed. "
            f"Read the findings, and if they are right set max_changes (orphan_cleanup_max_changes, or host_decommission_max_changes for "
            f"a host that is retired) to {needed} or more."
        )
    if consumers is None:
        return
    share = count / max(consumers, 1)
    if count > _SHARE_COUNTS_ABOVE and share > limits.max_share:
        raise BreakerTripped(
            f"{count} of {consumers} consumers would be changed and max_share is {limits.max_share:g}: nothing was changed. "
            f"Read the findings, and if they are right set max_share (orphan_cleanup_max_share) to {math.ceil(share * 1000) / 1000:g} "
            "or more."
        )


def _check_format(told: t.Any, what: str, writer: str) -> None:
    if not isinstance(told, dict) or "format" not in told:
        raise InvalidInput(f"The {what} given is not as {writer} writes it: it has no format.")
    if told["format"] != FORMAT:
        raise InvalidInput(f"The {what} given has format {told['format']!r} and this version of the collection reads format {FORMAT}.")


def _sorted(changes: Iterable[tuple[str, str, Mapping[str, t.Any]]]) -> tuple[list[Step], tuple[TreeStep, ...]]:
    """Return the steps for changes of allocations and those for deletions of trees, from the ids and kinds of findings with their changes."""
    known = list(changes)
    steps = [step_told(finding, kind, told) for finding, kind, told in known if told["action"] != DELETE_PROVIDERS]
    removals = [
        _settling(TreeStep(finding, kind, _removal_told(told)), of_consumers=False)
        for finding, kind, told in known
        if told["action"] == DELETE_PROVIDERS
    ]
    if len({step.subject for step in removals}) < len(removals):
        raise InvalidInput("A provider is deleted twice in one plan.")
    return steps, tuple(sorted(removals, key=lambda step: step.subject))


def step_told(finding: str, kind: str, told: Mapping[str, t.Any]) -> Step:
    """Return the step whose change `Change.as_dict` told. Raises InvalidInput also when it cannot settle the finding."""
    return _settling(Step(finding, kind, change_told(told)), of_consumers=True)


def _settling(step: AnyStep, of_consumers: bool) -> AnyStep:
    kinds = {known.name for known in CHANGEABLE if (known in OF_CONSUMERS) == of_consumers}
    if step.kind not in kinds or step.finding != f"{step.kind}/{step.subject}":
        raise InvalidInput(
            f"The change of {step.subject} is for the finding {step.finding!r} of kind {step.kind!r}, which it cannot settle."
        )
    return step


def _removal_told(told: Mapping[str, t.Any]) -> ProviderRemoval:
    """Return the deletion that `ProviderRemoval.as_dict` told. Raises InvalidInput for what is none."""
    entries = told["providers"]
    uuids = [entry["uuid"] for entry in entries]
    root = uuids[-1] if uuids else ""
    # Where each is below one that comes later, and the last below none, there is a depth to compare orders by.
    whole = entries and entries[-1]["parent"] is None and all(entry["parent"] in uuids[at:] for at, entry in enumerate(entries[:-1], 1))
    tree = tuple(Provider(entry["uuid"], str(entry["name"]), _count(entry["generation"]), root, entry["parent"]) for entry in entries)
    removal = ProviderRemoval(tree)
    named = all(canonical(provider.uuid) == provider.uuid for provider in tree)
    if not whole or not named or removal.as_dict() != told or child_first(root, tree) != tree:
        raise InvalidInput(f"The deletion of provider {root!r} does not name a whole tree, children first.")
    return removal


def _checked(steps: list[Step]) -> tuple[Step, ...]:
    counts = collections.Counter(part.consumer for step in steps for part in step.change.parts)
    if twice := sorted(consumer for consumer, count in counts.items() if count > 1):
        raise InvalidInput(f"Consumer {twice[0]} is changed twice in one plan.")
    return tuple(steps)


def _check_document(what: str, body: t.Any, generation: int | None) -> None:
    here = body["consumer_generation"]
    # To Python 1.0 and True are 1; Placement would be sent what stands here.
    if here != generation or not all(number is None or _whole(number) for number in (here, generation)):
        raise InvalidInput(f"{what} has generation {here!r}, and the change {generation!r}.")
    owners = {key: value for key, value in body.items() if key not in ("allocations", "consumer_generation")}
    if not {"project_id", "user_id"} <= set(owners) <= {"project_id", "user_id", "consumer_type"}:
        raise InvalidInput(f"{what} must have project_id and user_id, and may have consumer_type: it has {', '.join(sorted(owners))}.")
    if not all(isinstance(value, str) and value for value in owners.values()):
        raise InvalidInput(f"{what} must name its {', '.join(sorted(owners))} as text.")
    for provider, share in body["allocations"].items():
        amounts = share["resources"]
        whole = all(_whole(amount) and amount > 0 for amount in amounts.values())
        if canonical(provider) != provider or set(share) != {"resources"} or not amounts or not whole:
            raise InvalidInput(f"{what} must give whole amounts above zero of providers by UUID: it has {share!r} of {provider!r}.")


def _count(told: t.Any) -> int:
    if not _whole(told) or told < 0:
        raise ValueError(f"{told!r} is no number of consumers")
    return int(told)


def _whole(number: t.Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _without(entry: Mapping[str, t.Any], *names: str) -> dict[str, t.Any]:
    return {key: value for key, value in entry.items() if key not in names}


def _spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
