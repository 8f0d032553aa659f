"""The variables of the roles: every row of the table of bad ones, and what must be accepted."""

import re
import shlex
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.parsing.splitter import parse_kv

from ......plugins.action.validate_variables import ROLES
from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.modules import validate_variables
from ......plugins.plugin_utils._hosts.drain import build_drain_artifact
from ......plugins.plugin_utils._report.status import build_artifacts, build_journal_artifact
from ......plugins.plugin_utils._variables.checks import Run, explain_emptied, read_fenced
from ......plugins.plugin_utils._variables.roles import Variables, format_faults
from ......plugins.plugin_utils._variables.texts import find_lost_texts, find_mentioned
from .....integration.bad_variables import BAD, LONG, Bad

ROOT = Path(__file__).parents[5]
ENTRY_POINTS = {
    "cleanup_orphans": ("orphan_cleanup", "main"),
    "cleanup_clouds": ("orphan_cleanup", "main"),
    "detect_orphans": ("orphan_cleanup", "detect"),
    "detect_clouds": ("orphan_cleanup", "detect"),
    "restore_allocations": ("orphan_cleanup", "restore"),
    "heal_allocations": ("orphan_cleanup", "heal"),
    "decommission_host": ("host_decommission", "main"),
    "drain_host": ("host_decommission", "drain"),
    "cleanup_hypervisor": ("hypervisor_cleanup", "main"),
}
ROWS = [row for rows in BAD.values() for row in rows]
NO_OPTIONS: dict[str, t.Any] = {}
ONE_CLOUD = Run(is_one_cloud=True)


def parse_extra_variables(given: str) -> dict[str, t.Any]:
    """Return what Ansible makes of the text that follows `-e`."""
    if given.startswith("{"):
        return t.cast("dict[str, t.Any]", yaml.safe_load(given))
    name, _equals, value = given.partition("=")
    return {name: value if value.startswith("[") else " ".join(shlex.split(value))}


def validate(
    role: str, variables: dict[str, t.Any], entry_point: str = "main", extra: bool = True
) -> list[str]:
    """Return the faults of a run with these variables and the defaults of the role."""
    path = ROOT / "roles" / role / "defaults" / "main.yml"
    defaults = yaml.safe_load(path.read_text(encoding="utf-8"))
    if role == "hypervisor_cleanup":
        defaults["hypervisor_cleanup_host"] = "localhost"
    defined = {**defaults, **variables}
    values = {name: defined[name] for name in ROLES[role].options if name in defined}
    run = Run(entry_point, "localhost", has_files=True, is_one_cloud=True)
    return judge(role, defined, variables if extra else {}, values, run)


def judge(
    role: str,
    defined: dict[t.Any, t.Any],
    extra: dict[t.Any, t.Any],
    values: dict[str, t.Any],
    run: Run,
    texts: tuple[str, ...] = (),
) -> list[str]:
    """Return the faults of a run whose inventory has all variables, and no playbook uses others."""
    if "orphan_cleanup_ignore_variables" in defined:
        values["orphan_cleanup_ignore_variables"] = defined["orphan_cleanup_ignore_variables"]

    def find_used(names: t.Collection[str]) -> set[str]:
        return find_mentioned(names, [defined])

    return Variables(
        ROLES[role], ROLES, run, defined, extra, values, find_used, lambda: list(texts)
    ).find_faults()


def find_row_faults(row: Bad) -> list[str]:
    run = ENTRY_POINTS.get(row.run) or row.run.split()
    variables = parse_extra_variables(row.given)
    if run[0] == "host_decommission" and "required" not in row.sentence:
        variables.setdefault("host_decommission_target", "compute-1")
    return validate(run[0], variables, run[1])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.run} {row.given[:60]}")
def test_a_bad_variable_is_one_sentence(row: Bad) -> None:
    faults = find_row_faults(row)
    message = format_faults(faults)

    assert row.sentence in message
    assert row.run == "restore_allocations" or len(faults) == 1 or "more" in row.sentence, faults
    assert "\n" not in message and len(message) < 700
    assert message.endswith(" Nothing was changed.")
    assert "secret" not in message and LONG not in message


