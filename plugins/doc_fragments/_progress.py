# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  progress_every:
    description:
      - The number of seconds between two lines that show the progress of the module in the
        terminal. V(0) shows no lines.
      - "The lines go to the standard error, for example C(orphan_detect [localhost]: allocations
        640 of 1000 providers, about 12 s left)."
      - They are shown only if the module runs on the controller without C(become), that is, with
        the connection C(local).
    type: int
    default: 10
    version_added: 2.0.0
  progress_path:
    description:
      - Path of a file in which the module keeps its progress, as JSON, while it runs. Use it to
        follow a module that does not run on the controller.
      - If this is set, the terminal shows no progress.
    type: path
    version_added: 2.0.0
"""
