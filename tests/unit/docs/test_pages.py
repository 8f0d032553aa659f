"""The pages match the code, and their links resolve."""

import ast
import itertools
import pathlib
import re
import typing as t

import pytest
import yaml

from ....plugins.action.validate_variables import ROLES
from ....plugins.module_utils._core.models.kinds import KINDS
from ....tools.markup import SECTION
from ....tools.pages.contents import link_image, link_page
from ....tools.pages.tables import PAGES, PARTS, renewed
from . import porting

ROOT = pathlib.Path(__file__).parents[3]
PLACES = (
    "*.md",
    "docs/*.md",
    "roles/*/README.md",
    "tests/README.md",
    "tests/*/README.md",
    "extensions/monitoring/README.md",
    "extensions/patterns/*/README.md",
)
MARKDOWN = sorted(
    path for pattern in PLACES for path in ROOT.glob(pattern) if path.name != "CHANGELOG.md"
)
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"\]\(([^)\s]+)\)")
# A service answers with these words.
ANSWER = "Policy does not allow … to be performed"
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _prose(path: pathlib.Path) -> str:
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def _anchors(path: pathlib.Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub derives them from the text."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(_prose(path))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_matches_the_tables_of_the_rules(page: pathlib.Path) -> None:
    assert page.read_text(encoding="utf-8") == renewed(page), "run make pages"


def test_every_table_is_on_a_page() -> None:
    shown = [
        name
        for page in PAGES
        for _begin, name, _end in SECTION.findall(page.read_text(encoding="utf-8"))
    ]

    assert sorted(shown) == sorted(PARTS)


def test_kinds_page_lists_all_kinds_in_order() -> None:
    page = (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")

    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == [kind.name for kind in KINDS]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_resolve(page: pathlib.Path) -> None:
    broken = []
    for target in _list_targets(page):
        address, _hash, anchor = target.partition("#")
        path = _find_file(page, address)
        if path is None or path.name == "CHANGELOG.md":
            continue
        if not path.exists() or (anchor and anchor not in _anchors(path)):
            broken.append(target)

    assert broken == []


def _list_targets(page: pathlib.Path) -> list[str]:
    """Return the targets of the links and images of a page, also of an image that is a link."""
    return TARGET.findall(_prose(page))


def _find_file(page: pathlib.Path, address: str) -> pathlib.Path | None:
    """Return the file of this repository to which a page links, or None for any other site."""
    for site in (link_page(""), link_image("")):
        if address.startswith(site):
            return ROOT / address.removeprefix(site)
    if "://" in address:
        return None
    return page.parent / address if address else page


def test_every_page_is_linked_from_the_readme() -> None:
    readme = ROOT / "README.md"
    linked = {_find_file(readme, target.partition("#")[0]) for target in _list_targets(readme)}

    assert set((ROOT / "docs").glob("*.md")) - linked == set()


def test_readme_has_only_full_addresses() -> None:
    """Galaxy and Automation Hub show it without the repository."""
    relative = [target for target in _list_targets(ROOT / "README.md") if "://" not in target]

    assert relative == []


def test_page_has_no_duplicate_heading() -> None:
    for page in MARKDOWN:
        headings = sorted(HEADING.findall(_prose(page)))
        assert headings, page
        assert [one for one, other in itertools.pairwise(headings) if one == other] == [], page


def _variables() -> set[str]:
    specs = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in ROOT.glob("roles/*/meta/argument_specs.yml")
    ]
    return {
        # Those that choose the hosts of a play, and the artifacts.
        *(name for role in ROLES.values() for name in role.names),
        *(
            name
            for spec in specs
            for entry in spec["argument_specs"].values()
            for name in entry["options"]
        ),
    }


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_on_a_page_exist(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    content = {
        path.stem
        for pattern in (
            "plugins/modules/*.py",
            "roles/*",
            "playbooks/*.yml",
            "extensions/eda/rulebooks/*.yml",
        )
        for path in ROOT.glob(pattern)
    }
    named = set(re.findall(r"osops\.placement\.(\w+)\b(?!:\d)", text)) - {"placement"}
    variables = set(
        re.findall(r"\b((?:orphan_cleanup|host_decommission|hypervisor_cleanup)_\w+)", text)
    )

    for guide in (porting.GUIDE, porting.NEXT_GUIDE):
        # It has old names as well, which `test_porting.py` compares.
        if page.name == guide.name:
            rows = porting.read_rows("Variables", guide)
            variables -= {porting.find_message(row[0]) for row in rows}
    assert named - content == set()
    assert {name for name in variables - _variables() if not name.endswith("_")} == set()


def _strings(path: pathlib.Path) -> t.Iterator[str]:
    """Return the strings of a Python file, with `…` in place of inserted values."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_explained_messages_are_ours() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    section = page.partition("## From this collection")[2].partition("\n## ")[0]
    first_run = page.partition("### Access to the cloud")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|", first_run + section, re.MULTILINE)
    explained = [*HEADING.findall(section), *rows]
    said = [text for path in (ROOT / "plugins").rglob("*.py") for text in _strings(path)]
    unknown = [
        message
        for message in explained
        if not all(any(part.strip() in text for text in said) for part in message.split("…"))
    ]

    assert unknown == [ANSWER]
    assert len(explained) > 15


def test_architecture_page_names_every_file_of_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {
        f"{room}/{name}"
        for room, text in re.findall(
            r"^### `(_[\w/]+)`(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL
        )
        for name in re.findall(r"^\| `(\w+\.py)`", text, re.MULTILINE)
    }
    rooms = ROOT / "plugins" / "module_utils"
    there = {str(path.relative_to(rooms)) for path in rooms.rglob("*.py")}
    # The page of kinds has them.
    there -= {f"_core/kinds/{kind.name}.py" for kind in KINDS}

    assert named == there


# Every row about an attack has a test, and every file of attacks has a row.
ATTACKS = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in ATTACKS.splitlines()
    if line.startswith("|") and "::" in line
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[-1].strip("`").rpartition("::")[2])
def test_attack_has_a_result_a_version_and_a_test(row: list[str]) -> None:
    _attack, result, since, test = row
    assert re.match("(held|closed)", result)
    assert since in ("1.0.0", "2.0.0", "3.0.0")
    path, _separator, function = test.strip("`").partition("::")
    code = (ROOT / "tests" / path).read_text(encoding="utf-8")
    assert f"\ndef {function}(" in code


def test_every_file_of_attacks_is_on_the_page() -> None:
    files = sorted((ROOT / "tests" / "attacks").glob("test_*.py"))
    assert files
    assert [file.name for file in files if f"attacks/{file.name}" not in ATTACKS] == []


def test_changelog_has_names_in_double_backticks() -> None:
    """It shows the markup of module documentation as it is."""
    markup = re.compile(r"\b(?:[BCEFIMOPUV]|RV)\([^)\n]*\)")
    fragments = sorted((ROOT / "changelogs" / "fragments").glob("*.yml"))
    found = {path.name: markup.findall(path.read_text(encoding="utf-8")) for path in fragments}

    assert {name: names for name, names in found.items() if names} == {}
