"""Serves one OpenStack WSGI application with waitress.

Run as ``python -m minicloud_venv.serve NAME PORT THREADS [PROCESSES]``.

With more than one process each of them handles one request at a time and this one only speaks HTTP,
as with uWSGI in OpenStack: requests do not wait for Python's lock.

The applications find their configuration through the variables that ``minicloud_ctl.services`` sets
(OS_NOVA_CONFIG_DIR, ...). Keystone is bootstrapped here first: ``keystone-manage bootstrap`` alone
would repeat its imports.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import runpy
import sys
import sysconfig

import waitress
import waitress.task

from minicloud_venv import workers

# The module with ``application``, and the script that had it before that module existed.
APPLICATIONS = {
    "keystone": ("keystone.wsgi.api", "keystone-wsgi-public"),
    "placement": ("placement.wsgi.api", "placement-api"),
    "glance": ("glance.wsgi.api", "glance-wsgi-api"),
    "nova-api": ("nova.wsgi.osapi_compute", "nova-api-wsgi"),
    "cinder": ("cinder.wsgi.api", "cinder-api"),
    "cyborg": ("cyborg.wsgi.api", "cyborg-wsgi-api"),
    "neutron": ("minicloud_venv.neutron_server", "neutron-api"),
    "ironic": ("ironic.wsgi", "ironic-api-wsgi"),
}
# These look for their configuration in the folders of the system, unless an argument names the
# file, which is in this variable. They parse sys.argv when they are imported.
CONFIG_VARIABLES = {
    "cinder": "MINICLOUD_CINDER_CONFIG",
    "cyborg": "MINICLOUD_CYBORG_CONFIG",
    "ironic": "IRONIC_CONFIG_FILE",
}

# Where such a script looks for its configuration files; its own list has too few of them, or too
# many.
CONFIG_FILES = {
    "glance": ("glance.common.wsgi_app", "glance-api.conf"),
    "nova-api": ("nova.api.openstack.wsgi_app", ""),
}


def bootstrap_keystone() -> None:
    """Run ``keystone-manage bootstrap`` in a forked child, so that the server keeps its imports.

    Keystone itself makes it idempotent.

    It needs a child because Keystone loads its backends only once in a process. Its arguments are
    the OS_BOOTSTRAP_* variables.
    """
    from keystone.cmd import cli

    config = os.path.join(os.environ["OS_KEYSTONE_CONFIG_DIR"], "keystone.conf")
    argv = ["keystone-manage", "--config-file", config, "bootstrap"]
    child = multiprocessing.get_context("fork").Process(target=cli.main, args=(argv,))
    child.start()
    child.join()
    if child.exitcode != 0:
        sys.exit(f"keystone-manage bootstrap failed with exit status {child.exitcode}")


def load(name: str) -> workers.Application:
    module, script = APPLICATIONS[name]
    path = os.path.join(sysconfig.get_path("scripts"), script)
    if not os.path.exists(path):
        return importlib.import_module(module).application
    if name in CONFIG_FILES:
        where, files = CONFIG_FILES[name]
        importlib.import_module(where).CONFIG_FILES = os.environ.get(
            "OS_NOVA_CONFIG_FILES", files
        ).split(";")
    return runpy.run_path(path, run_name="application")["application"]


def leave_out_date() -> None:
    """Answer without a Date, as uWSGI does with ``http`` and ``http-socket``."""
    build = waitress.task.Task.build_response_header

    def build_without_date(task: waitress.task.Task) -> bytes:
        return re.sub(rb"(?i)\r\nDate:[^\r]*", b"", build(task))

    waitress.task.Task.build_response_header = build_without_date


def main(name: str, port: int, threads: int, processes: int = 1) -> None:
    # Keystone and Glance parse sys.argv when they are imported, too.
    sys.argv = [name]
    if name in CONFIG_VARIABLES:
        sys.argv = [f"{name}-api", "--config-file", os.environ[CONFIG_VARIABLES[name]]]
    if name == "keystone":
        bootstrap_keystone()
    if os.environ.get("MINICLOUD_WITHOUT_DATE"):
        leave_out_date()
    application = load(name) if processes == 1 else workers.spread(lambda: load(name), processes)
    place = {"host": "127.0.0.1", "port": port, "threads": threads}
    waitress.serve(application, **place, clear_untrusted_proxy_headers=False)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
