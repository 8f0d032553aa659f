# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options that several modules share; `make pages` writes them, and their other parts stay."""

from __future__ import annotations


class Connection:
    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - The name of the cloud in C(clouds.yaml), for example V(admin), or a whole cloud
        configuration as a dictionary.
      - If neither O(cloud) nor O(auth) is set, the environment variables C(OS_CLOUD) and C(OS_*)
        select the cloud, as with every OpenStack client.
    type: raw
  region_name:
    description:
      - The name of the region, for example V(RegionOne). By default, the region of the cloud
        configuration.
    type: str
  interface:
    description:
      - The interface of the endpoints in the service catalogue. By default, that of the cloud
        configuration.
    type: str
    choices:
      - public
      - internal
      - admin
    aliases:
      - endpoint_type
  auth:
    description:
      - The credentials, as a dictionary for the plugin that O(auth_type) names, such as
        C(auth_url), C(username), C(password) and C(project_name). By default, those of the cloud
        configuration.
    type: dict
  auth_type:
    description:
      - The name of the keystoneauth plugin that authenticates, for example V(password) or
        V(v3applicationcredential). By default, that of the cloud configuration.
    type: str
  ca_cert:
    description:
      - The path of a CA bundle that verifies the certificates of the API endpoints. By default,
        that of the cloud configuration, or else the CAs of the system.
    type: path
    aliases:
      - cacert
  validate_certs:
    description:
      - Whether the certificates of the API endpoints must be valid. They must by default, unless
        the cloud configuration says otherwise.
    type: bool
    aliases:
      - verify
  client_cert:
    description:
      - The path of a client certificate. By default, that of the cloud configuration, or none.
    type: path
    aliases:
      - cert
  client_key:
    description:
      - The path of the key of the client certificate. By default, that of the cloud configuration,
        or none.
    type: path
    aliases:
      - key
  api_timeout:
    description:
      - The number of seconds to wait for the response to one API request. A connection must be made
        within 10 of these seconds.
    type: int
    default: 120
requirements:
  - python >= 3.11
  - openstacksdk >= 1.0.0
notes:
  - Requires Placement 1.28 (Rocky) and compute 2.69 (Stein) or newer microversions, and a role
    that can read Placement and see the servers, hosts and migrations of all projects (admin by
    default).
"""


class Failures:
    DOCUMENTATION = r"""
options:
  max_failures:
    description:
      - The run stops after this many failed changes. Changes that were not tried by then are
        reported as C(skipped), with that reason.
      - Several changes are made at the same time, so a few more than this number can fail.
    type: int
    default: 5
    version_added: 2.0.0
"""


class Guests:
    DOCUMENTATION = r"""
options:
  guests:
    description:
      - Results of M(osops.placement.hypervisor_guest_info), one for each host. Each entry is such a
        dictionary, or the path of a JSON file with one.
      - A server with a domain on another host than the one where Nova has the server keeps all its
        allocations, whatever the state of the domain and however old the result is.
      - They also show which devices of its host the guest of a server uses, which no API does. Only
        with them an allocation of the kind V(leaked_child) may be removed. Nothing else is ever
        removed because of them.
      - A result belongs to a host by its C(compute_id). If that is V(null), C(host) must be the
        name of the host of the compute service.
      - A result proves nothing about devices if it is older than one hour, or if the server, its
        allocation or its instance actions changed later than one minute before the host was read.
    type: list
    elements: raw
    default: []
    version_added: 2.0.0
"""


class Hypervisor:
    DOCUMENTATION = r"""
options:
  virsh:
    description:
      - The command that runs C(virsh) on the hypervisor, with its arguments. It is split like a
        command line and runs without a shell.
      - If libvirt runs in a container, as with Kolla, set the command that runs C(virsh) there, for
        example V(docker exec -i nova_libvirt virsh) or V(podman exec -i nova_libvirt virsh). C(-i)
        is required to define a domain again.
    type: str
    default: virsh
  uri:
    description:
      - The connection URI of libvirt.
    type: str
    default: qemu:///system
  instances_path:
    description:
      - The directory on the hypervisor in which Nova keeps the directories of its instances
        (C(instances_path) in C(nova.conf)).
      - If Nova runs in a container, set the path on the host. With Kolla this is the path of the
        volume C(nova_compute), V(/var/lib/docker/volumes/nova_compute/_data/instances) or
        V(/var/lib/containers/storage/volumes/nova_compute/_data/instances).
    type: path
    default: /var/lib/nova/instances
  quarantine_path:
    description:
      - The directory to which leftover instance directories are moved. It is created with mode 0700
        when it is needed. Its parent directory must exist.
      - It must be on the same file system as O(instances_path), and only root and the user of the
        task may be able to write to it.
      - The default is C(.quarantine) in O(instances_path), which is always on the same file system.
        Nova ignores this directory, because it looks there only for the UUIDs of its own instances.
    type: path
  virsh_timeout:
    description:
      - How many seconds one call of O(virsh) may take.
    type: int
    default: 60
