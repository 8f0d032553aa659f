# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The compact plan that one job passes to the next.

The files of a job are gone with its container. The compact plan that a second job gets has for each
change its finding and the digest of the whole change. The documents come from a detection of the
second job itself, and are written only if their digest is the one that was approved.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Callable, Collection, Mapping

from ..._common.errors import InvalidInput, NotApproved, describe_form_error
from ..._common.uuids import normalize_uuid
from ..findings.entries import FORMAT, Entry, FindingsDocument, iterate_entries
from ..models.documents import CompactPlanDocument, Unchecked
from ..models.kinds import (
    CHANGEABLE_KINDS,
    CONSUMER_KINDS,
    explain_unresolvable,
    get_finding_subject,
)
from ..models.snapshot import NO_GROUPS, HostGroups
from .plan import Plan, build_plan_groups, check_cloud, digest, parse_plan_groups
from .steps import Step, TreeStep

if t.TYPE_CHECKING:  # pragma: no cover
    FieldType = tuple[Callable[[t.Any], bool], str]


# About 260 bytes each. A plan with more changes is passed on without them, and cannot be applied.
MAX_COMPACT_CHANGES = 1000
# So many reasons are in the message; the others are counted.
_MAX_REASONS = 5


@d.dataclass(frozen=True)
class ApprovedChange:
    """A change without its documents.

    consumer, generation: None for the deletion of a tree of providers.
    digest: the SHA-256 of the change with its documents.
    """

    finding: str
    kind: str
    consumer: str | None
    generation: int | None
    digest: str

    @classmethod
    def from_step(cls, step: Step | TreeStep) -> ApprovedChange:
        """Return the change of `step` without its documents."""
        checksum = digest(step.as_dict())
        if isinstance(step, Step):
            change = step.change
            return cls(step.finding, step.kind, change.consumer, change.generation, checksum)
        return cls(step.finding, step.kind, None, None, checksum)


