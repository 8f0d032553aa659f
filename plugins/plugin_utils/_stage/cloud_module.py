# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module that reads a cloud in the process of its task.

The module itself would be built, transferred and started with another Python, which takes longer
than to read a small cloud.
"""

from __future__ import annotations

import logging
import sys
import typing as t
import warnings
from collections.abc import Mapping

from .controller import has_same_python, is_on_controller, run_module_function

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.plugins.action import ActionBase

# The options with secrets, by all their names. The cloud can be a dictionary with a password.
_SECRETS = frozenset({"auth", "client_key", "key"})

# What these libraries write to the standard error is not shown when a module runs.
_LIBRARIES = ("keystoneauth", "openstack", "urllib3")
_SILENT = logging.NullHandler()


def can_run_in_process(action: ActionBase, task_vars: dict[str, t.Any] | None) -> bool:
    """Return whether this process can do what the module would do, and in the same way."""
    return (
        is_on_controller(action)
        and has_same_python(action, task_vars)
        # Only a module hides the secrets in its options wherever its result has them.
        and not _has_secrets(action._task.args)
        # A process that was forked without exec cannot look for proxies there.
        and sys.platform != "darwin"
        # Without openstacksdk the module says what to install.
        and _has_openstacksdk()
    )


def _has_secrets(args: Mapping[str, t.Any]) -> bool:
    return not _SECRETS.isdisjoint(args) or not isinstance(args.get("cloud", ""), str)


# The following imports take half a second, so the main process, which reads every action plugin,
# is to do without them.


def _has_openstacksdk() -> bool:
    from ...module_utils._core.clients.login_errors import OPENSTACKSDK_IMPORT_ERROR

    return OPENSTACKSDK_IMPORT_ERROR is None


def run_in_process(action: t.Any, module: t.Any) -> dict[str, t.Any]:
    """Return the result of a module's function `work`.

    module: the Python module with the code of the Ansible module.
    """
    from ...module_utils._core.clients.session import connect

    _result, options = action.validate_argument_spec(argument_spec=module.build_argument_spec())
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.propagate = False
        # Without any handler, Python writes warnings to the standard error after all.
        logger.addHandler(_SILENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_module_function(
            action, options, lambda local: module.work(local, lambda: connect(options))
        )
