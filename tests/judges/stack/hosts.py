"""Hypervisors: each is a set of namespaces with its own /etc, /var, libvirt and nova-compute."""

from __future__ import annotations

import json
import shutil
import subprocess
import typing as t
import uuid
from pathlib import Path

from minicloud_ctl import processes
from minicloud_ctl.configs import ini, python_path
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import State
from minicloud_ctl.waiting import wait_for

from ...integration.libvirt import Libvirt
from . import configs, needs

COMPUTE = "nova-compute"
NAMES = ("compute-1", "compute-2", "compute-3")
INSTANCES = "/var/lib/nova/instances"
# Accounts that no package of Debian has.
USER_ID = 64060
PORTS = ("libvirt", "ssh")
# Below the ports of outgoing connections; each host has its own, because every libvirt tries its
# ports on all addresses.
FIRST_MIGRATION_PORT, MIGRATION_PORTS = 31000, 32
FOLDERS = (
    "etc/nova",
    "var/cache/libvirt",
    "var/lib/libvirt",
    "var/lib/nova/instances",
    "var/lib/sudo",
    "var/log/libvirt",
    "var/log/nova",
    "var/root",
    "var/tmp",
)

# A container engine whose one container is nova-compute: restart, stop and inspect.
ENGINE = """\
#!/bin/sh
unit=/run/units/nova-compute
[ "$1" = inspect ] && { [ -e $unit.pid ] && echo true || echo false; exit; }
echo off > $unit
while [ -e $unit.pid ]; do sleep 0.2; done
[ "$1" = stop ] && exit
echo on > $unit
until [ -e $unit.pid ]; do sleep 0.2; done
"""


class Guests(Libvirt):
    """The libvirt of a host, reached as Nova's other hosts reach it."""

    def __init__(self, address: str, port: int) -> None:
        self.uri = f"qemu+tcp://{address}:{port}/system"


