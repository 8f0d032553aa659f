# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The changes of one run: made of findings, written to `plan.json`, and read back.

Nothing that was edited or cut short passes. Pure.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses as d
import hashlib
import json
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..._common.errors import InvalidInput, UnsoundReading, describe_form_error
from ..._common.text import make_printable, normalize_uuid, summarize_checks
from ..findings.entries import FORMAT, Entry, FindingsDocument
from ..models.change import DELETE_PROVIDERS, Change, ProviderRemoval, sort_children_first
from ..models.codec import Json, Unchecked, convert_from_json, convert_to_json
from ..models.kinds import CHANGEABLE_KINDS, CONSUMER_KINDS, explain_unresolvable
from ..models.placement import Provider
from ..models.snapshot import NO_GROUPS, Cloud, HostGroups, Shard
from .limits import Limits

# Changes that free capacity come before changes that take it.
_ACTION_ORDER = ("remove", "reduce", "rewrite", "create")
# What limits a detection, as options of orphan_detect.
_ScopeName = t.Literal[
    "hosts", "consumers", "projects", "kinds", "aggregates", "availability_zones", "cells"
]
SCOPE_NAMES: tuple[_ScopeName, ...] = t.get_args(_ScopeName)
# Nova itself can heal this kind, also where the right allocation cannot be determined from here.
HEALED_KIND = "missing_allocation"


@d.dataclass(frozen=True)
class Step:
    """One change of a plan: the finding that it resolves, and the exact write."""

    finding: str
    kind: str
    change: Change

    @property
    def subject(self) -> str:
        """The consumer that the finding is about."""
        return self.change.consumer

    def as_dict(self) -> Json:
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

    def as_dict(self) -> Json:
        return {"finding": self.finding, "kind": self.kind, **self.change.as_dict()}


