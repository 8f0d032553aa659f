"""Brings an empty SQLite file to Cinder's newest schema.

Run as ``python -m minicloud_venv.cinder_schema URL``.
"""

from __future__ import annotations

import sys

import sqlalchemy
from cinder.db import migration

if __name__ == "__main__":
    migration.db_sync(engine=sqlalchemy.create_engine(sys.argv[1]))
