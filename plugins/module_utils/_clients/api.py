# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Requests to one service. Everything that can go wrong between us and it becomes one `CloudError` here."""

from __future__ import annotations

import contextlib
import dataclasses as d
import time
import traceback
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.clock import get_utc_now
from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    CloudError,
    MalformedResponse,
)
from ansible_collections.osops.placement.plugins.module_utils._common.times import parse_http_date
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

try:
    import keystoneauth1.exceptions as ksa
    from openstack.exceptions import ConfigException, SDKException, ServiceDisabledException
except ImportError:
    OPENSTACKSDK_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    OPENSTACKSDK_IMPORT_ERROR = None

# These are retried by keystoneauth. A dead cell is a lasting 500, which is an answer for us: see Api.get.
_TRANSIENT = (429, 502, 503, 504)
# What these say counts as proof, so they must come from the service itself and be whole: its errors have words.
_PROOF_STATUSES = (400, 404)
_SERVICE_ERROR_KEYS = frozenset({"itemNotFound", "badRequest", "NeutronError"})
# The pauses in seconds before a broken answer is asked for again; what is broken after the last of them counts.
_RETRY_PAUSES = (0.5, 1.0)
_ADVICE = {
    401: "Check the credentials.",
    403: "Use credentials whose role may do this (admin by default).",
    429: "The service limits the rate of requests: try again later.",
    500: "The cause is in that service's log.",
    502: "The service behind the proxy does not answer: try again later.",
    503: "The service is not available: try again later.",
    504: "The service behind the proxy does not answer in time: try again later.",
}

_CATALOG_ADVICE = "Check region_name and interface, and that the service is part of this cloud."

T = t.TypeVar("T")


@d.dataclass(frozen=True)
class Reply:
    """An HTTP answer: its status, headers (any case) and JSON body (`{}` when there is none)."""

    status: int
    headers: t.Mapping[str, str]
    body: t.Any

    @property
    def detail(self) -> str:
        """The service's own words: Placement's `errors[].detail`, or the message that Nova wraps into one key."""
        if self._errors:
            return " ".join(
                " ".join(str(error.get("detail", "")).split()) for error in self._errors
            )
        wrapped = self.body.values() if isinstance(self.body, dict) else ()
        return " ".join(
            str(value["message"])
            for value in wrapped
            if isinstance(value, dict) and "message" in value
        )

    @property
    def is_service_error(self) -> bool:
        """Whether an error is in the form of Placement, Nova or Neutron, and not in that of something on the way to them."""
        return bool(self._errors) or (
            isinstance(self.body, dict) and not _SERVICE_ERROR_KEYS.isdisjoint(self.body)
        )

    @property
    def code(self) -> str | None:
        """Placement's error code, such as `placement.concurrent_update`."""
        return self._errors[0].get("code") if self._errors else None

    @property
    def _errors(self) -> list[dict[str, t.Any]]:
        errors = self.body.get("errors") if isinstance(self.body, dict) else None
        return (
            [error for error in errors if isinstance(error, dict)]
            if isinstance(errors, list)
            else []
        )


