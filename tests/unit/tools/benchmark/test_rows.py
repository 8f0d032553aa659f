# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of rows are what Nova would have written for another server, later."""

from __future__ import annotations

import datetime
import sqlite3

import pytest
from benchmark import rows

LATER = datetime.timedelta(days=1)


@pytest.fixture
def cell() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        """
        CREATE TABLE instances (id INTEGER, uuid, host, compute_id, updated_at, deleted);
        CREATE TABLE instance_actions (id INTEGER, instance_uuid, start_time);
        CREATE TABLE instance_actions_events (id INTEGER, action_id, host);
        INSERT INTO instances VALUES
            (7, 'first', 'old-host', 3, '2026-11-20 10:00:00.500000', 7), (8, 'x', 'x', 9, 'x', 0);
        INSERT INTO instance_actions VALUES (4, 'first', '2026-11-20 09:59:00'), (5, 'x', 'x');
        INSERT INTO instance_actions_events VALUES (6, 4, 'old-host'), (7, 5, 'x');
        """
    )
    return connection


def _copy(cell: sqlite3.Connection) -> None:
    found = rows.select_rows_of_server(cell, "first")
    original = rows.Original(found, {"server": "first", "home": "old-host"})
    writer = rows.Writer(cell)
    names = {"server": "second", "home": "new-host"}
    original.copy(writer, names, later=LATER, numbers={3: 30})
    writer.finish()


def test_copy_has_new_names_ids_nodes_and_times(cell: sqlite3.Connection) -> None:
    _copy(cell)

    assert cell.execute("SELECT * FROM instances WHERE uuid = 'second'").fetchall() == [
        (9, "second", "new-host", 30, "2026-11-21 10:00:00.500000", 9)
    ]


def test_events_of_a_copy_belong_to_its_own_actions(cell: sqlite3.Connection) -> None:
    _copy(cell)

    assert cell.execute("SELECT * FROM instance_actions WHERE id > 5").fetchall() == [
        (6, "second", "2026-11-21 09:59:00.000000")
    ]
    assert cell.execute("SELECT * FROM instance_actions_events WHERE id > 7").fetchall() == [
        (8, 6, "new-host")
    ]


def test_changes_replace_columns_of_the_rows_that_have_them(cell: sqlite3.Connection) -> None:
    found = rows.select_rows_of_server(cell, "first")
    writer = rows.Writer(cell)
    rows.Original(found, {"server": "first"}).copy(writer, {"server": "second"}, {"deleted": 0})
    writer.finish()

    assert cell.execute("SELECT deleted FROM instances WHERE uuid = 'second'").fetchall() == [(0,)]


def test_deleted_server_leaves_no_rows_and_others_stay(cell: sqlite3.Connection) -> None:
    rows.delete_rows_of_servers(cell, ["first"])

    counts = []
    for table in ("instances", "instance_actions", "instance_actions_events"):
        counts += cell.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert counts == [1, 1, 1]
    assert cell.execute("SELECT action_id FROM instance_actions_events").fetchone() == (5,)


def test_server_without_a_host_has_no_compute_node(cell: sqlite3.Connection) -> None:
    cell.execute("UPDATE instances SET compute_id = NULL WHERE uuid = 'first'")

    _copy(cell)

    found = cell.execute("SELECT compute_id FROM instances WHERE uuid = 'second'").fetchone()
    assert found == (None,)
