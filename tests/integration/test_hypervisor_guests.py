# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`hypervisor_guest_info` and `hypervisor_guest` against a real libvirt and real directories. No cloud is needed."""

from __future__ import annotations

import calendar
import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
import typing as t
import uuid
from pathlib import Path

import ansible as ansible_core
import pytest

from ansible_collections.osops.placement.tests.integration import libvirt as real
from ansible_collections.osops.placement.tests.integration.support import told

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from ansible_collections.osops.placement.tests.integration.libvirt import Inside, Libvirt

TPM = "<tpm model='tpm-tis'><backend type='emulator' version='2.0'/></tpm>"
DAY = 86400

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]


@pytest.fixture(scope="module")
def libvirt() -> Iterator[Libvirt]:
    yield from real.running()


@pytest.fixture(scope="module")
def processes() -> Iterator[subprocess.Popen[t.Any]]:
    yield from real.namespace()


@pytest.fixture
def host(libvirt: Libvirt, processes: subprocess.Popen[t.Any], tmp_path: Path) -> Iterator[Host]:
    libvirt.forget()
    yield Host(libvirt, real.Inside(processes, tmp_path), tmp_path)


class Host:
    """A hypervisor: a libvirt and a folder of instances, and the two modules."""

    def __init__(self, libvirt: Libvirt, ansible: Inside, folder: Path) -> None:
        self.libvirt = libvirt
        self.ansible = ansible
        self.folder = folder
        self.instances = folder / "instances"
        self.backups = folder / "backups"
        self.store = self.instances / ".quarantine"
        for other in ("_base", "locks"):
            (self.instances / other).mkdir(parents=True)
        self.where = {"uri": libvirt.uri, "instances_path": str(self.instances)}

    def directory(self, name: str) -> Path:
        """A directory as Nova makes it, changed last yesterday."""
        path = self.instances / name
        path.mkdir()
        (path / "disk").write_bytes(b"x" * 8192)
        (path / "console.log").write_text("booting\n")
        yesterday = time.time() - DAY
        for each in (path / "disk", path / "console.log", path):
            os.utime(each, (yesterday, yesterday))
        return path

    def guest(self, **how: t.Any) -> str:
        """A domain that is shut off and its directory. Its uuid."""
        made = self.libvirt.domain(**how)
        self.directory(made)
        return made

    def info(self, **arguments: t.Any) -> dict[str, t.Any]:
        return self.ansible.direct("hypervisor_guest_info", **{**self.where, **arguments})

    def seen(self, domain: str) -> dict[str, t.Any]:
        (found,) = self.info(uuids=[domain], parts=["domains"])["domains"]
        return found

    def shown(self, name: str) -> dict[str, t.Any]:
        return next(entry for entry in self.info(parts=["directories"])["directories"] if entry["name"] == name)

    def do(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        return self.ansible.direct("hypervisor_guest", **self._with(of, arguments))

    def foretell(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        """What check mode says, which touches nothing."""
        before = self.everything()
        result = self.do(of, _ansible_check_mode=True, _ansible_diff=True, **arguments)
        assert self.everything() == before
        return result

    def refused(self, of: str | None = None, /, **arguments: t.Any) -> str:
        """The sentence with which something is refused, in check mode and outside of it, that leaves all as it was."""
        before = self.everything()
        results = [self.do(of, _ansible_check_mode=check, **arguments) for check in (False, True)]
        assert self.everything() == before
        assert [result["failed"] for result in results] == [True, True], results
        assert [result.get("changed", False) for result in results] == [False, False]
        assert results[0]["msg"] == results[1]["msg"]
        return t.cast("str", results[0]["msg"])

    def twins(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        """What is done, after check mode said just that, and before a second time has nothing to do."""
        foretold = self.foretell(of, **arguments)
        result = self.do(of, _ansible_diff=True, **arguments)
        assert not foretold["failed"] and not result["failed"], result.get("msg")
        assert foretold["changed"] is True
        dated = {"xml_path", "quarantined", "invocation"}
        assert {key: value for key, value in foretold.items() if key not in dated} == {
            key: value for key, value in result.items() if key not in dated
        }
        again = self.do(of, _ansible_diff=True, **arguments)
        assert (again["changed"], again["actions"], again["failed"]) == (False, [], False)
        assert again["diff"]["before"] == again["diff"]["after"]
        assert again["domain"] == result["domain"] and again["directory"] == result["directory"]
        return result

    def everything(self) -> dict[str, t.Any]:
        """All that is there of guests: equal before and after if and only if nothing was done."""
        files = {
            str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns, os.readlink(path) if path.is_symlink() else None)
            for path in sorted(self.folder.rglob("*"))
            if not path.name.startswith(("arguments-", ".ansible"))
        }
        return {**files, "domains": self.libvirt.everything()}

    def reaching(self, script: str) -> str:
        """A `virsh` that does as the script says. `"$@"` are its arguments."""
        path = self.folder / "virsh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def _with(self, of: str | None, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        named = {} if of is None else {"uuid": of}
        return {**self.where, "backup_path": str(self.backups), **named, **arguments}


def test_what_a_hypervisor_has_of_guests_is_shown(host: Host) -> None:
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
    }
    entry, resize = found["directories"]
    assert [(each["name"], each["uuid"], each["kind"]) for each in (entry, resize)] == [
        (guest, guest, "instance"),
        (f"{guest}_resize", guest, "resize"),
    ]
    path = host.instances / guest
    held = [path, *path.iterdir()]
    assert entry["size_bytes"] == sum(each.stat().st_blocks for each in held) * 512 > 8192
    assert calendar.timegm(time.strptime(entry["changed_at"], "%Y-%m-%dT%H:%M:%SZ")) == int(path.stat().st_mtime)
    assert DAY <= entry["age_seconds"] < DAY + 600
    assert (entry["open"], entry["link"], entry["device"], entry["shared"]) == (False, False, path.stat().st_dev, False)
    assert found["quarantined"] == []


def test_only_what_is_named_like_an_instance_is_shown(host: Host) -> None:
    names = [str(uuid.uuid4()) for _each in range(3)]
    for name in (names[0], f"{names[1]}_resize", f"{names[2]}_del"):
        host.directory(name)
    for name in (names[0].upper(), names[0].replace("-", ""), f"{names[0]}_", f"{names[0]}_resized", f"{names[0]}\n", f"x{names[0]}"):
        host.directory(name)
    (host.instances / str(uuid.uuid4())).write_text("a file")
    found = host.info(parts=["directories"])
    assert {entry["name"]: entry["kind"] for entry in found["directories"]} == {
        names[0]: "instance",
        f"{names[1]}_resize": "resize",
        f"{names[2]}_del": "del",
    }
    assert found["domains"] is None


def test_only_the_instances_that_were_asked_for_are_shown(host: Host) -> None:
    guests = [host.guest() for _each in range(2)]
    host.do(host.guest(), directory="quarantined")
    found = host.info(uuids=guests[:1])
    shown = {part: [entry["uuid"] for entry in found[part]] for part in ("domains", "directories", "quarantined")}
    assert shown == {"domains": guests[:1], "directories": guests[:1], "quarantined": []}
    assert "is no UUID" in host.info(uuids=["../x"])["msg"]


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("<script>alert(1)</script>".replace("/", ""), "<script>alert(1)</script>"),
        ('a b"`$(touch pwned)`', "{{ 1 / 0 }}"),
        ("--all", "--all"),
        ("\u202eübel", "two\nlines\r\n\u202e"),
    ],
)
def test_hostile_names_are_data(host: Host, name: str, server: str) -> None:
    # libvirt itself refuses names with newlines or slashes, and XML refuses escape sequences.
    guest = host.guest(name=name, server=server)
    before = host.seen(guest)
    assert before["name"] == name
    assert before["nova"]["name"] == server.replace("\r\n", "\n")
    assert host.twins(guest, domain="undefined", directory="quarantined")["changed"]
    assert host.twins(guest, domain="defined", directory="present")["changed"]
    assert host.seen(guest) == before
    assert not list(host.folder.rglob("pwned"))


