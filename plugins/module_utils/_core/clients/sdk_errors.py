# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns what keystoneauth and openstacksdk raise into one sentence: where, what, what to do."""

from __future__ import annotations

import contextlib
import traceback
import typing as t

from ..._common.errors import CloudError, MalformedResponse
from ..._common.text import make_printable
from .connection_errors import explain_connection_error, list_causes

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
    if response is None:
        return ""
    try:
        error = response.json()["error"]
        return shorten_message(error["message"])
    except (ValueError, KeyError, TypeError):
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
