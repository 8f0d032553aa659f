"""The badges of the README as files: what they say comes from this repository, not from a service.

What was tested is in the results of `make matrix`.
"""

import json
import pathlib
import typing as t

from .contents import ROOT, link_image, link_page, read_galaxy

FOLDER = ROOT / "docs" / "images"
# The average width of a character, and the space around a text.
_CHARACTER, _SPACE = 6.6, 7
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}: {text}"
 width="{width}" height="20">
<!-- SPDX-FileCopyrightText: osops.placement contributors -->
<!-- SPDX-License-Identifier: GPL-3.0-or-later -->
<title>{title}: {text}</title>
<rect width="{width}" height="20" rx="3" fill="#4a4f57"/>
<path d="M{left} 0h{inner}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{inner}z" fill="#1f6f8b"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{middle_left}" y="14" textLength="{title_length}">{title}</text>
<text x="{middle_right}" y="14" textLength="{text_length}">{text}</text>
</g>
</svg>
"""


def list_badges() -> dict[str, tuple[str, str]]:
    """Return the two texts of each badge, by the name of its file."""
    results = _read_results()
    cores = sorted({one["ansible_core"] for one in results["controllers"].values()}, key=_version)
    pythons = sorted({one["python"] for one in results["controllers"].values()}, key=_version)
    novas = sorted((one["versions"]["nova"] for one in results["releases"].values()), key=_version)
    return {
        "version": ("collection", read_galaxy()["version"]),
        "ansible-core": ("ansible-core", _format_range(cores)),
        "python": ("Python", _format_range(pythons)),
        "nova": ("tested with Nova", _format_range([nova.split(".")[0] for nova in novas])),
        "tests": ("matrix", f"{_count_passed(results)} passed"),
        "licence": ("licence", "GPL-3.0-or-later"),
    }


def draw_badge(title: str, text: str) -> str:
    """Return a badge as SVG."""
    title_length, text_length = (round(len(part) * _CHARACTER) for part in (title, text))
    left = title_length + 2 * _SPACE
    width = left + text_length + 2 * _SPACE
    return _SVG.format(
        title=title,
        text=text,
        width=width,
        left=left,
        inner=width - left - 3,
        middle_left=left / 2,
        middle_right=left + (width - left) / 2,
        title_length=title_length,
        text_length=text_length,
    )


def list_files() -> dict[pathlib.Path, str]:
    """Return the content of each file of a badge."""
    return {
        FOLDER / f"badge-{name}.svg": draw_badge(*texts) for name, texts in list_badges().items()
    }


def format_badges() -> str:
    """Return the badges in a line, each with its texts for those who do not see images."""
    pages = {"tests": "docs/tested-versions.md", "nova": "docs/tested-versions.md"}
    badges = []
    for name, (title, text) in list_badges().items():
        page = pages.get(name, {"licence": "LICENSE"}.get(name, "docs/support.md"))
        image = link_image(f"docs/images/badge-{name}.svg")
        badges.append(f"[![{title}: {text}]({image})]({link_page(page)})")
    return "\n".join(badges) + "\n"


def _read_results() -> dict[str, t.Any]:
    path = ROOT / "tools" / "matrix" / "results.json"
    return json.loads(path.read_text(encoding="utf-8"))


def _count_passed(results: dict[str, t.Any]) -> int:
    cells = [cell for row in results["cells"].values() for cell in row.values()]
    assert not any(cell["failed"] for cell in cells), "no badge for tests that failed"
    return sum(cell["passed"] for cell in cells)


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def _format_range(versions: list[str]) -> str:
    return f"{versions[0]} – {versions[-1]}"