class Host:
    """One hypervisor, which may be switched off."""

    def __init__(self, paths: Paths, state: State, name: str, number: int) -> None:
        self._paths, self._state = paths, state
        self.name, self.number = name, number
        self.address = f"127.0.1.{number}"
        self.folder = paths.home / "hosts" / name
        self.guests = Guests(self.address, state.ports["libvirt"])

    @property
    def instances(self) -> Path:
        """The folder of its servers, also while it is switched off."""
        return self.folder / INSTANCES.lstrip("/")

    @property
    def variables(self) -> dict[str, t.Any]:
        """Return what an inventory has about it."""
        return {
            "ansible_host": self.address,
            "ansible_port": self._state.ports["ssh"],
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self._paths.etc / "ssh" / "key"),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
            " -o LogLevel=ERROR",
            "ansible_python_interpreter": needs.PYTHON,
        }

    def read_log(self) -> str:
        return (self.folder / "var/log/nova/nova-compute.log").read_text(errors="replace")

    def boot(self, compute: bool = True) -> None:
        """Switch it on, with or without nova-compute."""
        self.write()
        name = f"host-{self.name}"
        if processes.alive(self._paths, name):
            return
        separate = ["unshare", "--mount", "--uts", "--pid", "--ipc", "--fork", "--kill-child"]
        machine = str(Path(__file__).with_name("machine.py"))
        argv = [*separate, needs.PYTHON, machine, self.name, str(self.folder)]
        processes.start(self._paths, name, argv, {"PATH": needs.PATH})
        wait_for(f"{self.name} to run", lambda: self._find_unit("sshd").exists(), 60)
        self.tell(COMPUTE, "on" if compute else "off")
        wait_for(f"the libvirt of {self.name}", self._has_libvirt, 60)

    def crash(self) -> None:
        """Cut its power: everything on it ends at once, and the disks stay."""
        processes.stop(self._paths, [f"host-{self.name}"], now=True)

    def tell(self, unit: str, word: str) -> None:
        """Start a unit ("on"), end it ("off") or kill it ("killed"), and wait until it is so."""
        files_of = self._root / "run/units"
        (files_of / unit).write_text(word)
        pid = files_of / f"{unit}.pid"
        wait_for(f"{unit} on {self.name} to be {word}", lambda: pid.exists() == (word == "on"))

    def signal(self, unit: str, name: str) -> None:
        """Send a signal to the first process of a unit, such as STOP."""
        self.run("kill", "-s", name, self.find_pid(unit))

    def find_pid(self, unit: str) -> str:
        """Return the number of a unit's process, which differs after a restart."""
        return (self._root / "run/units" / f"{unit}.pid").read_text()

    def is_on(self) -> bool:
        return processes.alive(self._paths, f"host-{self.name}")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command on it as root."""
        inside = ["nsenter", "--target", str(self._init), "--mount", "--uts", "--pid", "--ipc"]
        return subprocess.run([*inside, "--", *command], capture_output=True, text=True, check=True)

    def reinstall(self) -> None:
        """Lose everything that it has, as a machine with a new disk; it is switched off before."""
        self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _init(self) -> int:
        """The first process in its namespaces, as this machine numbers it."""
        outer = processes.pid(self._paths, f"host-{self.name}")
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    @property
    def _root(self) -> Path:
        return Path(f"/proc/{self._init}/root")

    def _find_unit(self, unit: str) -> Path:
        processes.must_live(self._paths, [f"host-{self.name}"])
        try:
            return self._root / "run/units" / f"{unit}.pid"
        except (OSError, IndexError):
            return Path("/nonexistent")

    def _has_libvirt(self) -> bool:
        command = ["virsh", "-c", self.guests.uri, "version"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def write(self) -> None:
        """Write its files; what Nova and libvirt have written stays."""
        etc = self.folder / "etc"
        if not etc.exists():
            self._create()
        (etc / "libvirt/libvirtd.conf").write_text(self._libvirtd())
        (etc / "libvirt/qemu.conf").write_text(self._qemu())
        (etc / "ssh/sshd_config").write_text(self._sshd())
        (etc / "ssh/ssh_config").write_text(self._ssh())
        (etc / "machine.json").write_text(json.dumps(self._units()))
        ini(etc / "nova/nova.conf", self._nova())
        (etc / "nova/nova.conf").chmod(0o644)

    def _create(self) -> None:
        folder, etc = self.folder, self.folder / "etc"
        folder.mkdir(parents=True)
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
        subprocess.run(["cp", "-a", "/var/lib/libvirt", str(folder / "libvirt")], check=True)
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "var/lib/libvirt")
        (folder / "libvirt").rename(folder / "var/lib/libvirt")
        (folder / "var/run").symlink_to("/run")
        _edit(etc / "passwd", lambda text: text.replace(":/root:", ":/var/root:", 1))
        _append(etc / "passwd", f"nova:x:{USER_ID}:{USER_ID}::/var/lib/nova:/bin/sh\n")
        _append(etc / "shadow", "nova:*:19000:0:99999:7:::\n")
        _edit(etc / "group", _join_groups)
        _append(etc / "group", f"nova:x:{USER_ID}:\n")
        secure = f"{self._paths.venv / 'bin'}:{needs.PATH}"
        rules = "nova ALL = (root) NOPASSWD: ALL\nDefaults:nova !requiretty, env_keep += PYTHONPATH"
        sudoers = f'{rules}, secure_path = "{secure}"\n'
        (etc / "sudoers.d/stack").write_text(sudoers)
        (etc / "sudoers.d/stack").chmod(0o440)
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        (etc / "hostname").write_text(f"{self.name}\n")
        (etc / "machine-id").write_text(f"{uuid.uuid4().hex}\n")
        (etc / "nova/engine").write_text(ENGINE)
        (etc / "nova/engine").chmod(0o755)
        # The folder of the stack can be below /var, which is another one on the host.
        shutil.copy(self._paths.etc / "ssh" / "key", etc / "ssh/stack_key")
        keys = etc / "ssh/keys"
        keys.mkdir()
        for user in ("root", "nova"):
            shutil.copy(self._paths.etc / "ssh" / "key.pub", keys / user)
        home = folder / "var/lib/nova/.ssh"
        home.mkdir()
        shutil.copy(self._paths.etc / "ssh" / "key", home / "id_ed25519")
        for owned in ("var/lib/nova", "var/log/nova"):
            command = ["chown", "-R", f"{USER_ID}:{USER_ID}", str(folder / owned)]
            subprocess.run(command, check=True)

    def _units(self) -> dict[str, t.Any]:
        venv = self._paths.venv / "bin"
        plain = {"PATH": needs.PATH, "LANG": "C.UTF-8"}
        # The interpreter may be in a folder that only root can enter.
        read_all = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
        user = ["/usr/bin/setpriv", "--reuid=nova", "--regid=nova", "--init-groups", *read_all]
        compute = [*user, str(venv / "python"), str(venv / COMPUTE)]
        nova = {
            **plain,
            "PATH": f"{venv}:{needs.PATH}",
            "HOME": "/var/lib/nova",
            "PYTHONPATH": f"{python_path(self._paths)}:{self._paths.part(configs.PART)}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",
        }
        compute += ["--config-file", "/etc/nova/nova.conf"]
        return {
            "virtlogd": {"argv": ["/usr/sbin/virtlogd"], "environment": plain},
            "libvirtd": {"argv": ["/usr/sbin/libvirtd", "--listen"], "environment": plain},
            "sshd": {"argv": ["/usr/sbin/sshd", "-D", "-e"], "environment": plain},
            COMPUTE: {"argv": compute, "environment": nova},
        }

    def _nova(self) -> dict[str, dict[str, object]]:
        own = {
            "DEFAULT": {
                "compute_driver": "libvirt.LibvirtDriver",
                "instances_path": INSTANCES,
                # Twenty consumers of a test fit on a host with two processors.
                "initial_cpu_allocation_ratio": 64,
                "log_file": "/var/log/nova/nova-compute.log",
            },
            "libvirt": {
                "virt_type": "qemu",
                "cpu_mode": "none",
                "hw_machine_type": "x86_64=pc",
                "live_migration_uri": f"qemu+tcp://%s:{self._state.ports['libvirt']}/system",
                "live_migration_inbound_addr": self.address,
                "live_migration_scheme": "tcp",
                # A guest that goes on writing is never copied as long as its bandwidth is limited.
                "live_migration_downtime": 100,
                "live_migration_downtime_steps": 3,
                "live_migration_downtime_delay": 3,
            },
            "workarounds": {
                "skip_cpu_compare_on_dest": "true",
                "skip_cpu_compare_at_startup": "true",
            },
        }
        # Without rootwrap, which has a configuration of its own.
        helper = {"helper_command": "sudo privsep-helper --config-file /etc/nova/nova.conf"}
        own |= {"nova_sys_admin": helper, "privsep_osbrick": helper}
        folder = Path("/var/lib/nova")
        return configs.nova_of(self._state, folder, own, self.name, self.address)

    def _libvirtd(self) -> str:
        return f"""\
