"""Creates Ironic's newest schema in an empty database, or nodes.

Run as ``python -m minicloud_venv.ironic_database schema|nodes``; the nodes are JSON on the standard
input. An API would create a node only after it has found a conductor for it.
"""

from __future__ import annotations

import datetime
import json
import os
import sys

import sqlalchemy
from ironic.common import service
from ironic.conf import CONF
from ironic.db import api
from ironic.db.sqlalchemy import models
from ironic.objects.node import Node

TIMES = ("provision_updated_at", "updated_at")


def create_nodes() -> None:
    database = api.get_instance()
    for values in json.load(sys.stdin):
        for name in TIMES:
            if name in values:
                values[name] = datetime.datetime.fromisoformat(values[name])
        defaults = {"driver": "fake-hardware", "version": Node.VERSION}
        for name in ("properties", "driver_info", "driver_internal_info", "instance_info", "extra"):
            defaults[name] = {}
        database.create_node({**defaults, **values})


if __name__ == "__main__":
    service.prepare_command(["ironic", "--config-file", os.environ["IRONIC_CONFIG_FILE"]])
    if sys.argv[1] == "schema":
        engine = sqlalchemy.create_engine(CONF.database.connection)
        models.Base.metadata.create_all(engine)
    else:
        create_nodes()