def test_the_table_is_as_long_as_promised() -> None:
    assert len({row[:2] for row in ROWS}) >= 150
    assert {row.run for row in ROWS} >= {"cleanup_orphans", "decommission_host", *ENTRY_POINTS} - {
        "cleanup_clouds",
        "cleanup_hypervisor",
    }


@pytest.mark.parametrize("role", ROLES)
def test_the_defaults_are_accepted(role: str) -> None:
    variables = {"host_decommission_target": "compute-1"} if role == "host_decommission" else {}

    assert validate(role, variables) == []


@pytest.mark.parametrize(
    "variables",
    [
        {"orphan_cleanup_min_age": None, "orphan_cleanup_stale_min_age": ""},
        {"orphan_cleanup_hosts": []},
        {"orphan_cleanup_hosts": "compute-1,compute-2", "orphan_cleanup_kinds": "extra_host"},
        {"orphan_cleanup_hosts": [12345], "orphan_cleanup_min_age": "90"},
        {"orphan_cleanup_report_formats": "html"},
        {"orphan_cleanup_notify_required": "false", "orphan_cleanup_validate_certs": "no"},
        {"orphan_cleanup_max_changes": "0", "orphan_cleanup_max_share": "1"},
        {"orphan_cleanup_max_share": 0, "orphan_cleanup_progress_every": 0},
        {"orphan_cleanup_api_timeout": "120", "orphan_cleanup_shard": "2/8"},
        {"orphan_cleanup_cloud": {"auth": {"password": "x"}}, "orphan_cleanup_auth": {"a": "b"}},
        {"orphan_cleanup_auth": '{"auth_url": "x"}', "orphan_cleanup_auth_type": None},
        {"orphan_cleanup_metrics_path": "/tmp/x.prom", "orphan_cleanup_output_dir": "/tmp/a/b"},
        {"orphan_cleanup_state": "", "orphan_cleanup_select": None},
        {"orphan_cleanup_metrics_path": None},
        {"orphan_cleanup_exclude_consumers": '["a"]'},
        {"orphan_cleanup_exclude_providers": [{"name": "x", "until": "2026-12-31"}, "y"]},
        {"orphan_cleanup_notify_url": "https://hooks.example/x", "orphan_cleanup_plan": ""},
        {"orphan_cleanup_run": {}},
        {"_orphan_cleanup_one_of_many": True, "awx_job_id": 1, "tower_job_id": 1},
        {"awx_execution_node": "node", "tower_execution_node": "node"},
        {"orphan_cleanup_ignore_variables": ["kolla_*"], "kolla_internal_vip": "x"},
        {"awx_inventory_id": 1, "awx_webhook_event_type": "push", "ansible_user": "x"},
        {"ansible_eda": {"event": {}}},
        # Of the user, and not of a role.
        {"orphan_cleanup_ignore_variables": ["ticket", "orphan_cleanup_x"], "ticket": 1},
        {"orphan_cleanup_ignore_variables": "a, hosts", "hosts": "x", "a": ""},
        {"target": "x", "orphan_cleanup_hosts": ["{{ target }}"]},
        {"host_decommission_target": "a", "orphan_cleanup_hosts": "a"},
        {"awx_workflow_job_id": 1, "orphan_cleanup_plan": "x", "orphan_cleanup_select": "[0]"},
        {
            "awx_workflow_job_id": 1,
            "host_decommission_fenced": None,
            "host_decommission_drained": [{"host": "a"}],
        },
    ],
    ids=str,
)
def test_good_variables_are_accepted(variables: dict[str, t.Any]) -> None:
    assert validate("orphan_cleanup", variables) == []


@pytest.mark.parametrize(
    "journal",
    ['{"orphan_cleanup_journal": []}', "a\nb", [{"a": 1}], {"by_host": {"host localhost": "/etc"}}],
    ids=str,
)
def test_a_journal_may_be_more_than_a_path(journal: t.Any) -> None:
    assert validate("orphan_cleanup", {"orphan_cleanup_journal": journal}, "restore") == []


