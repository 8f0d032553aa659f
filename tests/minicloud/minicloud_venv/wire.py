"""The client's side of the broker's protocol (see ``minicloud_venv.broker``).

Blocking sockets for threaded services.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    # take(body, acknowledge)
    Take = Callable[[dict, Callable[[], None]], Any]

RETRY_SECONDS = 0.2


class Line:
    """One connection with one JSON document per line.

    Writing is thread-safe; reading is not.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self._socket.makefile("rb")
        self._write_lock = threading.Lock()

    def write(self, document: dict) -> None:
        data = json.dumps(document).encode() + b"\n"
        with self._write_lock:
            self._socket.sendall(data)

    def read(self) -> dict:
        line = self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the broker closed the connection")
        return json.loads(line)

    def close(self) -> None:
        # This wakes a reader; it fails if the peer was faster.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Sender:
    """Sends messages to the broker, each confirmed.

    Reconnects while a broker restarts.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._line: Line | None = None
        self._closed = threading.Event()

    def request(self, document: dict) -> None:
        with self._lock:
            while not self._closed.is_set():
                try:
                    if self._line is None:
                        self._line = Line(self._address)
                    self._line.write(document)
                    self._line.read()
                    return
                except OSError:
                    self._drop()
                    self._closed.wait(RETRY_SECONDS)

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._drop()


class Receiver:
    """Listens in a thread and calls ``take`` for each message.

    Subscribes again after a broken connection.
    """

    def __init__(
        self, address: tuple[str, int], queues: list[str], topics: list[str], take: Take
    ) -> None:
        self._address = address
        self._subscription = {"op": "listen", "queues": queues, "topics": topics}
        self._take = take
        self._closed = threading.Event()
        self._ready = threading.Event()
        self._line: Line | None = None
        threading.Thread(target=self._run, daemon=True, name="broker-receiver").start()
        self._ready.wait()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                line = self._line = Line(self._address)
                line.write(self._subscription)
                line.read()
                self._ready.set()
                while True:
                    message = line.read()
                    self._take(
                        message["body"],
                        lambda number=message["id"], line=line: self._acknowledge(line, number),
                    )
            except OSError:
                self._closed.wait(RETRY_SECONDS)

    @staticmethod
    def _acknowledge(line: Line, number: int) -> None:
        # If it fails, the broker delivers the message again to the next listener, as any
        # at-least-once broker does.
        with contextlib.suppress(OSError):
            line.write({"op": "ack", "id": number})

    def close(self) -> None:
        self._closed.set()
        if self._line is not None:
            self._line.close()
