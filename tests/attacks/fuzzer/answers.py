"""An answer on its way to the collection, and how it can be damaged on the way.

Each mutation changes one answer in place, by the numbers of a random generator of its own. The
bodies have their own file (`bodies`).
"""

from __future__ import annotations

import dataclasses as d
import enum
import random
import typing as t
from collections.abc import Callable

Headers = list[tuple[str, str]]


class End(enum.Enum):
    """What happens to the connection after the answer."""

    KEEP = "it stays open"
    CLOSE = "it is closed"
    RESET = "it is reset"


@d.dataclass
class Reply:
    """An answer: what is in it, and how it is sent.

    declared: what Content-Length says, None for the truth, an empty text for no such header.
    sent: how many bytes of the body are sent, None for all.
    extra: bytes that follow the body.
    delay: seconds before the answer, and after the first byte of its body.
    silent: whether nothing is sent at all.
    swapped: whether it changes its place with the next answer to a request of the same shape.
    """

    status: int
    headers: Headers
    body: bytes
    declared: str | None = None
    sent: int | None = None
    extra: bytes = b""
    delay: float = 0.0
    pause: float = 0.0
    end: End = End.KEEP
    silent: bool = False
    swapped: bool = False

    def copy(self) -> Reply:
        return d.replace(self, headers=list(self.headers))

    def get(self, name: str) -> str:
        return next((value for known, value in self.headers if known.lower() == name.lower()), "")

    def put(self, name: str, value: str) -> None:
        """Replace a header, or add it."""
        self.drop(name)
        self.headers.append((name, value))

    def drop(self, name: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]


@d.dataclass
class Past:
    """Earlier answers of the services.

    by_shape: the answers to all requests of a shape, such as the lookups of all servers.
    earlier: what a request was answered before, when that differs from its answer now.
    """

    by_shape: dict[str, dict[str, Reply]] = d.field(default_factory=dict)
    earlier: dict[str, list[Reply]] = d.field(default_factory=dict)
    request: str = ""
    shape: str = ""

    def keep(self, shape: str, request: str, reply: Reply) -> None:
        of_shape = self.by_shape.setdefault(shape, {})
        known = of_shape.get(request)
        if known is not None and (known.status, known.body) != (reply.status, reply.body):
            older = self.earlier.setdefault(request, [])
            if all(other.body != known.body for other in older):
                older.append(known)
                del older[:-8]
        of_shape[request] = reply.copy()

    def others(self) -> list[Reply]:
        """Return the answers to other requests of the same shape, in the order of their bodies."""
        of_shape = self.by_shape.get(self.shape, {})
        return [of_shape[request] for request in sorted(of_shape) if request != self.request]

    def anything(self) -> list[Reply]:
        return [
            of_shape[request]
            for shape, of_shape in sorted(self.by_shape.items())
            if shape != self.shape
            for request in sorted(of_shape)[:3]
        ]


Mutate = t.Callable[[Reply, "random.Random", Past], None]
# By name. A weight of 2 is as if the mutation was there twice.
MUTATIONS: dict[str, Mutate] = {}
WEIGHTS: dict[str, float] = {}


def mutation(weight: float = 1.0) -> Callable[[Mutate], Mutate]:
    """Register a mutation under the name of its function."""

    def register(mutate: Mutate) -> Mutate:
        MUTATIONS[mutate.__name__] = mutate
        WEIGHTS[mutate.__name__] = weight
        return mutate

    return register


CLIENT_ERRORS = (400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 417)
OTHER_ERRORS = (418, 421, 422, 423, 425, 426, 428, 429, 431, 451)
SERVER_ERRORS = (500, 501, 502, 503, 504, 505, 507, 511, 520, 599)
ODD = (201, 202, 203, 204, 205, 206, 207, 226, 299, 300, 304, 305, 600, 999)
STATUSES = (*CLIENT_ERRORS, *OTHER_ERRORS, *SERVER_ERRORS, *ODD)
PAGE = (
    b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Welcome</h1></body></html>"
)


# Statuses ----------------------------------------------------------------------------------------


@mutation(2)
def status(reply: Reply, chance: random.Random, _past: Past) -> None:
    """Another status with the same body."""
    reply.status = chance.choice(STATUSES)


@mutation()
def status_without_body(reply: Reply, chance: random.Random, _past: Past) -> None:
    reply.status, reply.body = chance.choice(STATUSES), b""


@mutation()
def status_with_page(reply: Reply, chance: random.Random, _past: Past) -> None:
    """An error page of a proxy."""
    reply.status, reply.body = chance.choice((*STATUSES, 200)), PAGE
    reply.put("Content-Type", "text/html; charset=utf-8")


@mutation(3)
def error_of_the_service(reply: Reply, chance: random.Random, _past: Past) -> None:
    """An error in the form of Nova, Placement or Keystone."""
    reply.status = chance.choice((400, 401, 403, 404, 404, 409, 429, 500, 503))
    text = chance.choice(("could not be found.", "a\nb", "x" * 3000, "\x1b[2J{{ 7 * 7 }}", ""))
    forms = (
        f'{{"itemNotFound": {{"code": {reply.status}, "message": "{_escape(text)}"}}}}',
        f'{{"badRequest": {{"code": {reply.status}, "message": "{_escape(text)}"}}}}',
        f'{{"errors": [{{"status": {reply.status}, "detail": "{_escape(text)}"}}]}}',
        f'{{"error": {{"code": {reply.status}, "message": "{_escape(text)}"}}}}',
        '{"errors": [{"status": 409, "code": "placement.concurrent_update", "detail": "x"}]}',
        '{"errors": [{"detail": null, "code": 7}, "x", null]}',
        '{"itemNotFound": null, "badRequest": []}',
        '{"error": "x"}',
        '{"message": {"message": {"message": 1}}}',
    )
    reply.body = chance.choice(forms).encode()
    reply.put("Content-Type", "application/json")