@pytest.mark.parametrize("short", ["hosts", "consumers", "exclude_providers", "min_age"])
@pytest.mark.parametrize(
    ("raw", "value", "is_emptied"),
    [
        ("{{ groups.retired }}", [], True),
        ("{{ groups.retired | join(',') }}", "", True),
        ("{{ none }}", None, True),
        ("{{ groups.retired }}", ["a"], False),
        ("{{ groups.retired | default(omit, true) }}", "OMITTED", False),
        (["{{ a | default(omit) }}"], ["OMITTED"], True),
        (["{{ a | default(omit) }}"], [], True),
        (["{{ a | default(omit) }}", "b"], ["OMITTED", "b"], False),
        ([], [], False),
        ("[]", "[]", False),
        ("", "", False),
        (None, None, False),
    ],
)
def test_a_limit_whose_template_comes_to_nothing_is_refused(
    short: str, raw: t.Any, value: t.Any, is_emptied: bool
) -> None:
    sentence = explain_emptied(
        ROLES["orphan_cleanup"].options[f"orphan_cleanup_{short}"], raw, value, "OMITTED"
    )

    assert bool(sentence) == (is_emptied and short != "min_age")


def test_a_variable_of_the_users_own_is_to_be_renamed() -> None:
    """Names that are registered, set or in the inventory are no mistakes of the command line."""
    (fault,) = validate("orphan_cleanup", {"orphan_cleanup_result": 1}, extra=False)

    assert fault.startswith("orphan_cleanup_result ") and fault.endswith(" rename it.")


def test_limits_are_judged_only_among_extra_variables() -> None:
    """An inventory has variables for several playbooks."""
    variables = {"x": "x", "orphan_cleanup_restore_providers": ["compute-1"]}
    selection = {"orphan_cleanup_plan": "plan.json", "orphan_cleanup_select": "[0]"}

    assert validate("orphan_cleanup", {**variables, **selection}, extra=False) == []
    assert len(validate("orphan_cleanup", {**variables, **selection})) == 3


def judge_limits(
    extra: dict[str, t.Any],
    inventory: dict[str, t.Any],
    run: Run = ONE_CLOUD,
    role: str = "orphan_cleanup",
) -> list[str]:
    """Return the faults of extra variables beside those of an inventory or of a playbook."""
    defined = {**inventory, **extra}
    values = {name: defined[name] for name in ROLES[role].options if name in defined}
    # Ansible evaluates templates, and here their values do not matter.
    plain = {name: value for name, value in values.items() if "{{" not in str(value)}
    return judge(role, defined, extra, plain, run)


@pytest.mark.parametrize(
    "used",
    [
        {"orphan_cleanup_hosts": "{{ hosts }}"},
        {"orphan_cleanup_hosts": ["{{ lookup('vars', 'hosts') }}"]},
        {"any": {"of": [{"them": "{% if vars['hosts'] %}x{% endif %}"}]}},
        {"tasks": [{"when": "hosts is defined"}, {"when": ["x", "y"]}]},
        {"tasks": [{"assert": {"that": ["x", "hosts | custom_filter('a') is custom_test"]}}]},
        {"vars_prompt": [{"name": "hosts", "prompt": "Which hosts?"}]},
        {"x": "{{ hostvars['a'].hosts }}"},
    ],
    ids=str,
)
def test_a_variable_that_something_uses_is_accepted(used: dict[str, t.Any]) -> None:
    assert judge_limits({"hosts": "a"}, used) == []