def test_the_metadata_of_older_nova_is_understood(host: Host) -> None:
    found = host.seen(host.guest(nova="http://openstack.org/xmlns/libvirt/nova/1.0"))
    assert found["nova"]["name"] == "web-1"


def test_a_domain_that_is_shut_off_is_undefined_and_can_be_defined_again(host: Host) -> None:
    guest = host.guest()
    xml, before = host.libvirt.xml(guest), host.seen(guest)
    result = host.twins(guest, domain="undefined")
    assert result["actions"] == ["undefine"]
    assert result["domain"] is None
    assert result["diff"]["before"]["domain"] == {"name": before["name"], "state": "shut off", "uuid": guest}
    assert guest not in host.libvirt("list", "--all", "--uuid").split()
    saved = Path(result["xml_path"])
    assert "sesame" in saved.read_text() and saved.read_text().strip() == xml
    assert (stat.S_IMODE(saved.stat().st_mode), stat.S_IMODE(saved.parent.stat().st_mode)) == (0o600, 0o700)
    result = host.twins(guest, domain="defined")
    assert (result["actions"], result["xml_path"], result["domain"]) == (["define"], str(saved), before)
    assert host.libvirt.xml(guest) == xml
    assert host.shown(guest)["kind"] == "instance"


def test_the_newest_xml_is_defined_unless_another_is_named(host: Host) -> None:
    guest = host.guest()
    paths = []
    for memory in ("262144", "131072"):
        host.libvirt("setmaxmem", guest, memory, "--config")
        paths.append(host.do(guest, domain="undefined")["xml_path"])
        host.do(guest, domain="defined")
    assert len(set(paths)) == 2
    assert host.seen(guest)["memory_mb"] == 128
    host.do(guest, domain="undefined")
    host.do(guest, domain="defined", xml_path=paths[0])
    assert host.seen(guest)["memory_mb"] == 256


