"""Runs the pattern's `apply.yml` against the stand-in for AWX."""

import dataclasses as d
import json
import re
import typing as t

from ..automation import NEWEST, PATTERN, ROOT, find_ansible_playbook
from ..support import Ansible
from .api import TOKEN, Awx

PLAYBOOKS = {
    str(path.relative_to(ROOT))
    for path in (PATTERN / "playbooks").glob("*.yml")
    if not path.name.endswith(".meta.yml")
}
ADMINISTRATOR = "the token of an organization administrator"
FIND = "Placement: find orphans"
PLAN = "Placement: plan the cleanup"
APPLY = "Placement: apply what was approved"
EXPLAIN = "Placement: explain the outcome"
DRAIN = "Placement: drain a host"
DECOMMISSION = "Placement: decommission a host"
RESTORE = "Placement: restore allocations"
WORKFLOW = "Placement: clean up after approval"
RETIRE = "Placement: retire a host"
NIGHTLY = "Placement: find orphans every night"


@d.dataclass(frozen=True)
class Applied:
    """A finished run of `apply.yml`, and the requests that it made other than GET."""

    status: int
    output: str
    written: list[str]

    @property
    def said(self) -> str:
        """The output in one line, without the line breaks of wrapping."""
        return " ".join(self.output.split())

    @property
    def changes(self) -> list[str]:
        """What the run says that it changed, or would change."""
        return re.findall(r'"msg": "((?:Would )?(?:POST|PATCH|DELETE) [^"]*)"', self.output)


class Setup:
    """Sets up one stand-in with one ansible-core, and with variables that each run can change."""

    def __init__(
        self, ansible: Ansible, awx: Awx, *, core: str = NEWEST, **variables: t.Any
    ) -> None:
        self._ansible, self.awx, self._core = ansible, awx, core
        self.variables = {"awx_url": awx.url, "awx_delay": 0, **variables}

    def apply(self, *arguments: str, token: str = TOKEN, **variables: t.Any) -> Applied:
        done_before = len(self.awx.written)
        done = self._ansible.command(
            find_ansible_playbook(self._ansible, self._core),
            str(PATTERN / "apply.yml"),
            "-e",
            json.dumps({**self.variables, **variables}),
            *arguments,
            AWX_TOKEN=token,
        )
        return Applied(done.status, done.output, self.awx.written[done_before:])
