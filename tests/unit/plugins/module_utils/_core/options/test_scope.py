"""Only what a user names is read, and unknown names are refused."""

import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard
from .......plugins.module_utils._core.options.scope import (
    ScopeOptions,
    needs_every_lookup,
    parse_scope,
)

SERVER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _scope(**options: t.Any) -> Scope:
    return parse_scope(
        {name: option.get("default") for name, option in ScopeOptions.build_spec().items()}
        | options
    )


def test_scope_without_names_covers_everything() -> None:
    assert _scope() == Scope()
    assert not _scope().is_narrow
    assert _scope().includes("anything")


def test_names_are_unique_ordered_and_canonical() -> None:
    chosen = _scope(
        hosts=["compute-2", "compute-1", "compute-2", SERVER.upper()],
        consumers=[SERVER.replace("-", "")],
        projects=["2a9b3f0e-6b1d-4c0f-8a7e-5d4c3b2a1908"],
    )

    assert chosen.hosts == (SERVER, "compute-1", "compute-2")
    assert chosen.consumers == (SERVER,)
    assert chosen.projects == ("2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908",)


@pytest.mark.parametrize(
    ("options", "narrow"),
    [({"hosts": ["a"]}, True), ({"consumers": [SERVER]}, True), ({"projects": ["p"]}, False)],
)
def test_named_hosts_and_consumers_are_examined_closely(
    options: dict[str, t.Any], narrow: bool
) -> None:
    assert _scope(**options).is_narrow is narrow


def test_unnamed_kinds_are_not_requested() -> None:
    chosen = _scope(kinds=["extra_host"])

    assert chosen.includes("extra_host") and not chosen.includes("deleted_server")


def test_consumer_that_is_not_a_uuid_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"consumers:.*compute-1"):
        _scope(consumers=["compute-1"])


def test_shard_has_a_number_and_a_total() -> None:
    assert _scope(shard="2/8").shard == Shard(2, 8)
    assert _scope(shard="1/1").shard == Shard(1, 1)
    assert _scope(shard="").shard is None


@pytest.mark.parametrize(
    "text", ["0/8", "9/8", "2", "2/", "/8", "-1/8", "1/257", "2/8/9", "two/8", "1/00000000008"]
)
def test_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^shard is"):
        _scope(shard=text)


@pytest.mark.parametrize("named", [{"hosts": ["compute-1"]}, {"consumers": [SERVER]}])
def test_shard_with_names_is_refused(named: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="shard=2/8"):
        _scope(shard="2/8", **named)


GROUPS = [{"aggregates": ["rack-7"]}, {"availability_zones": ["az1"]}, {"cells": ["cell1"]}]


def test_groups_are_unique_ordered_and_without_spaces() -> None:
    chosen = _scope(aggregates=["b", " a ", "b", SERVER.upper()], availability_zones=["Z"])

    assert chosen.groups == HostGroups(aggregates=(SERVER, "a", "b"), availability_zones=("Z",))


@pytest.mark.parametrize("named", GROUPS)
def test_groups_limit_the_hosts_and_their_consumers_are_not_all_looked_up(
    named: dict[str, t.Any],
) -> None:
    chosen = _scope(**named)

    assert chosen.is_limited_to_hosts and not chosen.needs_servers_of_every_host
    assert not chosen.is_narrow and not needs_every_lookup(chosen)
    assert chosen != Scope()


@pytest.mark.parametrize("option", ["aggregates", "availability_zones", "cells"])
@pytest.mark.parametrize("name", ["", " "])
def test_empty_name_of_a_group_does_not_mean_all_hosts(option: str, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{option}: "):
        _scope(**{option: ["a", name]})


@pytest.mark.parametrize("named", GROUPS)
@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"mode": "incremental"}, "mode=incremental is for whole clouds and shards"),
        ({"shard": "1/2"}, "named aggregates, zones and cells are not divided into shards"),
        ({"consumers": [SERVER]}, "consumers names each consumer by itself"),
    ],
    ids=["incremental", "shard", "consumers"],
)
def test_groups_are_refused_where_they_have_no_meaning(
    named: dict[str, t.Any], other: dict[str, t.Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        _scope(**named, **other)


@pytest.mark.parametrize("named", GROUPS)
def test_groups_go_with_hosts_projects_and_kinds(named: dict[str, t.Any]) -> None:
    chosen = _scope(**named, hosts=["compute-1"], projects=["web"], kinds=["extra_host"])

    # Hosts that are named one by one are examined as closely as ever.
    assert chosen.is_narrow and not chosen.groups.is_empty
