# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cinder's API, for ``minicloud_venv.serve``.

It looks for its configuration in the folders of the system, unless an argument names the file.
"""

from __future__ import annotations

import os
import sys

sys.argv = ["cinder-api", "--config-file", os.environ["MINICLOUD_CINDER_CONFIG"]]

from cinder.wsgi import api  # noqa: E402

application = api.application
