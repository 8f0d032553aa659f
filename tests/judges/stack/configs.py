"""Every configuration file of the stack, from its state alone."""

from __future__ import annotations

import base64
import secrets
import shutil
import subprocess
from pathlib import Path

from minicloud_ctl import configs, files
from minicloud_ctl.configs import authtoken, credentials, ini
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import State

PART = "stack"
# The processes of nova-api, and those of Placement, behind HAProxy.
WORKERS = (1, 2, 3, 4)
NODES = (1, 2)
DATABASES = ("keystone", "placement", "glance", "nova_api", "nova_cell0", "nova")
# What HAProxy offers: inside without TLS, outside with it.
OFFERED = ("keystone", "placement", "glance", "neutron", "nova-api")
# The same workers for clients that get no help: no checks, no second attempt.
UNCHECKED = ("placement", "nova-api")
REPORT_SECONDS, DOWN_SECONDS = 5, 30
USER = "stack"


def list_ports() -> tuple[str, ...]:
    """Return the name of each port of the control plane, besides those of the minicloud."""
    found = [f"{name}-tls" for name in OFFERED] + [f"{name}-unchecked" for name in UNCHECKED]
    found += [f"{name}-{worker}" for name in UNCHECKED for worker in WORKERS]
    for node in NODES:
        found += [f"{part}-{node}" for part in ("database", "galera", "increment", "transfer")]
    return (*found, "keystone-1", "glance-1", "neutron-1", "memcached", "epmd", "distribution")


def write_all(paths: Paths, state: State) -> None:
    _write_certificates(paths)
    for node in NODES:
        files.write(paths.etc / f"database-{node}.cnf", _galera(paths, state, node), 0o644)
    files.write(paths.etc / "haproxy.cfg", _haproxy(paths, state))
    files.write(paths.etc / "rabbitmq.conf", _rabbitmq(state), 0o644)
    files.write(paths.etc / "rabbitmq-plugins", "[].\n", 0o644)
    _write_keystone(paths, state)
    _write_placement(paths, state)
    _write_glance(paths, state)
    _write_nova(paths, state)
    files.write(paths.clouds_yaml, _clouds(paths, state))


def find_node(worker: int) -> int:
    """Return the node that a worker reads and writes: half of them use the second one."""
    return NODES[0] if worker <= len(WORKERS) // 2 else NODES[1]


def database_url(state: State, name: str, node: int = NODES[0]) -> str:
    login = f"{USER}:{state.secrets['service']}"
    return (
        f"mysql+pymysql://{login}@127.0.0.1:{state.ports[f'database-{node}']}/{name}?charset=utf8"
    )


def transport_url(state: State) -> str:
    return f"rabbit://{USER}:{state.secrets['service']}@127.0.0.1:{state.ports['broker']}/"


def database_folder(paths: Paths, node: int) -> Path:
    return paths.databases / f"node-{node}"


def certificates(paths: Paths) -> Path:
    return paths.etc / "tls"