requirements:
  - Python 3.9 or newer on the hypervisor
  - C(virsh), from the client programs of libvirt
notes:
  - This module runs on the hypervisor, and needs neither access to the cloud nor openstacksdk
    there. Run it as root, with C(become).
"""


class Leftovers:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - The minimum age of a leftover, and of what Nova last did to its server. A younger one is
        protected, and so is a directory in which something changed since.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description:
      - The same for leftovers of a server that Nova has no record of.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
    version_added: 2.0.0
  exclude_consumers:
    description:
      - The UUIDs of servers whose leftovers are never changed. They are reported as protected.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - The names of hosts on which nothing is ever changed, or the names or UUIDs of their resource
        providers.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
"""


class Limits:
    DOCUMENTATION = r"""
options:
  max_changes:
    description:
      - The maximum number of changes in one run. If more are planned, none is made.
      - The shards of a cloud divide this number among them. With 100 changes and eight shards, the
        first four shards may make 13 changes each and the others 12.
    type: int
    default: 100
  max_share:
    description:
      - The maximum number of changes in one run, as a fraction of all consumers that were read,
        from 0 to 1. If more are planned, none is made. V(0.1) allows changes to 10% of the
        consumers.
      - In a shard, only the consumers that were read for this shard count. After a detection with
        aggregates, availability zones or cells, only the consumers of their hosts count.
      - This limit applies only above 20 changes, and not to findings about hosts or consumers that
        you named one by one.
    type: float
    default: 0.1
"""


class Policy:
    DOCUMENTATION = r"""
options:
  min_age:
    description:
      - Allocations that are younger than this are protected. The age is the time since the
        allocation was last written, by the clock of Placement.
      - So are allocations whose server, or a migration of it, Nova has changed within this time.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 1h
  unknown_min_age:
    description:
      - The minimum age for the kind V(unknown_consumer), which rests on absence of evidence alone.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
    version_added: 2.0.0
  exclude_consumers:
    description:
      - The UUIDs of consumers that are never changed. They are reported as protected.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  exclude_providers:
    description:
      - The names or UUIDs of resource providers or hosts that are never changed, and neither is any
        consumer with an allocation on them or on another provider of their trees. Where nothing has
        exactly that name, letter case and domain do not matter.
      - Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally,
        C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such as
        V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so.
    type: list
    elements: raw
    default: []
  sole_nova:
    description:
      - Whether no other Nova uses this Placement. Set it once you have checked that, if these
        credentials may not list all endpoints in Keystone.
      - The service catalogue lacks endpoints that are disabled or those of other projects. A
        provider without a compute node may be a running host of such a Nova, so that
        V(orphaned_provider), V(name_conflict) and V(unknown_consumer) on it are undecided.
      - It has no effect where Keystone lists an endpoint of another Nova.
    type: bool
    default: false
    version_added: 3.0.0
  ignore_allocators:
    description:
      - The types of services that have no allocations on Nova's hosts, such as V(container) (Zun),
        V(reservation) (Blazar) or V(accelerator) (Cyborg). Name a service only after you have
        checked that.
      - Such a service makes allocations itself, and Zun makes them on Nova's own hosts and without
        a consumer type. While the service catalogue has such a service that is not named here, an
        V(unknown_consumer) without a type is undecided.
      - Any other type is an error. A type that is not in the service catalogue leads to a warning.
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  pci_aliases:
    description:
      - The aliases of PCI devices that flavors of this cloud request, as C([pci]alias) in the
        configuration of Nova has them. No API shows them, so that without this option the amounts
        of servers with such devices are not certain.
      - Each entry has Nova's own keys C(name), C(vendor_id), C(product_id), C(resource_class),
        C(traits), C(device_type), C(numa_policy) and C(live_migratable). Put hexadecimal numbers in
        quotes.
    type: list
    elements: dict
    default: []
    version_added: 2.0.0
  unconfirmed_min_age:
    description:
      - A resize that has waited for longer than this to be confirmed or reverted is reported as
        V(unconfirmed_resize). Only a detection reports this kind.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 7d
    version_added: 2.0.0
  stuck_min_age:
    description:
      - A migration that is under way but has not changed for longer than this is reported as
        V(stuck_migration). Only a detection reports this kind.
      - The same is the least age of a V(stuck_server), and of the cleaning of a bare metal node
        that is reported as V(bare_metal_mismatch).
      - A server that has been in BUILD for longer than this with neither a host nor a task is no
        longer protected as booting.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 24h
  stale_min_age:
    description:
      - A compute service that is down, has not reported for longer than this, and is disabled,
        forced down or without a compute node is reported as V(stale_service). Only a detection
        reports this kind.
      - A duration is a number of seconds, or a number with C(s), C(m), C(h) or C(d).
    type: str
    default: 7d
"""


