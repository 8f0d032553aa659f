"""Answers that contradict themselves, never end, or are about somebody of nearly the same name."""

import dataclasses as d
import json
import re
import typing as t

import pytest

from ..integration.interposer import Answered, Asked
from .bed import FOURTH, HOME, OTHER, Siege
from .liars import UUID, change, edit

Ask = t.Callable[[Asked], Answered]


pytestmark = pytest.mark.long

RED = "\x1b[31m\u202e{{ 1/0 }}\r\n"


def _repeat_keys(answered: Answered) -> Answered:
    """Say in the same object first what is true, and then that the server has no host."""
    text = answered.content.decode()
    lie = '"OS-EXT-SRV-ATTR:host": null, "status": "SHELVED_OFFLOADED"'
    return Answered(
        answered.status,
        answered.headers,
        re.sub(r'("OS-EXT-SRV-ATTR:host": "[^"]*")', rf"\1, {lie}", text).encode(),
    )


def test_object_with_one_key_twice_is_no_answer(siege: Siege) -> None:
    siege.wires.nova.middlebox = change("/servers", _repeat_keys)

    summary = siege.run()

    assert not summary.get("coverage", {}).get("complete")


def test_lookup_with_one_key_twice_takes_nothing_from_a_live_server(siege: Siege) -> None:
    """Only the one server is said to have no host, and any run looks it up."""
    siege.wires.nova.middlebox = change(rf"/servers/{siege.bed.doubled}$", _repeat_keys)

    siege.run()

    assert siege.bed.placement.held(siege.bed.doubled).keys() >= {siege.bed.world.provider(HOME)}


@pytest.mark.parametrize("listing", ["/os-migrations", "/os-hypervisors/detail"])
def test_listing_whose_pages_go_round_for_ever_ends(siege: Siege, listing: str) -> None:
    """Two workers forget the marker, and each answers with a page of its own."""
    pages: list[Answered] = []

    def go_round(asked: Asked, ask: Ask) -> Answered:
        if f"{listing}?" not in asked.path or "limit=1&" in asked.path:
            return ask(asked)
        key = listing.strip("/").partition("/")[0].removeprefix("os-")
        answered = ask(asked)
        if "marker=" not in asked.path and answered.status == 200:
            rows = answered.json[key]
            half = len(rows) // 2
            pages[:] = [
                answered.replace_json({key: part, f"{key}_links": [{"rel": "next", "href": "x"}]})
                for part in (rows[:half], rows[half:])
            ]
            return pages[0]
        pages.reverse()
        return pages[0] if pages else answered

    siege.wires.nova.middlebox = go_round

    siege.run()

    assert pages
    assert len(siege.wires.nova.requests) < 500
    assert siege.list_changed() == []


