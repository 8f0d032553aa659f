"""The collection as a user gets it.

From the tarball, in a collections path with nothing else, outside of a clone.
"""

import json
from pathlib import Path

import pytest

from .strays import Strays
from .support import Ansible, installed


@pytest.fixture(name="users_own")
def _users_own(ansible: Ansible, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    """Return an Ansible that knows only the installed collection, in an empty current directory."""
    _tarball, collections = installed(tmp_path_factory.mktemp("galaxy"))
    ansible.environment["ANSIBLE_COLLECTIONS_PATH"] = str(collections)
    return ansible


def test_installed_collection_detects_removes_and_restores_orphans(
    users_own: Ansible, few: Strays, tmp_path: Path
) -> None:
    few.claim()
    wanted = {
        "orphan_cleanup_consumers": few.consumers,
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    }

    found = users_own.playbook("detect_orphans", variables=wanted)
    assert found.status == 0, found.output
    entries = json.loads((tmp_path / "orphan-cleanup" / "findings.json").read_text())["findings"]
    assert [entry["consumer"] for entry in entries] == few.consumers

    checked = users_own.playbook("cleanup_orphans", "--check", variables=wanted)
    assert checked.status == 0 and few.held == few.consumers, checked.output

    cleaned = users_own.playbook("cleanup_orphans", variables=wanted)
    assert cleaned.status == 0 and few.held == [], cleaned.output

    (journal,) = (tmp_path / "orphan-cleanup").glob("journal-*")
    restored = users_own.playbook(
        "restore_allocations", variables={"orphan_cleanup_journal": str(journal)}
    )
    assert restored.status == 0 and few.held == few.consumers, restored.output
