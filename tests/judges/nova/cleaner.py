# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass of the collection in this process: the `work` functions of its modules, without Ansible.

All kinds that can be changed are changed. At ages 0 everything is old enough at once; at the
default ages, only what nobody has touched for an hour is.
"""

from __future__ import annotations

import copy
import json
import pathlib
import traceback
import typing as t

from ....plugins.module_utils._common.errors import PlacementToolsError
from ....plugins.module_utils._core.clients.session import Session
from ....plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from ....plugins.module_utils._core.run import signals
from ....plugins.modules import orphan_detect, orphan_plan, orphan_remediate

# Eventlet removes `select.poll`, and nobody stops a pass.
signals._is_output_closed = lambda: False

# Those that are only reported cost as many requests again, and change nothing.
_KINDS = [kind.name for kind in CHANGEABLE_KINDS]

DEFAULT_AGES: t.Mapping[str, str] = {}
NO_AGES: t.Mapping[str, str] = {
    "min_age": "0",
    "unknown_min_age": "0",
    "unconfirmed_min_age": "0",
    "stuck_min_age": "0",
    "stale_min_age": "0",
}


class FakeModule:
    """What the `work` functions need of an AnsibleModule."""

    check_mode = False
    _diff = False
    ansible_version = "0.0"

    def __init__(self, spec: t.Mapping[str, t.Mapping[str, t.Any]], **options: t.Any) -> None:
        unknown = options.keys() - spec.keys()
        if unknown:
            raise TypeError(f"no options {sorted(unknown)}")
        self.params = {name: copy.deepcopy(option.get("default")) for name, option in spec.items()}
        self.params.update(options)
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Cleaner:
    """Detects, plans and remediates. What fails is in `errors`, and what is a fault in `faults`."""

    def __init__(
        self,
        connect: t.Callable[[], Session],
        folder: pathlib.Path,
        ages: t.Mapping[str, str],
        pci_aliases: list[dict[str, str]],
    ) -> None:
        self._connect = connect
        self._folder = folder
        self._policy = {**ages, "pci_aliases": pci_aliases}
        self.errors: list[str] = []
        self.faults: list[str] = []

    def detect(self) -> dict[str, t.Any] | None:
        """Return the findings document; None after an error."""
        return self._run(self._detect)

    def remediate(self) -> list[dict[str, t.Any]]:
        """Make all changes that the findings propose, and return the outcomes."""
        return self._run(self._remediate) or []

    def _run(self, work: t.Callable[[], t.Any]) -> t.Any:
        try:
            return work()
        except PlacementToolsError as error:
            self.errors.append(f"{type(error).__name__}: {error}")
        except Exception:
            self.faults.append(traceback.format_exc(limit=-6))
        return None

    def _detect(self) -> t.Any:
        dest = self._folder / "findings.json"
        module = FakeModule(
            orphan_detect.build_argument_spec(), kinds=_KINDS, dest=str(dest), **self._policy
        )
        orphan_detect.work(module, self._connect)
        return json.loads(dest.read_bytes())

    def _remediate(self) -> list[dict[str, t.Any]]:
        plan = self._folder / "plan.json"
        module = FakeModule(
            orphan_plan.build_argument_spec(),
            findings=str(self._folder / "findings.json"),
            kinds=_KINDS,
            dest=str(plan),
        )
        planned = orphan_plan.work(module)
        if planned.get("failed"):
            self.errors.append(f"plan: {planned['msg']}")
            return []
        if not planned["changes"]:
            return []
        module = FakeModule(
            orphan_remediate.build_argument_spec(),
            plan=str(plan),
            output_dir=str(self._folder),
            **self._policy,
        )
        result = orphan_remediate.work(module, self._connect)
        return json.loads(pathlib.Path(result["remediation"]).read_bytes())["outcomes"]
