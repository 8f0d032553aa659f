"""Every configuration file of a minicloud, written again at each ``up`` from the state alone."""

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path

from minicloud_ctl import files, nested
from minicloud_ctl.paths import SOURCE, Paths
from minicloud_ctl.state import NEUTRON, State

REGIONS = {"first": "RegionOne", "second": "RegionTwo"}

Ini = Mapping[str, Mapping[str, object]]

ENTRY_POINTS = """\
[oslo.messaging.drivers]
loopback = minicloud_venv.driver:LoopbackDriver

[sqlalchemy.plugins]
minicloud_sqlite = minicloud_venv.sqlite_plugin:MinicloudSqlite
"""

# A compute counts as down after three missed reports: soon enough for a demonstration, late enough
# for two busy cores.
REPORT_SECONDS = 5
DOWN_SECONDS = 15


def ini(path: Path, sections: Ini) -> None:
    lines = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        for key, value in options.items():
            # Some options may be given several times.
            values = value if isinstance(value, list) else [value]
            lines += [f"{key} = {one}" for one in values]
        lines.append("")
    files.write(path, "\n".join(lines))


def write_all(paths: Paths, state: State) -> None:
    _plugins(paths)
    _keystone(paths)
    _placement(paths, state)
    _glance(paths, state)
    if NEUTRON in state.parts:
        _neutron(paths, state)
    for nova, cells in state.novas.items():
        write_nova(paths, state, nova, cells)
    for host, compute in state.computes.items():
        write_compute(paths, host, compute["nova"], compute.get("driver", ""))
    _clouds_yaml(paths, state)


def _plugins(paths: Paths) -> None:
    """Write a distribution without code.

    importlib.metadata finds its entry points through PYTHONPATH, so the venv stays unchanged.
    """
    folder = paths.plugins / "minicloud_venv-1.dist-info"
    files.write(folder / "METADATA", "Metadata-Version: 2.1\nName: minicloud_venv\nVersion: 1\n")
    files.write(folder / "entry_points.txt", ENTRY_POINTS)


def python_path(paths: Paths) -> str:
    return f"{SOURCE}:{paths.plugins}"


def database(paths: Paths, name: str) -> dict[str, object]:
    # Losing the last write in a power failure does not matter here, waiting for the disk does.
    return {"connection": paths.database_url(name), "sqlite_synchronous": "false"}


def credentials(state: State, user: str) -> dict[str, object]:
    return {
        "auth_type": "password",
        "auth_url": state.url("keystone", "/v3"),
        "username": user,
        "password": state.secrets["service"],
        "project_name": "service",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }


def _keystone(paths: Paths) -> None:
    folder = paths.etc / "keystone"
    keys = folder / "fernet-keys"
    if not keys.exists():
        # The same as keystone-manage fernet_setup creates: 0 is the staged key, 1 the primary one.
        for number in ("0", "1"):
            files.write(keys / number, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    ini(
        folder / "keystone.conf",
        {
            "database": database(paths, "keystone"),
            "token": {"provider": "fernet", "expiration": 86400},
            "fernet_tokens": {"key_repository": keys},
            # The default is a folder of the system; nothing here ever needs a receipt, but Keystone
            # looks for its keys.
            "fernet_receipts": {"key_repository": keys},
            # The minimum that bcrypt accepts: the passwords only protect a loopback interface.
            "identity": {"password_hash_rounds": 4},
            # One process serves Keystone, so its own memory is a coherent cache.
            "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        },
    )


def _placement(paths: Paths, state: State) -> None:
    ini(
        paths.etc / "placement" / "placement.conf",
        {
            "placement_database": database(paths, "placement"),
            "api": {"auth_strategy": "keystone"},
            # Otherwise the first host gets every server.
            "placement": {"randomize_allocation_candidates": "true"},
            "keystone_authtoken": authtoken(state, "placement"),
        },
    )


def _glance(paths: Paths, state: State) -> None:
    folder = paths.service("glance")
    for name in ("images", "staging", "tasks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    ini(
        paths.etc / "glance" / "glance-api.conf",
        {
            "DEFAULT": {
                "enabled_backends": "images:file",
                "worker_self_reference_url": state.url("glance"),
                "enabled_import_methods": "[]",
            },
            "database": database(paths, "glance"),
            "glance_store": {"default_backend": "images"},
            "images": {"filesystem_store_datadir": folder / "images"},
            "os_glance_staging_store": {"filesystem_store_datadir": folder / "staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": folder / "tasks"},
            "oslo_concurrency": {"lock_path": folder / "locks"},
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": paths.venv / "etc" / "glance" / "glance-api-paste.ini",
            },
            "keystone_authtoken": authtoken(state, "glance"),
        },
    )


def authtoken(state: State, user: str) -> dict[str, object]:
    return {
        **credentials(state, user),
        "www_authenticate_uri": state.url("keystone", "/v3"),
        "service_token_roles_required": "true",
    }


def part_folder(paths: Paths, part: str) -> Path:
    """The configuration of a real part."""
    return paths.etc / part


def neutron_folder(paths: Paths) -> Path:
    return part_folder(paths, NEUTRON)


def neutron_transport_url(state: State) -> str:
    return f"loopback://127.0.0.1:{state.ports['broker']}/neutron"


def _neutron(paths: Paths, state: State) -> None:
    first = {"region_name": REGIONS["first"]}
    ini(
        neutron_folder(paths) / "neutron.conf",
        {
            "DEFAULT": {
                "host": "controller",
                "core_plugin": "ml2",
                # "placement" creates the providers of network bandwidth.
                "service_plugins": "router,qos,placement",
                "transport_url": neutron_transport_url(state),
                "state_path": paths.service("neutron"),
                "api_paste_config": paths.part(NEUTRON) / "etc" / "neutron" / "api-paste.ini",
                "agent_down_time": DOWN_SECONDS,
                # The least: changes are collected for so long before Nova and Placement hear of
                # them.
                "send_events_interval": 1,
            },
            "database": database(paths, "neutron"),
            "oslo_concurrency": {"lock_path": paths.service("neutron") / "locks"},
            "keystone_authtoken": authtoken(state, "neutron"),
            "nova": {**credentials(state, "nova"), **first},
            "placement": {**credentials(state, "placement"), **first},
            "quotas": {f"quota_{kind}": -1 for kind in ("network", "subnet", "port", "router")},
            "ml2": {
                "type_drivers": "flat,vlan",
                "tenant_network_types": "vlan",
                "mechanism_drivers": "openvswitch",
                "extension_drivers": "port_security,qos",
            },
            "ml2_type_vlan": {"network_vlan_ranges": "physnet0:100:199"},
        },
    )
    # Neutron reads it last, and nothing overwrites it.
    if not (neutron_folder(paths) / "local.conf").exists():
        ini(neutron_folder(paths) / "local.conf", {"DEFAULT": {"debug": "false"}})


def nova_folder(paths: Paths, nova: str) -> Path:
    return paths.etc / f"nova-{nova}"


def transport_url(state: State, nova: str, cell: str) -> str:
    return f"loopback://127.0.0.1:{state.ports['broker']}/{nova}-{cell}"


def write_nova(paths: Paths, state: State, nova: str, cells: list[str]) -> None:
    """Write ``nova.conf`` for the API and the scheduler (database: cell0).

    Conductor and computes also read ``CELL.conf``.
    """
    folder = nova_folder(paths, nova)
    region = REGIONS[nova]
    ini(
        folder / "nova.conf",
        {
            "DEFAULT": {
                "host": f"{nova}-controller",
                "my_ip": "127.0.0.1",
                "transport_url": transport_url(state, nova, "cell1"),
                "state_path": paths.service(f"nova-{nova}"),
                "compute_driver": paths.release.compute_driver,
                "report_interval": REPORT_SECONDS,
                "service_down_time": DOWN_SECONDS,
                # Otherwise periodic tasks, such as the discovery of new hosts, first run after up
                # to a minute.
                "periodic_fuzzy_delay": 0,
            },
            "api_database": database(paths, f"{nova}_nova_api"),
            "database": database(paths, f"{nova}_cell0"),
            "oslo_concurrency": {"lock_path": paths.service(f"nova-{nova}") / "locks"},
            "keystone_authtoken": authtoken(state, "nova"),
            "service_user": {"send_service_user_token": "true", **credentials(state, "nova")},
            "placement": {**credentials(state, "placement"), "region_name": region},
            "neutron": {
                **credentials(state, "neutron"),
                "endpoint_override": state.url("neutron"),
                "region_name": region,
            },
            "glance": {"endpoint_override": state.url("glance")},
            "quota": {"instances": -1, "cores": -1, "ram": -1},
            "conductor": {"workers": 1},
            "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 2},
            "vnc": {"enabled": "false"},
            # For a host with Ironic's driver, while there is an Ironic.
            "ironic": {**credentials(state, "nova"), "region_name": region},
            **(nested.of_nova() if paths.release.nested else {}),
        },
    )
    for cell in cells:
        own = {"host": f"{nova}-{cell}", "transport_url": transport_url(state, nova, cell)}
        content = {"DEFAULT": own, "database": database(paths, f"{nova}_{cell}")}
        ini(folder / f"{cell}.conf", content)
    # Every service reads this file last, and nothing overwrites it: the place for your own
    # settings.
    if not (folder / "local.conf").exists():
        ini(folder / "local.conf", {"DEFAULT": {"allow_resize_to_same_host": "false"}})


def write_compute(paths: Paths, host: str, nova: str, driver: str = "") -> None:
    folder = paths.compute(host)
    folder.mkdir(parents=True, exist_ok=True)
    kind = {"compute_driver": driver} if driver else {}
    content = {
        "DEFAULT": {"host": host, "state_path": folder, **kind},
        "oslo_concurrency": {"lock_path": folder / "locks"},
        **(_devices(paths, host) if driver in nested.DRIVERS else {}),
    }
    ini(nova_folder(paths, nova) / "hosts" / f"{host}.conf", content)


def _devices(paths: Paths, host: str) -> nested.Sections:
    folder = nova_folder(paths, "first") / "providers" / host
    files.write(folder / "provider.yaml", nested.PROVIDERS.format(host=host))
    return nested.of_host(folder)


def cloud_environment(paths: Paths, state: State) -> dict[str, str]:
    """Return the variables that ``minicloud env`` exports."""
    return {
        "OS_CLIENT_CONFIG_FILE": str(paths.clouds_yaml),
        "OS_CLOUD": "minicloud",
        "OS_AUTH_URL": state.url("keystone", "/v3"),
        "OS_USERNAME": "admin",
        "OS_PASSWORD": state.secrets["admin"],
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": REGIONS["first"],
        "OS_IDENTITY_API_VERSION": "3",
    }


def _clouds_yaml(paths: Paths, state: State) -> None:
    clouds = {
        "minicloud": ("admin", "admin", "first"),
        "minicloud-reader": ("reader", "audit", "first"),
        "minicloud-demo": ("demo", "demo", "first"),
        "minicloud-second": ("admin", "admin", "second"),
    }
    lines = ["clouds:"]
    for name, (user, project, nova) in clouds.items():
        lines += [
            f"  {name}:",
            f"    region_name: {REGIONS[nova]}",
            "    identity_api_version: 3",
            "    auth:",
            f"      auth_url: {state.url('keystone', '/v3')}",
            f"      username: {user}",
            f"      password: '{state.secrets[user]}'",
            f"      project_name: {project}",
            "      user_domain_name: Default",
            "      project_domain_name: Default",
        ]
    files.write(paths.clouds_yaml, "\n".join(lines) + "\n")