def test_a_domain_that_is_there_is_never_defined_over(host: Host) -> None:
    guest = host.guest()
    host.do(guest, domain="undefined")
    host.do(guest, domain="defined")
    host.libvirt("setmaxmem", guest, "131072", "--config")
    before = host.everything()
    assert host.do(guest, domain="defined")["changed"] is False
    assert host.everything() == before


def test_xml_that_is_not_that_domains_is_not_defined(host: Host) -> None:
    one, other = host.guest(), host.guest()
    saved = host.do(one, domain="undefined")["xml_path"]
    host.do(other, domain="undefined")
    assert f"and not a domain of Nova with the UUID {other}" in host.refused(other, domain="defined", xml_path=saved)
    broken = host.folder / "broken.xml"
    for text in ("", "<domain", '<!DOCTYPE domain [<!ENTITY a "a">]><domain>&a;</domain>', "<domain/>", "x" * (10 * 1024 * 1024 + 1)):
        broken.write_text(text)
        assert "The XML of a domain" in host.refused(other, domain="defined", xml_path=str(broken))
    assert "cannot be read" in host.refused(other, domain="defined", xml_path=str(host.folder / "nowhere.xml"))
    assert "has no XML of" in host.refused(str(uuid.uuid4()), domain="defined")


@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_domain_that_is_not_shut_off_is_left_alone_unless_destroy_says_otherwise(host: Host, state: str) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    if state == "paused":
        host.libvirt("suspend", guest)
    assert host.seen(guest)["state"] == state
    assert f"is {state}: only one that is shut off is undefined" in host.refused(guest, domain="undefined")
    assert f"is {state}" in host.refused(guest, domain="undefined", directory="quarantined")
    assert f"is {state}" in host.refused(guest, directory="quarantined")
    result = host.twins(guest, domain="undefined", directory="quarantined", destroy=True)
    assert result["actions"] == ["destroy", "undefine", "quarantine"]
    assert host.twins(guest, domain="defined", directory="present")["actions"] == ["restore", "define"]


