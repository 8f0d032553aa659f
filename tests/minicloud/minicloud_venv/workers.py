"""One WSGI application in several processes, each of which handles one request at a time."""

from __future__ import annotations

import io
import multiprocessing
import queue
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from multiprocessing.connection import Connection

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]
    Application = Callable[[Environ, StartResponse], Iterable[bytes]]


def spread(load: Callable[[], Application], processes: int) -> Application:
    """Start the processes, each with an application of its own.

    Returns an application that passes requests to any idle process.
    """
    idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()
    fork = multiprocessing.get_context("fork")
    for _number in range(processes):
        ours, theirs = fork.Pipe()
        fork.Process(target=_serve, args=(load, theirs), daemon=True).start()
        idle.put(ours)

    def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        plain = {key: value for key, value in environ.items() if isinstance(value, str)}
        worker = idle.get()
        try:
            worker.send((plain, body))
            status, headers, answer = worker.recv()
        finally:
            idle.put(worker)
        start_response(status, headers)
        return [answer]

    return application


def _serve(load: Callable[[], Application], requests: Connection) -> None:
    application = load()
    # It runs in a thread, because the call stack here is deep: Python maps and unmaps memory at
    # every call that crosses a certain depth, and a database query in a loop that did so took twice
    # its time.
    worker = threading.Thread(target=_serve_all, args=(application, requests))
    worker.start()
    worker.join()


def _serve_all(application: Application, requests: Connection) -> None:
    while True:
        try:
            plain, body = requests.recv()
        except EOFError:
            return
        requests.send(_answer(application, plain, body))


def _answer(
    application: Application, plain: dict[str, str], body: bytes
) -> tuple[str, list[tuple[str, str]], bytes]:
    environ = {
        **plain,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    told: list[Any] = []
    answer = application(
        environ, lambda status, headers, error=None: told.append((status, headers))
    )
    try:
        joined = b"".join(answer)
    finally:
        if hasattr(answer, "close"):
            answer.close()
    status, headers = told[-1]
    return str(status), list(headers), joined
