# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What `nova-manage` says: the outcome for a server that Nova was asked to heal; hosts of cells.

Of the healing nova-manage only says how it ended: the allocations that the server has afterwards
decide. The hosts of cells are in the table that `nova-manage cell_v2 list_hosts` prints. It reads
the API database of Nova, so it also lists the hosts of a cell that does not answer. Its source is
`CellV2Commands.list_hosts` in nova/cmd/manage.py, with the columns Cell Name, Cell UUID and
Hostname.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils._common.errors import InvalidInput
from ...module_utils._common.text import make_printable, normalize_uuid, suggest_names
from ...module_utils._core.findings.coverage import describe_unjudged_hosts
from ...module_utils._core.models.change import FAILED, SKIPPED

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

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
# A name of a cell can have any character, but the other two columns cannot have a bar.
_ROW = re.compile(rf"\| (.*?) *\| +({_UUID}) +\| +(\S+) +\|")
# In the language of the host.
_HEADER = re.compile(r"\|[^|]+\|[^|]+\|[^|]+\|")
_RULE = re.compile(r"\+[-+]+\+")
_ADVICE = (
    "Set orphan_cleanup_cell_hosts to the hosts of each cell instead, or correct "
    "orphan_cleanup_nova_manage and orphan_cleanup_nova_manage_host."
)

# The longest output of nova-manage that is shown whole.
_MAX_OUTPUT = 2000


@d.dataclass(frozen=True)
class HealOutcome:
    outcome: str
    changed: bool
    reason: str


