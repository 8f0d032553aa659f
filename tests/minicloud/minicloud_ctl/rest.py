"""JSON over HTTP to 127.0.0.1 with a Keystone token.

A minimal client that needs only the standard library.
"""

import http.client
import json
import threading
from dataclasses import dataclass
from typing import Any

from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.state import State

TIMEOUT = 120.0


@dataclass(frozen=True)
class Answer:
    """``body`` is the parsed document, or the text if it is not JSON."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def send(
    port: int, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Answer:
    """Send one request on a connection of its own, so that any thread may call.

    ``body``: bytes are sent unchanged, anything else as JSON.
    """
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    content_type = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        connection.request(
            method,
            path,
            data,
            {"Content-Type": content_type, "Accept": "application/json", **(headers or {})},
        )
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        found = {key.lower(): value for key, value in response.getheaders()}
    finally:
        connection.close()
    try:
        return Answer(response.status, found, json.loads(text) if text else None)
    except ValueError:
        return Answer(response.status, found, text)


def answers(port: int) -> bool:
    """Return whether an HTTP server is there and not broken.

    Any status below 500 is good enough, such as 401 for Nova.
    """
    try:
        return send(port, "GET", "/").status < 500
    except (OSError, http.client.HTTPException):
        return False


class Session:
    """Requests of one user in one project, to any of the services of ``state``."""

    def __init__(self, state: State, user: str = "admin", project: str = "admin") -> None:
        self.state = state
        self._login = (user, project)
        self._lock = threading.Lock()
        self._token = ""

    def token(self, new: bool = False) -> str:
        with self._lock:
            if new or not self._token:
                self._token = self._authenticate()
            return self._token

    def _authenticate(self) -> str:
        user, project = self._login
        domain = {"domain": {"id": "default"}}
        password = {"user": {"name": user, "password": self.state.secrets[user], **domain}}
        identity = {"methods": ["password"], "password": password}
        scope = {"project": {"name": project, **domain}}
        document = {"auth": {"identity": identity, "scope": scope}}
        answer = self._send("keystone", "POST", "/v3/auth/tokens", document)
        if not answer.ok:
            raise MinicloudError(
                f"Keystone refused user {user} of project {project} with {answer.status}: "
                f"{answer.body}"
            )
        return answer.headers["x-subject-token"]

    def call(
        self,
        service: str,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Return any answer at all; a 401 is tried once more with a fresh token."""
        for is_new in (False, True):
            own = {"X-Auth-Token": self.token(is_new), **(headers or {})}
            answer = self._send(service, method, path, body, own)
            if answer.status != 401:
                break
        return answer

    def _send(
        self,
        service: str,
        method: str,
        path: str,
        body: object,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        try:
            return send(self.state.ports[service], method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise MinicloudError(
                f"{service} does not answer ({error}); 'minicloud status' shows whether it runs."
            ) from None

    def must(
        self,
        service: str,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """Return the body of a good answer.

        Anything but 2xx ends the command with the message of the service.
        """
        answer = self.call(service, method, path, body, headers)
        if not answer.ok:
            raise MinicloudError(
                f"{service} answered {answer.status} to {method} {path}: {answer.body}"
            )
        return answer.body
