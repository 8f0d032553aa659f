# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The login: clouds.yaml, a token, a new one in place of a revoked one, and the catalogue.

Everything that can fail there becomes a sentence about what the user has written: auth_url, the
credentials, the scope.

The SDK skips a file that it cannot read, and then misses whatever the file has, or takes a cloud of
that name from another file.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import typing as t
import urllib.parse

from ..._common.errors import CloudError, InvalidInput, hide_credentials
from ..._common.text import suggest_names
from .login_errors import (
    NOT_THE_API,
    STATUS_ADVICE,
    is_page,
    list_causes,
    read_error_message,
    shorten_message,
    translate_sdk_errors,
)

# `clients.session` checks whether it is there; without it nothing here is called.
with contextlib.suppress(ImportError):
    import keystoneauth1.exceptions as ksa
    from keystoneauth1.identity.generic import BaseGenericPlugin
    from keystoneauth1.loading import get_available_plugin_names
    from openstack.exceptions import ConfigException
Catalog = list[dict[str, t.Any]]
# What the SDK raises for an answer that has another structure than Keystone's.
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
# Several requests can be refused at once, and only the first of them logs in again.
_RENEWAL = threading.Lock()
_WRONG_PATH = "Set auth_url to the address of Keystone, which usually ends with /v3."


