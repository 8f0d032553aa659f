"""Failures on the way to a cloud.

Each is reported in one sentence that says what failed and where, and nothing else.
"""

import json
import re
import typing as t
from pathlib import Path

import pytest

from .strays import Strays
from .support import Ansible, Minicloud

# Port 9 of the loopback interface belongs to the discard service, which nobody runs.
NOWHERE = "http://127.0.0.1:9"


def wrong_password(config: str) -> str:
    return re.sub(r"password: .*", "password: wrong", config)


def placement_down(config: str) -> str:
    return config.replace(
        "region_name: RegionOne",
        f"region_name: RegionOne\n    placement_endpoint_override: {NOWHERE}",
    )


BROKEN = [
    (wrong_password, "Keystone at http://127.0.0.1:"),
    (placement_down, f"Placement at {NOWHERE}/ cannot be reached"),
]


@pytest.mark.parametrize(
    ("broken", "said"), BROKEN, ids=[broken.__name__ for broken, said in BROKEN]
)
def test_unusable_service_fails_with_one_sentence(
    ansible: Ansible, minicloud: Minicloud, tmp_path: Path, broken: t.Any, said: str
) -> None:
    config = tmp_path / "clouds.yaml"
    config.write_text(broken(minicloud.clouds_yaml.read_text()))
    ansible.environment.update(OS_CLIENT_CONFIG_FILE=str(config))

    result = ansible.module("orphan_detect")

    assert result["failed"]
    assert result["msg"].startswith(said)
    assert "\n" not in result["msg"]
    assert "exception" not in result


def test_cloud_option_accepts_a_whole_configuration(ansible: Ansible, minicloud: Minicloud) -> None:
    variables = minicloud.environment
    auth = {
        key: variables[f"OS_{key.upper()}"]
        for key in ("auth_url", "username", "password", "project_name")
    }
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    ansible.environment = {
        name: value for name, value in ansible.environment.items() if not name.startswith("OS_")
    }

    result = ansible.module(
        "orphan_detect", cloud={"auth": {**auth, **domains}, "region_name": "RegionOne"}
    )

    assert result["summary"]["coverage"]["complete"]


def test_password_in_an_endpoint_is_shown_nowhere(
    ansible: Ansible, minicloud: Minicloud, few: Strays, tmp_path: Path
) -> None:
    """A proxy in front of a service can want a password of its own."""
    few.claim()
    region, ports = "region_name: RegionOne", minicloud.ports
    overrides = {
        "placement": f"http://me:s3cret@127.0.0.1:{ports['placement']}",
        "compute": f"http://me:s3cret@127.0.0.1:{ports['nova-api']}/v2.1",
    }
    ways = [f"{region}", *(f"{name}_endpoint_override: {url}" for name, url in overrides.items())]
    config = tmp_path / "secret.yaml"
    config.write_text(minicloud.clouds_yaml.read_text().replace(region, "\n    ".join(ways)))
    ansible.environment.update(OS_CLIENT_CONFIG_FILE=str(config))
    metrics = tmp_path / "placement.prom"
    variables = {
        "orphan_cleanup_report_formats": ["json", "html", "markdown", "csv", "prometheus"],
        "orphan_cleanup_metrics_path": str(metrics),
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
        "orphan_cleanup_consumers": few.consumers,
        "orphan_cleanup_min_age": "0",
        "orphan_cleanup_unknown_min_age": "0",
    }

    run = ansible.playbook("cleanup_orphans", "-vv", "--diff", variables=variables)

    assert (run.status, few.held) == (0, []), run.told
    assert "s3cret" not in run.told
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != config]
    assert {metrics.name, "plan.json", "remediation.json"} <= {path.name for path in written}
    assert any(path.name.startswith("journal-") for path in written)
    assert [path for path in written if b"s3cret" in path.read_bytes()] == []


def test_os_variables_select_the_cloud(ansible: Ansible) -> None:
    del ansible.environment["OS_CLOUD"], ansible.environment["OS_CLIENT_CONFIG_FILE"]

    assert ansible.module("orphan_detect")["summary"]["coverage"]["complete"]


@pytest.mark.long
def test_role_passes_its_cloud_to_all_its_tasks(
    ansible: Ansible, few: Strays, tmp_path: Path
) -> None:
    """Nothing else names a cloud here.

    The role makes what was planned, and restores it.
    """
    few.release()
    few.claim()
    (tmp_path / "plan.json").write_text(json.dumps(few.plan))
    approved = ansible.direct("orphan_plan", plan=str(tmp_path / "plan.json"))["packed"]
    named = {
        "orphan_cleanup_cloud": ansible.environment.pop("OS_CLOUD"),
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    }

    applied = ansible.playbook(
        "cleanup_orphans", variables={**named, "orphan_cleanup_plan": approved}
    )
    assert (applied.status, few.held) == (0, []), applied.output

    journal = applied.read("remediation.json")["journal"]
    restored = ansible.playbook(
        "restore_allocations", variables={**named, "orphan_cleanup_journal": journal}
    )
    assert (restored.status, few.held) == (0, few.consumers), restored.output
    few.others_are_unchanged()
