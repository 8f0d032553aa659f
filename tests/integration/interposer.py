"""A proxy between the collection and one real service.

It lets a test change the world between two requests.

Every request is forwarded unchanged, one at a time, and the real service answers. A hook runs
exactly when a request arrives or has been answered, while its sender waits. It can return a fault:
of the network, of a proxy, or of the sender's token.
"""

from __future__ import annotations

import contextlib
import dataclasses as d
import enum
import http.client
import http.server
import json
import os
import re
import select
import socket
import struct
import threading
import typing as t
import urllib.parse

from .local_server import LocalServer, QuietHandler
from .support import Ansible, Minicloud

_TIMEOUT = 120.0
_PER_CONNECTION = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "server",
    "date",
}


class Fault(enum.Enum):
    """A fault that a hook can return.

    Returned before a request, the request does not reach the service; returned after it, the answer
    is lost.

    The numbers are statuses of an answer that does not come from the service itself. EXPIRED can
    only come before a request, and a fault that damages an answer (`_SPOILING`) leaves the request
    alone, wherever it is returned.
    """

    NO_ANSWER = "the connection is closed without an answer"
    RESET = "the connection is reset"
    SILENCE = "nothing comes until the sender has given up"
    CUT = "the connection is closed in the middle of the answer's body"
    HALF = "the answer's body ends in the middle, and is said to be no longer"
    HTML = "a page for people instead of the answer, with status 200"
    OBJECT = "an empty object instead of the answer, with status 200"
    EXPIRED = "the request reaches the service with a token that is no longer known"
    CONFLICT = 409
    TOO_MANY = 429
    BROKEN = 500
    BAD_GATEWAY = 502
    UNAVAILABLE = 503


_SPOILING = frozenset({Fault.CUT, Fault.HALF, Fault.HTML, Fault.OBJECT})
_PAGE = (
    b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Welcome</h1></body></html>"
)

Action = t.Callable[[], Fault | None]


@d.dataclass(frozen=True)
class Asked:
    """A request as it arrives: its path has the query, and the names of headers are in lower case.

    The Host header is that of the interposer, so the links of an answer point there.
    """

    method: str
    path: str
    headers: t.Mapping[str, str]
    body: bytes

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@d.dataclass(frozen=True)
class Answered:
    """An answer as it is sent."""

    status: int
    headers: t.Sequence[tuple[str, str]]
    content: bytes

    @property
    def json(self) -> t.Any:
        return json.loads(self.content)

    def replace_json(self, body: t.Any) -> Answered:
        return d.replace(self, content=json.dumps(body).encode())

    def replace_header(self, name: str, value: str | None) -> Answered:
        """Return the answer with another value of one header, or without that header."""
        others = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        if value is not None:
            others.append((name, value))
        return d.replace(self, headers=others)


# Something between the collection and the service: it gets a request and a function that has the
# service answer a request, and returns the answer that is sent.
Middlebox = t.Callable[[Asked, t.Callable[[Asked], Answered]], Answered]


@d.dataclass
class Hook:
    """Runs `before` and `after` the `nth` request whose method, path with query and body match.

    0 stands for every such request.
    """

    method: str
    path: re.Pattern[str]
    body: str
    nth: int
    before: Action | None
    after: Action | None
    seen: int = 0
    ran: int = 0

    def takes(self, method: str, path: str, body: bytes) -> bool:
        if method != self.method or not self.path.search(path) or self.body.encode() not in body:
            return False
        self.seen += 1
        return self.nth in (0, self.seen)


