# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The errors that our own code raises; `_common.runner.run_offline` turns them into `fail_json`."""

from __future__ import annotations

import re

# The user and the password in an address.
_CREDENTIALS = re.compile(r"(?<=://)[^\s'\"<>]*@")


def hide_credentials(text: str) -> str:
    """Return an address, or a text with addresses, without the users and passwords in them."""
    return _CREDENTIALS.sub("", text)


def describe_form_error(error: Exception) -> str:
    """Return what is wrong with a document, by the error of the code that reads it."""
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, ValueError) and str(error):
        return str(error)
    # Python's own words are about the code, and not about the document.
    return "a value in it has another type"


class PlacementToolsError(Exception):
    """One sentence for an operator: what went wrong, where, and what to do."""

    def __str__(self) -> str:
        # Libraries repeat the address of a service as it was configured.
        return hide_credentials(super().__str__())


class CloudError(PlacementToolsError):
    """The cloud could not be reached, refused a request, or gave an answer that cannot be used."""


class MalformedResponse(CloudError):
    """An answer is truncated or does not come from the API: repeating the request may help."""


class WriteRefused(CloudError):
    """A service refused a write, which certainly did not take effect."""


class AllocationConflict(WriteRefused):
    """A write was refused because a consumer is not, or no longer, as the writer expects it."""


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

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message)
        self.count = count


class NotApproved(PlacementToolsError):
    """A change is not, or no longer, the one that was approved."""


class JournalError(PlacementToolsError):
    """The journal could not be written; the change that it should record must not be made."""


class InvalidInput(PlacementToolsError):
    """An option or a file that the user gave cannot be used."""
