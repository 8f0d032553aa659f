# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sentences for an operator, each with an ID: reasons, and the errors that our own code raises.

`_common.context.Task` turns errors into failures. docs/reasons.md lists all IDs.
"""

from __future__ import annotations

import re

# The user and the password in an address.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"<>]*@")


def hide_credentials(text: str) -> str:
    """Return an address, or a text with addresses, without the users and passwords in them."""
    return _CREDENTIALS.sub("", text)


def name_class(error: type[Exception]) -> str:
    """Return the ID of an error that was raised without one: its class in snake_case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).lower()


def describe_form_error(error: Exception) -> str:
    """Return what is wrong with a document, by the error of the code that reads it."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, ValueError) and str(error):
        return str(error)
    # Python's own words are about the code, and not about the document.
    return "a value in it has another type"


class Reason(str):
    """A sentence or a part of one, with the ID of what it says.

    Programs tell reasons apart by their IDs, which stay when the words change. In the code each ID
    is written down once, beside its words.
    """

    id: str

    def __new__(cls, identity: str, text: str) -> Reason:
        reason = super().__new__(cls, text)
        reason.id = identity
        return reason

    def __reduce__(self) -> tuple[type[Reason], tuple[str, str]]:
        return (Reason, (self.id, str(self)))

    def reword(self, text: str) -> Reason:
        """Return the same reason in other words, such as the whole sentence around it."""
        return Reason(self.id, text)

    def extend(self, *sentences: str) -> Reason:
        """Return the reason with more sentences after it; empty ones are left out."""
        return self.reword(" ".join(filter(None, (self, *sentences))))

    def but(self, doubt: Reason) -> Reason:
        """Return the sentence with what speaks against it, and the ID of the latter."""
        return doubt.reword(f"{self} But {doubt.removesuffix('.')}.")


NO_REASON = Reason("", "")


class PlacementToolsError(Exception):
    """One sentence for an operator: what went wrong, where, and what to do.

    It is raised with a reason, with the ID and the words of one, or with words alone.
    """

    def __str__(self) -> str:
        # Libraries repeat the address of a service as it was configured.
        return hide_credentials(str(self.args[-1]))

    @property
    def reason(self) -> Reason:
        """The sentence with its ID: that of the reason it was raised with, or of its class."""
        identity = name_class(type(self)) if len(self.args) == 1 else self.args[0]
        if isinstance(self.args[0], Reason):
            identity = self.args[0].id
        return Reason(identity, str(self))


class CloudError(PlacementToolsError):
    """The cloud could not be reached, refused a request, or gave an answer that cannot be used."""


class MalformedResponse(CloudError):
    """An answer is truncated or does not come from the API: repeating the request may help."""


class WriteRefused(CloudError):
    """A service refused a write, which certainly did not take effect."""


class AllocationConflict(WriteRefused):
    """A write was refused because a consumer is not, or no longer, as the writer expects it."""


class RecordWithoutAllocations(AllocationConflict):
    """A write was refused because Placement has a record of a consumer that has no allocations."""


class CapacityRefused(WriteRefused):
    """A write was refused because the inventory of a provider does not allow the amounts."""


class ProofExpired(AllocationConflict):
    """A write was not sent, because other writes took so long that its proof is too old."""


class ProviderConflict(WriteRefused):
    """A write was refused because a provider has changed since it was read."""


class HostError(PlacementToolsError):
    """Something on a hypervisor could not be read or done, or is not as a step requires."""


class UnsoundReading(PlacementToolsError):
    """The reading as a whole is not sound enough for a change: a cell is dead, for example."""


class BreakerTripped(PlacementToolsError):
    """A run would make `count` changes, which is more than its limits allow."""

    def __init__(self, identity: str, message: str, count: int) -> None:
        super().__init__(identity, message)
        self.count = count


class JournalError(PlacementToolsError):
    """The journal could not be written; the change that it should record must not be made."""


class InvalidInput(PlacementToolsError):
    """An option or a file that the user gave cannot be used."""
