"""An interposer that damages answers, and keeps what really happened."""

import dataclasses as d
import email.utils
import http.server
import json
import os
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence

from ...integration.interposer import Asked, Interposer
from .answers import MUTATIONS, End, Past, Reply
from .design import Spec

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|req-[0-9a-f-]{36}")
# How long an answer waits for another one to change places with.
_PARTNER_SECONDS = 0.4
# The cloud changes only by the writes of runs. So the same request is sent once in so many seconds,
# or once after a write that may change its answer: most of the time of a run would be Nova's.
KEPT_SECONDS = 900.0
_CHANGED_BY_WRITES = ("/allocations", "/usages", "/allocation_candidates")
_CONFLICT = b'{"errors": [{"status": 409, "code": "placement.concurrent_update", "detail": "x"}]}'


@d.dataclass
class Write:
    """A change of allocations that reached the service: its consumers, and what was answered."""

    consumers: tuple[str, ...]
    status: int
    unrecorded: tuple[str, ...]


@d.dataclass
class Assignment:
    """What is to be damaged now, and what was.

    specs: each with the number of requests that it has seen.
    recorded: returns the consumers that the journals of the run have recorded so far.
    """

    specs: dict[Spec, int] = d.field(default_factory=dict)
    phase: str = ""
    applied: list[str] = d.field(default_factory=list)
    hit: set[Spec] = d.field(default_factory=set)
    writes: list[Write] = d.field(default_factory=list)
    requests: int = 0
    recorded: Callable[[], set[str]] = set


