# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Requests to one service.

Everything that can go wrong between us and the service becomes one `CloudError` here.
"""

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

# These are retried by keystoneauth. A dead cell is a lasting 500, which is an answer for us: see
# Api.get.
_TRANSIENT = (429, 502, 503, 504)
# What these say counts as proof, so they must come from the service itself and be whole: its errors
# have words.
_PROOF_STATUSES = (400, 404)
_SERVICE_ERROR_KEYS = frozenset({"itemNotFound", "badRequest", "NeutronError"})
# The pauses in seconds before a broken answer is asked for again; what is broken after the last of
# them counts.
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
        """The service's own words: Placement's `errors[].detail`, or Nova's wrapped message.

        Nova wraps the message of an error into one key that names the kind of error.
        """
        if self._errors:
            return " ".join(_collapse_spaces(error.get("detail", "")) for error in self._errors)
        if not isinstance(self.body, dict):
            return ""
        messages = []
        for value in self.body.values():
            if isinstance(value, dict) and "message" in value:
                messages.append(str(value["message"]))
        return " ".join(messages)

    @property
    def is_service_error(self) -> bool:
        """Whether an error is in the form of Placement, Nova or Neutron.

        What stands between us and the service, such as a proxy, has errors of another form.
        """
        if self._errors:
            return True
        return isinstance(self.body, dict) and not _SERVICE_ERROR_KEYS.isdisjoint(self.body)

    @property
    def code(self) -> str | None:
        """Placement's error code, such as `placement.concurrent_update`."""
        if not self._errors:
            return None
        return self._errors[0].get("code")

    @property
    def _errors(self) -> list[dict[str, t.Any]]:
        if not isinstance(self.body, dict):
            return []
        errors = self.body.get("errors")
        if not isinstance(errors, list):
            return []
        return [error for error in errors if isinstance(error, dict)]


