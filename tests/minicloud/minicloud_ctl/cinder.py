"""The real Cinder: when it is ready, and its volumes."""

from collections.abc import Mapping

from minicloud_ctl import configs, processes, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import CINDER, State
from minicloud_ctl.waiting import wait_for


def write_config(paths: Paths, state: State) -> None:
    etc = paths.part(CINDER) / "etc" / "cinder"
    configs.ini(
        configs.part_folder(paths, CINDER) / "cinder.conf",
        {
            "DEFAULT": {
                "host": "controller",
                "my_ip": "127.0.0.1",
                "transport_url": f"loopback://127.0.0.1:{state.ports['broker']}/cinder",
                "state_path": paths.service("cinder"),
                "auth_strategy": "keystone",
                "api_paste_config": etc / "api-paste.ini",
                "resource_query_filters_file": etc / "resource_filters.json",
                "rootwrap_config": etc / "rootwrap.conf",
                "glance_api_servers": state.url("glance"),
                "enabled_backends": "minicloud",
                "report_interval": configs.REPORT_SECONDS,
                "service_down_time": configs.DOWN_SECONDS,
                "backend_stats_polling_interval": configs.REPORT_SECONDS,
                "periodic_fuzzy_delay": 0,
                **{f"quota_{kind}": -1 for kind in ("volumes", "snapshots", "gigabytes")},
            },
            "minicloud": {
                "volume_driver": "minicloud_venv.volumes.EmptyVolumes",
                "volume_backend_name": "minicloud",
            },
            "database": configs.database(paths, "cinder"),
            "oslo_concurrency": {"lock_path": paths.service("cinder") / "locks"},
            "coordination": {"backend_url": f"file://{paths.service('cinder') / 'coordination'}"},
            "keystone_authtoken": configs.authtoken(state, "cinder"),
            "service_user": {
                "send_service_user_token": "true",
                **configs.credentials(state, "cinder"),
            },
        },
    )


def await_services(paths: Paths) -> None:
    """Wait until the scheduler of Cinder knows where it can create volumes."""
    state = states.load(paths)
    cloud = Cloud(state)
    names = [service.name for service in services.cinder(paths, state)]

    def ready() -> bool:
        processes.must_live(paths, names)
        return bool(cloud.cinder("GET", "/scheduler-stats/get_pools")["pools"])

    wait_for("cinder-volume to report to cinder-scheduler", ready, interval=0.5)


def create_volume(cloud: Cloud, properties: Mapping[str, str]) -> str:
    """Create a volume of 1 GB that servers can boot from; returns its uuid.

    properties: those of the image that it would have been made of.
    """
    volume = cloud.cinder("POST", "/volumes", {"volume": {"size": 1}})["volume"]["id"]
    await_status(cloud, volume, "available")
    act(cloud, volume, {"os-set_bootable": {"bootable": True}})
    if properties:
        act(cloud, volume, {"os-set_image_metadata": {"metadata": dict(properties)}})
    return volume


def act(cloud: Cloud, volume: str, action: Mapping[str, object]) -> None:
    cloud.cinder("POST", f"/volumes/{volume}/action", action)


def await_status(cloud: Cloud, volume: str, status: str) -> None:
    def probe() -> bool:
        found = cloud.cinder("GET", f"/volumes/{volume}")["volume"]["status"]
        if found == "error":
            raise MinicloudError(f"Volume {volume} went to error.")
        return found == status

    wait_for(f"volume {volume} to be {status}", probe)