def _escape(text: str) -> str:
    return text.replace("\n", "\\n").replace("\x1b", "\\u001b")


@mutation()
def redirect(reply: Reply, chance: random.Random, past: Past) -> None:
    """A redirection to itself, to another request, to nowhere, or without an address."""
    reply.status = chance.choice((301, 302, 303, 307, 308))
    here = past.request.partition(" ")[2]
    other = chance.choice(sorted(past.by_shape.get(past.shape, {})) or [f"GET {here}"])
    places = (here, other.partition(" ")[2], "", None, "http://127.0.0.1:1/", "ht!tp://[", "/")
    place = chance.choice(places)
    if place is not None:
        reply.put("Location", place)


# Headers -----------------------------------------------------------------------------------------

NAMES = (
    "Content-Type",
    "Date",
    "Last-Modified",
    "OpenStack-API-Version",
    "X-OpenStack-Nova-API-Version",
    "Vary",
    "X-Openstack-Request-Id",
    "X-Subject-Token",
)
WRONG = {
    "Content-Type": ("text/html", "application/json; charset=utf-16", "text/plain", ";", "x" * 999),
    "Content-Encoding": ("gzip", "deflate", "br", "identity", "x"),
    "Date": (
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970",
        "yesterday",
        "Mon, 32 Foo 2026 25:61:61 GMT",
        "0",
        "Mon, 23 Nov 2026 10:00:00 +9999",
    ),
    "Last-Modified": (
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "never",
        "-1",
        "Mon, 23 Nov 99999 10:00:00 GMT",
    ),
    "Age": ("86400", "-1", "x"),
    "Cache-Control": ("max-age=86400", "x"),
    "OpenStack-API-Version": ("compute 2.1", "placement 1.0", "compute 9.99", "x", "placement"),
    "Retry-After": ("0", "86400", "-5", "Fri, 31 Dec 9999 23:59:59 GMT", "x"),
    "Location": ("/", "http://127.0.0.1:1/", "x" * 5000),
    "Transfer-Encoding": ("chunked", "gzip", "identity", "x"),
    "Connection": ("close", "upgrade", "x"),
    "Set-Cookie": ("a=b", "x" * 4000),
    "X-Openstack-Request-Id": ("req-" + "x" * 3000, "{{ 7 * 7 }}"),
    "X-Subject-Token": ("", "x" * 8000, "forged"),
    "Warning": ('110 - "Response is Stale"',),
}


@mutation()
def header_dropped(reply: Reply, chance: random.Random, _past: Past) -> None:
    reply.drop(chance.choice(NAMES))


@mutation(2)
def header_wrong(reply: Reply, chance: random.Random, _past: Past) -> None:
    name = chance.choice(sorted(WRONG))
    reply.put(name, chance.choice(WRONG[name]))


@mutation()
def header_twice(reply: Reply, chance: random.Random, _past: Past) -> None:
    name = chance.choice(sorted(WRONG))
    reply.headers.insert(chance.choice((0, len(reply.headers))), (name, chance.choice(WRONG[name])))


@mutation()
def many_headers(reply: Reply, chance: random.Random, _past: Past) -> None:
    count = chance.choice((50, 150))
    reply.headers += [(f"X-{number}", "y" * 20) for number in range(count)]


@mutation()
def length_wrong(reply: Reply, chance: random.Random, _past: Past) -> None:
    """A Content-Length that is not the length of the body."""
    true = len(reply.body)
    wrong = (0, true // 2, max(true - 1, 0), true + 1, true + 4096, -1, 10**15, "", "x", "1, 2")
    reply.declared = str(chance.choice(wrong))
    reply.end = End.CLOSE


@mutation()
def stale_age(reply: Reply, chance: random.Random, _past: Past) -> None:
    """What a cache adds to an answer that it keeps."""
    reply.put("Age", str(chance.choice((1, 60, 3600))))
    reply.put("X-Cache", "HIT")


# The connection ----------------------------------------------------------------------------------


@mutation()
def no_answer(reply: Reply, chance: random.Random, _past: Past) -> None:
    reply.silent = True
    reply.end = chance.choice((End.CLOSE, End.RESET))


@mutation(2)
def cut(reply: Reply, chance: random.Random, _past: Past) -> None:
    """The connection ends in the body, or right after it."""
    reply.sent = chance.randint(0, len(reply.body))
    reply.end = chance.choice((End.CLOSE, End.RESET))


@mutation(2)
def cut_unnoticed(reply: Reply, chance: random.Random, _past: Past) -> None:
    """The body ends early, and Content-Length says that it is whole."""
    reply.body = reply.body[: chance.randint(0, len(reply.body))]


@mutation()
def followed(reply: Reply, chance: random.Random, _past: Past) -> None:
    """Something follows the body on the same connection, such as another answer."""
    forged = (
        b'HTTP/1.1 404 Not Found\r\nContent-Length: 33\r\n\r\n{"itemNotFound": {"message": "x"}}'
    )
    reply.extra = chance.choice((forged, b"\r\n\r\n", b"garbage", b"\0" * 100))


@mutation(0.15)
def slow(reply: Reply, chance: random.Random, _past: Past) -> None:
    """Later than the client waits, or nearly so."""
    seconds = chance.choice((0.3, 0.9, 1.3, 2.1))
    if chance.random() < 0.5:
        reply.delay = seconds
    else:
        reply.pause = seconds


@mutation(2)
def swapped(reply: Reply, _chance: random.Random, _past: Past) -> None:
    """It changes its place with the answer to a parallel request."""
    reply.swapped = True
