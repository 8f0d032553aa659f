"""Names that were meant for a role: every edit of a prefix is found, and other names are not."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ......plugins.action.validate_variables import ROLES
from ......plugins.plugin_utils._variables.unknown import find_unknown_variables, split_prefix

LETTERS = string.ascii_lowercase + string.digits


@st.composite
def edited_prefixes(draw: st.DrawFn) -> tuple[str, str]:
    """A role, and its prefix with one edit before the last separator."""
    role = draw(st.sampled_from(list(ROLES)))
    at = draw(st.integers(0, len(role) - 2))
    character = draw(st.sampled_from(LETTERS))
    edits = [
        role[:at] + character + role[at:],
        role[:at] + role[at + 1 :],
        role[:at] + character + role[at + 1 :],
        role[:at] + role[at + 1] + role[at] + role[at + 2 :],
    ]
    edited = draw(st.sampled_from(edits))
    # Two letters in a row can be the same, and the first letter can be missing before a separator.
    return role, f"{edited.lstrip('_')}_"


@given(edited_prefixes())
def test_every_edit_of_a_prefix_is_found(edited: tuple[str, str]) -> None:
    role, prefix = edited
    name = next(name for name in sorted(ROLES[role].names) if not name.startswith("_"))
    misspelt = prefix + name.removeprefix(f"{role}_")

    found = find_unknown_variables([misspelt], [misspelt], ROLES)

    assert misspelt == name or (len(found) == 1 and found[misspelt].endswith(f" {name}?"))


@given(st.text(string.ascii_letters + "_-", min_size=1, max_size=40))
def test_other_names_are_left_alone(name: str) -> None:
    """Two edits are too many to be sure of."""
    assert find_unknown_variables([f"xx_{name}"], [], ROLES) == {}


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("orphan_cleanup_hosts", "hosts"),
        ("orphan_cleanup_", ""),
        ("orphan-cleanup-hosts", "hosts"),
        ("OrphanCleanupHosts", "hosts"),
        ("orphan_cleanuphosts", "hosts"),
        ("orphan_cleanup.hosts", "hosts"),
        ("orphan_cleanupx_hosts", "hosts"),
        ("orphan_claenup_hosts", "hosts"),
    ],
)
def test_what_follows_a_prefix(name: str, rest: str) -> None:
    found = split_prefix(name, "orphan_cleanup")

    assert found is not None and found[0] == rest


@pytest.mark.parametrize(
    "name", ["", "_", "orphan", "orphan_cleanup", "cleanup_hosts", "_orphan_cleanup_x"]
)
def test_what_has_no_prefix(name: str) -> None:
    assert split_prefix(name, "orphan_cleanup") is None