class Api:
    """One service: requests at a stated microversion, retried where that is safe."""

    def __init__(self, name: str, adapter: t.Any, minimum: tuple[int, int] | None) -> None:
        self.name = name
        # Set while a cell is known to be down: a 500 is then believed at once.
        self.believes_errors = False
        self._adapter = adapter
        self._retried: list[float] = []
        with translate_sdk_errors(name):
            endpoint = adapter.get_endpoint()
            data = adapter.get_endpoint_data() if minimum else None
        if endpoint is None:
            raise CloudError(f"{name} has no endpoint in the service catalogue. {_CATALOG_ADVICE}")
        # Whether it ends with a slash depends on whether the service answered when its versions were discovered.
        self.endpoint: str = f"{endpoint.rstrip('/')}/"
        if minimum is None:
            return
        if data is None or data.max_microversion is None:
            # Discovery passes over a service that does not answer; a request of our own says why, or it answers now.
            self.expect(self.get(self.endpoint, None), "for its versions", 200, 300)
            with translate_sdk_errors(name):
                data = adapter.get_endpoint_data()
        self.newest: tuple[int, int] = (data and data.max_microversion) or (1, 0)
        self.require_microversion(*minimum)

    def require_microversion(self, major: int, minor: int) -> str:
        """Return the microversion `major.minor`, or raise CloudError when the service does not offer it."""
        if self.newest < (major, minor):
            raise CloudError(
                f"{self.name} at {self.endpoint} offers microversions up to {_format_microversion(self.newest)}; "
                f"{_format_microversion((major, minor))} or newer is needed."
            )
        return _format_microversion((major, minor))

    def choose_microversion(self, major: int, minor: int) -> str:
        """Return the newest microversion that the service offers, but none beyond `major.minor`."""
        return _format_microversion(min(self.newest, (major, minor)))

    @property
    def retried(self) -> int:
        """How many broken answers were asked for again."""
        return len(self._retried)

    def get(self, path: str, microversion: str | None, **params: t.Any) -> Reply:
        """GET `path`. Transient failures, a 500 and an answer that is cut or not JSON are asked for again a few times."""
        return self._ask_until_whole(lambda: self._get(path, microversion, params))

    def read(
        self,
        path: str,
        microversion: str | None,
        read: t.Callable[[Reply], T],
        own_connection: bool = False,
        **params: t.Any,
    ) -> tuple[Reply, T | None]:
        """GET `path` as `get` does, and return the reply with what `read_xml` makes of a 200, None of any other status.

        own_connection: whether to open a connection for this request alone, over which it may reach another worker of the service.
        """
        headers = {"Connection": "close"} if own_connection else {}

        def attempt() -> tuple[Reply, T | None]:
            reply = self._get(path, microversion, params, headers)
            return reply, self.parse(read, reply, path) if reply.status == 200 else None

        return self._ask_until_whole(attempt)

    def _ask_until_whole(self, attempt: t.Callable[[], T]) -> T:
        for pause in _RETRY_PAUSES:
            try:
                found = attempt()
            except MalformedResponse:
                pass
            else:
                reply = found[0] if isinstance(found, tuple) else found
                if self.believes_errors or not isinstance(reply, Reply) or reply.status != 500:
                    return found
            # A list, because threads may add to it at the same time.
            self._retried.append(pause)
            time.sleep(pause)
        return attempt()

    def _get(
        self,
        path: str,
        microversion: str | None,
        params: t.Mapping[str, t.Any],
        headers: t.Mapping[str, str] | None = None,
    ) -> Reply:
        return self._request(
            "GET",
            path,
            microversion,
            headers=headers,
            params=params,
            connect_retries=2,
            status_code_retries=3,
        )

    def write(
        self, method: str, path: str, microversion: str, body: t.Mapping[str, t.Any] | None = None
    ) -> Reply:
        """Send a change once: whether a lost one took effect is for the caller to find out by reading."""
        return self._request(
            method, path, microversion, json=body, connect_retries=0, status_code_retries=0
        )

    def ask(
        self,
        path: str,
        microversion: str | None,
        read: t.Callable[[Reply], T | None],
        own_connection: bool = False,
        **params: t.Any,
    ) -> Answer[T]:
        """GET `path` as evidence: any status is an answer, and a 200 is read by `read_xml` (see there for `own_connection`)."""
        reply, value = self.read(path, microversion, read, own_connection, **params)
        return self.build_answer(path, microversion, params, reply, value)

    def parse(self, read: t.Callable[[Reply], T], reply: Reply, path: str) -> T:
        """Return what `read_xml` makes of `reply`, or raise BrokenAnswer when that has not the shape of this API's answers."""
        try:
            return read(reply)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise MalformedResponse(
                f"{self.name} at {self.endpoint} answered GET {path} with something unexpected ({type(error).__name__}: {error}): "
                "is a proxy in the way?"
            ) from error

    def build_answer(
        self,
        path: str,
        microversion: str | None,
        params: t.Mapping[str, t.Any],
        reply: Reply,
        value: t.Any,
    ) -> Answer[t.Any]:
        """Return `reply` as evidence, with the time by the clock of the service, to which the times in its answers are to be compared."""
        query = "&".join(f"{key}={wanted}" for key, wanted in params.items())
        at = parse_http_date(reply.headers.get("Date")) or get_utc_now()
        return Answer(
            f"GET {path}{'?' if query else ''}{query}", microversion or "", reply.status, at, value
        )

    def expect(self, reply: Reply, what: str, *statuses: int) -> Reply:
        """Return `reply` if it has one of `statuses` (200 without any), or raise CloudError saying that `what` failed."""
        if reply.status in (statuses or (200,)):
            return reply
        raise CloudError(
            " ".join(
                part
                for part in (
                    f"{self.name} at {self.endpoint} answered {reply.status} when asked {what}{': ' + reply.detail if reply.detail else '.'}",
                    _ADVICE.get(reply.status, ""),
                )
                if part
            )
        )

    def _request(
        self,
        method: str,
        path: str,
        microversion: str | None,
        headers: t.Mapping[str, str] | None = None,
        **kwargs: t.Any,
    ) -> Reply:
        with translate_sdk_errors(f"{self.name} at {self.endpoint}"):
            response = self._adapter.request(
                # Told only the path, keystoneauth would copy and search the whole catalogue for each request.
                path if path == self.endpoint else f"{self.endpoint.rstrip('/')}{path}",
                method,
                microversion=microversion,
                raise_exc=False,
                # A user's clouds.yaml may keep answers for a while; a proof must be asked for anew.
                skip_cache=True,
                retriable_status_codes=list(_TRANSIENT),
                headers={"Accept": "application/json", **(headers or {})},
                **kwargs,
            )
        try:
            body = response.json() if response.content else {}
        except ValueError:
            if response.status_code < 400 or (
                method == "GET" and response.status_code in _PROOF_STATUSES
            ):
                raise MalformedResponse(
                    f"{self.name} at {self.endpoint} answered {method} {path} with something that is not JSON: is a proxy in the way?"
                ) from None
            body = {}
        reply = Reply(response.status_code, response.headers, body)
        if method == "GET" and reply.status in _PROOF_STATUSES and not reply.is_service_error:
            raise MalformedResponse(
                f"{self.name} at {self.endpoint} answered {method} {path} with a {reply.status} that is not its own: is a proxy in the way?"
            )
        return reply


