"""What `hypervisor_guest_info` and `hypervisor_guest` show and refuse, and how they are run.

No cloud is needed.
"""

import calendar
import json
import os
import shutil
import subprocess
import time
import typing as t
import uuid
from pathlib import Path

import ansible as ansible_core
import pytest

from . import libvirt as real
from .hypervisor import DAY, Host

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]


def test_info_shows_the_guests_of_a_hypervisor(host: Host) -> None:
    guest = host.guest()
    host.directory(f"{guest}_resize")
    before = host.everything()
    found = host.info()
    assert host.everything() == before
    assert (found["changed"], found["failed"], found["host"]) == (False, False, os.uname().nodename)
    assert next(domain for domain in found["domains"] if domain["uuid"] == guest) == {
        "uuid": guest,
        "name": f"instance-{guest[:8]}",
        "state": "shut off",
        "vcpus": 2,
        "memory_mb": 512,
        "persistent": True,
        "managed_save": False,
        "snapshots": 0,
        "nvram": f"/var/lib/libvirt/qemu/nvram/{guest}.fd",
        "tpm": False,
        "nova": {
            "name": "web-1",
            "flavor": "m1.small",
            "project": real.PROJECT,
            "user": real.USER,
            "created_at": "2026-10-20T08:00:12Z",
        },
        "disks": [f"/var/lib/nova/instances/{guest}/disk"],
        "hostdevs": [],
        "mdevs": [],
        "other_devices": [],
    }
    entry, resize = found["directories"]
    assert [(each["name"], each["uuid"], each["kind"]) for each in (entry, resize)] == [
        (guest, guest, "instance"),
        (f"{guest}_resize", guest, "resize"),
    ]
    path = host.instances / guest
    held = [path, *path.iterdir()]
    assert entry["size_bytes"] == sum(each.stat().st_blocks for each in held) * 512 > 8192
    assert calendar.timegm(time.strptime(entry["changed_at"], "%Y-%m-%dT%H:%M:%SZ")) == int(
        path.stat().st_mtime
    )
    assert DAY <= entry["age_seconds"] < DAY + 600
    assert (entry["open"], entry["link"], entry["device"], entry["shared"]) == (
        False,
        False,
        path.stat().st_dev,
        False,
    )
    assert entry["inode"] == path.stat().st_ino
    assert found["quarantined"] == []


def test_info_shows_only_what_is_named_like_an_instance(host: Host) -> None:
    names = [str(uuid.uuid4()) for _each in range(3)]
    for name in (names[0], f"{names[1]}_resize", f"{names[2]}_del"):
        host.directory(name)
    for name in (
        names[0].upper(),
        names[0].replace("-", ""),
        f"{names[0]}_",
        f"{names[0]}_resized",
        f"{names[0]}\n",
        f"x{names[0]}",
    ):
        host.directory(name)
    (host.instances / str(uuid.uuid4())).write_text("a file")
    found = host.info(parts=["directories"])
    assert {entry["name"]: entry["kind"] for entry in found["directories"]} == {
        names[0]: "instance",
        f"{names[1]}_resize": "resize",
        f"{names[2]}_del": "del",
    }
    assert found["domains"] is None


def test_info_shows_only_requested_instances(host: Host) -> None:
    guests = [host.guest() for _each in range(2)]
    host.do(host.guest(), directory="quarantined")
    found = host.info(uuids=guests[:1])
    shown = {
        part: [entry["uuid"] for entry in found[part]]
        for part in ("domains", "directories", "quarantined")
    }
    assert shown == {"domains": guests[:1], "directories": guests[:1], "quarantined": []}
    assert "not a UUID" in host.info(uuids=["../x"])["msg"]


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("<script>alert(1)</script>".replace("/", ""), "<script>alert(1)</script>"),
        ('a b"`$(touch pwned)`', "{{ 1 / 0 }}"),
        ("--all", "--all"),
        ("\u202eübel", "two\nlines\r\n\u202e"),
    ],
)
def test_info_returns_hostile_names_as_data(host: Host, name: str, server: str) -> None:
    # libvirt itself refuses names with newlines or slashes, and XML refuses escape sequences.
    guest = host.guest(name=name, server=server)
    before = host.seen(guest)
    assert before["name"] == name
    assert before["nova"]["name"] == server.replace("\r\n", "\n")
    assert host.twins(guest, domain="undefined", directory="quarantined")["changed"]
    assert host.twins(guest, domain="defined", directory="present")["changed"]
    assert host.seen(guest) == before
    assert not list(host.folder.rglob("pwned"))


def test_info_understands_the_metadata_of_older_nova(host: Host) -> None:
    found = host.seen(host.guest(nova="http://openstack.org/xmlns/libvirt/nova/1.0"))
    assert found["nova"]["name"] == "web-1"


@pytest.mark.parametrize(
    "spelling",
    [
        "../x",
        "",
        "test",
        "1",
        "{uuid}/../{other}",
        "{uuid}\n",
        "{UUID}",
        "{{{uuid}}}",
        "{uuid}_resize",
        "{bare}",
    ],
)
def test_module_refuses_an_id_that_is_not_a_nova_uuid(host: Host, spelling: str) -> None:
    # It contains letters, which upper case changes.
    guest, other = (
        host.directory(f"{uuid.uuid4()}"[:-1] + "a").name,
        host.directory(str(uuid.uuid4())).name,
    )
    host.directory(f"{guest}_resize")
    host.libvirt.domain(name="test")
    given = spelling.format(
        uuid=guest, other=other, UUID=guest.upper(), bare=guest.replace("-", "")
    )
    before = host.everything()
    actions: list[dict[str, t.Any]] = [
        {"domain": "undefined", "destroy": True},
        {"directory": "quarantined"},
        {"directory": "purged", "older_than": "0s", "now": "2026-01-01T00:00:00Z"},
    ]
    for action in actions:
        assert "not a UUID" in host.do(given, **action)["msg"]
    assert host.everything() == before


