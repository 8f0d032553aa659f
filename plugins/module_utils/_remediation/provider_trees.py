# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The deletion of provider trees that no compute node stands behind, each proven anew, journaled and read back."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.provider_state import (
    ProviderStateReader,
)
from ansible_collections.osops.placement.plugins.module_utils._clients.provider_writer import (
    ProviderWriter,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.collector import Collector
from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    CloudError,
    InvalidInput,
    JournalError,
    UnsoundReading,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    FAILED,
    OUTCOME_BY_ACTION,
    SKIPPED,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._plan.limits import (
    MAX_FAILURES,
    explain_abort,
)
from ansible_collections.osops.placement.plugins.module_utils._remediation.remediation import (
    Outcome,
    count_failed,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import judge
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    list_failed_absence_checks,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._plan.steps import TreeStep
    from ansible_collections.osops.placement.plugins.module_utils._remediation.journal import (
        Journal,
    )


class TreeRemover:
    """The last part of a run over a plan; without a journal (check mode) everything is proven and nothing deleted."""

    def __init__(
        self,
        session: Session,
        policy: Policy,
        journal: Journal | None,
        max_failures: int = MAX_FAILURES,
    ) -> None:
        self._reading = Collector(session)
        self._states = ProviderStateReader(session.placement)
        self._writer = ProviderWriter(session.placement)
        self._policy = policy
        self._journal = journal
        self._max_failures = max_failures

    def remove_trees(
        self, steps: Sequence[TreeStep], stopped: Callable[[], str], failed_before: int = 0
    ) -> list[Outcome]:
        """Prove each of `steps` anew and make it, in their order.

        One that cannot be made does not keep the others from being made; a reading that is not sound does, a journal that cannot be
        written, too many failures, and whatever `stopped` says.

        failed_before: how many changes of the run have failed already.
        """
        outcomes: list[Outcome] = []
        for position, step in enumerate(steps):
            if why := stopped() or explain_abort(
                failed_before + count_failed(outcomes), self._max_failures
            ):
                return outcomes + [Outcome(left, SKIPPED, why) for left in steps[position:]]
            try:
                outcomes.append(self._remove_tree(step))
            except (UnsoundReading, JournalError) as error:
                return outcomes + [Outcome(left, FAILED, str(error)) for left in steps[position:]]
            except CloudError as error:
                outcomes.append(Outcome(step, FAILED, str(error)))
            except Exception as error:
                # What was done so far must be told whatever happens, a fault of our own included.
                outcomes.append(
                    Outcome(step, FAILED, f"An unexpected {type(error).__name__}: {error}")
                )
        return outcomes

    def _remove_tree(self, step: TreeStep) -> Outcome:
        if reason := self._find_mismatch(step):
            return Outcome(step, SKIPPED, reason)
        if self._journal is None:
            return Outcome(step, OUTCOME_BY_ACTION[step.change.action])
        details, reason = self._read_states(step)
        if reason:
            return Outcome(step, SKIPPED, reason)
        self._journal.record_before([step], details=details)
        outcome = self._delete_providers(step)
        try:
            self._journal.record_after([outcome])
        except JournalError as error:
            return d.replace(outcome, reason=f"{outcome.reason} {error}".strip())
        return outcome

    def _read_states(self, step: TreeStep) -> tuple[dict[str, t.Any], str]:
        """Return what each provider of the tree has, for the journal: all that is needed to give it back. Or why it is not deleted.

        It must be what the proof saw. Placement does not guard a deletion by the generation, so this is the last look at it.
        """
        details = {}
        for provider in step.change.providers:
            state = self._states.read(provider.uuid)
            if state is None or state.generation != provider.generation:
                return {}, f"Provider {provider.name} changed just now: run again."
            details[provider.uuid] = state.as_dict()
        return details, ""

    def _delete_providers(self, step: TreeStep) -> Outcome:
        try:
            gone, refusal = self._writer.delete_tree(step.change.providers)
        except CloudError as error:
            return Outcome(step, FAILED, str(error), partly=True)
        if not refusal:
            return Outcome(step, OUTCOME_BY_ACTION[step.change.action])
        told = (
            f" {len(gone)} of its {len(step.change.providers)} providers are deleted."
            if gone
            else ""
        )
        return Outcome(step, FAILED, refusal + told, partly=bool(gone))

    def _find_mismatch(self, step: TreeStep) -> str:
        """Say what no longer holds of `step`; nothing when it is proven as it was at detection."""
        try:
            now = self._reading.collect(Scope(hosts=(step.subject,), kinds=(step.kind,)))
        except InvalidInput:
            return "It is gone."
        if closed := list_failed_absence_checks(now):
            raise UnsoundReading(f"Nothing may be deleted now. {' '.join(closed)}")
        finding = next(
            (known for known in judge(now, self._policy) if step.subject == known.subject), None
        )
        if finding is None:
            return "It is no longer found."
        if finding.id != step.finding or finding.change is None:
            return f"It is no longer proven: {finding.reason}"
        if finding.change != step.change:
            return "What would be deleted is no longer what detection proposed."
        return ""
