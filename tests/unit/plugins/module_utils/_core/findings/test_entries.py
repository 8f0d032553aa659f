"""What the figures of a detection are about."""

import typing as t

import pytest

from .......plugins.module_utils._core.findings.entries import describe_scope
from .......plugins.module_utils._core.models.codec import convert_to_json
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (Scope(), "the whole cloud"),
        (Scope(hosts=("compute-1",)), "1 host (compute-1)"),
        (Scope(hosts=("d", "c", "b", "a")), "4 hosts (a, b, c and 1 more)"),
        (Scope(hosts=("a",), consumers=("x", "y")), "1 host (a) and 2 consumers (x, y)"),
        (Scope(shard=Shard(2, 4)), "shard 2 of 4 of the cloud"),
        (Scope(mode="triage"), "the hosts whose figures look wrong"),
        (
            Scope(groups=HostGroups(("u",), ("rack-7",), ("7",), hosts=("a", "b"))),
            "2 hosts of aggregate rack-7",
        ),
        (
            Scope(
                groups=HostGroups(
                    availability_zones=("az1", "az2"), cells=("cell\x1b1",), hosts=("a",)
                ),
                kinds=("extra_host",),
            ),
            r"1 host of availability zones az1, az2 within cell cell\x1b1, findings of 1 kind "
            "(extra_host) only",
        ),
        (
            Scope(hosts=("a",), groups=HostGroups(cells=("cell1",), hosts=("a", "b"))),
            "1 host (a) within cell cell1",
        ),
        (
            Scope(projects=("p",), kinds=("deleted_server",)),
            "the whole cloud, findings of 1 project (p) only, "
            "findings of 1 kind (deleted_server) only",
        ),
    ],
)
def test_scope_is_described_in_words(scope: Scope, text: str) -> None:
    assert describe_scope(t.cast("t.Any", convert_to_json(scope))) == text


def test_scope_of_a_file_of_version_1_0_has_no_shard() -> None:
    scope: t.Any = convert_to_json(Scope())
    del scope["shard"]

    assert describe_scope(scope) == "the whole cloud"
