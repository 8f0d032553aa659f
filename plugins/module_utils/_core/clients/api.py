# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to one service.

Everything that can go wrong between us and the service becomes one `CloudError` here.
"""

from __future__ import annotations

import dataclasses as d
import functools
import re
import threading
import time
import typing as t
import urllib.parse

from ..._common.clock import get_utc_now, read_monotonic_clock
from ..._common.errors import CloudError, MalformedResponse, hide_credentials
from ..._common.text import make_printable
from ..._common.times import format_duration, format_timestamp, read_http_clock
from ..models.snapshot import Answer
from .answer_types import find_wrong_type
from .login import renew_token
from .login_errors import CATALOG_ADVICE, STATUS_ADVICE, collapse_spaces, translate_sdk_errors

# keystoneauth retries these. 500 is not among them: a dead cell causes a lasting 500, which is an
# answer (Api.get).
_TRANSIENT = (429, 502, 503, 504)
# Errors with these statuses count as proof, so they must come from the service itself and be
# complete: an error of the service has a message.
_PROOF_STATUSES = (400, 404)
_SERVICE_ERROR_KEYS = frozenset({"itemNotFound", "badRequest", "NeutronError"})
# The key of Keystone's errors. A proxy may use it too, so it counts for no other service.
KEYSTONE_ERROR_KEYS = frozenset({"error"})
# The key of Ironic's errors.
IRONIC_ERROR_KEYS = frozenset({"error_message"})
# Their answers have the types of `answer_types`. The other services decide on no allocation alone.
_TYPED_SERVICES = ("Nova", "Placement")
# Not that of a request, which begins with `req-`.
_UUID = re.compile("(?<!req-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A cache on the way must ask the service whether its answer is still true (RFC 9111, 5.2.1.4).
_HEADERS = {"Accept": "application/json", "Cache-Control": "no-cache"}

# A message of a service is shown up to this length.
_MAX_DETAIL = 250
# With this, jsonschema begins to print the schema that was not met.
_SCHEMA = "Failed validating"
# A message of an error has advice up to this length.
_MAX_MESSAGE = 400
# The pauses in seconds before a request with a broken answer is sent again. An answer that is still
# broken after the last pause is an error.
_RETRY_PAUSES = (0.5, 1.0)
# In seconds. Ages are compared with an hour and more.
_MAX_CLOCK_DIFFERENCE = 300
# From 1.15 on, GET / is answered with the current time as Last-Modified
# (placement/handlers/root.py, home).
_CLOCK_MICROVERSION = "1.15"
# In seconds. After this the clock is read again: it may have been set.
_CLOCK_LIFETIME = 60
# How many connections ask for the time where no Date shows the clock of each answer: behind a load
# balancer, every one may reach another server.
_SERVERS_ASKED = 4
T = t.TypeVar("T")


class OtherRows(ValueError):
    """A listing has rows that its filter excludes; the message says why that may be."""


@d.dataclass(frozen=True)
class Reply:
    """An HTTP answer: its status, headers (any case) and JSON body (`{}` when there is none)."""

    status: int
    headers: t.Mapping[str, str]
    body: t.Any
    error_keys: frozenset[str] = _SERVICE_ERROR_KEYS

    @property
    def detail(self) -> str:
        """The message of an error: Placement's `errors[].detail`, or Nova's `message`.

        Nova wraps the message in a key that names the kind of error, such as `itemNotFound`.
        It is one line without control characters, and not longer than a sentence may be. The schema
        that Placement appends to an error of validation (placement/util.py, extract_json and
        validate_query_params) is left out.
        """
        messages = [error.get("detail") for error in self._errors]
        if not messages and isinstance(self.body, dict):
            for value in self.body.values():
                if isinstance(value, dict):
                    messages.append(value.get("message"))
        texts = [message for message in messages if isinstance(message, str)]
        lines = [collapse_spaces(text.partition(_SCHEMA)[0]) for text in texts]
        return make_printable(" ".join(lines), _MAX_DETAIL)

    @property
    def is_service_error(self) -> bool:
        """Whether an error is in the form of Placement, Nova or Neutron.

        A proxy in front of the service sends errors in another form.
        """
        if self._errors:
            return True
        return isinstance(self.body, dict) and not self.error_keys.isdisjoint(self.body)

    @property
    def code(self) -> str | None:
        """Placement's error code, such as `placement.concurrent_update`."""
        return self._errors[0].get("code") if self._errors else None

    @property
    def _errors(self) -> list[dict[str, t.Any]]:
        errors = self.body.get("errors") if isinstance(self.body, dict) else None
        listed = errors if isinstance(errors, list) else []
        return [error for error in listed if isinstance(error, dict)]


