"""The demo can be shown twice, also after somebody has removed its orphans."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import ROOT

pytestmark = pytest.mark.long

# Few and quick ones; the first has a host of its own.
SCENARIOS = ("evacuated_source", "extra_host", "healthy")
FINDINGS = ROOT / "orphan-cleanup" / "findings.json"


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "cloud"
    monkeypatch.setenv("MINICLOUD_HOME", str(home))
    yield home
    _run("make", "demo-down")


def _run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _show() -> set[str]:
    """Show the demo, and return the consumers of the orphans in it."""
    shown = _run("tests/tools/demo", *SCENARIOS)
    assert "make demo-down" in shown
    findings = json.loads(FINDINGS.read_text())["findings"]
    return {finding["consumer"] for finding in findings if finding["verdict"] == "orphaned"}


def test_demo_has_orphans_again_after_they_were_removed(home: Path) -> None:
    first = _show()
    assert len(first) == 2
    assert _show() == first

    # These are the commands that the demo prints.
    _run(
        "bash",
        "-c",
        'unset OS_CLOUD; eval "$(tests/minicloud/minicloud env)"; '
        ".venv/controller/bin/ansible-playbook playbooks/cleanup_orphans.yml",
    )
    again = _show()
    assert len(again) == 2 and not again & first

    _run("make", "demo-down")
    assert not (home / "state.json").exists()
    assert list((home / "run").glob("*.pid")) == []
