# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that can be copied into a shell, whatever the names in them are."""

from __future__ import annotations

import itertools
import json
import shlex
import typing as t

import pytest
from ansible import context
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.splitter import parse_kv

from ......plugins.plugin_utils._report.proposed_commands import (
    ENVIRONMENT,
    LEFT_OUT,
    Context,
    build_cleanup,
    keep_safe,
    list_safe_hosts,
)
from ..hostile import HOSTILE

_UUID = "0aa0a0aa-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the command line of Ansible to that of a playbook by its name."""
    for name in ("AWX_PRIVATE_DATA_DIR", *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    options = ImmutableDict(args=("osops.placement.cleanup_orphans",))
    monkeypatch.setattr(context, "CLIARGS", options)


def _read_variables(command: str) -> dict[str, t.Any]:
    """Return the extra variables of a command, as a shell and Ansible read them."""
    words = shlex.split(command)
    variables: dict[str, t.Any] = {}
    for option, value in itertools.pairwise(words):
        if option == "-e":
            variables |= json.loads(value) if value.startswith("{") else parse_kv(value)
    return variables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("/srv/plan.json", "-e orphan_cleanup_plan=/srv/plan.json"),
        ("/srv/a b/plan.json", """-e '{"orphan_cleanup_plan": "/srv/a b/plan.json"}'"""),
        ("it's", """-e '{"orphan_cleanup_plan": "it'"'"'s"}'"""),
        ("{{ lookup('pipe', 'id') }}", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
        ("-e", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
        ("", f"-e 'orphan_cleanup_plan={LEFT_OUT}'"),
    ],
)
def test_value_is_quoted_for_the_shell_and_for_ansible(value: str, text: str) -> None:
    command = build_cleanup({"orphan_cleanup_plan": keep_safe(value)}, Context())

    assert command == f"ansible-playbook osops.placement.cleanup_orphans {text}"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_value_is_the_same_text_or_left_out(name: str) -> None:
    value = HOSTILE[name]
    safe = keep_safe(value)
    command = build_cleanup({"path": safe, "hosts": [safe]}, Context())
    read = _read_variables(command)

    assert command.isprintable()
    assert read["path"] in (value, LEFT_OUT) and read["hosts"] in ([value], [LEFT_OUT])
    # Every template of Jinja begins with a brace.
    assert "{" not in read["path"]
    first, second, *_rest, last = shlex.split(command)
    assert (first, last) == ("ansible-playbook", "--check")
    assert second == "osops.placement.cleanup_orphans"


def _provide(root_name: str, root: str | None = _UUID, dropped: bool = False) -> dict[str, t.Any]:
    return {"root": root, "root_name": root_name, "dropped": dropped}


@pytest.mark.parametrize(
    ("providers", "hosts"),
    [
        ([], []),
        ([_provide("compute-2"), _provide("compute-1")], ["compute-1", "compute-2"]),
        ([_provide("compute-2"), _provide("compute-1", dropped=True)], ["compute-1"]),
        ([_provide("{{ 1 }}")], [_UUID]),
        ([_provide("{{ 1 }}", root=None)], [LEFT_OUT]),
        ([_provide("{{ 1 }}", root="{{ 1 }}")], [LEFT_OUT]),
    ],
)
def test_host_has_its_name_or_its_uuid(providers: t.Any, hosts: list[str]) -> None:
    assert list_safe_hosts(t.cast("t.Any", {"providers": providers})) == hosts