class Login:
    """One login to Keystone: the token, what it is for, and the services that it lists."""

    def __init__(self, connection: t.Any) -> None:
        """Log in. Raises CloudError, and InvalidInput for options that cannot work."""
        config = connection.config.config
        self._auth = config.get("auth") or {}
        self._auth_url = _check_auth_url(self._auth.get("auth_url"))
        self.where = "Keystone"
        if self._auth_url:
            self.where = f"Keystone at {hide_credentials(self._auth_url)}"
        _check_endpoint_overrides(config)
        _check_password(self._auth, config.get("auth_type"))
        session = connection.session
        self._probe = self._send_probe(session)
        self.project = self._log_in(session)
        self._is_scoped = False
        self.catalog = self._read_catalog(session, config["auth_type"])

    def _send_probe(self, session: t.Any) -> t.Any:
        """Return Keystone's answer to a request that needs no credentials; None without auth_url.

        A generic plugin of keystoneauth asks for the versions too, but where it finds none it
        guesses, and says so. If the answer is 401 it even waits for itself, and never ends. A
        plugin for one version does not ask, so there a web server may want a ticket of Kerberos.
        """
        if not self._auth_url:
            return None
        with translate_sdk_errors(self.where):
            response = session.get(
                self._auth_url,
                authenticated=False,
                raise_exc=False,
                headers={"Accept": "application/json"},
            )
        if response.status_code == 401 and isinstance(session.auth, BaseGenericPlugin):
            raise CloudError(
                f"{self.where} answered 401 to a request that needs no credentials. {NOT_THE_API}"
            )
        return response

    def _log_in(self, session: t.Any) -> str | None:
        """Return the project of the token; None if it is for the system."""
        try:
            with self._translate_errors():
                return t.cast("str | None", session.get_project_id())
        except CloudError as error:
            party = self._name_party(session.auth, error)
            sentence = self._explain_refusal(error.__cause__)
            if not sentence:
                raise CloudError(str(error).replace(self.where, party, 1)) from error
            raise CloudError(f"{party} {sentence}") from error

    def _name_party(self, plugin: t.Any, error: CloudError) -> str:
        """Return which service an error is about: of a federation, the identity provider too."""
        for cause in list_causes(error) if hasattr(plugin, "identity_provider") else ():
            answer = getattr(cause, "response", None)
            request = getattr(cause, "request", None) or getattr(answer, "request", None)
            parts = urllib.parse.urlsplit(getattr(request, "url", None) or "")
            if parts.netloc and parts.netloc != urllib.parse.urlsplit(self._auth_url).netloc:
                address = hide_credentials(f"{parts.scheme}://{parts.netloc}")
                return f"The identity provider at {address}"
        return self.where

    @contextlib.contextmanager
    def _translate_errors(self) -> t.Iterator[None]:
        """Turn what Keystone and its token raise into CloudError."""
        try:
            with translate_sdk_errors(self.where):
                yield
        except _MALFORMED as error:
            raise CloudError(
                f"{self.where} gave a token that cannot be read. {NOT_THE_API}"
            ) from error

    def _explain_refusal(self, cause: BaseException | None) -> str:
        """Return why there is no token, after the name of Keystone; empty if that is said well."""
        if isinstance(cause, ksa.HttpError):
            return self._explain_status(cause)
        if isinstance(cause, ksa.InvalidResponse | ksa.DiscoveryFailure | ksa.CatalogException):
            return self._explain_wrong_service(cause)
        return ""

    def _explain_status(self, error: t.Any) -> str:
        status, message = error.http_status, read_error_message(error.response)
        if status == 401:
            return f"refused the credentials{self._name_user()}. {self._advise_credentials()}"
        # A page in place of a message is not Keystone's.
        if error.response is None or not message:
            advice = STATUS_ADVICE.get(status, NOT_THE_API)
            if status in (403, 404):
                advice = f"{NOT_THE_API} {_WRONG_PATH}"
            return f"answered {status} when asked for a token. {advice}"
        if status == 403:
            return (
                f"refuses a token{self._name_user()}: {message}. "
                "Check the project and the user's roles in it."
            )
        if status == 404:
            return f"has nothing at this address. {_WRONG_PATH}"
        advice = STATUS_ADVICE.get(status, "Check the values in auth.")
        return f"answered {status} when asked for a token: {message}. {advice}"

    def _explain_wrong_service(self, cause: BaseException) -> str:
        if "v2 authentication" in str(cause):
            return f"is asked for version 2, which no longer exists. {_WRONG_PATH}"
        probe = self._probe
        if probe is not None and is_page(probe):
            return (
                f"answers {probe.status_code} with a web page instead of its versions. "
                f"{NOT_THE_API} {_WRONG_PATH}"
            )
        if probe is not None and probe.status_code >= 400:
            advice = STATUS_ADVICE.get(probe.status_code, "")
            if probe.status_code in (403, 404):
                advice = _WRONG_PATH
            return f"answered {probe.status_code} when asked for its versions. {advice}".rstrip()
        return f"answered something that is not Keystone's. {NOT_THE_API} {_WRONG_PATH}"

    def _name_user(self) -> str:
        """Return the names in the credentials, which are no secrets."""
        user = self._auth.get("username") or self._auth.get("user_id")
        project = self._auth.get("project_name") or self._auth.get("project_id")
        of_user = f" of user {user}" if user else ""
        return f"{of_user} for project {project}" if project else of_user

    def _advise_credentials(self) -> str:
        if self._auth.get("application_credential_id") or self._auth.get("token"):
            return "Check that they have not expired and are complete."
        return "Check user, password and project, and their domains."

    def _read_catalog(self, session: t.Any, auth_type: str) -> Catalog:
        plugin = session.auth
        if not hasattr(plugin, "get_access"):
            raise InvalidInput(
                f"auth_type {auth_type} does not ask Keystone, whose service catalogue says where "
                "Nova and Placement are: use one that does, such as password or "
                "v3applicationcredential."
            )
        with self._translate_errors():
            access = plugin.get_access(session)
            catalog = t.cast("Catalog", access.service_catalog.catalog)
            self._is_scoped = bool(access.scoped or access.system_scoped)
            _check_catalog(catalog)
        return catalog

    def explain_missing_endpoint(
        self, name: str, service: str, region: str | None, interface: str
    ) -> str:
        """Return a sentence that says why the catalogue has no endpoint of a service.

        name, service: the service in a sentence, and its type in the catalogue.
        """
        if not self._is_scoped:
            return (
                f"{self.where} gave a token without a project, which has no service catalogue. "
                "Set project_name and project_domain_name in auth."
            )
        endpoints = [
            endpoint
            for entry in self.catalog
            if entry["type"] == service
            for endpoint in entry["endpoints"]
        ]
        if not endpoints:
            types = ", ".join(sorted({str(entry["type"]) for entry in self.catalog})[:6])
            return (
                f"{name} is not in the service catalogue of {self.where}. Check that this cloud "
                f"has it, and use the right cloud. It lists {types or 'no service at all'}."
            )
        regions = {str(endpoint.get("region")) for endpoint in endpoints}
        if region and region not in regions:
            return (
                f"{name} is not in region {region} by the service catalogue of {self.where}. "
                f"Set region_name to a region of {name}. {suggest_names(region, regions)}"
            )
        interfaces = {
            str(endpoint.get("interface"))
            for endpoint in endpoints
            if not region or endpoint["region"] == region
        }
        if interface in interfaces:
            return (
                f"{name} has an address that is not valid in the service catalogue of "
                f"{self.where}, or in {service}_endpoint_override: it must begin with http:// or https://."
            )
        return (
            f"{name} has no {interface} endpoint in the service catalogue of {self.where}. "
            f"Set interface to one of those it has: {', '.join(sorted(interfaces))}."
        )


