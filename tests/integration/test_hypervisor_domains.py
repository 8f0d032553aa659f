"""`hypervisor_guest` undefines and defines domains of a real libvirt."""

import stat
import uuid
from pathlib import Path

import pytest

from . import libvirt as real
from .hypervisor import Host

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]
TPM = "<tpm model='tpm-tis'><backend type='emulator' version='2.0'/></tpm>"


def test_module_undefines_a_shut_off_domain_and_defines_it_again(host: Host) -> None:
    guest = host.guest()
    xml, before = host.libvirt.xml(guest), host.seen(guest)
    result = host.twins(guest, domain="undefined")
    assert result["actions"] == ["undefine"]
    assert result["domain"] is None
    assert result["diff"]["before"]["domain"] == {
        "name": before["name"],
        "state": "shut off",
        "uuid": guest,
    }
    assert guest not in host.libvirt("list", "--all", "--uuid").split()
    saved = Path(result["xml_path"])
    assert "sesame" in saved.read_text() and saved.read_text().strip() == xml
    assert (stat.S_IMODE(saved.stat().st_mode), stat.S_IMODE(saved.parent.stat().st_mode)) == (
        0o600,
        0o700,
    )
    result = host.twins(guest, domain="defined")
    assert (result["actions"], result["xml_path"], result["domain"]) == (
        ["define"],
        str(saved),
        before,
    )
    assert host.libvirt.xml(guest) == xml
    assert host.shown(guest)["kind"] == "instance"


def test_module_defines_the_newest_xml_unless_another_is_named(host: Host) -> None:
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


def test_module_never_redefines_an_existing_domain(host: Host) -> None:
    guest = host.guest()
    host.do(guest, domain="undefined")
    host.do(guest, domain="defined")
    host.libvirt("setmaxmem", guest, "131072", "--config")
    before = host.everything()
    assert host.do(guest, domain="defined")["changed"] is False
    assert host.everything() == before


def test_module_refuses_the_xml_of_another_domain(host: Host) -> None:
    one, other = host.guest(), host.guest()
    saved = host.do(one, domain="undefined")["xml_path"]
    host.do(other, domain="undefined")
    assert f"UUID {other}" in host.refused(other, domain="defined", xml_path=saved)
    broken = host.folder / "broken.xml"
    for text in (
        "",
        "<domain",
        '<!DOCTYPE domain [<!ENTITY a "a">]><domain>&a;</domain>',
        "<domain/>",
        "x" * (10 * 1024 * 1024 + 1),
    ):
        broken.write_text(text)
        assert "The XML " in host.refused(other, domain="defined", xml_path=str(broken))
    assert "cannot be read" in host.refused(
        other, domain="defined", xml_path=str(host.folder / "nowhere.xml")
    )
    assert "no XML of" in host.refused(str(uuid.uuid4()), domain="defined")


@pytest.mark.follows("guest._check_undefine_allowed")
@pytest.mark.parametrize("state", ["running", "paused"])
def test_module_keeps_a_domain_that_is_not_shut_off_unless_destroy_allows_it(
    host: Host, state: str
) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    if state == "paused":
        host.libvirt("suspend", guest)
    assert host.seen(guest)["state"] == state
    for wanted in ({"domain": "undefined"}, {"directory": "quarantined"}):
        assert f"is {state}" in host.refused(guest, **wanted)
    assert f"is {state}" in host.refused(guest, domain="undefined", directory="quarantined")
    result = host.twins(guest, domain="undefined", directory="quarantined", destroy=True)
    assert result["actions"] == ["destroy", "undefine", "quarantine"]
    assert host.twins(guest, domain="defined", directory="present")["actions"] == [
        "restore",
        "define",
    ]


