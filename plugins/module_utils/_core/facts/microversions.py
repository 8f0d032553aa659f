# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which proofs a cloud cannot give because its services are older than they need. Pure."""

from __future__ import annotations

from ..._common.errors import Reason
from ..models.kinds import KINDS
from ..models.snapshot import Cloud
from .soundness import REQUIREMENTS_OF_ALL, explain_unmet

# Each with the kind that is not proven without it; None stands for any kind.
REQUIREMENTS = (
    *((requirement, None) for requirement in REQUIREMENTS_OF_ALL),
    *((kind.version, kind.name) for kind in KINDS if kind.version is not None),
)


def list_unmet_requirements(cloud: Cloud) -> tuple[Reason, ...]:
    """Return a sentence for each proof that `cloud` cannot give."""
    sentences = []
    for requirement, kind in REQUIREMENTS:
        sentences.append(explain_unmet(requirement, cloud, kind or "everything"))
    if not cloud.tells_time:
        sentences.append(
            Reason(
                "placement_sends_no_time",
                f"Placement at {cloud.placement_endpoint} sends neither a Date nor its own time "
                "(Last-Modified of GET /), so no age is known and nothing is old enough to be "
                "changed: look for a proxy that removes these headers.",
            )
        )
    return tuple(sentence for sentence in sentences if sentence is not None)


def explain_unprovable(kind: str, cloud: Cloud) -> Reason | None:
    """Return why no finding of `kind` can be proven, or None if one can."""
    for requirement, unproven in REQUIREMENTS:
        if unproven in (None, kind):
            reason = explain_unmet(requirement, cloud, unproven or "everything")
            if reason:
                return reason
    return None
