"""Controls hosts with the driver ``minicloud.SteeredColdMigration``."""

from minicloud_ctl import servers
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.paths import Paths

DRIVER = "minicloud.SteeredColdMigration"

# The calls of the driver: the first on the source, the second on the destination.
COPY, FINISH = "migrate_disk_and_power_off", "finish_migration"

# libvirt raises this when it has changed nothing yet: Nova returns the server to its earlier state.
ROLLBACK = "rollback"


def hold(paths: Paths, host: str, call: str) -> None:
    """Let each such call on this host wait until ``release``."""
    (paths.compute(host) / f"hold-{call}").touch()


def release(paths: Paths, host: str, call: str) -> None:
    (paths.compute(host) / f"hold-{call}").unlink(missing_ok=True)


def fail(paths: Paths, host: str, call: str, how: str = "") -> None:
    """Let each such call on this host raise until ``fix``.

    A call that waits raises when it is released.
    """
    (paths.compute(host) / f"fail-{call}").write_text(how, encoding="utf-8")


def fix(paths: Paths, host: str, call: str) -> None:
    (paths.compute(host) / f"fail-{call}").unlink(missing_ok=True)


def migrate_until_copy(
    paths: Paths, cloud: Cloud, server: str, source: str, destination: str
) -> str:
    """Begin a cold migration whose source pauses at the copy, until ``release``.

    Returns the migration's uuid.
    """
    hold(paths, source, COPY)
    servers.act(cloud, server, "migrate", {"host": destination})
    migration = servers.await_migration(cloud, server, "migrating")
    servers.await_task(cloud, server, "resize_migrating")
    return migration


def fail_copy(paths: Paths, cloud: Cloud, server: str, source: str, how: str = "") -> None:
    """Let the paused copy on the source fail, and wait until Nova has handled it."""
    fail(paths, source, COPY, how)
    release(paths, source, COPY)
    servers.await_event(cloud, server, "migrate", "compute_resize_instance")
    fix(paths, source, COPY)


def migrate_until_finish(paths: Paths, cloud: Cloud, server: str, destination: str) -> str:
    """Begin a cold migration whose destination pauses at the last step, until ``release``.

    Returns the migration's uuid.
    """
    hold(paths, destination, FINISH)
    servers.act(cloud, server, "migrate", {"host": destination})
    servers.await_task(cloud, server, "resize_finish")
    return servers.await_migration(cloud, server, "post-migrating")


def fail_finish(paths: Paths, cloud: Cloud, server: str, destination: str) -> None:
    """Let the paused last step on the destination fail, and wait until Nova has handled it."""
    fail(paths, destination, FINISH)
    release(paths, destination, FINISH)
    servers.await_event(cloud, server, "migrate", "compute_finish_resize")
    fix(paths, destination, FINISH)
