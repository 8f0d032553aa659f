"""SQLAlchemy engine plugin that lets several OpenStack processes share one SQLite file.

oslo.db opens every transaction with a deferred ``BEGIN``. Two processes that read and then write
within such transactions end at once with "database is locked", which no busy timeout can cure,
because neither may upgrade its stale snapshot. So reads run without a transaction here, and the
first write takes the write lock with ``BEGIN IMMEDIATE``, which does wait.

Used as ``sqlite:////path?plugin=minicloud_sqlite&timeout=60`` (SQLAlchemy: ``CreateEnginePlugin``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import event, pool
from sqlalchemy.engine import CreateEnginePlugin

READS = frozenset({"SELECT", "PRAGMA", "EXPLAIN", "BEGIN", "COMMIT", "ROLLBACK"})


class MinicloudSqlite(CreateEnginePlugin):
    """Entry point ``minicloud_sqlite`` of the group ``sqlalchemy.plugins``."""

    def __init__(self, url: Any, kwargs: dict[str, Any]) -> None:
        """Keep connections open.

        Otherwise oslo.db opens one for each use, and the last to close a file merges and removes
        its write-ahead log.
        """
        kwargs.update(poolclass=pool.QueuePool, pool_size=8, max_overflow=64, pool_pre_ping=False)
        # A pooled connection moves from thread to thread, one at a time.
        kwargs.setdefault("connect_args", {})["check_same_thread"] = False

    def update_url(self, url: Any) -> Any:
        """Remove nothing: SQLAlchemy removes ``plugin`` itself."""
        return url

    def engine_created(self, engine: Any) -> None:
        """Register listeners before oslo.db does.

        create_engine() calls this first, and listeners run in the order of their registration.
        """
        event.listen(engine, "begin", _skip_deferred_begin)
        event.listen(engine, "before_cursor_execute", _lock_before_write)


def _skip_deferred_begin(conn: Any) -> None:
    """Set the mark that keeps oslo.db's own listener from sending BEGIN.

    oslo.db removes it at the end (oslo_db.sqlalchemy.engines).
    """
    conn.info["in_transaction"] = True


def _lock_before_write(
    conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool
) -> None:
    """Take the write lock before the first statement that may write.

    SAVEPOINT counts, because it would begin a deferred transaction.
    """
    word = statement.lstrip(" (\r\n\t").split(None, 1)[0].upper()
    if word not in READS and not cursor.connection.in_transaction:
        cursor.execute("BEGIN IMMEDIATE")
