"""The images of the documentation can be drawn, and are the same files each time."""

import re
import struct
from html import unescape
from pathlib import Path

import pytest

from . import reports
from .chromium import Chromium
from .images import IMAGES, TERMINALS, show_first_run
from .png import compress
from .screen import render_terminal

_PAGES = {"report": 1280, "report-dark": 1280, "report-finding": 1280, "report-390": 390}


def _read_size(image: bytes) -> tuple[int, int]:
    assert image[:8] == b"\x89PNG\r\n\x1a\n" and image[12:16] == b"IHDR"
    width, height = struct.unpack(">II", image[16:24])
    return width, height


@pytest.mark.parametrize("name", [*_PAGES, *TERMINALS.values()])
def test_image_of_the_documentation_is_small(name: str) -> None:
    image = (IMAGES / f"{name}.png").read_bytes()
    width, height = _read_size(image)

    assert width == _PAGES.get(name, width) and height > 400
    assert len(image) < 200_000


def test_terminal_shows_what_the_run_prints_in_its_colours(tmp_path: Path) -> None:
    page = render_terminal(show_first_run(), tmp_path, columns=100, max_lines=500)
    text = unescape(re.sub(r"<[^>]*>", "", page))

    assert text.startswith("$ ansible-playbook osops.placement.cleanup_orphans --check\n")
    for entry in reports.planned().findings["findings"]:
        # A narrow table has the beginning of a UUID.
        assert entry["kind"] in text and entry["consumer"][:8] in text
    assert 'style="color:#' in page and "\x1b" not in text
    # Neither the machine nor the task that shows the findings is in the image.
    assert str(tmp_path) not in text and "TASK [" not in text
    assert max(map(len, text.split("\n"))) <= 100


def test_screenshot_becomes_the_same_small_file(chromium: Chromium) -> None:
    chromium.open(reports.planned())
    clip = {"x": 0, "y": 0, "width": 640, "height": 480, "scale": 1}
    taken = chromium.command("Page.captureScreenshot", clip=clip)["data"]

    image = compress(chromium, taken)

    assert _read_size(image) == (640, 480)
    assert len(image) < len(taken) * 3 / 4
    assert compress(chromium, taken) == image