def renew_token(session: t.Any, refused: str | None) -> None:
    """Log in again, unless the token that a service `refused` has been replaced already.

    Raises CloudError if Keystone gives no other token.
    """
    plugin = session.auth
    with _RENEWAL, translate_sdk_errors("Keystone"):
        if plugin.get_access(session).auth_token != refused:
            return
        try:
            # In one step: another thread must not find the plugin without a token.
            plugin.auth_ref = plugin.get_auth_ref(session)
        # Keystone does not find a token that was to be exchanged for another one.
        except (ksa.Unauthorized, ksa.NotFound) as error:
            raise CloudError(
                "The token was revoked or has expired, and Keystone refuses these credentials "
                "a new one. Check that the user is enabled and the credentials are still valid, "
                "then run again."
            ) from error


@contextlib.contextmanager
def translate_option_errors() -> t.Iterator[None]:
    """Turn what the SDK raises for options that are missing or not known into InvalidInput."""
    try:
        yield
    except ksa.MissingRequiredOptions as error:
        names = ", ".join(option.dest for option in error.options)
        raise InvalidInput(
            f"The credentials lack {names}: set it in auth, in clouds.yaml, or as an OS_* variable."
        ) from error
    except ksa.NoMatchingPlugin as error:
        advice = suggest_names(error.name, get_available_plugin_names())
        raise InvalidInput(f"auth_type {error.name} is not known. {advice}") from error
    except ConfigException as error:
        message = shorten_message(error)
        raise InvalidInput(
            f"The configuration of the cloud is not valid: {message}. Check clouds.yaml and the "
            "OS_* variables."
        ) from error
    except TypeError as error:
        # The name of a key is not a secret, but a value may be.
        key = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if key is None:
            raise
        advice = "correct or remove it"
        if key[1].startswith("application_credential_"):
            advice = "set auth_type (or OS_AUTH_TYPE) to v3applicationcredential"
        raise InvalidInput(
            f"auth has the key {key[1]}, which its auth_type does not know: {advice}."
        ) from error


def _check_password(auth: t.Mapping[str, t.Any], auth_type: str | None) -> None:
    """Raise InvalidInput for a login with a password that lacks it, or its user."""
    if auth_type not in (None, "password", "v3password"):
        return
    if not auth.get("password"):
        raise InvalidInput(
            "The credentials have no password: set it in auth, in clouds.yaml or secure.yaml, or "
            "as OS_PASSWORD."
        )
    if not auth.get("username") and not auth.get("user_id"):
        raise InvalidInput(
            "The credentials have no username: set it in auth, in clouds.yaml, or as OS_USERNAME."
        )


def _check_catalog(catalog: Catalog) -> None:
    """Raise one of _MALFORMED unless the catalogue has the structure of Keystone's."""
    for service in catalog:
        _require_texts(service, "type")
        for endpoint in service["endpoints"]:
            _require_texts(endpoint, "url", "region")


def _require_texts(part: t.Mapping[str, t.Any], *keys: str) -> None:
    for key in keys:
        # An endpoint without a region has null there.
        if not isinstance(part[key], str | None):
            raise TypeError(key)


def _check_auth_url(url: t.Any) -> str:
    """Return the address of Keystone; empty for a plugin that has none of its own."""
    text = str(url or "").strip()
    if url:
        _check_address("auth_url", text, "https://HOST:5000/v3")
    return text


def _check_address(option: str, address: str, example: str) -> None:
    """Raise InvalidInput for an address that cannot be one, without showing it.

    Where a slash or a space in a password ends the host, any part can be of the password.
    """
    try:
        parts = urllib.parse.urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        # The port is read when it is asked for.
        is_valid = is_valid and (parts.port is None or parts.port > 0)
        rest = address.partition("://")[2].removeprefix(parts.netloc)
        is_valid = is_valid and "@" not in rest and not re.search(r"\s", address)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidInput(
            f"{option} is not a valid address: write it as {example}. It is not shown, because it "
            "may have a password in it."
        )


