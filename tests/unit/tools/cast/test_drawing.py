"""The animation of the README is the recording, and can be read without animation."""

import re
import xml.etree.ElementTree as xml

from .....tools.cast import drawing, recording
from .....tools.cast.recording import Take

SVG = "{http://www.w3.org/2000/svg}"


def _texts(svg: str) -> list[str]:
    """Return the lines of a picture."""
    return ["".join(line.itertext()) for line in xml.fromstring(svg).iter(f"{SVG}text")]


def test_picture_is_drawn_from_the_recording() -> None:
    assert drawing.FILE.read_text(encoding="utf-8") == drawing.draw(recording.load()), (
        "run make cast"
    )


def test_picture_needs_nothing_from_outside_and_is_light() -> None:
    picture = drawing.FILE.read_text(encoding="utf-8")
    names = {element.tag.removeprefix(SVG) for element in xml.fromstring(picture).iter()}

    assert names <= {"svg", "title", "style", "clipPath", "rect", "circle", "g", "text", "tspan"}
    assert not re.search(r"href|url\((?!#)|@import|@font-face", picture)
    assert len(picture) < 100_000


def test_recording_names_nothing_of_the_machine() -> None:
    text = recording.FILE.read_text(encoding="utf-8")

    assert "/home/operator" in text
    assert not re.search(r"127\.0\.0\.1|/tmp/|/root/|\.venv", text)


def test_hostile_name_is_only_text() -> None:
    name = '<script>alert("&")</script>'

    assert name in _texts(drawing.draw([Take("one", [(0.1, f"{name}\n")])]))


def test_colours_and_other_sequences_are_not_printed() -> None:
    svg = drawing.draw([Take("one", [(0.1, "\x1b[0;32mok: \x1b[0m\x1b[Khere\n"), (0.2, "\n")])])

    assert "ok: here" in _texts(svg)
    assert '<tspan class="g">ok: </tspan>here' in svg


def test_long_line_is_wrapped_as_a_terminal_does() -> None:
    texts = _texts(drawing.draw([Take("one", [(0.1, "a" * 150 + "\n")])]))

    assert texts[-2:] == ["a" * 100, "a" * 50]


def test_overwritten_text_is_not_drawn() -> None:
    assert "done" in _texts(drawing.draw([Take("one", [(0.1, "10 %\r50 %\rdone\n")])]))


def test_last_screen_is_the_picture_without_animation() -> None:
    printed = "".join(f"line {number}\n" for number in range(100))
    svg = drawing.draw([Take("one", [(0.1, printed)])])

    # 101 lines with the command, of which the last ones fit.
    assert f'transform="translate(0,-{(101 - drawing.ROWS) * 19})"' in svg
    still = svg.partition("@media (prefers-reduced-motion: no-preference)")[0]
    assert "animation" not in still and "opacity" not in still
