# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Restores allocations from a journal, as far as Nova bears it out.

What the providers of deleted trees had comes first (`changes.tree_restore`), then the
allocations. Nothing is taken from a consumer or a provider.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import functools
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..._common.errors import CloudError, JournalError, Reason, RecordWithoutAllocations, name_class
from ..clients.allocation_writer import AllocationWriter
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..models.change import (
    BLOCKED,
    FAILED,
    RESTORED,
    SKIPPED,
    AllocationBody,
    Change,
    build_body,
    is_same_allocation,
)
from ..models.nova import (
    COLD_MIGRATION_TYPES,
    FAILED_MIGRATION_STATUSES,
    MOVING_STATUSES,
    SUCCESSFUL_MIGRATION_STATUSES,
    Migration,
    Server,
)
from ..models.placement import Provider
from ..models.snapshot import Answer
from ..options.policy import Policy
from ..options.run import FailureOptions
from ..plan.plan import Step
from .journal import Journal, JournalRecord
from .outcomes import Restoration, conclude_write, run_steps
from .records import TreeRecord, find_changes, find_deleted_trees, select_trees
from .tree_restore import TreeRestorer

OUTCOMES = (RESTORED, SKIPPED, FAILED)


def find_restore_steps(
    records: Sequence[JournalRecord],
    placement_endpoint: str,
    consumers: Collection[str],
    providers: Collection[str],
) -> list[Step | TreeRecord]:
    """Return the changes of a journal to restore.

    Deleted trees come first, then changes of allocations, both the newest first.
    Raises InvalidInput for a journal of another cloud, and for names that are not in it.

    consumers, providers: UUIDs of consumers, and roots by name or UUID. Without any, everything is
    restored; with only consumers no trees are, and with only providers no consumers.
    """
    # Both parts of the journal are checked, also when only one of them is restored.
    trees = select_trees(find_deleted_trees(records, placement_endpoint), providers)
    changes = find_changes(records, placement_endpoint, consumers)
    if consumers and not providers:
        return [*changes]
    if providers and not consumers:
        return [*trees]
    return [*trees, *changes]


@d.dataclass(frozen=True)
class Restorer:
    """Restores each step whose consumers have exactly what it left them, if Nova agrees.

    deleted: the names of the providers that the journal says were deleted, by uuid.
    journal: None in check mode, where nothing is written.
    """

    reader: PlacementReader
    writer: AllocationWriter
    check: RestoreCheck
    trees: TreeRestorer
    deleted: Mapping[str, str]
    journal: Journal | None
    max_failures: int = FailureOptions.max_failures.default

    def restore(
        self, steps: Sequence[Step | TreeRecord], stopped: Callable[[], Reason]
    ) -> list[Restoration]:
        """Restore `steps`, and return the outcome of each.

        A step that cannot be restored does not keep the others from being restored. The run ends
        early for a journal that cannot be written, too many failed requests, and anything that
        `stopped` returns.
        """
        providers = self.reader.list_providers() if steps else {}

        def restore_step(step: Step | TreeRecord) -> Restoration:
            return self._restore_step(step, providers)

        return run_steps(steps, restore_step, Restoration, stopped, self.max_failures)

    def _restore_step(
        self, step: Step | TreeRecord, providers: Mapping[str, Provider]
    ) -> Restoration:
        if isinstance(step, TreeRecord):
            restoration = self._restore_tree(step, providers)
        else:
            restoration = self._restore_change(step, providers)
        if self.journal is not None and restoration.write:
            with contextlib.suppress(JournalError):
                # What was restored must be reported as restored: the module reports a broken
                # journal.
                self.journal.record_after([restoration])
        if restoration.reason.id == name_class(RecordWithoutAllocations):
            # Everything is read again, and the write then has the generation of the record.
            return self._restore_step(step, providers)
        return restoration

    def _restore_tree(self, tree: TreeRecord, providers: Mapping[str, Provider]) -> Restoration:
        named = [known for entry in tree.providers for known in (entry.uuid, entry.name)]
        if why := self.check.explain_exclusion(providers, (), named):
            return Restoration(tree, SKIPPED, why)
        return self.trees.restore_tree(tree, providers)

    def _restore_change(self, step: Step, providers: Mapping[str, Provider]) -> Restoration:
        inverse = invert_change(step.change, self._read_current(step))
        if isinstance(inverse, Reason):
            return Restoration(step, SKIPPED, inverse)
        # Sent all the same, the write would leave an empty record of the consumer in Placement,
        # which prevents every later allocation.
        if missing := sorted(set(inverse.allocates) - set(providers)):
            return self._refuse_without_providers(step, missing, providers)
        written = [part.consumer for part in inverse.parts]
        touched = [uuid for part in inverse.parts for uuid in part.after["allocations"]]
        refusal = self.check.explain_exclusion(
            providers, written, [*touched, *inverse.before["allocations"]]
        )
        # Late, so that little time passes between Nova's answer and the write.
        if refusal := refusal or self.check.explain_refusal(step.kind, inverse, providers):
            return Restoration(step, SKIPPED, refusal)
        if blocked := self.writer.foresee([inverse], self.journal is None)[0]:
            return Restoration(step, BLOCKED, blocked)
        if self.journal is None:
            return Restoration(step, RESTORED, write=inverse)
        self.journal.record_before([Step(step.finding, step.kind, inverse)])
        error: CloudError | None = None
        try:
            # It reads the allocations once more: the journal may have taken long.
            self.writer.replace(inverse)
        except CloudError as raised:
            error = raised
        return Restoration(step, *conclude_write(error, RESTORED), write=inverse)

    def _read_current(self, step: Step) -> dict[str, AllocationBody]:
        """Return the documents that the consumers of `step` have now."""
        consumers = [part.consumer for part in step.change.parts]
        read = {consumer: self.reader.get_allocation(consumer).value for consumer in consumers}
        return {consumer: build_body(held) for consumer, held in read.items() if held}

    def _refuse_without_providers(
        self, step: Step, missing: Sequence[str], providers: Mapping[str, Provider]
    ) -> Restoration:
        """Return the restoration of a step whose providers are `missing` in Placement.

        Those that the journal says were deleted may be created again, and then it can be restored.
        """
        if set(missing) <= set(self.deleted):
            by_name = {provider.name: provider.uuid for provider in providers.values()}
            reasons = [_explain_deletion(uuid, self.deleted[uuid], by_name) for uuid in missing]
            return Restoration(step, SKIPPED, reasons[0].extend(*reasons[1:]))
        reason = Reason(
            "provider_gone",
            f"Provider {', '.join(missing)}, on which it had an allocation, no longer exists.",
        )
        return Restoration(step, FAILED, reason, hopeless=True)


