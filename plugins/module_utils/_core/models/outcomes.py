# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcomes that do not depend on the action of a change.

They are in a file of their own because the filters of the role need nothing else of a change, and
Ansible loads the filters again in each task.
"""

from __future__ import annotations

# The outcome of a change that was not made.
SKIPPED, FAILED = "skipped", "failed"
# The outcome in check mode, where something would be changed.
READY = "ready"
WITHOUT_CHECK = "nothing was changed. Without --check: "
# The outcome when the allocations before a change were restored from its journal.
RESTORED = "restored"