listen_tls = 0
listen_tcp = 1
tcp_port = "{self._state.ports["libvirt"]}"
listen_addr = "{self.address}"
auth_tcp = "none"
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
auth_unix_rw = "none"
auth_unix_ro = "none"
host_uuid = "{uuid.uuid5(uuid.NAMESPACE_DNS, self.name)}"
"""

    def _qemu(self) -> str:
        first = FIRST_MIGRATION_PORT + MIGRATION_PORTS * self.number
        return f"""\
security_driver = "none"
cgroup_controllers = [ ]
namespaces = [ ]
migration_address = "{self.address}"
migration_host = "{self.address}"
migration_port_min = {first}
migration_port_max = {first + MIGRATION_PORTS - 1}
"""

    def _sshd(self) -> str:
        return f"""\
Port {self._state.ports["ssh"]}
ListenAddress {self.address}
HostKey /etc/ssh/stack_key
PidFile /run/sshd.pid
AuthorizedKeysFile /etc/ssh/keys/%u
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
Subsystem sftp /usr/lib/openssh/sftp-server
"""

    def _ssh(self) -> str:
        return f"""\
Host *
  Port {self._state.ports["ssh"]}
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def write_key(paths: Paths) -> None:
    """Make the one key with which Ansible reaches the hosts, and Nova its other hosts."""
    key = paths.etc / "ssh" / "key"
    if not key.exists():
        key.parent.mkdir(parents=True, exist_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(command, check=True)


def _join_groups(text: str) -> str:
    """Let nova use libvirt."""
    lines = []
    for line in text.splitlines():
        if line.startswith(("libvirt:", "kvm:", "libvirt-qemu:")):
            line += "nova" if line.endswith(":") else ",nova"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _edit(path: Path, change: t.Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.write(text)
