# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._common.errors import InvalidInput
from ..module_utils._core.findings.validation import DocumentName
from ..modules import orphan_report
from ..plugin_utils._hosts import hosts
from ..plugin_utils._report.diff_names import find_findings_in
from ..plugin_utils._report.log_correlation import extract_records
from ..plugin_utils._report.report import Report
from ..plugin_utils._report.report_files import ReportActionModule
from ..plugin_utils._stage.action import is_plan_of_findings, read_argument_spec
from ..plugin_utils._terminal import changes, clouds, lines, terminal
from ..plugin_utils._terminal.ending import format_commands, format_journals, format_undo
from ..plugin_utils._terminal.screen import is_verbose, measure_terminal, print_lines

# What can be shown, and the plan, which is only written to files.
SHOWN: tuple[DocumentName, ...] = ("findings", "remediation", "hosts", "guests", "summary")
DOCUMENTS: tuple[DocumentName, ...] = (*SHOWN, "plan")

REQUIRED_BY = {
    "complaints": ("findings",),
    "output_dir": ("findings",),
    "metrics_path": ("findings",),
    "plan": ("findings",),
}


class ActionModule(ReportActionModule):
    """Shows the files of the other modules on the controller, and writes reports to the host.

    Its options are in the module of the same name.
    """

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(
            argument_spec=read_argument_spec(orphan_report.DOCUMENTATION),
            required_one_of=[(*SHOWN, "fail", "results")],
            required_by=REQUIRED_BY,
        )
        self._task_vars = task_vars
        documents = self._read_documents(DOCUMENTS, options)
        complaints = self._read_complaints(options["complaints"])
        if options["terminal"]:
            self._draw(documents, options, complaints)
        findings = documents["findings"]
        if options["formats"] and not findings:
            raise AnsibleActionFail("formats needs findings: they are what is written.")
        result: dict[str, t.Any] = {"changed": False}
        if findings and is_plan_of_findings(documents["plan"], findings):
            report = Report(
                findings=findings,
                kinds=options["kinds"],
                plan=documents["plan"],
                remediation=documents["remediation"],
                journal=options["journal"],
                complaints=complaints,
                failure=options["failure"],
                plan_path=options["plan"],
                run=self._read_context(),
            )
            result["reports"] = self._write_reports(report, options)
        # At the end, so that everything else was shown and written before.
        if options["fail"] and options["failure"]:
            return {"changed": False, "failed": True, "msg": options["failure"]}
        return result

    def _draw(
        self, documents: dict[str, t.Any], options: dict[str, t.Any], complaints: list[t.Any]
    ) -> None:
        width, kinds, verbose = measure_terminal(), options["kinds"], is_verbose()
        message = options["failure"] if options["fail"] else ""
        drawn: list[str] = []
        guests = documents["guests"]
        # First, because two guests of one server are worse than any allocation.
        if guests:
            guests = lines.leave_out_reasons(guests, message)
            drawn += hosts.format_guests(guests, options["guests"], kinds or (), width, verbose)
        if documents["findings"]:
            findings = lines.leave_out_reasons(documents["findings"], message)
            drawn += terminal.format_findings(
                findings, options["findings"], kinds, width, complaints, verbose, guests
            )
        if documents["remediation"]:
            names = documents["findings"]
            if names is None:
                names = find_findings_in(self, os.path.dirname(options["remediation"]))
            drawn += changes.format_remediation(
                documents["remediation"], options["journal"], width, names
            )
            drawn += format_undo(
                documents["remediation"], options["journal"] or "", self._read_context()
            )
        prose = lines.get_prose_width(width)
        if documents["hosts"]:
            for host in documents["hosts"]["hosts"]:
                drawn += hosts.format_host(host, options["hosts"], width, verbose)
        if documents["summary"]:
            drawn += clouds.format_summary(documents["summary"], options["summary"], prose)
        drawn += self._draw_results(options, prose)
        # Ansible itself shows the message of a task that fails.
        if options["failure"] and not options["fail"]:
            drawn += changes.format_failure(options["failure"], prose)
        print_lines(drawn)

    def _draw_results(self, options: dict[str, t.Any], width: int) -> list[str]:
        """Return what a play did, how to undo it, and the command to type next."""
        results, run = options["results"] or [], self._read_context()
        journals = [result["journal"] for result in results if result.get("journal")]
        return [
            *changes.format_results(results, width),
            *format_journals(journals, run),
            *format_commands(options["undo"], options["next"], run),
        ]

    def _read_complaints(self, option: t.Any) -> list[t.Any]:
        """Return the records in the option, which has them or the path of their file."""
        if option is None:
            return []
        try:
            contents = self._read_json(option) if isinstance(option, str) else option
            return extract_records(contents)
        except InvalidInput as error:
            raise AnsibleActionFail(f"complaints cannot be used: {error}") from error