def determine_heal_outcome(
    before: TaskResult, called: TaskResult, read: TaskResult, after: TaskResult, dry: bool
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
    code, output = called.get("rc"), _shorten_output(called)
    meaning, ending = _NOT_REACHED, f"Ansible says: {output}"
    if code is not None:
        meaning = EXIT_CODES.get(code, _STOPPED)
        ending = f"nova-manage ended with {code} and said: {output}"
    if dry and code == NOTHING_WRITTEN and "[dry-run]" in output:
        return HealOutcome(WOULD_BE_HEALED, True, f"Nova would write its allocation: {output}")
    if dry:
        return HealOutcome(FAILED, False, f"{meaning} {ending}")
    now = _ServerState(read, after)
    remark = now.describe(is_unchanged=code == NOTHING_WRITTEN)
    return HealOutcome(*_determine_after_call(code, now), f"{meaning} {remark} {ending}")


def _shorten_output(called: TaskResult) -> str:
    """Return what a task said; where it failed early, only Ansible says anything."""
    parts = (str(called.get(part) or "").split() for part in ("stdout", "stderr", "msg"))
    output = " ".join(next(filter(None, parts), ["nothing"]))
    if len(output) > _MAX_OUTPUT:
        output = output[: _MAX_OUTPUT - 3].rsplit(" ", 1)[0] + "..."
    return output


def _determine_after_call(code: int | None, now: _ServerState) -> tuple[str, bool]:
    """Return the outcome, and whether the call changed anything."""
    if code == PORTS_CHANGED:
        return FAILED, True
    if code == NOTHING_WRITTEN:
        # Nova did not write the allocations that the server has.
        return (FAILED if now.may_miss_allocation else SKIPPED), False
    return (HEALED if now.is_right else FAILED), now.has_allocations


def _determine_without_call(before: TaskResult) -> HealOutcome:
    """Return why nova-manage was not called: only a sound reading proves anything."""
    not_called = "and nova-manage was not called"
    if not _is_complete(before):
        why = f"Nothing can be proven now, {not_called}: {_explain_incomplete(before)}"
        return HealOutcome(FAILED, False, why)
    why = "Its allocations are right, or the server no longer exists."
    if entries := _list_entries(before):
        why = entries[0]["reason"]
    return HealOutcome(SKIPPED, False, f"It has changed since detection, {not_called}. {why}")


class _ServerState:
    """The server after the call, by the results of two tasks.

    It has no entries when all its allocations are on its own host, and right.
    """

    def __init__(self, read: TaskResult, after: TaskResult) -> None:
        allocations = read.get("allocations")
        self._is_read, self._error = allocations is not None, read.get("msg", "")
        self.has_allocations = any(each["providers"] for each in allocations or ())
        self._entries, is_sound = _list_entries(after), _is_complete(after)
        self.is_right = self.has_allocations and is_sound and not self._entries
        is_missing = any(entry["kind"] == "missing_allocation" for entry in self._entries)
        self.may_miss_allocation = is_missing or not is_sound

    def describe(self, is_unchanged: bool) -> str:
        """Return a sentence about the allocations.

        is_unchanged: whether Nova wrote nothing, so that something keeps the server from them.
        """
        if self.is_right:
            return "It now has an allocation on its own host, and no other."
        if not self._is_read:
            return f"Its allocations are not known: {self._error}"
        if self._entries and (self.has_allocations or is_unchanged):
            return str(self._entries[0]["reason"])
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
    keys = ("findings", "protected", "undecided")
    return [entry for key in keys for entry in detected.get(key, ())]


@d.dataclass(frozen=True)
class CellHost:
    """A row of the table: a host, and the cell that it is in."""

    cell: str
    uuid: str
    host: str


def find_cell_hosts(listing: TaskResult, cells: Sequence[str]) -> dict[str, list[str]]:
    """Return the hosts of the cells, by the name or uuid with which each cell is named.

    listing: the result of the task that ran the command.
    Raises InvalidInput when the command failed, when its table cannot be read to the end, and for a
    cell that it does not list.
    """
    if listing.get("rc") != 0:
        said = " ".join(str(listing.get("stderr") or listing.get("msg") or "nothing").split())
        shown = make_printable(said, 500).rstrip(".")
        raise InvalidInput(
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` did not list the hosts of the "
            f"cells, and said: {shown}. {_ADVICE}"
        )
    rows = parse_host_table(str(listing.get("stdout") or ""))
    hosts_by_cell: dict[str, list[str]] = {}
    names_by_uuid: dict[str, str] = {}
    for name in cells:
        uuid = _find_cell(name, rows)
        if uuid in names_by_uuid:
            raise InvalidInput(
                f"orphan_cleanup_cells names one cell twice: {make_printable(names_by_uuid[uuid])} "
                f"and {make_printable(name)}."
            )
        names_by_uuid[uuid] = name
        hosts_by_cell[name] = sorted(row.host for row in rows if row.uuid == uuid)
    return hosts_by_cell


def parse_host_table(text: str) -> list[CellHost]:
    """Return the rows of the table. Raises InvalidInput if one of its lines is not understood."""
    rows = []
    has_header = False
    for line in text.splitlines():
        # Warnings of Python and of oslo come before the table.
        if not line.startswith(("|", "+")) or _RULE.fullmatch(line.rstrip()):
            continue
        row = _ROW.fullmatch(line.rstrip())
        if row is None and not has_header and _HEADER.fullmatch(line.rstrip()):
            has_header = True
            continue
        if row is None:
            raise InvalidInput(
                "orphan_cleanup_cells: this line of `nova-manage cell_v2 list_hosts` cannot be "
                f"read: {make_printable(line, 200)} {_ADVICE}"
            )
        rows.append(CellHost(row[1].strip(), row[2], row[3]))
    if not has_header:
        raise InvalidInput(
            "orphan_cleanup_cells: `nova-manage cell_v2 list_hosts` printed no table of hosts. "
            f"{_ADVICE}"
        )
    return rows


def _find_cell(name: str, rows: Iterable[CellHost]) -> str:
    """Return the uuid of the cell that has a name or uuid."""
    wanted = normalize_uuid(name) or name
    uuids = {row.uuid for row in rows if wanted in (row.cell, row.uuid)}
    shown = make_printable(name, 100)
    if not uuids:
        advice = suggest_names(name, [row.cell for row in rows])
        raise InvalidInput(
            f"orphan_cleanup_cells: Nova has no cell {shown} with hosts. {advice}".rstrip()
        )
    if len(uuids) > 1:
        raise InvalidInput(
            f"orphan_cleanup_cells: {len(uuids)} cells are named {shown}: "
            f"{', '.join(sorted(uuids))}. Give the UUID of the one that you mean."
        )
    return uuids.pop()


def describe_cell_hosts(listing: TaskResult, cells: t.Any) -> Mapping[str, t.Any]:
    """Return the hosts of the cells, or why they are not certain: `hosts` and `fault`."""
    # The command line gives a text for a list.
    names = cells.split(",") if isinstance(cells, str) else [str(cell) for cell in cells]
    try:
        return {"hosts": find_cell_hosts(listing, names), "fault": ""}
    except InvalidInput as error:
        return {"hosts": {}, "fault": f"{error} Nothing was changed."}