AnyStep = t.TypeVar("AnyStep", Step, TreeStep)


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
    def from_findings(cls, findings: t.Any, kinds: Collection[str]) -> Plan:
        """Return the plan for the selected findings of the chosen `kinds`.

        Findings that have not been seen often enough are left out.
        Raises UnsoundReading when the reading behind the findings was not sound, and InvalidInput
        when the findings are not a document of this collection.
        """
        with _validate_findings(findings) as document:
            steps, removals = parse_steps(
                (entry["id"], entry["kind"], entry["change"])
                for entry in _select_entries(document, kinds)
                # A finding of a changeable kind may still have no change that is known to be right.
                if entry["change"]
            )
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
        _check_format(document, "plan", "orphan_plan")
        if "compact" in document:
            raise InvalidInput(
                "This is a compact plan of an earlier version, which has no documents: plan again."
            )
        try:
            if document["digest"] != digest_others(document):
                raise InvalidInput(
                    "The plan was edited after orphan_plan wrote it, because its digest does not "
                    "match: nothing was changed. Plan again, and have the new plan reviewed."
                )
            steps, removals = parse_steps(
                (entry["finding"], entry["kind"], _omit_keys(entry, "finding", "kind"))
                for entry in document["changes"]
            )
            consumers = document["consumers"]
            return cls(
                placement_endpoint=document["placement_endpoint"],
                region=document["region"],
                detected_at=document["detected_at"],
                consumers=None if consumers is None else parse_count(consumers),
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

    @property
    def all_steps(self) -> tuple[Step | TreeStep, ...]:
        """All changes in their order: the trees of providers come last."""
        return (*self.steps, *self.removals)

    def as_dict(self) -> Json:
        document: Json = {
            "format": FORMAT,
            "placement_endpoint": self.placement_endpoint,
            "region": self.region,
            "detected_at": self.detected_at,
            "consumers": self.consumers,
            "shard": convert_to_json(self.shard),
            "changes": [step.as_dict() for step in self.all_steps],
            "digest": "",
        }
        if not self.groups.is_empty:
            document["groups"] = {name: list(getattr(self.groups, name)) for name in _NAMES}
        document["digest"] = digest_others(document)
        return document

    def check_limits(self, limits: Limits) -> None:
        """Raise BreakerTripped when there are more changes than one run may make."""
        limits.check_count(len(self.all_steps), self.consumers, self.shard, str(self.groups))

    def check_kinds(self, kinds: Collection[str]) -> None:
        """Raise InvalidInput when there is a change of a kind that may not be changed."""
        others = sorted({step.kind for step in self.all_steps} - set(kinds))
        if others:
            raise InvalidInput(
                f"The plan changes {', '.join(others)}, which kinds "
                "(orphan_cleanup_remediate_kinds) does not include here: nothing was changed."
            )


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


def _list_names_in_scope(detected: Json, option: _ScopeName) -> list[set[str]]:
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


def check_cloud(plan: Plan, cloud: Cloud) -> None:
    """Raise InvalidInput when a plan is for another cloud."""
    for field in ("placement_endpoint", "region"):
        there, here = getattr(plan, field), getattr(cloud, field)
        if there != here:
            raise InvalidInput(
                f"The plan is for another cloud: its {field} is {there}, and this cloud's is "
                f"{here}."
            )


def list_servers_to_heal(findings: t.Any, limits: Limits) -> list[str]:
    """Return the uuids of the servers that Nova is to give their missing allocation.

    These are the selected ones that do not wait, whether or not the right allocation can be
    determined from here.
    Raises UnsoundReading and InvalidInput as `Plan.from_findings` does, and BreakerTripped as
    `Plan.check_limits` does.
    """
    with _validate_findings(findings) as document:
        servers = []
        for entry in _select_entries(document, [HEALED_KIND]):
            # It becomes an argument of nova-manage: nothing but a UUID may.
            server = entry["consumer"]
            if server is None or normalize_uuid(server) != server:
                raise InvalidInput(f"The findings name the server {server!r}, which is not a UUID.")
            servers.append(server)
    read = Plan.from_findings(findings, ())
    limits.check_count(len(servers), read.consumers, read.shard, str(read.groups))
    return sorted(servers)


def digest_others(document: Mapping[str, t.Any]) -> str:
    """Return the digest that belongs into a plan: the SHA-256 of all its other keys."""
    others = _omit_keys(document, "digest")
    # Every job must compute the same digest, whatever its Python and its locale.
    canonical = json.dumps(others, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _get_rank(step: Step) -> tuple[int, str]:
    return _ACTION_ORDER.index(step.change.action), step.change.consumer


def _parse_shard(document: Unchecked | Json | None) -> Shard | None:
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


def _select_entries(findings: FindingsDocument, kinds: Collection[str]) -> list[Entry]:
    return [
        entry
        for entry in findings["findings"]
        # Entries that version 1.0 wrote have no key for it, and do not wait.
        if entry["kind"] in kinds and entry["selected"] and not entry.get("waiting")
    ]


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
    consumers = [part.consumer for step in steps for part in step.change.parts]
    for consumer, count in sorted(collections.Counter(consumers).items()):
        if count > 1:
            raise InvalidInput(f"The plan changes consumer {consumer} twice.")
    return tuple(steps)


def _omit_keys(entry: Mapping[str, t.Any], *names: str) -> Unchecked:
    return {key: value for key, value in entry.items() if key not in names}


# What a plan says of its groups.
_NAMES = ("aggregates", "aggregate_names", "availability_zones", "cells")


def get_groups(scope: Json) -> HostGroups:
    """Return the groups of hosts in a scope, without the hosts."""
    groups = scope.get("groups")
    # Files of version 1.0 have none.
    if not groups:
        return NO_GROUPS
    named: Unchecked = groups
    fields = (*_NAMES, "aggregate_numbers")
    return HostGroups(**{field: tuple(named[field]) for field in fields})


def parse_plan_groups(document: Unchecked | Json | None) -> HostGroups:
    """Return the groups that a plan has in its document; none for None.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    if document is None:
        return NO_GROUPS
    named: Unchecked = document
    lists = {name: convert_from_json(tuple[str, ...], named[name]) for name in _NAMES}
    groups = HostGroups(**lists)
    is_named = all(map(all, lists.values()))
    # A plan that has lost the names of its groups must not pass for one of the whole cloud.
    if groups.is_empty or not is_named or len(groups.aggregates) != len(groups.aggregate_names):
        raise ValueError("its groups name nothing")
    return groups


# --- single changes


def parse_steps(
    changes: Iterable[tuple[str, str, Unchecked]],
) -> tuple[list[Step], tuple[TreeStep, ...]]:
    """Return the steps that change allocations, and those that delete trees of providers.

    changes: the id and the kind of each finding, with its change as a document.
    Raises InvalidInput as `parse_step` and `parse_tree_step` do.
    """
    steps, removals = [], []
    for finding, kind, document in changes:
        if document["action"] == DELETE_PROVIDERS:
            removals.append(parse_tree_step(finding, kind, document))
        else:
            steps.append(parse_step(finding, kind, document))
    if len({step.subject for step in removals}) < len(removals):
        raise InvalidInput("The plan deletes a provider twice.")
    return steps, tuple(sorted(removals, key=lambda step: step.subject))


def parse_step(finding: str, kind: str, document: Unchecked) -> Step:
    """Return the step whose change `Change.as_dict` returned.

    Raises InvalidInput also when the change cannot resolve the finding.
    """
    return _check_finding(Step(finding, kind, parse_change(document)), of_consumers=True)


def parse_tree_step(finding: str, kind: str, document: Unchecked) -> TreeStep:
    """Return the step whose deletion `ProviderRemoval.as_dict` returned.

    Raises InvalidInput also when the deletion cannot resolve the finding.
    """
    return _check_finding(TreeStep(finding, kind, _parse_removal(document)), of_consumers=False)


def _check_finding(step: AnyStep, of_consumers: bool) -> AnyStep:
    """Return the step. Raises InvalidInput when its change cannot resolve its finding."""
    kinds = {kind.name for kind in CHANGEABLE_KINDS if (kind in CONSUMER_KINDS) == of_consumers}
    if step.kind not in kinds or step.finding != f"{step.kind}/{step.subject}":
        raise InvalidInput(
            f"The change of {step.subject} is for the finding {step.finding!r} of kind "
            f"{step.kind!r}, {explain_unresolvable(step.kind)}"
        )
    return step


def parse_change(document: Unchecked) -> Change:
    """Return the change that `Change.as_dict` returned.

    Raises InvalidInput when parts of it contradict each other, and what Python raises (KeyError,
    TypeError, AttributeError) when it does not have that shape.
    """
    partner = document["partner"]
    consumer, generation = document["consumer"], document["generation"]
    if normalize_uuid(consumer) != consumer:
        raise InvalidInput(f"A change names the consumer {consumer!r}, which is not a UUID.")
    # Both sides carry the generation that guards the write.
    for side in ("before", "after"):
        _check_document(f"The document {side} the change of {consumer}", document[side], generation)
    # A consumer has a generation exactly while it has allocations.
    if (generation is None) != (not document["before"]["allocations"]):
        raise InvalidInput(
            f"The change of {consumer} starts from generation {generation}, which contradicts "
            "its allocations before the change."
        )
    # A partner goes into the same request, so it is checked as strictly.
    partner_change = None
    if partner:
        _check_partner(consumer, partner)
        partner_change = parse_change(partner)
    change = Change(consumer, generation, document["before"], document["after"], partner_change)
    _check_consistency(change, document)
    return change


def _check_partner(consumer: str, partner: Unchecked) -> None:
    if partner["partner"] or partner["consumer"] == consumer:
        raise InvalidInput(
            f"The partner in the change of {consumer} must be one other consumer, without a "
            "partner of its own."
        )


def _check_consistency(change: Change, document: Unchecked) -> None:
    """Raise InvalidInput when the document has anything else than its change would write."""
    # What people review, such as the freed amounts, must be what the documents would do.
    expected = change.as_dict()
    if expected == document:
        return
    wrong = [key for key, value in expected.items() if document.get(key) != value]
    if not wrong:
        wrong = list(set(document) - set(expected))
    raise InvalidInput(
        f"The change of {change.consumer} contradicts itself: {', '.join(sorted(wrong))} "
        "must match its documents."
    )


def _parse_removal(document: Unchecked) -> ProviderRemoval:
    """Return the deletion that `ProviderRemoval.as_dict` returned, or raise InvalidInput."""
    entries = document["providers"]
    uuids = [entry["uuid"] for entry in entries]
    root = uuids[-1] if uuids else ""
    whole = _is_children_first(entries, uuids)
    tree = tuple(_parse_provider(entry, root) for entry in entries)
    removal = ProviderRemoval(tree)
    named = all(normalize_uuid(provider.uuid) == provider.uuid for provider in tree)
    # The order is checked before the depths are: without it the parents may form a circle.
    if (
        not whole
        or not named
        or removal.as_dict() != document
        or sort_children_first(root, tree) != tree
    ):
        raise InvalidInput(
            f"The deletion of provider {root!r} does not list a whole tree, children first."
        )
    return removal


def _is_children_first(entries: Sequence[Unchecked], uuids: list[str]) -> bool:
    """Return whether the last provider has no parent, and each other one has its parent later."""
    if not entries or entries[-1]["parent"] is not None:
        return False
    return all(
        entry["parent"] in uuids[position:] for position, entry in enumerate(entries[:-1], 1)
    )


def _parse_provider(entry: Unchecked, root: str) -> Provider:
    generation = parse_count(entry["generation"])
    return Provider(entry["uuid"], str(entry["name"]), generation, root, entry["parent"])


def _check_document(what: str, body: t.Any, generation: int | None) -> None:
    """Raise InvalidInput unless `body` is a document that Placement could be sent.

    what: the document in words, for the message.
    """
    _check_generation(what, body["consumer_generation"], generation)
    _check_owners(what, body)
    for provider, allocation in body["allocations"].items():
        _check_allocation(what, provider, allocation)


def _check_generation(what: str, of_document: t.Any, of_change: t.Any) -> None:
    # To Python 1.0 and True are 1; Placement would be sent what the document has.
    whole = all(number is None or _is_integer(number) for number in (of_document, of_change))
    if of_document != of_change or not whole:
        raise InvalidInput(
            f"{what} has generation {of_document!r}, and the change has {of_change!r}."
        )


def _check_owners(what: str, body: Unchecked) -> None:
    # Placement refuses a document without an owner, and takes anything that is text for one.
    owners = set(body) - {"allocations", "consumer_generation"}
    names = ", ".join(sorted(owners))
    required = {"project_id", "user_id"}
    if not required <= owners <= {*required, "consumer_type"}:
        raise InvalidInput(
            f"{what} must have project_id and user_id, and may have consumer_type: it has {names}."
        )
    for owner in owners:
        if not isinstance(body[owner], str) or not body[owner]:
            raise InvalidInput(f"{what} must have {names}, each as text that is not empty.")


def _check_allocation(what: str, provider: str, allocation: Unchecked) -> None:
    amounts = allocation["resources"]
    whole = all(_is_integer(amount) and amount > 0 for amount in amounts.values())
    if (
        normalize_uuid(provider) != provider
        or set(allocation) != {"resources"}
        or not amounts
        or not whole
    ):
        shown = ", ".join(f"{amounts[cls]} {cls}" for cls in sorted(amounts)) or "nothing"
        raise InvalidInput(
            f"{what} must have whole amounts above zero on providers named by UUID: it has "
            f"{make_printable(shown, 100)} on {make_printable(provider, 100)}."
        )


def parse_count(value: t.Any) -> int:
    """Return `value`. Raises ValueError when it is not a whole number from zero on."""
    if not _is_integer(value) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return int(value)


def _is_integer(number: t.Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
