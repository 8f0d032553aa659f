"""Journals that somebody has made by hand, without any fault in their form."""

import json
import typing as t
import uuid

import pytest

from ...plugins.module_utils._common.clock import get_utc_now
from ...plugins.module_utils._core.changes.journal import AFTER, BEFORE, build_record
from ...plugins.module_utils._core.models.change import build_change
from ...plugins.module_utils._core.models.placement import Allocation
from ...plugins.module_utils._core.plan.plan import Step
from ...plugins.module_utils._core.run.pack import pack_files
from ..integration.strays import Strays
from ..integration.support import Ansible, Minicloud, Placement


class Forger:
    """Writes the journal of a run that never was: it says how a live server got what it has."""

    def __init__(self, minicloud: Minicloud, placement: Placement) -> None:
        minicloud.scenario("healthy")
        self.server = minicloud.truth("healthy")["server"]
        self.held = placement.held(self.server)
        shown = placement.allocation(self.server)
        self._generation = shown["consumer_generation"]
        self._owner = (shown["project_id"], shown["user_id"])
        self.endpoint = f"http://127.0.0.1:{minicloud.ports['placement']}/"

    def forge(self, partner: str, before: dict[str, t.Any]) -> str:
        """Return a journal with the right generation and time, and with a fitting digest.

        before: what the server is said to have had before.
        """
        # A consumer that had nothing begins with this generation.
        had = self._make(self.server, before, self._generation - 1)
        of_partner = self._make(partner, self.held, 1)
        change = build_change(
            had, partner=build_change(of_partner, resources={}), resources=self.held
        )
        step = Step(f"unreverted_allocation/{self.server}", "unreverted_allocation", change)
        after = {
            "format": 1,
            "at": get_utc_now(),
            "event": AFTER,
            "finding": step.finding,
            "consumer": self.server,
            "outcome": "rewritten",
            "reason": "",
        }
        return pack_files({"journal": [build_record(BEFORE, step, self.endpoint), after]})

    def _make(self, consumer: str, resources: dict[str, t.Any], generation: int) -> Allocation:
        return Allocation(
            consumer, generation if resources else None, *self._owner, None, resources, 0
        )


@pytest.fixture
def forger(minicloud: Minicloud, placement: Placement) -> Forger:
    return Forger(minicloud, placement)


@pytest.mark.parametrize("leaves", ["nothing", "another host"])
def test_live_server_gives_nothing_to_a_consumer_that_nova_does_not_know(
    ansible: Ansible, placement: Placement, forger: Forger, leaves: str
) -> None:
    stranger = str(uuid.uuid4())
    before: dict[str, t.Any] = {}
    if leaves != "nothing":
        (own,) = forger.held
        other = next(
            found
            for name, found in placement.providers().items()
            if name.startswith("compute-") and found != own
        )
        before = {other: forger.held[own]}
    told = ansible.direct(
        "orphan_restore", journal=forger.forge(stranger, before), output_dir=str(ansible.folder)
    )

    assert told["tally"]["restored"] == 0, json.dumps(told)
    assert placement.held(forger.server) == forger.held
    assert placement.held(stranger) == {}


@pytest.mark.parametrize("variable", ["orphan_cleanup_state", "orphan_cleanup_metrics_path"])
def test_file_is_not_written_through_a_link(ansible: Ansible, few: Strays, variable: str) -> None:
    link, victim = ansible.folder / "link.prom", ansible.folder / "victim"
    victim.write_text("precious")
    link.symlink_to(victim)

    run = ansible.playbook("detect_orphans", variables={variable: str(link)})

    assert run.status != 0 and "symbolic link" in run.told
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("arguments", [("--check",), ()])
def test_folder_in_which_others_may_write_is_refused(
    ansible: Ansible, few: Strays, arguments: tuple[str, ...]
) -> None:
    few.claim()
    (ansible.folder / "shared").mkdir()
    (ansible.folder / "shared").chmod(0o777)
    variables = {
        "orphan_cleanup_output_dir": "shared",
        "orphan_cleanup_consumers": few.consumers,
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    }

    run = ansible.playbook("cleanup_orphans", *arguments, variables=variables)
    alone = ansible.direct(
        "orphan_remediate", **{**few.arguments(), "output_dir": str(ansible.folder / "shared")}
    )

    assert run.status != 0 and f"{ansible.folder}/shared" in run.told
    assert alone["reason_id"] == "invalid_input" and f"{ansible.folder}/shared" in alone["msg"]
    assert few.held == few.consumers
    assert not list((ansible.folder / "shared").iterdir())
