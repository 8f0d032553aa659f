"""Creates Neutron's newest schema in an empty SQLite file.

Run as ``python -m minicloud_venv.neutron_schema URL``.

Neutron's migrations change constraints, which SQLite cannot do. The models that the migrations are
compared with have the same schema.
"""

from __future__ import annotations

import sys

import sqlalchemy
from neutron.db.migration.models import head

if __name__ == "__main__":
    head.get_metadata().create_all(sqlalchemy.create_engine(sys.argv[1]))