_ACCESS_RULES = "application_credential_access_rules"


class Api:
    """One service: requests at a stated microversion, retried where that is safe."""

    def __init__(
        self,
        name: str,
        adapter: t.Any,
        minimum: tuple[int, int] | None,
        error_keys: frozenset[str] = _SERVICE_ERROR_KEYS,
    ) -> None:
        """Find the endpoint of the service, and its versions where a minimum is given.

        error_keys: the keys of the errors that are the service's own.
        """
        self.name = name
        self._error_keys = error_keys
        # Set while a cell is known to be down: a 500 then counts without another attempt.
        self.believes_errors = False
        # Set where the age of an allocation is needed: the time less a Last-Modified.
        self.needs_one_clock = False
        # Placement's own clock; None where only a Date tells the time.
        self.clock: ServiceClock | None = None
        # By how much the first answer with a time is ahead of our clock that is never set.
        self._ahead: float | None = None
        self._adapter = adapter
        self._retried: list[float] = []
        data = None
        with translate_sdk_errors(name):
            endpoint = adapter.get_endpoint()
            if minimum:
                data = adapter.get_endpoint_data()
        if endpoint is None:
            raise CloudError(f"{name} has no endpoint in the service catalogue. {CATALOG_ADVICE}")
        # It ends with a slash only if the service answered during version discovery. Requests are
        # sent to this address, and everything else has the endpoint.
        self._address = f"{endpoint.rstrip('/')}/"
        self.endpoint: str = hide_credentials(self._address)
        if minimum is None:
            return
        if data is None or data.max_microversion is None:
            # Discovery ignores a service that does not answer. Another request returns the reason,
            # or it succeeds now.
            self.expect(self.get(self.endpoint, None), "for its versions", 200, 300)
            with translate_sdk_errors(name):
                data = adapter.get_endpoint_data()
        found = data and data.max_microversion
        self.newest: tuple[int, int] = found or (1, 0)
        self.require_microversion(*minimum)

    def require_microversion(self, major: int, minor: int) -> str:
        """Return the microversion `major.minor`.

        Raises CloudError when the service does not offer it.
        """
        if self.newest < (major, minor):
            raise CloudError(
                f"{self.name} at {self.endpoint} offers microversions up to "
                f"{format_microversion(self.newest)}, but "
                f"{format_microversion((major, minor))} or newer is required."
            )
        return format_microversion((major, minor))

    def choose_microversion(self, major: int, minor: int) -> str:
        """Return the newest microversion that the service offers, but none beyond `major.minor`."""
        return format_microversion(min(self.newest, (major, minor)))

    @property
    def retried(self) -> int:
        """How many requests were sent again because of a broken answer."""
        return len(self._retried)

    def get(self, path: str, microversion: str | None, **params: t.Any) -> Reply:
        """GET `path` and return the reply, whatever its status.

        After a transient failure, a 500, and an answer that is truncated or not JSON, the request
        is sent again a few times.
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

        Only a 200 is passed to `read`; the second value is None for any other status. The request
        is also sent again after a 200 that `read` cannot parse.

        own_connection: whether to open a connection for this request alone, which may reach another
            worker of the service.
        """

        def attempt() -> tuple[Reply, T | None]:
            reply = self._request(
                "GET",
                path,
                microversion,
                headers={"Connection": "close"} if own_connection else {},
                params=params,
                connect_retries=2,
                status_code_retries=3,
            )
            return reply, self.parse(read, reply, path) if reply.status == 200 else None

        for pause in _RETRY_PAUSES:
            try:
                reply, value = attempt()
            except MalformedResponse:
                pass
            else:
                if reply.status != 500 or self.believes_errors:
                    return reply, value
            # A list, because threads may add to it at the same time.
            self._retried.append(pause)
            time.sleep(pause)
        return attempt()

    def write(
        self,
        method: str,
        path: str,
        microversion: str | None,
        body: t.Mapping[str, t.Any] | None = None,
    ) -> Reply:
        """Send a change once and return the reply, whatever its status.

        It is never sent twice. If the reply is lost, the caller has to read whether the change took
        effect.
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

        `read` parses the reply if its status is 200. See `Api.read` for `own_connection`.
        """
        reply, value = self.read(path, microversion, read, own_connection, **params)
        return self.build_answer(path, microversion, params, reply, value)

    def read_pages(
        self, path: str, key: str, parse: t.Callable[[t.Any], T], **params: t.Any
    ) -> tuple[Reply, tuple[T, ...] | None]:
        """GET all pages of a listing; return the last reply with what `parse` makes of each row.

        Neutron and Keystone can be set to return shorter pages than a client asks for, and then
        link to the next one (pagination_max_limit, list_limit). The second value is None if the
        status of a page is not 200.

        key: the key of the rows in the body.
        Raises CloudError for a listing without an end.
        """

        def read_page(reply: Reply) -> tuple[list[T], str]:
            return list(map(parse, reply.body[key])), find_next_marker(reply.body, key)

        rows: list[T] = []
        markers = {""}
        query = dict(params)
        while True:
            reply, page = self.read(path, None, read_page, **query)
            if page is None:
                return reply, None
            rows += page[0]
            if not page[1]:
                return reply, tuple(rows)
            if page[1] in markers:
                raise CloudError(
                    f"{self.name} at {self.endpoint} linked twice to the same page of {path}, so "
                    "the listing has no end: something between here and there ignores the marker "
                    "of a page. Use an endpoint without a cache."
                )
            markers.add(page[1])
            query["marker"] = page[1]

    def ask_pages(
        self, path: str, key: str, parse: t.Callable[[t.Any], T], **params: t.Any
    ) -> Answer[tuple[T, ...]]:
        """Return all pages of a listing as `read_pages` reads them, as evidence."""
        reply, rows = self.read_pages(path, key, parse, **params)
        return self.build_answer(path, None, params, reply, rows)

    def parse(self, read: t.Callable[[Reply], T], reply: Reply, path: str) -> T:
        """Return what `read` makes of `reply`.

        Raises MalformedResponse when the reply does not have the shape of this API's answers.
        """
        try:
            return read(reply)
        except OtherRows as error:
            # The service itself leaves out a filter, which a proxy is not to be blamed for.
            raise MalformedResponse(
                f"{self.name} at {self.endpoint} answered GET {path} with something unexpected: "
                f"{error}."
            ) from error
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise self._reject("GET", path, "something unexpected") from error

    def build_answer(
        self,
        path: str,
        microversion: str | None,
        params: t.Mapping[str, t.Any],
        reply: Reply,
        value: t.Any,
    ) -> Answer[t.Any]:
        """Return `reply` as evidence, with the time by the clock of the service.

        Times in the answers of the service are compared with that clock. The request may have the
        name of a host or of a device profile, so it is made printable.
        """
        request = f"GET {path}"
        if params:
            values = {key: v if isinstance(v, tuple) else (v,) for key, v in params.items()}
            request += "?" + "&".join(f"{key}={one}" for key in values for one in values[key])
        seconds = self.tell_time(reply)
        at = get_utc_now() if seconds is None else format_timestamp(seconds)
        return Answer(make_printable(request), microversion or "", reply.status, at, value)

    def tell_time(self, reply: Reply) -> float | None:
        """Return when a reply was sent, in seconds since the epoch; None if that is unknown.

        It is never later than by the clock of the service: ages are rather too small. A Date may be
        that of a proxy, so where ages are needed the service's own clock counts as well.
        """
        date = read_http_clock(reply.headers.get("Date"))
        if self.clock is None or (date is not None and not self.needs_one_clock):
            return date
        own = self.clock.read()
        return min((time for time in (date, own) if time is not None), default=None)

    @property
    def tells_time(self) -> bool:
        """Whether any answer so far had a time by which an age is known."""
        return self._ahead is not None

    def _reject(self, method: str, path: str, what: str) -> MalformedResponse:
        """Return the error for an answer that is not that of the service itself."""
        # The sentence names the endpoint already.
        asked = "/" if path == self.endpoint else path
        return MalformedResponse(
            f"{self.name} at {self.endpoint} answered {method} {asked} with {what}: is a proxy in "
            "the way?"
        )

    def expect(self, reply: Reply, what: str, *statuses: int) -> Reply:
        """Return `reply` if it has one of `statuses`, by default 200.

        what: what was requested, such as `for its versions`.
        Raises CloudError for any other status.
        """
        if reply.status in (statuses or (200,)):
            return reply
        asked = make_printable(what)
        message = f"{self.name} at {self.endpoint} answered {reply.status} when asked {asked}"
        message += f": {reply.detail}" if reply.detail else "."
        advice = self.explain_refusal(reply.status) or STATUS_ADVICE.get(reply.status, "")
        # Without it, a service that says much would take several lines of a terminal.
        if len(message) + len(advice) < _MAX_MESSAGE:
            message = f"{message} {advice}".rstrip()
        raise CloudError(message)

    def explain_refusal(self, status: int) -> str:
        """Return what of the token makes a service answer with this status, and what to do.

        Empty where it is the user's role, or nothing of the token.
        """
        session = getattr(self._adapter, "session", None)
        token = getattr(getattr(session, "auth", None), "auth_ref", None)
        # The service itself compares them (keystonemiddleware), and calls the token not valid.
        if status == 401 and isinstance(getattr(token, _ACCESS_RULES, None), list):
            return (
                "The access rules of the application credential do not allow it: use one without "
                "access rules."
            )
        if status == 403 and getattr(token, "system_scoped", False) is True:
            return (
                "The token is for the system and not for a project, which this service may not "
                "accept: set project_name and project_domain_name in place of system_scope."
            )
        return ""

    def _request(
        self,
        method: str,
        path: str,
        microversion: str | None,
        headers: t.Mapping[str, str] | None = None,
        **kwargs: t.Any,
    ) -> Reply:
        # With the path alone, keystoneauth copies and searches the catalogue for each request.
        is_root = path == self.endpoint
        url = self._address if is_root else f"{self._address.rstrip('/')}{path}"
        with translate_sdk_errors(f"{self.name} at {self.endpoint}"):
            send = functools.partial(
                self._adapter.request,
                url,
                method,
                microversion=microversion,
                raise_exc=False,
                # A clouds.yaml can enable a cache, but a proof needs a new answer.
                skip_cache=True,
                retriable_status_codes=list(_TRANSIENT),
                # Of several requests that are refused at once, keystoneauth repeats only one.
                allow_reauth=False,
                **kwargs,
            )
            # keystoneauth adds its own headers to them.
            response = send(headers={**_HEADERS, **(headers or {})})
            # A proxy that wants a login of its own may have passed a write on before.
            asks = response.headers.get("WWW-Authenticate", "")
            if response.status_code == 401 and asks.startswith("Keystone"):
                renew_token(self._adapter.session, response.request.headers.get("X-Auth-Token"))
                response = send(headers={**_HEADERS, **(headers or {})})
        date = read_http_clock(response.headers.get("Date"))
        if date is not None:
            self.require_same_clock(date - read_monotonic_clock())
        reply = self._parse_response(method, path, response)
        if method == "GET" and reply.status in _PROOF_STATUSES:
            self._require_same_subject(reply, path, kwargs.get("params") or {})
        return reply

    def require_same_clock(self, ahead: float) -> None:
        """Raise CloudError if an answer is by another clock than the first one.

        By a clock that is days ahead, an allocation of minutes ago is old. It is unknown which of
        the clocks is right, so the request is not sent again.

        ahead: the time in the answer, less that of our clock that is never set.
        """
        if not self.needs_one_clock:
            return
        if self._ahead is None:
            self._ahead = ahead
        if abs(ahead - self._ahead) > _MAX_CLOCK_DIFFERENCE:
            raise CloudError(
                f"{self.name} at {self.endpoint} answers by clocks that are more than "
                f"{format_duration(_MAX_CLOCK_DIFFERENCE)} apart, so no age is known: set the "
                "clocks of its hosts, or remove the cache in front of it, then run again."
            )

    def _parse_response(self, method: str, path: str, response: t.Any) -> Reply:
        """Return the reply in `response`.

        Raises MalformedResponse for a success that is not JSON or has a value of a wrong type, and
        for an error that would count as proof but does not come from the service itself.
        """
        status = response.status_code
        is_proof = method == "GET" and status in _PROOF_STATUSES
        body: t.Any = {}
        try:
            if response.content:
                body = response.json()
        # An answer may be nested more deeply than Python allows.
        except (ValueError, RecursionError):
            if status < 400 or is_proof:
                raise self._reject(method, path, "something that is not JSON") from None
        wrong = None
        if status < 400 and self.name in _TYPED_SERVICES:
            wrong = find_wrong_type(body)
        if wrong is not None:
            raise self._reject(method, path, f"something unexpected as {wrong}")
        reply = Reply(status, response.headers, body, self._error_keys)
        if is_proof and not reply.is_service_error:
            raise self._reject(method, path, f"a {reply.status} that is not its own")
        return reply

    def _require_same_subject(self, reply: Reply, path: str, params: t.Mapping[str, t.Any]) -> None:
        """Raise MalformedResponse if an error that counts as proof names another UUID.

        Nova names the server that it did not find, and the marker that it does not know.
        """
        named = set(_UUID.findall(reply.detail.lower()))
        asked = set(_UUID.findall(f"{path} {params}".lower()))
        if named and asked and named.isdisjoint(asked):
            raise self._reject("GET", path, f"a {reply.status} about something else")


