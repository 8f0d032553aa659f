"""A real libvirt for the tests, with its `test` driver.

Domains can be in all states, and nothing runs in them.

`test:///default` keeps its domains only while one connection in the same process is open. So there
is a libvirtd, which gets `test+unix:` URIs, and one `virsh` that stays connected. It loads no other
driver, and changes nothing outside of its folder.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from .support import Ansible, told

ROOT = Path(__file__).parents[2]
PROGRAMS = ("libvirtd", "virsh")
# The daemon is usually only in root's PATH.
PATH = f"{os.environ['PATH']}:/usr/sbin"
PACKAGES = "libvirt-daemon libvirt-clients"
NOVA = "http://openstack.org/xmlns/libvirt/nova/1.1"
PROJECT = "3a705b9f56bb439381b43c4fe59dccce"
USER = "70b7a1d0a5a54c4f8ec4f2a5f3f0a3a1"


class Libvirt:
    """A libvirtd of our own, used through `virsh`."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "libvirt-sock"
        self.uri = f"test+unix:///default?socket={self.socket}"

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            ["virsh", "-q", "-c", self.uri, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"virsh {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()

    def domain(
        self,
        *,
        of: str = "",
        name: str = "",
        server: str = "web-1",
        nova: str = NOVA,
        inside: str = "",
        live: bool = False,
        efi: bool = True,
    ) -> str:
        """Define a new domain as Nova does, and return its uuid.

        It is shut off unless it is `live`: then it runs, and disappears once it stops.

        of: its uuid. nova: namespace of its metadata, empty for a domain that Nova did not create.
        inside: more devices.
        efi: it has firmware with variables.
        """
        made = of or str(uuid.uuid4())
        metadata = (
            f'<metadata><nova:instance xmlns:nova="{nova}"><nova:name>{escape(server)}</nova:name>'
            "<nova:creationTime>2026-10-20 08:00:12</nova:creationTime>"
            '<nova:flavor name="m1.small"><nova:memory>512</nova:memory></nova:flavor>'
            f'<nova:owner><nova:user uuid="{USER}">admin</nova:user>'
            f'<nova:project uuid="{PROJECT}">demo</nova:project></nova:owner>'
            "</nova:instance></metadata>"
        )
        firmware = (
            "<loader readonly='yes' type='pflash'>/OVMF.fd</loader>"
            f"<nvram>/var/lib/libvirt/qemu/nvram/{made}.fd</nvram>"
        )
        xml = (
            f"<domain type='test'><name>{escape(name or f'instance-{made[:8]}')}</name>"
            f"<uuid>{made}</uuid>{metadata if nova else ''}"
            "<memory unit='MiB'>512</memory><vcpu>2</vcpu><os><type>hvm</type>"
            f"{firmware if efi else ''}</os><devices>"
            f"<disk type='file'><source file='/var/lib/nova/instances/{made}/disk'/>"
            "<target dev='vda' bus='virtio'/></disk>"
            f"<graphics type='vnc' passwd='sesame'/>{inside}</devices></domain>"
        )
        self("create" if live else "define", "/dev/stdin", given=xml)
        return made

    def xml(self, domain: str) -> str:
        return self("dumpxml", domain, "--inactive", "--security-info")

    def everything(self) -> dict[str, t.Any]:
        """Return all domains by uuid, with everything that libvirt shows of them."""
        lists = "; ".join(
            f"list --all --uuid {which}"
            for which in ("--persistent", "--transient", "--with-managed-save")
        )
        facts = ("domstate", "dumpxml --inactive --security-info", "snapshot-list --name")
        told = {
            domain: self("; ".join(f"{fact} {domain}" for fact in facts))
            for domain in self("list", "--all", "--uuid").split()
        }
        return {**told, "lists": self(lists)}

    def forget(self) -> None:
        """Remove all domains."""
        for domain in self("list", "--all", "--uuid").split():
            if self("domstate", domain) != "shut off":
                self("destroy", domain)
        for domain in self("list", "--all", "--uuid").split():
            self("undefine", domain, "--managed-save", "--snapshots-metadata")


class Inside(Ansible):
    """Runs Ansible in a process namespace of its own.

    There root may read all processes, as on a hypervisor.

    Containers and sandboxes can have processes that are closed even to root, so that their open
    files are unknown.
    """

    def __init__(
        self,
        keeper: subprocess.Popen[t.Any],
        folder: Path,
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(ROOT, folder, environment or {})
        (child,) = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
        self.within = ["nsenter", "--target", child, "--pid", "--mount", f"--wd={folder}", "--"]

    def started(
        self, name: str, *, wrapper: t.Sequence[str] = (), **arguments: t.Any
    ) -> subprocess.Popen[str]:
        return super().started(name, wrapper=[*self.within, *wrapper], **arguments)

    def run(self, *command: str, **more: t.Any) -> subprocess.CompletedProcess[str]:
        """Run a command in the namespace, and return it however it ended."""
        return subprocess.run(
            [*self.within, *command], capture_output=True, text=True, check=False, **more
        )

    @contextlib.contextmanager
    def opening(self, path: Path) -> Iterator[None]:
        """Start a process that keeps a file open."""
        command = [
            *self.within,
            "sh",
            "-c",
            'exec 3<"$1"; echo open; read nothing',
            "sh",
            str(path),
        ]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout and process.stdin
            assert process.stdout.readline() == "open\n"
            yield
            process.stdin.close()

    def _run_module(self, name: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        # A fork of a process outside would not see the processes of the namespace.
        return told(self.started(name, **arguments))


def namespace() -> Iterator[subprocess.Popen[t.Any]]:
    """Start the process that keeps a process namespace, for `Inside`."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo made; read nothing"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdin and keeper.stdout and keeper.stderr
        if keeper.stdout.readline() != "made\n":
            pytest.skip(f"No process namespace can be made here: {keeper.stderr.read()}")
        yield keeper
        keeper.stdin.close()


def lacking() -> str:
    """Return one sentence about what is missing for these tests.

    It is empty when nothing is.
    """
    if os.geteuid() != 0:
        return "Only root sees which files are open: run these tests as root."
    if any(shutil.which(program, path=PATH) is None for program in PROGRAMS):
        return f"There is no libvirt: apt-get install --no-install-recommends {PACKAGES}."
    return ""


def running() -> Iterator[Libvirt]:
    """Run a libvirtd with its domains."""
    # The path of a socket is limited to 107 characters, and those of pytest's folders are longer.
    with tempfile.TemporaryDirectory(prefix="libvirt-") as name:
        folder = Path(name)
        (folder / "no-drivers").mkdir()
        settings = {
            "unix_sock_dir": name,
            "unix_sock_rw_perms": "0700",
            "auth_unix_rw": "none",
            "log_outputs": "3:stderr",
        }
        (folder / "libvirtd.conf").write_text(
            "".join(f'{key} = "{value}"\n' for key, value in settings.items())
        )
        environment = {
            **os.environ,
            "PATH": PATH,
            "HOME": name,
            "XDG_RUNTIME_DIR": name,
            "LIBVIRT_DRIVER_DIR": str(folder / "no-drivers"),
        }
        libvirt = Libvirt(folder)
        with (folder / "log").open("w") as log:
            daemon = subprocess.Popen(
                [
                    str(shutil.which("libvirtd", path=PATH)),
                    "--config",
                    str(folder / "libvirtd.conf"),
                    "--pid-file",
                    str(folder / "pid"),
                ],
                stdout=log,
                stderr=log,
                cwd=name,
                env=environment,
            )
        try:
            _await_socket(libvirt.socket, daemon, folder / "log")
            connected = subprocess.Popen(
                ["virsh", "-q", "-c", libvirt.uri],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert connected.stdin and connected.stdout
            connected.stdin.write("list --all --uuid\n")
            connected.stdin.flush()
            assert connected.stdout.readline(), "virsh did not connect"
            try:
                yield libvirt
            finally:
                connected.communicate(timeout=30)
        finally:
            daemon.terminate()
            daemon.wait(timeout=30)


def _await_socket(socket: Path, daemon: subprocess.Popen[t.Any], log: Path) -> None:
    deadline = time.monotonic() + 60
    while not socket.exists():
        assert daemon.poll() is None, f"libvirtd has ended: {log.read_text()}"
        assert time.monotonic() < deadline, f"libvirtd does not listen: {log.read_text()}"
        time.sleep(0.02)
