"""How the body of an answer can be damaged: as bytes, as JSON, and as what it means."""

import json
import random
import re
import typing as t
from collections.abc import Callable, Iterator

from .answers import WEIGHTS, Past, Reply, mutation

# With the mutations of this file, which are registered by its import.
__all__ = ["WEIGHTS"]

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What is in the place of a value.
STRANGERS: tuple[t.Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    10**40,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "x" * 5000,
    "\x1b[31m\n{{ 7 * 7 }}\u202e<script>\x00",
    "\ud800",
    [],
    {},
    [None],
    {"": None},
    [[[[]]]],
    "null",
    "2026-13-45T99:99:99Z",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999",
)
SERVER_STATUSES = (
    "ACTIVE",
    "DELETED",
    "SOFT_DELETED",
    "ERROR",
    "SHUTOFF",
    "SHELVED_OFFLOADED",
    "VERIFY_RESIZE",
    "UNKNOWN",
    "BUILD",
    "MIGRATING",
    "active",
)
MIGRATION_STATUSES = (
    "confirmed",
    "reverted",
    "error",
    "failed",
    "completed",
    "cancelled",
    "done",
    "finished",
    "running",
    "accepted",
    "pre-migrating",
    "",
)
OTHER_STATUSES = ("up", "down", "enabled", "disabled", "Success", "Error")


# As bytes ----------------------------------------------------------------------------------------


@mutation()
def empty_body(reply: Reply, chance: random.Random, _past: Past) -> None:
    reply.body = chance.choice((b"", b" ", b"{}", b"[]", b"null", b"0", b'""', b"true"))


@mutation()
def other_bytes(reply: Reply, chance: random.Random, _past: Past) -> None:
    """Not UTF-8, a mark of byte order, UTF-16, a doubled body, bytes that were changed."""
    body = reply.body
    place = chance.randint(0, max(len(body) - 1, 0))
    reply.body = chance.choice(
        (
            body[:place] + b"\xff\xfe" + body[place:],
            b"\xef\xbb\xbf" + body,
            body.decode("utf-8", "replace").encode("utf-16"),
            body + body,
            body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :],
            body + b"\n\n",
            b")]}',\n" + body,
            b"[" * 3000,
            body.replace(b'"', b"'"),
        )
    )


@mutation()
def key_twice(reply: Reply, chance: random.Random, _past: Past) -> None:
    """A key that is there twice, the second time with another value."""
    keys = sorted(set(re.findall(rb'"([A-Za-z_:-]+)": ', reply.body)))
    if keys:
        key = chance.choice(keys)
        value = chance.choice((b"null", b"[]", b"{}", b'"x"', b"7"))
        place = reply.body.find(b'"' + key + b'": ')
        reply.body = reply.body[:place] + b'"' + key + b'": ' + value + b", " + reply.body[place:]


# As JSON -----------------------------------------------------------------------------------------


class Place(t.NamedTuple):
    """One value in a JSON document, by what it is in and its key there."""

    parent: t.Any
    key: t.Any

    @property
    def value(self) -> t.Any:
        return self.parent[self.key]


def _list_places(value: t.Any) -> Iterator[Place]:
    if isinstance(value, dict):
        keys: t.Iterable[t.Any] = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    else:
        return
    for key in keys:
        yield Place(value, key)
        yield from _list_places(value[key])


def _change_json(
    change: Callable[[t.Any, random.Random, Past], t.Any],
) -> Callable[[Reply, random.Random, Past], None]:
    """Make a mutation of one that changes a document and may return another one."""

    def mutate(reply: Reply, chance: random.Random, past: Past) -> None:
        try:
            document = json.loads(reply.body)
        except ValueError:
            return
        changed = change(document, chance, past)
        reply.body = json.dumps(document if changed is None else changed).encode()

    mutate.__name__ = change.__name__
    mutate.__doc__ = change.__doc__
    return mutate


def _choose(
    document: t.Any, chance: random.Random, wanted: Callable[[Place], bool] = lambda _place: True
) -> Place | None:
    """Choose a place. One at the top is as likely as one of the thousands below it."""
    places = [place for place in _list_places(document) if wanted(place)]
    if not places:
        return None
    if chance.random() < 0.3:
        return places[0]
    return chance.choice(places)


