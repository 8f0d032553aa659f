"""Imports Nova once, and forks for each of its services.

Nova's imports are most of what the start of a service costs, and a scenario that needs a dead host
starts one of its own.

Run as ``python -m minicloud_venv.forker SOCKET``. A request is one line of JSON,
{"argv", "environment", "log"}: the command, its whole environment, and the file for its output. The
answer is the pid of a process that leads a session of its own.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys

# What the services import at once or when they get their first work. Neither of the managers
# nova.compute.manager and nova.scheduler.manager may be here: they read options while they are
# imported, such as how often a task runs, and there are no configuration files yet.
MODULES = (
    "nova.cmd.compute",
    "nova.cmd.conductor",
    "nova.cmd.scheduler",
    "nova.conductor.manager",
    "nova.api.openstack.compute",
    "nova.api.openstack.wsgi_app",
    "nova.virt.fake",
    "keystonemiddleware.auth_token",
    "sqlalchemy.dialects.sqlite",
    "minicloud_venv.driver",
    "minicloud_venv.sqlite_plugin",
    "minicloud_venv.workers",
    "waitress",
)
# Every module in these is needed.
PACKAGES = ("nova.objects", "nova.scheduler.filters", "nova.scheduler.weights")


def import_all() -> None:
    for name in MODULES:
        importlib.import_module(name)
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    gc.collect()
    # Memory that the collector never touches again stays shared with the children.
    gc.freeze()


def serve(listener: socket.socket) -> None:
    while True:
        connection, _address = listener.accept()
        with connection:
            request = connection.makefile("r", encoding="utf-8").readline()
            if not request:
                continue
            if os.fork() == 0:
                listener.close()
                os.setsid()
                # Only now, because whoever reads this takes it for the leader of its group.
                connection.sendall(f"{os.getpid()}\n".encode("ascii"))
                connection.close()
                run(**json.loads(request))


def run(argv: list[str], environment: dict[str, str], log: str) -> None:
    """Become the service; this never returns."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.environ.clear()
        os.environ.update(environment)
        if argv[1:2] == ["-m"]:
            sys.argv = argv[2:]
            runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
        else:
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(path: str) -> None:
    # Ended children vanish at once.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen()
        import_all()
        serve(listener)


if __name__ == "__main__":
    main(sys.argv[1])
