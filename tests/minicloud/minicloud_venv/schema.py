"""Brings an empty SQLite file to the newest schema of Cinder, Cyborg or Neutron.

Run as ``python -m minicloud_venv.schema PART URL``.
"""

from __future__ import annotations

import importlib
import sys

import sqlalchemy


def main(part: str, url: str) -> None:
    engine = sqlalchemy.create_engine(url)
    if part == "cinder":
        importlib.import_module("cinder.db.migration").db_sync(engine=engine)
    elif part == "cyborg":
        models = importlib.import_module("cyborg.db.sqlalchemy.models")
        models.Base.metadata.create_all(engine)
    else:
        # Neutron's migrations change constraints, which SQLite cannot do. The models that the
        # migrations are compared with have the same schema.
        models = importlib.import_module("neutron.db.migration.models.head")
        models.get_metadata().create_all(engine)


if __name__ == "__main__":
    main(*sys.argv[1:])