def _check_endpoint_overrides(config: t.Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for an address of a service in the configuration that cannot be one."""
    for option, value in config.items():
        if option.endswith("_endpoint_override") and value:
            _check_address(option, str(value), "https://HOST:PORT/PATH")


# Without openstacksdk, which brings yaml, nothing here is called.
with contextlib.suppress(ImportError):
    import yaml
    from openstack.config import loader
_VARIABLE = "OS_CLIENT_CONFIG_FILE"
_ADVICE = (
    "set cloud (or OS_CLOUD) to a cloud in clouds.yaml, or set auth (or OS_AUTH_URL and the other "
    "OS_* variables)"
)


def check_cloud_files(options: t.Mapping[str, t.Any]) -> None:
    """Raise InvalidInput where clouds.yaml cannot give the cloud that the options name."""
    if isinstance(options["cloud"], dict):
        return
    name = options["cloud"] or os.environ.get("OS_CLOUD")
    # Options and variables that name no cloud need no file.
    if not name and (options["auth"] or os.environ.get("OS_AUTH_URL")):
        return
    path = _find_file()
    if path is None:
        _check_nothing_needed(name)
        return
    clouds = _read_clouds(path)
    # Without a name, the SDK takes the only cloud there is.
    if not name and len(clouds) == 1:
        name = next(iter(clouds))
    if not name:
        shown = suggest_names("", map(str, clouds))
        raise InvalidInput(f"No cloud is named, and {path} has several: {_ADVICE}. {shown}")
    if name not in clouds and not _is_elsewhere(name):
        raise InvalidInput(
            f"There is no cloud {name} in {path}. {suggest_names(name, map(str, clouds))}".rstrip()
        )
    if name in clouds:
        _check_cloud(path, name, clouds[name])


def _find_file() -> str | None:
    """Return the path of the file that the SDK reads; None without one."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        if not os.path.exists(chosen):
            raise InvalidInput(
                f"There is no file {chosen}, which {_VARIABLE} names: correct the path."
            )
        return chosen
    for path in loader.CONFIG_FILES:
        # The SDK goes on to the next where it has no permission.
        if os.path.exists(path) and os.access(path, os.R_OK):
            return str(path)
    return None


def _check_nothing_needed(name: str | None) -> None:
    if name is None:
        raise InvalidInput(f"No cloud is named, and there is no clouds.yaml: {_ADVICE}.")
    if not _is_elsewhere(name):
        folders = ", ".join(dict.fromkeys(map(os.path.dirname, loader.CONFIG_FILES)))
        raise InvalidInput(
            f"There is no cloud {name}, because there is no clouds.yaml in {folders}: write one "
            f"there, or set {_VARIABLE} to its path."
        )


def _is_elsewhere(name: str) -> bool:
    """Return whether the SDK may know a cloud from somewhere else.

    The OS_* variables are a cloud of their own, and passwords may have a file of their own.
    """
    if name == os.environ.get("OS_CLOUD_NAME", "envvars"):
        return True
    files = [os.environ.get("OS_CLIENT_SECURE_FILE", ""), *loader.SECURE_FILES]
    return any(path and os.path.exists(path) for path in files)


def _read_clouds(path: str) -> dict[str, t.Any]:
    """Return the clouds in a file, by name. No error shows its text, which has passwords."""
    contents = _parse_file(path)
    if not isinstance(contents, dict):
        raise InvalidInput(
            f"{path} is not a clouds.yaml: it must be a mapping with the key clouds, and a cloud "
            "for each key below it."
        )
    clouds = contents.get("clouds")
    if not isinstance(clouds, dict) or not clouds:
        raise InvalidInput(
            f"{path} has no clouds: it must have the key clouds, and a cloud for each key below it."
        )
    return clouds


def _parse_file(path: str) -> t.Any:
    try:
        with open(path, encoding="utf-8") as stream:
            # JSON is YAML too.
            return yaml.safe_load(stream)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8: save it as UTF-8.") from error
    except yaml.MarkedYAMLError as error:
        raise InvalidInput(f"{path} is not valid YAML{_name_place(error)}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is not valid YAML: it contains characters that YAML does not allow."
        ) from error


def _name_place(error: t.Any) -> str:
    """Return where the error is, and what to check there, but nothing that is written there."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ""
    place = f" (line {mark.line + 1}, column {mark.column + 1})"
    if "'\\t'" in str(error.problem):
        return f"{place}: replace the tabs with spaces"
    return f"{place}: check the indentation, and put values with special characters in quotes"


def _check_cloud(path: str, name: str, cloud: t.Any) -> None:
    if not isinstance(cloud, dict):
        raise InvalidInput(
            f"Cloud {name} in {path} is not a mapping: it needs keys such as auth and region_name."
        )
    auth = cloud.get("auth", {})
    if not isinstance(auth, dict):
        raise InvalidInput(
            f"auth of cloud {name} in {path} is not a mapping: it needs keys such as auth_url, "
            "username and password."
        )
