# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wrong variables, and the sentence about each: a table for the unit and the integration tests."""

from __future__ import annotations

import typing as t


class Bad(t.NamedTuple):
    """One wrong input.

    run: a playbook, or a role with its entry point, such as `hypervisor_cleanup purge`.
    given: what follows `-e` on the command line.
    sentence: a part of the message.
    """

    run: str
    given: str
    sentence: str


LONG = "x" * 10_000
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

# The first row of each part is run as a user would in `make test`, the others in `make test-all`.
BAD: t.Mapping[str, tuple[Bad, ...]] = {
    "a name that is no variable": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_host=compute-1",
            "orphan_cleanup_host is not a variable of the role orphan_cleanup; "
            "did you mean orphan_cleanup_hosts? Nothing was changed.",
        ),
        Bad(
            "cleanup_orphans", "orphan_cleanup_consumer=x", "did you mean orphan_cleanup_consumers?"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_forgotten_min_age=1d",
            "orphan_cleanup_forgotten_min_age was renamed in version 2.0.0: write "
            "orphan_cleanup_unknown_min_age.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_project=x", "did you mean orphan_cleanup_projects?"),
        Bad("cleanup_orphans", "orphan_cleanup_kind=x", "did you mean orphan_cleanup_kinds?"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_aggregate=rack-7",
            "did you mean orphan_cleanup_aggregates?",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_host_aggregates=rack-7",
            "did you mean orphan_cleanup_aggregates?",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_availability_zone=az1",
            "did you mean orphan_cleanup_availability_zones?",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_zones=az1",
            "orphan_cleanup_zones is not a variable of the role orphan_cleanup",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_cell=cell1", "did you mean orphan_cleanup_cells?"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_cells_hosts: {cell1: [a]}}",
            "did you mean orphan_cleanup_cell_hosts?",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_max_change=5", "mean orphan_cleanup_max_changes?"),
        Bad("cleanup_orphans", "orphan_cleanup_Hosts=x", "did you mean orphan_cleanup_hosts?"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_exclude_consumer=x",
            "orphan_cleanup_exclude_consumers?",
        ),
        Bad(
            "cleanup_orphans", "orphan_cleanup_remediate_kind=x", "orphan_cleanup_remediate_kinds?"
        ),
        Bad("cleanup_orphans", "orphan_cleanup_plans=x", "did you mean orphan_cleanup_plan?"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_frobnicate=x",
            "orphan_cleanup_frobnicate is not a variable of the role orphan_cleanup. Nothing",
        ),
        Bad("detect_orphans", "orphan_cleanup_output=x", "did you mean orphan_cleanup_output_dir?"),
        Bad(
            "restore_allocations",
            "orphan_cleanup_journals=x",
            "did you mean orphan_cleanup_journal?",
        ),
        Bad(
            "heal_allocations",
            "orphan_cleanup_nova_manag=x",
            "did you mean orphan_cleanup_nova_manage?",
        ),
        Bad(
            "cleanup_orphans", "{orphan_cleanup: {hosts: [a]}}", "its variables begin with orphan_"
        ),
        Bad("cleanup_orphans", "orphan-cleanup-hosts=a", "did you mean orphan_cleanup_hosts?"),
        Bad("cleanup_orphans", "{orphan_cleanup_: 1}", "orphan_cleanup_ is not a variable"),
        Bad("decommission_host", "host_decommission_targets=c", "mean host_decommission_target?"),
        Bad("decommission_host", "host_decommission_stage=check", "mean host_decommission_stages?"),
        Bad("drain_host", "host_decommission_fence=true", "mean host_decommission_fenced?"),
        Bad("drain_host", "host_decommission_returns=true", "mean host_decommission_return?"),
        Bad("hypervisor_cleanup detect", "hypervisor_cleanup_hosst=c", "hypervisor_cleanup_host?"),
        Bad("hypervisor_cleanup purge", "hypervisor_cleanup_purge_ages=c", "cleanup_purge_age?"),
        Bad(
            "orphan_cleanup report", "orphan_cleanup_report_format=html", "cleanup_report_formats?"
        ),
    ),
    "a prefix with one mistake": (
        Bad(
            "cleanup_orphans",
            "orphan_clenaup_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans",
            "orphans_cleanup_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans", "orphan_cleanp_hosts=compute-1", "did you mean orphan_cleanup_hosts?"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleenup_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans", "rphan_cleanup_hosts=compute-1", "did you mean orphan_cleanup_hosts?"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanups_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans", "orphan_cleanuphosts=compute-1", "did you mean orphan_cleanup_hosts?"
        ),
        Bad(
            "cleanup_orphans",
            "orphan__cleanup_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans",
            "ORPHAN_CLEANUP_HOSTS=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "cleanup_orphans", "orphanCleanupHosts=compute-1", "did you mean orphan_cleanup_hosts?"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_clean_up_hosts=compute-1",
            "did you mean orphan_cleanup_hosts?",
        ),
        Bad(
            "decommission_host",
            "host_decomission_target=c",
            "did you mean host_decommission_target?",
        ),
        Bad(
            "decommission_host",
            "host_decommision_target=c",
            "did you mean host_decommission_target?",
        ),
        # A variable of another role.
        Bad(
            "cleanup_orphans", "host_decommision_target=c", "did you mean host_decommission_target?"
        ),
        Bad("cleanup_orphans", "hypervisors_cleanup_remove=c", "mean hypervisor_cleanup_remove?"),
        Bad("decommission_host", "orphan_cleanup_host=c", "did you mean orphan_cleanup_hosts?"),
        Bad("hypervisor_cleanup main", "hypervisor_clenup_host=c", "mean hypervisor_cleanup_host?"),
        # Not the prefix of the role, but the name of the playbook.
        Bad("cleanup_orphans", "cleanup_orphans_hosts=c", "write orphan_cleanup_hosts,"),
        Bad("decommission_host", "decommission_host_target=c", "write host_decommission_target,"),
        Bad("drain_host", "drain_host_target=c", "write host_decommission_target,"),
    ),
    "a name that is internal": (
        Bad(
            "cleanup_orphans",
            "_orphan_cleanup_output_dir=/tmp",
            "_orphan_cleanup_output_dir is internal to the role orphan_cleanup and cannot be set; "
            "did you mean orphan_cleanup_output_dir?",
        ),
        Bad("cleanup_orphans", "_orphan_cleanup_run=x", "_orphan_cleanup_run is internal"),
        Bad(
            "decommission_host",
            "_host_decommission_stages=delete",
            "_host_decommission_stages is internal",
        ),
        Bad(
            "hypervisor_cleanup main",
            "_hypervisor_cleanup_read=x",
            "_hypervisor_cleanup_read is internal",
        ),
    ),
    "a scope that would mean everything": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_hosts=",
            "orphan_cleanup_hosts has an empty name. Leave the variable out, or write [], if you "
            "mean all.",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_hosts: null}", "orphan_cleanup_hosts is null"),
        Bad("cleanup_orphans", "{orphan_cleanup_hosts: ~}", "orphan_cleanup_hosts is null"),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_hosts: [""]}',
            "orphan_cleanup_hosts has an empty name",
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_hosts: [" "]}',
            "orphan_cleanup_hosts has an empty name",
        ),
        Bad(
            "cleanup_orphans", "{orphan_cleanup_hosts: [a, null]}", "orphan_cleanup_hosts has null"
        ),
        Bad("cleanup_orphans", "orphan_cleanup_hosts=[]", "orphan_cleanup_hosts is the text '[]'"),
        Bad("cleanup_orphans", "orphan_cleanup_hosts=a,", "orphan_cleanup_hosts has an empty name"),
        Bad("cleanup_orphans", "orphan_cleanup_hosts='a, b'", "orphan_cleanup_hosts has ' b'"),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_consumers: [""]}',
            "orphan_cleanup_consumers has an empty",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_consumers: null}",
            "orphan_cleanup_consumers is null",
        ),
        Bad(
            "cleanup_orphans", "{orphan_cleanup_projects: null}", "orphan_cleanup_projects is null"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_projects=",
            "orphan_cleanup_projects has an empty name",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_aggregates=",
            "orphan_cleanup_aggregates has an empty name",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_aggregates: null}",
            "orphan_cleanup_aggregates is null",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_aggregates: [rack-7, null]}",
            "orphan_cleanup_aggregates has null",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_aggregates=[]",
            "orphan_cleanup_aggregates is the text '[]'",
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_availability_zones: [""]}',
            "orphan_cleanup_availability_zones has an empty name",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_availability_zones: null}",
            "orphan_cleanup_availability_zones is null",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_availability_zones='az1, az2'",
            "orphan_cleanup_availability_zones has ' az2'",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_cells: null}", "orphan_cleanup_cells is null"),
        Bad("cleanup_orphans", "orphan_cleanup_cells=", "orphan_cleanup_cells has an empty name"),
        Bad("cleanup_orphans", "{orphan_cleanup_cells: {a: b}}", "is a dictionary, which is not"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_cell_hosts: null}",
            "orphan_cleanup_cell_hosts is null",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_cells: [cell1], orphan_cleanup_cell_hosts: {cell1: compute-1}}",
            "orphan_cleanup_cell_hosts has for cell 'cell1' what is not a list of",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_cell_hosts: {cell1: []}}",
            "orphan_cleanup_cell_hosts has for cell 'cell1' what is not a list of",
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_cell_hosts: {cell1: [""]}}',
            "orphan_cleanup_cell_hosts has for cell 'cell1' what is not a list of",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_cell_hosts: {cell1: [no]}}",
            "orphan_cleanup_cell_hosts has for cell 'cell1' what is not a list of",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_cell_hosts: [a]}", "orphan_cleanup_cell_hosts is"),
        Bad("cleanup_orphans", "{orphan_cleanup_shard: null}", "orphan_cleanup_shard is null"),
        Bad("cleanup_orphans", "orphan_cleanup_shard=", "orphan_cleanup_shard is an empty text"),
        Bad("cleanup_orphans", "orphan_cleanup_shard=9/8", "orphan_cleanup_shard is '9/8'"),
        Bad("cleanup_orphans", "orphan_cleanup_shard=two", "orphan_cleanup_shard is 'two'"),
        Bad(
            "restore_allocations",
            '{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_restore_consumers: [""]}',
            "orphan_cleanup_restore_consumers has an empty name",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_restore_providers: null}",
            "orphan_cleanup_restore_providers is null",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_hosts: [compute-1]}",
            "orphan_cleanup_hosts and orphan_cleanup_plan are both set, and a reviewed plan is "
            "applied as a whole: leave out orphan_cleanup_hosts, or detect and plan again with it.",
        ),
        Bad(
            "orphan_cleanup remediate",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_projects: [web]}",
            "orphan_cleanup_projects and orphan_cleanup_plan are both set",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_aggregates: [rack-7]}",
            "orphan_cleanup_aggregates and orphan_cleanup_plan are both set",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_availability_zones: [az1]}",
            "orphan_cleanup_availability_zones and orphan_cleanup_plan are both set",
        ),
        Bad(
            "orphan_cleanup remediate",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_cells: [cell1]}",
            "orphan_cleanup_cells and orphan_cleanup_plan are both set",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_plan: plan.json, orphan_cleanup_select: '[0]'}",
            "orphan_cleanup_select and orphan_cleanup_plan are both set",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_select: '[0]'}",
            "orphan_cleanup_select does not limit this run: write orphan_cleanup_restore_consumers"
            " or orphan_cleanup_restore_providers.",
        ),
    ),
    "a cloud without a name": (
        Bad("cleanup_orphans", "orphan_cleanup_cloud=", "orphan_cleanup_cloud is empty: leave it"),
        Bad("drain_host", "host_decommission_region_name=' '", "region_name is empty: leave it"),
    ),
    "a kind that is not searched": (
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_kinds: [extra_host], orphan_cleanup_remediate_kinds: [wrong_owner]}",
            "orphan_cleanup_remediate_kinds has no kind of orphan_cleanup_kinds, so nothing could "
            "be found that may be changed: add wrong_owner to orphan_cleanup_kinds, or leave that "
            "out.",
        ),
    ),
    "a kind that is only reported": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_remediate_kinds=extra_host,stale_service",
            "orphan_cleanup_remediate_kinds has 'stale_service', which is not a kind that can be "
            "changed: stale_service is only reported. Leave it out.",
        ),
    ),
    "a limit that has no effect": (
        Bad(
            "cleanup_orphans",
            "hosts=compute-1",
            "Nothing in this run uses the variable hosts: write orphan_cleanup_hosts, or add hosts "
            "to orphan_cleanup_ignore_variables if it is for another tool. Nothing was changed.",
        ),
        Bad(
            "restore_allocations",
            f"{{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_consumers: [{UUID}]}}",
            "orphan_cleanup_consumers does not limit this run: write "
            "orphan_cleanup_restore_consumers.",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_hosts: compute-1}",
            "orphan_cleanup_hosts does not limit this run: write orphan_cleanup_restore_providers.",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: /etc/hostname, orphan_cleanup_shard: 1/2}",
            "write orphan_cleanup_restore_consumers or orphan_cleanup_restore_providers.",
        ),
        Bad(
            "restore_allocations",
            f"{{orphan_cleanup_journal: /etc/hostname, consumers: {UUID}}}",
            "uses the variable consumers: write orphan_cleanup_restore_consumers,",
        ),
        Bad(
            "cleanup_orphans",
            f"orphan_cleanup_restore_consumers={UUID}",
            "orphan_cleanup_restore_consumers does not limit this run: write "
            "orphan_cleanup_consumers.",
        ),
        Bad(
            "detect_orphans",
            "orphan_cleanup_restore_providers=compute-1",
            "write orphan_cleanup_hosts.",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_clouds=north",
            "orphan_cleanup_clouds does not limit this run: write orphan_cleanup_cloud.",
        ),
        Bad(
            "heal_allocations",
            "orphan_cleanup_kinds=missing_allocation",
            "orphan_cleanup_kinds does not limit this run: leave it out.",
        ),
        Bad(
            "cleanup_orphans",
            "host=compute-1",
            "uses the variable host: write orphan_cleanup_hosts,",
        ),
        Bad(
            "cleanup_orphans",
            f"consumers={UUID}",
            "uses the variable consumers: write orphan_cleanup_consumers,",
        ),
        Bad(
            "cleanup_orphans",
            "plan=plan.json",
            "uses the variable plan: write orphan_cleanup_plan,",
        ),
        Bad("cleanup_orphans", "max_changes=0", "write orphan_cleanup_max_changes,"),
        Bad(
            "cleanup_orphans",
            "cloud=north",
            "uses the variable cloud: write orphan_cleanup_cloud,",
        ),
        Bad(
            "cleanup_orphans",
            "clouds=north",
            "uses the variable clouds: write orphan_cleanup_cloud,",
        ),
        Bad("cleanup_orphans", "cleanup_hosts=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "orphan-hosts=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "limit=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "target=compute-1", "write orphan_cleanup_hosts,"),
        Bad(
            "cleanup_orphans",
            "OS_CLOUD=north",
            "uses the variable OS_CLOUD: write orphan_cleanup_cl",
        ),
        Bad("cleanup_orphans", "region=RegionTwo", "write orphan_cleanup_region_name,"),
        Bad("cleanup_orphans", "server=web-1", "write orphan_cleanup_consumers,"),
        Bad("cleanup_orphans", "zone=az1", "write orphan_cleanup_availability_zones,"),
        Bad(
            "cleanup_clouds",
            "hosts=compute-1",
            "uses the variable hosts: write orphan_cleanup_hosts,",
        ),
        Bad(
            "decommission_host",
            "orphan_cleanup_remediate_kinds=extra_host",
            "orphan_cleanup_remediate_kinds does not limit this run: write "
            "host_decommission_remediate_kinds. Nothing was changed.",
        ),
        Bad("decommission_host", "stages=check", "write host_decommission_stages,"),
        Bad("decommission_host", "delete_agents=false", "write host_decommission_delete_agents,"),
        Bad("drain_host", "return=true", "write host_decommission_return,"),
        Bad(
            "drain_host",
            "host_decommission_stages=check",
            "leave it out, and give --check for check mode.",
        ),
        Bad("hypervisor_cleanup purge", "purge_age=90d", "write hypervisor_cleanup_purge_age,"),
        Bad(
            "cleanup_orphans",
            "dry_run=true",
            "uses the variable dry_run: for check mode, give --check to ansible-playbook, or "
            "choose the type Check for the job.",
        ),
        Bad("cleanup_orphans", "dry-run=yes", "uses the variable dry-run: for check mode, give"),
        Bad("cleanup_orphans", "dry=yes", "uses the variable dry: for check mode, give --check"),
        Bad("cleanup_orphans", "simulate=1", "uses the variable simulate: for check mode"),
        Bad("cleanup_orphans", "orphan_clean_hosts=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "hostname=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "compute_node=compute-1", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "exclude_hosts=x", "write orphan_cleanup_exclude_providers,"),
        Bad("cleanup_orphans", f"uuid={UUID}", "write orphan_cleanup_consumers,"),
        Bad("cleanup_orphans", "frobnicate=", "uses the variable frobnicate: leave it out, or add"),
        Bad("drain_host", "compute=compute-1", "uses the variable compute: leave it out"),
        Bad(
            "cleanup_orphans",
            "host_decommission_target=compute-1",
            "host_decommission_target does not limit this run: write orphan_cleanup_hosts.",
        ),
        Bad("cleanup_orphans", "ansible_orphan_cleanup_hosts=a", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "ansible_dry_run=yes", "for check mode, give --check"),
        Bad("cleanup_orphans", "awx_job_limit=a", "write orphan_cleanup_hosts,"),
        Bad("cleanup_orphans", "host_decommission_min_age=30d", "write orphan_cleanup_min_age."),
        Bad(
            "decommission_host",
            "orphan_cleanup_max_changes=1",
            "write host_decommission_max_changes.",
        ),
        Bad("cleanup_orphans", "host_decommission_stages=check", "leave it out."),
    ),
    "a value of another type": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_max_changes=many",
            "orphan_cleanup_max_changes is 'many', which is not a whole number.",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_max_changes: yes}",
            "is true, which is not a whole number",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_max_changes: [1]}",
            "is a list, which is not a whole",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_max_changes: null}",
            "orphan_cleanup_max_changes is null",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_max_changes=",
            "is an empty text, which is not a whole",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_max_changes=1.5",
            "is '1.5', which is not a whole number",
        ),
        Bad(
            "cleanup_orphans",
            f"orphan_cleanup_max_changes={LONG}",
            "…' (10000 characters), which is not",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_max_share=few", "is 'few', which is not a number"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_max_share=10%",
            "orphan_cleanup_max_share is '10%', which is not a number: write 0.1.",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_max_share: on}", "is true, which is not a number"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_hosts: {a: b}}",
            "is a dictionary, which is not a list",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_hosts: [{a: b}]}",
            "orphan_cleanup_hosts has a dictionary",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_hosts: [[a]]}", "orphan_cleanup_hosts has a list"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_hosts: [no]}",
            "has false, which is not a text: put a text",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_hosts: [2026-01-01]}",
            "has the date 2026-01-01, which",
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_hosts: ["a\\nb"]}',
            "has 'a\\nb', which has an invisible",
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_hosts: ["\\u202ecompute-1"]}',
            "has '\\u202ecompute-1', which has an invisible character",
        ),
        Bad("cleanup_orphans", "{orphan_cleanup_hosts: true}", "is true, which is not a list"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_region_name: no}",
            "is false, which is not a text: put",
        ),
        Bad(
            "cleanup_orphans", "{orphan_cleanup_region_name: [a]}", "is a list, which is not a text"
        ),
        Bad("cleanup_orphans", "orphan_cleanup_notify_required=maybe", "neither true nor false"),
        Bad("cleanup_orphans", "orphan_cleanup_validate_certs=jein", "neither true nor false"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_auth=secret-text",
            "orphan_cleanup_auth is not a dictionary.",
        ),
        Bad(
            "cleanup_orphans", "{orphan_cleanup_output_dir: [a]}", "is a list, which is not a path"
        ),
        Bad(
            "cleanup_orphans",
            '{orphan_cleanup_output_dir: "a\\u0000b"}',
            "it has a control character",
        ),
        Bad(
            "cleanup_orphans",
            'orphan_cleanup_exclude_consumers=["a"',
            "orphan_cleanup_exclude_consumers is the text '[\"a\"', which is not a JSON list",
        ),
        Bad(
            "decommission_host",
            "host_decommission_max_hosts=all",
            "is 'all', which is not a whole number",
        ),
        Bad("decommission_host", "{host_decommission_delete_agents: 7}", "neither true nor false"),
        Bad(
            "host_decommission redeploy",
            "host_decommission_rewrite_allocations=2",
            "neither true nor false",
        ),
        Bad("hypervisor_cleanup main", "{hypervisor_cleanup_become: 7}", "neither true nor false"),
        Bad(
            "hypervisor_cleanup main",
            "{hypervisor_cleanup_virsh: [a]}",
            "is a list, which is not a text",
        ),
    ),
    "a word that makes a host fenced": (
        Bad(
            "drain_host",
            "host_decommission_fenced=1",
            "host_decommission_fenced is '1', which is neither true nor false nor a list of hosts: "
            "write true if no guest can still run on the hosts of host_decommission_target.",
        ),
        Bad("drain_host", "{host_decommission_fenced: 1}", "is 1, which is neither true nor false"),
        Bad("drain_host", "{host_decommission_fenced: [true]}", "is a list, which is neither true"),
        Bad("drain_host", '{host_decommission_fenced: ["no"]}', "is a list, which is neither true"),
        Bad(
            "drain_host", "{host_decommission_fenced: {a: b}}", "is a dictionary, which is neither"
        ),
        Bad("drain_host", "host_decommission_fenced='yes really'", "is 'yes really', which is"),
        Bad("decommission_host", "host_decommission_fenced=[compute-1]", "is '[compute-1]', which"),
        Bad("drain_host", "host_decommission_return=back", "neither true nor false"),
        Bad("host_decommission return", "host_decommission_move_back=all", "neither true nor"),
    ),
    "a value that is no choice": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_remediate_kinds=deleted_servers",
            "orphan_cleanup_remediate_kinds has 'deleted_servers', which is not a known value; "
            "did you mean deleted_server?",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_kinds=wrong_host",
            "orphan_cleanup_kinds has 'wrong_host', which is not a known value: it was renamed in "
            "version 2.0.0, write extra_host.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_kinds=everything", "is not one of deleted_server, "),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_kinds=",
            "is an empty text, which is not a list: write []",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_kinds='extra_host, wrong_owner'",
            "not wrong_owner: leave",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_remediate_kinds=stuck_migration",
            "has 'stuck_migration', which is not",
        ),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_remediate_kinds: null}",
            "orphan_cleanup_remediate_kinds is null",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_mode=fast",
            "is 'fast', which is not one of full, incremental",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_mode=Full", "did you mean full?"),
        Bad("cleanup_orphans", "orphan_cleanup_mode=triage", "version 3.0.0, write incremental."),
        Bad("cleanup_orphans", "{orphan_cleanup_mode: null}", "orphan_cleanup_mode is null"),
        Bad("cleanup_orphans", "orphan_cleanup_fail_on=finding", "did you mean findings?"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_report_formats=pdf",
            "is not one of json, html, markdown",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_report_formats=htm", "did you mean html?"),
        Bad("cleanup_orphans", "orphan_cleanup_report_formats=junit", "version 3.0.0, write json."),
        Bad("cleanup_orphans", "orphan_cleanup_notify_format=Slack", "version 3.0.0, write text."),
        Bad("cleanup_orphans", "orphan_cleanup_notify_format=txt", "did you mean text?"),
        Bad("cleanup_orphans", "orphan_cleanup_interface=admins", "did you mean admin?"),
        Bad(
            "decommission_host",
            "host_decommission_stages='disable, clean'",
            "is not clean: leave out",
        ),
        Bad(
            "decommission_host",
            "host_decommission_stages=empty",
            "is not one of check, disable, drain, clean",
        ),
        Bad("decommission_host", "host_decommission_stages=drained", "did you mean drain?"),
        Bad("drain_host", "host_decommission_cold=all", "is not one of shut_off, active"),
        Bad("drain_host", "host_decommission_cold=actve", "did you mean active?"),
        Bad(
            "host_decommission redeploy",
            "host_decommission_restore=trait",
            "did you mean traits?",
        ),
        Bad(
            "hypervisor_cleanup main",
            "hypervisor_cleanup_remediate_kinds=leftover",
            "leftover_domain",
        ),
    ),
    "a number out of bounds": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_max_share=10",
            "orphan_cleanup_max_share is 10, and must be a fraction from 0 to 1: if 10 % is meant, "
            "write 0.1.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_max_share=-0.1", "is -0.1, and must be a fraction"),
        Bad("cleanup_orphans", "orphan_cleanup_max_share=nan", "is nan, and must be a fraction"),
        Bad("cleanup_orphans", "orphan_cleanup_max_share=1000", "write 0.1 for 10 %."),
        Bad("cleanup_orphans", "orphan_cleanup_max_changes=-1", "is -1, and must be 0 or more."),
        Bad("cleanup_orphans", "orphan_cleanup_max_failures=0", "is 0, and must be 1 or more."),
        Bad("cleanup_orphans", "orphan_cleanup_max_failures=-5", "is -5, and must be 1 or more."),
        Bad("cleanup_orphans", "orphan_cleanup_min_sightings=0", "is 0, and must be 1 or more."),
        Bad("cleanup_orphans", "orphan_cleanup_progress_every=-1", "is -1, and must be 0 or more."),
        Bad(
            "cleanup_orphans", "orphan_cleanup_api_timeout=0", "is 0, and must be from 1 to 86400."
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_api_timeout=-3",
            "is -3, and must be from 1 to 86400.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_api_timeout=9999999999", "must be from 1 to 86400."),
        Bad("decommission_host", "host_decommission_max_hosts=0", "is 0, and must be 1 or more."),
        Bad(
            "decommission_host", "host_decommission_max_changes=-1", "is -1, and must be 0 or more."
        ),
        Bad("drain_host", "host_decommission_parallel=0", "is 0, and must be from 1 to 100."),
        Bad("drain_host", "host_decommission_parallel=101", "is 101, and must be from 1 to 100."),
        Bad("drain_host", "host_decommission_retries=-1", "is -1, and must be 0 or more."),
        Bad("drain_host", "host_decommission_max_failures=0", "is 0, and must be 1 or more."),
        Bad("drain_host", "host_decommission_lock_timeout=-1", "must be from 0 to 86400."),
        Bad("decommission_host", "host_decommission_stop_timeout=0", "is 0, and must be from 1"),
        Bad("hypervisor_cleanup main", "hypervisor_cleanup_delay=-1", "must be from 0 to 86400."),
        Bad("hypervisor_cleanup main", "hypervisor_cleanup_max_changes=-1", "must be 0 or more."),
    ),
    "a duration": (
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_min_age=1w",
            "orphan_cleanup_min_age is '1w', which is not a duration: write seconds or a number "
            "with s, m, h or d, such as 90s, 15m, 24h or 7d.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_min_age=1:00", "orphan_cleanup_min_age is '1:00'"),
        Bad("cleanup_orphans", "orphan_cleanup_min_age=010", "orphan_cleanup_min_age is '010'"),
        Bad("cleanup_orphans", "orphan_cleanup_min_age=010m", "is '010m', which is not"),
        Bad("cleanup_orphans", "orphan_cleanup_api_timeout=010", "'010', which is not a whole"),
        Bad("drain_host", "host_decommission_stop_timeout=1:00", "'1:00', which is not a whole"),
        Bad("cleanup_orphans", "{orphan_cleanup_min_age: yes}", "is true, which is not a text"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_min_age: 2026-01-01}",
            "is '2026-01-01', which is not",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_unknown_min_age=-1h",
            "orphan_cleanup_unknown_min_age is '-1h'",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_unconfirmed_min_age=x",
            "cleanup_unconfirmed_min_age is 'x'",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_stuck_min_age=1.5h",
            "orphan_cleanup_stuck_min_age is '1.5h'",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_stale_min_age='1 day'",
            "cleanup_stale_min_age is '1 day'",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_full_every=",
            "orphan_cleanup_full_every is empty: leave it out for its default.",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_known_for=1d",
            "3.0.0: write orphan_cleanup_min_sightings",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_require_durable_output=true",
            "leave it out, and set orphan_cleanup_output_dir to a mounted folder",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_min_age=99999999d", "which is more than 100 years"),
        Bad("cleanup_orphans", "orphan_cleanup_min_age=1Ⅷ", "orphan_cleanup_min_age is '1Ⅷ'"),
        Bad(
            "decommission_host", "host_decommission_min_age=1H", "host_decommission_min_age is '1H'"
        ),
        Bad("drain_host", "host_decommission_move_timeout=1w", "is not a duration: write seconds"),
        Bad(
            "hypervisor_cleanup purge",
            "hypervisor_cleanup_purge_age=old",
            "cleanup_purge_age is 'old'",
        ),
        Bad(
            "hypervisor_cleanup purge",
            "hypervisor_cleanup_purge_age=30",
            "has no unit: write 30d for days",
        ),
        Bad(
            "hypervisor_cleanup main",
            "hypervisor_cleanup_log_since=ever",
            "cleanup_log_since is 'ever'",
        ),
    ),
    "a file or an address": (
        Bad("cleanup_orphans", "orphan_cleanup_output_dir=", "orphan_cleanup_output_dir is empty"),
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_output_dir: null}",
            "orphan_cleanup_output_dir is null",
        ),
        Bad(
            "cleanup_orphans", "orphan_cleanup_output_dir=' '", "orphan_cleanup_output_dir is empty"
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_output_dir=/etc/hostname",
            "is a file and not a folder",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_output_dir=/etc/hostname/x",
            "is a file and not a folder",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_metrics_path=/tmp/x.txt", "must end in .prom"),
        Bad("cleanup_orphans", "orphan_cleanup_metrics_path=/tmp", "must end in .prom"),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_metrics_path=/nowhere/x.prom",
            "folder /nowhere does not exist",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_state=/tmp",
            "is '/tmp', which is a folder and not a file",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_ca_cert=/nowhere/ca.pem",
            "and there is no such file.",
        ),
        Bad("cleanup_orphans", "orphan_cleanup_client_key=/tmp", "and there is no such file."),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_guests=/nowhere/guests.json",
            "orphan_cleanup_guests names '/nowhere/guests.json', and there is no such file.",
        ),
        Bad(
            "cleanup_orphans",
            "orphan_cleanup_notify_url=hooks.example",
            "orphan_cleanup_notify_url is not an",
        ),
        Bad(
            "restore_allocations",
            "orphan_cleanup_max_changes=5",
            "orphan_cleanup_journal is empty: set it",
        ),
        Bad(
            "restore_allocations",
            "orphan_cleanup_journal=",
            "orphan_cleanup_journal is empty: set it",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: null}",
            "orphan_cleanup_journal is empty: set",
        ),
        Bad(
            "restore_allocations",
            "orphan_cleanup_journal=/nowhere/journal.jsonl",
            "orphan_cleanup_journal is '/nowhere/journal.jsonl', and there is no file "
            "/nowhere/journal.jsonl: name the journal of the run that you want to undo.",
        ),
        Bad(
            "restore_allocations",
            "{orphan_cleanup_journal: {by_host: {}}}",
            "orphan_cleanup_journal has no journal for the host localhost.",
        ),
        Bad(
            "decommission_host",
            "host_decommission_output_dir=",
            "host_decommission_output_dir is empty",
        ),
        Bad(
            "host_decommission return",
            "host_decommission_moves_journal=/nowhere/moves.jsonl",
            "is '/nowhere/moves.jsonl', and there is no such file.",
        ),
        Bad(
            "drain_host",
            "host_decommission_drained_reason=x",
            "was removed in version 3.0.0: write host_decommission_disabled_reason.",
        ),
        Bad(
            "hypervisor_cleanup main",
            "hypervisor_cleanup_output_dir=",
            "cleanup_output_dir is empty",
        ),
        Bad(
            "hypervisor_cleanup main",
            "hypervisor_cleanup_instances_path=",
            "instances_path is empty",
        ),
        Bad(
            "hypervisor_cleanup main",
            "hypervisor_cleanup_host=",
            "hypervisor_cleanup_host is empty",
        ),
        Bad(
            "heal_allocations", "orphan_cleanup_nova_manage=", "orphan_cleanup_nova_manage is empty"
        ),
    ),
    "a required variable": (
        Bad(
            "decommission_host",
            "host_decommission_max_hosts=1",
            "host_decommission_target is required",
        ),
        Bad(
            "host_decommission check",
            "host_decommission_max_hosts=1",
            "host_decommission_target is required",
        ),
        Bad(
            "host_decommission delete",
            "host_decommission_max_hosts=1",
            "host_decommission_target is required",
        ),
        Bad("drain_host", "host_decommission_parallel=1", "host_decommission_target is required"),
        Bad(
            "host_decommission redeploy",
            "host_decommission_restore=traits",
            "host_decommission_target is required",
        ),
    ),
    "several at once": (
        Bad(
            "cleanup_orphans",
            "{orphan_cleanup_a1: 1, orphan_cleanup_a2: 1, orphan_cleanup_a3: 1, "
            "orphan_cleanup_a4: 1, orphan_cleanup_a5: 1, orphan_cleanup_a6: 1, "
            "orphan_cleanup_mode: x}",
            "And 2 more. Nothing was changed.",
        ),
        Bad(
            "detect_clouds",
            "orphan_cleanup_cluods=north",
            "did you mean orphan_cleanup_clouds?",
        ),
    ),
}

