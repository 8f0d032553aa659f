"""Each section about AWX names the tests of its claims, and these tests exist.

A comment at the end of a section names files below `tests`, and single tests in them.
"""

import ast
import functools
import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[3]
PAGES = (ROOT / "docs" / "awx.md", ROOT / "docs" / "awx-reference.md")
APPLY = ROOT / "extensions" / "patterns" / "orphan_cleanup" / "apply.yml"
HEADING = re.compile(r"^##+ (.*)$", re.MULTILINE)
TESTS = re.compile(r"<!-- tests: ([^>]*) -->")
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
# What apply.yml computes, or takes from the environment only.
COMPUTED = {"awx_token", "awx_collection", "awx_version", "awx_manifest", "awx_seen"}


def _list_sections(page: pathlib.Path) -> list[tuple[str, str]]:
    """Return the heading and the text of each section that has a text of its own."""
    parts = HEADING.split(FENCED.sub("", page.read_text(encoding="utf-8")))
    sections = list(zip(parts[1::2], parts[2::2], strict=True))
    return [(heading, text) for heading, text in sections if text.strip()]


SECTIONS = [
    pytest.param(text, id=f"{page.stem}: {heading}")
    for page in PAGES
    for heading, text in _list_sections(page)
]


@functools.cache
def _list_tests(name: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / name).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("text", SECTIONS)
def test_section_names_the_tests_of_its_claims(text: str) -> None:
    named = TESTS.findall(text)

    assert named, "say in a comment which tests hold these claims"
    for entry in " ".join(named).split():
        name, _colons, test = entry.partition("::")
        assert not test or test in _list_tests(name), f"{name} has no test {test}"
        assert any(function.startswith("test_") for function in _list_tests(name))


def test_reference_lists_the_variables_of_the_playbook() -> None:
    text = PAGES[1].read_text(encoding="utf-8")
    table = text.split("## Variables of apply.yml")[1].split("\n## ")[0]
    listed = set()
    for row in re.findall(r"^\| (`awx_.*?) \|", table, re.MULTILINE):
        listed.update(re.findall(r"`(awx_\w+)`", row))
    (play,) = yaml.safe_load(APPLY.read_text(encoding="utf-8"))
    settings = []
    for name in play["vars"]:
        # From here on, there are only names for parts of the tasks.
        if name == "awx_seen":
            break
        settings.append(name)

    assert listed == {name for name in settings if name.startswith("awx_")} - COMPUTED
