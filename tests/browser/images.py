# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws docs/images/ again.

It runs in Chromium, with the reports of a minicloud. `make images` calls it.
"""

from __future__ import annotations

import base64
import html
import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import (
    CHANGED,
    ERROR,
    OK,
    SKIPPED,
    WARNING,
    group_by_tone,
)
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.terminal import (
    format_findings,
)
from ansible_collections.osops.placement.tests.browser import reports
from ansible_collections.osops.placement.tests.browser.chromium import Chromium

ROOT = Path(__file__).parents[2]
WIDTH = 1280

# Ansible's own colours on a dark terminal.
SHADES = {
    CHANGED: "#d7ba5c",
    SKIPPED: "#5fb3c9",
    WARNING: "#c58fd6",
    ERROR: "#e06c6c",
    OK: "#7fbf6a",
    None: "#d6d9de",
}
SCREEN = (
    "margin:0;padding:18px 22px;background:#15181d;"
    "font:14px/1.45 'DejaVu Sans Mono',monospace;width:max-content"
)
COLUMNS, LINES = 100, 42


def terminal() -> str:
    """Render the first lines of the table as a page."""
    report = reports.planned()
    # In a first run everything is new.
    seen = {"new": True, "first_seen": report.findings["started_at"]}
    entries = {
        key: [{**entry, **seen} for entry in report.findings[key]]
        for key in ("findings", "protected", "undecided")
    }
    findings = {
        **report.findings,
        **entries,
        "summary": {**report.findings["summary"], "new": report.findings["summary"]["kinds"]},
    }
    lines = format_findings(findings, "orphan-cleanup/findings.json", report.kinds, COLUMNS)[:LINES]
    shown = [
        (None, "$ ansible-playbook osops.placement.cleanup_orphans --check"),
        *group_by_tone(lines),
    ]
    spans = "".join(
        f'<span style="color:{SHADES[tone]}">{html.escape(text)}\n</span>' for tone, text in shown
    )
    return (
        '<meta charset="utf-8"><body style="margin:0;background:#15181d">'
        f'<pre style="{SCREEN}">{spans}</pre>'
    )


def draw(browser: Chromium, name: str, top: int, height: int, width: int = WIDTH) -> None:
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    taken = browser.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    (ROOT / "docs" / "images" / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(
            t.cast("str", shutil.which("chromium")),
            t.cast("str", shutil.which("chromedriver")),
            Path(folder),
        )
        browser.start_over(Path(folder))
        browser.look(width=WIDTH)
        browser.open(reports.remediated())
        draw(
            browser,
            "report",
            0,
            int(
                browser.script(
                    "return document.querySelector('.panel.wide').getBoundingClientRect().bottom"
                )
            )
            + 14,
        )

        browser.look(width=WIDTH, scheme="dark")
        browser.unfold(4)
        browser.script(
            "document.activeElement.blur(); "
            "for (const answer of document.querySelectorAll('details')) answer.open = false"
        )
        top = browser.script(
            "return scrollY + document.getElementById('findings').getBoundingClientRect().top"
        )
        bottom = browser.script(
            "return scrollY + document.querySelector('.detail').getBoundingClientRect().bottom"
        )
        draw(browser, "report-finding", int(top) - 16, int(bottom - top) + 16)

        page = Path(folder) / "terminal.html"
        page.write_text(terminal(), encoding="utf-8")
        browser.driver.get(page.as_uri())
        box = browser.script(
            "const box = document.querySelector('pre').getBoundingClientRect(); "
            "return [box.width, box.height]"
        )
        browser.look(width=int(box[0]) + 1)
        draw(browser, "terminal", 0, int(box[1]), int(box[0]))
        browser.close()


if __name__ == "__main__":
    main()