@d.dataclass(frozen=True)
class Approval:
    """The changes of a plan by their digests.

    consumers: how many were read; None after a reading of named hosts or consumers.
    count: the number of changes.
    changes: None when there are too many to be passed on.
    groups: the groups of hosts that were read; empty for all hosts.
    """

    placement_endpoint: str
    region: str | None
    detected_at: str
    consumers: int | None
    count: int
    changes: tuple[ApprovedChange, ...] | None
    groups: HostGroups = NO_GROUPS

    @classmethod
    def from_plan(cls, plan: Plan) -> Approval:
        """Return the compact form of `plan`."""
        steps: tuple[Step | TreeStep, ...] = (*plan.steps, *plan.removals)
        changes = None
        if len(steps) <= MAX_COMPACT_CHANGES:
            changes = tuple(map(ApprovedChange.from_step, steps))
        return cls(
            plan.placement_endpoint,
            plan.region,
            plan.detected_at,
            plan.consumers,
            len(steps),
            changes,
            plan.groups,
        )

    @classmethod
    def parse(cls, document: Unchecked) -> Approval:
        """Return the compact plan that `as_dict` returned.

        Raises InvalidInput for anything else, even if only one character differs.
        """
        if document.get("format") != FORMAT:
            raise InvalidInput(
                f"The compact plan has format {document.get('format')!r}; this version of the "
                f"collection reads format {FORMAT}."
            )
        # A plan that is too long to be passed on must not pass for one without changes.
        if document.get("changes") is None:
            raise InvalidInput(
                f"The compact plan has {document.get('count')!r} changes, more than the "
                f"{MAX_COMPACT_CHANGES} that can be passed from job to job, so it does not "
                "contain them: keep plan.json where both jobs can read it, and set its path."
            )
        try:
            check_types(document, PLAN_TYPES)
            fields = {name: document[name] for name in PLAN_TYPES if name != "digest"}
            approval = cls(
                **fields,
                changes=tuple(map(_parse_change, document["changes"])),
                groups=parse_plan_groups(document.get("groups")),
            )
            unedited = digest(approval.as_dict()) == digest(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                "The compact plan does not have the form that orphan_plan returns "
                f"({describe_form_error(error)})."
            ) from error
        if not unedited:
            raise InvalidInput(
                "The compact plan was edited or cut short: its digest does not match. Only the "
                "complete plan that was approved is applied."
            )
        approval._check_findings()
        return approval

    def _check_findings(self) -> None:
        """Raise InvalidInput unless `count` changes are there, each for another finding."""
        changes = self.changes or ()
        finding_ids = {change.finding for change in changes}
        if len(changes) != self.count or len(finding_ids) < len(changes):
            raise InvalidInput("The compact plan does not list each of its changes exactly once.")

    def as_dict(self) -> CompactPlanDocument:
        document = {"format": FORMAT, "compact": True, **d.asdict(self)}
        if self.changes is not None:
            document["changes"] = list(document["changes"])
        del document["groups"]
        if not self.groups.is_empty:
            document["groups"] = build_plan_groups(self.groups)
        document["digest"] = digest(document)
        return t.cast("CompactPlanDocument", document)

    @property
    def scope(self) -> dict[str, list[str]]:
        """What must be detected to find these changes again, as options of `orphan_detect`.

        Without consumers and kinds that is everything.
        """
        changes = self.changes or ()
        consumers = [change.consumer for change in changes]
        kinds = {change.kind for change in changes}
        # A tree of providers has no consumer to name: then whole kinds are detected.
        if None in consumers:
            return {"consumers": [], "kinds": sorted(kinds)}
        return {"consumers": sorted(t.cast("list[str]", consumers)), "kinds": []}

    def check_kinds(self, kinds: Collection[str]) -> None:
        """Raise InvalidInput when there is a change of a kind that may not be changed."""
        others = sorted({change.kind for change in self.changes or ()} - set(kinds))
        if others:
            raise InvalidInput(
                f"The compact plan changes {', '.join(others)}, which kinds "
                "(orphan_cleanup_remediate_kinds) does not include here: nothing was changed."
            )

    def rebuild_plan(self, findings: t.Any) -> tuple[Plan, list[str]]:
        """Return the plan of exactly these changes, and the finding ids that are left out.

        Left out are those whose consumers have no allocations any more.
        Raises NotApproved when any other change differs from what was approved, and UnsoundReading
        and InvalidInput as `Plan.from_findings` does.
        """
        # New findings of the same consumers were not approved, and are left out.
        approved = {change.finding: change for change in self.changes or ()}
        kinds = {change.kind for change in approved.values()}
        plan = Plan.from_findings(findings, kinds, approved=True)
        check_cloud(self, plan)
        steps = tuple(step for step in plan.steps if step.finding in approved)
        removals = tuple(step for step in plan.removals if step.finding in approved)
        current: dict[str, ApprovedChange] = {}
        current_steps: tuple[Step | TreeStep, ...] = (*steps, *removals)
        for step in current_steps:
            current[step.finding] = ApprovedChange.from_step(step)
        gone = self._compare(current, findings)
        # The limits are those of the approved plan: this detection may have read only a part.
        whole = d.replace(plan, consumers=self.consumers, groups=self.groups)
        return d.replace(whole, steps=steps, removals=removals), gone

    def _compare(
        self, current: Mapping[str, ApprovedChange], findings: FindingsDocument
    ) -> list[str]:
        """Return the ids of the findings whose consumers have no allocations any more.

        Raises NotApproved when any other change is not in `current` just as it was approved.
        """
        gone, differences = [], []
        approved = self.changes or ()
        for change in approved:
            now = current.get(change.finding)
            if now == change:
                continue
            # Where neither allocations nor findings are left, there is nothing to change.
            if now is None and _has_no_allocation(change, findings):
                gone.append(change.finding)
            else:
                difference = _describe_difference(change, now, findings)
                differences.append(f"{change.finding}: {difference}")
        if differences:
            match = "matches" if len(differences) == 1 else "match"
            raise NotApproved(
                f"{len(differences)} of {len(approved)} changes no longer {match} what was "
                f"approved: nothing was changed. {_join_reasons(differences)} Run detection "
                "again, and have the new plan approved."
            )
        return gone


def _join_reasons(reasons: list[str]) -> str:
    shown = " ".join(reasons[:_MAX_REASONS])
    if len(reasons) > _MAX_REASONS:
        return f"{shown} And {len(reasons) - _MAX_REASONS} more."
    return shown