@pytest.mark.parametrize(
    "unused",
    [
        {"orphan_cleanup_hosts": ["a"]},
        {"hosts": "all", "tasks": [{"name": "hosts", "x": "{{ groups.hosts }} {{ 'hosts' }}"}]},
        {"x": "{% for hosts in y %}{{ hosts }}{% endfor %}"},
        {"x": "{{ lookup('env', 'hosts') }}", "y": "hosts", "z": "{{ hosts"},
        {"x": "{{ y | selectattr('hosts') }}", "when": "item.hosts"},
    ],
    ids=str,
)
def test_a_word_that_is_no_variable_uses_none(unused: dict[str, t.Any]) -> None:
    (fault,) = judge_limits({"hosts": "a"}, {"x": unused})

    assert " hosts: write orphan_cleanup_hosts" in fault


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("orphan_clean_hosts", "orphan_cleanup_hosts"),
        ("hostname", "orphan_cleanup_hosts"),
        ("compute_node", "orphan_cleanup_hosts"),
        ("ansible_limit", "orphan_cleanup_hosts"),
        ("exclude_hosts", "orphan_cleanup_exclude_providers"),
        ("exclude_server", "orphan_cleanup_exclude_consumers"),
        ("exclude_racks", ""),
        ("uuid", "orphan_cleanup_consumers"),
        ("awx_hosts", "orphan_cleanup_hosts"),
        ("dry", "--check"),
        ("simulate", "--check"),
        ("frobnicate", ""),
        ("host_decommissioned_at", ""),
        ("inventory_hostname", "orphan_cleanup_hosts"),
        ("ansible_orphan_cleanup_hosts", "orphan_cleanup_hosts"),
        ("ansible_hosts", "orphan_cleanup_hosts"),
        ("ansible_dry_run", "--check"),
        ("ansible_check", "--check"),
        ("ansible_frobnicate", ""),
        ("awx_job_limit", "orphan_cleanup_hosts"),
        ("tower_inventory_hosts", "orphan_cleanup_hosts"),
    ],
)
def test_an_unused_variable_is_refused_whatever_its_name(name: str, meant: str) -> None:
    for value in ("x", "", None):
        (fault,) = judge_limits({name: value}, {})

        assert f" variable {name}:" in fault
        assert (meant or "leave it out") in fault


@pytest.mark.parametrize(
    "name",
    [
        *("ansible_become", "ansible_become_password", "ansible_connection", "ansible_eda"),
        *("ansible_host_key_checking", "ansible_python_interpreter", "ansible_remote_tmp"),
        *("ansible_ssh_common_args", "ansible_ssh_retries", "ansible_sudo_pass"),
        *("awx_job_launch_type", "awx_job_template_name", "awx_parent_job_schedule_id"),
        *("awx_project_revision", "awx_user_first_name", "awx_webhook_payload"),
        *("awx_workflow_job_launch_type", "tower_inventory_id"),
    ],
)
def test_what_ansible_and_awx_read_or_set_is_accepted(name: str) -> None:
    assert judge_limits({name: "x"}, {}) == []


@pytest.mark.parametrize(
    ("role", "entry_point", "meant"),
    [
        ("orphan_cleanup", "main", "orphan_cleanup_hosts."),
        ("orphan_cleanup", "restore", "orphan_cleanup_restore_providers."),
        ("host_decommission", "drain", "host_decommission_target."),
        ("hypervisor_cleanup", "main", ""),
    ],
)
def test_a_limit_of_the_command_line_that_does_not_limit_is_refused(
    role: str, entry_point: str, meant: str
) -> None:
    inventory = {"host_decommission_target": "a", "hypervisor_cleanup_host": "a"}
    for limit, is_one_cloud in (
        ("!compute-4", True),
        ("localhost,compute-1", True),
        ("!compute-4", False),
        ("localhost", True),
        ("all", True),
        ("", True),
    ):
        run = Run(entry_point, is_one_cloud=is_one_cloud, limit=limit)
        faults = judge_limits({}, inventory, run, role)

        is_refused = "compute" in limit and is_one_cloud and bool(meant)
        assert [fault.endswith(meant) for fault in faults] == [True] * is_refused


def test_a_limit_of_another_role_is_refused_unless_the_play_has_that_role() -> None:
    extra = {"host_decommission_target": "compute-1"}
    role = {"include_role": {"name": "osops.placement.host_decommission"}}

    (fault,) = judge_limits(extra, {})

    assert "write orphan_cleanup_hosts." in fault
    assert judge_limits(extra, {"x": [role]}) == []


