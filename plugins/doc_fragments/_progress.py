# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  progress_every:
    description:
      - The number of seconds between two lines that show the progress. V(0) shows no lines, and
        neither does a run that is shorter.
      - 'The lines go to the standard error, for example C(orphan_detect [localhost]: allocations
        640/1000 providers, about 12 s left). The estimate is for the stage that is named.'
      - They are shown only with the connection C(local), and neither with C(async) nor with
        C(no_log).
    type: int
    default: 10
    version_added: 2.0.0
  progress_path:
    description:
      - Path of a file in which the module keeps its progress while it runs. Use it to follow a
        module that runs on another machine or with C(async). No lines are shown then.
      - 'The file is JSON, for example C({"stages": [{"name": "allocations", "done": 640, "total":
        1000, "unit": "providers", "seconds": 21.3}]}). The total is C(null) if it is not known. The
        list is empty between two stages and at the end.'
    type: path
    version_added: 2.0.0
"""
