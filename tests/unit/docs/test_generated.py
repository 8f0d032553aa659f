"""What `make pages` writes: badges, the tables of variables, and the version in commands."""

import pathlib
import re

import pytest

from ....plugins.action.validate_variables import ROLES
from ....tools.pages.badges import list_badges, list_files
from ....tools.pages.contents import read_galaxy
from ....tools.pages.kind_table import write_kind_table
from ....tools.pages.options import write_options
from ....tools.pages.variables import format_markup, format_role

ROOT = pathlib.Path(__file__).parents[3]
MARKDOWN = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


def test_badges_match_what_they_are_made_of() -> None:
    for path, content in list_files().items():
        assert path.read_text(encoding="utf-8") == content, "run make pages"
    texts = dict(list_badges().values())
    assert texts["collection"] == read_galaxy()["version"]
    assert texts["ansible-core"].startswith("2.18")


def test_table_of_kinds_has_what_the_kinds_say() -> None:
    for path, content in write_kind_table().items():
        assert path.read_text(encoding="utf-8") == content, "run make pages"


@pytest.mark.parametrize("path", write_options(), ids=lambda path: path.parts[-3] + path.stem)
def test_what_derives_from_the_options_is_written(path: pathlib.Path) -> None:
    assert path.read_text(encoding="utf-8") == write_options()[path], "run make pages"


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("set O(orphan_cleanup_mode=full)", "set `orphan_cleanup_mode=full`"),
        (r"V(a\)b) and C(--check)", "`a)b` and `--check`"),
        ('an example is V({"a": 1})', 'an example is `{"a": 1}`'),
        (
            "B(never) see M(osops.placement.orphan_detect)",
            "**never** see `osops.placement.orphan_detect`",
        ),
        ("L(Nova, https://example.org/nova)", "[Nova](https://example.org/nova)"),
        ("in the COMMAND (optional)", "in the COMMAND (optional)"),
    ],
)
def test_markup_of_descriptions_becomes_markdown(text: str, markdown: str) -> None:
    assert format_markup(text) == markdown


def test_variables_page_lists_every_variable_once() -> None:
    page = (ROOT / "docs" / "variables.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\S+)` \|", page, re.MULTILINE)
    shared = [name.removeprefix("…_") for name in listed if name.startswith("…")]
    variables = {f"{role.prefix}{name}" for role in ROLES.values() for name in shared}
    variables.update(name for name in listed if not name.startswith("…"))

    assert len(listed) == len(set(listed))
    assert variables == {name for role in ROLES.values() for name in role.options}


def test_variables_of_one_entry_point_have_their_own_table() -> None:
    before, title, after = format_role("hypervisor_cleanup").partition("Only for the entry point")

    assert title and after.startswith(" `purge`:")
    assert ("`hypervisor_cleanup_quiet`" in before, "_purge_age`" in before) == (True, False)
    assert ("`hypervisor_cleanup_quiet`" in after, "_purge_age`" in after) == (False, True)


@pytest.mark.parametrize(
    "page",
    [*MARKDOWN, *ROOT.glob("extensions/patterns/*/README.md")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_name_the_version_of_the_collection(page: pathlib.Path) -> None:
    version = read_galaxy()["version"]
    text = page.read_text(encoding="utf-8")

    assert set(re.findall(r"osops-placement-(\d+\.\d+\.\d+)\.tar", text)) <= {version}
    assert set(re.findall(r"osops-placement-ee:([\d.]*\d)", text)) <= {version}
    assert set(re.findall(r'version: ">=(\d+\.\d+\.\d+)', text)) <= {version}