def _parse_change(entry: Unchecked) -> ApprovedChange:
    check_types(entry, CHANGE_TYPES)
    change = ApprovedChange(**entry)
    if not _can_resolve(change):
        raise InvalidInput(
            f"The compact plan has a change for the finding {change.finding!r} of kind "
            f"{change.kind!r}, {explain_unresolvable(change.kind)}"
        )
    return change


def _can_resolve(change: ApprovedChange) -> bool:
    """Return whether the change is of a kind that may be changed, and about its finding."""
    if change.kind in {kind.name for kind in CONSUMER_KINDS}:
        subject = change.consumer
    else:
        subject = get_finding_subject(change.finding)
    if change.kind not in {kind.name for kind in CHANGEABLE_KINDS}:
        return False
    if change.finding != f"{change.kind}/{subject}":
        return False
    if not subject:
        return False
    return normalize_uuid(subject) == subject


def _has_no_allocation(change: ApprovedChange, findings: FindingsDocument) -> bool:
    """Return whether the consumer was asked about by name and has no allocations."""
    # A detection that did not ask about the consumer says nothing about its allocations.
    if change.consumer not in findings["scope"]["consumers"]:
        return False
    if change.consumer in findings["held"]:
        return False
    return not _find_entries(change, findings)


def _describe_difference(
    change: ApprovedChange, now: ApprovedChange | None, findings: FindingsDocument
) -> str:
    """Return in what the change differs `now` from what was approved.

    now: the same change by the new detection, None when it has none for the finding.
    """
    if now and now.generation != change.generation:
        return (
            f"it has changed since: its generation was {change.generation} then and is "
            f"{now.generation} now."
        )
    if now:
        return "the document to be written is no longer the one that was approved."
    entries = _find_entries(change, findings)
    if entries:
        entry = entries[0]
        return f"it is {entry['verdict']} now ({entry['kind']}): {entry['reason']}"
    if change.consumer in findings["scope"]["consumers"]:
        return "it is healthy now."
    return "it is no longer found."


def _find_entries(change: ApprovedChange, findings: FindingsDocument) -> list[Entry]:
    """Return all entries about the subject of a change, whatever their kinds."""
    subject = get_finding_subject(change.finding)
    entries = []
    for entry in iterate_entries(findings):
        if subject in (entry["consumer"], get_finding_subject(entry["id"])):
            entries.append(entry)
    return entries


_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def _is_text(value: t.Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text_or_none(value: t.Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: t.Any) -> bool:
    # To Python True is 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_count_or_none(value: t.Any) -> bool:
    return value is None or _is_count(value)


def _is_time(value: t.Any) -> bool:
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def _is_digest(value: t.Any) -> bool:
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))


_TEXT: FieldType = (_is_text, "a text")
_TEXT_OR_NONE: FieldType = (_is_text_or_none, "a text, or null")
_COUNT: FieldType = (_is_count, "a number from 0 on")
_COUNT_OR_NONE: FieldType = (_is_count_or_none, "a number from 0 on, or null")
# `format` and `changes` are checked before the types are.
PLAN_TYPES: Mapping[str, FieldType] = {
    "placement_endpoint": _TEXT,
    "region": _TEXT_OR_NONE,
    "detected_at": (_is_time, "a time in UTC such as 2026-11-20T03:04:05Z"),
    "consumers": _COUNT_OR_NONE,
    "count": _COUNT,
    "digest": (_is_digest, "a SHA-256"),
}
CHANGE_TYPES: Mapping[str, FieldType] = {
    "finding": _TEXT,
    "kind": _TEXT,
    "consumer": _TEXT_OR_NONE,
    "generation": _COUNT_OR_NONE,
    "digest": (_is_digest, "a SHA-256"),
}


def check_types(document: Unchecked, types: Mapping[str, FieldType]) -> None:
    """Raise InvalidInput when a field of the document is not of its type."""
    for field, (is_valid, description) in types.items():
        value = document[field]
        if not is_valid(value):
            raise InvalidInput(
                f"The compact plan has {value!r} as {field}, which must be {description}. It was "
                "edited, or a YAML reader has taken a text for something else: pass on "
                "orphan_cleanup_plan as the first job exports it."
            )
