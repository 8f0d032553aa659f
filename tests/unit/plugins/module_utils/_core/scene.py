"""Two hosts on which a test arranges servers, and what the rules say of them.

What arranges a part of it returns its consumer, so that a situation can be one expression.
"""

import dataclasses as d
import typing as t

from ......plugins.module_utils._core.models.finding import DRIFTED, ORPHANED, Finding
from ......plugins.module_utils._core.options.policy import Policy
from ..judging import NO_MINIMUM_AGE, judge
from ..world import NOW, World, answer


class Scene(World):
    """Two hosts, `here` and `there`."""

    def __init__(self, here: str = "compute-1", there: str = "compute-2") -> None:
        super().__init__()
        self.here, self.there = self.host(here), self.host(there)

    def find(
        self, consumer: str, policy: Policy = NO_MINIMUM_AGE, **changes: t.Any
    ) -> Finding | None:
        """Return the finding about a consumer in a snapshot with some changes, or None."""
        found = judge(self.snapshot(**changes), policy)
        return next((finding for finding in found if finding.consumer == consumer), None)

    def found(self, consumer: str, policy: Policy = NO_MINIMUM_AGE, **changes: t.Any) -> Finding:
        """Return the finding about a consumer; only what is proven may be changed."""
        finding = self.find(consumer, policy, **changes)
        assert finding is not None
        assert finding.verdict in (ORPHANED, DRIFTED) or not finding.change
        return finding

    def find_kind(self, kind: str, policy: Policy = NO_MINIMUM_AGE, **changes: t.Any) -> t.Any:
        """Return the findings of a kind, in a snapshot with some changes."""
        found = judge(self.snapshot(**changes), policy)
        return [finding for finding in found if finding.kind == kind]

    def told(self, consumer: str, *policy: Policy, **changes: t.Any) -> tuple[str, str, str | None]:
        """Return the kind, the verdict and the reason of the finding about a consumer."""
        finding = self.found(consumer, *policy, **changes)
        return finding.kind, finding.verdict, finding.reason.id

    def undecided(self, consumer: str, *policy: Policy, **changes: t.Any) -> str | None:
        """Return why the rules do not decide about a consumer."""
        finding = self.found(consumer, *policy, **changes)
        assert (finding.verdict, finding.change) == ("undecided", None), finding
        return finding.reason.id

    def evidence(self, uuid: str, **answers: t.Any) -> dict[str, t.Any]:
        """Return the evidence about everything, with other answers about one consumer."""
        evidence = self.snapshot().evidence
        return {**evidence, uuid: d.replace(evidence[uuid], **answers)}

    def silence(self, host: str) -> dict[str, t.Any]:
        """Return the two listings of services while the cell of a host does not answer."""
        rows = (
            d.replace(row, status="UNKNOWN", state=None) if row.host == host else row
            for row in self.services
        )
        listed = answer("GET /os-services", 200, tuple(rows))
        return {"services": listed, "services_after": listed}

    def alter(self, uuid: str, **fields: t.Any) -> str:
        """Change the row of a server or of a migration."""
        tables: t.Any = (self.servers, self.deleted, self.migrations)
        (rows,) = (rows for rows in tables if uuid in rows)
        rows[uuid] = d.replace(rows[uuid], **fields)
        return uuid

    def spread(self, **fields: t.Any) -> str:
        """Add a server on `here` with an allocation on both hosts."""
        return self.server(self.here, self.here, self.there, **fields)

    def goes(self, server: str, status: str, *holds: str, type: str = "migration") -> str:
        """Add a migration of a server from `here` to `there`."""
        return self.migration(server, self.here, self.there, status, *holds, type=type)

    def comes(self, server: str, status: str, *holds: str, type: str = "migration") -> str:
        """Add a migration of a server from `there` to `here`."""
        return self.migration(server, self.there, self.here, status, *holds, type=type)

    def delete_row(self, migration: str) -> str:
        """UPDATE migrations SET deleted = id: no listing has it, and it is still a marker."""
        self.migrations.pop(migration, None)
        self.unlisted_migrations.add(migration)
        return migration

    def did(self, server: str, action: str, *finished: str | None, **fields: t.Any) -> str:
        super().did(server, action, *finished, **fields)
        return server

    def act(self, server: str, action: str, root: str, at: str | None = NOW) -> str:
        """Record that the host of `root` did an action, and when it ended."""
        return self.did(server, action, at, host=self.nodes[root].host)

    def fail_newest_action(self, server: str) -> str:
        super().fail_newest_action(server)
        return server

    def delete(self, server: str, remembered: bool = True) -> str:
        super().delete(server, remembered)
        return server

    def answers(self, question: str, uuid: str, status: int) -> str:
        super().answers(question, uuid, status)
        return uuid

    def lose_mapping(self, server: str) -> str:
        """Let Nova answer 404 for a live server."""
        self.unmapped.add(server)
        return server

    def lose_host(self, consumer: str) -> str:
        """Remove the host `here`; its provider stays, with the allocation of the consumer."""
        self.remove_host(self.here)
        return consumer

    def take_down(self, consumer: str) -> str:
        """Have nova-compute of the host `here` be down."""
        self.set_service(self.here, "down")
        return consumer


class PooledScene(Scene):
    """Two hosts, a pool of disks, and a settled server, with which the credentials pass."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = self.provider("pool", sharing=True)
        self.server(self.there, self.there)