class Progress:
    DOCUMENTATION = r"""
options:
  progress_every:
    description:
      - The number of seconds between two lines that show the progress. V(0) shows no lines, and
        neither does a run that is shorter.
      - 'The lines go to the standard error, for example C(orphan_detect [localhost]: allocations
        640/1000 providers, about 12 s left). The estimate is for the stage that is named.'
      - They are shown only with the connection C(local), and neither with C(async) nor with
        C(no_log).
    type: int
    default: 10
    version_added: 2.0.0
  progress_path:
    description:
      - Path of a file in which the module keeps its progress while it runs. Use it to follow a
        module that runs on another machine or with C(async). No lines are shown then.
      - 'The file is JSON, for example C({"stages": [{"name": "allocations", "done": 640, "total":
        1000, "unit": "providers", "seconds": 21.3}]}). The total is C(null) if it is not known. The
        list is empty between two stages and at the end.'
    type: path
    version_added: 2.0.0
"""


class Retirement:
    """The options by which it is judged whether a host can be decommissioned."""

    DOCUMENTATION = r"""
options:
  ignore_other_regions:
    description:
      - Whether former providers of a host are to be deleted although other regions have a Nova of
        their own on the same Placement. Otherwise these are blockers.
      - Only one Nova is asked for its compute nodes. Before you set this option, make sure that no
        compute node of the other Nova is behind these providers.
    type: bool
    default: false
    version_added: 3.0.0
  delete_agents:
    description:
      - Whether the network agents of the host are deleted with it in Neutron. Set it to V(false) if
        the host stays a network node.
    type: bool
    default: true
    version_added: 2.0.0
  delete_running_agents:
    description:
      - Whether that includes the network agents that are alive. By default, these block the
        deletion, because a running agent registers itself again.
      - An agent that still serves a network or a router, or under which a port is still in use, is
        never deleted.
    type: bool
    default: false
    version_added: 2.0.0
  allow_empty_zone:
    description:
      - Whether an availability zone may be left without a host. By default, its last host is
        blocked.
    type: bool
    default: false
    version_added: 2.0.0
  kinds:
    description:
      - The kinds of findings that count as left over, see
        O(osops.placement.orphan_plan#module:kinds). Findings of other kinds are blockers.
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
    default:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unreverted_allocation
  disabled_reasons:
    description:
      - The reasons with which earlier tasks disable a compute service. The record of a service that
        is disabled for one of these has its state of an earlier record.
    type: list
    elements: str
    default: []
    version_added: 3.0.0
"""


class Run:
    DOCUMENTATION = r"""
options:
  run:
    description:
      - The run of a role that this is a stage of, as M(osops.placement.validate_variables) returns
        it.
      - The stage is recorded in C(run.json) in the folder of the run. It does nothing if an earlier
        stage failed, and its own failure does not fail the task. M(osops.placement.orphan_report)
        shows it.
    type: dict
    version_added: 3.0.0
"""


