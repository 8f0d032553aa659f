# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `host_decommission`."""

from __future__ import annotations

from .._common.options import Bool, Duration, Int, List, Options, Path, Raw, Role, Seconds, Text
from .._core.models.kinds import CONSUMER_KINDS
from .._core.options.connection import ConnectionOptions
from .._core.options.policy import AgeOptions, ProofOptions
from .._core.options.run import RemediationOptions


class DeletionOptions(Options):
    ignore_other_regions = Bool(False)
    """
    Whether to delete the remaining providers of the host even if the service catalogue contains
    another region whose Nova uses the same Placement.

    Set it after you have made sure that the host does not belong to the other region. By default,
    such providers are kept.
    """

    delete_agents = Bool(True)
    """
    Whether the network agents of the host are deleted with it in Neutron. Set it to V(false) if the
    host stays a network node.

    Since 2.0.0.
    """

    delete_running_agents = Bool(False)
    """
    Whether that includes the network agents that are alive. By default, these block the deletion,
    because a running agent registers itself again.

    An agent that still serves a network or a router, or under which a port is still in use, is
    never deleted.

    Since 2.0.0.
    """

    allow_empty_zone = Bool(False)
    """
    Whether an availability zone may be left without a host. By default, its last host is blocked.

    Since 2.0.0.
    """


class MoveOptions(Options):
    cold = Text("shut_off", choices=["shut_off", "active"])
    """
    Which servers may move cold. With V(active), active servers that cannot move live, for example
    because of a PCI device, are shut down while they move. With V(shut_off), they stay.

    Since 2.0.0.
    """

    # Nova itself moves only a few servers of a host at a time.
    parallel = Int(2, lowest=1, highest=100)
    """
    How many servers move at the same time.

    Since 2.0.0.
    """

    retries = Int(1)
    """
    How many times a failed move is tried again, after the other servers.

    Since 2.0.0.
    """

    max_failures = Int(5, lowest=1)
    """
    After this many servers that could not be moved, no further move is begun.

    Since 2.0.0.
    """

    move_timeout = Duration("1h")
    """
    How long to wait for one move. Nova goes on with a move that takes longer, and the next run
    follows it.

    Since 2.0.0.
    """

    lock_timeout = Seconds(300)
    """
    The number of seconds to wait for another run on this machine that drains the same host.

    Since 2.0.0.
    """


class TargetOptions(Options):
    target = Raw(required=True)
    """
    The name of the compute service of the host, or the name or UUID of its only compute node. A
    list names several hosts.

    In a play over the hosts themselves, use C(inventory_hostname), or a variable with the name that
    Nova uses.

    A name must be a text. YAML takes a name such as V(12345) or V(no) for something else, also in a
    survey of AWX, and the role refuses it. Put such a name in quotes. Quotes that are a part of the
    value are removed.
    """

    stages = List(
        ["disable", "clean", "delete", "verify"],
        choices=["check", "disable", "drain", "clean", "delete", "verify"],
    )
    """
    The stages that the entry point V(main) runs after the check, which always runs. Their order is
    fixed. V(check) alone only checks. By default, all stages but V(drain).

    V(drain) moves the servers away before anything is removed. Without it, a host with servers is
    refused.

    Each stage is also an entry point with the same name, which ignores this variable.

    Stages are not tags. A run fails if C(--tags) or C(--skip-tags) names a stage.

    Since 2.0.0.
    """

    max_hosts = Int(1, lowest=1)
    """
    The maximum number of hosts that one run may decommission. If there are more, for example
    because C(--limit) is missing, nothing is changed.
    """


