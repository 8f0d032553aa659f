"""Servers and their moves through Nova's API.

Every function waits until Nova has done what was requested.
"""

from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.waiting import wait_for

# The statuses of migrations that have not ended: nova/objects/migration.py.
ENDED = frozenset({"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"})


def request_boot(
    cloud: Cloud,
    name: str,
    host: str,
    flavor: str = "m1.tiny",
    node: str = "",
    networks: object = "none",
) -> str:
    """Request a server on exactly this host (and node), without the scheduler's filters.

    ``networks``: as Nova's API has it, such as [{"port": uuid}]; it needs the real Neutron.

    Returns its uuid at once.
    """
    document = {
        "name": name,
        "imageRef": cloud.image(),
        "flavorRef": cloud.flavor(flavor),
        "networks": networks,
        "availability_zone": f"nova:{host}:{node}".rstrip(":"),
    }
    return cloud.nova("POST", "/servers", {"server": document})["server"]["id"]


def boot(
    cloud: Cloud,
    name: str,
    host: str,
    flavor: str = "m1.tiny",
    node: str = "",
    networks: object = "none",
) -> str:
    """Boot a server, and wait until it is ACTIVE on this host (and node)."""
    server = request_boot(cloud, name, host, flavor, node, networks)
    settle(cloud, server, host)
    return server


def get(cloud: Cloud, server: str) -> dict:
    return cloud.nova("GET", f"/servers/{server}")["server"]


def act(
    cloud: Cloud, server: str, action: str, arguments: object = None, version: str = "2.90"
) -> None:
    cloud.nova("POST", f"/servers/{server}/action", {action: arguments}, version)


def settle(cloud: Cloud, server: str, host: str | None, *statuses: str) -> dict:
    """Wait for one of the statuses (by default ACTIVE) without a task; ERROR fails at once.

    The server must be on ``host`` unless that is None.
    """
    wanted = statuses or ("ACTIVE",)

    def probe() -> dict | None:
        found = get(cloud, server)
        if found["status"] == "ERROR" and "ERROR" not in wanted:
            raise MinicloudError(
                f"Server {found['name']} went to ERROR: {found.get('fault', {}).get('message')}"
            )
        is_there = host is None or found["OS-EXT-SRV-ATTR:host"] == host
        is_idle = found["OS-EXT-STS:task_state"] is None
        return found if found["status"] in wanted and is_idle and is_there else None

    return wait_for(f"server {server} to be {' or '.join(wanted)} on {host or 'any host'}", probe)


def delete(cloud: Cloud, server: str) -> None:
    """Delete a server, and wait until Nova does not find it any more."""
    cloud.nova("DELETE", f"/servers/{server}")
    wait_for(
        f"server {server} to be gone",
        lambda: cloud.nova_call("GET", f"/servers/{server}").status == 404,
    )


def migrations(cloud: Cloud, server: str) -> list[dict]:
    """Return the migrations of a server, newest first."""
    return cloud.nova("GET", f"/os-migrations?instance_uuid={server}", version="2.80")["migrations"]


def await_migration(cloud: Cloud, server: str, *statuses: str) -> str:
    """Return the uuid of the server's newest migration, once it has one of the statuses."""

    def probe() -> str | None:
        found = migrations(cloud, server)
        return found[0]["uuid"] if found and found[0]["status"] in statuses else None

    return wait_for(f"the migration of server {server} to be {' or '.join(statuses)}", probe)


def ended_events(cloud: Cloud, server: str, action: str) -> set[str]:
    """Return the finished events of the newest action of this name."""
    path = f"/servers/{server}/os-instance-actions"
    newest = next(
        known for known in cloud.nova("GET", path)["instanceActions"] if known["action"] == action
    )
    events = cloud.nova("GET", f"{path}/{newest['request_id']}")["instanceAction"]["events"]
    return {event["event"] for event in events if event["finish_time"]}


def await_event(cloud: Cloud, server: str, action: str, event: str) -> None:
    """Wait until this event of the newest action of this name has finished.

    It is the last step of Nova, whether it succeeded or not.
    """
    wait_for(
        f"{event} of server {server} to end", lambda: event in ended_events(cloud, server, action)
    )


def await_task(cloud: Cloud, server: str, task: str) -> None:
    wait_for(
        f"server {server} to have the task {task}",
        lambda: get(cloud, server)["OS-EXT-STS:task_state"] == task,
    )


def migrate(cloud: Cloud, server: str, host: str) -> str:
    """Cold migrate to this host, leave it in VERIFY_RESIZE, and return the migration's uuid."""
    act(cloud, server, "migrate", {"host": host})
    settle(cloud, server, host, "VERIFY_RESIZE")
    return await_migration(cloud, server, "finished")


def confirm(cloud: Cloud, server: str) -> None:
    act(cloud, server, "confirmResize")
    await_migration(cloud, server, "confirmed")
    settle(cloud, server, None)


def revert(cloud: Cloud, server: str) -> None:
    act(cloud, server, "revertResize")
    await_migration(cloud, server, "reverted")
    settle(cloud, server, None)


def shelve(cloud: Cloud, server: str) -> None:
    """Shelve and offload, and wait until the host has recorded that its part is done."""
    act(cloud, server, "shelve")
    settle(cloud, server, None, "SHELVED_OFFLOADED")
    await_event(cloud, server, "shelve", "compute_shelve_instance")


def evacuate(cloud: Cloud, server: str, host: str) -> str:
    """Evacuate to this host; the source must be down.

    Returns the migration's uuid, once Nova calls it done.
    """
    act(cloud, server, "evacuate", {"host": host})
    settle(cloud, server, host, "ACTIVE", "SHUTOFF")
    return await_migration(cloud, server, "done")


def force_down(cloud: Cloud, host: str) -> None:
    """Mark a host as down in Nova at once, as a fencing agent would."""
    update_service(cloud, host, {"forced_down": True})


def update_service(cloud: Cloud, host: str, change: dict) -> None:
    cloud.nova("PUT", f"/os-services/{cloud.compute_services()[host]['id']}", change)


def delete_service(cloud: Cloud, host: str) -> None:
    cloud.nova("DELETE", f"/os-services/{cloud.compute_services()[host]['id']}")
