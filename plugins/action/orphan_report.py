# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import tempfile
import typing as t

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
    validate_document,
)
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
    extract_records,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.formats import (
    FORMAT_NAMES,
    FORMATS,
    PROMETHEUS,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.notification import (
    NOTICE_FORMATTERS,
    Notice,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report
from ansible_collections.osops.placement.plugins.plugin_utils._terminal import (
    hosts,
    lines,
    terminal,
)

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
        FindingsDocument,
    )
    from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
        DocumentName,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        PlanDocument,
        RemediationDocument,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.host_documents import (
        GuestsDocument,
        HostsDocument,
    )
    from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
        Complaint,
    )

# Sentences that are wider are hard to read, on however wide a terminal.
MAX_WIDTH = 120

# Ansible's settings for the colours of its own results.
COLOURS = {
    lines.CHANGED: "COLOR_CHANGED",
    lines.SKIPPED: "COLOR_SKIP",
    lines.WARNING: "COLOR_WARN",
    lines.ERROR: "COLOR_ERROR",
    lines.OK: "COLOR_OK",
}


class Files(t.TypedDict):
    """The files that the options name; None for an option that is not given."""

    findings: FindingsDocument | None
    plan: PlanDocument | None
    remediation: RemediationDocument | None
    hosts: HostsDocument | None
    guests: GuestsDocument | None


ARGUMENT_SPEC = {
    "findings": {"type": "path"},
    "kinds": {"type": "list", "elements": "str"},
    "complaints": {"type": "raw"},
    "plan": {"type": "path"},
    "remediation": {"type": "path"},
    "hosts": {"type": "path"},
    "guests": {"type": "path"},
    "journal": {"type": "path"},
    "failure": {"type": "str", "default": ""},
    "terminal": {"type": "bool", "default": True},
    "formats": {"type": "list", "elements": "str", "choices": list(FORMAT_NAMES), "default": []},
    "output_dir": {"type": "path"},
    "metrics_path": {"type": "path"},
    "notice": {"type": "str", "choices": list(NOTICE_FORMATTERS)},
    "reports": {"type": "dict", "default": {}},
}


# These are about findings, and say nothing without them.
REQUIRED_BY = {
    "complaints": ("findings",),
    "output_dir": ("findings",),
    "metrics_path": ("findings",),
    "plan": ("findings",),
}


