"""Allocations on child providers, and what the guest of a real libvirt shows of them."""

import dataclasses as d
import json
import subprocess
import typing as t
import uuid
from pathlib import Path

import pytest
from minicloud_ctl import databases, holdings

from . import libvirt as real
from .libvirt import Libvirt
from .support import Minicloud, Placement, Run
from .test_cleanup_hypervisor import Cleaning, Hypervisor
from .world import CELL1, World

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]

DEVICE = "CUSTOM_PCI_8086_1521"
PCI = (
    "<hostdev mode='subsystem' type='pci' managed='yes'><source>"
    "<address domain='0x0000' bus='0x84' slot='0x00' function='0x0'/></source></hostdev>"
)
EARLIER = "strftime('%Y-%m-%d %H:%M:%S.000000', {}, '-1 day')"


@d.dataclass
class Leaks:
    """Servers of one hypervisor with an allocation of its PCI device."""

    host: Hypervisor
    world: World
    placement: Placement
    ansible: real.Inside
    child: str
    own: str

    def boot(self, inside: str = "") -> str:
        """Return a server of yesterday with a device in Placement; `inside` is its guest's."""
        server = self.world.boot(self.host.name)
        held = holdings.of(self.world.cloud, server)
        self.world.hold(server, {**held.allocations, self.child: {DEVICE: 1}})
        databases.set_allocations_back(self.world.paths, 24)
        for table, column, key in (
            ("instances", "updated_at", "uuid"),
            ("instance_actions", "start_time", "instance_uuid"),
        ):
            earlier = EARLIER.format(column)
            statement = f"UPDATE {table} SET {column} = {earlier} WHERE {key} = ?"
            self.world.sql(CELL1, statement, server)
        self.host.libvirt.domain(of=server, inside=inside, efi=False)
        self.host.libvirt("start", server)
        self.host.directory(server)
        return server

    def has_device(self, server: str) -> bool:
        held = self.placement.held(server)
        assert self.own in held
        return self.child in held

    def clean(self, *servers: str, guests: str, **variables: t.Any) -> Run:
        """Run `cleanup_orphans` with what was seen on the hypervisor."""
        chosen = {
            "guests": [guests],
            "kinds": ["leaked_child"],
            "remediate_kinds": ["leaked_child"],
            "consumers": list(servers),
            **variables,
        }
        named = {f"orphan_cleanup_{name}": value for name, value in chosen.items()}
        run = self.ansible.playbook("cleanup_orphans", variables=named)
        assert run.status == 0, run.output
        return run


@pytest.fixture(name="leaks")
def _leaks(
    world: World,
    placement: Placement,
    libvirt: Libvirt,
    minicloud: Minicloud,
    keeper: subprocess.Popen[t.Any],
    tmp_path: Path,
) -> Leaks:
    libvirt.forget()
    name = f"devices-{uuid.uuid4().hex[:8]}"
    world.own_host(name)
    instances = tmp_path / "instances"
    instances.mkdir()
    own = world.provider(name)
    # Nova names the provider of a device after its PCI address.
    child = holdings.create_provider(world.cloud, f"{name}_0000:84:00.0", {DEVICE: 8}, parent=own)
    host = Hypervisor(name, libvirt, instances, world)
    ansible = real.Inside(keeper, tmp_path, minicloud.environment)
    return Leaks(host, world, placement, ansible, child, own)


def reasons(run: Run) -> dict[str, tuple[str, str]]:
    """Return the ID and the words of the reason for each consumer."""
    findings = run.read("findings.json")["findings"]
    return {entry["consumer"]: (entry["reason_id"], entry["reason"]) for entry in findings}


def test_device_that_the_guest_does_not_use_is_removed_and_no_other(leaks: Leaks) -> None:
    unused, used = leaks.boot(), leaks.boot(PCI)
    hypervisor = Cleaning(leaks.ansible, leaks.host).done(kinds=[])
    seen = json.loads((hypervisor.folder / "hypervisor-cleanup" / "findings.json").read_text())
    changes = {entry["consumer"]: entry["change"] for entry in seen["findings"]}
    # The playbook for hypervisors shows the proof; it changes no allocation.
    assert changes[unused]["action"] == "reduce" and changes[used] is None
    assert leaks.has_device(unused) and leaks.has_device(used)
    # As a user names it, from where the user stands.
    path = f"hypervisor-cleanup/{leaks.host.name}/guests.json"
    file = leaks.ansible.folder / path

    stale = json.loads(file.read_text())
    (leaks.ansible.folder / "stale.json").write_text(
        json.dumps({**stale, "read_at": "2026-01-01T00:00:00Z"})
    )
    run = leaks.clean(unused, guests="stale.json")
    assert "1h" in reasons(run)[unused][1]
    (leaks.ansible.folder / "other.json").write_text(
        json.dumps({**stale, "host": "compute-1", "compute_id": None, "domains": []})
    )
    run = leaks.clean(unused, guests="other.json")
    assert reasons(run)[unused][0] == "host_not_in_guests"
    assert leaks.has_device(unused)

    run = leaks.clean(unused, used, guests=path)
    assert not leaks.has_device(unused) and leaks.has_device(used)
    assert "0000:84:00.0" in reasons(run)[used][1]
    journal = run.read("remediation.json")["journal"]
    assert reasons(leaks.clean(unused, guests=path)) == {}
    restored = leaks.ansible.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": journal}
    )
    assert restored.status == 0 and leaks.has_device(unused), restored.output


def test_server_that_changed_since_its_host_was_read_keeps_its_device(leaks: Leaks) -> None:
    """The plan is right when it is made, and the proof is renewed before it is applied."""
    server = leaks.boot()
    Cleaning(leaks.ansible, leaks.host).done(kinds=[])
    path = f"hypervisor-cleanup/{leaks.host.name}/guests.json"
    named = {
        "orphan_cleanup_guests": [path],
        "orphan_cleanup_kinds": ["leaked_child"],
        "orphan_cleanup_remediate_kinds": ["leaked_child"],
        "orphan_cleanup_consumers": [server],
    }
    run = leaks.ansible.playbook("cleanup_orphans", "--check", variables=named)
    assert run.status == 0, run.output
    leaks.world.cloud.nova("POST", f"/servers/{server}/action", {"lock": None})
    plan = {
        "orphan_cleanup_guests": [path],
        "orphan_cleanup_plan": "orphan-cleanup/plan.json",
        "orphan_cleanup_remediate_kinds": ["leaked_child"],
    }
    run = leaks.ansible.playbook("cleanup_orphans", variables=plan)
    outcomes = [entry["outcome"] for entry in run.read("remediation.json")["outcomes"]]
    assert outcomes == ["skipped"], run.output
    assert leaks.has_device(server)