class HostDecommissionOptions(
    TargetOptions, ConnectionOptions, ProofOptions, DeletionOptions, MoveOptions
):
    disabled_reason = Text("")
    """
    The reason that Nova shows for the disabled service. If the service is disabled already, its
    present reason stays.

    Empty by default: then it is V(drained with osops.placement) for the entry point V(drain), and
    V(decommissioned with osops.placement) for any other.
    """

    remediate_kinds = List(
        RemediationOptions.remediate_kinds.default, choices=[kind.name for kind in CONSUMER_KINDS]
    )
    """
    The kinds of findings that may be changed. By default, those that are proven and that need no
    choice of the operator.

    V(unreverted_allocation), V(former_provider), V(misplaced_allocation), V(missing_allocation),
    V(wrong_amount) and V(wrong_owner) are allocations of live servers. They are corrected where the
    right allocation is certain.

    V(leaked_port) and V(leaked_child) are parts of such allocations that the server does not need.
    Only they are removed.

    V(unreverted_allocation) is corrected after a resize or cold migration whose guest is proven to
    be at the source. After a live migration it is only reported.
    """

    min_age = AgeOptions.min_age
    """
    The minimum age of an allocation, and of what Nova last did to its server. A younger allocation
    is protected, and blocks the host.
    """

    max_changes = Int(100)
    """
    The maximum number of changes of allocations for one host. If more are planned, none is made.
    """

    output_dir = Path("host-decommission")
    """
    The folder for the findings and the journals. Each host has a subfolder, and all files have mode
    0600.

    Hosts of two clouds or regions can have the same name. Set another folder for each cloud and
    region.

    A relative path starts in the current directory of the user.
    """

    fenced = Raw(False)
    """
    Your confirmation that no guest can still run on a host that is down, for example because its
    power is off. Only then does the run evacuate its servers. While a guest still runs, its
    evacuation starts it a second time, on the same volumes and with the same addresses.

    V(true) applies only to the hosts that O(target) names. A list, or a text with commas, names the
    hosts that it applies to.

    A host that Nova still sees up is refused.

    Since 2.0.0.
    """

    stop_unit = Text("")
    """
    The systemd unit of nova-compute, such as V(nova-compute) or V(openstack-nova-compute). It is
    stopped and disabled before the stage V(delete) if Nova says that nova-compute is up. The run
    then waits until Nova says that it is down.

    The entry point C(redeploy) restarts it if that completes evacuations from the host, which must
    be so before servers return.

    Empty by default: then no unit is stopped.

    Since 2.0.0.
    """

    stop_container = Text("")
    """
    The container of nova-compute, such as V(nova_compute). It is stopped, and restarted, in the
    same cases.

    Empty by default: then no container is stopped.

    Since 2.0.0.
    """

    container_engine = Text("docker")
    """
    The command that stops the container.

    Since 2.0.0.
    """

    stop_host = Text("")
    """
    The name of the machine in the inventory, on which O(stop_unit) or O(stop_container) is stopped
    or restarted. By default, the name in O(target), and always so for a list of several hosts.

    Since 2.0.0.
    """

    stop_timeout = Seconds(300, lowest=1)
    """
    The number of seconds to wait until Nova says that nova-compute is down. It must be more than
    C(service_down_time) in C(nova.conf).

    Since 2.0.0.
    """

    become = Bool(True)
    """
    Whether to become root on the machine to stop nova-compute.

    Since 2.0.0.
    """


class ReturnOptions(Options):
    return_ = Bool(False)
    """
    Whether the playbook C(drain_host) returns the hosts instead of draining them. Every other
    playbook and entry point refuses V(true).

    Since 2.0.0.
    """

    move_back = Bool(False)
    """
    Whether to move the servers back that a drain has moved away and that are still where they were
    moved to.

    Since 2.0.0.
    """

    journal = Raw("")
    """
    The path of one journal of moves. By default, all journals of the host in
    V(host_decommission_output_dir) count.

    If that folder is lost, the artifact C(host_decommission_drained) of the drain, or the text
    C(packed) in it.

    Since 3.0.0.
    """


class RedeployOptions(Options):
    restore = List(
        ["aggregates", "traits"], choices=["aggregates", "traits", "ratios", "allocations"]
    )
    """
    What is restored of the record of the decommissioning. Everything else is only named. An empty
    list only verifies.

    V(aggregates) are host aggregates, and aggregates that only Placement has. V(traits) are those
    that operators set.

    V(ratios) are allocation ratios. Add it only if C(nova.conf) leaves them to the API
    (C(initial_cpu_allocation_ratio) and the like), because otherwise nova-compute overwrites them.
    The API does not show which of the two applies.

    V(allocations) are those of live servers on the former provider of the host, which are moved to
    its present one. The findings have the kind V(former_provider). Once the former provider is
    empty, its tree is deleted. Nothing is moved unless every server with an allocation on the
    former provider is proven to be on this host.

    Since 2.0.0.
    """

    nova_manage = Text("nova-manage")
    """
    The command that runs C(nova-manage) on a controller, such as V(podman exec nova_api
    nova-manage) or V(sudo -u nova nova-manage).

    The command is split into words like a shell command, but no shell runs it, and variables in it
    are not replaced.

    Since 2.0.0.
    """

    nova_manage_host = Text("")
    """
    The inventory host that runs O(nova_manage), to assign a new host to its cell. Only this command
    runs there.

    The inventory determines the connection, the Python interpreter and the user of that host.

    Empty by default: then the command is only named.

    Since 2.0.0.
    """


class RetirementOptions(DeletionOptions):
    kinds = List(
        HostDecommissionOptions.remediate_kinds.default,
        choices=HostDecommissionOptions.remediate_kinds.choices,
    )
    """
    The kinds of findings that count as left over, see O(osops.placement.orphan_plan#module:kinds).
    Findings of other kinds are blockers.
    """

    disabled_reasons = List()
    """
    The reasons with which earlier tasks disable a compute service. The record of a service that is
    disabled for one of these has its state of an earlier record.

    Since 3.0.0.
    """

    ignore_other_regions = DeletionOptions.ignore_other_regions
    """
    Whether former providers of a host are to be deleted although other regions have a Nova of their
    own on the same Placement. Otherwise these are blockers.

    Only one Nova is asked for its compute nodes. Before you set this option, make sure that no
    compute node of the other Nova is behind these providers.

    Since 3.0.0.
    """


HOST_DECOMMISSION = Role(
    "host_decommission",
    {"main": HostDecommissionOptions, "return": ReturnOptions, "redeploy": RedeployOptions},
    # An artifact of earlier jobs.
    others=["host_decommission_drained"],
)