class ActionModule(ActionBase):
    """Shows the files of the other modules on the controller, and writes reports to the host.

    Its options are in the module of the same name.
    """

    _supports_check_mode = True
    _requires_connection = True

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(
            argument_spec=ARGUMENT_SPEC,
            required_one_of=[("findings", "remediation", "hosts", "guests", "notice")],
            required_by=REQUIRED_BY,
        )
        self._task_vars = task_vars
        read: Files = {
            "findings": self._read_document("findings", options),
            "plan": self._read_document("plan", options),
            "remediation": self._read_document("remediation", options),
            "hosts": self._read_document("hosts", options),
            "guests": self._read_document("guests", options),
        }
        complaints = self._read_complaints(options["complaints"])
        if options["terminal"]:
            self._draw(read, options, complaints)
        result: dict[str, t.Any] = {"changed": False}
        report = None
        # Shown above, but a report would name outcomes of other findings.
        if not self._is_plan_consistent(read):
            read["findings"] = None
        elif options["formats"] and not read["findings"]:
            raise AnsibleActionFail("formats needs findings: the reports are about them.")
        if read["findings"]:
            report = Report(
                findings=read["findings"],
                kinds=options["kinds"],
                plan=read["plan"],
                remediation=read["remediation"],
                journal=options["journal"],
                complaints=complaints,
                failure=options["failure"],
            )
            result["reports"] = self._write(report, options)
        if options["notice"]:
            reports = {**options["reports"], **result.get("reports", {})}
            notice = Notice.from_report(report, read["remediation"], options["failure"], reports)
            result["notable"] = notice.notable
            result["notice"] = NOTICE_FORMATTERS[options["notice"]](notice)
        return result

    @staticmethod
    def _is_plan_consistent(read: Files) -> bool:
        """Return whether the plan, if there is one, was made of these findings.

        Of other findings no outcome can be reported.
        """
        findings, plan = read["findings"], read["plan"]
        if not plan or not findings:
            return True
        return bool(plan["detected_at"] == findings["finished_at"])

    def _draw(self, read: Files, options: dict[str, t.Any], complaints: list[Complaint]) -> None:
        # A worker has no terminal: Display has the width of the main process's.
        columns = Display().columns or MAX_WIDTH
        width = min(shutil.get_terminal_size((columns, 0)).columns, MAX_WIDTH)
        kinds = options["kinds"]
        drawn: list[str] = []
        if read["findings"]:
            drawn += terminal.format_findings(
                read["findings"], options["findings"], kinds, width, complaints
            )
        if read["remediation"]:
            drawn += terminal.format_remediation(read["remediation"], options["journal"], width)
        if read["hosts"]:
            for host in read["hosts"]["hosts"]:
                drawn += hosts.format_host(host, width)
        if read["guests"]:
            drawn += hosts.format_guests(read["guests"], options["guests"], kinds or (), width)
        for tone, text in lines.group_by_tone(drawn):
            colour = getattr(constants, COLOURS[tone]) if tone else None
            Display().display(f"{text}\n", color=colour)

    def _write(self, report: Report, options: dict[str, t.Any]) -> dict[str, str]:
        """Write the reports, and return their paths by format."""
        written: dict[str, str] = {}
        # A format that is named twice is written once.
        for name in dict.fromkeys(options["formats"]):
            # JSON has no report: it is the file of the findings.
            if name not in FORMATS:
                continue
            path, mode = self._choose_path(name, options)
            contents = report
            # The time of the last success comes from the file that is about to be replaced.
            if name == PROMETHEUS:
                contents = report.replace_metrics(self._read_text(path))
            self._write_file(path, FORMATS[name].render(contents), mode)
            written[name] = path
        return written

    @staticmethod
    def _choose_path(name: str, options: dict[str, t.Any]) -> tuple[str, str]:
        """Return the path and the mode of the report in a format."""
        folder, metrics_path = options["output_dir"], options["metrics_path"]
        if name == PROMETHEUS and metrics_path:
            # node_exporter reads the metrics; all other reports name projects and users.
            return metrics_path, "0644"
        if not folder:
            raise AnsibleActionFail(
                f"output_dir is needed for {name}: the report is written there."
            )
        return os.path.join(folder, FORMATS[name].file), "0600"

    def _write_file(self, path: str, text: str, mode: str) -> None:
        """Write a file to the host, in check mode too.

        A reader sees the old file or the whole new one, never a part of it.
        """
        folder, name = os.path.split(path)
        unfinished = os.path.join(folder, f".{name}.unfinished")
        quoted = shlex.quote(unfinished)
        # Copied to a file that exists already, the text is at no time readable for more users than
        # that file.
        umask = "022" if mode == "0644" else "077"
        self._run_command(
            f"umask {umask}; mkdir -p -- {shlex.quote(folder or '.')} "
            f"&& rm -f -- {quoted} && : > {quoted}",
            path,
        )
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            newline="",
            dir=constants.DEFAULT_LOCAL_TMP,
        ) as source:
            source.write(text)
            source.flush()
            # The copy must happen in check mode too, and never show its text as a diff.
            task = self._task.copy()
            task.args = {"src": source.name, "dest": unfinished, "mode": mode, "follow": False}
            task.check_mode = task.diff = False
            copy = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy",
                task=task,
                connection=self._connection,
                play_context=self._play_context,
                loader=self._loader,
                templar=self._templar,
                shared_loader_obj=self._shared_loader_obj,
            )
            copied = copy.run(task_vars=self._task_vars)
        if copied.get("failed"):
            raise AnsibleActionFail(f"{path} cannot be written: {copied.get('msg')}")
        self._run_command(f"mv -f -- {quoted} {shlex.quote(path)}", path)

    def _run_command(self, command: str, path: str) -> None:
        done = self._low_level_execute_command(command)
        if done["rc"]:
            raise AnsibleActionFail(
                f"{path} cannot be written: {done['stderr'].strip() or done['stdout'].strip()}"
            )

    def _read_complaints(self, option: t.Any) -> list[Complaint]:
        """Return the records in the option, which has them or the path of their file."""
        if option is None:
            return []
        try:
            contents = self._read_json(option) if isinstance(option, str) else option
            return extract_records(contents)
        except InvalidInput as error:
            raise AnsibleActionFail(f"complaints cannot be used: {error}") from error

    def _read_document(self, what: DocumentName, options: dict[str, t.Any]) -> t.Any:
        """Return the file that the option `what` names, None without one."""
        path = options[what]
        if not path:
            return None
        try:
            return validate_document(what, self._read_json(path), path)
        except InvalidInput as error:
            raise AnsibleActionFail(str(error)) from error

    def _read_json(self, path: str) -> t.Any:
        slurped = self._slurp(path)
        if slurped.get("failed"):
            raise AnsibleActionFail(f"{path} cannot be read: {slurped.get('msg')}")
        try:
            return json.loads(base64.b64decode(slurped["content"]))
        except ValueError as error:
            raise AnsibleActionFail(
                f"{path} is not JSON ({error}): it was cut short or is another file."
            ) from error

    def _read_text(self, path: str) -> str | None:
        """Return the contents of a file, None where there is none."""
        slurped = self._slurp(path)
        # A first run has no file of an earlier one.
        if slurped.get("failed"):
            return None
        return base64.b64decode(slurped["content"]).decode(errors="replace")

    def _slurp(self, path: str) -> dict[str, t.Any]:
        return self._execute_module(
            module_name="ansible.builtin.slurp",
            module_args={"src": path},
            task_vars=self._task_vars,
        )
