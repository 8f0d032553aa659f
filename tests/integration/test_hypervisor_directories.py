"""`hypervisor_guest` moves directories into quarantine and back."""

import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

import pytest

from . import libvirt as real
from .hypervisor import Host
from .support import told

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]


def test_module_quarantines_and_restores_a_directory(host: Host) -> None:
    name = str(uuid.uuid4())
    path = host.directory(name)
    inode, before = path.stat().st_ino, host.shown(name)
    result = host.twins(name, directory="quarantined")
    assert (result["actions"], result["directory"], result["domain"]) == (
        ["quarantine"],
        None,
        None,
    )
    moved = Path(result["quarantined"])
    assert moved.parent == host.store and moved.stat().st_ino == inode and not path.exists()
    assert stat.S_IMODE(host.store.stat().st_mode) == 0o700
    found = host.info(parts=["directories"])
    assert found["directories"] == []
    (entry,) = found["quarantined"]
    assert (entry["name"], entry["uuid"], entry["kind"], entry["path"]) == (
        moved.name,
        name,
        "instance",
        str(moved),
    )
    assert entry["age_seconds"] < 600 and entry["size_bytes"] == before["size_bytes"]
    assert moved.name == f"{name}.{entry['moved_at'].replace('-', '').replace(':', '')}"
    result = host.twins(name, directory="present")
    assert (result["actions"], result["directory"]) == (["restore"], str(path))
    assert path.stat().st_ino == inode
    assert {**host.shown(name), "age_seconds": 0} == {**before, "age_seconds": 0}


@pytest.mark.parametrize("way", ["itself", "a parent", "a link", "another mount", "Ganesha"])
def test_directory_that_this_host_exports_is_shared(host: Host, tmp_path: Path, way: str) -> None:
    """A client of this host may use it, although its file system here is a local one."""
    name = str(uuid.uuid4())
    host.directory(name)
    assert host.shown(name)["shared"] is False
    paths = {"a parent": host.folder, "a link": tmp_path / "link", "another mount": tmp_path / "x"}
    export = paths.get(way, host.instances)
    configuration, other = tmp_path / "etc", tmp_path / "etc" / "exports"
    shutil.copytree("/etc", configuration, symlinks=True, ignore_dangling_symlinks=True)
    other.write_text(f'"{export}" *(rw,no_root_squash)\n')
    if way == "Ganesha":
        other.write_text("")
        (configuration / "ganesha").mkdir(exist_ok=True)
        (configuration / "ganesha/ganesha.conf").write_text(f"EXPORT {{ Path = {export}; }}\n")
    elif way == "a link":
        export.symlink_to(host.instances)
    elif way == "another mount":
        export.mkdir()
        _mount(host, "--bind", str(host.instances), str(export))
    _mount(host, "--bind", str(configuration), "/etc")
    try:
        assert host.shown(name)["shared"] is True
        assert "is exported" in host.refused(name, directory="quarantined")
        assert host.predict(name, directory="quarantined", allow_shared=True)["changed"]
    finally:
        host.ansible.run("umount", "/etc")
        host.ansible.run("umount", str(tmp_path / "x"))
    assert host.shown(name)["shared"] is False


def _mount(host: Host, *arguments: str) -> None:
    # In the namespace of the tests only.
    done = host.ansible.run("mount", *arguments)
    if done.returncode:
        pytest.skip(f"Nothing can be mounted here: {done.stderr}")


def test_module_restores_the_newest_from_quarantine(host: Host) -> None:
    name = str(uuid.uuid4())
    inodes = []
    for _each in range(2):
        inodes.append(host.directory(name).stat().st_ino)
        assert host.do(name, directory="quarantined")["changed"]
    assert host.do(name, directory="present")["changed"]
    assert (host.instances / name).stat().st_ino == inodes[1]


def test_module_never_restores_over_an_existing_directory(host: Host) -> None:
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
    assert result["failed"] and "already exists" in result["msg"]
    assert "is neither in" in host.refused(str(uuid.uuid4()), directory="present")


def test_module_quarantines_a_resize_directory_only_when_named(host: Host) -> None:
    name = str(uuid.uuid4())
    resize, deletion = host.directory(f"{name}_resize"), host.directory(f"{name}_del")
    assert host.do(name, directory="quarantined")["changed"] is False
    assert resize.exists() and deletion.exists()
    result = host.twins(name, directory="quarantined", directory_kind="resize")
    assert Path(result["quarantined"]).name.startswith(f"{name}_resize.")
    assert deletion.exists()
    assert "is neither in" in host.refused(name, directory="present")
    assert host.twins(name, directory="present", directory_kind="resize")["directory"] == str(
        resize
    )


def test_module_keeps_a_resize_directory_while_its_domain_runs(host: Host) -> None:
    guest = host.guest()
    host.directory(f"{guest}_resize")
    host.libvirt("start", guest)
    assert "is running" in host.refused(guest, directory="quarantined", directory_kind="resize")


