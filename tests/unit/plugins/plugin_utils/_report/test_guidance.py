# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reader of a report is shown about kinds: its addresses exist."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import yaml

from ansible_collections.osops.placement.plugins.module_utils._core.models.kinds import (
    CHANGEABLE_KINDS,
    KINDS,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.guidance import (
    summarize_kinds,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.proposed_commands import (
    Context,
)

ROOT = Path(__file__).parents[5]


def test_each_kind_links_a_heading_of_its_page_in_this_repository() -> None:
    galaxy: t.Any = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "kinds.md").read_text(), re.M)

    kinds = summarize_kinds(dict.fromkeys((kind.name for kind in KINDS), 1), Context())

    assert len(kinds) == len(KINDS)
    for kind in kinds:
        address, _mark, heading = kind["url"].partition("#")
        assert address == f"{galaxy['repository']}/blob/main/docs/kinds.md"
        assert heading == kind["name"] and heading in headings


def test_only_kinds_that_can_be_changed_have_a_command() -> None:
    kinds = summarize_kinds(dict.fromkeys((kind.name for kind in KINDS), 1), Context())

    commands = {kind["name"] for kind in kinds if kind["command"]}

    assert commands == {kind.name for kind in CHANGEABLE_KINDS}


def test_kind_of_another_version_is_shown_without_help() -> None:
    [kind] = summarize_kinds({"lost_server": 2}, Context())

    assert (kind["count"], kind["meaning"], kind["url"], kind["command"]) == ("2", "", "", None)
