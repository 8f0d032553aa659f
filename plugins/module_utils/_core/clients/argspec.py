# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entry point of every module that needs a cloud."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ..._common.errors import run_offline
from .login_errors import OPENSTACKSDK_IMPORT_ERROR
from .session import Session, connect

if t.TYPE_CHECKING:  # pragma: no cover
    Connect = Callable[[], Session]

# Options that are not secrets, by name, in `cloud` and `auth`.
_PUBLIC_OPTIONS = re.compile(
    r"cloud|auth_url|auth_type|username|user_id|project_(name|id)|\w*domain_(name|id)"
    r"|system_scope|region_name|interface|\w+_version"
)
_OPENSTACKSDK_URL = "https://docs.openstack.org/openstacksdk/"


def run(
    module: AnsibleModule, work: Callable[[AnsibleModule, Connect], dict[str, t.Any]]
) -> t.NoReturn:
    """Do `work` and exit with its result, as `run_offline` does.

    `work` is called with the module and a function that connects to its cloud, which `work` calls
    after it has checked all options.
    """
    module.no_log_values -= _list_public_values(module.params)
    if OPENSTACKSDK_IMPORT_ERROR is not None:
        module.fail_json(
            msg=missing_required_lib("openstacksdk", url=_OPENSTACKSDK_URL),
            exception=OPENSTACKSDK_IMPORT_ERROR,
        )
    run_offline(module, lambda module: work(module, lambda: connect(module.params)))


def _list_public_values(params: t.Mapping[str, t.Any]) -> set[str]:
    """Return the values in the connection options `cloud` and `auth` that are not secrets.

    These options are hidden in logs. Hidden in results too, a project named `ops` would spoil every
    path with `ops` in it.
    """
    public, secret = set(), set()
    for option in ("cloud", "auth"):
        for name, value in _walk_option(option, params[option]):
            if _PUBLIC_OPTIONS.fullmatch(name):
                public.add(value)
            else:
                secret.add(value)
    # A value that is also a secret stays hidden.
    return public - secret


def _walk_option(name: str, option: t.Any) -> t.Iterator[tuple[str, str]]:
    """Yield each value in a nested option with its own name."""
    if isinstance(option, dict):
        for key, value in option.items():
            yield from _walk_option(str(key), value)
    elif option is not None:
        yield name, str(option)
