"""What a user sees after a mistake in a variable: one sentence, a failure, and no request.

The table is in `bad_variables.yml`. The unit tests of `_variables` go through all of it, too.
"""

import json
import re
import select
import socket
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret

from .automation import NEWEST, OLDEST, find_ansible_playbook
from .bad_variables import BAD, LEFT_OUT, LONG, NO_HOSTS, TEMPLATES, Bad
from .support import ROOT, Ansible, long

MAX_LINES = 15
# Ansible shows the message of a task a second time, where the task failed.
MAX_CHARACTERS = 2500


class Cloud:
    """An address at which a cloud could be. It sees whether anybody sends a request to it."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        port = self._socket.getsockname()[1]
        self.environment = {
            "OS_AUTH_URL": f"http://127.0.0.1:{port}",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": "secret",
            "OS_PROJECT_NAME": "admin",
            "OS_CLIENT_CONFIG_FILE": "/nowhere/clouds.yaml",
        }

    def was_asked(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    cloud = Cloud()
    yield cloud
    cloud.close()


@pytest.fixture
def ansible(cloud: Cloud, tmp_path: Path) -> Ansible:
    return Ansible(ROOT, tmp_path, cloud.environment)


def write_play(folder: Path, role: str, entry_point: str) -> str:
    """Write a play of a user with an entry point that no playbook has."""
    task = {
        "ansible.builtin.include_role": {
            "name": f"osops.placement.{role}",
            "tasks_from": entry_point,
            "rolespec_validate": False,
        }
    }
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
    path = folder / "play.json"
    path.write_text(json.dumps([play]), encoding="utf-8")
    return str(path)


def run_playbook(
    ansible: Ansible, playbook: str, *arguments: str, core: str = NEWEST
) -> tuple[int, str]:
    """Return the exit status and the output of ansible-playbook."""
    done = ansible.command(find_ansible_playbook(ansible, core), playbook, *arguments)
    return done.status, done.output


def run_row(ansible: Ansible, row: Bad, core: str = NEWEST) -> tuple[int, str]:
    role, _space, entry_point = row.run.partition(" ")
    playbook = f"osops.placement.{role}"
    if entry_point:
        playbook = write_play(ansible.folder, role, entry_point)
    extra = ["-e", row.given]
    if role.endswith("_clouds"):
        extra += ["-i", "north,", "-e", "orphan_cleanup_clouds=north"]
    is_about_hosts = "decommission" in role or role == "drain_host"
    if is_about_hosts and "required" not in row.sentence:
        extra += ["-e", "host_decommission_target=compute-1"]
    return run_playbook(ansible, playbook, *extra, core=core)


def assert_one_sentence(cloud: Cloud, output: str, sentence: str) -> None:
    """Assert that the output ends with the sentence, briefly, and that no request was sent."""
    (message,) = set(re.findall(r'"msg": (".*?[^\\]")[,}]', output))
    assert sentence in json.loads(message)
    from_error = output[re.search(r"^(\[ERROR\]|fatal:)", output, re.MULTILINE).start() :]
    lines = from_error.partition("PLAY RECAP")[0].splitlines()
    assert len(lines) <= MAX_LINES, output
    assert sum(map(len, lines)) <= MAX_CHARACTERS, output
    for wall in ("Traceback", "argument_spec", "secret", LONG):
        assert wall not in output
    assert not cloud.was_asked()


# The first row of each part, and all that only a run can show.
ROWS = [*(rows[0] for rows in BAD.values()), TEMPLATES[0], *map(long, TEMPLATES[1:])]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.run} {row.given[:60]}")
@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_a_bad_variable_fails_with_one_sentence_before_any_request(
    cloud: Cloud, ansible: Ansible, core: str, row: Bad
) -> None:
    status, output = run_row(ansible, row, core)

    assert status == 2
    assert_one_sentence(cloud, output, row.sentence)
    assert not (ansible.folder / "orphan-cleanup").exists()


@pytest.mark.parametrize(
    ("core", "playbook", "arguments", "sentence"),
    [(NEWEST, *NO_HOSTS[0]), (OLDEST, *NO_HOSTS[6]), *(long(NEWEST, *row) for row in NO_HOSTS[1:])],
)
def test_a_playbook_without_hosts_fails(
    cloud: Cloud,
    ansible: Ansible,
    core: str,
    playbook: str,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    status, output = run_playbook(ansible, f"osops.placement.{playbook}", *arguments, core=core)

    assert status in (1, 4)
    assert "Nothing was done: " in output
    assert sentence in " ".join(output.split())
    assert "Traceback" not in output and "PLAY [" not in output
    assert not cloud.was_asked()


@pytest.mark.parametrize(
    ("core", "playbook", "options", "sentence"),
    [(NEWEST, *LEFT_OUT[0]), (OLDEST, *LEFT_OUT[1]), *(long(NEWEST, *row) for row in LEFT_OUT[1:])],
)
def test_options_that_leave_out_stages_are_refused(
    cloud: Cloud,
    ansible: Ansible,
    core: str,
    playbook: str,
    options: tuple[str, ...],
    sentence: str,
) -> None:
    targets = {
        "cleanup_clouds": ("-i", "north,", "-e", "orphan_cleanup_clouds=all"),
        "cleanup_hypervisor": ("-i", "c,", "-e", "hypervisor_cleanup_hosts=all"),
    }
    arguments = (*options, *targets.get(playbook, ()))
    if playbook.endswith("_host"):
        arguments = (*options, "-e", "host_decommission_target=compute-1")

    status, output = run_playbook(ansible, f"osops.placement.{playbook}", *arguments, core=core)

    assert status != 0 and sentence in " ".join(output.split()), output
    assert not cloud.was_asked()


# Plays of a user. With tags of their own, a role is chosen or left out as a whole.
TAGGED = {"debug": {"msg": "it ran"}, "tags": ["web"]}
ROLE = {
    "name": "osops.placement.orphan_cleanup",
    "tasks_from": "detect",
    "rolespec_validate": False,
}
STATIC = {"import_role": ROLE, "tags": ["placement"]}
INCLUDED = {"include_role": ROLE, "tags": ["placement"]}
APPLIED = {"include_role": {**ROLE, "apply": {"tags": ["placement"]}}, "tags": ["placement"]}
ALWAYS = {"import_role": ROLE, "tags": ["always"]}


@pytest.mark.parametrize(
    ("role", "options", "outcome"),
    [
        (INCLUDED, ("--tags", "placement"), "refused"),
        long(STATIC, ("--tags", "web"), "left out"),
        long(STATIC, ("--skip-tags", "placement"), "left out"),
        long(STATIC, ("--tags", "placement"), "run"),
        long(APPLIED, ("--tags", "placement"), "run"),
        long(ALWAYS, ("--tags", "web"), "run"),
        long(STATIC, ("--tags", "detect"), "refused"),
        long(STATIC, ("--skip-tags", "web"), "run"),
        long(STATIC, ("--start-at-task", "Find orphaned allocations"), "refused"),
    ],
)
@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_tags_of_a_user_choose_the_role_as_a_whole(
    cloud: Cloud,
    ansible: Ansible,
    core: str,
    role: dict[str, t.Any],
    options: tuple[str, ...],
    outcome: str,
) -> None:
    cloud.close()
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [TAGGED, role]}
    path = ansible.folder / "play.json"
    path.write_text(json.dumps([play]), encoding="utf-8")

    status, output = run_playbook(ansible, str(path), *options, core=core)

    told = " ".join(output.split())
    assert (status == 0) == (outcome == "left out"), output
    assert ("cannot be reached" in told) == (outcome == "run"), output
    assert ("leave out" in told) == (outcome == "refused"), output


CHECK, CLOUD = {"check_mode": True}, {"environment": {"OS_CLOUD": "north"}}


@pytest.mark.parametrize(
    ("entry", "keyword"),
    [
        ({"import_playbook": "osops.placement.detect_orphans", **CHECK}, "check_mode"),
        long({"ansible.builtin.import_playbook": "play.json", **CLOUD}, "environment"),
        ({"include_role": {**ROLE, "apply": CHECK}}, ""),
        long({"import_role": ROLE, **CHECK}, ""),
        long({"block": [{"include_role": ROLE}], **CHECK}, ""),
    ],
)
@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_keywords_that_ansible_ignores_beside_an_import_are_refused(
    cloud: Cloud, ansible: Ansible, core: str, entry: dict[str, t.Any], keyword: str
) -> None:
    """With `check_mode` there, the role would change what it finds."""
    cloud.close()
    site, play = ansible.folder / "site.json", ansible.folder / "play.json"
    is_task = not any("import_playbook" in name for name in entry)
    tasks = [entry if is_task else {"import_role": ROLE}]
    play.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    site.write_text(json.dumps([{"import_playbook": "play.json"} if is_task else entry]))

    status, output = run_playbook(ansible, str(site), core=core)

    assert status != 0
    assert (f"{keyword} beside import_playbook has" in " ".join(output.split())) == bool(keyword), (
        output
    )
    assert ("cannot be reached" in " ".join(output.split())) == (not keyword), output


def encrypt(text: str) -> str:
    """Return a text as `ansible-vault encrypt_string` writes it, with the password `x`."""
    vault = VaultLib([("default", VaultSecret(b"x"))])
    return vault.encrypt(text).decode()


@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_a_vault_without_its_password_is_one_sentence(
    cloud: Cloud, ansible: Ansible, core: str
) -> None:
    lines = "".join(f"    {line}\n" for line in encrypt("1h").splitlines())
    variables = ansible.folder / "extra.yml"
    variables.write_text(f"orphan_cleanup_min_age: !vault |\n{lines}", encoding="utf-8")

    status, output = run_playbook(
        ansible, "osops.placement.cleanup_orphans", "-e", f"@{variables}", core=core
    )

    assert status == 2
    assert_one_sentence(cloud, output, "orphan_cleanup_min_age is in a vault that this run cannot")


@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_numbers_that_yaml_misreads_are_refused_in_an_inventory(
    cloud: Cloud, ansible: Ansible, core: str
) -> None:
    (ansible.folder / "group_vars").mkdir()
    (ansible.folder / "group_vars" / "all.yml").write_text(
        "orphan_cleanup_min_age: 1:00\n", encoding="utf-8"
    )
    inventory = ansible.folder / "hosts"
    inventory.write_text("localhost ansible_connection=local", encoding="utf-8")

    status, output = run_playbook(
        ansible, "osops.placement.cleanup_orphans", "-i", str(inventory), core=core
    )

    assert status == 2
    assert_one_sentence(cloud, output, "orphan_cleanup_min_age is 1:00, which YAML reads as 60:")


@pytest.mark.parametrize(
    ("given", "is_used"),
    [
        ("my_hosts=a", True),
        ("of_group=a", True),
        ("of_other_host=a", True),
        ("of_task=a", True),
        ("awx_job_id=7", True),
        ("ansible_user=x", True),
        ("ticket=1", False),
        ("hosts=a", False),
        ("host=a", False),
    ],
)
@pytest.mark.parametrize("core", [long(NEWEST), long(OLDEST)])
def test_variables_that_a_play_or_its_inventory_uses_are_accepted(
    cloud: Cloud, ansible: Ansible, core: str, given: str, is_used: bool
) -> None:
    cloud.close()
    inventory = ansible.folder / "hosts.ini"
    inventory.write_text(
        "localhost ansible_connection=local "
        "ansible_python_interpreter='{{ ansible_playbook_python }}'\n"
        "other x='{{ of_other_host }}'\n[all:vars]\ny='{{ of_group }}'\n",
        encoding="utf-8",
    )
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"orphan_cleanup_hosts": ["{{ my_hosts | default('a') }}"]},
        "tasks": [
            {"include_role": ROLE},
            {"debug": {"msg": "{% for host in groups.all %}{{ host }}{% endfor %}"}},
            {"debug": {"msg": "x"}, "when": ["of_task is defined"]},
        ],
    }
    path = ansible.folder / "play.json"
    path.write_text(json.dumps([play]), encoding="utf-8")

    _status, output = run_playbook(ansible, str(path), "-i", str(inventory), "-e", given, core=core)

    assert ("cannot be reached" in output) == is_used, output
    assert (f"variable {given.partition('=')[0]}" in output) != is_used, output


@pytest.mark.parametrize("option", ["--syntax-check", long("--list-hosts"), long("--list-tasks")])
def test_a_playbook_without_hosts_can_be_listed(ansible: Ansible, option: str) -> None:
    status, output = run_playbook(ansible, "osops.placement.cleanup_clouds", option)

    assert status == 0, output


def test_every_way_to_set_a_variable_counts(cloud: Cloud, ansible: Ansible) -> None:
    """A variable of the inventory, of a play, of include_vars, registered, or set as a fact."""
    (ansible.folder / "included.yml").write_text("orphan_cleanup_included: 1", encoding="utf-8")
    role = {"name": "osops.placement.orphan_cleanup", "rolespec_validate": False}
    play = {
        "hosts": "localhost",
        "vars": {"orphan_cleanup_play": 1},
        "tasks": [
            {"ansible.builtin.include_vars": str(ansible.folder / "included.yml")},
            {"ansible.builtin.set_fact": {"orphan_cleanup_set": 1}},
            {"ansible.builtin.debug": {"msg": "x"}, "register": "orphan_cleanup_registered"},
            {
                "ansible.builtin.include_role": role,
                "vars": {"orphan_cleanup_task": 1, "_orphan_cleanup_own": 1},
            },
        ],
    }
    inventory = ansible.folder / "inventory.ini"
    inventory.write_text("localhost ansible_connection=local", encoding="utf-8")
    run = ansible.play(play, arguments=("-i", str(inventory)))

    assert run.status == 2
    for name in ("included", "play", "registered", "set", "task"):
        assert f"orphan_cleanup_{name} is not" in run.output
    assert "_orphan_cleanup_own" not in run.output
    assert not cloud.was_asked()


@pytest.mark.parametrize(
    ("folder", "playbook"),
    [
        ("playbooks", "cleanup_orphans.yml"),
        long(".", "playbooks/cleanup_orphans.yml"),
        long("/", str(ROOT / "playbooks" / "cleanup_orphans.yml")),
    ],
)
@pytest.mark.parametrize("core", [NEWEST, long(OLDEST)])
def test_a_playbook_of_a_clone_finds_the_roles_from_anywhere(
    ansible: Ansible, folder: str, playbook: str, core: str
) -> None:
    """The role is found, because it is the role that refuses the variable."""
    del ansible.environment["ANSIBLE_COLLECTIONS_PATH"]
    given = (playbook, "--check", "-e", "orphan_cleanup_host=compute-1")
    program = find_ansible_playbook(ansible, core)

    assert "orphan_cleanup_hosts?" in ansible.command(program, *given, folder=ROOT / folder).output


@pytest.mark.parametrize("core", [long(NEWEST), long(OLDEST)])
def test_texts_of_the_command_line_are_lists_and_truth_values(
    cloud: Cloud, ansible: Ansible, core: str
) -> None:
    """`NAME=VALUE` always gives a text. The run gets as far as the cloud, which is gone."""
    cloud.close()
    given = {
        "orphan_cleanup_report_formats": "html",
        "orphan_cleanup_notify_required": "false",
        "orphan_cleanup_notify_url": f"{cloud.environment['OS_AUTH_URL']}/hook",
        "orphan_cleanup_min_age": "",
    }
    extra = [f"-e{name}={value}" for name, value in given.items()]
    _status, output = run_playbook(ansible, "osops.placement.detect_orphans", *extra, core=core)

    assert "notification was not delivered" in output, output
    assert "can only concatenate" not in output and "Conditional result" not in output
    assert "Nothing was changed" not in output