# Only a run can show the sentence: what Ansible makes of a text, and what it evaluates.
TEMPLATES: tuple[Bad, ...] = (
    Bad(
        "cleanup_orphans",
        "orphan_cleanup_exclude_providers: [compute-2, compute-3]",
        "leaves it out: write -e orphan_cleanup_exclude_providers=compute-2,compute-3.",
    ),
    Bad("cleanup_orphans", "orphan_cleanup_hosts: compute-1", "-e orphan_cleanup_hosts=compute-1."),
    Bad(
        "cleanup_orphans", "orphan_cleanup_hosts = compute-1", "-e orphan_cleanup_hosts=compute-1."
    ),
    Bad("cleanup_orphans", "orphan_cleanup_hosts:compute-1", "-e orphan_cleanup_hosts=compute-1."),
    Bad("cleanup_orphans", "orphan_cleanup_hosts=a b", "words that belong to no variable"),
    Bad(
        "drain_host",
        "host_decommission_target: compute-1",
        "write -e host_decommission_target=compute-1.",
    ),
    Bad("detect_orphans", "vars.yml", "write -e @vars.yml for a file."),
    Bad("cleanup_orphans", "", "-e is empty"),
    Bad("cleanup_orphans", "ansible_check_mode=true", "for check mode, give --check"),
    Bad("cleanup_orphans", "{orphan_cleanup_min_age: 1:00}", "is 1:00, which YAML reads as 60:"),
    Bad("cleanup_orphans", "{orphan_cleanup_min_age: +1:00}", "is +1:00, which YAML reads as 60:"),
    Bad("cleanup_orphans", "{orphan_cleanup_min_age: 0_10}", "is 0_10, which YAML reads as 8:"),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_stale_min_age: &a 1:00, orphan_cleanup_min_age: *a}",
        "orphan_cleanup_min_age is 60, which has no unit: write 60s for seconds.",
    ),
    Bad("cleanup_orphans", "{orphan_cleanup_max_changes: 010}", "is 010, which YAML reads as 8:"),
    Bad(
        "cleanup_orphans",
        '{orphan_cleanup_min_age: "{{ site_age }}"}',
        "orphan_cleanup_min_age uses site_age, which is not defined.",
    ),
    Bad(
        "cleanup_orphans",
        '{orphan_cleanup_hosts: ["{{ a_host }}"]}',
        "uses a_host, which is not defined.",
    ),
    Bad(
        "cleanup_orphans",
        '{orphan_cleanup_hosts: ["{{ a_host | default(omit) }}"]}',
        "orphan_cleanup_hosts comes out empty, and would limit nothing: if that is meant, write []",
    ),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_hosts: \"{{ groups['ungrouped'] }}\"}",
        "orphan_cleanup_hosts comes out empty",
    ),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_exclude_providers: \"{{ lookup('file', '/dev/null').splitlines() }}\"}",
        "orphan_cleanup_exclude_providers comes out empty",
    ),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_consumers: \"{{ lookup('file', '/dev/null') }}\"}",
        "orphan_cleanup_consumers comes out empty",
    ),
    Bad("cleanup_orphans", '{orphan_cleanup_max_changes: "{{ 1 + }}"}', "cannot be evaluated"),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_mode: \"{{ 'fu' ~ 'll!' }}\"}",
        "orphan_cleanup_mode is 'full!'",
    ),
    Bad(
        "cleanup_orphans",
        "{orphan_cleanup_hosts: \"{{ [] + [''] }}\"}",
        "orphan_cleanup_hosts has an empty",
    ),
    Bad(
        "cleanup_orphans",
        '{orphan_cleanup_min_age: !unsafe "{{ x }}"}',
        "is '{{ x }}', which is not",
    ),
    Bad(
        "cleanup_orphans",
        """{orphan_cleanup_hosts: "{{ 12345 | osops.placement.host_names('placement_hosts') }}"}""",
        "placement_hosts is 12345, which is not a name: put a name that YAML takes for a number, "
        "a date or a truth value (12345, no, on) in quotes, in a survey too. Nothing was changed.",
    ),
)

