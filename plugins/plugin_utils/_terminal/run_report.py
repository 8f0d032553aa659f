# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of one run of the role `orphan_cleanup`, from the state in its folder."""

from __future__ import annotations

import dataclasses as d
import os
import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleActionFail, AnsibleError

from ...module_utils._common.errors import InvalidInput
from ...module_utils._core.run import folder
from .._report.notification import Notice
from .._report.proposed_commands import Ending, format_ending, format_journals, format_undo
from .._report.report_files import ReportActionModule
from .._report.status import (
    UNSOUND,
    RunStatus,
    build_artifacts,
    determine_status,
    explain_early_end,
)
from .._report.view import Report, list_remediated_findings
from .._stage.action import is_plan_of_findings
from . import changes, terminal
from .lines import get_prose_width, is_verbose, leave_out_reasons, measure_terminal, print_lines

# The files of a run, each None if it is not there.
Documents = Mapping[str, t.Any]


class RunReportActionModule(ReportActionModule):
    """An action plugin that reports a run which is recorded in its folder.

    A run reports itself with its last tasks. Any other report, such as that of a run which was
    killed, shows the run and writes files; it exports nothing and sends no notification.
    """

    _run: folder.Run
    _options: Mapping[str, t.Any]
    _state: folder.State
    _status: RunStatus

    def _record_interruption(self, run: folder.Run, message: str) -> dict[str, t.Any]:
        """Record an error that no stage could record, such as a template that is undefined."""
        try:
            state = self._read_state(run) or folder.start_state(run)
        except AnsibleActionFail:
            # It may be the state of a later run. The report says what is there.
            return {"changed": False}
        failure = {"failed": True, "msg": message}
        self._write_state(run, folder.record_result(state, folder.INTERRUPTED, failure))
        return {"changed": False}

    def _report_run(self, options: Mapping[str, t.Any]) -> dict[str, t.Any] | None:
        """Return the result of the task; None if there is no run that could be reported."""
        self._run, self._options = options["run"], options
        state = self._read_state(self._run)
        if state is None and not self._is_own:
            return None
        self._state = state or folder.start_state(self._run)
        self._settle_journal()
        self._status = self._determine_status()
        if not self._is_own:
            early = self._status.failure or explain_early_end(self._state)
            self._status = d.replace(self._status, failure=early, message="")
        trouble, result = "", {"changed": False, "reports": self._get(folder.REPORTED, "reports")}
        if not self._is_own or folder.REPORTED not in self._state:
            trouble, result = self._write_run()
        message = self._status.message if self._is_own else trouble
        if options["terminal"]:
            message = self._show_run(message)
        if options["fail"] and message:
            return {"changed": False, "failed": True, "msg": message}
        return {**result, "failure": message, "outcome": self._status.outcome}

    @property
    def _is_own(self) -> bool:
        """Whether the run reports itself."""
        return self._run["detects"] or self._run["remediates"]

    # --- the state

    def _read_state(self, run: folder.Run) -> folder.State | None:
        """Return the state of a run; None if nothing of it is recorded."""
        path = os.path.join(run["folder"], folder.FILE)
        text = self._read_text(path)
        if text is None:
            return None
        try:
            return folder.parse_state(self._parse_json(text, path), path, run)
        except InvalidInput as error:
            raise AnsibleActionFail(str(error)) from None

    def _write_state(self, run: folder.Run, state: folder.State) -> None:
        path = os.path.join(run["folder"], folder.FILE)
        self._write_file(path, folder.format_state(state), "0600")

    def _settle_journal(self) -> None:
        """Forget the journal of a stage that was killed before it made one."""
        for stage in (folder.REMEDIATED, folder.RESTORED):
            journal, has_ended = self._get(stage, "journal"), folder.has_ended(self._state, stage)
            if journal and not has_ended and self._read_text(journal) is None:
                self._state[stage]["journal"] = None

    def _determine_status(self) -> RunStatus:
        # A run that detects its findings knows whether they are there.
        exist = not self._state["detects"] and self._read_text(self._findings) is not None
        check_mode = self._state["check_mode"]
        return determine_status(self._state, self._options["fail_on"], check_mode, exist)

    @property
    def _findings(self) -> str:
        return os.path.join(self._run["folder"], "findings.json")

    def _get(self, stage: str, key: str) -> t.Any:
        return self._state.get(stage, {}).get(key)

    # --- files, artifacts and the notification: each also when another one fails

    def _write_run(self) -> tuple[str, dict[str, t.Any]]:
        """Return what went wrong, empty if nothing did, and the result of the task."""
        result: dict[str, t.Any] = {"changed": False, "reports": {}}
        documents: Documents = {}
        report: Report | None = None
        try:
            documents = self._read_run()
            report = self._build_report(
                documents,
                self._options,
                plan_path=self._get(folder.PLANNED, "plan"),
                journal=self._get(folder.REMEDIATED, "journal"),
                failure=self._status.failure,
            )
            if report and self._options["formats"]:
                result["reports"] = self._write_reports(report, self._options)
        except (AnsibleError, InvalidInput) as error:
            result["msg"] = str(error)
        if not self._is_own:
            return result.pop("msg", ""), result
        if folder.PLANNED in self._state:
            result["ansible_stats"] = self._build_stats()
        # The run that detected the findings has already sent a notification of them: another run
        # sends one only when it fails.
        failure = self._status.failure
        if self._options["notify_url"] and (self._state["detects"] or failure):
            remediation, reports = documents.get("remediation"), result["reports"]
            notice = Notice(report, remediation, failure, reports)
            self._send_notice(notice, self._options, result)
        trouble = result.pop("msg", "")
        self._record_report({**result, "failed": bool(trouble), "msg": trouble})
        return trouble, result

    def _record_report(self, reported: dict[str, t.Any]) -> None:
        """Record that the run is reported, and what it has come to."""
        self._state = folder.record_result(self._state, folder.REPORTED, reported)
        self._status = self._determine_status()
        reported |= {"failure": self._status.message, "outcome": self._status.outcome}
        self._state = folder.record_result(self._state, folder.REPORTED, reported)
        self._write_state(self._run, self._state)

    def _read_run(self) -> Documents:
        """Return the files of the run, None for each that is not there."""
        outcomes = self._get(folder.REMEDIATED, "remediation")
        restored = self._get(folder.RESTORED, "restoration")
        paths = {"findings": None, "plan": None, "remediation": outcomes or restored}
        if self._status.has_findings:
            paths["findings"] = self._get(folder.DETECTED, "dest") or self._findings
            paths["plan"] = self._get(folder.PLANNED, "plan")
        documents = self._read_documents(("findings", "plan", "remediation"), paths)
        findings, read_at = documents["findings"], self._get(folder.DETECTED, "finished_at")
        if findings and self._state["detects"] and findings["finished_at"] != read_at:
            raise AnsibleActionFail(
                f"{paths['findings']} is that of another run: give each run a folder of its own."
            )
        return documents

    def _build_stats(self) -> dict[str, t.Any]:
        host = self._run["host"]
        data = build_artifacts(self._state, self._run["folder"], self._state["check_mode"], host)
        # With several inventory hosts each adds its own part.
        return {"data": data, "per_host": False, "aggregate": bool(host)}

    # --- the screen, and the end of the run

    def _show_run(self, message: str) -> str:
        """Show the run, and return what the task fails with."""
        width, trouble = measure_terminal(), ""
        drawn: list[str] = []
        try:
            drawn += self._draw_run(self._read_run(), width)
        except (AnsibleError, InvalidInput) as error:
            trouble = str(error)
        if trouble not in message:
            message = " ".join(filter(None, (message, trouble)))
        # Ansible itself shows the message of a task that fails.
        if self._status.failure and not message:
            drawn += changes.format_failure(self._status.failure, get_prose_width(width))
        print_lines([*drawn, *self._draw_ending(bool(trouble))])
        return message

    def _draw_run(self, documents: Documents, width: int) -> list[str]:
        findings, remediation = documents["findings"], documents["remediation"]
        is_of_plan = is_plan_of_findings(documents["plan"], findings)
        drawn: list[str] = []
        if findings and (self._state["detects"] or (is_of_plan and not self._is_own)):
            changed = list_remediated_findings(Report(findings, remediation=remediation))
            left = [entry for entry in findings["findings"] if entry["id"] not in changed]
            left = leave_out_reasons({**findings, "findings": left}, self._status.message)
            kinds = self._options["kinds"]
            drawn += terminal.format_findings(
                left, self._findings, kinds, width, verbose=is_verbose()
            )
        if remediation and folder.RESTORED in self._state:
            journal = self._get(folder.RESTORED, "journal")
            names = changes.find_findings(self, self._run["folder"])
            drawn += changes.format_remediation(remediation, journal, width, names)
            drawn += format_undo(remediation, journal or "", self._read_context())
        elif remediation:
            names = findings if is_of_plan else None
            drawn += changes.format_remediation(remediation, None, width, names)
        return drawn

    def _draw_ending(self, is_broken: bool) -> list[str]:
        """Return the paths of the run, and the command to type next."""
        journal, run = self._get(folder.REMEDIATED, "journal") or "", self._read_context()
        if folder.RESTORED in self._state:
            return []
        if not self._is_own:
            # A later report has another scope: it proposes nothing but the undo.
            return format_journals([journal], run)
        findings = self._findings if self._status.has_findings else ""
        plan = self._get(folder.PLANNED, "plan") or findings
        status = self._status
        ending = Ending(
            reports=self._get(folder.REPORTED, "reports") or {},
            findings=findings,
            plan=plan if self._get(folder.PLANNED, "changes") else "",
            journal=journal,
            check_mode=self._state["check_mode"],
            detects_only=not self._state["remediates"],
            failed=is_broken or bool(status.failure) or status.outcome == UNSOUND,
            run=run,
        )
        return format_ending(ending)