class Api:
    """One service: requests at a stated microversion, retried where that is safe."""

    def __init__(self, name: str, adapter: t.Any, minimum: tuple[int, int] | None) -> None:
        self.name = name
        # Set while a cell is known to be down: a 500 is then believed at once.
        self.believes_errors = False
        self._adapter = adapter
        self._retried: list[float] = []
        data = None
        with translate_sdk_errors(name):
            endpoint = adapter.get_endpoint()
            if minimum:
                data = adapter.get_endpoint_data()
        if endpoint is None:
            raise CloudError(f"{name} has no endpoint in the service catalogue. {_CATALOG_ADVICE}")
        # Whether it ends with a slash depends on whether the service answered when its versions
        # were discovered.
        self.endpoint: str = f"{endpoint.rstrip('/')}/"
        if minimum is None:
            return
        if data is None or data.max_microversion is None:
            # Discovery passes over a service that does not answer; a request of our own says why,
            # or it answers now.
            self.expect(self.get(self.endpoint, None), "for its versions", 200, 300)
            with translate_sdk_errors(name):
                data = adapter.get_endpoint_data()
        self.newest: tuple[int, int] = (1, 0)
        if data and data.max_microversion:
            self.newest = data.max_microversion
        self.require_microversion(*minimum)

    def require_microversion(self, major: int, minor: int) -> str:
        """Return the microversion `major.minor`.

        Raises CloudError when the service does not offer it.
        """
        if self.newest < (major, minor):
            raise CloudError(
                f"{self.name} at {self.endpoint} offers microversions up to "
                f"{_format_microversion(self.newest)}; "
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
        """GET `path` and return the reply, whatever its status.

        Transient failures, a 500 and an answer that is cut or not JSON are asked for again a few
        times.
        """
        reply, _same_reply = self.read(path, microversion, lambda reply: reply, **params)
        return reply

    def read(
        self,
        path: str,
        microversion: str | None,
        read: t.Callable[[Reply], T],
        own_connection: bool = False,
        **params: t.Any,
    ) -> tuple[Reply, T | None]:
        """GET `path` as `get` does, and return the reply with what `read` makes of it.

        Only a 200 is passed to `read`; the second value is None for any other status. A 200 that
        `read` cannot use is asked for again as well.

        own_connection: whether to open a connection for this request alone, over which it may reach
        another worker of the service.
        """
        headers = {}
        if own_connection:
            headers["Connection"] = "close"
        for pause in _RETRY_PAUSES:
            try:
                reply, value = self._try_to_read(path, microversion, read, headers, params)
            except MalformedResponse:
                pass
            else:
                if reply.status != 500 or self.believes_errors:
                    return reply, value
            # A list, because threads may add to it at the same time.
            self._retried.append(pause)
            time.sleep(pause)
        return self._try_to_read(path, microversion, read, headers, params)

    def _try_to_read(
        self,
        path: str,
        microversion: str | None,
        read: t.Callable[[Reply], T],
        headers: t.Mapping[str, str],
        params: t.Mapping[str, t.Any],
    ) -> tuple[Reply, T | None]:
        reply = self._request(
            "GET",
            path,
            microversion,
            headers=headers,
            params=params,
            connect_retries=2,
            status_code_retries=3,
        )
        if reply.status != 200:
            return reply, None
        return reply, self.parse(read, reply, path)

    def write(
        self, method: str, path: str, microversion: str, body: t.Mapping[str, t.Any] | None = None
    ) -> Reply:
        """Send a change once and return the reply, whatever its status.

        Whether a lost change took effect is for the caller to find out by reading.
        """
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
        """GET `path` and return the reply as evidence: any status is an answer.

        A 200 is read by `read`; see `Api.read` for `own_connection`.
        """
        reply, value = self.read(path, microversion, read, own_connection, **params)
        return self.build_answer(path, microversion, params, reply, value)

    def parse(self, read: t.Callable[[Reply], T], reply: Reply, path: str) -> T:
        """Return what `read` makes of `reply`.

        Raises MalformedResponse when the reply does not have the shape of this API's answers.
        """
        try:
            return read(reply)
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            raise MalformedResponse(
                f"{self.name} at {self.endpoint} answered GET {path} with something unexpected "
                f"({type(error).__name__}: {error}): is a proxy in the way?"
            ) from error

    def build_answer(
        self,
        path: str,
        microversion: str | None,
        params: t.Mapping[str, t.Any],
        reply: Reply,
        value: t.Any,
    ) -> Answer[t.Any]:
        """Return `reply` as evidence, with the time by the clock of the service.

        The times in the service's answers are to be compared to that clock.
        """
        request = f"GET {path}"
        if params:
            request += "?" + "&".join(f"{key}={text}" for key, text in params.items())
        at = parse_http_date(reply.headers.get("Date")) or get_utc_now()
        return Answer(request, microversion or "", reply.status, at, value)

    def expect(self, reply: Reply, what: str, *statuses: int) -> Reply:
        """Return `reply` if it has one of `statuses` (200 without any).

        Raises CloudError, which says that `what` failed, for any other status.
        """
        if reply.status in (statuses or (200,)):
            return reply
        message = f"{self.name} at {self.endpoint} answered {reply.status} when asked {what}"
        if reply.detail:
            message += f": {reply.detail}"
        else:
            message += "."
        if reply.status in _ADVICE:
            message += f" {_ADVICE[reply.status]}"
        raise CloudError(message)

    def _request(
        self,
        method: str,
        path: str,
        microversion: str | None,
        headers: t.Mapping[str, str] | None = None,
        **kwargs: t.Any,
    ) -> Reply:
        # With the path alone, keystoneauth would copy and search the whole catalogue for each
        # request.
        url = path
        if path != self.endpoint:
            url = f"{self.endpoint.rstrip('/')}{path}"
        with translate_sdk_errors(f"{self.name} at {self.endpoint}"):
            response = self._adapter.request(
                url,
                method,
                microversion=microversion,
                raise_exc=False,
                # A user's clouds.yaml may keep answers for a while; a proof needs a new request.
                skip_cache=True,
                retriable_status_codes=list(_TRANSIENT),
                headers={"Accept": "application/json", **(headers or {})},
                **kwargs,
            )
        return self._parse_response(method, path, response)

    def _parse_response(self, method: str, path: str, response: t.Any) -> Reply:
        """Return the reply in `response`.

        Raises MalformedResponse for a success that is not JSON, and for an error which would count
        as proof but does not come from the service itself.
        """
        status = response.status_code
        is_proof = method == "GET" and status in _PROOF_STATUSES
        body: t.Any = {}
        try:
            if response.content:
                body = response.json()
        except ValueError:
            if status < 400 or is_proof:
                raise MalformedResponse(
                    f"{self.name} at {self.endpoint} answered {method} {path} with something that "
                    "is not JSON: is a proxy in the way?"
                ) from None
        reply = Reply(status, response.headers, body)
        if is_proof and not reply.is_service_error:
            raise MalformedResponse(
                f"{self.name} at {self.endpoint} answered {method} {path} with a {reply.status} "
                "that is not its own: is a proxy in the way?"
            )
        return reply


@contextlib.contextmanager
def translate_sdk_errors(where: str) -> t.Iterator[None]:
    """Turn what keystoneauth and the SDK raise into one sentence: where it happened, what to do."""
    try:
        yield
    except (ksa.ClientException, SDKException, OSError) as error:
        # What urllib3 adds after its pool's name repeats what was said before.
        message = _collapse_spaces(error).partition(": HTTPConnectionPool")[0].rstrip(".")
        if isinstance(error, ksa.UnknownConnectionError):
            raise MalformedResponse(
                f"{where} broke off its answer: {message}. Is a proxy in the way?"
            ) from error
        for kinds, what, advice in _list_error_meanings():
            if isinstance(error, kinds):
                raise CloudError(f"{where} {what}: {message}. {advice}") from error
        raise CloudError(f"{where} cannot be used: {message}.") from error


def _list_error_meanings() -> tuple[tuple[tuple[type[Exception], ...], str, str], ...]:
    """Return what the exceptions mean to an operator, the special ones before their bases."""
    unauthorized = (ksa.Unauthorized,)
    forbidden = (ksa.Forbidden,)
    bad_certificate = (ksa.SSLError,)
    timeout = (ksa.ConnectTimeout,)
    unreachable = (ksa.ConnectFailure, ksa.DiscoveryFailure)
    not_in_catalog = (ksa.CatalogException, ServiceDisabledException)
    bad_options = (ksa.MissingRequiredOptions, ksa.NoMatchingPlugin, ConfigException)
    return (
        (unauthorized, "refused the credentials", "Check user, password and project."),
        (forbidden, "refused these credentials", "Check the project and the user's roles in it."),
        (
            bad_certificate,
            "has a certificate that cannot be verified",
            "Set ca_cert to the CA that signed it.",
        ),
        (
            timeout,
            "does not answer in time",
            "Check that the service runs, or raise api_timeout.",
        ),
        (
            unreachable,
            "cannot be reached",
            "Check that the service runs and that this machine can reach it.",
        ),
        (not_in_catalog, "has no endpoint in the service catalogue", _CATALOG_ADVICE),
        (
            bad_options,
            "is not known from the connection options",
            "Set cloud (or OS_CLOUD) to a cloud of clouds.yaml, or give auth (or OS_AUTH_URL and "
            "its like).",
        ),
    )


def _collapse_spaces(value: object) -> str:
    return " ".join(str(value).split())


def _format_microversion(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
