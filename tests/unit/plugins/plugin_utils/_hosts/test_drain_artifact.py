# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a drain hands to the jobs that follow it."""

from __future__ import annotations

from ansible_collections.osops.placement.plugins.plugin_utils._hosts.drain_artifact import (
    build_drain_artifact,
)


def test_artifact_has_what_is_left_and_no_text_from_the_cloud() -> None:
    result = {
        "empty": False,
        "remaining": ["6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"],
        "tally": {"moved": 3, "left": 1},
        "journal": "/out/moves-1.jsonl",
        "outcomes": [{"name": "a name that a user chose"}],
    }

    assert build_drain_artifact(result, "compute-17", check_mode=False) == {
        "host_decommission_drained": [
            {
                "host": "compute-17",
                "check_mode": False,
                "empty": False,
                "remaining": ["6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"],
                "outcomes": {"moved": 3, "left": 1},
                "journal": "/out/moves-1.jsonl",
            }
        ]
    }


def test_drain_that_was_refused_leaves_no_host_empty() -> None:
    (entry,) = build_drain_artifact({"msg": "refused"}, "a", check_mode=True)[
        "host_decommission_drained"
    ]

    assert entry == {
        "host": "a",
        "check_mode": True,
        "empty": False,
        "remaining": [],
        "outcomes": {},
        "journal": "",
    }
