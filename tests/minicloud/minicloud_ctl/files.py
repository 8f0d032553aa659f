"""Writes files so that nobody ever reads half of one, and locks between commands."""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace ``path`` at once.

    It is readable by the owner only, because most of these files contain a password.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    temporary.replace(path)


@contextlib.contextmanager
def locked(path: Path, waiting: str = "") -> Iterator[None]:
    """Let one thread or process at a time enter.

    A thread that is already inside may enter again. ``waiting`` is printed if it has to wait.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                print(waiting, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def tail(path: Path, lines: int = 25) -> str:
    """Return the last lines of a log, or nothing if it does not exist."""
    try:
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""
