"""The real stack: from nothing to a cloud that is ready, and back."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

from minicloud_ctl import identity, install, lifecycle, processes, rest, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import IMAGE, Cloud
from minicloud_ctl.configs import REGIONS, python_path
from minicloud_ctl.paths import Paths
from minicloud_ctl.services import UNPATCHED, Service
from minicloud_ctl.state import State
from minicloud_ctl.waiting import wait_for

from . import configs, hosts, needs
from .hosts import Host

# Not below the home of root, because the database and the hypervisors have users of their own.
HOME = "/var/tmp/osops-placement-stack"
# A boot sector. It writes into each page of the first 600 KB at every tick of the clock, so that a
# live migration with a limit of 1 MiB/s never ends, and one without ends at once. Switching write
# protection (cr0) flushes QEMU's cache of pages: TCG notices no later write to a page in there.
#   sti; again: mov ax, 0x800; page: mov es, ax; inc word [es:0]; add ax, 0x100; cmp ax, 0x9e00;
#   jb page; mov eax, cr0; xor eax, 0x10000; mov cr0, eax; hlt; jmp again
PROGRAM = bytes.fromhex(
    "fb b80008 8ec0 26ff060000 050001 3d009e 72f1 0f20c0 663500000100 0f22c0 f4 ebdf"
)
# Glance and Nova look for a valid table of partitions.
PARTITION = bytes([0x80, 0, 2, 0, 0x83, 0, 3, 0]) + (1).to_bytes(4, "little")
MIB = 1 << 20


class Stack:
    """The cloud, with the attributes that the fixtures of the integration tests know."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.paths = Paths.choose(str(home))
        self.state: State
        self.hosts: dict[str, Host] = {}

    @property
    def clouds_yaml(self) -> Path:
        return self.paths.clouds_yaml

    @property
    def environment(self) -> dict[str, str]:
        return {"OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml), "OS_CLOUD": "minicloud"}

    @property
    def ports(self) -> dict[str, int]:
        return self.state.ports

    def up(self) -> None:
        """Start everything but what a test has added, and return when servers can be booted."""
        install.install(self.paths)
        install.install_part(self.paths, configs.PART)
        self._prepare()
        self.start("epmd", "rabbitmq", "memcached", "neutron-1", "haproxy")
        fresh = not (configs.database_folder(self.paths, 1) / "mysql").exists()
        if fresh:
            self._create_databases()
        self.start_galera()
        if fresh:
            self._migrate()
        workers = [f"{name}-{worker}" for name in configs.UNCHECKED for worker in configs.WORKERS]
        self.start("keystone-1", "glance-1", *workers)
        offered = [Service(name, name, [], port=self.ports[name]) for name in configs.OFFERED]
        for service in offered:
            wait_for(f"{service.name} to answer", lambda port=service.port: rest.answers(port), 180)
        if fresh:
            identity.set_up(self.state)
            self._finish_catalogue()
        wait_for("RabbitMQ to answer", self._has_broker)
        self.start("nova-conductor", "nova-scheduler")
        for host in self.hosts.values():
            host.boot()
        self.await_hosts(*self.hosts)
        cloud = Cloud(self.state)
        cloud.create_flavors()
        self._create_image(cloud)

    def _prepare(self) -> None:
        names = ("broker", "neutron", "keystone", "placement", "glance", "nova-api")
        with states.changing(self.paths, new=True) as state:
            wanted = (*names, *configs.list_ports(), *hosts.PORTS)
            missing = tuple(name for name in wanted if name not in state.ports)
            state.ports.update(states.free_ports(missing, state.ports.values()))
        self.state = states.load(self.paths)
        self.home.chmod(0o755)
        configs.write_all(self.paths, self.state)
        # The state transfer of Galera reads its configuration as the user mysql.
        self.paths.etc.chmod(0o755)
        hosts.write_key(self.paths)
        for name in hosts.NAMES:
            self.add_host(name)

    def add_host(self, name: str) -> Host:
        """Return a host, which is new unless it is one of the first."""
        numbers = {host.number for host in self.hosts.values()}
        number = next(each for each in range(1, 100) if each not in numbers)
        return self.hosts.setdefault(name, Host(self.paths, self.state, name, number))

    def start(self, *names: str) -> None:
        """Start services that do not run."""
        lifecycle.start(self.paths, [self._services()[name] for name in names])

    def stop(self, *names: str, now: bool = False) -> None:
        processes.stop(self.paths, list(names), now=now)

    def await_workers(self, name: str) -> None:
        """Wait until HAProxy sends requests to all workers of a service again."""
        for worker in configs.WORKERS:
            port = self.ports[f"{name}-{worker}"]
            wait_for(f"{name}-{worker} to answer", lambda port=port: rest.answers(port), 180)
        wait_for(f"HAProxy to reach {name}", lambda: rest.answers(self.ports[name]))

    def down(self) -> None:
        """End everything that was started."""
        running = processes.names(self.paths)
        machines = [name for name in running if name.startswith("host-")]
        processes.stop(self.paths, machines, now=True)
        processes.stop(self.paths, processes.names(self.paths))

    def purge(self) -> None:
        self.down()
        shutil.rmtree(self.home, ignore_errors=True)

    def _services(self) -> dict[str, Service]:
        """Return all services by name, without the hypervisors."""
        etc, ports, paths = self.paths.etc, self.ports, self.paths
        found = {
            "epmd": ["epmd", "-address", "127.0.0.1", "-port", str(ports["epmd"])],
            "rabbitmq": ["/usr/lib/rabbitmq/bin/rabbitmq-server"],
            "memcached": ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p"],
            "haproxy": ["haproxy", "-db", "-f", str(etc / "haproxy.cfg")],
        }
        found["memcached"].append(str(ports["memcached"]))
        for node in configs.NODES:
            settings = str(etc / f"database-{node}.cnf")
            found[f"database-{node}"] = ["mariadbd", f"--defaults-file={settings}"]
        made = {
            name: Service(name, name, argv, {"PATH": needs.PATH}) for name, argv in found.items()
        }
        made["rabbitmq"].environment.update(self._rabbitmq())
        packages = {"PYTHONPATH": f"{python_path(paths)}:{paths.part(configs.PART)}"}
        nova = ["--config-file", str(etc / "nova" / "nova.conf")]
        for name in ("nova-conductor", "nova-scheduler"):
            made[name] = Service(name, name, [paths.program(name), *nova], packages)
        stub = [paths.program("python"), "-m", "minicloud_venv.neutron_stub"]
        stub.append(str(ports["neutron-1"]))
        made["neutron-1"] = Service("neutron-1", "neutron", stub, packages)
        workers = [f"{name}-{number}" for name in configs.UNCHECKED for number in configs.WORKERS]
        for name in ("keystone-1", "glance-1", *workers):
            kind = name[:-2]
            project = "nova" if kind == "nova-api" else kind
            folder = etc / (name if kind in configs.UNCHECKED else kind)
            run = "import pyuwsgi, sys; pyuwsgi.run(sys.argv[1:])"
            argv = [paths.program("python"), "-c", run, str(etc / "uwsgi" / f"{name}.ini")]
            own = {f"OS_{project.upper()}_CONFIG_DIR": str(folder), **UNPATCHED, **packages}
            made[name] = Service(name, kind, argv, own)
        return made

    def _rabbitmq(self) -> dict[str, str]:
        folder, ports = self.paths.service("rabbitmq"), self.ports
        folder.mkdir(parents=True, exist_ok=True)
        return {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": "stack@localhost",
            "RABBITMQ_NODE_PORT": str(ports["broker"]),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(ports["distribution"]),
            "ERL_EPMD_PORT": str(ports["epmd"]),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(self.paths.logs),
            "RABBITMQ_CONFIG_FILE": str(self.paths.etc / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.paths.etc / "rabbitmq-plugins"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _has_broker(self) -> bool:
        processes.must_live(self.paths, ["rabbitmq"])
        return lifecycle._listens(self.ports["broker"])

    # Galera ---------------------------------------------------------------------------------------

    def _create_databases(self) -> None:
        for node in configs.NODES:
            folder = configs.database_folder(self.paths, node)
            folder.mkdir(parents=True)
            shutil.chown(folder, "mysql", "mysql")
            folder.parent.chmod(0o755)
        first = configs.database_folder(self.paths, configs.NODES[0])
        settings = ["--no-defaults", f"--datadir={folder.with_name(first.name)}", "--user=mysql"]
        more = ["--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve"]
        subprocess.run(["mariadb-install-db", *settings, *more], check=True, capture_output=True)
        self.start_galera(*configs.NODES[:1])
        password = self.state.secrets["service"]
        statements = [
            f"CREATE USER {configs.USER}@'127.0.0.1' IDENTIFIED BY '{password}'",
            f"GRANT ALL ON *.* TO {configs.USER}@'127.0.0.1'",
            *(f"CREATE DATABASE {name}" for name in configs.DATABASES),
        ]
        self.sql(";".join(statements))

    def start_galera(self, *nodes: int) -> None:
        """Start the nodes that do not run, and wait until all of them are synchronized."""
        wanted = nodes or configs.NODES
        running = [node for node in configs.NODES if processes.alive(self.paths, _node(node))]
        for node in wanted:
            if node in running:
                continue
            service = self._services()[_node(node)]
            if not running:
                # The last one to leave is known to nobody after a power cut.
                state = configs.database_folder(self.paths, node) / "grastate.dat"
                if state.exists():
                    text = state.read_text().replace("bootstrap: 0", "bootstrap: 1")
                    state.write_text(text)
                service.argv.append("--wsrep-new-cluster")
            lifecycle.start(self.paths, [service])
            running.append(node)
            wait_for(
                f"node {node} to be synchronized", lambda node=node: self._is_synced(node), 300
            )

    def _is_synced(self, node: int) -> bool:
        processes.must_live(self.paths, [_node(node)])
        with contextlib.suppress(subprocess.CalledProcessError):
            return "Synced" in self.sql("SHOW STATUS LIKE 'wsrep_local_state_comment'", node=node)
        return False

    def sql(self, statement: str, database: str = "", node: int = configs.NODES[0]) -> str:
        """Run a statement as the database's own administrator."""
        socket = configs.database_folder(self.paths, node) / "socket"
        command = ["mariadb", "--user=root", f"--socket={socket}", "--skip-column-names", "--batch"]
        done = subprocess.run(
            [*command, database], input=statement, capture_output=True, text=True, check=True
        )
        return done.stdout

    def _migrate(self) -> None:
        """Create all tables, as an operator does before the first start."""
        etc = self.paths.etc
        placement = etc / "placement-1" / "placement.conf"
        url = "{scheme}://{username}:{password}@{hostname}:{port}/%s?{query}"
        bus = ["--transport-url", configs.transport_url(self.state)]
        nova = etc / "nova" / "nova.conf"
        keystone = etc / "keystone" / "keystone.conf"
        bootstrap = services.keystone(self.paths, self.state).environment
        self._manage("keystone-manage", keystone, "db_sync")
        self._manage("keystone-manage", keystone, "bootstrap", environment=bootstrap)
        self._manage("placement-manage", placement, "db", "sync")
        self._manage("glance-manage", etc / "glance" / "glance-api.conf", "db", "sync")
        self._manage("nova-manage", nova, "api_db", "sync")
        cell0 = ["--database_connection", url % "nova_cell0"]
        self._manage("nova-manage", nova, "cell_v2", "map_cell0", *cell0)
        self._manage("nova-manage", nova, "db", "sync")
        cell1 = ["--name", "cell1", "--database_connection", url % "nova", *bus]
        self._manage("nova-manage", nova, "cell_v2", "create_cell", *cell1)

    def _manage(
        self, program: str, config: Path, *arguments: str, environment: dict[str, str] | None = None
    ) -> None:
        packages = {"PYTHONPATH": f"{python_path(self.paths)}:{self.paths.part(configs.PART)}"}
        command = [self.paths.program(program), "--config-file", str(config), *arguments]
        all_of = services.environment(self.paths, {**packages, **(environment or {})})
        done = subprocess.run(command, env=all_of, capture_output=True, text=True, check=False)
        told = f"{done.stdout}{done.stderr}"
        assert done.returncode == 0, f"{program} {' '.join(arguments)}: {told[-3000:]}"

    @property
    def nova_manage(self) -> list[str]:
        """The command that an operator has on a controller."""
        path = f"PYTHONPATH={python_path(self.paths)}:{self.paths.part(configs.PART)}"
        config = ["--config-file", str(self.paths.etc / "nova" / "nova.conf")]
        return ["env", path, self.paths.program("nova-manage"), *config]

    # Its contents ---------------------------------------------------------------------------------

    def _finish_catalogue(self) -> None:
        """Offer everything to users with TLS, and no second region."""
        must = rest.Session(self.state).must
        kinds = {
            service["id"]: service["type"]
            for service in must("keystone", "GET", "/v3/services")["services"]
        }
        names = {"identity": "keystone", "image": "glance", "network": "neutron"}
        names |= {"placement": "placement", "compute": "nova-api"}
        for endpoint in must("keystone", "GET", "/v3/endpoints")["endpoints"]:
            path = f"/v3/endpoints/{endpoint['id']}"
            if endpoint["region_id"] == REGIONS["second"]:
                must("keystone", "DELETE", path)
            elif endpoint["interface"] == "public":
                name = names[kinds[endpoint["service_id"]]]
                old = f"http://127.0.0.1:{self.ports[name]}"
                url = endpoint["url"].replace(old, f"https://127.0.0.1:{self.ports[f'{name}-tls']}")
                must("keystone", "PATCH", path, {"endpoint": {"url": url}})
        must("keystone", "DELETE", f"/v3/regions/{REGIONS['second']}")

    def _create_image(self, cloud: Cloud) -> None:
        if cloud.image():
            return
        raw, small = self.home / "image.raw", self.home / "image.qcow2"
        table = PARTITION + (2047).to_bytes(4, "little") + b"\0" * 48 + b"\x55\xaa"
        raw.write_bytes(PROGRAM.ljust(446, b"\0") + table + b"\0" * MIB)
        convert = ["qemu-img", "convert", "-O", "qcow2", str(raw), str(small)]
        subprocess.run(convert, check=True)
        document = {"name": IMAGE, "disk_format": "qcow2", "container_format": "bare"}
        must = cloud.session.must
        image = must("glance", "POST", "/v2/images", {**document, "visibility": "public"})["id"]
        must("glance", "PUT", f"/v2/images/{image}/file", small.read_bytes())
        wait_for("the image to become active", cloud.image, 60)

    def await_hosts(self, *names: str) -> None:
        """Wait until Nova calls the hosts up and Placement has what they offer."""
        cloud = Cloud(self.state)

        def ready() -> bool:
            known = cloud.compute_services()
            if not all(name in known and known[name]["state"] == "up" for name in names):
                return False
            listed = cloud.hypervisors()
            return all(name in listed and lifecycle._is_offered(cloud, name) for name in names)

        wait_for(f"the hosts {', '.join(names)} to be ready", ready, 300, 1.0)


def _node(number: int) -> str:
    return f"database-{number}"


def choose_home() -> tuple[Path, bool]:
    """Return the folder of the stack, and whether it is kept: STACK_HOME names one to keep."""
    kept = os.environ.get("STACK_HOME")
    return Path(kept or HOME), bool(kept)


if __name__ == "__main__":
    Stack(choose_home()[0]).purge()