def test_module_does_nothing_when_there_is_nothing(host: Host) -> None:
    before = host.everything()
    result = host.do(str(uuid.uuid4()), domain="undefined", directory="quarantined", destroy=True)
    assert (result["changed"], result["actions"], result["failed"]) == (False, [], False)
    assert host.everything() == before


def test_missing_instances_folder_is_an_error(host: Host) -> None:
    nowhere = str(host.folder / "nowhere")
    assert "instances_path" in host.info(instances_path=nowhere)["msg"]
    assert "instances_path" in host.refused(
        str(uuid.uuid4()), directory="quarantined", instances_path=nowhere
    )
    assert host.info(instances_path=nowhere, parts=["domains"])["directories"] is None


def test_unreachable_libvirt_fails_the_task(host: Host) -> None:
    guest = host.guest()
    down = {"uri": f"test+unix:///default?socket={host.folder}/nobody"}
    refusing = host.reaching("printf 'error: \\033[31mno\\n' >&2; exit 1")
    slow = host.folder / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    cases = [
        (down, "failed to connect"),
        ({"virsh": "/no/such/virsh"}, "does not exist on this host"),
        ({"virsh": "virsh; touch pwned"}, "does not exist on this host"),
        ({"virsh": "'virsh"}, "cannot be split"),
        ({"virsh": ""}, "virsh is empty"),
        ({"virsh": "echo"}, "which is not a UUID"),
        ({"virsh": refusing}, f"failed at {host.libvirt.uri}: error: [31mno"),
        ({"virsh": str(slow), "virsh_timeout": 1}, "has not ended within 1 seconds"),
        ({"virsh_timeout": 0}, "virsh_timeout is 0, and must be 1 or more"),
    ]
    for arguments, sentence in cases:
        assert sentence in host.info(**arguments)["msg"], arguments
    for action in ({"domain": "undefined"}, {"directory": "quarantined"}):
        assert "failed to connect" in host.refused(guest, **down, **action)
    assert not host.info(**down, parts=["directories"])["failed"]
    assert not list(host.folder.rglob("pwned"))


def test_virsh_command_with_arguments_reaches_libvirt(host: Host) -> None:
    guest = host.guest()
    assert (
        host.info(virsh="env 'LC_ALL=de_DE.UTF-8' virsh", uuids=[guest])["domains"][0]["uuid"]
        == guest
    )


def test_ansible_runs_the_hypervisor_modules(host: Host) -> None:
    guest = host.guest()
    options = {
        **host.where,
        "backup_path": str(host.backups),
        "uuid": guest,
        "domain": "undefined",
        "directory": "quarantined",
    }
    foretold = host.ansible.module("hypervisor_guest", "--check", "--diff", **options)
    assert foretold["changed"] and guest in foretold["printed_diff"]
    assert (
        host.ansible.module("hypervisor_guest", **options)["actions"]
        == foretold["actions"]
        == ["undefine", "quarantine"]
    )
    found = host.ansible.module("hypervisor_guest_info", **host.where, uuids=[guest])
    assert [len(found[part]) for part in ("domains", "directories", "quarantined")] == [0, 0, 1]


def _python39() -> str | None:
    """Return a working Python 3.9, which hypervisors have."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = (shutil.which("python3.9"), *sorted(pyenv.glob("versions/3.9.*/bin/python3.9")))
    for python in map(str, filter(None, found)):
        if not subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
            return python
    return None


def test_hypervisor_modules_run_on_python_of_hypervisors(host: Host) -> None:
    python39 = _python39()
    if python39 is None:
        pytest.skip("There is no Python 3.9: install one, for example with pyenv.")
    # Only Ansible itself: whatever else is installed beside it needs a newer Python.
    (host.folder / "python").mkdir()
    (host.folder / "python" / "ansible").symlink_to(Path(ansible_core.__file__).parent)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{host.folder / 'python'}:{real.ROOT / 'collections'}",
    }

    def run(name: str, **arguments: t.Any) -> dict[str, t.Any]:
        parameters = host.folder / "arguments-39.json"
        parameters.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**host.where, **arguments}}))
        command = [
            python39,
            "-m",
            f"ansible_collections.osops.placement.plugins.modules.{name}",
            str(parameters),
        ]
        done = host.ansible.run(*command, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    guest = host.guest()
    mine: dict[str, t.Any] = {"uuid": guest, "backup_path": str(host.backups)}
    found = run("hypervisor_guest_info", uuids=[guest])
    assert [len(found[part]) for part in ("domains", "directories", "quarantined")] == [1, 1, 0]
    assert run("hypervisor_guest", domain="undefined", directory="quarantined", **mine)[
        "actions"
    ] == ["undefine", "quarantine"]
    assert run(
        "hypervisor_guest", directory="purged", older_than="0s", now="2026-01-01T00:00:00Z", **mine
    )["actions"] == ["purge"]