def _explain_deletion(uuid: str, name: str, by_name: Mapping[str, str]) -> Reason:
    """Return why nothing is allocated from a provider that the journal says was deleted."""
    if name in by_name:
        return Reason(
            "provider_replaced",
            f"Provider {name} ({uuid}), on which it had an allocation, was deleted. "
            f"The provider with that name is now {by_name[name]}, "
            "and an allocation on the old provider is not moved to the new one.",
        )
    return Reason(
        "provider_not_recreated",
        f"Provider {name} ({uuid}), on which it had an allocation, was deleted and does not exist: "
        "nova-compute creates it again when it starts; restore again after that.",
    )


def invert_change(change: Change, current: Mapping[str, AllocationBody]) -> Change | Reason:
    """Return the write that restores what was before `change`, or why there is none.

    What a server got is not taken from it, for it may need it by now. A pair is restored as a
    whole: what the server then loses its migration has again, as before, and both are in one
    request. A server that was moved away and back has the same allocation for another reason, which
    `RestoreCheck` finds out.

    current: the documents that the consumers have now, by uuid.
    """
    inverses = []
    for part in reversed(change.parts):
        now = current[part.consumer]
        if is_same_allocation(now, part.before):
            return Reason(
                "nothing_to_restore",
                f"{part.consumer} has the allocations that it had before: "
                "there is nothing to restore.",
            )
        if not is_same_allocation(now, part.after):
            providers = ", ".join(sorted(now["allocations"])) or "no provider"
            return Reason(
                "other_allocations_now",
                f"{part.consumer} now has other allocations, on {providers}.",
            )
        inverses.append(_invert_part(part, now))
    # The first change was inverted last; its partner goes into the same request.
    inverse = inverses.pop()
    if inverses:
        inverse = d.replace(inverse, partner=inverses.pop())
    if inverse.frees:
        freed = ", ".join(sorted(inverse.frees))
        return Reason(
            "would_take_allocation",
            f"To restore it, {change.consumer} would lose its allocations on {freed}, which its "
            "server may need: change them with placement_allocation if you have to.",
        )
    return inverse