def _write_certificates(paths: Paths) -> None:
    """Make an authority and a certificate for 127.0.0.1, once."""
    folder = certificates(paths)
    if (folder / "server.pem").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Python 3.13 wants the extensions of RFC 5280.
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n"
    files.write(folder / "names", names)
    key = "-newkey rsa:2048 -nodes -keyout"
    for command in (
        f"req -x509 -days 30 {key} ca.key -out ca.pem -subj /CN=stack-authority"
        " -addext keyUsage=critical,keyCertSign",
        f"req {key} server.key -out server.csr -subj /CN=localhost",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30"
        " -out server.crt -extfile names",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    both = (folder / "server.crt").read_text() + (folder / "server.key").read_text()
    files.write(folder / "server.pem", both)


def _galera(paths: Paths, state: State, node: int) -> str:
    folder, ports = database_folder(paths, node), state.ports
    members = ",".join(f"127.0.0.1:{ports[f'galera-{each}']}" for each in NODES)
    here = f"127.0.0.1:{ports[f'galera-{node}']}"
    return f"""\
[mysqld]
datadir = {folder}
socket = {folder}/socket
pid-file = {folder}/pid
port = {ports[f"database-{node}"]}
bind-address = 127.0.0.1
user = mysql
character-set-server = utf8mb3
collation-server = utf8mb3_general_ci
max_connections = 500
innodb_buffer_pool_size = 192M
innodb_flush_log_at_trx_commit = 2
innodb_autoinc_lock_mode = 2
binlog_format = ROW
skip-name-resolve
wsrep_on = ON
wsrep_provider = /usr/lib/galera/libgalera_smm.so
wsrep_cluster_name = stack
wsrep_cluster_address = gcomm://{members}
wsrep_node_address = {here}
wsrep_node_name = node-{node}
wsrep_provider_options = "base_port={ports[f"galera-{node}"]}; gmcast.listen_addr=tcp://{here}; \
ist.recv_addr=127.0.0.1:{ports[f"increment-{node}"]}; gcache.size=64M"
wsrep_sst_method = rsync
wsrep_sst_receive_address = 127.0.0.1:{ports[f"transfer-{node}"]}
"""


def _haproxy(paths: Paths, state: State) -> str:
    ports = state.ports
    tls = f"ssl crt {certificates(paths)}/server.pem alpn http/1.1"
    lines = [
        "global",
        "  maxconn 2000",
        "defaults",
        "  mode http",
        "  option redispatch",
        "  option forwardfor",
        "  retries 3",
        "  timeout connect 5s",
        "  timeout client 90s",
        "  timeout server 90s",
    ]
    for name in OFFERED:
        lines += _listen(name, ports[name], f"{name}-workers")
        lines += _listen(f"{name}-tls", ports[f"{name}-tls"], f"{name}-workers", tls)
        workers = WORKERS if name in UNCHECKED else (1,)
        lines += [f"backend {name}-workers", "  balance roundrobin"]
        if name in UNCHECKED:
            lines.append("  option httpchk GET /")
        for worker in workers:
            # Neutron's stub has no other port than its own.
            port = ports["neutron-1" if name == "neutron" else f"{name}-{worker}"]
            check = "check inter 2s fall 2 rise 1" if name in UNCHECKED else ""
            lines.append(f"  server {name}-{worker} 127.0.0.1:{port} {check}".rstrip())
    for name in UNCHECKED:
        lines += _listen(f"{name}-unchecked", ports[f"{name}-unchecked"], f"{name}-alone", tls)
        lines += [f"backend {name}-alone", "  balance roundrobin"]
        lines += ["  retries 0", "  no option redispatch"]
        for worker in WORKERS:
            lines.append(f"  server {name}-{worker} 127.0.0.1:{ports[f'{name}-{worker}']}")
    return "\n".join(lines) + "\n"


def _listen(name: str, port: int, backend: str, tls: str = "") -> list[str]:
    lines = [f"frontend {name}", f"  bind 127.0.0.1:{port} {tls}".rstrip()]
    if tls:
        lines.append("  http-request set-header X-Forwarded-Proto https")
    return [*lines, f"  default_backend {backend}"]


def _rabbitmq(state: State) -> str:
    return f"""\
listeners.tcp.local = 127.0.0.1:{state.ports["broker"]}
default_user = {USER}
default_pass = {state.secrets["service"]}
vm_memory_high_watermark.absolute = 512MiB
disk_free_limit.absolute = 100MB
log.console = true
log.console.level = warning
log.file = false
"""


def _uwsgi(paths: Paths, name: str, module: str, port: int, processes: int = 1) -> None:
    settings = {
        "module": f"{module}:application",
        "http-socket": f"127.0.0.1:{port}",
        "master": "true",
        "processes": processes,
        "threads": 6,
        "enable-threads": "true",
        "lazy-apps": "true",
        "die-on-term": "true",
        "buffer-size": 65535,
        "http-chunked-input": "true",
        "add-header": "Connection: close",
        "procname-prefix-spaced": name,
        "disable-logging": "true",
    }
    ini(paths.etc / "uwsgi" / f"{name}.ini", {"uwsgi": settings})


def _verify_tokens(state: State, user: str) -> dict[str, object]:
    cached = {"memcached_servers": f"127.0.0.1:{state.ports['memcached']}"}
    return {**authtoken(state, user), **cached, "service_token_roles": "service"}


def _write_keystone(paths: Paths, state: State) -> None:
    folder = paths.etc / "keystone"
    keys = folder / "fernet-keys"
    for number in ("0", "1"):
        if not (keys / number).exists():
            files.write(keys / number, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    ini(
        folder / "keystone.conf",
        {
            "database": {"connection": database_url(state, "keystone")},
            "token": {"provider": "fernet", "expiration": 86400},
            "fernet_tokens": {"key_repository": keys},
            "fernet_receipts": {"key_repository": keys},
            "identity": {"password_hash_rounds": 4},
            "cache": {
                "enabled": "true",
                "backend": "dogpile.cache.memcached",
                "memcache_servers": f"127.0.0.1:{state.ports['memcached']}",
            },
            "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
        },
    )
    _uwsgi(paths, "keystone-1", "keystone.wsgi.api", state.ports["keystone-1"], processes=2)


def _write_placement(paths: Paths, state: State) -> None:
    for worker in WORKERS:
        url = database_url(state, "placement", find_node(worker))
        ini(
            paths.etc / f"placement-{worker}" / "placement.conf",
            {
                "placement_database": {"connection": url},
                "api": {"auth_strategy": "keystone"},
                "placement": {"randomize_allocation_candidates": "true"},
                "keystone_authtoken": _verify_tokens(state, "placement"),
            },
        )
        name = f"placement-{worker}"
        _uwsgi(paths, name, "placement.wsgi.api", state.ports[name])


def _write_glance(paths: Paths, state: State) -> None:
    folder = paths.service("glance")
    for name in ("images", "staging", "tasks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    ini(
        paths.etc / "glance" / "glance-api.conf",
        {
            "DEFAULT": {"enabled_backends": "images:file", "enabled_import_methods": "[]"},
            "database": {"connection": database_url(state, "glance")},
            "glance_store": {"default_backend": "images"},
            "images": {"filesystem_store_datadir": folder / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": folder / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": folder / "tasks"},
            "oslo_concurrency": {"lock_path": folder / "locks"},
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": paths.venv / "etc" / "glance" / "glance-api-paste.ini",
            },
            "keystone_authtoken": _verify_tokens(state, "glance"),
        },
    )
    _uwsgi(paths, "glance-1", "glance.wsgi.api", state.ports["glance-1"])


def _write_nova(paths: Paths, state: State) -> None:
    databases = {
        "api_database": {"connection": database_url(state, "nova_api")},
        "database": {"connection": database_url(state, "nova")},
    }
    ini(paths.etc / "nova" / "nova.conf", nova_of(state, paths.service("nova"), databases))
    for worker in WORKERS:
        name, node = f"nova-api-{worker}", find_node(worker)
        own = {
            "api_database": {"connection": database_url(state, "nova_api", node)},
            "database": {"connection": database_url(state, "nova_cell0", node)},
        }
        ini(paths.etc / name / "nova.conf", nova_of(state, paths.service(name), own))
        shutil.copy(paths.venv / "etc" / "nova" / "api-paste.ini", paths.etc / name)
        _uwsgi(paths, name, "nova.wsgi.osapi_compute", state.ports[name])


def nova_of(
    state: State, folder: Path, more: configs.Ini, host: str = "controller", address: str = ""
) -> dict[str, dict[str, object]]:
    """Return Nova's configuration, with the sections that only some of its services need."""
    found: dict[str, dict[str, object]] = {
        "DEFAULT": {
            "host": host,
            "my_ip": address or "127.0.0.1",
            "transport_url": transport_url(state),
            "state_path": folder,
            "report_interval": REPORT_SECONDS,
            "service_down_time": DOWN_SECONDS,
            "periodic_fuzzy_delay": 0,
            "graceful_shutdown_timeout": 5,
            # The guests do not know how to shut down.
            "shutdown_timeout": 1,
        },
        "oslo_concurrency": {"lock_path": folder / "locks"},
        "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
        "keystone_authtoken": _verify_tokens(state, "nova"),
        "service_user": {"send_service_user_token": "true", **credentials(state, "nova")},
        "placement": {**credentials(state, "placement"), "valid_interfaces": "internal"},
        "neutron": {**credentials(state, "neutron"), "valid_interfaces": "internal"},
        "glance": {"endpoint_override": state.url("glance")},
        "quota": {"instances": -1, "cores": -1, "ram": -1},
        "conductor": {"workers": 2},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
        "vnc": {"enabled": "false"},
    }
    for section, options in more.items():
        found[section] = {**found.get(section, {}), **options}
    return found


def _clouds(paths: Paths, state: State) -> str:
    ports = state.ports
    alone = {
        "compute": f"https://127.0.0.1:{ports['nova-api-unchecked']}/v2.1",
        "placement": f"https://127.0.0.1:{ports['placement-unchecked']}",
    }
    lines = ["clouds:"]
    for name, overrides in (("minicloud", {}), ("unchecked", alone)):
        lines += [
            f"  {name}:",
            "    region_name: RegionOne",
            f"    cacert: {certificates(paths)}/ca.pem",
            *(f"    {kind}_endpoint_override: {url}" for kind, url in overrides.items()),
            "    auth:",
            f"      auth_url: https://127.0.0.1:{ports['keystone-tls']}/v3",
            "      username: admin",
            f"      password: '{state.secrets['admin']}'",
            "      project_name: admin",
            "      user_domain_name: Default",
            "      project_domain_name: Default",
        ]
    return "\n".join(lines) + "\n"
