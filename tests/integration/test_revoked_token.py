"""A token is revoked in the middle of a run whose credentials are still valid."""

import dataclasses as d
import re
import threading
import typing as t

from .interposer import Answered, Asked, Wires
from .strays import NO_AGE, Strays
from .support import Ansible


class Revocation:
    """Revokes the token of the first requests that match, while all of them are in flight."""

    def __init__(self, connection: t.Any, path: str, *others: str) -> None:
        """Prepare it.

        others: tokens that are revoked too.
        """
        self._connection = connection
        self._others = others
        self._path = path
        self._lock = threading.Lock()
        self.refused: list[str] = []
        self.repeated: list[str] = []
        self.revoked: set[str] = set()

    def __call__(self, asked: Asked, ask: t.Callable[[Asked], Answered]) -> Answered:
        token = asked.headers.get("x-auth-token", "")
        with self._lock:
            if not self.revoked and self._path in asked.path:
                for revoked in (token, *self._others):
                    self._revoke(revoked)
        if token in self.revoked:
            # The services of the minicloud keep each token that they have seen for five minutes.
            answer = ask(d.replace(asked, headers={**asked.headers, "x-auth-token": "forgotten"}))
            assert answer.status == 401
            self.refused.append(asked.line)
            return answer
        if asked.line in self.refused:
            self.repeated.append(asked.line)
        return ask(asked)

    def _revoke(self, token: str) -> None:
        reply = self._connection.session.delete(
            "/auth/tokens",
            endpoint_filter={"service_type": "identity", "interface": "public"},
            headers={"X-Subject-Token": token},
        )
        assert reply.status_code == 204
        self.revoked.add(token)


def test_detection_continues_with_a_new_token(
    ansible: Ansible, connection: t.Any, few: Strays, wires: Wires
) -> None:
    for path in ("/resource_providers", "/allocations", "/servers/"):
        few.claim()
        revocation = Revocation(connection, path)
        wires.placement.middlebox = wires.nova.middlebox = revocation

        found = ansible.direct("orphan_detect", consumers=few.consumers, **NO_AGE)

        assert revocation.revoked, "no request matched"
        assert not found["failed"], found["msg"]
        assert found["summary"]["coverage"]["complete"]
        assert len(found["findings"]) == len(few.consumers)
        # None of them was sent twice with the old token.
        assert len(set(revocation.refused)) == len(revocation.refused) > 0
        assert set(revocation.repeated) == set(revocation.refused)


def test_token_that_cannot_be_renewed_is_not_blamed_on_a_role(
    ansible: Ansible, connection: t.Any, few: Strays, wires: Wires
) -> None:
    """The run itself has only a token, and no password to get another one."""
    few.claim()
    identity = connection.session
    reply = identity.post(
        "/auth/tokens",
        endpoint_filter={"service_type": "identity", "interface": "public"},
        json={
            "auth": {
                "identity": {"methods": ["token"], "token": {"id": identity.get_token()}},
                "scope": {"project": {"id": identity.get_project_id()}},
            }
        },
    )
    token = reply.headers["X-Subject-Token"]
    config = ansible.folder / "interposed.yaml"
    text = re.sub(r"( +)username: .*", rf"\1token: {token}", config.read_text())
    text = re.sub(r" +(password|user_domain\w+): .*\n", "", text)
    config.write_text(text.replace("auth:", "auth_type: v3token\n    auth:"))
    wires.placement.middlebox = wires.nova.middlebox = Revocation(connection, "/allocations", token)

    failed = ansible.direct("orphan_detect", consumers=few.consumers, **NO_AGE)

    assert failed["failed"] and "has expired" in failed["msg"]
    assert "role" not in failed["msg"] and "\n" not in failed["msg"]
