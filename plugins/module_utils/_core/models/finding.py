# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conclusions: the decision of one rule, and the finding that it becomes."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..._common.errors import Reason
from .nova import Migration, Server, Service
from .placement import Allocation
from .snapshot import NOT_ASKED, Answer

if t.TYPE_CHECKING:  # pragma: no cover
    from .change import Amounts, Change, ProviderRemoval
    from .kind import Kind

ORPHANED = "orphaned"
DRIFTED = "drifted"
PROTECTED = "protected"
UNDECIDED = "undecided"


@d.dataclass(frozen=True)
class Decision:
    """A verdict, its reason, and the answers on which it rests.

    freed_providers: of an orphan, the providers whose allocations are removed; empty stands for
        all of the consumer's.
    change: of a drifted allocation, the write that would correct it.
    server, migration: what the decision is about, where that is not the consumer's own.
    """

    verdict: str
    reason: Reason
    evidence: tuple[Answer[t.Any], ...]
    freed_providers: frozenset[str] = frozenset()
    change: Change | None = None
    server: Server | None = None
    migration: Migration | None = None


def orphaned(reason: Reason, *evidence: Answer[t.Any], **about: t.Any) -> Decision:
    """Return the decision that an allocation or provider is an orphan.

    about: more fields of the decision, such as `freed_providers`.
    """
    return Decision(ORPHANED, reason, _skip_unasked(evidence), **about)


def drifted(
    reason: Reason, *evidence: Answer[t.Any], change: Change | None = None, **about: t.Any
) -> Decision:
    """Return the decision that something is not as it should be, with the change that corrects it.

    about: more fields of the decision, such as `server`.
    """
    return Decision(DRIFTED, reason, _skip_unasked(evidence), change=change, **about)


def protected(reason: Reason, *evidence: Answer[t.Any]) -> Decision:
    """Return the decision that something must not be changed."""
    return Decision(PROTECTED, reason, _skip_unasked(evidence))


def undecided(reason: Reason, *evidence: Answer[t.Any]) -> Decision:
    """Return the decision that nothing could be proven."""
    return Decision(UNDECIDED, reason, _skip_unasked(evidence))


@d.dataclass(frozen=True)
class Finding:
    """A verdict on one consumer, or on something else of the cloud, with all that proves it.

    subject: the uuid of the consumer, provider, server or migration that the finding is about, or
        the name of a service's host.
    allocation: what the consumer has; None for a finding that is not about a consumer.
    providers: uuids of the providers that a finding without an allocation is about.
    commands: what an operator may paste into a shell to fix it, in this order. Names of the cloud
        are quoted in them (`_common.shell`).
    """

    kind: str
    verdict: str
    subject: str
    reason: Reason
    allocation: Allocation | None = None
    server: Server | None = None
    migration: Migration | None = None
    service: Service | None = None
    providers: tuple[str, ...] = ()
    evidence: tuple[Answer[t.Any], ...] = ()
    change: Change | ProviderRemoval | None = None
    freed_providers: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()

    @property
    def consumer(self) -> str | None:
        """The uuid of the consumer that the finding is about; None when it is not about one."""
        return self.allocation.consumer if self.allocation else None

    @property
    def owner(self) -> str | None:
        """The project of the server; that of the allocation where Nova has no such server."""
        if self.server and self.server.project:
            return self.server.project
        return self.allocation.project if self.allocation else None

    @property
    def frees(self) -> Amounts:
        """What the change would free, by provider and resource class; empty without a change."""
        return self.change.frees if self.change else {}

    @property
    def id(self) -> str:
        """The id of the finding in `findings.json`."""
        return f"{self.kind}/{self.subject}"


def report(
    kind: Kind, subject: str, reason: Reason, *evidence: Answer[t.Any], **about: t.Any
) -> Finding:
    """Return the finding that something is not as it should be, which nothing here corrects.

    about: more fields of the finding, such as `providers`.
    """
    return Finding(kind.name, DRIFTED, subject, reason, evidence=evidence, **about)


def _skip_unasked(evidence: tuple[Answer[t.Any], ...]) -> tuple[Answer[t.Any], ...]:
    return tuple(answer for answer in evidence if answer != NOT_ASKED)
