# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks the file clouds.yaml before the SDK reads it.

The SDK skips a file that it cannot read, and then misses whatever the file has, or takes a cloud of
that name from another file.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ..._common.errors import InvalidInput
from ..._common.text import suggest_names

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
