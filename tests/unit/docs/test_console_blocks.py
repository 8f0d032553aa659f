"""The commands in the pages: those that no test runs are at least well formed."""

import itertools
import json
import pathlib
import re
import shlex
import textwrap
import typing as t

import pytest
import yaml

from ...integration.console_blocks import (
    Block,
    Command,
    equal_outputs,
    read_blocks,
    replace_outputs,
    select_lines,
)
from ...integration.test_documentation import PAGES

ROOT = pathlib.Path(__file__).parents[3]
RUN = PAGES
ALL = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/*.md", "roles/*/README.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
EXAMPLE = re.compile(r"^ *```(yaml|json)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PLAYBOOK = re.compile(r"(?:osops\.placement\.|(?:.*/)?playbooks/)(\w+)(?:\.yml)?")
# A playbook of another collection, or of the reader.
OTHERS = {"controller.yml"}
# Blocks of the pages above that no test can run. A new one needs a good reason.
NOT_RUN = {
    "README.md": ["it needs a package index and Galaxy"],
    "docs/guide.md": ["pip needs a package index"],
    "docs/no-valid-host.md": [],
    "docs/recipes.md": ["it needs a hypervisor that Ansible can reach"],
}

PAGE = """\
# A page

<!-- before: minicloud scenario healthy -->
<!-- names: compute-17 = healthy hosts.host -->
<!-- shows: last 2 lines -->
<!-- exit: 2 -->
```console
$ cd ~/clean
$ ansible-playbook one.yml \\
      -e two=3
…
an earlier
output
```

<!-- before: forgotten after other text -->
Text.

```yaml
$: no command
```

<!-- not run: no network -->
```console
$ pip install it
```
"""


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_blocks_are_read_with_the_comments_above_them() -> None:
    first, second = read_blocks(PAGE)

    assert first == Block(
        line=8,
        commands=[
            Command("cd ~/clean"),
            Command("ansible-playbook one.yml \\\n      -e two=3", ["…", "an earlier", "output"]),
        ],
        setup=[
            ("before", "minicloud scenario healthy"),
            ("names", "compute-17 = healthy hosts.host"),
        ],
        shows="last 2 lines",
        status=2,
        not_run="",
    )
    assert (second.not_run, second.setup) == ("no network", [])


def test_block_without_a_command_is_an_error() -> None:
    with pytest.raises(ValueError, match="begins with"):
        read_blocks("```console\nansible-playbook one.yml\n```\n")


def test_only_the_outputs_of_a_page_are_replaced() -> None:
    blocks = read_blocks(PAGE)
    assert replace_outputs(PAGE, blocks) == PAGE

    blocks[0].commands[1].output = ["a longer", "output", "of", "four lines"]
    replaced = replace_outputs(PAGE, blocks)

    assert "a longer\noutput\nof\nfour lines\n```" in replaced
    assert replaced.replace("a longer\noutput\nof\nfour lines", "…\nan earlier\noutput") == PAGE


@pytest.mark.parametrize(
    ("shows", "selected"),
    [
        ("everything", ["one", "", "KIND", "two"]),
        ("last 2 lines", ["…", "KIND", "two"]),
        ("last 9 lines", ["one", "", "KIND", "two"]),
        ("from KIND", ["…", "KIND", "two"]),
        ("from kind", ["…", "KIND", "two"]),
        ("from one", ["one", "", "KIND", "two"]),
    ],
)
def test_part_of_an_output_is_selected(shows: str, selected: list[str]) -> None:
    assert select_lines("\none\n\nKIND  \ntwo\n\n", shows) == selected


def test_missing_text_is_an_error_with_the_output() -> None:
    with pytest.raises(LookupError, match="fatal: no cloud"):
        select_lines("fatal: no cloud\n", "from KIND")


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        ("took 3 s", "took 12 s", True),
        ("seen 2d ago", "seen 3h ago", True),
        ("at 2026-11-20T04:17:00Z", "at 2026-11-23T01:02:03Z", True),
        ("4dc43dde-7b95-4abf-9297-45c8f9851357", "c60a1466-ba77-4f21-ac09-dc82bf70a9b2", True),
        ("db-1    4dc43dde", "db-1    c60a1466", True),
        ("TASK [a] ****", "TASK [a] *********", True),
        ("why      it\n         is", "why  it is", True),
        ("2 removed", "3 removed", False),
        ("compute-3", "compute-4", False),
        ("1 VCPU", "2 VCPU", False),
    ],
)
def test_outputs_differ_only_in_what_changes_from_run_to_run(
    shown: str, printed: str, equal: bool
) -> None:
    assert equal_outputs(shown.splitlines(), printed.splitlines()) is equal


@pytest.mark.parametrize("name", RUN)
def test_blocks_that_cannot_run_are_counted(name: str) -> None:
    blocks = read_blocks(_read(name))

    assert [block.not_run for block in blocks if block.not_run] == NOT_RUN[name]
    assert [block for block in blocks if not block.not_run]


@pytest.mark.parametrize("name", RUN)
def test_page_that_runs_shows_no_output_by_hand(name: str) -> None:
    by_hand = [
        block.line
        for block in read_blocks(_read(name))
        if not block.shows and any(command.output for command in block.commands)
    ]

    assert by_hand == []


def _list_commands(name: str) -> t.Iterator[list[str]]:
    """Return the words of each command of a page."""
    for block in read_blocks(_read(name)):
        for command in block.commands:
            yield shlex.split(command.text.replace("\\\n", " "), comments=True)


def _is_playbook(word: str) -> bool:
    if found := PLAYBOOK.fullmatch(word):
        return (ROOT / "playbooks" / f"{found[1]}.yml").exists()
    return word in OTHERS or (word.endswith(".yml") and (ROOT / word).exists())


@pytest.mark.parametrize("name", ALL)
def test_playbooks_and_variables_of_commands_exist(name: str) -> None:
    for words in _list_commands(name):
        if words[:1] == ["ansible-playbook"]:
            assert any(_is_playbook(word) for word in words), words
        for before, word in itertools.pairwise(words):
            if before in ("-e", "-a") and word.startswith("{"):
                json.loads(word)


def test_schedules_are_well_formed() -> None:
    page = _read("docs/scheduled-runs.md")
    lines = re.findall(r"^```cron\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert lines
    for line in lines:
        *_times, user, command = line.split(maxsplit=6)
        assert user == "operator"
        assert "ansible-playbook osops.placement.cleanup_orphans" in command


@pytest.mark.parametrize("name", ALL)
def test_examples_are_well_formed(name: str) -> None:
    for language, text in EXAMPLE.findall(_read(name)):
        plain = textwrap.dedent(text)
        if language == "json":
            json.loads(plain)
        else:
            list(yaml.safe_load_all(plain))
