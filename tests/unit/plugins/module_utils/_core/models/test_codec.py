import dataclasses as d
import json
import pathlib
import typing as t

import hypothesis
import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.codec import convert_from_json
from .......plugins.module_utils._core.models.other_services import PortGroup, ServerPort
from .......plugins.module_utils._core.models.placement import ProviderDetails
from .......plugins.module_utils._core.models.snapshot import (
    Listings,
    Scope,
    Shard,
    Snapshot,
    decode,
    encode,
)
from .......plugins.module_utils._core.options.policy import Policy
from ...judging import NO_MINIMUM_AGE, build_findings
from ...world import PLENTY, World
from ...worlds import worlds

# Written when `Listings` was not a class of its own yet.
OLD_SNAPSHOT = pathlib.Path(__file__).parents[5] / "fixtures" / "snapshot" / "format-2.json"


@hypothesis.given(worlds())
def test_snapshot_survives_json_unchanged(world: World) -> None:
    snapshot = world.snapshot()

    assert decode(json.loads(json.dumps(encode(snapshot)))) == snapshot


# What is not compared: later versions read it in another form, or read more of it.
OTHERS = {"reading", "groups", "surroundings", "listed_amounts", "usages", "ports", "stock"}
OTHERS |= {"root_device", "launched_at"}


def _compare(written: t.Any, old: t.Any) -> None:
    """Assert that a file says the same as an older one, and nothing where that says nothing."""
    if isinstance(written, dict) and isinstance(old, dict):
        for key in (written.keys() | old.keys()) - OTHERS:
            if key in old:
                _compare(written[key], old[key])
            else:
                # It was added later, and an older file says nothing about it.
                added = written[key]
                assert added in ([], {}, None) or added is True or added["status"] == 0, key
    elif isinstance(written, list) and isinstance(old, list):
        for part, old_part in zip(written, old, strict=True):
            _compare(part, old_part)
    else:
        assert written == old


def test_older_file_of_the_same_format_is_read() -> None:
    document = json.loads(OLD_SNAPSHOT.read_text(encoding="utf-8"))
    snapshot = decode(document)

    _compare(json.loads(json.dumps(encode(snapshot))), document)
    assert snapshot.reading.mode == "full"
    assert snapshot.scope.groups.is_empty and not snapshot.surroundings.unread
    kinds = [entry["kind"] for entry in build_findings(snapshot, Policy(min_age=0))["findings"]]
    assert sorted(kinds) == ["deleted_server", "ended_migration"]


def test_listings_and_the_rest_are_side_by_side_in_the_file() -> None:
    """A file does not show where the listings end, so a field may move from one to the other."""
    fields = encode(World().snapshot())["snapshot"]

    assert set(fields) == {field.name for field in d.fields(Snapshot)}
    assert set(fields) > {field.name for field in d.fields(Listings)}


def test_optional_parts_survive_json_unchanged() -> None:
    world = World()
    root = world.host("compute-1")
    server = world.server(root)
    world.ports[server] = (
        ServerPort("port", "normal", (PortGroup("port", {"NET": 1}, frozenset({"X"})),)),
    )
    details = {
        root: ProviderDetails(
            {"VCPU": PLENTY}, {"VCPU": 1}, frozenset({"COMPUTE_NODE", "CUSTOM_X"})
        )
    }
    scope = Scope(hosts=("compute-1",), kinds=("wrong_owner",), shard=Shard(2, 8))
    snapshot = world.snapshot(details=details, scope=scope, trees=(root,), left_out=3)

    assert decode(json.loads(json.dumps(encode(snapshot)))) == snapshot


def test_triage_of_version_2_is_judged_as_a_part_of_the_cloud() -> None:
    world = World()
    root, other = world.host("compute-1"), world.host("compute-2")
    world.server(root, root)
    orphan = world.server(root, root)
    world.delete(orphan)
    document = json.loads(json.dumps(encode(world.snapshot(trees=(root,)))))
    document["snapshot"]["scope"]["mode"] = "triage"
    document["snapshot"]["usages"] = {root: {"VCPU": 2}, other: {"VCPU": 2}}

    findings = build_findings(decode(document), NO_MINIMUM_AGE)

    assert [entry["consumer"] for entry in findings["findings"]] == [orphan]
    assert findings["scope"]["mode"] == "triage"
    assert findings["summary"]["stranded"]["share_of_claimed"] == {}


@hypothesis.given(worlds())
def test_decoded_snapshot_is_judged_identically(world: World) -> None:
    snapshot, policy = world.snapshot(), NO_MINIMUM_AGE
    again = decode(json.loads(json.dumps(encode(snapshot))))

    assert json.dumps(build_findings(again, policy), sort_keys=True) == json.dumps(
        build_findings(snapshot, policy), sort_keys=True
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        *((document, "orphan_detect") for document in ([], {}, {"format": 2})),
        ({"format": 2, "snapshot": {"cloud": None}}, "orphan_detect"),
        ({"format": 1, "snapshot": {}}, "format 1, .* format 2"),
    ],
)
def test_data_that_is_not_a_snapshot_is_refused(document: t.Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        decode(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [("started_at", 17), ("started_at", None), ("services", None), ("samples", None)],
)
def test_wrong_type_inside_a_snapshot_is_refused(field: str, value: t.Any) -> None:
    document = encode(World().snapshot())
    document["snapshot"][field] = value

    with pytest.raises(InvalidInput, match=field):
        decode(document)


class Choice(t.TypedDict):
    """An object of which one key may be missing."""

    number: float | None
    names: t.NotRequired[tuple[str, ...]]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (Shard, {"number": 1}, "count is missing"),
        (Shard, {"number": 1, "count": True}, "count has another type"),
        (Shard, {"number": "1", "count": 2}, "number has another type"),
        (Shard, [], "it has another type"),
        (Scope, {"shard": {"number": 1}}, "shard.count is missing"),
        (Scope, {"hosts": "compute-1"}, "hosts has another type"),
        (dict[str, Shard], {"a": {"number": None}}, "a.count is missing"),
        (dict[str, tuple[int, ...]], {"a": [1, None]}, "a.2 has another type"),
        (Choice, {}, "number is missing"),
        (Choice, {"number": 1, "names": None}, "names has another type"),
    ],
)
def test_wrong_part_is_named(kind: t.Any, value: t.Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        convert_from_json(kind, value)


def test_object_that_is_checked_stays_as_it_is() -> None:
    document = {"number": 1, "names": ["a"], "more": 2}

    assert convert_from_json(Choice, document) is document
