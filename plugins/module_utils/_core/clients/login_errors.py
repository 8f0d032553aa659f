# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no connection: the errors of the SDK, names, ports, proxies, TLS, the time.

keystoneauth, requests and urllib3 each wrap the error of the one below, and repeat its text. The
cause itself says what an operator has to change.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
import ssl
import traceback
import typing as t

from ..._common.errors import CloudError, MalformedResponse
from ..._common.text import make_printable

# Without openstacksdk nothing here is called.
with contextlib.suppress(ImportError):
    import requests.exceptions as rex
    import urllib3.exceptions as u3
_UNREACHABLE = "cannot be reached"
_CHECK_CA = "Set ca_cert to a file with the CA that signed it."
_NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)
# The codes of OpenSSL for a certificate that is not valid at this time, or not for this host.
_CERTIFICATE_PROBLEMS = {
    9: ("is not valid yet", "Check the clock of this machine, or have it renewed."),
    10: ("has expired", "Have it renewed, or check the clock of this machine."),
    62: ("is for another host name", "Use the name in the certificate as the address."),
    64: ("is for another address", "Use the name in the certificate as the address."),
}
# How OpenSSL says that the other side does not use TLS.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
# How it says that a file of certificates has none.
_NO_CERTIFICATES = ("NO_CERTIFICATE_OR_CRL_FOUND", "NO_START_LINE")


def list_causes(error: BaseException) -> list[BaseException]:
    """Return an error and all that it follows from, the first cause last."""
    causes: list[BaseException] = []
    waiting: list[t.Any] = [error]
    while waiting:
        cause = waiting.pop(0)
        if not isinstance(cause, BaseException) or cause in causes:
            continue
        causes.append(cause)
        # urllib3 keeps the cause in an attribute, requests in its arguments.
        waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]
    return causes


def explain_connection_error(error: BaseException) -> str:
    """Return what follows the name of a service in a sentence: what failed, and what to do.

    Empty for an error that is not about the connection.
    """
    causes = list_causes(error)
    for kinds, explain in _list_explanations():
        cause = next((cause for cause in causes if isinstance(cause, kinds)), None)
        if cause is None:
            continue
        if isinstance(explain, str):
            return explain
        if sentence := explain(cause, causes):
            return sentence
    return ""


_Explain = t.Callable[[t.Any, t.Sequence[BaseException]], str]


def _list_explanations() -> tuple[tuple[tuple[type[BaseException], ...], str | _Explain], ...]:
    """Return what each cause means, or what finds that out; the first with a meaning counts."""
    return (
        (
            (rex.InvalidURL, rex.InvalidSchema, rex.MissingSchema, u3.LocationParseError),
            "has an address that is not valid, or redirects to one. "
            "Write it as http://HOST:PORT/PATH or https://HOST:PORT/PATH.",
        ),
        ((rex.ProxyError, u3.ProxyError), _explain_proxy),
        ((ssl.SSLCertVerificationError,), _explain_certificate),
        ((ssl.SSLError,), _explain_tls),
        ((OSError,), _explain_files),
        (
            (socket.gaierror,),
            f"{_UNREACHABLE}: its host name does not resolve. "
            "Check the name, and the DNS of this machine.",
        ),
        (
            (ConnectionRefusedError,),
            f"{_UNREACHABLE}: nothing listens on that port. "
            "Check the address and its port, and that the service runs.",
        ),
        ((OSError,), _explain_route),
        (
            (rex.ConnectTimeout, u3.ConnectTimeoutError),
            f"{_UNREACHABLE}: the connection was not made in time. "
            "Check the address, its port, whether it uses TLS, and firewalls.",
        ),
        ((BaseException,), _explain_handshake),
        (
            (rex.ReadTimeout, u3.ReadTimeoutError, TimeoutError),
            "does not answer in time. Check that the service runs, or increase api_timeout.",
        ),
        # A broken answer is repeated, so it is not a matter of the connection.
        ((rex.ChunkedEncodingError, u3.IncompleteRead, http.client.IncompleteRead), ""),
        (
            (http.client.RemoteDisconnected, http.client.BadStatusLine, ConnectionError),
            f"{_UNREACHABLE}: the connection was closed without an answer. "
            "Check that the service runs, and whether its port needs https:// instead of http://.",
        ),
    )


