"""The rulebook, run by ansible-rulebook.

An alert starts a detection, and no other event starts anything.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import typing as t
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from .automation import NEWEST, OLDEST, PATTERN, ROOT, Job, environment, job, program
from .awx.api import TOKEN as AWX_TOKEN
from .awx.api import Awx
from .awx.server import served
from .strays import Strays
from .support import Ansible, Placement

RULEBOOKS = ROOT / "extensions" / "eda" / "rulebooks"
TOKEN = "only-for-those-who-may-ask"
ALERT = {
    "status": "firing",
    "commonLabels": {"alertname": "HostUnderused", "action": "detect_orphans"},
    "alerts": [],
}
WAIT = 180.0


class Rulebook:
    """A running ansible-rulebook, used through its webhook."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: Path, out: Path) -> None:
        self.process, self.log, self.out = process, log, out
        self._url = f"http://127.0.0.1:{port}/endpoint"

    def post(self, event: t.Any, token: str = TOKEN) -> int:
        """Return the status that the webhook answers."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self._url, json.dumps(event).encode(), headers), timeout=30
            ) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def until(self, true: t.Callable[[], bool]) -> None:
        """Wait for a condition while the rulebook runs."""
        end = time.monotonic() + WAIT
        while not true():
            assert self.process.poll() is None and time.monotonic() < end, self.told
            time.sleep(0.2)

    @property
    def told(self) -> str:
        return self.log.read_text()


@contextlib.contextmanager
def started(
    name: str,
    ansible: Ansible,
    folder: Path,
    given: dict[str, str],
    *arguments: str,
    core: str = NEWEST,
) -> Iterator[Rulebook]:
    """Run one of the rulebooks with these variables of its first lines.

    core: the ansible-core of the playbooks that it runs itself, which come from PATH.
    """
    if not shutil.which("java"):
        pytest.skip(
            "Java 17 is not here, which ansible-rulebook needs (Debian, Ubuntu: "
            "default-jre-headless)"
        )
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    inventory = folder / "inventory.yml"
    inventory.write_text(
        json.dumps({"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    )
    given = {
        "PLACEMENT_WEBHOOK_TOKEN": TOKEN,
        "PLACEMENT_WEBHOOK_PORT": str(port),
        "PLACEMENT_OUTPUT_DIR": str(folder / "out"),
        **given,
    }
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [
                program("ansible-rulebook"),
                f"--rulebook=osops.placement.{name}",
                f"--inventory={inventory}",
                f"--env-vars={','.join(given)}",
                "--shutdown-delay=0",
                *arguments,
            ],
            stdout=stream,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**environment(ansible, core), **given},
        )
        try:
            running = Rulebook(process, port, log, folder / "out")
            running.until(lambda: _answers(port))
            yield running
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def rulebook(ansible: Ansible, tmp_path: Path, core: str) -> Iterator[Rulebook]:
    """The rulebook, run as its first lines say."""
    with started("orphan_alert", ansible, tmp_path, {}, core=core) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_alert_starts_the_job_template_of_its_organization(
    ansible: Ansible, few: Strays, placement: Placement, tmp_path: Path, core: str
) -> None:
    """Run by ansible-rulebook itself, against the stand-in for AWX, whose job really runs."""
    few.claim()
    before = placement.everything()

    def run(playbook: str, variables: dict[str, t.Any], check: bool) -> Job:
        # What the tests create is young, and no survey asks for this.
        young = dict.fromkeys(("orphan_cleanup_min_age", "orphan_cleanup_unknown_min_age"), "0")
        return job(ansible, tmp_path / "job", playbook, {**young, **variables}, check, core)

    awx = Awx(["find_orphans.yml"], run)
    elsewhere = awx.store.add("organizations", {"name": "Elsewhere"})
    spec = yaml.safe_load((PATTERN / "template_surveys" / "find_orphans.yml").read_text())
    for organization in (awx.default, elsewhere):
        template = {
            "name": "Placement: find orphans",
            "organization": organization["id"],
            "playbook": "find_orphans.yml",
            "survey_enabled": True,
        }
        awx.surveys[awx.store.add("job_templates", template)["id"]] = spec
    given = {"PLACEMENT_ORGANIZATION": "Elsewhere", "EDA_JOB_TEMPLATE_REFRESH_DELAY": "0.2"}

    with served(awx):
        controller = (f"--controller-url={awx.url}", f"--controller-token={AWX_TOKEN}")
        with started("orphan_alert_awx", ansible, tmp_path, given, *controller) as running:
            assert running.post({**ALERT, "orphan_cleanup_fail_on": "never"}) == 200
            running.until(lambda: any(map(_is_finished, [*awx.objects["jobs"].values()])))

    (started_job,) = awx.objects["jobs"].values()
    assert started_job["organization"] == elsewhere["id"]
    assert json.loads(started_job["extra_vars"]) == {
        "placement_hosts": "",
        "orphan_cleanup_fail_on": "error",
        "orphan_cleanup_mode": "full",
        "orphan_cleanup_full_every": "1d",
    }
    assert started_job["status"] == "successful", started_job["stdout"]
    found = started_job["artifacts"]["orphan_cleanup_run"]
    assert found["kinds"]["unknown_consumer"] == len(few.consumers)
    assert found["versions"]["ansible_core"].startswith("2.18.") is (core == OLDEST)
    assert placement.everything() == before


def _is_finished(started_job: dict[str, t.Any]) -> bool:
    return started_job["status"] != "running"


@pytest.mark.long
@pytest.mark.parametrize("core", [NEWEST, OLDEST])
def test_alert_starts_one_detection_and_nothing_else(
    rulebook: Rulebook, few: Strays, placement: Placement, core: str
) -> None:
    few.claim()
    before = placement.everything()

    assert rulebook.post(ALERT, token="guessed") == 401
    for other in (
        {**ALERT, "status": "resolved"},
        {**ALERT, "commonLabels": {"alertname": "HostUnderused"}},
        {"action": "cleanup_orphans"},
    ):
        assert rulebook.post(other) == 200
    # They are posted one at a time and in order: if one of them had started something, it would
    # have been reported before this one.
    assert (
        rulebook.post(
            {**ALERT, "orphan_cleanup_min_age": 0, "orphan_cleanup_kinds": ["orphaned_provider"]}
        )
        == 200
    )
    rulebook.until(lambda: "PLAY RECAP" in rulebook.told)

    found = json.loads((rulebook.out / "findings.json").read_text())
    assert (
        rulebook.told.count("PLAY [") == 1 and "PLAY [Detect orphaned allocations]" in rulebook.told
    )
    # They are too young for a detection with the role's ages, which no event can change.
    young = {entry["consumer"] for entry in found["protected"] if entry["kind"] == "too_young"}
    assert set(few.consumers) <= young and found["scope"]["kinds"] == []
    assert found["versions"]["ansible_core"].startswith("2.18.") is (core == OLDEST)
    assert placement.everything() == before


def test_rulebooks_only_run_detection() -> None:
    ours, awx = (
        yaml.safe_load((RULEBOOKS / f"{name}.yml").read_text())[0]["rules"]
        for name in ("orphan_alert", "orphan_alert_awx")
    )

    assert {rule["action"]["run_playbook"]["name"] for rule in ours} == {
        "osops.placement.detect_orphans"
    }
    assert {rule["action"]["run_job_template"]["name"] for rule in awx} == {
        "Placement: find orphans"
    }
    assert [(rule["name"], rule["condition"]) for rule in ours] == [
        (rule["name"], rule["condition"]) for rule in awx
    ]


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
