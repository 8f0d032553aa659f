"""One pass of the collection in this process: the tasks of its modules, without Ansible.

All kinds that can be changed are changed. At ages 0 everything is old enough at once; at the
default ages, only what nobody has touched for an hour is.
"""

from __future__ import annotations

import copy
import json
import pathlib
import traceback
import typing as t

from ....plugins.module_utils._common.context import Task
from ....plugins.module_utils._common.errors import PlacementToolsError
from ....plugins.module_utils._core.clients.session import CloudContext, Session
from ....plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from ....plugins.module_utils._core.run import signals
from ....plugins.module_utils._core.stages.detect import detect
from ....plugins.module_utils._core.stages.plan import make_plan
from ....plugins.module_utils._core.stages.remediate import remediate
from ....plugins.modules import orphan_detect, orphan_plan, orphan_remediate

# Eventlet removes `select.poll`, and nobody stops a pass.
signals._is_output_closed = lambda: False

# Those that are only reported cost as many requests again, and change nothing.
_KINDS = [kind.name for kind in CHANGEABLE_KINDS]

DEFAULT_AGES: t.Mapping[str, str] = {}
_AGED = ("", "unknown_", "unconfirmed_", "stuck_", "stale_")
NO_AGES: t.Mapping[str, str] = {f"{what}min_age": "0" for what in _AGED}


class OwnContext(CloudContext):
    """The context of a task whose cloud is given, with the defaults of all other options."""

    def __init__(
        self, task: Task, connect: t.Callable[[], Session] | None = None, **options: t.Any
    ) -> None:
        unknown = options.keys() - task.spec.keys()
        if unknown:
            raise TypeError(f"no options {sorted(unknown)}")
        filled = {name: copy.deepcopy(option.get("default")) for name, option in task.spec.items()}
        super().__init__({**filled, **options}, False, False, lambda _sentence: None)
        self._connect = connect

    def connect(self) -> Session:
        assert self._connect
        return self._connect()


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
        options = {"kinds": _KINDS, "dest": str(dest), **self._policy}
        detect(OwnContext(orphan_detect.TASK, self._connect, **options))
        return json.loads(dest.read_bytes())

    def _remediate(self) -> list[dict[str, t.Any]]:
        plan = self._folder / "plan.json"
        findings = str(self._folder / "findings.json")
        planned = make_plan(
            OwnContext(orphan_plan.TASK, findings=findings, kinds=_KINDS, dest=str(plan))
        )
        if planned.get("failed"):
            self.errors.append(f"plan: {planned['msg']}")
            return []
        if not planned["changes"]:
            return []
        options = {"plan": str(plan), "output_dir": str(self._folder), **self._policy}
        result = remediate(OwnContext(orphan_remediate.TASK, self._connect, **options))
        return json.loads(pathlib.Path(result["remediation"]).read_bytes())["outcomes"]
