# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The deletion of provider trees without a compute node.

Each is verified again, journaled and read back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._common.clock import read_monotonic_clock
from ..._common.errors import CloudError, InvalidInput, JournalError, Reason
from ..clients.placement import PlacementReader
from ..clients.provider_state import ProviderStateReader
from ..clients.provider_writer import ProviderWriter
from ..clients.session import Session
from ..facts.index import SnapshotIndex
from ..facts.trees import HIDDEN
from ..judging.engine import judge
from ..models.change import FAILED, OUTCOME_BY_ACTION, SKIPPED
from ..models.codec import Unchecked
from ..models.snapshot import Scope
from ..options.policy import Policy
from ..options.run import FailureOptions
from ..plan.plan import TreeStep
from ..reading.reading import Collector
from .group_check import EVERY_HOST, GroupCheck
from .journal import Journal
from .outcomes import Outcome, require_no_failures, run_steps
from .remediation import MAX_PROOF_AGE, TOO_OLD, add_reason


class TreeRemover:
    """The last part of a run over a plan.

    Without a journal, as in check mode, everything is proven and nothing is deleted.
    """

    def __init__(
        self,
        session: Session,
        policy: Policy,
        journal: Journal | None,
        max_failures: int = FailureOptions.max_failures.default,
        group_check: GroupCheck = EVERY_HOST,
    ) -> None:
        self._group_check = group_check
        self._reading = Collector(session)
        self._placement = PlacementReader(session.placement)
        self._states = ProviderStateReader(session.placement)
        self._writer = ProviderWriter(session.placement)
        self._policy = policy
        self._journal = journal
        self._max_failures = max_failures

    def remove_trees(
        self, steps: Sequence[TreeStep], stopped: Callable[[], Reason], failed_before: int = 0
    ) -> list[Outcome]:
        """Prove each of `steps` again and make it, in their order.

        A step that cannot be made does not keep the others from being made. The run ends early for
        a reading that is not sound, a journal that cannot be written, too many failures, and
        anything that `stopped` returns.

        failed_before: how many changes of the run have failed already.
        """
        return run_steps(
            steps, self._remove_tree, Outcome, stopped, self._max_failures, failed_before
        )

    def _remove_tree(self, step: TreeStep) -> Outcome:
        if reason := self._find_mismatch(step):
            return Outcome(step, SKIPPED, reason)
        if self._journal is None:
            return Outcome(step, OUTCOME_BY_ACTION[step.change.action])
        proven_at = read_monotonic_clock()
        # The journal must have them before the first provider is deleted.
        details, reason = self._read_states(step)
        if reason:
            return Outcome(step, SKIPPED, reason)
        self._journal.record_before([step], details=details)
        # A journal on a network file system can take long.
        outcome = self._find_overtaken(step, proven_at) or self._delete_providers(step)
        try:
            self._journal.record_after([outcome])
        except JournalError as error:
            # What was deleted must be reported as deleted, although the journal lacks its end.
            return add_reason(outcome, error.reason)
        return outcome

    def _read_states(self, step: TreeStep) -> tuple[dict[str, Unchecked], Reason | None]:
        """Return all that the providers of the tree have, or why the tree is not deleted.

        The states go into the journal, and are enough to restore what the providers had.
        Each must be what the proof has seen: Placement does not guard a deletion by the
        generation, so this is the last reading before it.
        """
        details: dict[str, Unchecked] = {}
        for provider in step.change.providers:
            state = self._states.read(provider.uuid)
            if state is None or state.generation != provider.generation:
                return {}, Reason(
                    "provider_just_changed",
                    f"Provider {provider.name} changed just now: run again.",
                )
            # The children would be deleted before Placement refuses to delete their parent.
            if any((self._placement.get_part(provider.uuid, "usages") or {}).values()):
                return {}, HIDDEN
            details[provider.uuid] = state.as_dict()
        return details, None

    def _find_overtaken(self, step: TreeStep, proven_at: float) -> Outcome | None:
        """Return the outcome of a step that must not be made any more, None where it may be.

        proven_at: when its proof ended.
        """
        try:
            _details, reason = self._read_states(step)
        except CloudError as error:
            return Outcome(step, FAILED, error.reason)
        if reason:
            return Outcome(step, SKIPPED, reason)
        if read_monotonic_clock() - proven_at > MAX_PROOF_AGE:
            reason = TOO_OLD.reword(
                f"Its proof was more than {MAX_PROOF_AGE} seconds ago when the journal was "
                "written, and was then too old to rely on."
            )
            return Outcome(step, FAILED, reason)
        return None

    def _delete_providers(self, step: TreeStep) -> Outcome:
        providers = step.change.providers
        try:
            deleted, refusal = self._writer.delete_tree(providers)
        except CloudError as error:
            return Outcome(step, FAILED, error.reason, partly=True)
        if not refusal:
            return Outcome(step, OUTCOME_BY_ACTION[step.change.action])
        # Nothing of the tree is gone yet, so the run has changed nothing.
        if not deleted:
            return Outcome(step, FAILED, refusal)
        progress = f"{len(deleted)} of its {len(providers)} providers were deleted."
        return Outcome(step, FAILED, refusal.extend(progress), partly=True)

    def _find_mismatch(self, step: TreeStep) -> Reason | None:
        """Return what is no longer true of `step`, None when it is proven as at detection."""
        scope = Scope(hosts=(step.subject,), kinds=(step.kind,))
        try:
            index = SnapshotIndex(self._reading.collect(scope))
        # A scope that names what the cloud does not have is not valid.
        except InvalidInput:
            return Reason("tree_gone", "It no longer exists.")
        require_no_failures(index.failed_absence_checks, "Nothing may be deleted now.")
        if reason := self._group_check.explain_provider(step.subject, index.snapshot):
            return reason
        judged = judge(index, self._policy)
        finding = next((finding for finding in judged if finding.subject == step.subject), None)
        if finding is None:
            return Reason("no_longer_found", "It is no longer found.")
        if finding.id != step.finding or finding.change is None:
            return finding.reason.reword(f"It is no longer proven: {finding.reason}")
        if finding.change != step.change:
            return Reason(
                "removal_differs", "What would be deleted is no longer what detection proposed."
            )
        return None
