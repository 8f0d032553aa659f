# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcome for a server that Nova was asked to heal.

nova-manage only says how it ended: the allocations that the server has afterwards decide.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Mapping

from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.models.outcomes import FAILED, SKIPPED

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.findings.entries import Entry


# What a task returned, as Ansible registers it. One that failed or was not reached may have only
# `msg`, and one that was skipped has `skipped`.
TaskResult = t.Mapping[str, t.Any]

HEALED, WOULD_BE_HEALED = "healed", "would be healed"

NOTHING_WRITTEN, PORTS_CHANGED = 4, 7

# What it means that `nova-manage placement heal_allocations --instance` ended with a code, and what
# to do then. The codes up to 8 are those of `heal_allocations` in nova/cmd/manage.py, and 255 that
# of an exception there. 125 to 127 are those of the container runtime and of env, and 127 is both.
EXIT_CODES: Mapping[int, str] = {
    0: "Nova wrote the allocation.",
    1: (
        "nova-manage did not run, or stopped before it looked at the server: "
        "check that it can read its configuration, and that the container runs."
    ),
    2: (
        "Nova has no compute node for the host that the server is on, "
        "or nova-manage does not know an option: check that nova-compute runs there, "
        "that the hypervisor is listed, and that Nova is Train or newer."
    ),
    3: (
        "The allocation could not be written: Placement did not answer, the host has no capacity "
        "for it, or nova-manage cannot determine the provider of a port. Check that Placement "
        "answers, free capacity or raise the allocation ratio, or migrate the server, which "
        "allocates again."
    ),
    NOTHING_WRITTEN: (
        "Nova found nothing to write, because the server has a task, has no host, "
        "or has allocations by now: run detection again."
    ),
    5: (
        "Neutron did not list the ports of the server, and nothing was written: "
        "check that Neutron answers and that Nova has access to it, and heal again."
    ),
    6: (
        "Neutron did not accept the change of a port, the changes of other ports were reverted, "
        "and nothing was written: find the reason in Neutron's log, and heal again."
    ),
    PORTS_CHANGED: (
        "Neutron accepted the changes of some ports, and they could not be reverted: "
        "for each port in the output run "
        "`openstack port unset PORT --binding-profile allocation`, and heal again."
    ),
    8: (
        "The server has a vGPU or a Cyborg device, which Nova cannot heal: "
        "migrate it, which allocates again."
    ),
    125: (
        "The container runtime failed: check that the container in orphan_cleanup_nova_manage runs."
    ),
    126: (
        "The command in orphan_cleanup_nova_manage cannot be run: "
        "check its permissions, and whether it is a program."
    ),
    127: (
        "The command does not exist on this machine or in this container, "
        "or Nova does not map the server to a cell: check orphan_cleanup_nova_manage "
        "and orphan_cleanup_nova_manage_host, "
        "or run `nova-manage cell_v2 verify_instance --uuid` with the server's uuid."
    ),
    255: (
        "nova-manage stopped with an error that it did not expect, "
        "such as a database that does not answer."
    ),
}
_STOPPED = "nova-manage was stopped: find out why, and heal again."
_NOT_REACHED = (
    "nova-manage was not reached: check the connection to orphan_cleanup_nova_manage_host."
)

# The longest output of nova-manage that is shown whole.
_MAX_OUTPUT = 2000


@d.dataclass(frozen=True)
class HealOutcome:
    outcome: str
    changed: bool
    reason: str


def determine_heal_outcome(
    before: TaskResult,
    called: TaskResult,
    read: TaskResult,
    after: TaskResult,
    dry: bool,
) -> HealOutcome:
    """Return the outcome for a server, from the results of four tasks.

    before: the detection before the call.
    called: the call. It was skipped when the server was not proven to have no allocations.
    read: the allocations of the server after the call.
    after: the detection after the call.
    dry: whether nova-manage was only to say what it would write; `read` and `after` are not used.
    """
    if called.get("skipped"):
        return _determine_without_call(before)
    call = _CommandResult.from_task(called)
    if dry and call.would_write:
        return HealOutcome(WOULD_BE_HEALED, True, f"Nova would write its allocation: {call.output}")
    if dry:
        return HealOutcome(FAILED, False, f"{call.meaning} {call.ending}")
    now = _ServerState.from_tasks(read, after)
    outcome, changed = _determine_after_call(call, now)
    remark = now.description
    # Where Nova wrote nothing, the description says what keeps the server from its allocations.
    if now.is_empty and call.code != NOTHING_WRITTEN:
        remark = "It has no allocations."
    return HealOutcome(outcome, changed, f"{call.meaning} {remark} {call.ending}")