class ServiceClock:
    """Tells the time by Placement's own clock, read again once a minute.

    uWSGI adds no `Date` to the answers of its application, with `http` and with `http-socket`, and
    a proxy adds its own.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._ahead: float | None = None
        self._read_at: float | None = None

    def read(self) -> float | None:
        """Return the seconds since the epoch, rather too early; None if Placement tells no time.

        Raises CloudError when its servers are known to have different times.
        """
        with self._lock:
            now = read_monotonic_clock()
            if self._read_at is None or now - self._read_at > _CLOCK_LIFETIME:
                self._ahead = self._measure()
                self._read_at = now
            ahead = self._ahead
        return None if ahead is None else ahead + read_monotonic_clock()

    def _measure(self) -> float | None:
        """Return by how much the clock is ahead of ours that is never set, at the least."""
        aheads = []
        for _attempt in range(_SERVERS_ASKED):
            path = self._api.endpoint
            reply, _body = self._api.read(path, _CLOCK_MICROVERSION, lambda reply: reply.body, True)
            seconds = read_http_clock(reply.headers.get("Last-Modified"))
            if reply.status != 200 or seconds is None:
                return None
            # The time on the way back makes it earlier than it is.
            ahead = seconds - read_monotonic_clock()
            self._api.require_same_clock(ahead)
            aheads.append(ahead)
            if read_http_clock(reply.headers.get("Date")) is not None:
                break
        return min(aheads)


def find_next_marker(body: t.Any, key: str) -> str:
    """Return the marker in the link of a page to the next one; empty on the last page.

    Only the marker is taken from the link: behind a proxy, its address may lead elsewhere.
    """
    links = body.get("links") or {}
    # Neutron has a list of links for each kind of row, and Keystone one link by name.
    href = links.get("next") if isinstance(links, dict) else None
    for link in body.get(f"{key}_links") or ():
        if link["rel"] == "next":
            href = link["href"]
    if href is None:
        return ""
    return urllib.parse.parse_qs(urllib.parse.urlsplit(href).query)["marker"][0]


def parse_rows(key: str, parse: t.Callable[[t.Any], T]) -> t.Callable[[Reply], tuple[T, ...]]:
    """Return a function that parses each of the rows that a reply has under a key."""
    return lambda reply: tuple(map(parse, reply.body[key]))


def format_microversion(version: tuple[int, int]) -> str:
    """Return a microversion as the header of a request has it."""
    return f"{version[0]}.{version[1]}"