def _ends(*endings: str) -> Callable[[Place], bool]:
    return lambda place: isinstance(place.key, str) and place.key.endswith(endings)


@mutation(2)
@_change_json
def key_missing(document: t.Any, chance: random.Random, _past: Past) -> None:
    place = _choose(document, chance, lambda place: isinstance(place.parent, dict))
    if place:
        del place.parent[place.key]


@mutation()
@_change_json
def key_renamed(document: t.Any, chance: random.Random, _past: Past) -> None:
    place = _choose(document, chance, lambda place: isinstance(place.parent, dict))
    if place:
        name = chance.choice((place.key.upper(), f"{place.key}_", "", "x", place.key[:-1]))
        place.parent[name] = place.parent.pop(place.key)


@mutation(4)
@_change_json
def value_strange(document: t.Any, chance: random.Random, _past: Past) -> None:
    """A value of another type, or far too large or small."""
    place = _choose(document, chance)
    if place:
        place.parent[place.key] = chance.choice(STRANGERS)


@mutation(2)
@_change_json
def every_value_strange(document: t.Any, chance: random.Random, _past: Past) -> None:
    """The same key in every row has a strange value, or none."""
    place = _choose(document, chance, lambda place: isinstance(place.parent, dict))
    if place:
        stranger = chance.choice(STRANGERS)
        for other in list(_list_places(document)):
            if other.key == place.key and isinstance(other.parent, dict):
                other.parent[other.key] = stranger


@mutation()
@_change_json
def wrapped(document: t.Any, chance: random.Random, _past: Past) -> t.Any:
    return chance.choice(([document], {"data": document}, json.dumps(document), [document] * 2))


