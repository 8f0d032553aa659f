"""Draws docs/images/ again, from the findings in tests/fixtures/report/. `make images` calls it.

It needs Chromium, and no cloud. Names and dates are those of the fixtures, so that an image changes
only when what it shows has changed.
"""

import dataclasses as d
import shutil
import sys
import tempfile
import typing as t
from pathlib import Path

from ...plugins.plugin_utils._report.view import Report
from . import reports
from .chromium import Chromium
from .png import compress
from .screen import ROOT, render_terminal

IMAGES = ROOT / "docs" / "images"
WIDE, NARROW = 1280, 390
# The image of the usual width has no number in its name.
TERMINALS = {80: "terminal-80", 120: "terminal", 160: "terminal-160"}
MAX_LINES = 60
# A page of a phone is endless: its image shows the summary.
MAX_HEIGHT = 1800

_PLAN = "/srv/placement/orphan-cleanup/plan.json"
_JOURNAL = "/srv/placement/orphan-cleanup/journal-20261122T141545Z.jsonl"


def show_first_run() -> Report:
    """Return a report before anything is written, in which everything is new."""
    report = reports.planned()
    seen = {"new": True, "first_seen": report.findings["started_at"]}
    for entry in reports.entries_of(report):
        entry.update(seen)
    summary = report.findings["summary"]
    summary["new"] = summary["kinds"]
    return d.replace(report, plan_path=_PLAN)


def show_cleanup() -> Report:
    """Return a report after the changes."""
    return d.replace(reports.remediated(), plan_path=_PLAN, journal=_JOURNAL)


def draw_pages(browser: Chromium) -> None:
    """Draw the page in a wide and in a narrow window, and dark ones."""
    browser.look(width=WIDE)
    browser.open(show_cleanup())
    _draw(browser, "report", 0, _get_bottom(browser, ".panel.wide") + 14, WIDE)

    browser.look(width=WIDE, scheme="dark")
    browser.open(show_first_run())
    _open(browser, ".steps", "[data-kind]")
    _draw(browser, "report-dark", 0, _get_bottom(browser, ".panel.wide") + 14, WIDE)

    browser.look(width=NARROW)
    browser.open(show_first_run())
    _draw(browser, "report-390", 0, min(MAX_HEIGHT, _get_bottom(browser, "main")), NARROW)

    browser.look(width=WIDE, scheme="dark")
    browser.open(show_cleanup())
    browser.unfold(4)
    browser.script(
        "document.activeElement.blur(); "
        "for (const answer of document.querySelectorAll('details')) answer.open = false"
    )
    top = _get_top(browser, "#findings") - 16
    _draw(browser, "report-finding", top, _get_bottom(browser, ".detail") - top, WIDE)


def draw_terminals(browser: Chromium, folder: Path) -> None:
    """Draw what a check run prints about its findings, on terminals of several widths."""
    for columns, name in TERMINALS.items():
        page = folder / "terminal.html"
        text = render_terminal(show_first_run(), folder, columns, MAX_LINES)
        page.write_text(text, encoding="utf-8")
        browser.look(width=2000)
        browser.driver.get(page.as_uri())
        width, height = browser.script(
            "const box = document.querySelector('pre').getBoundingClientRect();"
            "return [Math.ceil(box.width), Math.ceil(box.height)]"
        )
        _draw(browser, name, 0, height, width)


def _open(browser: Chromium, *selectors: str) -> None:
    for selector in selectors:
        browser.script("document.querySelector(arguments[0]).open = true", selector)


def _get_top(browser: Chromium, selector: str) -> int:
    return _measure(browser, selector, "top")


def _get_bottom(browser: Chromium, selector: str) -> int:
    return _measure(browser, selector, "bottom")


def _measure(browser: Chromium, selector: str, edge: str) -> int:
    return int(
        browser.script(
            "return scrollY + document.querySelector(arguments[0]).getBoundingClientRect()"
            "[arguments[1]]",
            selector,
            edge,
        )
    )


def _draw(browser: Chromium, name: str, top: int, height: int, width: int) -> None:
    # What is half-way would be drawn differently each time.
    browser.script(
        "document.body.getBoundingClientRect();"
        "for (const moving of document.getAnimations()) moving.finish()"
    )
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    taken = browser.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    (IMAGES / f"{name}.png").write_bytes(compress(browser, taken["data"]))


def main() -> None:
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        sys.exit("Chromium is missing: apt-get install --no-install-recommends chromium-driver")
    chromium, chromedriver = t.cast("list[str]", programs)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(chromium, chromedriver, Path(folder))
        browser.start_over(Path(folder))
        draw_pages(browser)
        draw_terminals(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