def _invert_part(part: Change, now: AllocationBody) -> Change:
    """Return the change of one consumer from `now`, its document, to what it had before `part`."""
    generation = now["consumer_generation"]
    before = now.copy()
    # Placement shows neither project nor user of a consumer without allocations.
    if generation is None:
        before["project_id"] = part.before["project_id"]
        before["user_id"] = part.before["user_id"]
    after = part.before.copy()
    after["consumer_generation"] = generation
    return Change(part.consumer, generation, before, after)


# The kinds of findings about consumers that Nova does not have, or not as a server.
_OF_ABSENT_SERVERS = ("deleted_server", "unknown_consumer")
_OF_MIGRATIONS = ("ended_migration", "deleted_migration")
# After these, a migration has taken its server nowhere.
_HARMLESS_STATUSES = FAILED_MIGRATION_STATUSES | {"cancelled"}


@d.dataclass(frozen=True)
class RestoreCheck:
    """Asks Nova about each consumer that a restoration would give to or take from."""

    nova: NovaReader
    policy: Policy

    def explain_exclusion(
        self, providers: Mapping[str, Provider], consumers: Iterable[str], named: Iterable[str]
    ) -> Reason | None:
        """Return which exclusion forbids to restore something; None if none does.

        named: providers by UUID or name.
        """
        excluded = self._excluded_consumers.intersection(consumers)
        if excluded:
            note = self.policy.get_exclusion_note(excluded)
            return Reason(
                "consumer_excluded",
                f"Consumer {min(excluded)}, or its server, is excluded by name{note}.",
            )
        names = set(named)
        # Excluding one provider of a tree excludes the whole tree.
        trees = {known.root for known in providers.values() if {known.uuid, known.name} & names}
        parts = [known for known in providers.values() if known.root in trees]
        return self.policy.explain_exclusion(
            names.union(*((known.uuid, known.name) for known in parts))
        )

    @functools.cached_property
    def _excluded_consumers(self) -> set[str]:
        """The consumers that are excluded by name, and the migrations of those that are servers."""
        excluded = set(self.policy.exclude_consumers)
        for server in self.policy.exclude_consumers:
            migrations = self.nova.list_migrations_of_server(server).value or ()
            excluded.update(migration.uuid for migration in migrations)
        return excluded

    def explain_refusal(
        self, kind: str, inverse: Change, providers: Mapping[str, Provider]
    ) -> Reason | None:
        """Return why `inverse`, which restores a finding of a kind, is not right; None if it is.

        Raises CloudError where Nova refuses or gives no answer.
        """
        consumer = inverse.consumer
        answer = self.nova.get_server(consumer)
        if answer.value is None and answer.status != 404:
            return Reason(
                "server_unread",
                f"{_describe_answer(answer)}, so it is not known what {consumer} needs.",
            )
        if inverse.partner is not None:
            return self._explain_pair(kind, inverse, inverse.partner, answer.value, providers)
        if answer.value is None:
            return self._explain_absence(kind, consumer)
        if kind in _OF_MIGRATIONS:
            return Reason(
                "server_where_migration_was",
                f"The journal has {consumer} as a migration, and Nova has it as a server.",
            )
        _migrations, why = self._read_migrations(answer.value)
        why = why or _explain_presence(kind, inverse, answer.value, providers)
        return why or _explain_owner(inverse, answer.value)

    def _explain_absence(self, kind: str, consumer: str) -> Reason | None:
        if kind in _OF_ABSENT_SERVERS:
            return None
        if kind in _OF_MIGRATIONS and self.nova.probe_migration_marker(consumer).status == 200:
            return None
        return Reason(
            "consumer_unknown_to_nova",
            f"Nova does not know {consumer}, for which the journal has a finding {kind}.",
        )

    def _read_migrations(self, server: Server) -> tuple[Sequence[Migration], Reason | None]:
        """Return the migrations of a server, and what Nova is doing with it; None for nothing."""
        why = Reason(
            "server_changing",
            f"Nova is changing server {server.uuid}: restore again when it has finished.",
        )
        has_task = server.task_state or not server.task_known
        if has_task or server.status in (*MOVING_STATUSES, "BUILD", "UNKNOWN"):
            return (), why
        answer = self.nova.list_migrations_of_server(server.uuid)
        if answer.value is None:
            return (), Reason(
                "migrations_of_server_unread",
                f"{_describe_answer(answer)}, so its migrations are not known.",
            )
        if not all(migration.ended for migration in answer.value):
            return (), why
        return answer.value, None

    def _explain_pair(
        self,
        kind: str,
        inverse: Change,
        partner: Change,
        server: Server | None,
        providers: Mapping[str, Provider],
    ) -> Reason | None:
        """Return why a server must not give its allocation to its failed migration."""
        if server is None:
            return Reason("server_gone", f"Nova does not have server {inverse.consumer}.")
        migrations, why = self._read_migrations(server)
        if why:
            return why
        move = next((move for move in migrations if move.uuid == partner.consumer), None)
        if move is None or kind != "unreverted_allocation":
            return Reason(
                "migration_not_listed",
                f"Nova lists no migration {partner.consumer} of server {server.uuid}.",
            )
        if move.type not in COLD_MIGRATION_TYPES or move.status in SUCCESSFUL_MIGRATION_STATUSES:
            return Reason(
                "migration_did_not_fail",
                f"Migration {move.uuid} did not fail: it is a {move.type} and {move.status}.",
            )
        later = self._find_later_move(server, move, migrations)
        if later:
            return Reason("moved_since", f"Server {server.uuid} was moved again since ({later}).")
        if not inverse.after["allocations"]:
            return Reason(
                "left_without_allocation",
                f"Server {server.uuid} would be left without an allocation.",
            )
        lost = _name_hosts(inverse.before["allocations"], inverse.after["allocations"], providers)
        gained = _name_hosts(inverse.after["allocations"], inverse.before["allocations"], providers)
        if lost != {move.source_node} or gained != {move.dest_node} or server.node not in lost:
            return Reason(
                "other_hosts_in_journal",
                f"Migration {move.uuid} was from {move.source_node} to {move.dest_node}, "
                f"and server {server.uuid} is on {server.node}: the journal has other hosts.",
            )
        if any(_name_hosts({uuid: 0}, {}, providers) <= lost for uuid in inverse.allocates):
            return Reason(
                "migration_would_get_more",
                f"Migration {move.uuid} would get more than server {server.uuid} has.",
            )
        return None

    def _find_later_move(
        self, server: Server, move: Migration, migrations: Iterable[Migration]
    ) -> str:
        """Return what has moved a server since `move`, by Nova; empty for nothing."""
        for other in migrations:
            is_later = not (other.created_at and move.created_at)
            is_later = is_later or str(other.created_at) >= str(move.created_at)
            if other != move and is_later and other.status not in _HARMLESS_STATUSES:
                return f"{other.type} {other.uuid}"
        # An unshelve claims anew, and is no migration.
        answer = self.nova.list_instance_actions(server.uuid)
        if answer.value is None:
            return _describe_answer(answer)
        for action in answer.value:
            if action.action == "unshelve" and str(action.start_time) >= str(move.created_at):
                return "unshelve"
        return ""


