# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings an empty SQLite file to Cinder's newest schema.

Run as ``python -m minicloud_venv.cinder_schema URL``.
"""

from __future__ import annotations

import sys

import sqlalchemy
from cinder.db import migration

if __name__ == "__main__":
    migration.db_sync(engine=sqlalchemy.create_engine(sys.argv[1]))
