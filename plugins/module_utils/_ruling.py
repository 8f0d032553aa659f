# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What a rule concludes of one case."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._model import NOT_ASKED

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._model import Answer, Migration, Server

ORPHANED = "orphaned"
PROTECTED = "protected"
UNDECIDED = "undecided"


@d.dataclass(frozen=True)
class Ruling:
    """A verdict, why, and the answers that it rests on.

    drops: of an orphan, the providers whose shares go; empty stands for the whole consumer.
    server, migration: whom it is about, where that is not the case's own.
    """

    verdict: str
    reason: str
    evidence: tuple[Answer[t.Any], ...]
    drops: frozenset[str] = frozenset()
    server: Server | None = None
    migration: Migration | None = None


def orphaned(reason: str, *evidence: Answer[t.Any], **about: t.Any) -> Ruling:
    return Ruling(ORPHANED, reason, _asked(evidence), **about)


def protected(reason: str, *evidence: Answer[t.Any]) -> Ruling:
    return Ruling(PROTECTED, reason, _asked(evidence))


def undecided(reason: str, *evidence: Answer[t.Any]) -> Ruling:
    return Ruling(UNDECIDED, reason, _asked(evidence))


def _asked(evidence: tuple[Answer[t.Any], ...]) -> tuple[Answer[t.Any], ...]:
    return tuple(answer for answer in evidence if answer != NOT_ASKED)
