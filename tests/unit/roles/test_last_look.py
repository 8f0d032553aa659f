# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the role `host_decommission` looks at a host again right before it deletes it."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).parents[3] / "roles" / "host_decommission"
LOOK = "Check the host again, right before it is deleted"


def _is_looked_at(record: t.Any, *, check: bool = False, **found: t.Any) -> bool:
    """Return whether the task runs after a look with this result."""
    loader = DataLoader()
    variables: dict[str, t.Any] = {
        name: trust_as_template(value)
        for name, value in loader.load_from_file(str(ROLE / "vars" / "main.yml")).items()
        if isinstance(value, str)
    }
    variables["ansible_check_mode"] = check
    variables["_host_decommission_now"] = {
        "blockers": [],
        "left_over": [],
        "record": record,
        **found,
    }
    tasks = loader.load_from_file(str(ROLE / "tasks" / "_delete_host.yml"))
    (condition,) = (task["when"] for task in tasks if task["name"] == LOOK)
    templar = Templar(loader=loader, variables=variables)
    return bool(templar.evaluate_conditional(trust_as_template(condition)))


@pytest.mark.parametrize(
    ("record", "found", "expected"),
    [
        ({"begun": True}, {}, False),
        ({"begun": False}, {}, True),
        (None, {}, True),
        # An interrupted deletion had begun. This run has stopped nova-compute or cleaned up since.
        ({"begun": True}, {"blockers": [{"kind": "service_up"}]}, True),
        ({"begun": True}, {"left_over": [{"kind": "deleted_server"}]}, True),
    ],
)
def test_a_host_is_looked_at_again_unless_the_last_look_found_nothing(
    record: t.Any, found: dict[str, t.Any], expected: bool
) -> None:
    assert _is_looked_at(record, **found) is expected
    assert not _is_looked_at(record, check=True, **found)
