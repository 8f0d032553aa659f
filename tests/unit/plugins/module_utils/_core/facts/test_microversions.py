# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What older services cannot prove."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.microversions import (
    explain_unprovable,
    list_unmet_requirements,
)
from .......plugins.module_utils._core.facts.soundness import list_blocking_requirements
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import build_findings
from ...world import World


def _found(**versions: tuple[int, int]) -> t.Any:
    """Return the findings about a deleted server and an unknown consumer.

    The cloud has these versions.
    """
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    world.delete(world.server(here, here))
    world.stranger(here)
    snapshot = world.snapshot()
    return build_findings(
        d.replace(snapshot, cloud=d.replace(snapshot.cloud, **versions)), Policy()
    )


def _verdicts(found: t.Any) -> dict[str, str]:
    return {
        entry["kind"]: entry["verdict"] for key in ("findings", "undecided") for entry in found[key]
    }


def test_new_enough_services_prove_everything() -> None:
    found = _found()

    assert _verdicts(found) == {"deleted_server": "orphaned", "unknown_consumer": "orphaned"}
    assert (
        found["summary"]["coverage"]["not_provable"]
        == found["summary"]["coverage"]["failed_checks"]
        == []
    )


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (
            {"compute_version": (2, 68)},
            (
                "Nova offers microversions up to 2.68, but 2.69 is needed to see whether every "
                "cell answers"
            ),
        ),
        ({"compute_version": (2, 58)}, "2.59 is needed to see which consumers are migrations"),
        (
            {"placement_version": (1, 27)},
            (
                "Placement offers microversions up to 1.27, but 1.28 is needed to see the "
                "generations of consumers"
            ),
        ),
    ],
    ids=str,
)
def test_missing_common_requirement_leaves_everything_undecided(
    versions: dict[str, tuple[int, int]], said: str
) -> None:
    found = _found(**versions)

    assert set(_verdicts(found).values()) == {"undecided"}
    assert any(said in gate for gate in found["summary"]["coverage"]["failed_checks"])
    assert not found["summary"]["coverage"]["complete"]
    assert all(entry["reason_id"] == "microversion_too_old" for entry in found["undecided"])


def test_missing_requirement_of_one_kind_leaves_that_undecided() -> None:
    found = _found(placement_version=(1, 37))

    assert _verdicts(found) == {"deleted_server": "orphaned", "unknown_consumer": "undecided"}
    assert found["summary"]["coverage"]["complete"]
    assert found["summary"]["coverage"]["not_provable"] == [
        "Placement offers microversions up to 1.37, but 1.38 is needed to see which consumers "
        "belong to another service: "
        "unknown_consumer is undecided."
    ]


@pytest.mark.parametrize(
    ("version", "sentences"),
    [((2, 100), 0), ((2, 69), 0), ((2, 68), 1), ((2, 59), 1), ((2, 58), 2), ((2, 53), 2)],
)
def test_each_missing_version_is_reported_once(version: tuple[int, int], sentences: int) -> None:
    cloud = d.replace(World().snapshot().cloud, compute_version=version)

    assert (
        len(list_unmet_requirements(cloud)) == len(list_blocking_requirements(cloud)) == sentences
    )
    assert (explain_unprovable("deleted_server", cloud) is None) == (sentences == 0)


def test_placement_that_tells_no_time_is_one_sentence_and_no_requirement() -> None:
    """A minimum age of 0 needs no time, so that nothing is refused."""
    cloud = d.replace(World().snapshot().cloud, tells_time=False)

    (sentence,) = list_unmet_requirements(cloud)
    assert cloud.placement_endpoint in sentence
    assert sentence.id == "placement_sends_no_time"
    assert list_blocking_requirements(cloud) == ()
    assert explain_unprovable("deleted_server", cloud) is None
