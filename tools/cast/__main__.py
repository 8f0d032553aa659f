# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Record, and draw; with `--draw`, draw the last recording once more."""

from __future__ import annotations

import sys

from . import drawing, recording

if "--draw" not in sys.argv[1:]:
    recording.save(recording.record())
drawing.FILE.write_text(drawing.draw(recording.load()), encoding="utf-8")
