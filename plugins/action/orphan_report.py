# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import typing as t
from collections.abc import Mapping

from ansible.errors import AnsibleActionFail

from ..module_utils._common.errors import InvalidInput
from ..module_utils._core.findings.entries import DocumentName
from ..module_utils._core.findings.summary import RunResult, list_failures, summarize_runs
from ..module_utils._core.run import folder
from ..modules import orphan_report
from ..plugin_utils._hosts import hosts
from ..plugin_utils._report.log_correlation import extract_records
from ..plugin_utils._report.notification import Notice
from ..plugin_utils._report.proposed_commands import format_commands, format_journals, format_undo
from ..plugin_utils._stage.action import Result, TaskVars, read_argument_spec
from ..plugin_utils._terminal import changes, clouds, lines, terminal
from ..plugin_utils._terminal.changes import find_findings
from ..plugin_utils._terminal.lines import is_verbose, measure_terminal, print_lines
from ..plugin_utils._terminal.run_report import RunReportActionModule

# What can be shown, and the plan, which is only written to files.
SHOWN: tuple[DocumentName, ...] = ("findings", "remediation", "hosts", "guests", "summary")
DOCUMENTS: tuple[DocumentName, ...] = (*SHOWN, "plan")

REQUIRED_BY = {"complaints": ("findings",), "plan": ("findings",), "clouds": ("output_dir",)}
# A run and several clouds have files of their own.
REQUIRED_BY_FILES = {"output_dir": ("findings",), "metrics_path": ("findings",)}

_NOT_FINISHED = "It did not run to its end."


class ActionModule(RunReportActionModule):
    """Shows the files of the other modules on the controller, and writes reports to the host.

    Its options are in the module of the same name.
    """

    def run(self, tmp: str | None = None, task_vars: TaskVars = None) -> Result:
        super().run(tmp, task_vars)
        spec = read_argument_spec(orphan_report.DOCUMENTATION)
        spec["notify_url"]["no_log"] = True
        has_own_files = not {"run", "clouds"}.isdisjoint(self._task.args)
        _result, options = self.validate_argument_spec(
            argument_spec=spec,
            required_one_of=[(*SHOWN, "fail", "results", "run", "clouds")],
            required_by=REQUIRED_BY | ({} if has_own_files else REQUIRED_BY_FILES),
        )
        self._task_vars = task_vars
        run = options["run"]
        if run and options["failure"]:
            return self._record_interruption(run, options["failure"])
        if run:
            options["output_dir"] = run["folder"]
            result = self._report_run(options)
            if result is not None:
                return result
            # The files of version 2.0 are in a folder without a run.
            options["findings"] = os.path.join(run["folder"], "findings.json")
        if options["clouds"]:
            self._summarize_clouds(options)
        return self._report_documents(options)

    def _report_documents(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        documents = self._read_documents(DOCUMENTS, options)
        complaints = self._read_complaints(options["complaints"])
        if options["terminal"]:
            self._draw(documents, options, complaints)
        if options["formats"] and not documents["findings"]:
            raise AnsibleActionFail("formats needs findings: they are what is written.")
        result: dict[str, t.Any] = {"changed": False}
        fields = {"plan_path": options["plan"], "complaints": complaints}
        fields |= {name: options[name] for name in ("journal", "failure")}
        report = self._build_report(documents, options, **fields)
        if report:
            result["reports"] = self._write_reports(report, options)
        if options["notify_url"]:
            failure, reports = options["failure"], result.get("reports", {})
            notice = Notice(report, documents["remediation"], failure, reports)
            self._send_notice(notice, options, result)
        # At the end, so that everything else was shown and written before.
        messages = [result.pop("msg", ""), options["failure"] if options["fail"] else ""]
        message = " ".join(filter(None, messages))
        if message:
            return {"changed": False, "failed": True, "msg": message}
        return result

    # --- several clouds

    def _summarize_clouds(self, options: dict[str, t.Any]) -> None:
        """Write the summary of several clouds, and set the options that show it."""
        runs = [self._read_cloud(name) for name in options["clouds"]]
        summary = summarize_runs(runs)
        path = os.path.join(options["output_dir"], "summary.json")
        self._write_file(path, f"{json.dumps(summary, indent=2, sort_keys=True)}\n", "0600")
        options["summary"], failures = path, list_failures(summary)
        if failures:
            options["fail"] = True
            options["failure"] = (
                f"{len(failures)} of {len(runs)} runs failed, see {path}. {' '.join(failures)}"
            )

    def _read_cloud(self, name: str) -> RunResult:
        """Return the run for an inventory host; a file that is not valid counts as its error."""
        variables: Mapping[str, t.Any] = (self._task_vars or {})["hostvars"][name]
        state, errors = self._read_own_state(variables)
        ended = state.get(folder.REPORTED)
        error = variables.get("_orphan_cleanup_error") or _NOT_FINISHED
        error = ended["failure"] if ended else error
        errors += [error] if error else []
        paths: dict[t.Any, str] = {
            "findings": state.get(folder.DETECTED, {}).get("dest") or "",
            "remediation": state.get(folder.REMEDIATED, {}).get("remediation") or "",
        }
        paths = {what: path for what, path in paths.items() if path}
        documents = {}
        # One by one: a file that is not valid must not hide the other.
        for what, path in paths.items():
            try:
                documents[what] = self._read_document(what, path)
            except AnsibleActionFail as invalid:
                errors.append(str(invalid))
        return RunResult(
            name,
            # An empty text is what a template gives for a variable that is not set.
            variables.get("orphan_cleanup_region_name") or None,
            variables.get("orphan_cleanup_shard") or None,
            " ".join(errors),
            documents.get("findings"),
            documents.get("remediation"),
            paths,
        )

    def _read_own_state(self, variables: Mapping[str, t.Any]) -> tuple[folder.State, list[str]]:
        """Return the state of the run that has just ended on an inventory host, and its errors."""
        run = variables.get("_orphan_cleanup_validated", {}).get("run")
        try:
            return (self._read_state(run) if run else None) or {}, []
        except AnsibleActionFail as error:
            return {}, [str(error)]

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
                names = find_findings(self, os.path.dirname(options["remediation"]))
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
            raise AnsibleActionFail(f"complaints cannot be used: {error}") from None
