# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws docs/images/ anew: the HTML report of what the minicloud had, in Chromium. `make images` runs it."""

from __future__ import annotations

import base64
import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.osops.placement.tests.browser import reports
from ansible_collections.osops.placement.tests.browser.chromium import Chromium

ROOT = Path(__file__).parents[2]
WIDTH = 1280


def draw(browser: Chromium, name: str, top: int, height: int) -> None:
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": 1}
    taken = browser.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    (ROOT / "docs" / "images" / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(t.cast("str", shutil.which("chromium")), t.cast("str", shutil.which("chromedriver")), Path(folder))
        browser.start_over(Path(folder))
        browser.look(width=WIDTH)
        browser.open(reports.remediated())
        draw(browser, "report", 0, int(browser.script("return document.querySelector('.panel.wide').getBoundingClientRect().bottom")) + 14)

        browser.look(width=WIDTH, scheme="dark")
        browser.unfold(4)
        browser.script("document.activeElement.blur(); for (const answer of document.querySelectorAll('details')) answer.open = false")
        top = browser.script("return scrollY + document.getElementById('findings').getBoundingClientRect().top")
        bottom = browser.script("return scrollY + document.querySelector('.detail').getBoundingClientRect().bottom")
        draw(browser, "report-finding", int(top) - 16, int(bottom - top) + 16)
        browser.close()


if __name__ == "__main__":
    main()
