# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from minicloud_ctl import forking
from minicloud_ctl.paths import Paths
from minicloud_ctl.releases import NEWEST, RELEASES
from minicloud_ctl.services import Service

OF_ANOTHER_PART = {"PYTHONPATH": "/venv-neutron"}


@pytest.mark.parametrize(
    ("release", "kind", "program", "environment", "can"),
    [
        (NEWEST.name, "nova-compute", "/venv/bin/nova-compute", {}, True),
        (NEWEST.name, "nova-api", "/venv/bin/python", {"OS_NOVA_CONFIG_FILES": "a"}, True),
        (NEWEST.name, "placement", "/venv/bin/python", {}, False),
        (NEWEST.name, "nova-compute", "/venv-2024.2/bin/nova-compute", {}, False),
        (NEWEST.name, "nova-compute", "/venv/bin/nova-compute", OF_ANOTHER_PART, False),
        ("2024.2", "nova-compute", "/venv/bin/nova-compute", {}, False),
        ("train", "nova-api", "/venv/bin/python", {}, False),
    ],
)
def test_only_what_needs_no_other_imports_is_forked(
    release: str, kind: str, program: str, environment: dict[str, str], can: bool
) -> None:
    paths = Paths(Path("/home"), Path("/venv"), RELEASES[release])
    service = Service("x", kind, [program], environment)

    assert forking.can_fork(paths, service) is can


def test_forked_modules_read_no_option_while_they_are_imported() -> None:
    """The managers do, and would keep the defaults whatever the configuration files say."""
    source = Path(t.cast("str", forking.__file__)).parents[1] / "minicloud_venv" / "forker.py"
    names = source.read_text(encoding="utf-8").partition("MODULES = (")[2].partition(")")[0]

    assert "nova.cmd.compute" in names
    assert "nova.compute.manager" not in names
    assert "nova.scheduler.manager" not in names
