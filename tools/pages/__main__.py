# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the pages with sections from the code, and the table of kinds."""

from __future__ import annotations

from ansible_collections.osops.placement.tools.pages.badges import list_files
from ansible_collections.osops.placement.tools.pages.kind_table import write_kind_table
from ansible_collections.osops.placement.tools.pages.tables import PAGES, renewed

for page in PAGES:
    page.write_text(renewed(page), encoding="utf-8")

for path, content in {**list_files(), **write_kind_table()}.items():
    path.write_text(content, encoding="utf-8")
