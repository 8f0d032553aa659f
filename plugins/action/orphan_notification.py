# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..module_utils._core.findings.validation import DocumentName
from ..modules import orphan_notification
from ..plugin_utils._report.notification import NOTICE_FORMATTERS, Notice
from ..plugin_utils._report.report import Report
from ..plugin_utils._stage.action import FileActionModule, is_plan_of_findings, read_argument_spec

DOCUMENTS: tuple[DocumentName, ...] = ("findings", "plan", "remediation")


class ActionModule(FileActionModule):
    """Writes a notification on the controller. Its options are in the module of the same name."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(
            argument_spec=read_argument_spec(orphan_notification.DOCUMENTATION),
            required_by={"plan": ("findings",)},
        )
        self._task_vars = task_vars
        documents = self._read_documents(DOCUMENTS, options)
        notice = Notice(
            self._build_report(documents, options["failure"]),
            documents["remediation"],
            options["failure"],
            options["reports"],
        )
        return {
            "changed": False,
            "notable": notice.notable,
            "notification": NOTICE_FORMATTERS[options["format"]](notice),
        }

    @staticmethod
    def _build_report(documents: dict[str, t.Any], failure: str) -> Report | None:
        """Return the findings with what became of them, None without findings of this run."""
        findings, plan = documents["findings"], documents["plan"]
        if not findings or not is_plan_of_findings(plan, findings):
            return None
        return Report(
            findings=findings, plan=plan, remediation=documents["remediation"], failure=failure
        )