# What follows `--limit` and `-i` on the command line, in place of `-e`.
NO_HOSTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "cleanup_orphans",
        ("--limit", "compute-1"),
        "this playbook runs on localhost, which --limit 'compute-1'",
    ),
    (
        "detect_orphans",
        ("-i", "a,b,", "--limit", "a"),
        "name what to examine in orphan_cleanup_hosts",
    ),
    (
        "decommission_host",
        ("--limit", "compute-1"),
        "name what to examine in host_decommission_target",
    ),
    (
        "drain_host",
        ("--limit", "compute-1"),
        "name what to examine in host_decommission_target",
    ),
    ("restore_allocations", ("--limit", "compute-1"), "runs on localhost"),
    ("heal_allocations", ("--limit", "compute-1"), "runs on localhost"),
    ("cleanup_clouds", (), "no host of the inventory matches 'clouds'; there is no inventory"),
    ("detect_clouds", ("-i", "a,b,"), "or name others in orphan_cleanup_clouds"),
    ("detect_clouds", ("-e", "orphan_cleanup_clouds="), "orphan_cleanup_clouds is empty"),
    ("cleanup_hypervisor", (), "no host of the inventory matches 'compute'; there is no inventory"),
    (
        "cleanup_hypervisor",
        ("-i", "a,b,", "--limit", "a", "-e", "hypervisor_cleanup_hosts=b"),
        "--limit 'a' leaves out all hosts that match 'b'",
    ),
)

