# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serves one OpenStack WSGI application with waitress: ``python -m minicloud_venv.serve NAME PORT [THREADS]``.

The applications find their configuration through the variables that ``minicloud_ctl.services`` sets (OS_NOVA_CONFIG_DIR, ...).
Keystone is bootstrapped here first: ``keystone-manage bootstrap`` alone would cost its imports a second time.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys

import waitress

MODULES = {
    "keystone": "keystone.wsgi.api",
    "placement": "placement.wsgi.api",
    "glance": "glance.wsgi.api",
    "nova-api": "nova.wsgi.osapi_compute",
}


def bootstrap_keystone() -> None:
    """``keystone-manage bootstrap`` in a forked child, which hands its imports on to the server; idempotent by Keystone's own doing.

    A child, because Keystone loads its backends only once in a process. Its arguments are the OS_BOOTSTRAP_* variables.
    """
    from keystone.cmd import cli

    config = os.path.join(os.environ["OS_KEYSTONE_CONFIG_DIR"], "keystone.conf")
    argv = ["keystone-manage", "--config-file", config, "bootstrap"]
    child = multiprocessing.get_context("fork").Process(target=cli.main, args=(argv,))
    child.start()
    child.join()
    if child.exitcode != 0:
        sys.exit(f"keystone-manage bootstrap failed with exit status {child.exitcode}")


def main(name: str, port: int, threads: int) -> None:
    # Keystone and Glance parse sys.argv while they are imported.
    sys.argv = [name]
    if name == "keystone":
        bootstrap_keystone()
    application = importlib.import_module(MODULES[name]).application
    waitress.serve(application, host="127.0.0.1", port=port, threads=threads, clear_untrusted_proxy_headers=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
