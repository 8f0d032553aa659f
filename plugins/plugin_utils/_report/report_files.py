# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats of a report, and what action plugins have in common that write it to the host."""

from __future__ import annotations

import dataclasses as d
import os
import shlex
import tempfile
import time
import typing as t
from collections.abc import Callable, Mapping

from ansible import constants
from ansible.errors import AnsibleActionFail, AnsibleError

from .._stage.action import FileActionModule, is_plan_of_findings
from .._stage.controller import find_path, is_on_controller, write_text
from . import csv_file, html_page, markdown, prometheus
from .notification import NOTICE_FORMATTERS, Notice
from .proposed_commands import Context, read_context
from .view import Report

# A webhook is tried again if it does not answer, each time after so many seconds.
_PAUSES = (0, 2, 2)
_ACCEPTED = (200, 201, 202, 204)


PROMETHEUS = "prometheus"

# By the name of a format, that of its file, and the function that returns its contents.
FORMATS: Mapping[str, tuple[str, Callable[[Report], str]]] = {
    "html": ("report.html", html_page.render),
    "markdown": ("report.md", markdown.render),
    "csv": ("findings.csv", csv_file.render),
    PROMETHEUS: ("placement_orphans.prom", prometheus.render),
}


class ReportActionModule(FileActionModule):
    """An action plugin that writes reports to the host, on the controller without a module."""

    def _read_context(self) -> Context:
        """Return what commands need to know of a run; nothing outside of a role."""
        role = self._task._role
        if not role:
            return Context()
        return read_context(self._task_vars, role.get_name(False), self._templar)

    def _build_report(
        self, documents: Mapping[str, t.Any], options: Mapping[str, t.Any], **fields: t.Any
    ) -> Report | None:
        """Return the report of some files; None without findings, or with a plan of other ones.

        fields: the others of `Report`.
        """
        findings, plan = documents.get("findings"), documents.get("plan")
        # The outcomes of a plan cannot be reported with other findings.
        if not findings or not is_plan_of_findings(plan, findings):
            return None
        run, remediation = self._read_context(), documents["remediation"]
        return Report(findings, options["kinds"], plan, remediation, run=run, **fields)

    def _write_reports(self, report: Report, options: Mapping[str, t.Any]) -> dict[str, str]:
        """Write the reports, and return their paths by format."""
        folder, metrics_path = options["output_dir"], options["metrics_path"]
        written: dict[str, str] = {}
        # JSON has no report: it is the file of the findings.
        for name in (each for each in dict.fromkeys(options["formats"]) if each in FORMATS):
            file, render = FORMATS[name]
            path, mode = os.path.join(folder or "", file), "0600"
            if name == PROMETHEUS and metrics_path:
                # node_exporter reads the metrics; all other reports name projects and users.
                path, mode = metrics_path, "0644"
            elif not folder:
                needed = f"output_dir is needed for {name}: it says where to write it."
                raise AnsibleActionFail(needed)
            if name == PROMETHEUS:
                report = d.replace(report, metrics=self._read_text(path))
            self._write_file(path, render(report), mode)
            written[name] = path
        return written

    def _write_file(self, path: str, text: str, mode: str) -> None:
        """Write a file to the host, in check mode too.

        A reader sees the old file or the whole new one, never a part of it.
        """
        if not is_on_controller(self):
            self._write_on_host(path, text, mode)
            return
        try:
            write_text(find_path(self, path), text, int(mode, 8))
        except OSError as error:
            raise AnsibleActionFail(f"{path} cannot be written: {error.strerror}.") from None

    def _write_on_host(self, path: str, text: str, mode: str) -> None:
        folder, name = os.path.split(path)
        unfinished = os.path.join(folder, f".{name}.unfinished")
        quoted = shlex.quote(unfinished)
        # Copied to a file that exists already, the text is at no time readable for more users than
        # that file.
        umask = "022" if mode == "0644" else "077"
        self._run_command(
            f"umask {umask}; mkdir -p -- {shlex.quote(folder or '.')} "
            # Not through a link that somebody has put there in between.
            f"&& rm -f -- {quoted} && set -C && : > {quoted}",
            path,
        )
        with tempfile.NamedTemporaryFile(dir=constants.DEFAULT_LOCAL_TMP) as source:
            source.write(text.encode(errors="backslashreplace"))
            source.flush()
            task = self._task.copy()
            task.args = {"src": source.name, "dest": unfinished, "mode": mode, "follow": False}
            task.check_mode = task.diff = False
            copied = self._run_action("ansible.legacy.copy", task)
        if copied.get("failed"):
            raise AnsibleActionFail(f"{path} cannot be written: {copied.get('msg')}")
        # To a link to a folder, the file would be moved into that folder.
        target = shlex.quote(path)
        self._run_command(
            f"[ ! -L {target} ] || rm -f -- {target}; mv -f -- {quoted} {target}", path
        )

    def _send_notice(
        self, notice: Notice, options: Mapping[str, t.Any], result: dict[str, t.Any]
    ) -> None:
        """Send a notice if anything is notable, and add to the result why it was not delivered."""
        if not notice.notable:
            return
        body = NOTICE_FORMATTERS[options["notify_format"]](notice)
        status = 0
        for pause in _PAUSES:
            time.sleep(pause)
            status = self._post(options["notify_url"], body)
            if status in _ACCEPTED:
                return
        answer = "there was no answer" if status == -1 else f"the answer was {status}"
        trouble = f"The notification was not delivered: {answer}."
        if options["notify_required"]:
            result["msg"] = " ".join(filter(None, (result.get("msg"), trouble)))
        else:
            result["warnings"] = [trouble]

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

    def _run_command(self, command: str, path: str) -> None:
        done = self._low_level_execute_command(command)
        if done["rc"]:
            reason = done["stderr"].strip() or done["stdout"].strip()
            raise AnsibleActionFail(f"{path} cannot be written: {reason}")