# What follows the playbook on the command line, and would leave out stages or check mode.
LEFT_OUT: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cleanup_orphans", ("--skip-tags", "remediate"), "so leave out --skip-tags remediate:"),
    ("cleanup_orphans", ("-check",), "-check is -c heck to Ansible, and no check mode: give --"),
    ("detect_orphans", ("--tags", "detect"), "has a tag, so leave out --tags detect:"),
    ("cleanup_orphans", ("--tags", "never"), "so leave out --tags never:"),
    ("cleanup_orphans", ("--tags", "tagged"), "so leave out --tags tagged:"),
    ("cleanup_orphans", ("--skip-tags", "always"), "leave out the checks before the first change"),
    ("cleanup_orphans", ("--start-at-task", "Make the changes"), "leave out the checks before"),
    ("restore_allocations", ("--tags", "restore"), "so leave out --tags restore:"),
    ("heal_allocations", ("--tags", "heal"), "so leave out --tags heal:"),
    ("drain_host", ("--tags", "drain"), "name the stages that you want in host_decommission_st"),
    ("decommission_host", ("--skip-tags", "delete"), "so leave out --skip-tags delete:"),
    ("redeploy_host", ("--skip-tags", "always"), "leave out the checks before the first change"),
    ("cleanup_clouds", ("--tags", "detect"), "so leave out --tags detect:"),
    ("cleanup_hypervisor", ("--tags", "detect"), "so leave out --tags detect:"),
)
