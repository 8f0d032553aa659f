# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several places that must agree: the table of kinds, the modules, the role and the README."""

from __future__ import annotations

import importlib
import pathlib
import re
import types
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from .......plugins.module_utils._core.clients.context import CloudTask
from .......plugins.module_utils._core.models.kind import REMEDIATE
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.options.connection import ConnectionOptions
from .......plugins.module_utils._core.options.orphan_cleanup import OrphanCleanupOptions
from .......plugins.module_utils._hosts.host_decommission import HOST_DECOMMISSION
from .......plugins.module_utils._hosts.retirement import RetirementOptions
from .......plugins.plugin_utils._report.notification import NOTICE_FORMATTERS
from .......plugins.plugin_utils._report.report_files import FORMATS

ROOT = pathlib.Path(__file__).parents[6]


def _documented(name: str) -> dict[str, t.Any]:
    """Return the documented options of a module."""
    plugin = importlib.import_module(f"ansible_collections.osops.placement.plugins.modules.{name}")
    return t.cast("dict[str, t.Any]", yaml.safe_load(plugin.DOCUMENTATION)["options"])


class Ended(Exception):
    """The end of a module, with its result."""


def _run(monkeypatch: pytest.MonkeyPatch, **params: t.Any) -> tuple[dict[str, t.Any], set[str]]:
    """Return the result of a module that connects, and what is hidden in it.

    Its options contradict each other, so that it fails before any request.
    """
    options = {
        **dict.fromkeys(ConnectionOptions.build_spec()),
        "cloud": {},
        "region_name": "RegionOne",
        **params,
    }
    # Ansible hides every value of an option with no_log.
    hidden = {*_leaves(options["auth"]), *_leaves(options["cloud"])}

    def fail(**result: t.Any) -> t.NoReturn:
        raise Ended(result)

    module = types.SimpleNamespace(
        params=options,
        no_log_values=hidden,
        check_mode=False,
        _diff=False,
        warn=pytest.fail,
        fail_json=fail,
        exit_json=fail,
    )
    monkeypatch.setattr(basic, "AnsibleModule", lambda *_spec, **_rules: module)
    with pytest.raises(Ended) as ended:
        CloudTask(lambda cloud: {"name": cloud.connect().cloud.name}, {}).run_module()
    return ended.value.args[0], module.no_log_values


def _leaves(option: t.Any) -> set[str]:
    if isinstance(option, dict):
        return {leaf for value in option.values() for leaf in _leaves(value)}
    return set() if option is None else {str(option)}


def test_error_fails_the_task_with_its_sentence_and_the_id_of_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _hidden = _run(monkeypatch)

    assert result == {
        "failed": True,
        "msg": (
            "cloud is a whole configuration, so region_name cannot be set beside it: put them "
            "into it."
        ),
        "reason_id": "invalid_input",
    }


@pytest.mark.parametrize(
    ("params", "hidden"),
    [
        # Hiding a project named `ops` would damage every path with `ops` in it.
        (
            {
                "auth": {
                    "username": "admin",
                    "project_name": "ops",
                    "password": "pw",
                    "application_credential_secret": "s3",
                    "token": "t",
                    "code": "once",
                }
            },
            {"pw", "s3", "t", "once"},
        ),
        ({"cloud": "ops", "auth": {"password": "pw", "auth_url": "ops"}}, {"pw"}),
        (
            {
                "cloud": {
                    "region_name": "r",
                    "auth": {"username": "admin", "password": "pw", "passcode": 123456},
                }
            },
            {"pw", "123456"},
        ),
        # What is also a secret stays hidden.
        ({"auth": {"username": "admin", "password": "admin"}}, {"admin"}),
    ],
)
def test_only_secrets_of_the_authentication_are_hidden_in_results(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, t.Any], hidden: set[str]
) -> None:
    assert _run(monkeypatch, **params)[1] == hidden


def test_secrets_are_marked_no_log() -> None:
    spec = ConnectionOptions.build_spec()

    assert {name for name, option in spec.items() if option.get("no_log")} == {
        "auth",
        "client_key",
        "cloud",
    }


def test_role_and_orphan_report_offer_every_format_and_product() -> None:
    documented = _documented("orphan_report")

    assert (
        OrphanCleanupOptions.report_formats.choices
        == documented["formats"]["choices"]
        == ["json", *FORMATS]
    )
    assert (
        OrphanCleanupOptions.notify_format.choices
        == documented["notify_format"]["choices"]
        == list(NOTICE_FORMATTERS)
    )


def test_decommission_modules_offer_the_kinds_of_the_role() -> None:
    ours = RetirementOptions.kinds
    of_role = HOST_DECOMMISSION.options["host_decommission_remediate_kinds"]

    assert (ours.choices, ours.default) == (of_role.choices, of_role.default)


def test_decommission_role_requires_a_target() -> None:
    """No default may ever name a host, and no stage may run without one."""
    target = HOST_DECOMMISSION.options["host_decommission_target"]

    assert target.required and target.default is None
    assert HOST_DECOMMISSION.options["host_decommission_max_hosts"].default == 1


def test_readme_lists_the_kinds_with_their_defaults() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| (yes|no)\b[^|]*\|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    assert rows == [
        (kind.name, kind.meaning, "yes" if kind.by_default == REMEDIATE else "no") for kind in KINDS
    ]
