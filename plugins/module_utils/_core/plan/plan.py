# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns findings into changes, in their order."""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import hashlib
import json
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..._common.errors import InvalidInput, UnsoundReading, describe_form_error
from ..._common.text import make_printable, summarize_checks
from ..._common.uuids import normalize_uuid
from ..findings.entries import FORMAT, Entry, FindingsDocument
from ..models.documents import (
    PlanDocument,
    PlanGroupsDocument,
    ScopeDocument,
    ShardDocument,
    Unchecked,
    convert_to_json,
)
from ..models.host_groups import describe_groups
from ..models.snapshot import NO_GROUPS, HostGroups, Shard
from .limits import Limits
from .steps import Step, TreeStep, parse_count, parse_steps

# Changes that free capacity come before changes that take it.
_ACTION_ORDER = ("remove", "reduce", "rewrite", "create")
# What limits a detection, as options of orphan_detect.
_ScopeName = t.Literal[
    "hosts", "consumers", "projects", "kinds", "aggregates", "availability_zones", "cells"
]
SCOPE_NAMES: tuple[_ScopeName, ...] = t.get_args(_ScopeName)
# Nova itself can heal this kind, also where the right allocation cannot be determined from here.
HEALED_KIND = "missing_allocation"


class HasCloud(t.Protocol):
    """A document that names the cloud it is for."""

    @property
    def placement_endpoint(self) -> str: ...

    @property
    def region(self) -> str | None: ...


