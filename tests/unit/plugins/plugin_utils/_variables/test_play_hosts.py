"""Plays without hosts: the lookup finds them, and its sentence says what to do."""

import typing as t

import pytest
from ansible.parsing.dataloader import DataLoader

from ......plugins.plugin_utils._variables.play_hosts import (
    explain_no_hosts,
    has_hosts,
    list_patterns,
)

GROUPS = {"all": ["north", "south"], "ungrouped": [], "clouds": ["north", "south"]}
EMPTY: dict[str, list[str]] = {"all": [], "ungrouped": []}


@pytest.mark.parametrize(
    ("pattern", "limit", "groups"),
    [
        ("clouds", None, GROUPS),
        ("clouds", "north", GROUPS),
        (["north", "nowhere"], None, GROUPS),
        ("clouds:!south", "n*", GROUPS),
        ("localhost", None, EMPTY),
        ("localhost", "localhost,north", GROUPS),
        ("all", "all:!north", GROUPS),
    ],
)
def test_a_play_with_hosts(pattern: t.Any, limit: str | None, groups: t.Any) -> None:
    assert has_hosts(list_patterns(pattern), groups, limit, DataLoader())


@pytest.mark.parametrize(
    ("pattern", "limit", "groups", "sentence"),
    [
        ("clouds", None, EMPTY, "there is no inventory: give one with -i."),
        ("regions", None, GROUPS, "no host of the inventory matches 'regions'; add the hosts"),
        ("clouds", "nobody", GROUPS, "--limit 'nobody' leaves out all hosts that match 'clouds'"),
        ("clouds:!north", "north", GROUPS, "--limit 'north' leaves out all hosts"),
        ("localhost", "north", GROUPS, "runs on localhost, which --limit 'north' leaves out"),
        ("localhost", "north", EMPTY, "and name what to examine in orphan_cleanup_hosts."),
        ("", None, GROUPS, "orphan_cleanup_clouds is empty"),
        (None, None, GROUPS, "orphan_cleanup_clouds is empty"),
        (["", None], None, GROUPS, "orphan_cleanup_clouds is empty"),
    ],
)
def test_a_play_without_hosts_is_explained(
    pattern: t.Any, limit: str | None, groups: t.Any, sentence: str
) -> None:
    patterns = list_patterns(pattern)

    assert not has_hosts(patterns, groups, limit, DataLoader())
    explained = explain_no_hosts(
        patterns, limit, bool(groups["all"]), "orphan_cleanup_clouds", "orphan_cleanup_hosts"
    )
    assert explained.startswith("Nothing was done: ") and sentence in explained