def _explain_proxy(_cause: t.Any, causes: t.Sequence[BaseException]) -> str:
    # To which host the connection was, without the credentials in the proxy's address.
    pools = (getattr(getattr(cause, "pool", None), "proxy", None) for cause in causes)
    name = next((f" {proxy.host}:{proxy.port}" for proxy in pools if proxy is not None), "")
    return (
        f"{_UNREACHABLE}: the proxy{name} does not answer, or refuses to connect. "
        "Check HTTPS_PROXY and HTTP_PROXY in the environment, or add the host to NO_PROXY."
    )


def _explain_certificate(cause: t.Any, _causes: t.Sequence[BaseException]) -> str:
    if known := _CERTIFICATE_PROBLEMS.get(getattr(cause, "verify_code", 0)):
        return "has a certificate that {}. {}".format(*known)
    reason = getattr(cause, "verify_message", "") or "no trusted CA signed it"
    return f"has a certificate that cannot be verified ({reason}). {_CHECK_CA}"


def _explain_tls(cause: t.Any, _causes: t.Sequence[BaseException]) -> str:
    # A handshake that takes too long is one of these too.
    if isinstance(cause, TimeoutError) or "timed out" in str(cause):
        return ""
    reason = getattr(cause, "reason", None) or ""
    if any(name in reason for name in _NOT_TLS):
        return f"{_UNREACHABLE}: it does not use TLS. Write http:// instead of https://."
    if any(name in reason for name in _NO_CERTIFICATES):
        return f"{_UNREACHABLE}: a file of certificates has none. Check ca_cert and client_cert."
    if isinstance(cause, ssl.SSLEOFError):
        return (
            f"{_UNREACHABLE}: it ended the TLS handshake. "
            "Check whether it uses TLS at all, and whether it wants a client certificate."
        )
    shown = reason.replace("_", " ").lower() or "unknown reason"
    return (
        f"{_UNREACHABLE}: the TLS handshake failed ({shown}). "
        "Check the versions of TLS, and client_cert and client_key."
    )


def _explain_files(_cause: t.Any, causes: t.Sequence[BaseException]) -> str:
    """Return what is wrong with a file of certificates: requests raises a plain OSError then."""
    # Nearly every error of requests is an OSError too.
    for cause in (str(cause) for cause in causes if cause.__class__ is OSError):
        missing = f"{_UNREACHABLE}: there is no file {cause.rpartition(': ')[2]}"
        if "CA certificate bundle" in cause:
            return f"{missing} of a CA. Correct ca_cert."
        if "TLS" in cause and "invalid path" in cause:
            return f"{missing}. Correct client_cert and client_key."
    return ""


def _explain_route(_cause: t.Any, causes: t.Sequence[BaseException]) -> str:
    if not any(isinstance(cause, OSError) and cause.errno in _NO_ROUTE for cause in causes):
        return ""
    return (
        f"{_UNREACHABLE}: there is no route to its network. "
        "Check the network of this machine, and a VPN if one is needed."
    )


def _explain_handshake(_cause: t.Any, causes: t.Sequence[BaseException]) -> str:
    if not any("handshake operation timed out" in str(cause) for cause in causes):
        return ""
    return (
        f"{_UNREACHABLE}: the TLS handshake was not finished in time. "
        "Check whether its port uses TLS, or write http:// instead of https://."
    )


try:
    import keystoneauth1.exceptions as ksa
    from openstack.exceptions import ConfigException, SDKException, ServiceDisabledException
except ImportError:
    OPENSTACKSDK_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    OPENSTACKSDK_IMPORT_ERROR = None
