# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The contents of a report, in any format."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Sequence

from ...module_utils._core.findings.entries import FindingsDocument
from ...module_utils._core.models.codec import Json
from .proposed_commands import Context

if t.TYPE_CHECKING:  # pragma: no cover
    from .log_correlation import Complaint


@d.dataclass(frozen=True)
class Report:
    """The files of one run, as docs/findings.md describes them.

    kinds: those that may be changed; None for any.
    plan, remediation: None where the run did not come so far.
    plan_path: the path of the plan, None where it is not known.
    journal: the path of the journal, None where nothing was written.
    complaints: the records of `nova_log_info`.
    failure: what the run ended with, empty when nothing failed.
    metrics: the Prometheus textfile of the run before, None where there is none.
    run: what the commands need to know of the run.
    """

    findings: FindingsDocument
    kinds: Collection[str] | None = None
    plan: Json | None = None
    remediation: Json | None = None
    journal: str | None = None
    complaints: Sequence[Complaint] = ()
    failure: str = ""
    metrics: str | None = None
    plan_path: str | None = None
    run: Context = d.field(default_factory=Context)

    def replace_metrics(self, metrics: str | None) -> Report:
        """Return the report with the Prometheus textfile of the run before."""
        return d.replace(self, metrics=metrics)