@pytest.mark.parametrize(
    ("role", "name", "meant"),
    [
        ("orphan_cleanup", "host_decommission_min_age", "min_age"),
        ("orphan_cleanup", "hypervisor_cleanup_max_changes", "max_changes"),
        ("orphan_cleanup", "host_decommission_ignore_allocators", "ignore_allocators"),
        ("orphan_cleanup", "host_decommission_stages", ""),
        ("host_decommission", "orphan_cleanup_min_age", "min_age"),
        ("host_decommission", "orphan_cleanup_plan", ""),
        ("host_decommission", "orphan_cleanup_remediate_kinds", "remediate_kinds"),
        ("host_decommission", "hypervisor_cleanup_remediate_kinds", ""),
        ("hypervisor_cleanup", "orphan_cleanup_min_age", "min_age"),
    ],
)
def test_every_variable_of_another_role_is_refused(role: str, name: str, meant: str) -> None:
    for value in ("30d", ""):
        (fault,) = judge_limits({name: value}, {"host_decommission_target": "a"}, role=role)

        assert fault.startswith(f"{name} ")
        assert (f"write {role}_{meant}." if meant else "leave it out.") in fault


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("orphan_cleanup_hosts: compute-1", "write -e orphan_cleanup_hosts=compute-1."),
        ("orphan_cleanup_hosts = compute-1", "write -e orphan_cleanup_hosts=compute-1."),
        ("orphan_cleanup_hosts:compute-1", "write -e orphan_cleanup_hosts=compute-1."),
        ("orphan_cleanup_hosts: [a, b]", "write -e orphan_cleanup_hosts=a,b."),
        ("orphan_cleanup_auth: {password: secret}", "write -e orphan_cleanup_auth=VALUE."),
        ("orphan_cleanup_notify_url: secret", "write -e orphan_cleanup_notify_url=VALUE."),
        ("os_pwd: secret", "write -e os_pwd=VALUE."),
        ("site.yml", "write -e @site.yml for a file."),
        ("compute-2", "-e orphan_cleanup_hosts=ONE,TWO"),
        ("secret words", "quotes around a value with spaces"),
    ],
)
def test_what_ansible_does_not_understand_is_refused(text: str, form: str) -> None:
    (fault,) = judge_limits({"_raw_params": text}, {})

    assert form in fault and ("secret" not in fault)


@pytest.mark.parametrize(
    "given",
    [
        "orphan_cleanup_auth: {user: admin, password: c2VjcmV0==}",
        ' {"orphan_cleanup_auth": {"password": "c2VjcmV0=="}}',
        ' {"orphan_cleanup_auth":{"password":"c2VjcmV0=="}}',
        "orphan_cleanup_auth:{password:c2VjcmV0==}",
        "orphan_cleanup_hosts=a password:c2VjcmV0==",
    ],
)
def test_parts_of_a_text_that_ansible_takes_for_names_are_not_shown(given: str) -> None:
    (fault,) = judge_limits(dict(parse_kv(given)), {})

    assert "-e" in fault and "c2VjcmV0" not in fault


@pytest.mark.parametrize(
    ("texts", "lost"),
    [
        ((" ",), ["-e"]),
        (("@good.yml", "orphan_cleanup_hosts=a,b", "{}", "a=1 a=2"), []),
        (("orphan_cleanup_hosts=a x=orphan_cleanup_hosts=b",), []),
        (("orphan_cleanup_hosts=a", "orphan_cleanup_hosts=b"), ["orphan_cleanup_hosts"]),
        (("orphan_cleanup_hosts=a b=1 orphan_cleanup_hosts=b",), ["orphan_cleanup_hosts"]),
        (("orphan_cleanup_hosts=a", "{orphan_cleanup_hosts: [b]}"), ["orphan_cleanup_hosts"]),
        (('{"orphan_cleanup_min_age": "1d", "orphan_cleanup_min_age": "1h"}',), ["orphan_cleanup"]),
        (
            ("host_decommission_target=a", "host_decommission_target=b"),
            ["host_decommission_target"],
        ),
        (("@bad.yml",), ["orphan_cleanup_min_age"]),
        (("@good.yml", "orphan_cleanup_min_age=2d"), []),
        (("orphan_cleanup_min_age=2d", "@good.yml"), ["orphan_cleanup_min_age"]),
        (("{orphan_cleanup_hosts: ", "@vault.yml"), []),
    ],
    ids=str,
)
def test_texts_without_effect_are_refused(texts: tuple[str, ...], lost: list[str]) -> None:
    files = {
        "good.yml": "orphan_cleanup_min_age: !unsafe 1d\norphan_cleanup_hosts: []\n",
        "bad.yml": "orphan_cleanup_min_age: 1d\na: !vault x\norphan_cleanup_min_age: 1h\n",
        "vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n3132\n",
    }

    faults = find_lost_texts(texts, files.__getitem__, ROLES)

    assert len(faults) == len(lost)
    assert all(fault.startswith(name) for fault, name in zip(faults, lost, strict=True))


