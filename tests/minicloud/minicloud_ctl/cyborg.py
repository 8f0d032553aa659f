"""The real Cyborg: its agents on hosts with devices, and device profiles."""

from collections.abc import Collection, Mapping, Sequence

from minicloud_ctl import configs, processes, services
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.paths import Paths
from minicloud_ctl.state import CYBORG, State
from minicloud_ctl.waiting import wait_for

# What Cyborg's fake driver has on each host: 16 of these, with this trait.
RESOURCE_CLASS = "FPGA"
TRAIT = "CUSTOM_FAKE_DEVICE"


def device_provider(host: str) -> str:
    """Return the name that Cyborg gives to the provider of a host's device."""
    return f"{host}_FakeDevice"


def write_config(paths: Paths, state: State) -> None:
    region = {"region_name": configs.REGIONS["first"]}
    configs.ini(
        configs.part_folder(paths, CYBORG) / "cyborg.conf",
        {
            "DEFAULT": {
                "host": "controller",
                "transport_url": f"loopback://127.0.0.1:{state.ports['broker']}/cyborg",
                "state_path": paths.service("cyborg"),
                "periodic_interval": configs.REPORT_SECONDS,
            },
            "api": {"api_paste_config": paths.part(CYBORG) / "etc" / "cyborg" / "api-paste.ini"},
            "agent": {"enabled_drivers": "fake_driver"},
            "database": configs.database(paths, "cyborg"),
            "oslo_concurrency": {"lock_path": paths.service("cyborg") / "locks"},
            "keystone_authtoken": configs.authtoken(state, "cyborg"),
            "placement": {**configs.credentials(state, "placement"), **region},
            "nova": {**configs.credentials(state, "nova"), **region},
        },
    )
    for host in state.computes:
        write_agent(paths, host)


def write_agent(paths: Paths, host: str) -> None:
    configs.ini(
        configs.part_folder(paths, CYBORG) / "hosts" / f"{host}.conf",
        {"DEFAULT": {"host": host}, "agent": {"resource_provider_name": host}},
    )


def await_agents(paths: Paths, hosts: Collection[str]) -> None:
    """Wait until the devices of the hosts are in Placement."""
    state = states.load(paths)
    cloud = Cloud(state)
    names = [service.name for service in services.cyborg_agents(paths, state) if service.wanted]

    def ready() -> bool:
        processes.must_live(paths, names)
        return all(_is_offered(cloud, host) for host in hosts)

    wait_for(f"Cyborg to add the devices of {', '.join(sorted(hosts))}", ready, interval=0.5)


def _is_offered(cloud: Cloud, host: str) -> bool:
    """Return whether the device of a host has its trait, which is the last that Cyborg adds."""
    query = f"name={device_provider(host)}&required={TRAIT}"
    answer = cloud.placement_call("GET", f"/resource_providers?{query}")
    # Placement refuses the name of a trait that does not exist yet.
    return answer.ok and bool(answer.body["resource_providers"])


def create_profile(cloud: Cloud, name: str, groups: Sequence[Mapping[str, str]]) -> None:
    """Create a device profile, which a flavor names with `accel:device_profile`."""
    cloud.cyborg("POST", "/device_profiles", [{"name": name, "groups": list(groups)}])
