"""The memory of a reading: its file loses nothing and is small, and other files are refused."""

import json
import typing as t
import uuid

import hypothesis.strategies as st
import pytest
from hypothesis import given

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.memory import (
    Memory,
    RememberedNode,
    decode_memory,
    encode_memory,
)

UUIDS = [str(uuid.UUID(int=number)) for number in range(6)]
PROVIDERS = [str(uuid.UUID(int=number)) for number in range(100, 103)]
RESOURCES = st.dictionaries(st.sampled_from(["VCPU", "MEMORY_MB"]), st.integers(1, 2))
MEMORIES = st.builds(
    Memory,
    source=st.just("http://placement http://nova RegionOne"),
    full_at=st.just("2026-11-22T03:00:00Z"),
    read_at=st.just("2026-11-22T03:45:00Z"),
    changes_since=st.just("2026-11-22T03:40:00Z"),
    generations=st.just(dict.fromkeys(PROVIDERS, 7)),
    allocations=st.dictionaries(
        st.sampled_from(UUIDS), st.dictionaries(st.sampled_from(PROVIDERS), RESOURCES)
    ),
    hosts=st.frozensets(st.sampled_from(["compute-1", "compute-2"])),
    nodes=st.lists(
        st.builds(
            RememberedNode,
            st.sampled_from(PROVIDERS),
            st.just("compute-1"),
            st.just("compute-1.example.org"),
            st.integers(0, 3),
        )
    ).map(tuple),
    watched=st.frozensets(st.sampled_from(UUIDS)),
    has_open_migrations=st.booleans(),
)


def write_and_read(contents: t.Any) -> t.Any:
    return json.loads(json.dumps(contents))


@given(MEMORIES)
def test_nothing_is_lost_in_the_file(memory: Memory) -> None:
    assert decode_memory(write_and_read(encode_memory(memory))) == memory


def make_large_memory(consumers: int, hosts: int) -> Memory:
    providers = [str(uuid.uuid4()) for _host in range(hosts)]
    servers = [str(uuid.uuid4()) for _server in range(consumers)]
    nodes = []
    allocations = {}
    for number, provider in enumerate(providers):
        of_host = servers[number::hosts]
        for server in of_host:
            allocations[server] = {provider: {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}}
        name = f"compute-{number}.example.org"
        nodes.append(RememberedNode(provider, name, name, len(of_host)))
    return Memory(
        source="http://placement http://nova RegionOne",
        full_at="2026-11-22T03:00:00Z",
        read_at="2026-11-22T03:45:00Z",
        changes_since="2026-11-22T03:40:00Z",
        generations=dict.fromkeys(providers, 1000),
        allocations=allocations,
        hosts=frozenset(node.host for node in nodes),
        nodes=tuple(nodes),
        watched=frozenset(servers[:500]),
        has_open_migrations=False,
    )


def test_file_is_small() -> None:
    contents = json.dumps(encode_memory(make_large_memory(10_000, 500)), separators=(",", ":"))
    # 20 MB for 100 000 consumers is what the project promises.
    assert len(contents) < 2_000_000 / 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("consumers", []),
        ("consumers", None),
        ("amounts", []),
        ("providers", []),
        ("generations", [1]),
        ("allocations", [[0]]),
        ("nodes", [["uuid", "host"]]),
        ("nodes", 3),
        ("watched", 3),
        ("full_at", 3),
        ("read_at", None),
    ],
)
def test_file_with_something_missing_is_refused(key: str, value: t.Any) -> None:
    contents = encode_memory(make_large_memory(10, 2))
    contents[key] = value
    with pytest.raises(InvalidInput, match="edited"):
        decode_memory(contents)


@pytest.mark.parametrize("contents", [None, [], {}, "memory", {"format": 1}])
def test_another_file_is_refused(contents: t.Any) -> None:
    with pytest.raises(InvalidInput, match="edited"):
        decode_memory(contents)


def test_another_format_is_refused_by_its_number() -> None:
    contents = {**encode_memory(make_large_memory(1, 1)), "format": 2}
    with pytest.raises(InvalidInput, match=r"format 2, .* format 1"):
        decode_memory(contents)
