"""What a control plane does to a run: dead workers, revoked tokens, a database that goes away."""

from __future__ import annotations

import socket
import threading
import typing as t

from ...integration.interposer import Answered, Asked, Wires
from ...integration.strays import NO_AGE, Strays
from ...integration.support import Ansible, Placement
from . import configs
from .bed import Stack
from .world import Measured, StackWorld

CHOSEN = {
    "orphan_cleanup_kinds": ["unknown_consumer"],
    "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
}


class Revocation:
    """Revokes the token of the first request that matches, and lets every cache forget it."""

    def __init__(self, stack: Stack, connection: t.Any, path: str) -> None:
        self._stack, self._connection, self._path = stack, connection, path
        self._lock = threading.Lock()
        self.revoked = False
        self.refused = 0

    def __call__(self, asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        with self._lock:
            if not self.revoked and self._path in asked.path:
                self._revoke(asked.headers["x-auth-token"])
        answer = ask(asked)
        self.refused += answer.status == 401
        return answer

    def _revoke(self, token: str) -> None:
        reply = self._connection.session.delete(
            "/auth/tokens",
            endpoint_filter={"service_type": "identity", "interface": "public"},
            headers={"X-Subject-Token": token},
        )
        assert reply.status_code == 204
        with socket.create_connection(("127.0.0.1", self._stack.ports["memcached"])) as memcached:
            memcached.sendall(b"flush_all\r\n")
            assert memcached.recv(16) == b"OK\r\n"
        self.revoked = True


def test_token_is_revoked_in_the_middle_of_a_detection(
    ansible: Ansible, stack: Stack, connection: t.Any, few: Strays, wires: Wires, measured: Measured
) -> None:
    few.claim()
    revocation = Revocation(stack, connection, "/allocations")
    wires.placement.middlebox = wires.nova.middlebox = revocation

    found = ansible.direct("orphan_detect", consumers=few.consumers, **NO_AGE)

    assert revocation.revoked and revocation.refused > 0
    assert not found["failed"], found["msg"]
    assert found["summary"]["coverage"]["complete"]
    assert {entry["consumer"] for entry in found["findings"]} >= set(few.consumers)
    measured["requests_refused"] = revocation.refused


def test_token_is_revoked_in_the_middle_of_a_cleanup(
    ansible: Ansible,
    stack: Stack,
    connection: t.Any,
    many: Strays,
    wires: Wires,
    measured: Measured,
) -> None:
    many.claim()
    revocation = Revocation(stack, connection, "/allocations")
    wires.placement.middlebox = revocation

    told = ansible.direct(
        "orphan_remediate", output_dir=str(ansible.folder), **many.arguments(wires)
    )

    outcomes = many.truth(told)
    assert revocation.refused > 0
    assert set(outcomes.values()) == {"removed"}, told["msg"]
    many.others_are_unchanged()
    measured.update(requests_refused=revocation.refused, removed=len(outcomes))


def test_one_of_four_workers_is_dead(
    ansible: Ansible,
    stack: Stack,
    world: StackWorld,
    placement: Placement,
    few: Strays,
    measured: Measured,
) -> None:
    """Nobody notices behind a proxy that checks its workers; behind another, requests fail."""
    dead = ("nova-api-2", "placement-3")
    # A run over the whole cloud would remove these, too.
    few.release()
    for cloud in ("minicloud", "unchecked"):
        server = world.boot("compute-1")
        orphans = {world.claim("compute-2") for _count in range(10)}
        before = placement.everything()
        stack.stop(*dead, now=True)
        try:
            run = ansible.playbook(
                "cleanup_orphans", variables={**CHOSEN, "orphan_cleanup_cloud": cloud}
            )
        finally:
            stack.start(*dead)
            stack.await_workers("nova-api")
            stack.await_workers("placement")
        after = placement.everything()
        gone = set(before) - set(after)
        measured[cloud] = {"status": run.status, "orphans": len(orphans), "removed": len(gone)}
        assert server in after and after[server] == before[server]
        assert gone <= orphans and "Traceback" not in run.output, run.output
        if run.status == 0:
            undecided = {entry["consumer"] for entry in run.read("findings.json")["undecided"]}
            # Others were found, and could not be proven again before the write.
            outcomes = run.read("remediation.json")["outcomes"]
            skipped = {each["consumer"] for each in outcomes if each["outcome"] == "skipped"}
            measured[cloud] |= {"undecided": len(undecided), "skipped": len(skipped)}
            assert orphans - gone <= undecided | skipped, run.output
        for consumer in orphans - gone:
            world.hold(consumer, {})
    assert measured["minicloud"]["status"] == 0
    assert measured["minicloud"]["removed"] == measured["minicloud"]["orphans"]


class Outage:
    """Cuts the power of the database at a request, and starts it again once that was answered."""

    def __init__(self, stack: Stack, nth: int) -> None:
        self._stack, self._nth = stack, nth
        self._starting: threading.Thread | None = None
        self.seen = 0
        self.statuses: list[int] = []

    def __call__(self, asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        if asked.line != "POST /allocations":
            return ask(asked)
        self.seen += 1
        if self.seen == self._nth:
            self._stack.stop(*(f"database-{node}" for node in configs.NODES), now=True)
        answer = ask(asked)
        self.statuses.append(answer.status)
        if self.seen == self._nth:
            self._starting = threading.Thread(target=self._stack.start_galera)
            self._starting.start()
        return answer

    def join(self) -> None:
        assert self._starting
        self._starting.join()


def test_galera_is_stopped_and_started_in_the_middle_of_a_cleanup(
    ansible: Ansible,
    stack: Stack,
    placement: Placement,
    many: Strays,
    wires: Wires,
    measured: Measured,
) -> None:
    many.claim()
    before = placement.everything()
    outage = Outage(stack, nth=2)
    wires.placement.middlebox = outage

    told = ansible.direct(
        "orphan_remediate", output_dir=str(ansible.folder), **many.arguments(wires)
    )
    outage.join()
    stack.await_workers("placement")

    outcomes = many.truth(told)
    changed = {name for name, held in placement.everything().items() if before[name] != held}
    assert changed == set(), "only orphans may be gone"
    counted = sorted(outcomes.values())
    measured["statuses"] = outage.statuses
    measured["outcomes"] = {word: counted.count(word) for word in sorted(set(counted))}
    assert outage.statuses[1] >= 500 and "removed" in counted
    wires.placement.clear()
    again = ansible.direct(
        "orphan_remediate", output_dir=str(ansible.folder), **many.arguments(wires)
    )
    assert not many.held, again["msg"]
    folder = str(ansible.folder)
    restored = ansible.direct("orphan_restore", journal=told["journal"], output_dir=folder)
    # An undo also returns what the run may have removed: its requests were answered 500.
    assert restored["tally"]["restored"] == counted.count("removed") + counted.count("failed")
