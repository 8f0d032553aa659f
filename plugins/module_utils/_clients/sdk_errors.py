# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Turns what keystoneauth and openstacksdk raise into one sentence: where, what, what to do."""

from __future__ import annotations

import contextlib
import traceback
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    CloudError,
    MalformedResponse,
)

try:
    import keystoneauth1.exceptions as ksa
    from openstack.exceptions import ConfigException, SDKException, ServiceDisabledException
except ImportError:
    OPENSTACKSDK_IMPORT_ERROR: str | None = traceback.format_exc()
else:
    OPENSTACKSDK_IMPORT_ERROR = None

CATALOG_ADVICE = "Check region_name and interface, and that the service is part of this cloud."


@contextlib.contextmanager
def translate_sdk_errors(where: str) -> t.Iterator[None]:
    """Turn exceptions of keystoneauth and the SDK into CloudError: where, what, and what to do.

    where: the service and its endpoint, as the subject of the sentence.
    Raises MalformedResponse for an answer that broke off.
    """
    try:
        yield
    except (ksa.ClientException, SDKException, OSError) as error:
        # After the name of its pool, urllib3 repeats the message.
        message = collapse_spaces(error).partition(": HTTPConnectionPool")[0].rstrip(".")
        if isinstance(error, ksa.UnknownConnectionError):
            raise MalformedResponse(
                f"{where} sent an incomplete answer: {message}. Is a proxy in the way?"
            ) from error
        for kinds, what, advice in _list_error_meanings():
            if isinstance(error, kinds):
                raise CloudError(f"{where} {what}: {message}. {advice}") from error
        raise CloudError(f"{where} cannot be used: {message}.") from error


def _list_error_meanings() -> tuple[tuple[tuple[type[Exception], ...], str, str], ...]:
    """Return the exceptions with their meaning and advice; subclasses come before their bases."""
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
            "Check that the service runs, or increase api_timeout.",
        ),
        (
            unreachable,
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
