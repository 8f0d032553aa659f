"""No needed allocation is removable at any moment of the recorded lives of servers in Nova."""

import itertools
import typing as t

import pytest

from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.kind import REMEDIATE
from .......plugins.module_utils._core.models.kinds import KINDS, ORPHAN_KINDS
from .......plugins.module_utils._core.options.policy import Policy
from .....examples import choose_examples
from ...judging import NO_MINIMUM_AGE
from ...nova_lives import Life, Moment, read_lives


def _check(life: Life, moment: Moment) -> list[str]:
    """Check that no change takes what is needed, and return their kinds."""
    found = moment.find_changes()
    for finding in found:
        assert isinstance(finding.change, Change)
        taken = moment.find_loss(finding.change)
        told = "\n".join([*moment.told, f"{finding.kind} of {finding.consumer} takes {taken}"])
        assert not taken, f"{life.about}\n{told}: {finding.reason}"
    return [finding.kind for finding in found]


def _make(moment: Moment) -> None:
    for finding in moment.find_changes():
        assert isinstance(finding.change, Change)
        moment.apply(finding.change)


@pytest.mark.parametrize("about", ["cut", "rename", "random", "race swap operation"])
def test_needed_allocations_survive_every_moment(about: str) -> None:
    """Of operations that were cut at any step, with hosts that were renamed or replaced meanwhile.

    A second run begins where a first one has made all its changes.
    """
    kinds: set[str] = set()
    lives = read_lives(*about.split())
    # Step after step little changes.
    for life in choose_examples(lives) if "race" in about else lives:
        for moment in life:
            found = _check(life, moment)
            kinds.update(found)
            if found:
                _make(moment)
                _check(life, moment)
    assert len(kinds) > 3
    if about == "cut":
        changed = {kind.name for kind in KINDS if kind.by_default == REMEDIATE}
        assert kinds >= changed | {kind.name for kind in ORPHAN_KINDS}


def test_needed_allocations_survive_where_everything_shown_speaks_against_them() -> None:
    """A guest runs, or the last disk is, where neither the server nor a migration says so."""
    lives = list(read_lives("gap"))
    for life in lives:
        for moment in life:
            assert moment.needed[life.server]
            _check(life, moment)
    assert len(lives) > 10


def test_allocation_that_nova_is_about_to_write_is_kept_however_old_it_is() -> None:
    """Some operations show their end first, and then write the allocation."""
    recent = Policy(min_age=4 * 3600)
    unprotected = 0
    for life in choose_examples(read_lives("operation")):
        for now, then in itertools.pairwise(life.let_weeks_pass()):
            held = now.allocations
            written = {one for one in held if held[one] != then.allocations.get(one)}
            assert not written & _list_changed(now, recent), life
            unprotected += len(written & _list_changed(now, NO_MINIMUM_AGE))
    assert unprotected


def _list_changed(moment: Moment, policy: Policy) -> set[str]:
    found = moment.find_changes(policy)
    return {part.consumer for finding in found for part in t.cast("t.Any", finding.change).parts}