@contextlib.contextmanager
def translate_sdk_errors(where: str) -> t.Iterator[None]:
    """Turn what keystoneauth and the SDK raise into one sentence that says where it happened and what to do."""
    try:
        yield
    except (ksa.ClientException, SDKException, OSError) as error:
        # What urllib3 adds after its pool's name repeats what was said before.
        said = " ".join(str(error).split()).partition(": HTTPConnectionPool")[0].rstrip(".")
        if isinstance(error, ksa.UnknownConnectionError):
            raise MalformedResponse(
                f"{where} broke off its answer: {said}. Is a proxy in the way?"
            ) from error
        for kinds, what, advice in _list_error_meanings():
            if isinstance(error, kinds):
                raise CloudError(f"{where} {what}: {said}. {advice}") from error
        raise CloudError(f"{where} cannot be used: {said}.") from error


def _list_error_meanings() -> tuple[tuple[tuple[type[Exception], ...], str, str], ...]:
    """Return what the exceptions mean to an operator, the special ones before their bases."""
    return (
        ((ksa.Unauthorized,), "refused the credentials", "Check user, password and project."),
        (
            (ksa.Forbidden,),
            "refused these credentials",
            "Check the project and the user's roles in it.",
        ),
        (
            (ksa.SSLError,),
            "has a certificate that cannot be verified",
            "Set ca_cert to the CA that signed it.",
        ),
        (
            (ksa.ConnectTimeout,),
            "does not answer in time",
            "Check that the service runs, or raise api_timeout.",
        ),
        (
            (ksa.ConnectFailure, ksa.DiscoveryFailure),
            "cannot be reached",
            "Check that the service runs and that this machine can reach it.",
        ),
        (
            (ksa.CatalogException, ServiceDisabledException),
            "has no endpoint in the service catalogue",
            _CATALOG_ADVICE,
        ),
        (
            (ksa.MissingRequiredOptions, ksa.NoMatchingPlugin, ConfigException),
            "is not known from the connection options",
            "Set cloud (or OS_CLOUD) to a cloud of clouds.yaml, or give auth (or OS_AUTH_URL and its like).",
        ),
    )


def _format_microversion(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
