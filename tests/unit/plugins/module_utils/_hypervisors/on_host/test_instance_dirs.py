"""File systems that other hosts use as well, which a test cannot mount.

And folders that are too large to scan.
"""

from __future__ import annotations

import dataclasses as d
import os
import pathlib

import pytest

from .......plugins.module_utils._common.errors import HostError
from .......plugins.module_utils._hypervisors.on_host import files
from .......plugins.module_utils._hypervisors.on_host.instance_dirs import InstanceDirectories

UUID = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


@pytest.mark.parametrize(
    ("shared", "sentence"), [(True, "other hosts may use"), (None, "are unknown")]
)
def test_shared_directory_is_quarantined_only_when_allowed(
    tmp_path: pathlib.Path, shared: bool | None, sentence: str
) -> None:
    (tmp_path / UUID).mkdir()
    instances = InstanceDirectories(str(tmp_path), None)
    found = instances.get_directory(UUID)
    assert found is not None
    seen = d.replace(found, shared=shared, open=False)
    with pytest.raises(HostError, match=sentence):
        instances.check_move_allowed(seen, allow_shared=False)
    instances.check_move_allowed(seen, allow_shared=True)


def test_directory_replaced_after_the_check_is_kept(tmp_path: pathlib.Path) -> None:
    (tmp_path / UUID).mkdir()
    instances = InstanceDirectories(str(tmp_path), None)
    seen = instances.get_directory(UUID)
    assert seen is not None
    (tmp_path / "new").mkdir()
    os.rename(tmp_path / UUID, tmp_path / "old")
    os.rename(tmp_path / "new", tmp_path / UUID)
    with pytest.raises(HostError, match="has changed since"):
        instances.quarantine(seen, allow_shared=False)
    assert sorted(os.listdir(tmp_path)) == sorted([UUID, "old"])


def test_unreadable_directory_is_not_deleted_from_quarantine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / ".quarantine" / f"{UUID}.20200101T000000Z"
    kept.mkdir(parents=True)
    kept.parent.chmod(0o700)
    for name in ("disk", "disk.config", "console.log"):
        (kept / name).write_text("its disk")
    instances = InstanceDirectories(str(tmp_path), None)
    (entry,) = instances.list_quarantined()
    monkeypatch.setattr(files, "MAX_ENTRIES", 2)

    with pytest.raises(HostError, match="is unknown whether"):
        instances.purge(entry)
    assert len(os.listdir(kept)) == 3


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (UUID, UUID),
        (f"{UUID}\n", UUID),
        (UUID.upper(), UUID),
        ("", None),
        ("none", None),
        ("\xff", None),
        (None, None),
    ],
)
def test_nova_compute_is_recognized_by_the_file_beside_its_instances(
    tmp_path: pathlib.Path, text: str | None, known: str | None
) -> None:
    if text is not None:
        (tmp_path / "compute_id").write_text(text, encoding="latin-1")

    assert InstanceDirectories(str(tmp_path / "instances"), None).compute_id() == known
