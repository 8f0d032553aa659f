"""Creates Cyborg's newest schema in an empty SQLite file.

Run as ``python -m minicloud_venv.cyborg_schema URL``.
"""

from __future__ import annotations

import sys

import sqlalchemy
from cyborg.db.sqlalchemy import models

if __name__ == "__main__":
    models.Base.metadata.create_all(sqlalchemy.create_engine(sys.argv[1]))
