"""What a run prints on a terminal of some width, with its colours, as a page.

No cloud is needed: `orphan_report` shows a file of findings.
"""

import fcntl
import html
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from ...plugins.plugin_utils._report.view import Report

ROOT = Path(__file__).parents[2]

# Ansible's own colours, on a dark terminal.
_SHADES = {
    "31": "#e06c6c",
    "32": "#7fbf6a",
    "33": "#d7ba5c",
    "34": "#6ea8e0",
    "35": "#c58fd6",
    "36": "#5fb3c9",
}
_TEXT = "#d6d9de"
_SCREEN = (
    "margin:0;padding:18px 22px;background:#15181d;white-space:pre;"
    "font:14px/1.45 'DejaVu Sans Mono',monospace"
)
_COMMAND = "$ ansible-playbook osops.placement.cleanup_orphans --check"
_COLOUR = re.compile(r"\x1b\[([0-9;]*)m")


def render_terminal(report: Report, folder: Path, columns: int, max_lines: int) -> str:
    """Return the first lines that a run prints about its findings, as a page."""
    text = _show_findings(report, folder, columns)
    lines = [_COMMAND, *text.split("\n")]
    if len(lines) > max_lines:
        lines = [*lines[:max_lines], "…"]
    body = _convert_colours("\n".join(lines))
    return (
        '<meta charset="utf-8"><body style="margin:0;background:#15181d">'
        f'<pre style="{_SCREEN};color:{_TEXT};width:{columns}ch">{body}</pre>'
    )


def _show_findings(report: Report, folder: Path, columns: int) -> str:
    """Return what orphan_report prints on a terminal that has so many columns."""
    (folder / "orphan-cleanup").mkdir(exist_ok=True)
    (folder / "orphan-cleanup" / "findings.json").write_text(json.dumps(report.findings))
    task = {"findings": "orphan-cleanup/findings.json", "kinds": list(report.kinds or ())}
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "tasks": [{"osops.placement.orphan_report": task}],
    }
    # Not the configuration of the user who draws the images.
    (folder / "ansible.cfg").write_text("")
    playbook = folder / "show.yml"
    playbook.write_text(json.dumps([play]))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), str(playbook)]
    printed = _run_on_terminal(command, folder, columns)
    # Ansible's own lines about the task are not those of a cleanup.
    found = re.search(r"^TASK \[.*?\] \**\r?\n(.*?)^\S*ok: \[localhost\]", printed, re.S | re.M)
    if found is None:
        raise RuntimeError(printed)
    return found[1].replace("\r", "").strip("\n")


def _run_on_terminal(command: list[str], folder: Path, columns: int) -> str:
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_FORCE_COLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        "COLUMNS": str(columns),
        "PWD": str(folder),
    }
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=child, stdout=child, stderr=child
    ):
        os.close(child)
        printed = _read_all(parent)
    os.close(parent)
    return printed.decode("utf-8")


def _read_all(terminal: int) -> bytes:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            # The last process has closed the terminal.
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def _convert_colours(text: str) -> str:
    """Return a text with escape sequences as HTML with the same colours."""
    parts = _COLOUR.split(text)
    converted = html.escape(parts[0])
    for codes, part in zip(parts[1::2], parts[2::2], strict=True):
        shade = _SHADES.get(codes.rpartition(";")[2], _TEXT)
        if part:
            converted += f'<span style="color:{shade}">{html.escape(part)}</span>'
    return converted
