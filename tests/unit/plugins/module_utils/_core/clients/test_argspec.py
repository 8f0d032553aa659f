# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several places that must agree: the table of kinds, the modules, the role and the README."""

from __future__ import annotations

import importlib
import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.osops.placement.plugins.module_utils._core.clients.argspec import (
    connection_options,
    run,
)
from ansible_collections.osops.placement.plugins.module_utils._core.findings.sightings import (
    sighting_options,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.kind import REMEDIATE
from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import (
    CHANGEABLE_KINDS,
    CONSUMER_KINDS,
    KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._core.options.policy import (
    policy_options,
)
from ansible_collections.osops.placement.plugins.module_utils._core.options.scope import (
    scope_options,
)
from ansible_collections.osops.placement.plugins.module_utils._core.plan.limits import (
    failures_option,
    limits_options,
)
from ansible_collections.osops.placement.plugins.module_utils._hosts.retirement import (
    retirement_options,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.notification import (
    NOTICE_FORMATTERS,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.report_files import FORMATS
from ansible_collections.osops.placement.plugins.plugin_utils._variables.role_variables import (
    read_options,
)

ROOT = pathlib.Path(__file__).parents[6]
CHANGED = [kind.name for kind in CHANGEABLE_KINDS]
REMEDIATED = [kind.name for kind in CHANGEABLE_KINDS if kind.by_default == REMEDIATE]
OF_CONSUMERS_NAMED = [kind.name for kind in CONSUMER_KINDS]


def _documented(kind: str, name: str) -> dict[str, t.Any]:
    """Return the documented options of a module or a documentation fragment."""
    plugin = importlib.import_module(f"ansible_collections.osops.placement.plugins.{kind}.{name}")
    text = plugin.DOCUMENTATION if kind == "modules" else plugin.ModuleDocFragment.DOCUMENTATION
    return t.cast("dict[str, t.Any]", yaml.safe_load(text)["options"])


def _role(path: str, name: str = "orphan_cleanup") -> t.Any:
    return yaml.safe_load((ROOT / "roles" / name / path).read_text(encoding="utf-8"))


def _role_options(name: str = "orphan_cleanup") -> dict[str, t.Any]:
    return dict(read_options(name))


def _facts(option: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {
        fact: option.get(fact) for fact in ("type", "elements", "default", "choices", "aliases")
    }


class Ended(Exception):
    """The end of a module, with its result."""


class Module:
    """The part of AnsibleModule that is needed to fail before any request.

    Its options contradict each other.
    """

    def __init__(self, **params: t.Any) -> None:
        self.params = {
            **dict.fromkeys(connection_options()),
            "cloud": {},
            "region_name": "RegionOne",
            **params,
        }
        # Ansible hides every value of an option with no_log.
        self.no_log_values = {*_leaves(self.params["auth"]), *_leaves(self.params["cloud"])}

    def fail_json(self, **result: t.Any) -> t.NoReturn:
        raise Ended(result)


def _leaves(option: t.Any) -> set[str]:
    if isinstance(option, dict):
        return {leaf for value in option.values() for leaf in _leaves(value)}
    return set() if option is None else {str(option)}


def _failed(module: Module) -> t.Any:
    with pytest.raises(Ended) as ended:
        run(
            t.cast("t.Any", module),
            lambda _module, connect: pytest.fail(f"it connected: {connect()}"),
        )
    return ended.value.args[0]


def test_error_fails_the_task_with_its_sentence_and_the_id_of_its_reason() -> None:
    assert _failed(Module()) == {
        "msg": (
            "cloud is a whole configuration, so region_name cannot be set beside it: put them "
            "into it."
        ),
        "reason_id": "invalid_input",
    }


def test_only_secrets_of_the_authentication_are_hidden_in_results() -> None:
    """Hiding a project named `ops` would damage every path with `ops` in it."""
    module = Module(
        auth={
            "username": "admin",
            "project_name": "ops",
            "password": "pw",
            "application_credential_secret": "s3",
            "token": "t",
            "code": "once",
        }
    )
    _failed(module)

    assert module.no_log_values == {"pw", "s3", "t", "once"}


def test_cloud_name_is_not_hidden() -> None:
    module = Module(cloud="ops", region_name=None, auth={"password": "pw"})
    with pytest.raises(pytest.fail.Exception):
        run(t.cast("t.Any", module), lambda _module, _connect: pytest.fail("it goes on"))

    assert module.no_log_values == {"pw"}


def test_secrets_inside_a_whole_configuration_are_hidden_in_results() -> None:
    module = Module(
        cloud={
            "region_name": "r",
            "auth": {"username": "admin", "password": "pw", "passcode": 123456, "token": None},
        }
    )
    _failed(module)

    assert module.no_log_values == {"pw", "123456"}


@pytest.mark.parametrize(
    ("fragment", "options"),
    [
        ("_connection", connection_options),
        ("_limits", limits_options),
        ("_failures", failures_option),
        ("_policy", policy_options),
        ("_retirement", retirement_options),
        ("_scope", scope_options),
    ],
)
def test_shared_options_match_their_documentation(
    fragment: str, options: t.Callable[[], dict[str, t.Any]]
) -> None:
    documented = _documented("doc_fragments", fragment)

    assert {name: _facts(option) for name, option in documented.items()} == {
        name: _facts(option) for name, option in options().items()
    }


def test_secrets_are_marked_no_log() -> None:
    assert {name for name, option in connection_options().items() if option.get("no_log")} == {
        "auth",
        "client_key",
        "cloud",
    }


def test_orphan_plan_documents_the_changeable_kinds() -> None:
    kinds = _documented("modules", "orphan_plan")["kinds"]

    assert (kinds["choices"], kinds["default"]) == (CHANGED, REMEDIATED)


def test_role_offers_the_changeable_kinds() -> None:
    kinds = _role_options()["orphan_cleanup_remediate_kinds"]

    assert (kinds["choices"], kinds["default"]) == (CHANGED, REMEDIATED)


def test_role_defaults_match_the_documentation() -> None:
    documented = {
        name: option["default"] for name, option in _role_options().items() if "default" in option
    }

    assert _role("defaults/main.yml") == documented


def test_role_and_orphan_report_offer_every_format_and_product() -> None:
    role, documented = _role_options(), _documented("modules", "orphan_report")

    assert (
        role["orphan_cleanup_report_formats"]["choices"]
        == documented["formats"]["choices"]
        == ["json", *FORMATS]
    )
    assert (
        role["orphan_cleanup_notify_format"]["choices"]
        == documented["notify_format"]["choices"]
        == list(NOTICE_FORMATTERS)
    )


@pytest.mark.parametrize("option", policy_options())
def test_role_policy_matches_the_modules(option: str) -> None:
    assert _facts(_role_options()[f"orphan_cleanup_{option}"]) == _facts(policy_options()[option])


@pytest.mark.parametrize("option", scope_options())
def test_role_scope_matches_the_modules(option: str) -> None:
    assert _facts(_role_options()[f"orphan_cleanup_{option}"]) == _facts(scope_options()[option])


@pytest.mark.parametrize("option", [*limits_options(), *failures_option()])
def test_role_limits_match_the_modules(option: str) -> None:
    assert _facts(_role_options()[f"orphan_cleanup_{option}"]) == _facts(
        {**limits_options(), **failures_option()}[option]
    )


@pytest.mark.parametrize("option", sighting_options())
def test_wait_options_are_the_same_everywhere(option: str) -> None:
    facts = _facts(sighting_options()[option])

    assert (
        _facts(_role_options()[f"orphan_cleanup_{option}"])
        == _facts(_documented("modules", "orphan_detect")[option])
        == facts
    )


@pytest.mark.parametrize("module", ["orphan_plan", "orphan_remediate"])
def test_limits_apply_to_planning_and_to_remediation(module: str) -> None:
    plugin = importlib.import_module(
        f"ansible_collections.osops.placement.plugins.modules.{module}"
    )

    assert (
        "osops.placement._limits"
        in yaml.safe_load(plugin.DOCUMENTATION)["extends_documentation_fragment"]
    )


@pytest.mark.parametrize("option", ["plan", "journal"])
def test_plan_and_journal_options_accept_a_path_or_the_data(option: str) -> None:
    module = {"plan": "orphan_remediate", "journal": "orphan_restore"}[option]

    assert (
        _role_options()[f"orphan_cleanup_{option}"]["type"]
        == _documented("modules", module)[option]["type"]
        == "raw"
    )


@pytest.mark.parametrize("role", ["orphan_cleanup", "host_decommission", "hypervisor_cleanup"])
@pytest.mark.parametrize("option", connection_options())
def test_role_connection_matches_the_modules(role: str, option: str) -> None:
    ours, theirs = (
        _facts(_role_options(role)[f"{role}_{option}"]),
        _facts(connection_options()[option]),
    )

    assert {**ours, "aliases": None} == {**theirs, "aliases": None}


def test_decommission_role_offers_the_kinds_that_change_allocations() -> None:
    """Whole trees cannot be chosen there: the host's tree is deleted, and no other."""
    of_role = _role_options("host_decommission")["host_decommission_remediate_kinds"]
    of_module = _documented("doc_fragments", "_retirement")["kinds"]

    assert (of_role["choices"], of_role["default"]) == (OF_CONSUMERS_NAMED, REMEDIATED)
    assert (of_module["choices"], of_module["default"]) == (OF_CONSUMERS_NAMED, REMEDIATED)


def test_decommission_role_defaults_match_the_documentation() -> None:
    documented = {
        name: option["default"]
        for name, option in _role_options("host_decommission").items()
        if "default" in option
    }

    assert _role("defaults/main.yml", "host_decommission") == documented


def test_decommission_role_requires_a_target() -> None:
    """No default may ever name a host, and no stage may run without one."""
    assert _role_options("host_decommission")["host_decommission_target"]["required"]
    assert "host_decommission_target" not in _role("defaults/main.yml", "host_decommission")
    assert _role_options("host_decommission")["host_decommission_max_hosts"]["default"] == 1


def test_hypervisor_role_defaults_match_the_documentation() -> None:
    documented = {
        name: option["default"]
        for name, option in _role_options("hypervisor_cleanup").items()
        if "default" in option
    }

    assert _role("defaults/main.yml", "hypervisor_cleanup") == documented
    assert documented["hypervisor_cleanup_remediate_kinds"] == []


@pytest.mark.parametrize(
    "option", ["min_age", "unknown_min_age", "exclude_consumers", "exclude_providers"]
)
def test_hypervisor_role_policy_matches_the_modules(option: str) -> None:
    assert _facts(_role_options("hypervisor_cleanup")[f"hypervisor_cleanup_{option}"]) == _facts(
        policy_options()[option]
    )


@pytest.mark.parametrize(
    "option", ["min_age", "unknown_min_age", "exclude_consumers", "exclude_providers"]
)
def test_decommission_role_policy_matches_the_modules(option: str) -> None:
    assert _facts(_role_options("host_decommission")[f"host_decommission_{option}"]) == _facts(
        policy_options()[option]
    )


def test_decommission_role_limit_and_other_regions_match_the_modules() -> None:
    ours, theirs = _role_options("host_decommission"), _documented("doc_fragments", "_retirement")

    assert _facts(ours["host_decommission_max_changes"]) == _facts(limits_options()["max_changes"])
    assert _facts(ours["host_decommission_ignore_other_regions"]) == _facts(
        theirs["ignore_other_regions"]
    )


def test_readme_lists_the_kinds_with_their_defaults() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| (yes|no)\b[^|]*\|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    assert rows == [
        (kind.name, kind.meaning, "yes" if kind.by_default == REMEDIATE else "no") for kind in KINDS
    ]
