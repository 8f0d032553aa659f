"""`awx_modules.yml` runs, with stand-ins for the modules of awx.awx.

They have the same options, and only write down what they get.
"""

import json
import typing as t
from pathlib import Path

import pytest
import yaml

from .automation import NEWEST, OLDEST, PATTERN, ROOT, find_ansible_playbook
from .support import Ansible

pytestmark = pytest.mark.long

FACTS = json.loads((ROOT / "tests/unit/extensions/awx_modules.json").read_text(encoding="utf-8"))
MODULE = """\
import json

from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(**json.loads({arguments!r}))
given = {{name: value for name, value in module.params.items() if value is not None}}
with open({record!r}, "a") as file:
    file.write(json.dumps([{name!r}, given]) + "\\n")
module.exit_json(changed=True)
"""


@pytest.fixture(name="collections")
def _collections(tmp_path: Path) -> Path:
    """Collections with stand-ins for the modules of awx.awx."""
    folder = tmp_path / "collections"
    modules = folder / "ansible_collections" / "awx" / "awx" / "plugins" / "modules"
    modules.mkdir(parents=True)
    for name, facts in FACTS["awx.awx"]["modules"].items():
        rules = {rule: value for rule, value in facts.items() if rule != "options"}
        arguments = json.dumps({"argument_spec": facts["options"], **rules})
        record = str(tmp_path / "record")
        text = MODULE.format(arguments=arguments, record=record, name=name)
        (modules / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def run(
    folder: Path, collections: Path, variables: dict[str, t.Any], core: str = NEWEST
) -> list[tuple[str, t.Any]]:
    """Return the modules that the playbook ran, with the options that it gave them."""
    ansible = Ansible(ROOT, folder, {})
    done = ansible.command(
        find_ansible_playbook(ansible, core),
        str(PATTERN / "awx_modules.yml"),
        "-e",
        json.dumps(variables),
        ANSIBLE_COLLECTIONS_PATH=str(collections),
    )
    assert done.status == 0, done.output
    lines = (folder / "record").read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line)) for line in lines]


@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_playbook_gives_the_modules_what_the_data_says(
    tmp_path: Path, collections: Path, core: str
) -> None:
    variables = {"awx_organization": "Infrastructure", "awx_output_dir": "/placement"}
    given = run(tmp_path, collections, variables, core)

    objects = yaml.safe_load((PATTERN / "setup.yml").read_text(encoding="utf-8"))["awx_objects"]
    names = [known["name"] for known in objects if known["in"] == "job_templates"]
    templates = [options for module, options in given if module == "job_template"]
    assert [options["name"] for options in templates] == names
    for options in templates:
        assert options["organization"] == "Infrastructure"
        assert options["extra_vars"]["placement_mounted_dir"] == "/placement"
        assert (options["limit"], options["verbosity"]) == ("", 0)
        assert options["survey_spec"]["spec"][0]["required"] in (True, False)
    # Without the address of a webhook, there is no notification.
    assert "notification_template" not in dict(given)
    assert dict(given)["host"]["variables"] == {"ansible_connection": "local"}
    assert len([module for module, _options in given if module == "schedule"]) == 1


def test_playbook_lets_nothing_around_the_approval(tmp_path: Path, collections: Path) -> None:
    given = run(tmp_path, collections, {"awx_notification_url": "https://chat.example.org/x"})

    workflow = dict(given)["workflow_job_template"]
    nodes: dict[str, t.Any] = {}
    for module, options in given:
        if module == "workflow_job_template_node":
            node = nodes.setdefault(options["identifier"], {})
            node.update(options)
    assert workflow["destroy_current_nodes"] is True
    assert workflow["notification_templates_approvals"] == ["osops.placement"]
    assert nodes["approve"]["approval_node"]["timeout"] == 86400
    ways = [
        (identifier, edge)
        for identifier, options in nodes.items()
        for edge in ("always_nodes", "failure_nodes", "success_nodes")
        if "apply" in options[edge]
    ]
    assert ways == [("approve", "success_nodes")]
