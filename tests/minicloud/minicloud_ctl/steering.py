# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts with the driver ``minicloud.SteeredColdMigration`` do when they copy a server or take one in."""

from __future__ import annotations

from minicloud_ctl.paths import Paths

DRIVER = "minicloud.SteeredColdMigration"

# The calls of the driver: the first on the source, the second on the destination.
COPY, FINISH = "migrate_disk_and_power_off", "finish_migration"

# What libvirt raises when it has touched nothing yet: Nova takes the server back to the state that it had.
ROLLBACK = "rollback"


def hold(paths: Paths, host: str, call: str) -> None:
    """Let each such call on this host wait until ``release``."""
    (paths.compute(host) / f"hold-{call}").touch()


def release(paths: Paths, host: str, call: str) -> None:
    (paths.compute(host) / f"hold-{call}").unlink(missing_ok=True)


def fail(paths: Paths, host: str, call: str, how: str = "") -> None:
    """Let each such call on this host raise until ``mend``; one that is held does so when it is released."""
    (paths.compute(host) / f"fail-{call}").write_text(how, encoding="utf-8")


def mend(paths: Paths, host: str, call: str) -> None:
    (paths.compute(host) / f"fail-{call}").unlink(missing_ok=True)
