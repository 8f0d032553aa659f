# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `hypervisor_cleanup`."""

from __future__ import annotations

from .._common.options import Bool, Duration, Int, List, LongAge, Options, Path, Role, Text
from .._core.options.connection import ConnectionOptions
from .._core.options.policy import AgeOptions, ExclusionOptions
from .on_host.options import BackupOptions, InstanceOptions, LibvirtOptions


class LeftoverOptions(AgeOptions, ExclusionOptions):
    min_age = AgeOptions.min_age
    """
    The minimum age of a leftover, and of what Nova last did to its server. A younger one is
    protected, and so is a directory in which something changed since.
    """

    unknown_min_age = AgeOptions.unknown_min_age
    """
    The same for leftovers of a server that Nova has no record of.

    Since 2.0.0.
    """

    exclude_consumers = ExclusionOptions.exclude_consumers
    """
    The UUIDs of servers whose leftovers are never changed. They are reported as protected.
    """

    exclude_providers = ExclusionOptions.exclude_providers
    """
    The names of hosts on which nothing is ever changed, or the names or UUIDs of their resource
    providers.
    """


class PlayOptions(Options):
    host = Text("{{ inventory_hostname }}")
    """
    The name of the hypervisor's compute service in Nova. By default, the name in the inventory.
    """

    api_host = Text("localhost")
    """
    The inventory host that has access to Nova and Placement. The findings are written there.
    """

    become = Bool(True)
    """
    Whether to become root on the hypervisors, which reading and changing the files of Nova and
    libvirt requires.
    """


class HypervisorCleanupOptions(
    PlayOptions, ConnectionOptions, LibvirtOptions, InstanceOptions, BackupOptions, LeftoverOptions
):
    log_paths = List(["/var/log/nova/nova-compute.log*", "/var/log/kolla/nova/nova-compute.log*"])
    """
    The patterns of the log files of nova-compute, including rotated and compressed ones. By
    default, those of distribution packages and of Kolla.
    """

    log_units = List()
    """
    The systemd units whose journal is read as well. None by default.
    """

    log_since = Duration("24h")
    """
    The age of the oldest log lines to read.
    """

    remediate_kinds = List(choices=["leftover_domain", "leftover_directory"])
    """
    The kinds of leftovers that may be quarantined. None by default, so nothing is changed.
    """

    remove = List(choices=["nvram", "tpm", "managed_save", "snapshots"])
    """
    What is removed together with a domain. Nothing by default.

    UEFI variables (V(nvram)) and the state of an emulated TPM (V(tpm)) are kept unless they are
    named here.

    A domain with a managed save (V(managed_save)) or with snapshots (V(snapshots)) stays unless
    they are named here.
    """

    allow_shared = Bool(False)
    """
    Whether to move directories of deleted servers even if other hosts may use the same file system.
    Files that are open on another host cannot be seen. By default, such directories stay.
    """

    max_changes = Int(100)
    """
    The maximum number of domains and directories that one run may quarantine on all hosts together.
    If there are more, nothing is changed.
    """

    restart_unit = Text("")
    """
    The systemd unit of nova-compute, such as V(nova-compute) or V(openstack-nova-compute). It is
    restarted where this run cleaned up something, if nova-compute is up, enabled and reporting, no
    server there is being built, moved or changed, and no evacuation from it is C(done).

    Empty by default: then no unit is restarted.
    """

    restart_container = Text("")
    """
    The container of nova-compute, such as V(nova_compute). It is restarted in the same cases.

    Empty by default: then no container is restarted.
    """

    container_engine = Text("docker")
    """
    The command that restarts the container.
    """

    quiet = Duration("3m")
    """
    How long the log must be without complaints after a restart. It must be longer than the interval
    at which nova-compute examines its allocations, which is a minute.
    """

    retries = Int(40)
    """
    How often the log is read after a restart, every 15 seconds, before the task fails.
    """

    output_dir = Path("hypervisor-cleanup")
    """
    The folder on O(api_host) for the findings. All files have mode 0600.

    A relative path starts in the current directory of the user.
    """


class PurgeOptions(Options):
    purge_age = LongAge("30d")
    """
    The entry point V(purge) deletes directories that have been in the quarantine for longer than
    this.
    """


HYPERVISOR_CLEANUP = Role(
    "hypervisor_cleanup",
    {"main": HypervisorCleanupOptions, "purge": PurgeOptions},
    # The hosts of the playbook cleanup_hypervisor.
    others=["hypervisor_cleanup_hosts"],
)
