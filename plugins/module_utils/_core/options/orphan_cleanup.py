# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables of the role `orphan_cleanup`."""

from __future__ import annotations

from ..._common.options import Bool, List, Names, Options, Path, Raw, Role, Text
from .connection import ConnectionOptions
from .guest_devices import GuestOptions
from .policy import PolicyOptions
from .run import (
    FailureOptions,
    LimitOptions,
    MemoryOptions,
    ProgressOptions,
    RemediationOptions,
    SightingOptions,
)
from .scope import ScopeOptions


class OrphanCleanupOptions(
    ConnectionOptions,
    ScopeOptions,
    PolicyOptions,
    GuestOptions,
    MemoryOptions,
    SightingOptions,
    RemediationOptions,
    LimitOptions,
    FailureOptions,
    ProgressOptions,
):
    hosts = ScopeOptions.hosts
    """
    ...

    Null, an empty text and an empty name are errors, because they would mean all hosts by mistake.
    """

    cells = ScopeOptions.cells
    """
    Read only the hosts of these cells, each by its name or UUID.

    No API of Nova says which hosts a cell has. The run asks C(nova-manage cell_v2 list_hosts), as
    O(nova_manage) and O(nova_manage_host) say, or takes the hosts from O(cell_hosts).

    Otherwise it is like O(aggregates).

    Since 2.0.0.
    """

    cell_hosts = ScopeOptions.cell_hosts
    """
    The hosts of each cell, as lists of names by the name or UUID of the cell. With it, O(cells)
    does not need C(nova-manage). By default, C(nova-manage) is asked.

    Since 2.0.0.
    """

    kinds = ScopeOptions.kinds
    """
    ...

    If this is empty, the kinds of O(remediate_kinds) are searched for as if they were named here.
    """

    mode = ScopeOptions.mode
    """
    How much to read. V(full) reads the servers of all hosts.

    V(incremental) reads what changed since the last run, and what had a finding then. It finds
    almost everything that V(full) finds; C(docs/scheduled-runs.md) lists the exceptions. Its memory
    is a file beside O(state) or else beside C(findings.json), which has to persist from run to run.
    """

    shard = ScopeOptions.shard
    """
    ...

    Give each shard an inventory host of its own, and use the playbook
    C(osops.placement.cleanup_clouds).
    """

    select = Text("")
    """
    A JMESPath expression over the list of findings that returns findings or their ids. Only these
    findings may be changed. The run reports the others too.

    Empty for all findings. An expression that returns nothing selects nothing, and leads to a
    warning.
    """

    guests = GuestOptions.guests
    """
    What M(osops.placement.hypervisor_guest_info) returned on hypervisors, one entry for each host.
    An entry is such a result, or the path of a JSON file with one, such as the C(guests.json) that
    the playbook C(osops.placement.cleanup_hypervisor) writes for each host.

    A server with a domain on another host than the one where Nova has the server keeps all its
    allocations, whatever the state of the domain and however old the result is.

    Only with them an allocation of the kind V(leaked_child) may be removed. For that, they have to
    be at most one hour old, also when the plan is applied.

    Since 2.0.0.
    """

    ignore_variables = List()
    """
    The names of extra variables that are for something else, or patterns such as V(kolla_*). A run
    refuses every other extra variable that is not one of the roles, of Ansible (such as
    C(ansible_user)) or of AWX, and that no template or condition of the playbook, its roles or the
    inventory uses.

    It holds for all roles of this collection. Templates in files that Ansible reads later, such as
    those of M(ansible.builtin.include_tasks) and M(ansible.builtin.template), are not known at the
    beginning.

    Since 3.0.0.
    """

    plan = Raw()
    """
    A reviewed plan, as a path or as its contents. A relative path starts in the current directory
    of the user.

    The run makes exactly the changes of the plan, verifies each of them again, and detects nothing.
    Without this variable, the run detects and plans itself.

    The artifact C(orphan_cleanup_plan), which every run exports, can be used as well. It is the
    whole plan as one text. The play fails if the text was edited or cut short, or if the plan has a
    kind that O(remediate_kinds) does not name.

    A dictionary with C(by_host), which a job over several inventory hosts exports, has a plan for
    each of them.

    Exclusions, protections and limits still apply. O(select) and, except for that artifact,
    O(remediate_kinds) have no effect, because they were applied when the plan was made; O(select)
    on the command line is refused.

    A plan is applied as a whole. O(hosts), O(consumers), O(projects), O(aggregates),
    O(availability_zones), O(cells), O(kinds) and O(shard) cannot be set with it.

    A plan that is defined and empty, or that cannot be read, is an error.
    """

    max_failures = FailureOptions.max_failures
    """
    The number of failed changes after which a run stops, also in the entry point V(restore). The
    remaining changes are V(skipped), with that reason.

    Several changes are made at the same time, so a few more than this number can fail.

    Since 2.0.0.
    """

    output_dir = Path("orphan-cleanup")
    """
    The folder for C(findings.json), C(plan.json), C(remediation.json), the reports and the
    journals. All files have mode 0600.

    A relative path starts in the current directory of the user.

    With several inventory hosts, and in the playbooks C(osops.placement.cleanup_clouds) and
    C(osops.placement.detect_clouds), each host has a subfolder with its name.
    """

    report_formats = List(
        ["json", "html"], choices=["json", "html", "markdown", "csv", "prometheus"]
    )
    """
    The formats of the reports in O(output_dir). Runs with C(--check) write them too.

    V(json) is C(findings.json), which every run writes.
    """

    metrics_path = Path("")
    """
    The path of the metrics for Prometheus, instead of a file in O(output_dir). The file has mode
    0644. An example is C(/var/lib/prometheus/node-exporter/placement_orphans.prom). The name must
    end in C(.prom), and the folder must exist.

    With this variable, V(prometheus) need not be one of O(report_formats).

    With several inventory hosts, each host has a file of its own with the name of the host in its
    name.

    Empty by default: then the metrics are written only if V(prometheus) is one of the formats.
    """

    state = Path("")
    """
    The path of a file that remembers when each finding was first seen, so that a run can mark new
    findings.

    With several inventory hosts, each host has a file in a subfolder of its own.

    Empty by default: then the run reads the C(findings.json) of the previous run in O(output_dir).
    """

    notify_url = Text("", secret=True)
    """
    The address of a webhook. The run sends a notification (C(POST)) to it when a finding is new or
    something failed, with C(--check) too.

    Empty by default: then no notification is sent.
    """

    notify_format = Text("json", choices=["json", "text"])
    """
    The format of the notification. V(json) is data for any program. V(text) is a text that Slack,
    Mattermost and Microsoft Teams take.
    """

    notify_required = Bool(False)
    """
    Whether the play fails when the notification cannot be delivered. By default, the run only
    reports this.
    """

    nova_manage = Text("nova-manage")
    """
    The command that runs C(nova-manage) on a controller, for the entry point V(heal) and for
    O(cells). Examples are V(podman exec nova_api nova-manage), V(docker exec nova_api nova-manage)
    and V(sudo -u nova nova-manage).

    The command is split into words like a shell command, but no shell runs it, and variables in it
    are not replaced.
    """

    nova_manage_host = Text("")
    """
    The inventory host that runs O(nova_manage). Only this command runs there. That host needs
    neither access to the APIs nor openstacksdk.

    The inventory determines the connection, the Python interpreter and the user of that host.
    C(ansible_python_interpreter) among the variables of the play would apply to it as well.

    Empty by default: then the command runs on the host of the play.
    """

    fail_on = Text("error", choices=["never", "error", "partial", "undecided", "findings"])
    """
    When the play fails. Each value includes those above it.

    V(never) - only when a run has no result at all, for example because an API, a plan or a journal
    cannot be read.

    V(error) - also when nothing may be changed because the reading was not sound, a limit is
    exceeded, or a change failed.

    V(partial) - also when hosts were not judged because their cell does not answer. The run first
    does its work on the other hosts.

    V(undecided) - also when a consumer is undecided.

    V(findings) - also when findings are left, including those that are only reported.
    """


