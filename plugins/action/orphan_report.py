# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import typing as t

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.plugin_utils._action import (
    FileActionModule,
    is_plan_of_findings,
)
from ansible_collections.osops.placement.plugins.plugin_utils._controller import (
    find_path,
    is_on_controller,
)
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
    extract_records,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.formats import (
    FORMAT_NAMES,
    FORMATS,
    PROMETHEUS,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report
from ansible_collections.osops.placement.plugins.plugin_utils._terminal import (
    clouds,
    hosts,
    lines,
    terminal,
)
from ansible_collections.osops.placement.plugins.plugin_utils._text_files import write_text

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
        DocumentName,
    )

MAX_WIDTH = 120

COLOURS = {
    lines.CHANGED: "COLOR_CHANGED",
    lines.SKIPPED: "COLOR_SKIP",
    lines.WARNING: "COLOR_WARN",
    lines.ERROR: "COLOR_ERROR",
    lines.OK: "COLOR_OK",
}


# What can be shown, and the plan, which is only written to files.
SHOWN: tuple[DocumentName, ...] = ("findings", "remediation", "hosts", "guests", "summary")
DOCUMENTS: tuple[DocumentName, ...] = (*SHOWN, "plan")

ARGUMENT_SPEC = {
    "findings": {"type": "path"},
    "kinds": {"type": "list", "elements": "str"},
    "complaints": {"type": "raw"},
    "plan": {"type": "path"},
    "remediation": {"type": "path"},
    "hosts": {"type": "path"},
    "guests": {"type": "path"},
    "summary": {"type": "path"},
    "journal": {"type": "path"},
    "failure": {"type": "str", "default": ""},
    "terminal": {"type": "bool", "default": True},
    "formats": {"type": "list", "elements": "str", "choices": list(FORMAT_NAMES), "default": []},
    "output_dir": {"type": "path"},
    "metrics_path": {"type": "path"},
}


REQUIRED_BY = {
    "complaints": ("findings",),
    "output_dir": ("findings",),
    "metrics_path": ("findings",),
    "plan": ("findings",),
}


class ActionModule(FileActionModule):
    """Shows the files of the other modules on the controller, and writes reports to the host.

    Its options are in the module of the same name.
    """

    def run(
        self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None
    ) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        _result, options = self.validate_argument_spec(
            argument_spec=ARGUMENT_SPEC,
            required_one_of=[SHOWN],
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
            )
            result["reports"] = self._write(report, options)
        return result

    def _draw(
        self, documents: dict[str, t.Any], options: dict[str, t.Any], complaints: list[t.Any]
    ) -> None:
        # A worker has no terminal: Display has the width of the main process's.
        columns = Display().columns or MAX_WIDTH
        width = min(shutil.get_terminal_size((columns, 0)).columns, MAX_WIDTH)
        kinds = options["kinds"]
        drawn: list[str] = []
        if documents["findings"]:
            drawn += terminal.format_findings(
                documents["findings"], options["findings"], kinds, width, complaints
            )
        if documents["remediation"]:
            drawn += terminal.format_remediation(
                documents["remediation"], options["journal"], width
            )
        if documents["hosts"]:
            for host in documents["hosts"]["hosts"]:
                drawn += hosts.format_host(host, width)
        if documents["guests"]:
            drawn += hosts.format_guests(documents["guests"], options["guests"], kinds or (), width)
        if documents["summary"]:
            drawn += clouds.format_summary(documents["summary"], options["summary"], width)
        for tone, text in lines.group_by_tone(drawn):
            colour = getattr(constants, COLOURS[tone]) if tone else None
            Display().display(f"{text}\n", color=colour)

    def _write(self, report: Report, options: dict[str, t.Any]) -> dict[str, str]:
        """Write the reports, and return their paths by format."""
        written: dict[str, str] = {}
        for name in dict.fromkeys(options["formats"]):
            # JSON has no report: it is the file of the findings.
            if name not in FORMATS:
                continue
            path, mode = self._choose_path(name, options)
            contents = report
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
            raise AnsibleActionFail(f"output_dir is needed for {name}: it says where to write it.")
        return os.path.join(folder, FORMATS[name].file), "0600"

    def _write_file(self, path: str, text: str, mode: str) -> None:
        """Write a file to the host, in check mode too.

        A reader sees the old file or the whole new one, never a part of it.
        """
        if is_on_controller(self):
            self._write_on_controller(path, text, mode)
        else:
            self._write_on_host(path, text, mode)

    def _write_on_controller(self, path: str, text: str, mode: str) -> None:
        try:
            write_text(find_path(self, path), text, int(mode, 8))
        except OSError as error:
            raise AnsibleActionFail(f"{path} cannot be written: {error.strerror}.") from error

    def _write_on_host(self, path: str, text: str, mode: str) -> None:
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

    def _read_complaints(self, option: t.Any) -> list[t.Any]:
        """Return the records in the option, which has them or the path of their file."""
        if option is None:
            return []
        try:
            contents = self._read_json(option) if isinstance(option, str) else option
            return extract_records(contents)
        except InvalidInput as error:
            raise AnsibleActionFail(f"complaints cannot be used: {error}") from error
