"""Folders in which others can replace files are told from those of one user."""

from __future__ import annotations

import os
import pathlib
import struct

import pytest

from ......plugins.module_utils._common import json_files as folders
from ......plugins.module_utils._common.errors import InvalidInput
from ......plugins.module_utils._common.json_files import (
    explain_shared_folder,
    require_private_file,
    require_private_folder,
)

NOBODY = 65534


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o750])
def test_folder_of_this_user_is_private(tmp_path: pathlib.Path, mode: int) -> None:
    tmp_path.chmod(mode)

    assert explain_shared_folder(str(tmp_path)) == ""
    assert explain_shared_folder(str(tmp_path / "new" / "folder")) == ""
    require_private_folder(str(tmp_path))


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_folder_in_which_everybody_may_write_is_shared(tmp_path: pathlib.Path, mode: int) -> None:
    tmp_path.chmod(mode)

    assert "other users" in explain_shared_folder(str(tmp_path))
    with pytest.raises(InvalidInput):
        require_private_folder(str(tmp_path))


def test_new_folder_is_private_only_where_nobody_can_rename_it(tmp_path: pathlib.Path) -> None:
    new = str(tmp_path / "new")
    tmp_path.chmod(0o1777)
    assert explain_shared_folder(new) == ""

    tmp_path.chmod(0o777)
    assert "all users" in explain_shared_folder(new)
    (tmp_path / "new").mkdir(mode=0o700)
    assert "all users" in explain_shared_folder(new)


def test_group_without_other_members_may_write(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A umask of 0002 gives each folder this mode."""
    tmp_path.chmod(0o775)
    group = folders.grp.struct_group
    name = folders.pwd.getpwuid(os.geteuid()).pw_name

    def answer(*members: str, called: str = name) -> None:
        found = group((called, "x", 0, list(members)))
        monkeypatch.setattr(folders.grp, "getgrgid", lambda _number: found)

    answer()
    assert explain_shared_folder(str(tmp_path)) == ""
    answer(name)
    assert explain_shared_folder(str(tmp_path)) == ""
    answer(name, "somebody")
    assert explain_shared_folder(str(tmp_path)) != ""
    answer(called="operators")
    assert explain_shared_folder(str(tmp_path)) != ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_belongs_to_another_user_is_shared(tmp_path: pathlib.Path) -> None:
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.mkdir(mode=0o700)
    (tmp_path / "mine").mkdir(mode=0o700)
    link.symlink_to("mine")
    assert explain_shared_folder(str(link)) == ""

    os.chown(theirs, NOBODY, NOBODY)
    os.lchown(link, NOBODY, NOBODY)

    assert "other users" in explain_shared_folder(str(theirs))
    assert "symbolic link" in explain_shared_folder(f"{link}/")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_belongs_to_who_became_root_with_sudo_is_private(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    os.chown(home, NOBODY, NOBODY)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))

    assert explain_shared_folder(str(home / "site" / "orphan-cleanup")) == ""
    monkeypatch.setenv("SUDO_UID", "")
    assert "other users" in explain_shared_folder(str(home / "site"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o755), (0, 0o775), (NOBODY, 0o1777)])
def test_folder_whose_parent_others_can_change_is_shared(
    tmp_path: pathlib.Path, owner: int, mode: int
) -> None:
    """They can rename it, and put another one in its place."""
    parent = tmp_path / "parent"
    own = parent / "own"
    own.mkdir(parents=True, mode=0o700)
    assert explain_shared_folder(str(own)) == ""
    os.chown(parent, owner, NOBODY)
    parent.chmod(mode)

    assert f"{parent} can" in explain_shared_folder(str(own))
    link = tmp_path / "link"
    link.symlink_to(parent)
    assert f"{parent} can" in explain_shared_folder(str(link / "own"))


def test_link_in_a_folder_of_others_is_shared(tmp_path: pathlib.Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "link").symlink_to(tmp_path / "own")
    (tmp_path / "shared").chmod(0o777)

    assert "all users" in explain_shared_folder(f"{tmp_path}/shared/link")


def test_file_that_others_can_replace_decides_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("{}")
    path.chmod(0o644)
    require_private_file(str(path))
    # Nobody can rename a file of somebody else there, as in /tmp.
    tmp_path.chmod(0o1777)
    require_private_file(str(path))

    tmp_path.chmod(0o777)
    with pytest.raises(InvalidInput):
        require_private_file(str(path))
    tmp_path.chmod(0o700)
    path.chmod(0o666)
    with pytest.raises(InvalidInput, match="other users"):
        require_private_file(str(path))


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="only Linux has access lists of this form")
def test_folder_that_an_access_list_opens_to_another_user_is_shared(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mode shows what anybody in the list may do, as if it were for the owner's group."""
    everybody = 0xFFFFFFFF
    # The owner, one other user, the group, what all of them may do at most, and all others.
    entries = ((1, 7, everybody), (2, 7, NOBODY), (4, 0, everybody), (16, 7, everybody))
    rows = [struct.pack("<HHI", *entry) for entry in (*entries, (32, 0, everybody))]
    os.setxattr(tmp_path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(rows))
    monkeypatch.setattr(folders, "_is_private_group", lambda _status: True)

    assert tmp_path.stat().st_mode & 0o777 == 0o770
    assert "other users" in explain_shared_folder(str(tmp_path))
