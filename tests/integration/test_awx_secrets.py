"""What `apply.yml` shows with -v, and what it does with an inventory that AWX is still removing."""

import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest

from .automation import ROOT
from .awx.api import Awx
from .awx.server import served
from .awx.setup import PLAYBOOKS, Setup
from .support import Ansible

SECRETS = {
    "awx_notification_url": "https://chat.example.org/a-secret-address",
    "awx_findings_url": "https://chat.example.org/another-secret-address",
    "awx_scm_url": "https://robot:a-secret-token@git.example.org/placement.git",
}


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[Setup]:
    with served(Awx(PLAYBOOKS)) as awx:
        yield Setup(Ansible(ROOT, tmp_path, {}), awx, **SECRETS)


@pytest.mark.long
def test_verbose_runs_show_no_address_of_a_webhook(setup: Setup) -> None:
    """Results of tasks are shown from -v on."""
    made = setup.apply("-v")
    gone = setup.apply("-v", awx_state="absent")
    again = setup.apply("-v", awx_state="absent")

    for done in (made, gone, again):
        assert done.status == 0, done.output
        assert "secret" not in done.output
    assert again.written == []
    assert not setup.awx.objects["inventories"]


@pytest.mark.long
def test_inventory_that_awx_is_still_removing_is_waited_for_and_not_used(setup: Setup) -> None:
    awx = setup.awx
    inventory = {"name": "osops.placement", "organization": awx.default["id"]}
    key = awx.ask("POST", "inventories/", inventory)[1]["id"]
    assert awx.ask("DELETE", f"inventories/{key}/")[0] == 202
    assert awx.ask("DELETE", f"inventories/{key}/")[0] == 400

    present = setup.apply()
    absent = setup.apply(awx_state="absent")

    assert present.status != 0
    assert "still removing inventories/osops.placement" in present.said
    assert absent.status == 0 and not awx.objects["inventories"], absent.output
    assert f"DELETE /api/v2/inventories/{key}/" not in absent.written


def test_failed_lookup_is_shown_with_the_answer_of_awx(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = setup.awx.answer

    def fail(token: str, method: str, path: str, *rest: t.Any) -> t.Any:
        if path == "/api/v2/execution_environments/":
            return 503, {"detail": "The database is away."}
        return answer(token, method, path, *rest)

    monkeypatch.setattr(setup.awx, "answer", fail)

    failed = setup.apply()

    assert failed.status != 0
    assert "503 to GET /execution_environments/" in failed.said
    assert "database is away." in failed.said


@pytest.mark.long
@pytest.mark.parametrize("where", ["notification_templates", "hosts", "projects"])
def test_refusal_that_repeats_an_address_is_shown_without_it(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    answer = setup.awx.answer

    def refuse(token: str, method: str, path: str, query: t.Any, body: t.Any) -> t.Any:
        if method == "POST" and path.endswith(f"/{where}/"):
            assert "secret" in str(body)
            return 400, {"detail": f"Not valid: {body}"}
        return answer(token, method, path, query, body)

    monkeypatch.setattr(setup.awx, "answer", refuse)

    failed = setup.apply("-v")

    assert failed.status != 0
    assert f"400 to POST /{where}/" in failed.said and "Not valid" in failed.said
    assert "secret" not in failed.output
