# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are written on the controller."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ......plugins.plugin_utils._stage.text_files import write_text


@pytest.mark.parametrize(("mode", "of_folder"), [(0o600, 0o700), (0o644, 0o755)])
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_new_folder_can_be_entered_by_readers_of_the_file(
    tmp_path: Path, mode: int, of_folder: int, mask: int
) -> None:
    path = tmp_path / "one" / "two" / "report.txt"
    before = os.umask(mask)
    try:
        write_text(str(path), "text\r\n", mode)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)

    assert path.read_bytes() == b"text\r\n"
    assert path.stat().st_mode & 0o777 == mode
    assert path.parent.stat().st_mode & 0o777 == of_folder
    assert path.parent.parent.stat().st_mode & 0o777 == of_folder


def test_existing_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    path.chmod(0o644)

    write_text(str(path), "new", 0o600)

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("untouched")
    link.symlink_to(target)

    write_text(str(link), "new", 0o600)

    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("untouched", "new", False)


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.mkdir()

    with pytest.raises(OSError):
        write_text(str(path), "new", 0o600)

    assert list(tmp_path.iterdir()) == [path]


def test_lone_surrogate_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"

    write_text(str(path), "a\ud800b", 0o600)

    assert path.read_text() == "a\\ud800b"
