# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine without what the stack needs is told its name."""

from __future__ import annotations

import os

import pytest

from ansible_collections.osops.placement.tests.judges.stack import needs


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs.shutil, "which", lambda _program: "/usr/bin/dpkg-query")
    monkeypatch.setattr(needs, "PYTHON", "/")
    monkeypatch.setattr(needs, "_is_installed", lambda package: package != "haproxy")

    assert "apt-get install --no-install-recommends haproxy (" in needs.lacking()


def test_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert "run it as root" in needs.lacking()


def test_list_of_packages_has_no_comments() -> None:
    packages = needs.read_packages()

    assert packages == sorted(set(packages))
    assert all(package and "#" not in package for package in packages)
