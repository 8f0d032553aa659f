# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.osops.placement.plugins.plugin_utils._progress import ProgressActionModule


class ActionModule(ProgressActionModule):
    """Runs the module of the same name, which has the documentation, and shows how far it is."""