@d.dataclass(frozen=True)
class Plan:
    """The changes of one run, in their order, for the cloud whose findings they resolve.

    removals: the deletions of provider trees, which come after all `steps`.
    consumers: how many were read to find them; None after a reading of named hosts or consumers,
        because on a dead host every allocation may really be an orphan.
    shard: the part of the cloud that was read; None for all of it, or for what was named.
    groups: the groups of hosts that were read; empty for all hosts.
    """

    placement_endpoint: str
    region: str | None
    detected_at: str
    consumers: int | None
    steps: tuple[Step, ...]
    removals: tuple[TreeStep, ...] = ()
    shard: Shard | None = None
    groups: HostGroups = NO_GROUPS

    @classmethod
    def from_findings(cls, findings: t.Any, kinds: Collection[str], approved: bool = False) -> Plan:
        """Return the plan for the selected findings of the chosen `kinds`.

        Findings that have not been seen often enough are left out.
        approved: whether a plan of them was reviewed; then they had been seen often enough when it
            was made.
        Raises UnsoundReading when the reading behind the findings was not sound, and InvalidInput
        when the findings are not a document of this collection.
        """
        with _validate_findings(findings) as document:
            changes: list[tuple[str, str, Unchecked]] = []
            for entry in _select_entries(document, kinds, approved):
                # A finding of a changeable kind may still have no change that is known to be right.
                if entry["change"]:
                    changes.append((entry["id"], entry["kind"], entry["change"]))
            steps, removals = parse_steps(changes)
            return cls(
                placement_endpoint=document["cloud"]["placement_endpoint"],
                region=document["cloud"]["region"],
                detected_at=document["finished_at"],
                consumers=_count_consumers(document),
                steps=_check_unique(sorted(steps, key=_get_rank)),
                removals=removals,
                shard=_parse_shard(document["scope"]["shard"]),
                groups=get_groups(document["scope"]),
            )

    @classmethod
    def parse(cls, document: t.Any) -> Plan:
        """Return the plan that `as_dict` wrote.

        Raises InvalidInput for anything else, even if only one change is wrong.
        """
        if is_compact(document):
            raise InvalidInput(
                "The plan is a compact plan, without its documents: pass it to orphan_plan, "
                "together with findings of its consumers."
            )
        _check_format(document, "plan", "orphan_plan")
        try:
            if document["digest"] != digest_others(document):
                raise InvalidInput(
                    "The plan was edited after orphan_plan wrote it, because its digest does not "
                    "match: nothing was changed. Plan again, and have the new plan reviewed."
                )
            changes = []
            for entry in document["changes"]:
                change = _omit_keys(entry, "finding", "kind")
                changes.append((entry["finding"], entry["kind"], change))
            steps, removals = parse_steps(changes)
            plan = cls(
                placement_endpoint=document["placement_endpoint"],
                region=document["region"],
                detected_at=document["detected_at"],
                consumers=_parse_consumers(document["consumers"]),
                # As they are in the file: who reviewed the plan has seen them in this order.
                steps=_check_unique(steps),
                removals=removals,
                shard=_parse_shard(document["shard"]),
                groups=parse_plan_groups(document.get("groups")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                "The plan does not have the form that orphan_plan writes "
                f"({describe_form_error(error)}): plan again."
            ) from error
        return plan

    def as_dict(self) -> PlanDocument:
        steps: tuple[Step | TreeStep, ...] = (*self.steps, *self.removals)
        document: PlanDocument = {
            "format": FORMAT,
            "placement_endpoint": self.placement_endpoint,
            "region": self.region,
            "detected_at": self.detected_at,
            "consumers": self.consumers,
            "shard": convert_to_json(self.shard),
            "changes": [step.as_dict() for step in steps],
            "digest": "",
        }
        if not self.groups.is_empty:
            document["groups"] = build_plan_groups(self.groups)
        document["digest"] = digest_others(document)
        return document

    def check_limits(self, limits: Limits) -> None:
        """Raise BreakerTripped when there are more changes than one run may make."""
        count = len(self.steps) + len(self.removals)
        limits.check_count(count, self.consumers, self.shard, describe_plan_groups(self.groups))


def check_scope(findings: t.Any, scope: Mapping[str, Sequence[str] | None]) -> None:
    """Raise InvalidInput when the findings are about more than the user names now.

    Otherwise a plan of earlier findings would change what the user has left out.
    scope: the names and UUIDs by option of orphan_detect; an empty list limits nothing.
    """
    with _validate_findings(findings) as document:
        detected = document["scope"]
        for option in SCOPE_NAMES:
            given = scope.get(option) or ()
            named = {_unify_name(name) for name in given}
            if not named:
                continue
            found = _list_names_in_scope(detected, option)
            if not found or any(names.isdisjoint(named) for names in found):
                raise InvalidInput(
                    f"The findings are not only about the {option} that are named now "
                    f"({make_printable(', '.join(given))}): run detection again with these "
                    f"{option}, or name no {option} to use all findings."
                )


def _list_names_in_scope(detected: ScopeDocument, option: _ScopeName) -> list[set[str]]:
    """Return of each thing that a detection was about the names by which a user can call it."""
    groups = get_groups(detected)
    if option == "aggregates":
        found = [{_unify_name(uuid)} for uuid in groups.aggregates]
        for others in (groups.aggregate_names, groups.aggregate_numbers):
            for names, name in zip(found, others, strict=True):
                names.add(name)
        return found
    if option == "availability_zones":
        return [{name} for name in groups.availability_zones]
    if option == "cells":
        return [{_unify_name(name)} for name in groups.cells]
    found = [{_unify_name(name)} for name in detected[option]]
    if option == "projects":
        # Findings that version 1.0 wrote have no names.
        for names, name in zip(found, detected.get("project_names", ()), strict=False):
            names.add(name)
    return found


def _unify_name(name: str) -> str:
    uuid = normalize_uuid(name)
    return uuid.replace("-", "") if uuid else name.strip()


def is_compact(document: t.Any) -> t.TypeGuard[Unchecked]:
    """Return whether `document` is a plan without its documents, or is marked as one."""
    return isinstance(document, dict) and bool(document.get("compact"))


def check_cloud(planned: HasCloud, here: HasCloud) -> None:
    """Raise InvalidInput when a plan is for another cloud than the one that is `here`."""
    for field in ("placement_endpoint", "region"):
        there = getattr(planned, field)
        if there != getattr(here, field):
            raise InvalidInput(
                f"The plan is for another cloud: its {field} is {there}, and this cloud's is "
                f"{getattr(here, field)}."
            )


def list_servers_to_heal(findings: t.Any, limits: Limits) -> list[str]:
    """Return the uuids of the servers that Nova is to give their missing allocation.

    These are the selected ones that do not wait, whether or not the right allocation can be
    determined from here.
    Raises UnsoundReading and InvalidInput as `Plan.from_findings` does, and BreakerTripped as
    `Plan.check_limits` does.
    """
    with _validate_findings(findings) as document:
        entries = _select_entries(document, [HEALED_KIND])
        servers = []
        for entry in entries:
            # It becomes an argument of nova-manage: nothing but a UUID may.
            server = entry["consumer"]
            if server is None or normalize_uuid(server) != server:
                raise InvalidInput(f"The findings name the server {server!r}, which is not a UUID.")
            servers.append(server)
        consumers = _count_consumers(document)
        shard = _parse_shard(document["scope"]["shard"])
        groups = get_groups(document["scope"])
    limits.check_count(len(servers), consumers, shard, describe_plan_groups(groups))
    return sorted(servers)


def digest(document: t.Any) -> str:
    """Return the SHA-256 of the canonical JSON of `document`, in hexadecimal."""
    # Every job must compute the same digest, whatever its Python and its locale.
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def digest_others(document: Mapping[str, t.Any]) -> str:
    """Return the digest that belongs into a plan: that of all its other keys."""
    return digest(_omit_keys(document, "digest"))


def _get_rank(step: Step) -> tuple[int, str]:
    return _ACTION_ORDER.index(step.change.action), step.change.consumer


def _parse_consumers(consumers: t.Any) -> int | None:
    if consumers is None:
        return None
    return parse_count(consumers)


def _parse_shard(document: Unchecked | ShardDocument | None) -> Shard | None:
    if document is None:
        return None
    number, count = parse_count(document["number"]), parse_count(document["count"])
    if not 1 <= number <= count:
        raise InvalidInput(f"Shard {number} of {count} does not exist.")
    return Shard(number, count)


@contextlib.contextmanager
def _validate_findings(findings: t.Any) -> Iterator[FindingsDocument]:
    """Yield the findings, to be read within the context.

    Raises UnsoundReading when the reading behind them was not sound, and InvalidInput when they, or
    what is read of them, are not a document of this collection.
    """
    _check_format(findings, "findings", "orphan_detect")
    document: FindingsDocument = findings
    try:
        failed_checks = document["summary"]["coverage"]["failed_checks"]
        # Every finding of an unsound reading may be wrong, also one that is proven by itself.
        if failed_checks:
            reasons = summarize_checks(failed_checks)
            raise UnsoundReading(f"Nothing may be changed after this reading. {reasons}")
        yield document
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            "The findings do not have the form that orphan_detect writes "
            f"({describe_form_error(error)}): run detection again."
        ) from error


