# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m minicloud_ctl``."""

from __future__ import annotations

import sys

from minicloud_ctl.cli import main

sys.exit(main(sys.argv[1:]))