@pytest.mark.parametrize("listing", ["/os-migrations", "/os-hypervisors/detail"])
def test_listing_that_ignores_its_marker_is_not_complete(siege: Siege, listing: str) -> None:
    """A cache that leaves the query out of its key answers each page with the first one."""

    def first_half(body: t.Any) -> t.Any:
        return {
            key: rows[: len(rows) // 2] if isinstance(rows, list) and "link" not in key else rows
            for key, rows in body.items()
        }

    def forget(asked: Asked, ask: Ask) -> Answered:
        if f"{listing}?" not in asked.path or "limit=1&" in asked.path:
            return ask(asked)
        path = re.sub("&marker=[^&]*", "", asked.path)
        answered = ask(_with_path(asked, path))
        return (
            answered.replace_json(first_half(answered.json)) if answered.status == 200 else answered
        )

    siege.wires.nova.middlebox = forget

    siege.run()

    assert siege.list_changed() == []


def _with_path(asked: Asked, path: str, body: bytes | None = None) -> Asked:
    return d.replace(asked, path=path, body=asked.body if body is None else body)


SPELLINGS: dict[str, t.Callable[[str], str]] = {
    "upper case": str.upper,
    "braces": lambda uuid: f"{{{uuid}}}",
    "no hyphens": lambda uuid: uuid.replace("-", ""),
    "spaces": lambda uuid: f" {uuid} ",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_placement_that_spells_a_uuid_differently_convicts_nobody(
    siege: Siege, spelling: str
) -> None:
    """A database that ignores the case knows both spellings, and Nova only one of them."""
    respell = SPELLINGS[spelling]
    spelt = {respell(uuid): uuid for uuid in siege.bed.live.values()}

    def answer(asked: Asked, ask: Ask) -> Answered:
        path, body = asked.path, asked.body.decode()
        for other, uuid in spelt.items():
            path = path.replace(other, uuid).replace(
                other.replace("{", "%7B").replace("}", "%7D").replace(" ", "%20"), uuid
            )
            body = body.replace(other, uuid)
        answered = ask(_with_path(asked, path, body.encode()))
        text = answered.content.decode()
        for other, uuid in spelt.items():
            text = text.replace(uuid, other)
        return Answered(answered.status, answered.headers, text.encode())

    siege.wires.placement.middlebox = answer

    siege.run()


NUMBERS = {
    "huge": 10**30,
    "negative": -1,
    "infinite": float("inf"),
    "not a number": float("nan"),
    "text": "1",
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("field", ["consumer_generation", "resources"])
def test_impossible_number_convicts_nobody(siege: Siege, number: str, field: str) -> None:
    def lie(body: t.Any) -> t.Any:
        if isinstance(body, list):
            return [lie(entry) for entry in body]
        if not isinstance(body, dict):
            return body
        changed = {key: lie(value) for key, value in body.items()}
        if field == "resources" and isinstance(changed.get(field), dict):
            changed[field] = dict.fromkeys(changed[field], NUMBERS[number])
        elif field in changed:
            changed[field] = NUMBERS[number]
        return changed

    siege.wires.placement.middlebox = edit("/allocations", lie)

    siege.run()


def _edit_rows(
    key: str, function: t.Callable[[list[t.Any]], list[t.Any]]
) -> t.Callable[[t.Any], t.Any]:
    return lambda body: {**body, key: function(body[key])} if key in body else body


def _second(rows: list[t.Any], path: list[str], value: str) -> list[t.Any]:
    """Return rows with a copy of each after it that says something else."""
    copies = json.loads(json.dumps(rows))
    for copy in copies:
        place = copy
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    return [*rows, *copies]


def test_server_that_two_cells_list_convicts_nobody(siege: Siege) -> None:
    """As in the middle of a cross-cell resize, with one row in each cell."""
    siege.wires.nova.middlebox = edit(
        "/servers/detail",
        _edit_rows("servers", lambda rows: _second(rows, ["OS-EXT-SRV-ATTR:host"], FOURTH)),
    )

    siege.run()


def test_two_services_with_one_host_name_convict_nobody(siege: Siege) -> None:
    siege.wires.nova.middlebox = edit(
        "/os-services", _edit_rows("services", lambda rows: _second(rows, ["host"], HOME))
    )

    siege.run()


def test_two_compute_nodes_with_one_name_convict_nobody(siege: Siege) -> None:
    siege.wires.nova.middlebox = edit(
        "/os-hypervisors/detail",
        _edit_rows(
            "hypervisors",
            lambda rows: _second(
                _second(rows, ["hypervisor_hostname"], HOME),
                ["id"],
                "f0000000-0000-4000-8000-000000000000",
            ),
        ),
    )

    siege.run()


@pytest.mark.parametrize("chance", [1.0, 0.5])
@pytest.mark.parametrize("new", ["other name", "name of a neighbour"])
def test_host_that_is_renamed_convicts_nobody(siege: Siege, new: str, chance: float) -> None:
    """In all answers about hosts from the second one on; servers keep the old name."""
    name = OTHER if new == "name of a neighbour" else "compute-renamed"
    siege.wires.nova.middlebox = change(
        "/os-(services|hypervisors)",
        lambda answered: Answered(
            answered.status,
            answered.headers,
            answered.content.replace(f'"{HOME}"'.encode(), f'"{name}"'.encode()),
        ),
        chance=chance,
        seed=11,
    )

    siege.run()


@pytest.mark.parametrize("chance", [1.0, 0.5])
def test_compute_node_with_a_new_uuid_convicts_nobody(siege: Siege, chance: float) -> None:
    old = siege.bed.world.provider(HOME).encode()
    new = b"f0000000-0000-4000-8000-00000000000f"
    siege.wires.nova.middlebox = change(
        "/os-hypervisors",
        lambda answered: Answered(
            answered.status, answered.headers, answered.content.replace(old, new)
        ),
        chance=chance,
        seed=13,
    )

    siege.run()


def test_names_that_are_code_change_nothing(siege: Siege) -> None:
    siege.wires.nova.middlebox = edit(
        f"/servers(/detail|/{UUID}$)",
        lambda body: json.loads(
            re.sub(
                r'"name": "(?:[^"\\]|\\.)*"',
                lambda _m: f'"name": {json.dumps(RED)}',
                json.dumps(body),
            )
        ),
    )

    siege.run()

    assert siege.bed.remaining() == []
    assert not any("\x1b" in said for said in siege.scheduled.told)