@pytest.mark.parametrize(
    ("text", "number", "written"),
    [
        ("orphan_cleanup_min_age: 1:00", 60, "1:00"),
        ("a: 1\norphan_cleanup_min_age:  010  # x", 8, "010"),
        ("{'orphan_cleanup_min_age': 010, x: 1}", 8, "010"),
        ('{"orphan_cleanup_min_age": !unsafe "1:00"}', 60, "1:00"),
        ("{orphan_cleanup_min_age: +1:00}", 60, "+1:00"),
        ("orphan_cleanup_min_age: 0_10", 8, "0_10"),
        ("orphan_cleanup_min_age: 60\norphan_cleanup_min_age: 1:00", 60, "1:00"),
        ("orphan_cleanup_min_age: 60", 60, ""),
        ("{'orphan_cleanup_min_age': 60}", 60, ""),
        ('{"orphan_cleanup_min_age": !unsafe "3600"}', 3600, ""),
        ("orphan_cleanup_min_age: 0", 0, ""),
    ],
)
def test_a_number_that_yaml_misreads_is_refused(text: str, number: int, written: str) -> None:
    values = {"orphan_cleanup_min_age": number}

    faults = judge("orphan_cleanup", {}, values, values, Run(), (text,))

    assert [f" is {written}, " in fault for fault in faults] == [True] * bool(written)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a 1:00\norphan_cleanup_min_age: *a\n",
        'a: 1:00\norphan_cleanup_min_age: "{{ a }}"\n',
        "x_orphan_cleanup_min_age: 60",
        "",
    ],
)
def test_a_duration_that_nobody_wrote_as_a_number_is_refused(text: str) -> None:
    for name, is_duration in (("min_age", True), ("quiet", True), ("max_changes", False)):
        role = "hypervisor_cleanup" if name == "quiet" else "orphan_cleanup"
        values = {f"{role}_{name}": 60}
        # Nothing is misread as zero and means something else.
        zero = {f"{role}_{name}": 0}
        assert judge(role, {}, zero, zero, Run(is_play=True), (text,)) == []

        faults = judge(role, {}, values, values, Run(is_play=True), (text,))

        assert [" write 60s " in fault for fault in faults] == [True] * is_duration


def test_a_limit_of_a_play_over_clouds_is_about_its_hosts() -> None:
    inventory = {"orphan_cleanup_cloud": "south", "orphan_cleanup_min_age": "wrong"}
    for name in ("cloud", "clouds"):
        (fault,) = judge_limits({name: "north"}, inventory, Run(is_play=True))
        assert "write orphan_cleanup_clouds," in fault
    assert judge_limits({"orphan_cleanup_clouds": "north"}, {}, Run(is_play=True)) == []


def test_the_hosts_of_a_play_over_hypervisors_limit_it() -> None:
    role, play = "hypervisor_cleanup", Run(is_play=True, play_hosts=2)

    (fault,) = judge_limits({"hosts": "compute-1"}, {}, play, role)
    assert "write hypervisor_cleanup_hosts," in fault
    (fault,) = judge_limits({"hypervisor_cleanup_host": "compute-1"}, {}, play, role)
    assert "write hypervisor_cleanup_hosts" in fault
    one = Run(is_play=True)
    assert judge_limits({"hypervisor_cleanup_host": "compute-1"}, {}, one, role) == []