@mutation(2)
@_change_json
def list_changed(document: t.Any, chance: random.Random, past: Past) -> None:
    """A list or a mapping is shorter, empty, longer or in another order."""
    place = _choose(document, chance, lambda place: isinstance(place.value, list | dict))
    if not place:
        return
    rows = place.value
    way = chance.randrange(5)
    if isinstance(rows, dict):
        for key in list(rows)[chance.choice((0, 1, len(rows) // 2)) :]:
            if way or chance.random() < 0.5:
                del rows[key]
        return
    if way == 0:
        rows.clear()
    elif way == 1:
        del rows[chance.randint(0, len(rows)) :]
    elif way == 2:
        rows.extend(list(rows))
    elif way == 3:
        chance.shuffle(rows)
    else:
        rows[:] = _borrow_rows(place.key, past, chance) or rows[::-1]


@mutation(2)
@_change_json
def rows_mixed(document: t.Any, chance: random.Random, past: Past) -> None:
    """Rows of another answer are among the rows."""
    place = _choose(document, chance, lambda place: isinstance(place.value, list))
    if place:
        foreign = _borrow_rows(place.key, past, chance)
        place.value[chance.randint(0, len(place.value)) :] = foreign


def _borrow_rows(key: t.Any, past: Past, chance: random.Random) -> list[t.Any]:
    others = past.others() or past.anything()
    if not others:
        return []
    try:
        document = json.loads(chance.choice(others).body)
    except ValueError:
        return []
    rows = document.get(key) if isinstance(document, dict) else document
    if isinstance(rows, dict):
        return list(rows.values())
    return rows if isinstance(rows, list) else [rows]


@mutation(2)
@_change_json
def number(document: t.Any, chance: random.Random, _past: Past) -> None:
    place = _choose(document, chance, lambda place: type(place.value) in (int, float))
    if place:
        value = place.value
        place.parent[place.key] = chance.choice(
            (-value, value + 1, value - 1, value * 2, value * 10**12, float(value), str(value), 0)
        )


# As what it means --------------------------------------------------------------------------------


@mutation(3)
@_change_json
def word(document: t.Any, chance: random.Random, _past: Past) -> None:
    """A status, a state or a type is another one."""
    names = ("status", "state", "migration_type", "vm_state", "task_state", "action", "result")
    place = _choose(
        document,
        chance,
        lambda place: (
            isinstance(place.key, str)
            and place.key.rpartition(":")[2] in names
            and not isinstance(place.value, list | dict)
        ),
    )
    if place:
        words = (*SERVER_STATUSES, *MIGRATION_STATUSES, *OTHER_STATUSES, None)
        known = [
            other
            for other in (SERVER_STATUSES, MIGRATION_STATUSES, OTHER_STATUSES)
            if place.value in other
        ]
        place.parent[place.key] = chance.choice(known[0] if known else words)


@mutation(3)
@_change_json
def identity(document: t.Any, chance: random.Random, past: Past) -> None:
    """A uuid is in upper case, without hyphens, of something else, or not one at all."""

    def is_uuid(place: Place) -> bool:
        texts = (place.key, place.value)
        return any(isinstance(text, str) and UUID.fullmatch(text) for text in texts)

    place = _choose(document, chance, is_uuid)
    if not place:
        return
    known = sorted(set(UUID.findall(json.dumps(document))))
    for other in past.others()[:20]:
        known += UUID.findall(other.body.decode("utf-8", "replace"))[:2]
    value = place.value if isinstance(place.value, str) and UUID.fullmatch(place.value) else None
    old = value or place.key
    new = chance.choice((old.upper(), old.replace("-", ""), chance.choice(known), "x", f" {old}"))
    if value is not None:
        place.parent[place.key] = new
    else:
        place.parent[new] = place.parent.pop(place.key)


@mutation(2)
@_change_json
def host(document: t.Any, chance: random.Random, _past: Past) -> None:
    """The name of a host is another one."""
    names = ("host", "hypervisor_hostname", "source_compute", "source_node", "dest_compute")

    def is_host(place: Place) -> bool:
        is_named = isinstance(place.key, str) and place.key.rpartition(":")[2] in names
        return is_named and isinstance(place.value, str | None)

    place = _choose(document, chance, is_host)
    if place:
        known = sorted({str(other.value) for other in _list_places(document) if is_host(other)})
        others = (chance.choice(known), None, "", "compute-1", "compute-2", place.value)
        place.parent[place.key] = chance.choice(others)


@mutation(2)
@_change_json
def time(document: t.Any, chance: random.Random, _past: Past) -> None:
    """A time is missing, long ago, in the future, or not one."""
    place = _choose(document, chance, _ends("_at", "_time", "ed"))
    if place:
        place.parent[place.key] = chance.choice(
            (None, "", "1970-01-01T00:00:00Z", "9999-12-31T00:00:00.000000", "x", 0, -1)
        )


@mutation(2)
@_change_json
def generation(document: t.Any, chance: random.Random, _past: Past) -> None:
    """The generation of a consumer or a provider is another one, or none."""
    place = _choose(document, chance, _ends("generation"))
    if place:
        place.parent[place.key] = chance.choice((None, 0, 1, 2, -1, "1", 10**20, 1.5))


@mutation()
@_change_json
def links(document: t.Any, chance: random.Random, _past: Past) -> None:
    """The link to the next page is missing, its own, or points elsewhere."""
    place = _choose(document, chance, _ends("links"))
    href = chance.choice(("http://127.0.0.1:1/", "", "/v2.1/servers/detail?marker=x", None, 7))
    forged = [{"rel": "next", "href": href}]
    if place and chance.random() < 0.6:
        place.parent[place.key] = chance.choice((forged, [], None, {}, "x", [forged]))
    elif isinstance(document, dict) and document:
        name = f"{sorted(document)[0]}_links"
        document[chance.choice((name, "links", "servers_links"))] = forged


@mutation(3)
def earlier(reply: Reply, chance: random.Random, past: Past) -> None:
    """What a cache kept of the same request."""
    older = past.earlier.get(past.request)
    if older:
        _replace(reply, chance.choice(older))


@mutation(3)
def mixed_up(reply: Reply, chance: random.Random, past: Past) -> None:
    """The answer to another request of the same shape."""
    others = past.others()
    if others:
        _replace(reply, chance.choice(others))


@mutation()
def mixed_up_altogether(reply: Reply, chance: random.Random, past: Past) -> None:
    """The answer to any other request."""
    others = past.anything()
    if others:
        _replace(reply, chance.choice(others))


def _replace(reply: Reply, other: Reply) -> None:
    reply.status, reply.body = other.status, other.body
    # The time by the service is that of the cache's or of the service: both are tried elsewhere.
    date = reply.get("Date")
    reply.headers = list(other.headers)
    if date:
        reply.put("Date", date)