def _describe_answer(answer: Answer[t.Any]) -> str:
    return f"Nova answered {answer.status} to {answer.request}"


def _explain_owner(inverse: Change, server: Server) -> Reason | None:
    """Return why the owner is not that of a live server; empty if it is, or is to stay."""
    owner = (inverse.after["project_id"], inverse.after["user_id"])
    known = [(server.project, server.user)]
    if inverse.generation is not None:
        known.append((inverse.before["project_id"], inverse.before["user_id"]))
    # Also for `wrong_owner`: anybody can write down whose allocation it was.
    if owner in known:
        return None
    return Reason(
        "other_owner_in_journal",
        f"The journal has another project or user than server {server.uuid} has.",
    )


def _explain_presence(
    kind: str, inverse: Change, server: Server, providers: Mapping[str, Provider]
) -> Reason | None:
    """Return why a kind about absent servers does not fit to a live one; empty if it does."""
    allocations = inverse.after["allocations"].items()
    hosts = {uuid: share for uuid, share in allocations if not providers[uuid].sharing}
    # What was removed in error is on its own host.
    if kind not in _OF_ABSENT_SERVERS or _name_hosts(hosts, (), providers) == {server.node}:
        return None
    return Reason(
        "server_exists",
        f"The journal has {server.uuid} as {kind}, and Nova has it on {server.node}.",
    )


def _name_hosts(
    allocations: Mapping[str, t.Any], others: Iterable[str], providers: Mapping[str, Provider]
) -> set[str | None]:
    """Return the names of the roots that only `allocations` are on, and not `others`."""
    roots = {providers[uuid].root for uuid in set(allocations) - set(others)}
    return {providers[root].name for root in roots}