class Interposer(LocalServer):
    """A proxy on a port of its own, within a `with` block."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urllib.parse.urlsplit(upstream)
        self._lock = threading.Lock()
        self._hooks: list[Hook] = []
        # Returns the port of this machine for a request ("GET /path?query"), where several
        # processes offer the service.
        self.route: t.Callable[[str], int] | None = None
        self.middlebox: Middlebox | None = None
        self.newest: str | None = None
        self.requests: list[str] = []
        self.errors: list[BaseException] = []
        forward = self._forward

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                forward(self)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

        super().__init__(Handler)
        self.url = f"{self.address}{self._upstream.path}"

    def on(
        self,
        method: str,
        path: str,
        nth: int = 1,
        before: Action | None = None,
        after: Action | None = None,
        *,
        body: str = "",
    ) -> Hook:
        """Run `before` and `after` around the `nth` matching request from now on.

        With 0, around every matching request. The request must contain `body` in its own body.
        """
        hook = Hook(method, re.compile(path), body, nth, before, after)
        self._hooks.append(hook)
        return hook

    def offer(self, newest: str) -> None:
        """Let the service appear to be an older one.

        It offers microversions up to `newest` and refuses others.
        """
        self.newest = newest

    def clear(self) -> None:
        """Remove all hooks and recorded requests."""
        self._hooks, self.requests = [], []
        self.middlebox = None

    def _forward(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        with self._lock:
            self.requests.append(f"{handler.command} {handler.path}")
            hooks = [
                hook for hook in self._hooks if hook.takes(handler.command, handler.path, body)
            ]
            fault = self._run(hook.before for hook in hooks)
            for hook in hooks:
                hook.ran += 1
            answer = None
            if fault in (None, Fault.EXPIRED, *_SPOILING):
                asked = _read_request(handler, body, expired=fault is Fault.EXPIRED)
                answer = self._pass(asked)
                fault = self._run(hook.after for hook in hooks) or (
                    fault if fault in _SPOILING else None
                )
        if fault in _SPOILING:
            assert answer
            _spoil(handler, fault, answer)
            return
        if fault is not None:
            if not isinstance(fault.value, int):
                _cut(handler, fault)
                return
            answer = Answered(fault.value, [], b"")
        assert answer
        _send(handler, answer.status, answer.headers, answer.content)

    def _run(self, actions: t.Iterable[Action | None]) -> Fault | None:
        """Run all of them.

        Exceptions are kept for the test to raise, because nobody would see them here.
        """
        fault = None
        for action in filter(None, actions):
            try:
                fault = action() or fault
            except BaseException as error:
                self.errors.append(error)
        return fault

    def _pass(self, asked: Asked) -> Answered:
        """Return the answer to a request, by the middlebox if there is one."""
        if self.middlebox is None:
            return self._ask(asked)
        try:
            return self.middlebox(asked, self._ask)
        except BaseException as error:
            self.errors.append(error)
            return Answered(500, [], b"")

    def _ask(self, asked: Asked) -> Answered:
        port = self.route(asked.line) if self.route else self._upstream.port
        upstream = http.client.HTTPConnection(str(self._upstream.hostname), port, timeout=_TIMEOUT)
        try:
            wanted = {
                name: value
                for name, value in asked.headers.items()
                if name not in ("connection", "accept-encoding", "content-length")
            }
            upstream.request(asked.method, asked.path, asked.body or None, wanted)
            answer = upstream.getresponse()
            content = answer.read()
            # The service's own Date is needed: the age of an allocation is measured by Placement's
            # clock.
            headers = [
                pair
                for pair in answer.getheaders()
                if pair[0].lower() not in _PER_CONNECTION or pair[0].lower() == "date"
            ]
            if self.newest:
                if _minor(wanted.get("openstack-api-version", "")) > _minor(self.newest):
                    return Answered(406, [], b"{}")
                content = re.sub(
                    rb'("(?:max_)?version": ")[0-9]+[.][0-9]+(")',
                    rf"\g<1>{self.newest}\g<2>".encode(),
                    content,
                )
            return Answered(answer.status, headers, content)
        finally:
            upstream.close()


def _read_request(
    handler: http.server.BaseHTTPRequestHandler, body: bytes, *, expired: bool
) -> Asked:
    headers = {name.lower(): value for name, value in handler.headers.items()}
    if expired:
        headers["x-auth-token"] = "forgotten"
    return Asked(handler.command, handler.path, headers, body)


def _minor(version: str) -> int:
    """Return the minor number of a microversion, 0 without one."""
    return int(version.rpartition(".")[2] or 0)


def _send(
    handler: http.server.BaseHTTPRequestHandler,
    status: int,
    headers: t.Iterable[tuple[str, str]],
    content: bytes,
    length: int | None = None,
) -> None:
    handler.send_response_only(status)
    for name, value in headers:
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def _spoil(handler: http.server.BaseHTTPRequestHandler, fault: Fault, answer: Answered) -> None:
    """Send a damaged answer."""
    status, headers, content = answer.status, answer.headers, answer.content
    half = content[: len(content) // 2]
    if fault is Fault.CUT:
        handler.close_connection = True
        _send(handler, status, headers, half, len(content))
    elif fault is Fault.HALF:
        _send(handler, status, headers, half)
    elif fault is Fault.HTML:
        _send(handler, 200, [("Content-Type", "text/html; charset=utf-8")], _PAGE)
    else:
        _send(handler, 200, headers, b"{}")


def _cut(handler: http.server.BaseHTTPRequestHandler, fault: Fault) -> None:
    """Close a connection without an answer."""
    handler.close_connection = True
    if fault is Fault.SILENCE:
        # It becomes readable when the other side closes it.
        select.select([handler.connection], [], [], _TIMEOUT)
    elif fault is Fault.RESET:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(handler.connection.detach())


@d.dataclass(frozen=True)
class Wires:
    """The proxies between the collection and each service."""

    nova: Interposer
    placement: Interposer
    neutron: Interposer


@contextlib.contextmanager
def interposed(ansible: Ansible, minicloud: Minicloud) -> t.Iterator[Wires]:
    """Let Ansible reach the cloud through interposers.

    Exceptions of hooks are raised at the end.
    """
    ports = minicloud.ports
    # A cloud without a real Neutron has none.
    with (
        Interposer(f"http://127.0.0.1:{ports['nova-api']}/v2.1") as nova,
        Interposer(f"http://127.0.0.1:{ports['placement']}") as placement,
        Interposer(f"http://127.0.0.1:{ports.get('neutron', 0)}") as neutron,
    ):
        ways = {"compute": nova, "placement": placement}
        if "neutron" in ports:
            ways["network"] = neutron
        lines = [f"{name}_endpoint_override: {wire.url}" for name, wire in ways.items()]
        region = "region_name: RegionOne"
        config = ansible.folder / "interposed.yaml"
        text = minicloud.clouds_yaml.read_text()
        config.write_text(text.replace(region, "\n    ".join([region, *lines])))
        before = dict(ansible.environment)
        ansible.environment.update(OS_CLIENT_CONFIG_FILE=str(config))
        try:
            yield Wires(nova, placement, neutron)
        finally:
            ansible.environment.update(before)
            for error in nova.errors + placement.errors + neutron.errors:
                raise error