def test_destroy_keeps_the_directory_of_a_domain_that_stays(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    assert "is running" in host.refused(guest, directory="quarantined", destroy=True)


def test_domain_that_disappears_when_stopped_can_be_defined_again(host: Host) -> None:
    guest = host.guest(live=True)
    assert host.seen(guest)["persistent"] is False
    assert host.twins(guest, domain="undefined", destroy=True)["actions"] == ["destroy"]
    assert host.twins(guest, domain="defined")["domain"]["persistent"] is True


def test_module_keeps_a_domain_that_nova_did_not_create(host: Host) -> None:
    guest = host.guest(nova="")
    assert host.seen(guest)["nova"] is None
    other = host.guest(nova="http://example.org/nova/1.1")
    more = {"destroy": True, "directory": "quarantined"}
    for one, options in ((guest, {}), (guest, more), (other, {})):
        assert "no metadata of Nova" in host.refused(one, domain="undefined", **options)


def test_module_deletes_a_managed_save_only_when_allowed(host: Host) -> None:
    guest = host.guest()
    host.libvirt("start", guest)
    host.libvirt("managedsave", guest)
    assert host.seen(guest)["managed_save"] is True
    for remove in ([], ["snapshots", "nvram", "tpm"]):
        assert "managed save" in host.refused(guest, domain="undefined", remove=remove)
    assert host.twins(guest, domain="undefined", remove=["managed_save"])["actions"] == ["undefine"]


def test_module_deletes_snapshots_only_when_allowed(host: Host) -> None:
    # The test driver knows no flags for firmware, and virsh silently drops such flags, unless there
    # are snapshots.
    guest = host.guest(efi=False)
    for name in ("one", "<two> three", "-four"):
        host.libvirt("snapshot-create-as", guest, f"--name={name}")
    assert host.seen(guest)["snapshots"] == 3
    for remove in ([], ["managed_save", "nvram", "tpm"]):
        assert "snapshots" in host.refused(guest, domain="undefined", remove=remove)
    assert host.twins(guest, domain="undefined", remove=["snapshots"])["actions"] == ["undefine"]


@pytest.mark.parametrize(
    ("remove", "flags"),
    [
        ([], {"--keep-nvram", "--keep-tpm"}),
        (["nvram"], {"--nvram", "--keep-tpm"}),
        (["tpm"], {"--keep-nvram"}),
    ],
)
def test_module_keeps_firmware_and_tpm_unless_asked_to_delete_them(
    host: Host, remove: list[str], flags: set[str]
) -> None:
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
    assert {word for word in line.split() if word.startswith("--")} - {
        "--quiet",
        "--connect",
    } == flags


@pytest.mark.follows("virsh.check_undefine_allowed")
def test_module_deletes_tpm_state_only_when_libvirt_cannot_keep_it_and_it_is_allowed(
    host: Host,
) -> None:
    guest = host.guest(inside=TPM)
    old = host.reaching(
        'case " $* " in *" --daemon "*) exec echo "Running against daemon: 8.8.0";; esac; exec '
        'virsh "$@"'
    )
    assert "before version 8.9" in host.refused(guest, domain="undefined", virsh=old)
    assert host.twins(guest, domain="undefined", virsh=old, remove=["tpm"])["actions"] == [
        "undefine"
    ]


def test_domain_that_starts_during_undefine_stays_defined(host: Host) -> None:
    guest = host.guest()
    xml = host.libvirt.xml(guest)
    virsh = host.reaching(
        f'case " $* " in *" undefine "*) virsh -q -c "{host.libvirt.uri}" start {guest};; esac; '
        'exec virsh "$@"'
    )
    result = host.do(guest, domain="undefined", directory="quarantined", virsh=virsh)
    assert result["failed"] and "was started while" in result["msg"]
    assert (result["changed"], result["actions"], result["domain"]["state"]) == (
        False,
        [],
        "running",
    )
    assert host.seen(guest)["persistent"] is True
    assert host.libvirt.xml(guest) == xml
    assert host.shown(guest)["kind"] == "instance"


def test_module_keeps_a_domain_that_starts_after_the_first_check(host: Host) -> None:
    guest = host.guest()
    virsh = host.reaching(
        f'case " $* " in *" --security-info "*) virsh -q -c "{host.libvirt.uri}" start {guest};; '
        'esac; exec virsh "$@"'
    )
    result = host.do(guest, domain="undefined", directory="quarantined", virsh=virsh)
    assert result["failed"] and "is running," in result["msg"]
    assert (result["changed"], host.seen(guest)["persistent"]) == (False, True)
    assert host.shown(guest)["kind"] == "instance"


def test_module_keeps_a_domain_that_changed_since_it_was_listed(host: Host) -> None:
    guest = host.guest()
    changed_at = host.shown(guest)["changed_at"]
    assert "was running" in host.refused(guest, domain="undefined", expect_state="running")
    created_at = host.seen(guest)["nova"]["created_at"]
    sentence = host.refused(
        guest, domain="undefined", expect_state="shut off", expect_created_at="2026-10-20T07:59:00Z"
    )
    assert f"at {created_at}," in sentence
    (host.instances / guest / "disk").write_bytes(b"y")
    sentence = host.refused(
        guest,
        domain="undefined",
        directory="quarantined",
        expect_state="shut off",
        expect_changed_at=changed_at,
    )
    assert f"changed at {changed_at}" in sentence
    now = {
        "expect_state": "shut off",
        "expect_created_at": created_at,
        "expect_changed_at": host.shown(guest)["changed_at"],
    }
    assert host.twins(guest, domain="undefined", directory="quarantined", **now)["actions"] == [
        "undefine",
        "quarantine",
    ]
