"""A short form of `make fuzz`, always with the same runs."""

import json
import random
import time

import pytest

from ..integration.support import Ansible, Minicloud
from .fuzzer.__main__ import fuzz
from .fuzzer.answers import MUTATIONS, Past, Reply
from .fuzzer.cloudlet import Cloudlet
from .fuzzer.design import TARGETS, design_run
from .fuzzer.scenery import FEW_SCENARIOS

# The runs of other modules would remove the orphans of its scenarios.
OWN_CLOUD = True
SEED = 2026
# No whole playbook is among them.
RUNS = 25
UUIDS = ("8a8177dd-0000-4000-8000-000000000001", "8a8177dd-0000-4000-8000-000000000002")
SERVER = {
    "server": {
        "id": UUIDS[0],
        "status": "ACTIVE",
        "created_at": "2026-11-23T10:00:00Z",
        "OS-EXT-SRV-ATTR:host": "compute-1",
        "flavor": {"vcpus": 1, "extra_specs": {}},
        "servers_links": [{"rel": "next", "href": "x"}],
        "consumer_generation": 1,
    },
    "rows": [{"uuid": UUIDS[1], "x": 1.5}, {"uuid": UUIDS[0]}],
}


@pytest.mark.long
def test_no_damaged_answer_lets_a_run_change_or_say_what_is_wrong(
    minicloud: Minicloud, ansible: Ansible
) -> None:
    minicloud.scenario(*FEW_SCENARIOS)
    cloudlet = Cloudlet(minicloud, ansible, FEW_SCENARIOS)
    try:
        figures = fuzz(cloudlet, SEED, range(RUNS), time.monotonic() + 300)
    finally:
        cloudlet.close()

    assert figures.runs == RUNS and figures.mutations > RUNS
    assert figures.removed > 0
    assert figures.failures == []


def test_run_is_the_same_for_the_same_number() -> None:
    assert [design_run(1, number) for number in range(200)] == [
        design_run(1, number) for number in range(200)
    ]
    assert design_run(1, 7) != design_run(2, 7) != design_run(2, 8)


def test_every_request_and_every_mutation_has_its_turn() -> None:
    specs = [spec for number in range(2000) for spec in design_run(1, number).specs]

    assert {spec.target for spec in specs} == set(TARGETS)
    assert {spec.name for spec in specs} >= set(MUTATIONS)


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_mutation_changes_an_answer_and_is_the_same_for_the_same_number(name: str) -> None:
    past = Past(request="GET /servers/1", shape="GET /servers/{}")
    past.keep("GET /servers/{}", "GET /servers/1", Reply(200, [], b'{"older": []}'))
    past.keep("GET /servers/{}", "GET /servers/1", Reply(200, [], json.dumps(SERVER).encode()))
    past.keep("GET /servers/{}", "GET /servers/2", Reply(404, [], b'{"rows": [1, 2]}'))
    past.keep("GET /", "GET /", Reply(300, [], b"{}"))
    changed = 0
    for number in range(60):
        replies = [_build_reply(), _build_reply()]
        for reply in replies:
            MUTATIONS[name](reply, random.Random(number), past)
        assert replies[0] == replies[1]
        assert isinstance(replies[0].body, bytes)
        changed += replies[0] != _build_reply()

    assert changed > 10


def _build_reply() -> Reply:
    headers = [("Content-Type", "application/json"), ("Date", "x"), ("Vary", "y")]
    return Reply(200, headers, json.dumps(SERVER).encode())