def test_module_keeps_a_directory_in_use(host: Host) -> None:
    guest = host.guest()
    with host.ansible.opening(host.instances / guest / "disk"):
        assert host.shown(guest)["open"] is True
        assert "is in use" in host.refused(guest, directory="quarantined")
        assert "is in use" in host.refused(guest, domain="undefined", directory="quarantined")
    assert host.shown(guest)["open"] is False
    assert host.twins(guest, directory="quarantined")["actions"] == ["quarantine"]


def test_directory_open_under_another_name_is_in_use(host: Host) -> None:
    guest = host.guest()
    with tempfile.TemporaryDirectory(dir=host.folder) as elsewhere:
        os.link(host.instances / guest / "disk", Path(elsewhere) / "disk")
        with host.ansible.opening(Path(elsewhere) / "disk"):
            assert host.shown(guest)["open"] is True


def test_directory_with_a_mount_inside_is_in_use(host: Host) -> None:
    guest = host.guest()
    inside = host.instances / guest / "mounted in"
    inside.mkdir()
    within = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f"mount -t tmpfs none '{inside}' && exec \"$@\"",
        "sh",
    ]
    if host.ansible.run(*within, "true").returncode:
        pytest.skip("Nothing can be mounted here.")
    shown = told(
        host.ansible.started("hypervisor_guest_info", wrapper=within, **host.where, uuids=[guest])
    )
    assert shown["directories"][0]["open"] is True
    options = {**host.where, "backup_path": str(host.backups)}
    refused = told(
        host.ansible.started(
            "hypervisor_guest", wrapper=within, **options, uuid=guest, directory="quarantined"
        )
    )
    assert refused["failed"] and "is mounted there" in refused["msg"]
    assert inside.exists()


def test_module_quarantines_nothing_without_permission_to_see_other_processes(host: Host) -> None:
    guest = host.guest()
    less = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    shown = told(
        host.ansible.started("hypervisor_guest_info", wrapper=less, **host.where, uuids=[guest])
    )
    assert shown["directories"][0]["open"] is None
    refused = told(
        host.ansible.started(
            "hypervisor_guest", wrapper=less, **host.where, uuid=guest, directory="quarantined"
        )
    )
    assert refused["failed"] and "as root" in refused["msg"]
    assert host.shown(guest)["open"] is False


def test_failed_module_reports_what_it_did_before(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    with host.ansible.opening(host.instances / guest / "disk"):
        result = host.do(guest, domain="undefined", directory="quarantined", destroy=True)
    assert result["failed"] and "is in use" in result["msg"]
    assert (result["changed"], result["actions"], result["domain"]) == (
        True,
        ["destroy", "undefine"],
        None,
    )
    assert result["directory"] == str(host.instances / guest)
    assert Path(result["xml_path"]).exists() and result["quarantined"] is None
    assert host.twins(guest, domain="undefined", directory="quarantined")["actions"] == [
        "quarantine"
    ]


def test_module_ignores_a_symbolic_link_in_place_of_a_directory(host: Host) -> None:
    guest = host.libvirt.domain()
    target = host.directory(str(uuid.uuid4())).rename(host.folder / "volume")
    (host.instances / guest).symlink_to(target)
    shown = host.shown(guest)
    assert (shown["link"], shown["open"], shown["size_bytes"]) == (True, None, None)
    for more in ({}, {"allow_shared": True}, {"domain": "undefined"}):
        assert "symbolic link" in host.refused(guest, directory="quarantined", **more)
    assert "symbolic link" in host.refused(guest, directory="present")


def test_module_refuses_a_quarantine_that_is_a_symbolic_link(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    (host.folder / "elsewhere").mkdir(mode=0o700)
    host.store.symlink_to(host.folder / "elsewhere")
    for arguments in (
        {"directory": "quarantined"},
        {"directory": "purged", "older_than": "0s", "now": "2026-01-01T00:00:00Z"},
    ):
        assert "symbolic link" in host.refused(name, **arguments)
    assert "symbolic link" in host.info()["msg"]


def test_module_refuses_a_quarantine_that_others_can_change(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    host.store.mkdir()
    for mode, owner, group in ((0o770, 0, 65534), (0o702, 0, 0), (0o700, 65534, 65534)):
        host.store.chmod(mode)
        os.chown(host.store, owner, group)
        assert "by other users" in host.refused(name, directory="quarantined")


def test_module_refuses_a_quarantine_on_another_file_system(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        if os.stat(other).st_dev == host.instances.stat().st_dev:
            pytest.skip("/dev/shm is on the same file system.")
        for path in (other, f"{other}/new"):
            said = host.refused(name, directory="quarantined", quarantine_path=path)
            assert "another file system" in said
        assert os.listdir(other) == []
    said = host.refused(name, directory="quarantined", quarantine_path=f"{other}/new")
    assert "parent directory" in said


def test_module_accepts_a_quarantine_elsewhere_on_the_same_file_system(host: Host) -> None:
    name = str(uuid.uuid4())
    host.directory(name)
    store = str(host.folder / "aside")
    assert host.twins(name, directory="quarantined", quarantine_path=store)[
        "quarantined"
    ].startswith(f"{store}/{name}.")
    assert [entry["uuid"] for entry in host.info(quarantine_path=store)["quarantined"]] == [name]
    assert host.twins(name, directory="present", quarantine_path=store)["actions"] == ["restore"]
