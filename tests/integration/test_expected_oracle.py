# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our resource requests against those of Nova's own code, and our placements against Placement's.

Nova is not started: its code is called, in the environment of the minicloud.
"""

from __future__ import annotations

import collections
import json
import subprocess
import typing as t

import pytest
from minicloud_ctl import releases
from minicloud_ctl.paths import Paths

from ansible_collections.osops.placement.plugins.module_utils._expected.request import (
    build_requests,
)
from ansible_collections.osops.placement.tests.integration.request_worlds import (
    RequestWorld,
    list_request_worlds,
)
from ansible_collections.osops.placement.tests.integration.support import ROOT, Minicloud

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
        ResourceRequest,
    )

# Our code follows the newest Nova.
pytestmark = pytest.mark.skipif(
    releases.choose() != releases.NEWEST, reason="only the newest Nova says what is right"
)

SCRIPTS = ROOT / "tests" / "minicloud" / "minicloud_venv"


@pytest.mark.parametrize(
    "count, seed", [(1_000, 1), pytest.param(10_000, 2, marks=pytest.mark.long)]
)
def test_requests_are_those_of_nova(own_cloud: Minicloud, count: int, seed: int) -> None:
    worlds = list(list_request_worlds(count, seed))
    answers = ask("resource_requests.py", (world.nova for world in worlds))

    tally: collections.Counter[str] = collections.Counter()
    for world, answer in zip(worlds, answers, strict=True):
        tally[judge(world, answer)] += 1

    print(dict(tally))
    # Most worlds decide something.
    assert tally["equal"] > count * 0.6
    # What Nova accepts and we read is undecided only because of a name that nobody knows, or of
    # an empty policy.
    assert tally["undecided without a reason"] == 0
    assert tally["undecided because of an empty policy"] < count * 0.005


def judge(world: RequestWorld, answer: Mapping[str, t.Any]) -> str:
    """Return how our requests compare with those of Nova; fail if they differ."""
    requests = build_requests(world.inputs)
    missing = {part.name: part.reason for request in requests for part in request.missing}
    if "refused" in answer:
        assert missing, (world, answer)
        return "refused"
    if not missing:
        assert [describe(request) for request in requests] == answer["requests"], world
        return "equal"
    if world.hidden:
        return "undecided because of a hidden part"
    if "NEW_CLASS" in json.dumps(world.nova):
        return "undecided because of an unknown class"
    if world.nova["flavor"]["extra_specs"].get("hw:cpu_thread_policy") == "":
        return "undecided because of an empty policy"
    print(world, missing)
    return "undecided without a reason"


def describe(request: ResourceRequest) -> dict[str, t.Any]:
    groups = {}
    for name, group in request.groups.items():
        groups[name] = {
            "resources": dict(group.resources),
            "required": sorted(group.required),
            "forbidden": sorted(group.forbidden),
        }
    return {
        "groups": groups,
        "isolate": request.isolate,
        "same_subtree": [sorted(names) for names in request.same_subtree],
    }


def ask(script: str, questions: Iterable[object]) -> list[t.Any]:
    """Return the answers of a script of the minicloud's environment, one for each question."""
    done = subprocess.run(
        [Paths.choose(None).program("python"), str(SCRIPTS / script)],
        input="".join(f"{json.dumps(question)}\n" for question in questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
