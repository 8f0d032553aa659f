# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the files that are generated from `setup.yml`."""

from __future__ import annotations

from .files import build_files

for path, text in build_files().items():
    path.write_text(text, encoding="utf-8")