def test_destroy_leaves_the_directory_of_a_domain_that_stays_alone(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    assert "is running" in host.refused(guest, directory="quarantined", destroy=True)


def test_a_domain_that_is_gone_when_it_stops_can_be_defined_again(host: Host) -> None:
    guest = host.guest(live=True)
    assert host.seen(guest)["persistent"] is False
    assert host.twins(guest, domain="undefined", destroy=True)["actions"] == ["destroy"]
    assert host.twins(guest, domain="defined")["domain"]["persistent"] is True


def test_a_domain_that_is_not_novas_is_left_alone(host: Host) -> None:
    guest = host.guest(nova="")
    assert host.seen(guest)["nova"] is None
    assert "somebody else's" in host.refused(guest, domain="undefined")
    assert "somebody else's" in host.refused(guest, domain="undefined", destroy=True, directory="quarantined")
    other = host.guest(nova="http://example.org/nova/1.1")
    assert "somebody else's" in host.refused(other, domain="undefined")


def test_a_managed_save_is_lost_only_where_that_is_said(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    host.libvirt("managedsave", guest)
    assert host.seen(guest)["managed_save"] is True
    for remove in ([], ["snapshots", "nvram", "tpm"]):
        assert "has a managed save, which would be lost" in host.refused(guest, domain="undefined", remove=remove)
    assert host.twins(guest, domain="undefined", remove=["managed_save"])["actions"] == ["undefine"]


def test_snapshots_are_lost_only_where_that_is_said(host: Host) -> None:
    # The test driver knows no flags for firmware, and virsh leaves such flags out without a word, unless there are snapshots.
    guest = host.guest(efi=False)
    for name in ("one", "<two> three", "-four"):
        host.libvirt("snapshot-create-as", guest, f"--name={name}")
    assert host.seen(guest)["snapshots"] == 3
    for remove in ([], ["managed_save", "nvram", "tpm"]):
        assert "has snapshots, which would be lost" in host.refused(guest, domain="undefined", remove=remove)
    assert host.twins(guest, domain="undefined", remove=["snapshots"])["actions"] == ["undefine"]


@pytest.mark.parametrize(
    ("remove", "flags"),
    [([], {"--keep-nvram", "--keep-tpm"}), (["nvram"], {"--nvram", "--keep-tpm"}), (["tpm"], {"--keep-nvram"})],
)
def test_firmware_and_tpm_are_kept_unless_told_otherwise(host: Host, remove: list[str], flags: set[str]) -> None:
    guest = host.guest(inside=TPM)
    assert host.seen(guest)["tpm"] is True
    log = host.folder / "log"
    virsh = host.reaching(f'echo "$@" >> {log}; exec virsh "$@"')
    result = host.do(guest, domain="undefined", remove=remove, virsh=virsh)
    if "nvram" in remove:
        # The test driver keeps no such files, and cannot remove them.
        assert "unsupported flags" in result["msg"] and result["actions"] == []
        assert host.seen(guest)["nvram"]
    else:
        assert result["actions"] == ["undefine"]
    (line,) = [line for line in log.read_text().splitlines() if " undefine " in line]
    assert {word for word in line.split() if word.startswith("--")} - {"--quiet", "--connect"} == flags


def test_the_state_of_a_tpm_is_lost_only_where_libvirt_is_too_old_to_keep_it_and_that_is_said(host: Host) -> None:
    guest = host.guest(inside=TPM)
    old = host.reaching('case " $* " in *" --daemon "*) exec echo "Running against daemon: 8.8.0";; esac; exec virsh "$@"')
    assert "cannot keep before version 8.9" in host.refused(guest, domain="undefined", virsh=old)
    assert host.twins(guest, domain="undefined", virsh=old, remove=["tpm"])["actions"] == ["undefine"]


def test_a_domain_that_starts_while_it_is_undefined_stays_defined(host: Host) -> None:
    guest = host.guest()
    xml = host.libvirt.xml(guest)
    virsh = host.reaching(f'case " $* " in *" undefine "*) virsh -q -c "{host.libvirt.uri}" start {guest};; esac; exec virsh "$@"')
    result = host.do(guest, domain="undefined", directory="quarantined", virsh=virsh)
    assert result["failed"] and "was started while it was undefined" in result["msg"]
    assert (result["changed"], result["actions"], result["domain"]["state"]) == (False, [], "running")
    assert host.seen(guest)["persistent"] is True
    assert host.libvirt.xml(guest) == xml
    assert host.shown(guest)["kind"] == "instance"


def test_a_domain_that_starts_after_the_first_look_is_left_alone(host: Host) -> None:
    guest = host.guest()
    virsh = host.reaching(f'case " $* " in *" --security-info "*) virsh -q -c "{host.libvirt.uri}" start {guest};; esac; exec virsh "$@"')
    result = host.do(guest, domain="undefined", directory="quarantined", virsh=virsh)
    assert result["failed"] and "is running: only one that is shut off is undefined" in result["msg"]
    assert (result["changed"], host.seen(guest)["persistent"]) == (False, True)
    assert host.shown(guest)["kind"] == "instance"


def test_what_is_no_longer_as_it_was_seen_is_left_alone(host: Host) -> None:
    guest = host.guest()
    changed_at = host.shown(guest)["changed_at"]
    assert "is shut off, and was running when it was looked at" in host.refused(guest, domain="undefined", expect_state="running")
    created_at = host.seen(guest)["nova"]["created_at"]
    sentence = host.refused(guest, domain="undefined", expect_state="shut off", expect_created_at="2026-10-20T07:59:00Z")
    assert f"was defined by Nova at {created_at}, and not at 2026-10-20T07:59:00Z" in sentence
    (host.instances / guest / "disk").write_bytes(b"y")
    sentence = host.refused(guest, domain="undefined", directory="quarantined", expect_state="shut off", expect_changed_at=changed_at)
    assert f"and not at {changed_at}" in sentence
    now = {"expect_state": "shut off", "expect_created_at": created_at, "expect_changed_at": host.shown(guest)["changed_at"]}
    assert host.twins(guest, domain="undefined", directory="quarantined", **now)["actions"] == ["undefine", "quarantine"]


def test_a_directory_goes_to_quarantine_and_comes_back(host: Host) -> None:
    name = str(uuid.uuid4())
    path = host.directory(name)
    inode, before = path.stat().st_ino, host.shown(name)
    result = host.twins(name, directory="quarantined")
    assert (result["actions"], result["directory"], result["domain"]) == (["quarantine"], None, None)
    moved = Path(result["quarantined"])
    assert moved.parent == host.store and moved.stat().st_ino == inode and not path.exists()
    assert stat.S_IMODE(host.store.stat().st_mode) == 0o700
    found = host.info(parts=["directories"])
    assert found["directories"] == []
    (entry,) = found["quarantined"]
    assert (entry["name"], entry["uuid"], entry["kind"], entry["path"]) == (moved.name, name, "instance", str(moved))
    assert entry["age_seconds"] < 600 and entry["size_bytes"] == before["size_bytes"]
    assert moved.name == f"{name}.{entry['moved_at'].replace('-', '').replace(':', '')}"
    result = host.twins(name, directory="present")
    assert (result["actions"], result["directory"]) == (["restore"], str(path))
    assert path.stat().st_ino == inode
    assert {**host.shown(name), "age_seconds": 0} == {**before, "age_seconds": 0}


def test_the_newest_in_quarantine_comes_back(host: Host) -> None:
    name = str(uuid.uuid4())
    inodes = []
    for _each in range(2):
        inodes.append(host.directory(name).stat().st_ino)
        assert host.do(name, directory="quarantined")["changed"]
    assert host.do(name, directory="present")["changed"]
    assert (host.instances / name).stat().st_ino == inodes[1]


def test_nothing_is_brought_back_over_what_is_there(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    host.do(name, directory="quarantined")
    host.directory(name)
    before = host.everything()
    assert host.do(name, directory="present")["changed"] is False
    assert host.everything() == before
    shutil.rmtree(host.instances / name)
    (host.instances / name).write_text("no directory")
    result = host.do(name, directory="present")
    assert result["failed"] and "is there already" in result["msg"]
    assert "is neither in" in host.refused(str(uuid.uuid4()), directory="present")


def test_a_directory_of_a_resize_is_moved_only_when_it_is_named(host: Host) -> None:
    name = str(uuid.uuid4())
    resize, deletion = host.directory(f"{name}_resize"), host.directory(f"{name}_del")
    assert host.do(name, directory="quarantined")["changed"] is False
    assert resize.exists() and deletion.exists()
    result = host.twins(name, directory="quarantined", directory_kind="resize")
    assert Path(result["quarantined"]).name.startswith(f"{name}_resize.")
    assert deletion.exists()
    assert "is neither in" in host.refused(name, directory="present")
    assert host.twins(name, directory="present", directory_kind="resize")["directory"] == str(resize)


def test_a_directory_of_a_resize_stays_while_its_domain_runs(host: Host) -> None:
    guest = host.guest()
    host.directory(f"{guest}_resize")
    host.libvirt("start", guest)
    assert "is running" in host.refused(guest, directory="quarantined", directory_kind="resize")


def test_a_directory_in_use_stays_where_it_is(host: Host) -> None:
    guest = host.guest()
    with host.ansible.opening(host.instances / guest / "disk"):
        assert host.shown(guest)["open"] is True
        assert "is in use" in host.refused(guest, directory="quarantined")
        assert "is in use" in host.refused(guest, domain="undefined", directory="quarantined")
    assert host.shown(guest)["open"] is False
    assert host.twins(guest, directory="quarantined")["actions"] == ["quarantine"]


def test_a_directory_that_a_process_has_open_under_another_name_is_in_use(host: Host) -> None:
    guest = host.guest()
    with tempfile.TemporaryDirectory(dir=host.folder) as elsewhere:
        os.link(host.instances / guest / "disk", Path(elsewhere) / "disk")
        with host.ansible.opening(Path(elsewhere) / "disk"):
            assert host.shown(guest)["open"] is True


def test_a_directory_with_a_mount_in_it_is_in_use(host: Host) -> None:
    guest = host.guest()
    inside = host.instances / guest / "mounted in"
    inside.mkdir()
    within = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none '{inside}' && exec \"$@\"", "sh"]
    if host.ansible.run(*within, "true").returncode:
        pytest.skip("Nothing can be mounted here.")
    shown = told(host.ansible.started("hypervisor_guest_info", wrapper=within, **host.where, uuids=[guest]))
    assert shown["directories"][0]["open"] is True
    options = {**host.where, "backup_path": str(host.backups)}
    refused = told(host.ansible.started("hypervisor_guest", wrapper=within, **options, uuid=guest, directory="quarantined"))
    assert refused["failed"] and "something is mounted there" in refused["msg"]
    assert inside.exists()


def test_who_may_not_look_into_other_processes_moves_nothing(host: Host) -> None:
    guest = host.guest()
    less = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    shown = told(host.ansible.started("hypervisor_guest_info", wrapper=less, **host.where, uuids=[guest]))
    assert shown["directories"][0]["open"] is None
    refused = told(host.ansible.started("hypervisor_guest", wrapper=less, **host.where, uuid=guest, directory="quarantined"))
    assert refused["failed"] and "run the task as root" in refused["msg"]
    assert host.shown(guest)["open"] is False


def test_what_happened_before_a_failure_is_told(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    with host.ansible.opening(host.instances / guest / "disk"):
        result = host.do(guest, domain="undefined", directory="quarantined", destroy=True)
    assert result["failed"] and "is in use" in result["msg"]
    assert (result["changed"], result["actions"], result["domain"]) == (True, ["destroy", "undefine"], None)
    assert result["directory"] == str(host.instances / guest)
    assert Path(result["xml_path"]).exists() and result["quarantined"] is None
    assert host.twins(guest, domain="undefined", directory="quarantined")["actions"] == ["quarantine"]


def test_a_symbolic_link_in_place_of_a_directory_is_left_alone(host: Host) -> None:
    guest = host.libvirt.domain()
    target = host.directory(str(uuid.uuid4())).rename(host.folder / "volume")
    (host.instances / guest).symlink_to(target)
    shown = host.shown(guest)
    assert (shown["link"], shown["open"], shown["size_bytes"]) == (True, None, None)
    for more in ({}, {"allow_shared": True}, {"domain": "undefined"}):
        assert "is a symbolic link" in host.refused(guest, directory="quarantined", **more)
    assert "is a symbolic link" in host.refused(guest, directory="present")


def test_a_quarantine_that_is_a_symbolic_link_is_not_used(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    (host.folder / "elsewhere").mkdir(mode=0o700)
    host.store.symlink_to(host.folder / "elsewhere")
    for arguments in ({"directory": "quarantined"}, {"directory": "purged", "older_than": "0s"}):
        assert "it is a symbolic link" in host.refused(name, **arguments)
    assert "it is a symbolic link" in host.info()["msg"]


def test_a_quarantine_that_others_can_change_is_not_used(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    host.store.mkdir()
    for mode, owner in ((0o770, 0), (0o702, 0), (0o700, 65534)):
        host.store.chmod(mode)
        os.chown(host.store, owner, owner)
        assert "can be changed by others" in host.refused(name, directory="quarantined")


def test_a_quarantine_on_another_file_system_is_refused(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        if os.stat(other).st_dev == host.instances.stat().st_dev:
            pytest.skip("/dev/shm is on the same file system.")
        for path in (other, f"{other}/new"):
            assert "is on another file system" in host.refused(name, directory="quarantined", quarantine_path=path)
        assert os.listdir(other) == []
    assert "the folder above it is not there" in host.refused(name, directory="quarantined", quarantine_path=f"{other}/new")


def test_a_quarantine_elsewhere_on_the_same_file_system_is_used(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    store = str(host.folder / "aside")
    assert host.twins(name, directory="quarantined", quarantine_path=store)["quarantined"].startswith(f"{store}/{name}.")
    assert [entry["uuid"] for entry in host.info(quarantine_path=store)["quarantined"]] == [name]
    assert host.twins(name, directory="present", quarantine_path=store)["actions"] == ["restore"]


def _quarantined(host: Host, stamp: str, suffix: str = "") -> Path:
    """A directory that has been in quarantine since then."""
    name = str(uuid.uuid4()) + suffix
    host.directory(name)
    kind = {"": "instance", "_resize": "resize"}[suffix]
    moved = host.do(name[:36], directory="quarantined", directory_kind=kind)["quarantined"]
    return Path(moved).rename(host.store / f"{name}.{stamp}")


def test_only_what_has_been_in_quarantine_long_enough_is_deleted(host: Host) -> None:
    def stamp(ago: int) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - ago))

    old, resize = _quarantined(host, stamp(8 * DAY)), _quarantined(host, stamp(30 * DAY), "_resize")
    young, ahead = _quarantined(host, stamp(6 * DAY)), _quarantined(host, stamp(-9 * DAY))
    for path in (young, ahead):
        os.utime(path, (0, 0))
    left = host.directory(str(uuid.uuid4()))
    result = host.twins(directory="purged", older_than="7d")
    assert result["actions"] == ["purge"]
    assert result["purged"] == sorted([str(old), str(resize)])
    assert set(result["diff"]["before"]["quarantined"]) - set(result["diff"]["after"]["quarantined"]) == set(result["purged"])
    assert [path.exists() for path in (old, resize, young, ahead, left)] == [False, False, True, True, True]


def test_only_the_named_instance_is_deleted_from_quarantine(host: Host) -> None:
    one, other = _quarantined(host, "20200101T000000Z"), _quarantined(host, "20200101T000000Z")
    assert host.twins(one.name[:36], directory="purged", older_than="7d")["purged"] == [str(one)]
    assert other.exists()


def test_what_this_module_did_not_put_into_quarantine_stays_there(host: Host) -> None:
    entry = _quarantined(host, "20200101T000000Z")
    name = entry.name[:36]
    target = host.folder / "volume"
    target.mkdir()
    (target / "precious").write_text("precious")
    (entry / "link").symlink_to(target)
    (entry / "precious").symlink_to(target / "precious")
    stays = [host.store / f"{uuid.uuid4()}.20200101T000000Z" for _each in range(2)]
    stays[0].symlink_to(target)
    stays[1].write_text("a file")
    others = ("notes", name, f"{name}.20201399T000000Z", f"{name}.20200101T000000", f"{name.upper()}.20200101T000000Z")
    for other in others:
        (host.store / other).mkdir()
        stays.append(host.store / other)
    assert host.twins(directory="purged", older_than="0s")["purged"] == [str(entry)]
    assert (target / "precious").read_text() == "precious"
    assert all(os.path.lexists(path) for path in stays)
    assert host.info()["quarantined"] == []


def test_what_is_open_is_not_deleted_from_quarantine(host: Host) -> None:
    paths = [_quarantined(host, "20200101T000000Z") for _each in range(2)]
    with host.ansible.opening(paths[1] / "disk"):
        assert "is in use" in host.refused(directory="purged", older_than="1d")
    assert len(host.twins(directory="purged", older_than="1d")["purged"]) == 2


def test_how_long_must_be_said_before_anything_is_deleted(host: Host) -> None:
    entry = _quarantined(host, "20200101T000000Z")
    assert "older_than" in host.refused(directory="purged")
    assert "is no duration" in host.refused(directory="purged", older_than="soon")
    assert entry.exists()


@pytest.mark.parametrize(
    "spelling", ["../x", "", "test", "1", "{uuid}/../{other}", "{uuid}\n", "{UUID}", "{{{uuid}}}", "{uuid}_resize", "{bare}"]
)
def test_what_is_no_uuid_of_nova_is_refused(host: Host, spelling: str) -> None:
    # With letters in it, that upper case changes.
    guest, other = host.directory(f"{uuid.uuid4()}"[:-1] + "a").name, host.directory(str(uuid.uuid4())).name
    host.directory(f"{guest}_resize")
    host.libvirt.domain(name="test")
    given = spelling.format(uuid=guest, other=other, UUID=guest.upper(), bare=guest.replace("-", ""))
    before = host.everything()
    actions: list[dict[str, t.Any]] = [
        {"domain": "undefined", "destroy": True},
        {"directory": "quarantined"},
        {"directory": "purged", "older_than": "0s"},
    ]
    for action in actions:
        assert "is no UUID" in host.do(given, **action)["msg"]
    assert host.everything() == before


def test_nothing_happens_where_there_is_nothing(host: Host) -> None:
    before = host.everything()
    result = host.do(str(uuid.uuid4()), domain="undefined", directory="quarantined", destroy=True)
    assert (result["changed"], result["actions"], result["failed"]) == (False, [], False)
    assert host.everything() == before


def test_a_folder_of_instances_that_is_not_there_is_no_empty_one(host: Host) -> None:
    nowhere = str(host.folder / "nowhere")
    assert "instances_path" in host.info(instances_path=nowhere)["msg"]
    assert "instances_path" in host.refused(str(uuid.uuid4()), directory="quarantined", instances_path=nowhere)
    assert host.info(instances_path=nowhere, parts=["domains"])["directories"] is None


def test_libvirt_that_cannot_be_asked_fails_the_task(host: Host) -> None:
    guest = host.guest()
    down = {"uri": f"test+unix:///default?socket={host.folder}/nobody"}
    refusing = host.reaching("printf 'error: \\033[31mno\\n' >&2; exit 1")
    slow = host.folder / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    cases = [
        (down, "failed to connect"),
        ({"virsh": "/no/such/virsh"}, "is not there on this host"),
        ({"virsh": "virsh; touch pwned"}, "is not there on this host"),
        ({"virsh": "'virsh"}, "cannot be split"),
        ({"virsh": ""}, "virsh is empty"),
        ({"virsh": "echo"}, "which is no UUID"),
        ({"virsh": refusing}, f"failed at {host.libvirt.uri}: error: [31mno"),
        ({"virsh": str(slow), "virsh_timeout": 1}, "has not ended in 1 seconds"),
        ({"virsh_timeout": 0}, "at least one second"),
    ]
    for arguments, sentence in cases:
        assert sentence in host.info(**arguments)["msg"], arguments
    for action in ({"domain": "undefined"}, {"directory": "quarantined"}):
        assert "failed to connect" in host.refused(guest, **down, **action)
    assert not host.info(**down, parts=["directories"])["failed"]
    assert not list(host.folder.rglob("pwned"))


def test_a_command_with_arguments_reaches_libvirt(host: Host) -> None:
    guest = host.guest()
    assert host.info(virsh="env 'LC_ALL=de_DE.UTF-8' virsh", uuids=[guest])["domains"][0]["uuid"] == guest


def test_ansible_runs_the_modules_as_a_user_does(host: Host) -> None:
    guest = host.guest()
    options = {**host.where, "backup_path": str(host.backups), "uuid": guest, "domain": "undefined", "directory": "quarantined"}
    foretold = host.ansible.module("hypervisor_guest", "--check", "--diff", **options)
    assert foretold["changed"] and guest in foretold["printed_diff"]
    assert host.ansible.module("hypervisor_guest", **options)["actions"] == foretold["actions"] == ["undefine", "quarantine"]
    found = host.ansible.module("hypervisor_guest_info", **host.where, uuids=[guest])
    assert [len(found[part]) for part in ("domains", "directories", "quarantined")] == [0, 0, 1]


def _python39() -> str | None:
    """A Python 3.9 that runs, which hypervisors have."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for candidate in (shutil.which("python3.9"), *sorted(map(str, pyenv.glob("versions/3.9.*/bin/python3.9")))):
        if candidate and subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def test_all_of_it_runs_on_the_python_of_hypervisors(host: Host) -> None:
    python39 = _python39()
    if python39 is None:
        pytest.skip("There is no Python 3.9: install one, for example with pyenv.")
    # Only Ansible itself: whatever else is installed beside it is for a newer Python.
    (host.folder / "python").mkdir()
    (host.folder / "python" / "ansible").symlink_to(Path(ansible_core.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": f"{host.folder / 'python'}:{real.ROOT / 'collections'}"}

    def run(name: str, **arguments: t.Any) -> dict[str, t.Any]:
        parameters = host.folder / "arguments-39.json"
        parameters.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**host.where, **arguments}}))
        command = [python39, "-m", f"ansible_collections.osops.placement.plugins.modules.{name}", str(parameters)]
        done = host.ansible.run(*command, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    guest = host.guest()
    mine: dict[str, t.Any] = {"uuid": guest, "backup_path": str(host.backups)}
    found = run("hypervisor_guest_info", uuids=[guest])
    assert [len(found[part]) for part in ("domains", "directories", "quarantined")] == [1, 1, 0]
    assert run("hypervisor_guest", domain="undefined", directory="quarantined", **mine)["actions"] == ["undefine", "quarantine"]
    assert len(run("hypervisor_guest_info", uuids=[guest])["quarantined"]) == 1
    assert run("hypervisor_guest", domain="defined", directory="present", **mine)["actions"] == ["restore", "define"]
    run("hypervisor_guest", directory="quarantined", **mine)
    assert run("hypervisor_guest", directory="purged", older_than="0s", **mine)["actions"] == ["purge"]