class FuzzingInterposer(Interposer):
    """Damages the answers of one service as its assignment says."""

    def __init__(self, upstream: str, service: str) -> None:
        super().__init__(upstream)
        self._service = service
        self._kept: dict[tuple[str, ...], tuple[float, Reply]] = {}
        self._state = threading.RLock()
        self._waiting: dict[str, _Exchange] = {}
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self.past = Past()
        self.assignment = Assignment()

    def forget(self) -> None:
        """Send each request again whose answer a write may have changed."""
        with self._state:
            for key in list(self._kept):
                if any(part in key[1] for part in _CHANGED_BY_WRITES):
                    del self._kept[key]

    def forget_all(self) -> None:
        """Send each request again, after somebody else has changed the cloud."""
        with self._state:
            self._kept.clear()

    def take(
        self, assignment_specs: Sequence[Spec], recorded: Callable[[], set[str]] = set
    ) -> Assignment:
        """Damage answers in this way from now on, and return what becomes of it."""
        mine = {spec: 0 for spec in assignment_specs if spec.service == self._service}
        self.assignment = Assignment(mine, recorded=recorded)
        return self.assignment

    def _forward(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        assignment = self.assignment
        request = f"{handler.command} {handler.path}"
        with self._state:
            assignment.requests += 1
            specs = self._find_specs(assignment, handler)
        try:
            reply = self._answer(handler, body, assignment, specs)
        except OSError as error:
            self.errors.append(error)
            handler.close_connection = True
            return
        shape = _UUID.sub("{}", request)
        for spec in specs:
            if spec.name in MUTATIONS:
                self._mutate(reply, spec, shape, request, assignment)
        if reply.swapped:
            reply = self._swap(shape, reply)
        try:
            _deliver(handler, reply)
        except OSError:
            # The client has gone, as it may.
            handler.close_connection = True

    def _find_specs(
        self, assignment: Assignment, handler: http.server.BaseHTTPRequestHandler
    ) -> list[Spec]:
        found = []
        for spec in assignment.specs:
            if spec.phase and spec.phase != assignment.phase:
                continue
            if not spec.takes(handler.command, handler.path):
                continue
            assignment.specs[spec] += 1
            if spec.nth in (0, assignment.specs[spec]):
                found.append(spec)
                assignment.hit.add(spec)
        return found

    def _mutate(
        self, reply: Reply, spec: Spec, shape: str, request: str, assignment: Assignment
    ) -> None:
        before = (reply.status, reply.body)
        with self._state:
            past = d.replace(self.past, request=request, shape=shape)
            MUTATIONS[spec.name](reply, random.Random(spec.seed), past)
        note = f"{request}: {spec.name} -> {reply.status}"
        if (reply.status, reply.body) != before:
            note += f" {reply.body[:160]!r}"
        assignment.applied.append(note)

    def _answer(
        self,
        handler: http.server.BaseHTTPRequestHandler,
        body: bytes,
        assignment: Assignment,
        specs: Sequence[Spec],
    ) -> Reply:
        if handler.command == "GET" or self._service == "keystone":
            return self._read(handler, body)
        ways = [spec.name for spec in specs if spec.name.startswith("write ")]
        for way in ways:
            assignment.applied.append(f"{handler.command} {handler.path}: {way}")
        way = ways[0] if ways else ""
        if way.startswith("write not done"):
            return _report(way)
        reply = self._write(handler, body, assignment)
        if way == "write done twice":
            # What a proxy does that lost the first answer.
            return self._write(handler, body, assignment)
        return _report(way) if way else reply

    def _write(
        self, handler: http.server.BaseHTTPRequestHandler, body: bytes, assignment: Assignment
    ) -> Reply:
        consumers = _list_consumers(handler.path, body)
        recorded = assignment.recorded()
        reply = self._send_on(handler, body)
        self.forget()
        unrecorded = tuple(consumer for consumer in consumers if consumer not in recorded)
        with self._state:
            assignment.writes.append(Write(consumers, reply.status, unrecorded))
        return reply

    def _read(self, handler: http.server.BaseHTTPRequestHandler, body: bytes) -> Reply:
        version = handler.headers.get("OpenStack-API-Version", "")
        key = (handler.command, handler.path, version, body.decode("utf-8", "replace"))
        with self._state:
            lock = self._locks.setdefault(key, threading.Lock())
        # The same request is not sent twice at once.
        with lock:
            kept = self._kept.get(key)
            if kept is not None and time.monotonic() - kept[0] < KEPT_SECONDS:
                reply = kept[1].copy()
                reply.put("Date", email.utils.formatdate(usegmt=True))
                return reply
            return self._ask_and_keep(handler, body, key)

    def _ask_and_keep(
        self, handler: http.server.BaseHTTPRequestHandler, body: bytes, key: tuple[str, ...]
    ) -> Reply:
        reply = self._send_on(handler, body)
        request = f"{handler.command} {handler.path}"
        with self._state:
            self.past.keep(_UUID.sub("{}", request), request, reply)
            if reply.status < 500:
                self._kept[key] = (time.monotonic(), reply.copy())
        return reply

    def _send_on(self, handler: http.server.BaseHTTPRequestHandler, body: bytes) -> Reply:
        """Return what the service itself answers."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        answer = self._ask(Asked(handler.command, handler.path, headers, body))
        return Reply(answer.status, list(answer.headers), answer.content)

    def _swap(self, shape: str, reply: Reply) -> Reply:
        with self._state:
            waiting = self._waiting.pop(shape, None)
            if waiting is None:
                mine = self._waiting[shape] = _Exchange(reply)
            else:
                other, waiting.reply = waiting.reply, reply
                waiting.done.set()
                return other
        mine.done.wait(_PARTNER_SECONDS)
        with self._state:
            if self._waiting.get(shape) is mine:
                del self._waiting[shape]
            return mine.reply


class _Exchange:
    """An answer that waits for another one."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.done = threading.Event()


def _list_consumers(path: str, body: bytes) -> tuple[str, ...]:
    """Return the consumers whose allocations a request writes."""
    if path.rstrip("/").endswith("/allocations"):
        return tuple(json.loads(body))
    return tuple(_UUID.findall(path))


def _report(way: str) -> Reply:
    """Return an answer to a write that says nothing of what was done."""
    headers = [("Content-Type", "application/json")]
    headers.append(("Date", email.utils.formatdate(usegmt=True)))
    if way.endswith("success reported"):
        return Reply(204, headers, b"")
    if way.endswith("conflict reported"):
        return Reply(409, headers, _CONFLICT)
    if way.endswith("failure reported"):
        return Reply(500, headers, b'{"errors": [{"status": 500, "detail": "x"}]}')
    return Reply(503, [], b"", silent=True, end=End.CLOSE)


def _deliver(handler: http.server.BaseHTTPRequestHandler, reply: Reply) -> None:
    """Send an answer as it says itself."""
    time.sleep(reply.delay)
    if not reply.silent:
        handler.send_response_only(reply.status)
        for name, value in reply.headers:
            handler.send_header(name, value)
        length = str(len(reply.body)) if reply.declared is None else reply.declared
        if reply.declared != "":
            handler.send_header("Content-Length", length)
        handler.end_headers()
        content = reply.body if reply.sent is None else reply.body[: reply.sent]
        if reply.pause and content:
            handler.wfile.write(content[:1])
            handler.wfile.flush()
            time.sleep(reply.pause)
            content = content[1:]
        handler.wfile.write(content + reply.extra)
        handler.wfile.flush()
    if reply.end is not End.KEEP:
        handler.close_connection = True
    if reply.end is End.RESET:
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(handler.connection.detach())