class RestoreOptions(Options):
    journal = Raw("")
    """
    The journal for the entry point V(restore), as a path or as its records. A relative path starts
    in the current directory of the user. V(restore) fails without it.

    The artifact C(orphan_cleanup_journal), which every run that changed something exports, can be
    used as well. It is a list with a text for each run. If one of them was edited or cut short,
    nothing is restored and the play fails.

    A dictionary with C(by_host), which a job over several inventory hosts exports, has a journal
    for each of them.
    """

    restore_consumers = Names()
    """
    The UUIDs of the consumers whose allocations the entry point V(restore) restores. If
    O(restore_providers) is empty too, it restores everything in the journal.
    """

    restore_providers = Names()
    """
    The names or UUIDs of the roots of deleted provider trees whose aggregates and traits the entry
    point V(restore) restores. If O(restore_consumers) is empty too, it restores everything in the
    journal.

    Since 2.0.0.
    """


ORPHAN_CLEANUP = Role(
    "orphan_cleanup",
    {"main": OrphanCleanupOptions, "restore": RestoreOptions},
    others=(
        # The hosts of the playbooks cleanup_clouds and detect_clouds.
        "orphan_cleanup_clouds",
        # An artifact of earlier jobs. The other artifacts are variables of the role.
        "orphan_cleanup_run",
        # Our own playbooks set it.
        "_orphan_cleanup_one_of_many",
    ),
)