class Scope:
    DOCUMENTATION = r"""
options:
  hosts:
    description:
      - Read only the allocations on these hosts, and the servers on them. If it is empty, all hosts
        are read.
      - Each entry is the name or UUID of a hypervisor, the name of the host of a compute service,
        or the name or UUID of a provider whose compute node no longer exists. These are not hosts
        of an inventory.
      - All consumers with allocations on these hosts are looked up directly, whether or not
        something seems wrong with them.
    type: list
    elements: str
    default: []
  consumers:
    description:
      - Read only these consumers, by UUID. The UUID of a server includes its migrations. If it is
        empty, all consumers are read.
      - These consumers are looked up directly, whether or not something seems wrong with them.
    type: list
    elements: str
    default: []
  projects:
    description:
      - Read only the consumers of these projects, each by its name or UUID. The project of a server
        counts. If Nova has no such server, that of its allocation does. If it is empty, the
        consumers of all projects are read.
      - Names are looked up in Keystone, which needs the permission to list projects. It is an error
        if there is no project of that name, or more than one in different domains.
      - A UUID that neither Keystone nor Placement knows is an error too. If the credentials cannot
        read projects, a UUID is used unchecked, and a warning says so.
    type: list
    elements: str
    default: []
  aggregates:
    description:
      - Read only the hosts of these host aggregates, each by its name, UUID or id. If it is empty,
        the hosts of all aggregates and of none are read.
      - Several aggregates add up. O(aggregates), O(availability_zones), O(cells) and O(hosts)
        narrow each other. A host must be in one of each that is not empty.
      - Nova is asked once which hosts these are, before anything else is read. It is an error if an
        aggregate does not exist or has no hosts, and if no host is left.
      - These hosts are read like the whole cloud, and only they. Consumers are looked up directly
        only if the listings do not show them to be in order.
      - An allocation that a server of these hosts has on another host is found when that host is
        read.
      - This option cannot be combined with O(consumers), O(shard) and O(mode=incremental).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  availability_zones:
    description:
      - Read only the hosts in these availability zones, by name. Also the default zone has a name,
        V(nova) unless Nova is configured otherwise.
      - While a cell does not answer, Nova does not say the zone of its hosts. Such a host is read
        only if an aggregate shows its zone, and a warning names the others.
      - Otherwise it is like O(aggregates).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  cells:
    description:
      - Read only the hosts of these cells, each by its key in O(cell_hosts).
      - No API of Nova says which hosts a cell has, so O(cell_hosts) is required with it.
      - Otherwise it is like O(aggregates).
    type: list
    elements: str
    default: []
    version_added: 2.0.0
  cell_hosts:
    description:
      - The hosts of each cell, as lists of names by the name or UUID of the cell, as C(nova-manage
        cell_v2 list_hosts) lists them.
      - It has an effect only with O(cells), and decides only what is read. A wrong host is still
        judged by what Nova says about it.
      - A host in two cells is an error. A warning names the hosts of the named cells of which Nova
        lists no compute service.
    type: dict
    default: {}
    version_added: 2.0.0
  kinds:
    description:
      - Report only findings of these kinds. If it is empty, all kinds are reported. Protected and
        undecided consumers are always reported.
      - Three kinds are searched for everywhere only if you name them here, because they take a
        request for each consumer or provider of the cloud. Otherwise, V(wrong_owner) is found only
        among consumers that are looked up directly and those for whose owner Placement has zeros,
        V(capacity_mismatch) only on the named O(hosts) and on the providers of other findings, and
        V(uneven_capacity) nowhere.
      - For V(missing_project), the projects of all servers are read only if you name it here, and
        otherwise those of the consumers that are looked up directly. For V(stuck_server), servers
        in C(ERROR) are read only if you name it here, and for named O(hosts) and O(consumers).
      - With V(wrong_amount), every server is compared by itself with what Nova would allocate for
        it. Otherwise only those are compared whose hosts report other sums than Placement, or have
        child providers in use.
    type: list
    elements: str
    choices:
      - deleted_server
      - ended_migration
      - deleted_migration
      - evacuated_source
      - extra_host
      - unhosted_server
      - unknown_consumer
      - unreverted_allocation
      - former_provider
      - misplaced_allocation
      - missing_allocation
      - leaked_port
      - wrong_amount
      - wrong_owner
      - leaked_child
      - orphaned_provider
      - name_conflict
      - missing_provider
      - hidden_allocation
      - capacity_mismatch
      - uneven_capacity
      - aggregate_mismatch
      - trait_mismatch
      - zone_mismatch
      - unconfirmed_resize
      - stuck_migration
      - unfinished_evacuation
      - stale_service
      - stuck_server
      - missing_project
      - bare_metal_mismatch
    default: []
  mode:
    description:
      - With V(full), Nova is asked for all servers of all hosts, and every consumer is compared
        with them.
      - With V(incremental), only what changed since the last reading is read, and what had a
        finding then, see O(memory). It finds what V(full) finds, except for what was changed in a
        database by hand and for servers that were deleted and archived in between. After
        O(full_every), everything is read.
      - Named O(hosts), O(consumers), O(aggregates), O(availability_zones) and O(cells) are always
        read in full, and not with V(incremental).
    type: str
    choices:
      - full
      - incremental
    default: full
  shard:
    description:
      - Read one part of a very large cloud, for example V(2/8) for the second of eight parts. All
        parts together find the same as one run on the whole cloud, and exactly one part reports
        each finding.
      - The hosts are divided by a hash of the UUID of their root provider. Only allocations on the
        hosts of this part are listed, but each candidate is judged by all its allocations.
      - This option cannot be combined with O(hosts), O(consumers), O(aggregates),
        O(availability_zones) or O(cells).
    type: str
"""


class ModuleDocFragment:
    """Each of them under the name by which a module extends its documentation."""

    CONNECTION: str = Connection.DOCUMENTATION
    FAILURES: str = Failures.DOCUMENTATION
    GUESTS: str = Guests.DOCUMENTATION
    HYPERVISOR: str = Hypervisor.DOCUMENTATION
    LEFTOVERS: str = Leftovers.DOCUMENTATION
    LIMITS: str = Limits.DOCUMENTATION
    POLICY: str = Policy.DOCUMENTATION
    PROGRESS: str = Progress.DOCUMENTATION
    RETIREMENT: str = Retirement.DOCUMENTATION
    RUN: str = Run.DOCUMENTATION
    SCOPE: str = Scope.DOCUMENTATION
