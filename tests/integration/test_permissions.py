"""The two roles of docs/permissions.md.

Exactly the policies of that page are in force, and there is no other role.
"""

import json
import re
import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from .support import Ansible, Minicloud, Placement, assert_nothing_changed
from .world import CELL1, World

OWN_CLOUD = True
pytestmark = pytest.mark.long

PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^```yaml\n# /etc/(nova|placement)/policy\.yaml(, to decommission hosts)?\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
READING, DECOMMISSIONING = "", ", to decommission hosts"
POLICIES = {
    (service, purpose): yaml.safe_load(rules) for service, purpose, rules in BLOCK.findall(PAGE)
}
FOLDERS = {"nova": "nova-first", "placement": "placement"}
# A provider without a compute node.
BARE = "bare-host"
# The modules that show one resource need these rules, or they are needed only for a server that
# failed on its host. In this cloud two Novas use one Placement, so that a detection looks up no
# host behind a provider.
ASKED_BY = {
    "os_compute_api:os-aggregates:index": "compute_host_info",
    "os_compute_api:os-hosts:show": "compute_host",
    "os_compute_api:os-hypervisors:show": "compute_host_info",
    "placement:allocation_candidates:list": "allocation_candidate_info",
    "placement:resource_providers:usages": "placement_provider_info",
    "placement:resource_providers:aggregates:list": "placement_provider_info",
}
EVENTS = "os_compute_api:os-instance-actions:events"
WRITING = "placement:allocations:manage"
# Needed only where a host has something that a port can request, which no host has here.
PORTS = "os_compute_api:os-attach-interfaces:list"
RULES = [
    rule
    for service in FOLDERS
    for rule in POLICIES[service, READING]
    if ":" in rule and rule not in (EVENTS, WRITING, PORTS)
]

Findings = dict[str, tuple[str, t.Any]]


class Office:
    """Puts policies in force and logs users in."""

    def __init__(self, minicloud: Minicloud, world: World) -> None:
        self._minicloud = minicloud
        self._world = world

    def enforce(self, *purposes: str, without: str = "") -> None:
        """Give both services the policies of the page, except for one rule.

        They read them again when they change.
        """
        for service, folder in FOLDERS.items():
            rules = {
                rule: check
                for purpose in purposes
                for rule, check in POLICIES[service, purpose].items()
            }
            if without in rules:
                rules[without] = "role:admin or role:service"
            (self._world.paths.etc / folder / "policy.yaml").write_text(yaml.safe_dump(rules))

    def log_in(self, role: str) -> dict[str, t.Any]:
        """Create a user with only that role, as a whole configuration of a cloud."""
        self._world.assign(role, "audit", role)
        named = {
            "username": role,
            "password": role,
            "project_name": "audit",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        return {
            "auth": {"auth_url": self._minicloud.environment["OS_AUTH_URL"], **named},
            "region_name": "RegionOne",
        }


@pytest.fixture(scope="module")
def office(minicloud: Minicloud, world: World) -> Office:
    return Office(minicloud, world)


@pytest.fixture(scope="module", autouse=True)
def stray(minicloud: Minicloud, world: World, placement: Placement) -> str:
    """Something for every rule to report.

    It includes a provider without a compute node and an unknown consumer.
    """
    minicloud.scenario(
        "healthy",
        "deleted_server",
        "evacuated_source",
        "shelved_offloaded",
        "wrong_amount",
        "deleted_migration",
    )
    inventories = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 1024}}
    placement.create_provider(BARE, inventories, traits=["COMPUTE_NODE"])
    world.disown(world.boot("compute-1"))
    return world.claim("compute-1")


@pytest.fixture(autouse=True)
def in_force(office: Office) -> Iterator[None]:
    office.enforce(READING)
    yield
    office.enforce(READING)


@pytest.fixture(scope="module")
def whole(
    minicloud: Minicloud, office: Office, tmp_path_factory: pytest.TempPathFactory
) -> Findings:
    """What the auditor finds with every rule in force."""
    office.enforce(READING)
    ansible = Ansible(minicloud.root, tmp_path_factory.mktemp("whole"), minicloud.environment)
    return _detected(ansible, office.log_in("placement_auditor"))[0]


def _detected(ansible: Ansible, cloud: t.Any) -> tuple[Findings, dict[str, t.Any]]:
    dest = ansible.folder / f"findings-{uuid.uuid4()}.json"
    result = ansible.direct(
        "orphan_detect", cloud=cloud, min_age="0", unknown_min_age="0", dest=str(dest)
    )
    if result["failed"]:
        return {}, result
    found = json.loads(dest.read_text())
    entries = [entry for key in ("findings", "protected", "undecided") for entry in found[key]]
    return {
        entry["consumer"] or entry["id"]: (entry["kind"], entry["change"]) for entry in entries
    }, found["summary"]


def test_auditor_finds_what_admin_finds(ansible: Ansible, office: Office) -> None:
    expected, _summary = _detected(ansible, "minicloud")
    kinds = {kind for kind, _change in expected.values()}
    assert kinds >= {
        "deleted_server",
        "evacuated_source",
        "unhosted_server",
        "wrong_amount",
        "wrong_owner",
        "deleted_migration",
        "unknown_consumer",
    }

    found, summary = _detected(ansible, office.log_in("placement_auditor"))

    # Keystone does not show the auditor other projects.
    assert found == {
        subject: found for subject, found in expected.items() if found[0] != "missing_project"
    }
    assert "Keystone" in " ".join(summary["coverage"]["unread"])
    assert summary["coverage"]["complete"] and summary["coverage"]["failed_checks"] == []


@pytest.mark.follows("nova_listings.require_access", "nova.parse_named_servers")
@pytest.mark.parametrize("rule", RULES)
def test_every_policy_rule_is_needed_and_a_missing_one_creates_no_orphan(
    ansible: Ansible, office: Office, whole: Findings, rule: str
) -> None:
    auditor = office.log_in("placement_auditor")
    asked = {
        "compute_host_info": {"hosts": ["compute-1"]},
        "compute_host": {"host": BARE, "state": "absent", "ignore_other_regions": True},
        "allocation_candidate_info": {"resources": {"VCPU": 1}},
    }
    office.enforce(READING, without=rule)

    if module := ASKED_BY.get(rule):
        result = ansible.direct(
            module, cloud=auditor, **asked.get(module, {"resource_provider": "compute-1"})
        )
        assert result["failed"] and "answered 403" in result["msg"], result
        return
    found, summary = _detected(ansible, auditor)

    assert found != whole
    if not summary.get("failed") and not summary["coverage"]["failed_checks"]:
        for subject, (_kind, change) in found.items():
            assert change is None or change == whole[subject][1]


@pytest.mark.follows("migration_hosts_not_shown")
def test_hidden_hosts_of_migrations_forbid_every_change(
    ansible: Ansible, office: Office, world: World
) -> None:
    """Only they say where the guest of a failed live migration may run.

    Without them its allocation looks like any leftover.
    """
    server = world.boot("compute-1")
    for host in ("compute-2", "compute-1"):
        world.live_migrate(server, host)
    world.sql(
        CELL1,
        (
            # CURRENT_TIMESTAMP has whole seconds, and could be earlier than the next migration.
            "UPDATE migrations SET status = 'error', updated_at = strftime('%Y-%m-%d %H:%M:%f') "
            "WHERE instance_uuid = ? AND dest_compute = 'compute-2'"
        ),
        server,
    )
    world.claim_also(server, "compute-2")
    auditor = office.log_in("placement_auditor")
    found, sound = _detected(ansible, auditor)

    office.enforce(READING, without="os_compute_api:os-migrations:index:host")
    _hidden, closed = _detected(ansible, auditor)

    assert found[server] == ("extra_host", None)
    assert sound["coverage"]["failed_check_ids"] == []
    assert closed["coverage"]["failed_check_ids"] == ["migration_hosts_not_shown"]


def test_hosts_of_events_are_governed_by_their_own_rule(office: Office, world: World) -> None:
    server = world.boot("compute-1")
    auditor = _connection(office, "placement_auditor")

    def hosts() -> set[str | None]:
        path = f"/servers/{server}/os-instance-actions"
        (created,) = auditor.compute.get(path, microversion="2.68").json()["instanceActions"]
        action = auditor.compute.get(f"{path}/{created['request_id']}", microversion="2.68").json()[
            "instanceAction"
        ]
        return {event.get("host") for event in action["events"]}

    assert "compute-1" in hosts()
    office.enforce(READING, without=EVENTS)
    assert hosts() == {None}


def test_removal_by_the_auditor_is_refused_with_the_name_of_the_rule(
    ansible: Ansible, office: Office, placement: Placement
) -> None:
    before = placement.everything()

    run = ansible.playbook(
        "cleanup_orphans", variables={"orphan_cleanup_cloud": office.log_in("placement_auditor")}
    )

    assert run.status != 0
    assert WRITING in run.told and "admin by default" in run.told
    outcomes = run.read("remediation.json")["outcomes"]
    assert {outcome["outcome"] for outcome in outcomes} == {"failed"}
    assert_nothing_changed(run, before, placement)


def _connection(office: Office, role: str) -> Connection:
    return Connection(
        config=OpenStackConfig(load_yaml_config=False, load_envvars=False).get_one(
            **office.log_in(role)
        )
    )


@pytest.mark.parametrize("role", ["placement_auditor", "placement_remediator"])
def test_auditor_and_remediator_may_do_nothing_else(
    office: Office, world: World, placement: Placement, role: str
) -> None:
    server, host = world.boot("compute-1"), world.provider("compute-1")
    service = world.cloud.compute_services()["compute-1"]["id"]
    held = placement.allocation(server)
    empty = {
        "allocations": {},
        "project_id": held["project_id"],
        "user_id": held["user_id"],
        "consumer_generation": held["consumer_generation"],
    }
    new = {
        "name": "mine",
        "flavorRef": world.cloud.flavor("m1.tiny"),
        "imageRef": "",
        "networks": "none",
    }
    user = _connection(office, role)
    requests: list[tuple[t.Any, str, str, t.Any]] = [
        (user.compute, "DELETE", f"/servers/{server}", None),
        (user.compute, "PUT", f"/servers/{server}", {"server": {"name": "mine"}}),
        (user.compute, "POST", "/servers", {"server": new}),
        *(
            (user.compute, "POST", f"/servers/{server}/action", {action: body})
            for action, body in ACTIONS.items()
        ),
        (user.compute, "PUT", f"/os-services/{service}", {"status": "disabled"}),
        (user.compute, "DELETE", f"/os-services/{service}", None),
        (user.compute, "POST", "/os-aggregates", {"aggregate": {"name": "mine"}}),
        (
            user.compute,
            "POST",
            "/flavors",
            {"flavor": {"name": "mine", "ram": 1, "vcpus": 1, "disk": 0}},
        ),
        (user.compute, "GET", "/os-simple-tenant-usage", None),
        (user.placement, "PUT", f"/allocations/{server}", empty),
        (user.placement, "DELETE", f"/allocations/{server}", None),
        (user.placement, "POST", "/resource_providers", {"name": "mine"}),
        (user.placement, "PUT", f"/resource_providers/{host}", {"name": "mine"}),
        (user.placement, "DELETE", f"/resource_providers/{host}", None),
        (user.placement, "DELETE", f"/resource_providers/{host}/inventories", None),
        (user.placement, "PUT", "/traits/CUSTOM_MINE", None),
    ]
    if role == "placement_auditor":
        requests.append((user.placement, "POST", "/allocations", {server: empty}))

    answers = {
        f"{method} {path} {list(body or ())}": service.request(
            path,
            method,
            json=body,
            microversion="2.68" if service is user.compute else "1.28",
            raise_exc=False,
        ).status_code
        for service, method, path, body in requests
    }

    assert answers == dict.fromkeys(answers, 403)
    assert placement.allocation(server) == held


ACTIONS: dict[str, t.Any] = {
    "os-stop": None,
    "forceDelete": None,
    "migrate": None,
    "os-migrateLive": {"host": None, "block_migration": "auto"},
    "evacuate": {},
    "os-resetState": {"state": "error"},
    "confirmResize": None,
    "reboot": {"type": "HARD"},
    "shelve": None,
    "lock": None,
}


def test_remediator_cleans_up_and_restores(
    ansible: Ansible, office: Office, placement: Placement, stray: str
) -> None:
    held = placement.held(stray)
    only = {
        "orphan_cleanup_cloud": office.log_in("placement_remediator"),
        "orphan_cleanup_select": f"[?consumer == '{stray}']",
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    }

    run = ansible.playbook("cleanup_orphans", variables=only)
    assert run.status == 0, run.output
    assert run.outcome(stray)["outcome"] == "removed" and placement.held(stray) == {}

    journal = run.read("remediation.json")["journal"]
    login = {"orphan_cleanup_cloud": only["orphan_cleanup_cloud"]}
    restored = ansible.playbook(
        "restore_allocations", variables={**login, "orphan_cleanup_journal": journal}
    )
    assert restored.status == 0, restored.output
    assert placement.held(stray) == held


def test_remediator_without_permission_to_decommission_gets_a_clear_error(
    ansible: Ansible, office: Office, world: World, placement: Placement
) -> None:
    host = f"permissions-{uuid.uuid4().hex[:8]}"
    world.own_host(host)
    world.kill(host)
    remediator = office.log_in("placement_remediator")

    refused = ansible.direct(
        "compute_host", cloud=remediator, host=host, state="absent", ignore_other_regions=True
    )
    assert refused["failed"] and "os_compute_api:os-services:delete" in refused["msg"], refused
    assert host in placement.providers()

    office.enforce(READING, DECOMMISSIONING)
    run = ansible.playbook(
        "decommission_host",
        variables={
            "host_decommission_target": host,
            "host_decommission_cloud": remediator,
            "host_decommission_min_age": 0,
        },
    )
    assert run.status == 0, run.output
    assert host not in placement.providers() and host not in world.cloud.compute_services()


def test_decommissioner_may_delete_a_leftover_provider(
    ansible: Ansible, office: Office, placement: Placement
) -> None:
    name = f"left-{uuid.uuid4()}"
    provider = placement.create_provider(name, {})
    remediator = office.log_in("placement_remediator")
    arguments = {"cloud": remediator, "state": "absent", "ignore_other_regions": True}

    refused = ansible.module("compute_host", host=name, **arguments)
    assert refused["failed"] and "placement:resource_providers:delete" in refused["msg"], refused

    office.enforce(READING, DECOMMISSIONING)
    assert ansible.module("compute_host", host=name, **arguments)["changed"]
    assert provider not in placement.providers().values()


def test_decommissioner_may_restore_traits_of_a_deleted_provider(
    ansible: Ansible, office: Office, minicloud: Minicloud, placement: Placement, tmp_path: Path
) -> None:
    """The journal is that of a run that deleted the tree of a host that exists again."""
    host, trait, aggregate = "compute-2", f"CUSTOM_{uuid.uuid4().hex.upper()}", str(uuid.uuid4())
    root = placement.providers()[host]
    inventories = placement.get(f"/resource_providers/{root}/inventories")["inventories"]
    record = {
        "format": 1,
        "event": "before",
        "placement_endpoint": f"http://127.0.0.1:{minicloud.ports['placement']}/",
        "finding": f"orphaned_provider/{root}",
        "kind": "orphaned_provider",
        "action": "delete_providers",
        "providers": [{"uuid": root, "name": host, "generation": 1, "parent": None}],
        "details": {
            root: {
                "generation": 1,
                "inventories": inventories,
                "traits": [trait],
                "aggregates": [aggregate],
            }
        },
    }
    gone = {"format": 1, "event": "after", "finding": record["finding"], "outcome": "removed"}
    arguments = {
        "cloud": office.log_in("placement_remediator"),
        "journal": [record, gone],
        "output_dir": str(tmp_path),
    }

    refused = ansible.direct("orphan_restore", **arguments)
    assert refused["failed"] and "placement:traits:update" in refused["msg"], refused
    assert (
        not refused["changed"]
        and aggregate not in placement.get(f"/resource_providers/{root}/aggregates")["aggregates"]
    )

    office.enforce(READING, DECOMMISSIONING)
    assert ansible.direct("orphan_restore", **arguments)["tally"]["restored"] == 1
    assert trait in placement.get(f"/resource_providers/{root}/traits")["traits"]
    assert aggregate in placement.get(f"/resource_providers/{root}/aggregates")["aggregates"]
