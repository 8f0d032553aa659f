# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The only code that writes allocations.

Every write is a `POST /allocations` that carries, for each of its consumers, the generation under which it was judged: Placement
refuses it as a whole when any of them moved. `DELETE /allocations/{consumer}` has no such guard and is never used.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    AllocationConflict,
    CloudError,
    ProofExpired,
    WriteRefused,
)
from ansible_collections.osops.placement.plugins.module_utils._common.parallel import map_parallel
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    build_body,
    is_same_allocation,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.api import Api
    from ansible_collections.osops.placement.plugins.module_utils._models.change import Change

# Up to 1.37 a consumer keeps the type that it has, or has none; from 1.38 on a type must be given and `find_unknown_names` is refused.
_KEEPING_TYPES = "1.28"
_SETTING_TYPES = "1.38"

# So many seconds after the first attempt none is begun any more: what is left has to be proven anew.
_PROOF_SECONDS = 5.0
_PAUSE = 0.5
_RETRYABLE_STATUSES = (408, 429)


class AllocationWriter:
    """Writes whole documents of consumers and reads them back. Raises CloudError for a Placement that cannot guard a write."""

    def __init__(self, api: Api) -> None:
        api.require_microversion(1, 28)
        self._api = api
        self._reader = PlacementReader(api)

    def replace(self, change: Change) -> None:
        """Make one change, and read it back.

        Raises AllocationConflict when the consumer does not hold exactly what the change starts from, CloudError when it does not
        hold what it ends with.
        """
        for moved in self.find_conflicts([change]).values():
            raise moved
        for error in self.write([change]):
            if error is not None:
                raise error

    def find_conflicts(self, changes: Sequence[Change]) -> dict[str, AllocationConflict]:
        """Return, by consumer, those of `changes` that do not start from what is held now.

        The generation alone would not tell: a consumer that was emptied begins again at 1, and can come back to the same number
        with something else. Raises CloudError when that cannot be read.
        """
        parts = [(change, part) for change in changes for part in change.parts]
        held = map_parallel(self._get_document, [part.consumer for _change, part in parts])
        return {
            change.consumer: AllocationConflict(
                f"Consumer {part.consumer} changed just now: it no longer holds what it was judged by."
            )
            for (change, part), now in zip(parts, held, strict=True)
            if now["consumer_generation"] != part.generation
            or not is_same_allocation(now, part.before)
        }

    def write(self, changes: Sequence[Change]) -> list[CloudError | None]:
        """Make all `changes`, at best in one request, and return for each why it was not made, None where it was read back.

        One that is refused does not keep the others from being made: the request is then taken apart.
        """
        until = time.monotonic() + _PROOF_SECONDS
        versions = {_choose_microversion(change) for change in changes}
        if len(versions) > 1:
            return [self._write_alone(change, until) for change in changes]
        return self._write_batch(changes, versions.pop(), until) if changes else []

    def _write_batch(
        self, batch: Sequence[Change], version: str, until: float
    ) -> list[CloudError | None]:
        refusal, doubt = self._send(batch, version), None
        while refusal is not None and not isinstance(refusal, WriteRefused):
            # It may have taken effect all the same. A second one is harmless, for the first changes the generations.
            doubt = refusal
            time.sleep(_PAUSE)
            if time.monotonic() > until or not self._is_unchanged(batch):
                break
            refusal = self._send(batch, version)
        if isinstance(refusal, WriteRefused) and doubt is None:
            return (
                [refusal]
                if len(batch) == 1
                else [self._write_alone(change, until) for change in batch]
            )
        # A second one can be refused because the first has taken effect.
        return map_parallel(lambda change: self._read_back(change, refusal and doubt), batch)

    def _write_alone(self, change: Change, until: float) -> CloudError | None:
        """Make one of several changes that could not be made together: others took their time, so look at it once more."""
        if time.monotonic() > until:
            return ProofExpired(
                f"Placement took too long over others: {change.consumer} has to be proven again, so run again."
            )
        try:
            moved = self.find_conflicts([change])
        except CloudError as error:
            return error
        return (
            moved.get(change.consumer)
            or self._write_batch([change], _choose_microversion(change), until)[0]
        )

    def _send(self, batch: Sequence[Change], version: str) -> CloudError | None:
        parts = [part for change in batch for part in change.parts]
        body = {part.consumer: _build_body(part, version) for part in parts}
        what = f"to change the allocation of {parts[0].consumer}" + (
            f" and {len(parts) - 1} more" if len(parts) > 1 else ""
        )
        try:
            reply = self._api.write("POST", "/allocations", version, body)
        except CloudError as error:
            return error
        if reply.status == 409 and reply.code == "placement.concurrent_update":
            return AllocationConflict(f"Placement refused {what}: {reply.detail}")
        try:
            self._api.expect(reply, what, 204)
        except CloudError as error:
            return (
                WriteRefused(str(error))
                if 400 <= reply.status < 500 and reply.status not in _RETRYABLE_STATUSES
                else error
            )
        return None

    def _is_unchanged(self, batch: Sequence[Change]) -> bool:
        try:
            return not self.find_conflicts(batch)
        except CloudError:
            return False

    def _read_back(self, change: Change, refusal: CloudError | None) -> CloudError | None:
        try:
            made = all(
                is_same_allocation(self._get_document(part.consumer), part.after)
                for part in change.parts
            )
        except CloudError as error:
            unknown = f"Whether {change.consumer} was changed is not known, for it could not be read back: {error}"
            return CloudError(f"{refusal or ''} {unknown}".strip())
        if made:
            return None
        return refusal or CloudError(
            f"Placement accepted the change of {change.consumer}, but reading it back shows something else."
        )

    def _get_document(self, consumer: str) -> dict[str, t.Any]:
        allocation = self._reader.get_allocation(consumer).value
        if allocation is None:
            raise CloudError(f"Placement did not say what {consumer} holds.")
        return build_body(allocation)


def _choose_microversion(change: Change) -> str:
    """Return the microversion that leaves the consumer with the type of the change: one that has it keeps it unasked."""
    sets = any(
        part.after["allocations"]
        and part.after.get("consumer_type") != part.before.get("consumer_type")
        for part in change.parts
    )
    return _SETTING_TYPES if sets else _KEEPING_TYPES


def _build_body(part: Change, version: str) -> dict[str, t.Any]:
    return {
        key: value
        for key, value in part.after.items()
        if key != "consumer_type" or version == _SETTING_TYPES
    }
