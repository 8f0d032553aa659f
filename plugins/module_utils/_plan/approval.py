# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""A plan without its documents, small enough to be handed from job to job, and the same changes found again. Pure.

The files of a job are gone with its container. What a second job is given says of each change what it is about and the digest of the whole
of it; the documents come from a detection of its own, and are written only if their digest is the one that was approved.
"""

from __future__ import annotations

import dataclasses as d
import hashlib
import json
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    InvalidInput,
    NotApproved,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    FORMAT,
    Entry,
    iterate_entries,
)
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CHANGEABLE_KINDS,
    CONSUMER_KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._plan.plan import Plan, check_cloud
from ansible_collections.osops.placement.plugins.module_utils._plan.steps import Step, TreeStep

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

# About 260 bytes each. Of a plan with more than these only the digest is handed on, which nobody can apply.
MAX_COMPACT_CHANGES = 1000

_DIGEST = re.compile(r"[0-9a-f]{64}")

# So many reasons are told; the others are counted.
_MAX_REASONS = 5


@d.dataclass(frozen=True)
class ApprovedChange:
    """What is known of a change without its documents. Neither consumer nor generation for the deletion of a tree of providers."""

    finding: str
    kind: str
    consumer: str | None
    generation: int | None
    digest: str

    @classmethod
    def from_step(cls, step: Step | TreeStep) -> ApprovedChange:
        consumer, generation = (
            (step.change.consumer, step.change.generation)
            if isinstance(step, Step)
            else (None, None)
        )
        return cls(step.finding, step.kind, consumer, generation, digest(step.as_dict()))


@d.dataclass(frozen=True)
class Approval:
    """The changes of a plan by their digests; None when they are too many to be handed on."""

    placement_endpoint: str
    region: str | None
    detected_at: str
    consumers: int | None
    count: int
    changes: tuple[ApprovedChange, ...] | None

    @classmethod
    def from_plan(cls, plan: Plan) -> Approval:
        steps: tuple[Step | TreeStep, ...] = (*plan.steps, *plan.removals)
        changes = tuple(map(ApprovedChange.from_step, steps))
        handed = changes if len(changes) <= MAX_COMPACT_CHANGES else None
        return cls(
            plan.placement_endpoint,
            plan.region,
            plan.detected_at,
            plan.consumers,
            len(changes),
            handed,
        )

    @classmethod
    def parse(cls, told: Mapping[str, t.Any]) -> Approval:
        """Return what `as_dict` told. Raises InvalidInput for anything else, also if only one character of it is another."""
        if told.get("format") != FORMAT:
            raise InvalidInput(
                f"The compact plan has format {told.get('format')!r}; this version of the collection reads format {FORMAT}."
            )
        if told.get("changes") is None:
            raise InvalidInput(
                f"The compact plan has {told.get('count')!r} changes, more than the {MAX_COMPACT_CHANGES} that are handed from job to job, and "
                "therefore none of them: give the path of plan.json, kept where both jobs can read it."
            )
        try:
            approval = cls(
                placement_endpoint=told["placement_endpoint"],
                region=told["region"],
                detected_at=told["detected_at"],
                consumers=told["consumers"],
                count=told["count"],
                changes=tuple(_parse_change(entry) for entry in told["changes"]),
            )
            # As text: to Python 1.0 and True are 1.
            whole = json.dumps(approval.as_dict(), sort_keys=True) == json.dumps(
                told, sort_keys=True
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"The compact plan is not as orphan_plan tells it ({type(error).__name__}: {error})."
            ) from error
        number = isinstance(approval.consumers, int) and not isinstance(approval.consumers, bool)
        if approval.consumers is not None and not (number and approval.consumers >= 0):
            raise InvalidInput(
                f"The compact plan was made for {approval.consumers!r} consumers, which is no number of them."
            )
        if not whole:
            raise InvalidInput(
                "The compact plan was edited or cut short: its digest is another. Only what was approved, whole, is applied."
            )
        known = approval.changes or ()
        if len(known) != approval.count or len({change.finding for change in known}) < len(known):
            raise InvalidInput("The compact plan does not name each of its changes once.")
        return approval

    def as_dict(self) -> dict[str, t.Any]:
        told = {**d.asdict(self), "format": FORMAT, "compact": True}
        told["changes"] = (
            None if self.changes is None else [d.asdict(change) for change in self.changes]
        )
        return {**told, "digest": digest(told)}

    @property
    def scope(self) -> dict[str, list[str]]:
        """What must be detected anew to find these changes again, as options of `orphan_detect`; nothing named stands for everything."""
        consumers = [change.consumer for change in self.changes or ()]
        if None in consumers:
            return {
                "consumers": [],
                "kinds": sorted({change.kind for change in self.changes or ()}),
            }
        return {"consumers": sorted(t.cast("list[str]", consumers)), "kinds": []}

    def check_kinds(self, kinds: Collection[str]) -> None:
        """Raise InvalidInput when something is to be changed of a kind that may not be."""
        if other := sorted({change.kind for change in self.changes or ()} - set(kinds)):
            raise InvalidInput(
                f"The compact plan changes {', '.join(other)}, which kinds (orphan_cleanup_remediate_kinds) does not name here: nothing was "
                "changed."
            )

    def rebuild_plan(self, findings: t.Any) -> tuple[Plan, list[str]]:
        """Return the plan of exactly these changes, and the ids of those that are left out because their consumers hold nothing any more.

        Raises NotApproved when any other is not found just as it was approved, GateClosed and InvalidInput as `Plan.from_findings` does.
        """
        approved = {change.finding: change for change in self.changes or ()}
        plan = Plan.from_findings(
            findings, {change.kind for change in approved.values()}, approved=True
        )
        check_cloud(self, plan)
        steps = tuple(step for step in plan.steps if step.finding in approved)
        removals = tuple(step for step in plan.removals if step.finding in approved)
        found: tuple[Step | TreeStep, ...] = (*steps, *removals)
        now = {step.finding: ApprovedChange.from_step(step) for step in found}
        gone, wrong = [], []
        for finding, change in approved.items():
            if finding in now and now[finding] == change:
                continue
            if finding not in now and _has_no_allocation(change, findings):
                gone.append(finding)
            else:
                wrong.append(
                    f"{finding}: {_describe_difference(change, now.get(finding), findings)}"
                )
        if wrong:
            more = f" And {len(wrong) - _MAX_REASONS} more." if len(wrong) > _MAX_REASONS else ""
            raise NotApproved(
                f"{len(wrong)} of {len(approved)} changes are not what was approved any more: nothing was changed. "
                f"{' '.join(wrong[:_MAX_REASONS])}{more} Detect again, and have the new plan approved."
            )
        return d.replace(plan, consumers=self.consumers, steps=steps, removals=removals), gone


def digest(document: t.Any) -> str:
    """Return the SHA-256 of the canonical JSON of `build_body`."""
    return hashlib.sha256(
        json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    ).hexdigest()


def _parse_change(entry: Mapping[str, t.Any]) -> ApprovedChange:
    change = ApprovedChange(**entry)
    subject = (
        change.consumer
        if change.kind in {kind.name for kind in CONSUMER_KINDS}
        else change.finding.partition("/")[2]
    )
    known = change.kind in {kind.name for kind in CHANGEABLE_KINDS}
    if (
        not known
        or change.finding != f"{change.kind}/{subject}"
        or not subject
        or normalize_uuid(subject) != subject
    ):
        raise InvalidInput(
            f"The compact plan has a change for the finding {change.finding!r} of kind {change.kind!r}, which it cannot settle."
        )
    if not isinstance(change.digest, str) or not _DIGEST.fullmatch(change.digest):
        raise InvalidInput(f"The compact plan has no digest of the change for {change.finding}.")
    return change


def _has_no_allocation(change: ApprovedChange, findings: t.Any) -> bool:
    """Tell whether the consumer was asked about by name, and holds nothing."""
    named = findings["scope"]["consumers"]
    return (
        change.consumer in named
        and change.consumer not in findings["held"]
        and not _find_entries(change, findings)
    )


def _describe_difference(
    change: ApprovedChange, now: ApprovedChange | None, findings: t.Any
) -> str:
    if now and now.generation != change.generation:
        return f"it changed since, generation {change.generation} then, {now.generation} now."
    if now:
        return "what would be written is another document than then."
    if entries := _find_entries(change, findings):
        return f"it is {entries[0]['verdict']} now ({entries[0]['kind']}): {entries[0]['reason']}"
    return (
        "it is healthy now."
        if change.consumer in findings["scope"]["consumers"]
        else "it is not found any more."
    )


def _find_entries(change: ApprovedChange, findings: t.Any) -> list[Entry]:
    """Return what the findings say of the subject of a change, under whatever kind."""
    subject = change.finding.partition("/")[2]
    return [
        entry
        for entry in iterate_entries(findings)
        if subject in (entry["consumer"], entry["id"].partition("/")[2])
    ]
