"""Each kind has a file of its name, whose docstrings are published."""

import dataclasses as d
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from .......plugins.module_utils._core.kinds import registry
from .......plugins.module_utils._core.kinds.registry import CHECKS, KINDS, PROOFS
from .......plugins.module_utils._core.models import kinds
from .......plugins.module_utils._core.models.finding import DRIFTED, ORPHANED, Finding
from .......plugins.module_utils._core.models.kind import Kind
from .......plugins.module_utils._core.models.kinds import RENAMED_KINDS
from .......plugins.module_utils._core.models.snapshot import (
    ALLOCATION,
    AMOUNTS,
    INTERFACES,
    MIGRATIONS,
    PORTS,
    SERVER,
    SHAPE,
    Evidence,
    Snapshot,
)
from ... import situations
from ...judging import NO_MINIMUM_AGE, judge

FUNCTIONS = {**PROOFS, **CHECKS}


def test_every_file_is_a_kind_that_the_registry_lists() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")}

    assert files - {"registry"} == {kind.name for kind in KINDS}


def test_table_of_the_kinds_has_what_their_files_say() -> None:
    assert kinds.KINDS == KINDS


def test_no_name_of_an_earlier_version_is_given_twice() -> None:
    assert len(RENAMED_KINDS) == sum(bool(kind.was) for kind in KINDS)
    assert not RENAMED_KINDS.keys() & {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_what_is_proven_and_what_follows(kind: Kind) -> None:
    _head, *paragraphs = (inspect.getdoc(FUNCTIONS[kind.name]) or "").split("\n\n")

    assert [text.partition(": ")[0] for text in paragraphs] == ["Proof", "Needs", "Change"]
    assert all(text.endswith(".") for text in paragraphs)


SITUATIONS = (
    situations.deleted_server,
    situations.deleted_migration,
    situations.unknown_consumer,
    situations.evacuated_source,
    situations.extra_host,
    situations.ended_migration,
)


def _find_with_declared_needs(snapshot: Snapshot) -> Iterator[tuple[Finding, Finding]]:
    """Yield each finding about a consumer that is certain, and the same without other evidence."""
    for finding in judge(snapshot, NO_MINIMUM_AGE):
        if finding.kind not in PROOFS or finding.verdict not in (ORPHANED, DRIFTED):
            continue
        (kind,) = (kind for kind in KINDS if kind.name == finding.kind)
        kept = {"uuid", ALLOCATION, MIGRATIONS, SERVER, *kind.needs}
        if AMOUNTS in kind.needs:
            kept |= {SHAPE, INTERFACES, PORTS}
        left_out = {
            field.name: field.default for field in d.fields(Evidence) if field.name not in kept
        }
        evidence = {uuid: d.replace(about, **left_out) for uuid, about in snapshot.evidence.items()}
        for again in judge(d.replace(snapshot, evidence=evidence), NO_MINIMUM_AGE):
            if again.subject == finding.subject:
                yield finding, again


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)
def test_a_proof_rests_on_what_its_kind_needs(situation: situations.Situation) -> None:
    cloud = situations.Cloud()
    situation(cloud)
    pairs = list(_find_with_declared_needs(cloud.snapshot()))

    assert situation.__name__ in {finding.kind for finding, _again in pairs}
    assert all(finding.change == again.change for finding, again in pairs)
    assert all(finding.verdict == again.verdict for finding, again in pairs)


def test_changes_of_live_servers_rest_on_what_their_kinds_need() -> None:
    world, more = situations.build_world_of_every_action()
    pairs = list(_find_with_declared_needs(world.snapshot(**more)))

    assert len({finding.kind for finding, _again in pairs}) >= 5
    assert all(finding.change == again.change for finding, again in pairs)
