# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tasks that need a cloud."""

from __future__ import annotations

import re
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ..._common.context import Context, Task
from ..._common.options import Spec
from ..._common.progress import PROGRESS
from ..options.connection import ConnectionOptions
from .login_errors import OPENSTACKSDK_IMPORT_ERROR
from .session import Session, connect

# Options that are not secrets, by name, in `cloud` and `auth`.
_PUBLIC_OPTIONS = re.compile(
    r"cloud|auth_url|auth_type|username|user_id|project_(name|id)|\w*domain_(name|id)"
    r"|system_scope|region_name|interface|\w+_version"
)
_OPENSTACKSDK_URL = "https://docs.openstack.org/openstacksdk/"


class CloudContext(Context):
    """The context of a task that needs a cloud."""

    def connect(self) -> Session:
        """Connect to the cloud of the options. To be called after all options were checked."""
        return connect(self.options)


class CloudTask(Task):
    """A task that needs a cloud: it also has the options of the connection."""

    context = CloudContext

    def __init__(
        self, work: t.Callable[[CloudContext], dict[str, t.Any]], spec: Spec, **rules: t.Any
    ) -> None:
        super().__init__(work, {**ConnectionOptions.build_spec(), **spec}, **rules)

    def run(self, context: Context) -> dict[str, t.Any]:
        PROGRESS.keep_in(context.options.get("progress_path"))
        return super().run(context)

    def prepare(self, module: AnsibleModule) -> None:
        module.no_log_values -= _list_public_values(module.params)
        if OPENSTACKSDK_IMPORT_ERROR is not None:
            module.fail_json(
                msg=missing_required_lib("openstacksdk", url=_OPENSTACKSDK_URL),
                exception=OPENSTACKSDK_IMPORT_ERROR,
            )


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
