# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only code that writes allocations.

Every write is a `POST /allocations` that carries, for each of its consumers, the generation under
which it was judged: Placement refuses it as a whole when any of them moved.
`DELETE /allocations/{consumer}` has no such guard and is never used.
"""

from __future__ import annotations

import re
import time
import typing as t
from collections.abc import Sequence

from ..._common.clock import read_back, read_monotonic_clock
from ..._common.errors import (
    AllocationConflict,
    CapacityRefused,
    CloudError,
    ProofExpired,
    Reason,
    RecordWithoutAllocations,
    WriteRefused,
)
from ..._common.parallel import map_parallel
from ..models.change import Change, build_body, is_same_allocation
from .api import Api
from .capacity import CapacityCheck
from .placement import PlacementReader

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.change import AllocationBody

# Up to 1.37 a consumer keeps the type that it has, or has none; from 1.38 on a write must name a
# type, and Placement refuses `unknown`.
_KEEPING_TYPES = "1.28"
_SETTING_TYPES = "1.38"

# After so many seconds no other attempt begins, because the remaining changes have to be proven
# again.
_PROOF_SECONDS = 5.0
_PAUSE = 0.5
# What Placement says in its `handlers/util.py`; other conflicts have the same error code.
_CONSUMER_CONFLICT = "consumer generation conflict"
_RECORD_CONFLICT = re.compile(rf"{_CONSUMER_CONFLICT} - expected (\d+) but got None")
_NO_CAPACITY = "Unable to allocate inventory"
# Client errors after which the same write may still succeed.
_RETRYABLE_STATUSES = (408, 429)


class AllocationWriter:
    """Writes whole documents of consumers and reads them back.

    Raises CloudError for a Placement that cannot guard a write.
    """

    def __init__(self, api: Api) -> None:
        api.require_microversion(1, 28)
        self._api = api
        self._reader = PlacementReader(api)
        self._capacity = CapacityCheck(self._reader)
        # Of records without allocations, which no answer but a refusal shows; by consumer.
        self._generations: dict[str, int] = {}

    def replace(self, change: Change) -> None:
        """Make one change, and read it back.

        Raises AllocationConflict when the consumer's allocation is not exactly what the change
        starts from, CloudError when it is not what the change ends with.
        """
        for conflict in self.find_conflicts([change]).values():
            raise conflict
        for error in self.write([change]):
            if error is not None:
                raise error

    def find_conflicts(self, changes: Sequence[Change]) -> dict[str, AllocationConflict]:
        """Return, by consumer, those of `changes` that do not start from the current allocations.

        The generation alone does not prove it: a consumer that was emptied begins again at 1, and
        can come back to the same number with another allocation. Raises CloudError when an
        allocation cannot be read.
        """
        parts = [(change, part) for change in changes for part in change.parts]
        consumers = [part.consumer for _change, part in parts]
        documents = map_parallel(self._get_document, consumers)
        conflicts = {}
        for (change, part), document in zip(parts, documents, strict=True):
            has_generation = document["consumer_generation"] == part.generation
            if not has_generation or not is_same_allocation(document, part.before):
                conflicts[change.consumer] = AllocationConflict(
                    f"Consumer {part.consumer} has just changed: it no longer has the "
                    "allocation that was judged."
                )
        return conflicts

    def foresee(self, changes: Sequence[Change], check_mode: bool) -> list[Reason | None]:
        """Return of each change why Placement refuses it for its capacity, None if it does not.

        See `CapacityCheck.foresee`.
        """
        return self._capacity.foresee(changes, check_mode)

    def write(self, changes: Sequence[Change]) -> list[CloudError | None]:
        """Make all `changes`, at best in one request.

        Return for each why it was not made, None where it was read back. A change that is refused
        does not keep the others from being made: the request is then taken apart.
        """
        if not changes:
            return []
        until = read_monotonic_clock() + _PROOF_SECONDS
        versions = {_choose_microversion(change) for change in changes}
        if len(versions) > 1:
            return [self._write_alone(change, until, False) for change in changes]
        return self._write_batch(changes, versions.pop(), until)

    def _write_batch(
        self, batch: Sequence[Change], version: str, until: float
    ) -> list[CloudError | None]:
        doubt: CloudError | None = None
        refusal = self._send(batch, version)
        while refusal is not None and not isinstance(refusal, WriteRefused):
            # The write may have taken effect. A second one does no harm, because the first has
            # changed the generations.
            doubt = refusal
            time.sleep(_PAUSE)
            if read_monotonic_clock() > until or not self._is_unchanged(batch):
                break
            refusal = self._send(batch, version)
        if isinstance(refusal, WriteRefused) and doubt is None:
            has_conflict = isinstance(refusal, AllocationConflict)
            if len(batch) == 1:
                return [self._explain_refusal(batch[0], refusal)]
            if has_conflict and self._is_batch_made(batch):
                return [None] * len(batch)
            had_effect = has_conflict and self._may_have_had_effect(batch)
            return [self._write_alone(change, until, had_effect) for change in batch]
        if refusal is None:
            doubt = None
        # The second write may be refused because the first took effect, so the first error counts.
        return map_parallel(lambda change: self._read_back(change, doubt), batch)

    def _write_alone(self, change: Change, until: float, had_effect: bool) -> CloudError | None:
        """Make one of several changes that could not be made together.

        The others took their time, so the allocation is read once more before the write.

        had_effect: whether the request with all changes may have had an effect.
        """
        if read_monotonic_clock() > until:
            return ProofExpired(
                "Placement took too long for other changes, and "
                f"{change.consumer} has to be proven again: run again."
            )
        try:
            conflicts = self.find_conflicts([change])
            is_made = bool(conflicts) and self._is_made(change)
        except CloudError as error:
            return error
        if is_made and had_effect:
            return _doubt_who_made(change)
        if is_made:
            return AllocationConflict(
                f"Consumer {change.consumer} has just changed: it already has what was to be "
                "written."
            )
        if change.consumer in conflicts:
            return conflicts[change.consumer]
        return self._write_batch([change], _choose_microversion(change), until)[0]

    def _send(self, batch: Sequence[Change], version: str) -> CloudError | None:
        parts = [part for change in batch for part in change.parts]
        body = {part.consumer: self._build_body(part, version) for part in parts}
        what = f"to change the allocation of {parts[0].consumer}"
        if len(parts) > 1:
            what += f" and {len(parts) - 1} more"
        try:
            reply = self._api.write("POST", "/allocations", version, body)
        except CloudError as error:
            return error
        except MemoryError:
            # Placement may have made the change by now, so it is read back as after a lost answer.
            return CloudError(f"No memory was left when Placement was asked {what}.")
        if reply.status == 409 and reply.code == "placement.concurrent_update":
            return AllocationConflict(f"Placement refused {what}: {reply.detail}")
        if reply.status == 409 and reply.is_service_error and _NO_CAPACITY in reply.detail:
            return CapacityRefused(f"Placement refused {what}: {reply.detail}")
        try:
            self._api.expect(reply, what, 204)
        except CloudError as error:
            # After a client error of Placement it is sure that the write took no effect. A proxy
            # may answer with one although Placement made the write.
            is_refusal = 400 <= reply.status < 500 and reply.status not in _RETRYABLE_STATUSES
            if is_refusal and reply.is_service_error:
                return WriteRefused(str(error))
            return error
        return None

    def _explain_refusal(self, change: Change, refusal: WriteRefused) -> CloudError:
        """Return why one change was refused, or that it is unknown whether this run made it.

        A proxy may have sent the request twice, and a cache may then answer with what was there
        before both. A conflict of a provider's generation contradicts nothing, nor does that of a
        record without allocations, whose generation no answer has.
        """
        if isinstance(refusal, CapacityRefused):
            return self._capacity.explain(change, refusal)
        if not isinstance(refusal, AllocationConflict):
            return refusal
        if self._is_batch_made([change]):
            return _doubt_who_made(change)
        if _CONSUMER_CONFLICT not in str(refusal) or not self._is_unchanged([change]):
            return refusal
        if any(part.consumer in self._generations for part in change.parts):
            return refusal
        record = _RECORD_CONFLICT.search(str(refusal))
        empty = [part.consumer for part in change.parts if part.generation is None]
        if record and len(empty) == 1:
            return self._explain_record(empty[0], int(record[1]))
        return CloudError(
            f"It is unknown whether {change.consumer} was changed: Placement refused the change "
            "because the consumer had changed, and then returned it unchanged. Check whether a "
            "proxy or a cache answers for Placement, then run again."
        )

    def _explain_record(self, consumer: str, generation: int) -> CloudError:
        """Return that a consumer without allocations has a record at a generation.

        A failed write or a deletion by hand leaves such a record. The next write of this consumer
        has its generation: the caller proves the change again before it.
        """
        # From then on it had allocations. Where the record of its project or user is missing, it
        # still has them, and no answer shows them.
        if generation and (provider := self._find_hidden_use()):
            return AllocationConflict(
                "hidden_allocation_possible",
                f"Placement has a record of {consumer} and shows no allocations of it, but more is "
                f"in use on provider {provider} than its consumers have. That may be the "
                "allocation of this consumer, so it is not replaced.",
            )
        self._generations[consumer] = generation
        return RecordWithoutAllocations(
            f"Placement has a record of {consumer} without allocations, at generation {generation}."
        )

    def _find_hidden_use(self) -> str | None:
        """Return a provider with more in use than its consumers have, or that cannot be read.

        None if there is none.
        """
        providers = list(self._reader.list_providers())
        totals = zip(providers, map_parallel(self._reader.query_totals, providers), strict=True)
        read = ((uuid, answer) for uuid, answer in totals if answer.status != 404)
        doubtful = (one for one, answer in read if answer.value is None or answer.value.hidden)
        return min(doubtful, default=None)

    def _build_body(self, part: Change, version: str) -> AllocationBody:
        body = part.after.copy()
        if part.generation is None:
            body["consumer_generation"] = self._generations.get(part.consumer)
        if version != _SETTING_TYPES:
            body.pop("consumer_type", None)
        return body

    def _may_have_had_effect(self, batch: Sequence[Change]) -> bool:
        """Return whether Placement may have made the changes of a request that it refused.

        It makes all changes of a request or none, so one consumer without its change shows that it
        made none.
        """
        try:
            return len(self.find_conflicts(batch)) == len(batch)
        except CloudError:
            return True

    def _is_unchanged(self, batch: Sequence[Change]) -> bool:
        try:
            return not self.find_conflicts(batch)
        except CloudError:
            return False

    def _read_back(self, change: Change, refusal: CloudError | None) -> CloudError | None:
        try:
            is_made = read_back(lambda: self._is_made(change), bool, refusal is None)
        except CloudError as error:
            return CloudError(
                f"It is unknown whether {change.consumer} was changed, because it could not be "
                f"read back: {error}"
            )
        if is_made:
            return None
        if refusal is not None and self._is_unchanged([change]):
            return CloudError(f"{refusal} The change may still take effect.")
        if refusal is not None:
            return CloudError(
                f"It is unknown whether {change.consumer} was changed, because it then had neither "
                f"its former allocations nor those that were to be written. {refusal}"
            )
        return CloudError(
            f"Placement accepted the change of {change.consumer}, but then returned other "
            "allocations: read the consumer and check what else changes it."
        )

    def _is_batch_made(self, batch: Sequence[Change]) -> bool:
        """Return whether every change of a refused request is made all the same.

        A proxy that lost the answer sends the request again: the first one took effect, and
        Placement refuses the second one for its generations. Placement makes all changes of a
        request or none, so each of them has to be made.
        """
        try:
            return all(map_parallel(self._is_made, batch))
        except CloudError:
            return False

    def _is_made(self, change: Change) -> bool:
        return all(
            is_same_allocation(self._get_document(part.consumer), part.after)
            for part in change.parts
        )

    def _get_document(self, consumer: str) -> AllocationBody:
        allocation = self._reader.get_allocation(consumer).value
        if allocation is None:
            raise CloudError(f"Placement did not return the allocations of {consumer}: run again.")
        return build_body(allocation)


def _doubt_who_made(change: Change) -> CloudError:
    """Return the error of a refused change that is made all the same.

    It is no conflict, so that the journal can restore it.
    """
    return CloudError(
        f"It is unknown whether this run changed {change.consumer}: Placement refused the change, "
        "and the consumer already has what was to be written, from somebody else or from a proxy "
        "that sent the request twice. The journal can restore it."
    )


def _choose_microversion(change: Change) -> str:
    """Return the microversion that leaves the consumer with the type of the change.

    A consumer that has the type already keeps it without being asked.
    """
    return _SETTING_TYPES if any(map(_sets_type, change.parts)) else _KEEPING_TYPES


def _sets_type(part: Change) -> bool:
    """Return whether an allocation gets a type that it does not have; an empty one has none."""
    if not part.after["allocations"]:
        return False
    return bool(part.after.get("consumer_type") != part.before.get("consumer_type"))
