"""Faults of the machine on which a module runs: its memory, its disk and its signals.

The module is the real one. Python reads a file `sitecustomize.py` before it starts, and that one
lets a system call fail once.
"""

from pathlib import Path

from ..integration.support import Ansible

_PRELUDE = """
import errno, http.client, os, signal, sys

def fail_once(place, name, error, nth, after=False):
    real, seen = getattr(place, name), []

    def call(*arguments, **options):
        seen.append(name)
        if len(seen) != nth:
            return real(*arguments, **options)
        if after:
            real(*arguments, **options)
        raise error

    setattr(place, name, call)

def break_write(error):
    real, seen = os.write, []

    def write(file, data):
        if data[:1] != b"{" or seen:
            return real(file, data)
        seen.append(file)
        real(file, data[: len(data) // 2])
        raise error

    os.write = write

def break_request(error, after):
    connection = http.client.HTTPConnection
    real_request, real_answer = connection.endheaders, connection.getresponse
    posts = []

    def endheaders(self, *arguments, **options):
        is_write = b"POST /allocations" in b"".join(self._buffer)
        if is_write and not posts and not after:
            posts.append(None)
            raise error
        if is_write and not posts:
            posts.append(self)
        return real_request(self, *arguments, **options)

    def getresponse(self, *arguments, **options):
        if after and posts and posts[0] is self:
            posts[0] = None
            real_answer(self, *arguments, **options).read()
            raise error
        return real_answer(self, *arguments, **options)

    connection.endheaders = endheaders
    connection.getresponse = getresponse

def ring():
    signal.signal(signal.SIGALRM, lambda *_arguments: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
"""

_EIO = "OSError(errno.EIO, 'Input/output error')"
_ENOSPC = "OSError(errno.ENOSPC, 'No space left on device')"
_EDQUOT = "OSError(errno.EDQUOT, 'Disk quota exceeded')"

# What happens at which step of a write, as the code that lets it happen.
STEPS = {
    "EIO as the folder of the journal is synchronized": f"fail_once(os, 'fsync', {_EIO}, 1)",
    "EIO as the journal is synchronized": f"fail_once(os, 'fsync', {_EIO}, 2)",
    "EIO as the outcomes are synchronized": f"fail_once(os, 'fsync', {_EIO}, 3)",
    "no memory as the journal is synchronized": "fail_once(os, 'fsync', MemoryError(), 2)",
    "no memory as the outcomes are synchronized": "fail_once(os, 'fsync', MemoryError(), 3)",
    "no memory in the middle of a record": "break_write(MemoryError())",
    "no space in the middle of a record": f"break_write({_ENOSPC})",
    "quota exceeded in the middle of a record": f"break_write({_EDQUOT})",
    "no memory before the write is sent": "break_request(MemoryError(), False)",
    "no memory after the write was sent": "break_request(MemoryError(), True)",
    "EINTR before the write is sent": "break_request(InterruptedError(), False)",
    "EINTR after the write was sent": "break_request(InterruptedError(), True)",
    "a signal a thousand times a second": "ring()",
}


def install(ansible: Ansible, folder: Path, step: str) -> None:
    """Let every Python that `ansible` starts from now on have this fault once."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"{_PRELUDE}\n{STEPS[step]}\n")
    ansible.environment["PYTHONPATH"] = str(folder)


def remove(ansible: Ansible) -> None:
    """Let no further Python have it."""
    del ansible.environment["PYTHONPATH"]