def _determine_after_call(call: _CommandResult, now: _ServerState) -> tuple[str, bool]:
    """Return the outcome, and whether the call changed anything."""
    if call.code == PORTS_CHANGED:
        return FAILED, True
    if call.code == NOTHING_WRITTEN:
        # Nova did not write the allocations that the server has.
        return (FAILED if now.may_miss_allocation else SKIPPED), False
    return (HEALED if now.verified else FAILED), now.has_allocations


def _determine_without_call(before: TaskResult) -> HealOutcome:
    """Return why nova-manage was not called: only a sound reading proves anything."""
    if not _is_complete(before):
        return HealOutcome(
            FAILED,
            False,
            "Nothing can be proven now, and nova-manage was not called: "
            f"{_explain_incomplete(before)}",
        )
    why = "Its allocations are right, or the server no longer exists."
    if entries := _list_entries(before):
        why = entries[0]["reason"]
    return HealOutcome(
        SKIPPED, False, f"It has changed since detection, and nova-manage was not called. {why}"
    )


@d.dataclass(frozen=True)
class _CommandResult:
    """The end of nova-manage. Without a code it was not reached."""

    code: int | None
    output: str

    @classmethod
    def from_task(cls, called: TaskResult) -> _CommandResult:
        parts = (str(called.get(part) or "").split() for part in ("stdout", "stderr", "msg"))
        # The first of these that says anything; where a task fails early only Ansible does.
        output = " ".join(next(filter(None, parts), ["nothing"]))
        if len(output) > _MAX_OUTPUT:
            output = output[: _MAX_OUTPUT - 3].rsplit(" ", 1)[0] + "..."
        return cls(called.get("rc"), output)

    @property
    def would_write(self) -> bool:
        return self.code == NOTHING_WRITTEN and "[dry-run]" in self.output

    @property
    def meaning(self) -> str:
        if self.code is None:
            return _NOT_REACHED
        return EXIT_CODES.get(self.code, _STOPPED)

    @property
    def ending(self) -> str:
        if self.code is None:
            return f"Ansible says: {self.output}"
        return f"nova-manage ended with {self.code} and said: {self.output}"


@d.dataclass(frozen=True)
class _ServerState:
    """The server after the call.

    It has no entries when all its allocations are on its own host, and right.
    """

    read_error: str | None
    has_allocations: bool
    sound: bool
    entries: tuple[Entry, ...]

    @classmethod
    def from_tasks(cls, read: TaskResult, after: TaskResult) -> _ServerState:
        allocations = read.get("allocations")
        read_error = None
        if allocations is None:
            read_error = str(read.get("msg", ""))
        return cls(
            read_error=read_error,
            has_allocations=any(allocation["providers"] for allocation in allocations or ()),
            sound=_is_complete(after),
            entries=tuple(_list_entries(after)),
        )

    @property
    def is_empty(self) -> bool:
        return self.read_error is None and not self.has_allocations

    @property
    def verified(self) -> bool:
        return self.has_allocations and self.sound and not self.entries

    @property
    def may_miss_allocation(self) -> bool:
        if not self.sound:
            return True
        return any(entry["kind"] == "missing_allocation" for entry in self.entries)

    @property
    def description(self) -> str:
        if self.verified:
            return "It now has an allocation on its own host, and no other."
        if self.read_error is not None:
            return f"Its allocations are not known: {self.read_error}"
        if self.entries:
            return str(self.entries[0]["reason"])
        if self.has_allocations:
            return "It has allocations that could not be verified."
        return "It has no allocations."


def _is_complete(detected: TaskResult) -> bool:
    """Return whether a detection succeeded, and its reading was sound."""
    return "summary" in detected and detected["summary"]["coverage"]["complete"]


def _explain_incomplete(detected: TaskResult) -> str:
    """Return why a detection proves nothing."""
    if "summary" not in detected:
        return str(detected.get("msg", ""))
    coverage = detected["summary"]["coverage"]
    return " ".join(coverage["failed_checks"]) or describe_unjudged_hosts(coverage)


def _list_entries(detected: TaskResult) -> list[Entry]:
    return [
        *detected.get("findings", ()),
        *detected.get("protected", ()),
        *detected.get("undecided", ()),
    ]