def test_variables_for_two_roles_in_one_file_are_accepted() -> None:
    extra = {
        "orphan_cleanup_exclude_consumers": ["a"],
        "host_decommission_exclude_consumers": [],
        "host_decommission_target": "compute-1",
    }

    assert judge_limits(extra, {}, role="host_decommission") == []


def test_a_value_that_is_no_limit_is_never_read() -> None:
    """A vault whose password is missing fails when something reads it."""

    class Vaulted(str):
        def __eq__(self, _other: object) -> bool:
            raise AssertionError

        __hash__ = str.__hash__

    assert len(judge_limits({"mail_password": Vaulted("x")}, {})) == 1
    assert judge_limits({"ansible_password": Vaulted("x")}, {}) == []


def test_ansible_ignores_a_given_check_mode() -> None:
    extra = {"ansible_check_mode": "true"}

    (fault,) = judge("orphan_cleanup", {"ansible_check_mode": False}, extra, NO_OPTIONS, ONE_CLOUD)
    assert "give --check" in fault


def test_internal_variables_are_refused_only_where_they_would_win() -> None:
    for name in ("_orphan_cleanup_run", "orphan_cleanup"):
        assert validate("orphan_cleanup", {name: 1}, extra=False) == []


def test_what_is_no_text_is_no_name_of_a_variable() -> None:
    given = {1: 1, None: 1}

    assert judge("orphan_cleanup", {**given, "x": 1}, given, NO_OPTIONS, Run()) == []


def test_the_other_variables_are_those_of_playbooks_and_artifacts() -> None:
    names = {name for role in ROLES.values() for name in role.names - set(role.options)}
    playbooks = [path.read_text(encoding="utf-8") for path in ROOT.glob("playbooks/*.yml")]
    used = set()
    for text in playbooks:
        used |= set(re.findall(r"require_hosts', (\w+) \| default", text))
        used |= set(re.findall(r"^ +(_\w+_one_of_many): true$", text, re.MULTILINE))
    exported = {**build_artifacts({}, output_dir="", check_mode=False)}
    exported.update(build_journal_artifact([]))
    exported.update(build_drain_artifact({}, "compute-1", check_mode=False))

    assert names == used | {
        name for name in exported if name not in ROLES["orphan_cleanup"].options
    }


def test_the_documentation_lists_the_roles_and_the_other_variables() -> None:
    documented = yaml.safe_load(validate_variables.DOCUMENTATION)

    assert documented["options"]["role"]["choices"] == list(ROLES)
    for role in ROLES.values():
        assert f"V({role.prefix})" in validate_variables.DOCUMENTATION
        for name in role.names - set(role.options):
            assert name.startswith("_") or f"V({name})" in validate_variables.DOCUMENTATION


# The operator's word that hosts are fenced: taken literally.


@pytest.mark.parametrize(
    ("value", "fenced"),
    [
        (True, True),
        ("true", True),
        (" Yes ", True),
        (False, False),
        (None, False),
        ("", False),
        ("false", False),
        ("no", False),
        ([], []),
        ("compute-2", ["compute-2"]),
        ("compute-2, compute-1", ["compute-2", "compute-1"]),
        (["compute-1"], ["compute-1"]),
        (["'compute-1'"], ["compute-1"]),
        ("Compute-1", ["Compute-1"]),
    ],
)
def test_only_the_hosts_that_are_named_are_fenced(value: t.Any, fenced: bool | list[str]) -> None:
    assert read_fenced(value) == fenced


@pytest.mark.parametrize(
    "value",
    [
        *(0, 1, 1.0, "1", b"true", {"a": 1}, "{}"),
        *(["yes"], [True], [None], [["compute-1"]]),
        *("yes, compute-1", "[compute-1]", "compute-1 compute-2", ","),
    ],
    ids=str,
)
def test_what_may_mean_anything_is_refused(value: t.Any) -> None:
    with pytest.raises(InvalidInput):
        read_fenced(value)
