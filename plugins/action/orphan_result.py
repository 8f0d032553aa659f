# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleError

from ..module_utils._common.errors import InvalidInput
from ..modules import orphan_result
from ..plugin_utils._report.notification import NOTICE_FORMATTERS, Notice
from ..plugin_utils._report.phrases import list_remediated_findings
from ..plugin_utils._report.report import Report
from ..plugin_utils._report.report_files import ReportActionModule
from ..plugin_utils._report.run import UNSOUND, RunStatus, build_artifacts, determine_status
from ..plugin_utils._stage.action import is_plan_of_findings, read_argument_spec
from ..plugin_utils._terminal import changes, terminal
from ..plugin_utils._terminal.ending import Ending, format_ending
from ..plugin_utils._terminal.lines import get_prose_width, leave_out_reasons
from ..plugin_utils._terminal.screen import is_verbose, measure_terminal, print_lines

# A webhook that does not answer is tried this often, with so many seconds between.
_TRIES, _PAUSE = 3, 2
_ACCEPTED = (200, 201, 202, 204)


class ActionModule(ReportActionModule):
    """Ends a run of the role orphan_cleanup. Its options are in the module of the same name."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        spec = read_argument_spec(orphan_result.DOCUMENTATION)
        spec["notify_url"]["no_log"] = True
        _result, options = self.validate_argument_spec(argument_spec=spec)
        self._task_vars = task_vars
        self._state: dict[str, t.Any] = options["run"]
        self._status = self._determine_status(options)
        if options["stage"] == "write":
            return self._end(options)
        return self._show(options)

    def _determine_status(self, options: Mapping[str, t.Any]) -> RunStatus:
        check_mode = self._task.check_mode
        # A run that detects its findings knows whether they are there.
        exist = not self._state["detects"] and self._read_text(options["findings"]) is not None
        return determine_status(self._state, options["fail_on"], check_mode, exist)

    # --- files, artifacts and the notification: each also when another one fails

    def _end(self, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
        errors: list[str] = []
        result: dict[str, t.Any] = {"changed": False, "reports": {}}
        documents: dict[str, t.Any] = {}
        try:
            documents = self._read_run(options)
            report = self._build_report(documents, options)
            if report and options["formats"]:
                result["reports"] = self._write_reports(report, options)
        except (AnsibleError, InvalidInput) as error:
            errors.append(str(error))
        if "planned" in self._state:
            result["ansible_stats"] = self._build_stats(options)
        if options["notify_url"]:
            trouble = self._notify(documents, options, result["reports"])
            if trouble and options["notify_required"]:
                errors.append(trouble)
            elif trouble:
                result["warnings"] = [trouble]
        if errors:
            return {**result, "failed": True, "msg": " ".join(errors)}
        return result

    def _read_run(self, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return the files of the run, None for each that is not there."""
        remediation = self._state.get("remediated", {}).get("remediation")
        paths = {"findings": None, "plan": None, "remediation": remediation}
        if self._status.has_findings:
            paths["findings"] = options["findings"]
            paths["plan"] = self._state.get("planned", {}).get("plan")
        return self._read_documents(("findings", "plan", "remediation"), paths)

    def _build_report(
        self, documents: Mapping[str, t.Any], options: Mapping[str, t.Any]
    ) -> Report | None:
        findings, plan = documents["findings"], documents["plan"]
        # The outcomes of a plan cannot be reported with other findings.
        if not findings or not is_plan_of_findings(plan, findings):
            return None
        return Report(
            findings=findings,
            kinds=options["kinds"],
            plan=plan,
            plan_path=self._state.get("planned", {}).get("plan"),
            remediation=documents["remediation"],
            journal=self._state.get("remediated", {}).get("journal"),
            failure=self._status.failure,
            run=self._read_context(),
        )

    def _build_stats(self, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
        host = options["host"]
        data = build_artifacts(self._state, options["output_dir"], self._task.check_mode, host)
        # With several inventory hosts each adds its own part.
        return {"data": data, "per_host": False, "aggregate": bool(host)}

    def _notify(
        self,
        documents: Mapping[str, t.Any],
        options: Mapping[str, t.Any],
        reports: Mapping[str, str],
    ) -> str:
        """Send a notification if anything is notable, and return why it was not delivered."""
        report = self._build_report(documents, options) if documents else None
        remediation = documents.get("remediation")
        notice = Notice(report, remediation, self._status.failure, reports)
        # The run that detected the findings has already sent a notification of them: another run
        # sends one only when it fails.
        if not notice.notable or not (self._state["detects"] or self._status.failure):
            return ""
        body = NOTICE_FORMATTERS[options["notify_format"]](notice)
        status = self._post(options["notify_url"], body)
        for _try in range(_TRIES - 1):
            if status in _ACCEPTED:
                break
            time.sleep(_PAUSE)
            status = self._post(options["notify_url"], body)
        if status in _ACCEPTED:
            return ""
        answer = "there was no answer" if status == -1 else f"the answer was {status}"
        return f"The notification was not delivered: {answer}."

    def _post(self, url: str, body: t.Any) -> int:
        """Send JSON to a webhook from the host, and return the status; -1 for no answer."""
        task = self._task.copy()
        task.args = {
            "url": url,
            "method": "POST",
            "body_format": "json",
            "body": body,
            "status_code": list(_ACCEPTED),
            "timeout": 30,
        }
        # The address of a webhook is a password.
        task.no_log, task.check_mode, task.diff = True, False, False
        try:
            answer = self._run_action("ansible.builtin.uri", task)
        except AnsibleError:
            return -1
        return int(answer.get("status", -1))

    # --- the screen, and the end of the run

    def _show(self, options: Mapping[str, t.Any]) -> dict[str, t.Any]:
        width = measure_terminal()
        trouble = ""
        try:
            documents = self._read_run(options)
            print_lines(self._draw(documents, options, width))
        except (AnsibleError, InvalidInput) as error:
            trouble = str(error)
        message = " ".join(filter(None, (self._status.message, trouble)))
        ended: list[str] = []
        # Ansible itself shows the message of a task that fails.
        if self._status.failure and not message:
            ended += changes.format_failure(self._status.failure, get_prose_width(width))
        is_broken = bool(self._status.failure or trouble or self._status.outcome == UNSOUND)
        ended += format_ending(self._describe_ending(options, is_broken))
        print_lines(ended)
        result = {"changed": False}
        if message:
            return {**result, "failed": True, "msg": message}
        return result

    def _draw(
        self, documents: Mapping[str, t.Any], options: Mapping[str, t.Any], width: int
    ) -> list[str]:
        findings, remediation = documents["findings"], documents["remediation"]
        drawn: list[str] = []
        if findings and self._state["detects"]:
            left = _leave_out_changed(findings, remediation)
            left = leave_out_reasons(left, self._status.message)
            drawn += terminal.format_findings(
                left, options["findings"], options["kinds"], width, verbose=is_verbose()
            )
        if remediation:
            names = findings if is_plan_of_findings(documents["plan"], findings) else None
            drawn += changes.format_remediation(remediation, None, width, names)
        return drawn

    def _describe_ending(self, options: Mapping[str, t.Any], failed: bool) -> Ending:
        planned, remediated = self._state.get("planned", {}), self._state.get("remediated", {})
        findings = options["findings"] if self._status.has_findings else ""
        plan = planned.get("plan") or findings if planned.get("changes") else ""
        return Ending(
            reports=self._state.get("reported", {}).get("reports") or {},
            findings=findings,
            plan=plan,
            journal=remediated.get("journal") or "",
            check_mode=self._task.check_mode,
            detects_only=not self._state.get("remediates", True),
            failed=failed,
            run=self._read_context(),
        )


def _leave_out_changed(findings: t.Any, remediation: t.Any) -> t.Any:
    """Return the findings without those whose change was made; all of them in check mode."""
    changed = list_remediated_findings(remediation)
    left = [entry for entry in findings["findings"] if entry["id"] not in changed]
    return {**findings, "findings": left}
