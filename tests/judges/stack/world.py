"""What the tests do to the stack, with the verbs that they use on the minicloud."""

from __future__ import annotations

import shutil
import subprocess
import typing as t

from minicloud_ctl import servers
from minicloud_ctl.waiting import wait_for

from ...integration.world import API, CELL1, World
from .bed import Stack
from .hosts import COMPUTE, Host

# What a test has measured.
Measured = dict[str, t.Any]

# A real guest starts and moves more slowly than one of the fake driver.
SECONDS = 300.0


class StackWorld(World):
    """The stack, with methods that change it until the end of the module."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack.home)
        self.stack = stack

    def host(self, name: str) -> Host:
        return self.stack.hosts[name]

    def own_host(self, name: str, driver: str = "") -> None:
        """Install a new hypervisor, to be killed at will; its service is deleted at the end.

        All of them have libvirt's driver.
        """
        self.stack.add_host(name)
        self._undo.callback(self._remove_host, name)
        self.revive(name)

    def _remove_host(self, host: str) -> None:
        self.host(host).reinstall()
        del self.stack.hosts[host]
        if host in self.cloud.compute_services():
            servers.force_down(self.cloud, host)
            self.delete_service(host)

    def crash(self, host: str) -> None:
        self.host(host).crash()

    def revive(self, *names: str) -> None:
        """Switch hosts on, and let Nova use them again."""
        for name in names:
            self.host(name).boot()
            self.host(name).tell(COMPUTE, "on")
            self.await_service(name, "up")
            servers.update_service(self.cloud, name, {"status": "enabled"})
        self.stack.await_hosts(*names)

    def restart(self, host: str) -> None:
        self.host(host).tell(COMPUTE, "off")
        self.host(host).tell(COMPUTE, "on")

    def log(self, host: str) -> str:
        return self.host(host).read_log()

    def await_service(self, host: str, state: str) -> None:
        """Wait until Nova calls a nova-compute up or down, whatever was forced."""

        def is_so() -> bool:
            known = self.cloud.compute_services().get(host)
            if known is not None and known["forced_down"] and state == "up":
                return self.cloud.nova_call(
                    "PUT", f"/os-services/{known['id']}", {"forced_down": False}
                ).ok
            return known is not None and known["state"] == state

        wait_for(f"the service of {host} to be {state}", is_so, SECONDS, 0.5)

    def provider(self, host: str) -> str:
        """Return the root of a host as it is now: a host that is installed again has another."""
        return self.cloud.hypervisors()[host]

    def set_speed(self, host: str, server: str, megabytes: int) -> None:
        """Limit the live migration of a server, with 1 so that it never ends."""
        self.host(host).guests("migrate-setspeed", server, str(megabytes))

    def find_guests(self, host: str) -> set[str]:
        """Return the servers whose guests run on a host."""
        return set(self.host(host).guests("list", "--uuid").split())

    def purge(self, server: str, host: str) -> None:
        """Cut the power of a host, delete a server on it, and let Nova forget the server."""
        self.crash(host)
        self.await_service(host, "down")
        servers.delete(self.cloud, server)
        self.nova_manage("db", "archive_deleted_rows", "--until-complete", "--all-cells", "--purge")

    def discard(self, host: str, server: str) -> None:
        """Remove what is left of a server on a host, which is switched on."""
        guests = self.host(host).guests
        if server in guests("list", "--uuid").split():
            guests("destroy", server)
        if server in guests("list", "--all", "--uuid").split():
            guests("undefine", server)
        shutil.rmtree(self.host(host).instances / server, ignore_errors=True)

    def sql(self, database: str, statement: str, *values: object) -> None:
        """Run a statement of a test of the minicloud, whose databases are SQLite's."""
        name = {CELL1: "nova", API: "nova_api"}.get(database, database)
        for value in values:
            statement = statement.replace("?", repr(value), 1)
        statement = statement.replace("datetime('now')", "UTC_TIMESTAMP()")
        changed = self.stack.sql(f"{statement}; SELECT ROW_COUNT()", name)
        assert int(changed) > 0, f"no row for {statement}"

    def nova_manage(self, *arguments: str) -> str:
        """Return what it prints; its exit status tells more than failures."""
        return self.run_nova_manage(*arguments).stdout

    def run_nova_manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self.stack.nova_manage, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def free(self, consumers: t.Iterable[str]) -> None:
        """Remove what other tests have left, as the allocation of a move that lost RabbitMQ."""
        for consumer in consumers:
            self.hold(consumer, {})

    def age(self, days: int = 2) -> None:
        """Make all allocations older, so that the minimum ages apply."""
        older = f"DATE_SUB(COALESCE(%s, UTC_TIMESTAMP()), INTERVAL {days} DAY)"
        for table in ("allocations", "consumers"):
            columns = ("created_at", "updated_at")
            changes = ", ".join(f"{column} = {older % column}" for column in columns)
            self.stack.sql(f"UPDATE {table} SET {changes}", "placement")
