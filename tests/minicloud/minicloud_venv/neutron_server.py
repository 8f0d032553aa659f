"""Neutron's API and its RPC server in one process, for ``minicloud_venv.serve``.

They are two programs (``neutron.wsgi.api`` and ``neutron-rpc-server``) with the same plugins. One
process loads these once, which saves a few seconds and 150 MB.
"""

from __future__ import annotations

from neutron.wsgi import api
from neutron_lib.plugins import directory


def listen() -> None:
    """Start in threads what one worker of neutron-rpc-server starts."""
    for plugin in directory.get_unique_plugins():
        if not hasattr(plugin, "start_rpc_listeners"):
            continue
        try:
            plugin.start_rpc_listeners()
        except NotImplementedError:
            # The plugin inherits the method and has no RPC.
            continue


application = api.application
listen()
