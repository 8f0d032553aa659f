"""Drivers for special hosts, based on Nova's fake ones.

``minicloud_venv.compute`` lets Nova find them.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import nova.conf
from nova import exception
from nova.virt import fake

# Nova looks for drivers below nova.virt only, and keeps no identity of a single node if the name
# contains "ironic".
NAMES = ("minicloud", "minicloud_ironic")

# With this word in a file `fail-CALL` Nova returns the server to its earlier state, as after a
# failed check.
ROLLBACK = "rollback"

# It has its own since compute nodes have an identity that outlives the service.
ONE_NODE = getattr(fake, "FakeDriverWithoutFakeNodes", fake.FakeDriver)


class TwoNodes(fake.FakeDriver):
    """One service with two nodes, as with ironic.

    The first has the host's name, the second ``HOST-2``.
    """

    def init_host(self, host: str) -> None:
        super().init_host(host)
        self._set_nodes([host, f"{host}-2"])

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        return {**super().get_available_resource(nodename), "uuid": _identity(nodename)}

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        return {_identity(name): name for name in self.get_available_nodes()}


def _identity(nodename: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, nodename))


class HeldLiveMigration(ONE_NODE):
    """Live migrations from here do not end while a certain file exists, and fail with another.

    These are ``hold-live-migrations`` and ``fail-live-migrations`` in the host's state folder.
    """

    def live_migration(self, *args: Any, **kwargs: Any) -> None:
        _follow("live-migrations")
        super().live_migration(*args, **kwargs)


class SteeredColdMigration(ONE_NODE):
    """Cold migrations, resizes and deletions whose calls wait or fail.

    Files in the host's state folder control them.

    `hold-CALL`: the call waits while the file exists; nova-compute can be killed in the middle of
    it. `fail-CALL`: the call raises; with the word `rollback` in the file it raises what libvirt
    raises when it has changed nothing yet. CALL is `migrate_disk_and_power_off` on the source or
    `finish_migration` on the destination; or `destroy` of a deletion.
    """

    def migrate_disk_and_power_off(self, *args: Any, **kwargs: Any) -> Any:
        _follow("migrate_disk_and_power_off")
        return super().migrate_disk_and_power_off(*args, **kwargs)

    def finish_migration(self, *args: Any, **kwargs: Any) -> None:
        _follow("finish_migration")
        super().finish_migration(*args, **kwargs)

    def destroy(self, *args: Any, **kwargs: Any) -> None:
        _follow("destroy")
        super().destroy(*args, **kwargs)


def _follow(call: str) -> None:
    """Do what the files for `call` say."""
    folder = Path(nova.conf.CONF.state_path)
    while (folder / f"hold-{call}").exists():
        time.sleep(0.1)
    failure = folder / f"fail-{call}"
    if not failure.exists():
        return
    error = exception.NovaException(f"{call} fails on purpose")
    if failure.read_text(encoding="utf-8").strip() == ROLLBACK:
        raise exception.InstanceFaultRollback(inner_exception=error)
    raise error


class NamedNode(ONE_NODE):
    """Its node has the name in the file ``hypervisor-hostname``, as libvirt's has the system's."""

    def init_host(self, host: str) -> None:
        super().init_host(host)
        self._set_nodes([Path(nova.conf.CONF.state_path, "hypervisor-hostname").read_text()])