CATALOG_ADVICE = "Check region_name and interface, and that the service is part of this cloud."
# What an operator can do about an answer with this status.
STATUS_ADVICE = {
    401: "It does not accept the token: check that it uses this Keystone, and look into its log.",
    403: "Use credentials with a role that may do this (admin by default).",
    404: "Check the address, and whether a proxy is in the way.",
    429: "The service limits the rate of requests: try again later.",
    500: "Look for the cause in the log of that service.",
    502: "The service behind the proxy does not answer: try again later.",
    503: "The service is not available: try again later.",
    504: "The service behind the proxy does not answer in time: try again later.",
}
NOT_THE_API = "Is a proxy or a login page in the way?"
# A message of a service or of a library is shown up to this length.
_MAX_MESSAGE = 300


@contextlib.contextmanager
def translate_sdk_errors(where: str) -> t.Iterator[None]:
    """Turn exceptions of keystoneauth and the SDK into CloudError: where, what, and what to do.

    where: the service and its endpoint, as the subject of the sentence.
    Raises MalformedResponse for an answer that broke off.
    """
    try:
        yield
    except (ksa.ClientException, SDKException, OSError) as error:
        problem = explain_connection_error(error)
        if problem:
            raise CloudError(f"{where} {problem}") from error
        message = shorten_message(error)
        if isinstance(error, ksa.UnknownConnectionError):
            # After the address, keystoneauth repeats the error of urllib3 as Python shows it.
            address = message.partition(": ")[0].removeprefix("Unexpected exception for ")
            raise MalformedResponse(
                f"{where} sent an incomplete answer to {address}. Is a proxy in the way?"
            ) from error
        if isinstance(error, ksa.HttpError):
            raise CloudError(f"{where} {_describe_status(error)}") from error
        for kinds, what, advice in _list_error_meanings():
            if isinstance(error, kinds):
                raise CloudError(f"{where} {what}: {message}. {advice}") from error
        raise CloudError(f"{where} cannot be used: {message}.") from error


def _describe_status(error: t.Any) -> str:
    """Return what an answer with an error says, after the name of the service."""
    status = error.http_status
    sentence = f"answered {status}"
    message = read_error_message(error.response)
    if message:
        sentence += f": {message}"
    elif error.response is not None and is_page(error.response):
        sentence += " with a web page"
    advice = STATUS_ADVICE.get(status, "")
    return f"{sentence.rstrip('.')}. {advice}".rstrip()


def read_error_message(response: t.Any) -> str:
    """Return the message in an error of Keystone; empty for any other answer."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        if response is not None:
            return shorten_message(response.json()["error"]["message"])
    return ""


def is_page(response: t.Any) -> bool:
    """Return whether an answer is a web page, such as that of a proxy."""
    return "html" in response.headers.get("Content-Type", "").lower()


def shorten_message(error: object) -> str:
    """Return the message of a service or a library in one line, without its last full stop."""
    # After the name of its pool, urllib3 repeats the message.
    message = collapse_spaces(error).partition(": HTTPConnectionPool")[0]
    message = message.partition(": HTTPSConnectionPool")[0]
    return make_printable(message.rstrip(".:"), _MAX_MESSAGE)


def has_cause(error: BaseException, *kinds: type[BaseException]) -> bool:
    """Return whether an error, or one that it follows from, is of one of these kinds."""
    return any(isinstance(cause, kinds) for cause in list_causes(error))


def _list_error_meanings() -> tuple[tuple[tuple[type[Exception], ...], str, str], ...]:
    """Return the exceptions with their meaning and advice; subclasses come before their bases."""
    not_in_catalog = (ksa.CatalogException, ServiceDisabledException)
    bad_options = (ksa.MissingRequiredOptions, ksa.NoMatchingPlugin, ConfigException)
    return (
        (
            (ksa.ConnectTimeout,),
            "does not answer in time",
            "Check that the service runs, or increase api_timeout.",
        ),
        (
            (ksa.ConnectFailure, ksa.DiscoveryFailure),
            "cannot be reached",
            "Check that the service runs and that this machine can reach it.",
        ),
        (not_in_catalog, "has no endpoint in the service catalogue", CATALOG_ADVICE),
        (
            bad_options,
            "cannot be found with the connection options",
            "Set cloud (or OS_CLOUD) to a cloud in clouds.yaml, or set auth (or OS_AUTH_URL and "
            "the other OS_* variables).",
        ),
    )


def collapse_spaces(value: object) -> str:
    return " ".join(str(value).split())