def _select_entries(
    findings: FindingsDocument, kinds: Collection[str], approved: bool = False
) -> list[Entry]:
    selected = []
    for entry in findings["findings"]:
        if entry["kind"] not in kinds or not entry["selected"]:
            continue
        # Entries that version 1.0 wrote have no key for it, and do not wait.
        if approved or not entry.get("waiting"):
            selected.append(entry)
    return selected


def _count_consumers(findings: FindingsDocument) -> int | None:
    """Return how many consumers were read; None after a reading of named hosts or consumers."""
    scope, coverage = findings["scope"], findings["summary"]["coverage"]
    # On a dead host every allocation may really be an orphan: a fraction says nothing there.
    if scope["hosts"] or scope["consumers"]:
        return None
    return parse_count(coverage["consumers"])


def _check_format(document: t.Any, what: str, writer: str) -> None:
    if not isinstance(document, dict) or "format" not in document:
        raise InvalidInput(
            f"{what} does not have the form that {writer} writes: it has no format. "
            f"Set {what} to a file that {writer} of this version wrote."
        )
    if document["format"] != FORMAT:
        raise InvalidInput(
            f"{what} has format {document['format']!r}, and this version of the "
            f"collection reads format {FORMAT}."
        )


def _check_unique(steps: list[Step]) -> tuple[Step, ...]:
    """Return the steps. Raises InvalidInput when two of them change the same consumer."""
    counts: collections.Counter[str] = collections.Counter()
    for step in steps:
        counts.update(part.consumer for part in step.change.parts)
    for consumer, count in sorted(counts.items()):
        if count > 1:
            raise InvalidInput(f"The plan changes consumer {consumer} twice.")
    return tuple(steps)


def _omit_keys(entry: Mapping[str, t.Any], *names: str) -> Unchecked:
    return {key: value for key, value in entry.items() if key not in names}


# What a plan says of its groups.
_NAMES = ("aggregates", "aggregate_names", "availability_zones", "cells")


def get_groups(scope: ScopeDocument) -> HostGroups:
    """Return the groups of hosts in a scope, without the hosts."""
    groups = scope.get("groups")
    # Files of version 1.0 have none.
    if not groups:
        return NO_GROUPS
    named: Unchecked = groups
    fields = (*_NAMES, "aggregate_numbers")
    return HostGroups(**{field: tuple(named[field]) for field in fields})


def build_plan_groups(groups: HostGroups) -> PlanGroupsDocument:
    """Return the groups as a plan keeps them: their names, and not their hosts."""
    named = {field: list(getattr(groups, field)) for field in _NAMES}
    return t.cast("PlanGroupsDocument", named)


def describe_plan_groups(groups: HostGroups) -> str:
    """Return the groups for people; empty if none is named."""
    return describe_groups(d.asdict(groups))


def parse_plan_groups(document: Unchecked | PlanGroupsDocument | None) -> HostGroups:
    """Return the groups of which `build_plan_groups` made the document; none for None.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    if document is None:
        return NO_GROUPS
    named: Unchecked = document
    groups = HostGroups(**{field: _parse_names(named[field]) for field in _NAMES})
    # A plan that has lost the names of its groups must not pass for one of the whole cloud.
    if groups.is_empty or len(groups.aggregates) != len(groups.aggregate_names):
        raise ValueError("its groups name nothing")
    return groups


def _parse_names(value: t.Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("a list of names is not a list")
    for name in value:
        if not isinstance(name, str) or not name:
            raise ValueError("a name is not a text")
    return tuple(value)
