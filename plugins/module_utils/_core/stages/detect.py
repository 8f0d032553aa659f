# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the cloud, judges what was read, and writes the findings."""

from __future__ import annotations

import dataclasses as d
import os
import typing as t

from ..._common.clock import get_utc_now
from ..._common.errors import InvalidInput
from ..._common.json_files import read_json, read_or_put_aside, require_private_file, write_json
from ..clients.session import CloudContext, Session, get_sdk_version
from ..expected.amounts import count_amounts
from ..facts.index import SnapshotIndex
from ..facts.soundness import list_unmet_requirements
from ..findings.document import build_document
from ..findings.entries import ENTRY_LISTS, MAX_RETURNED
from ..findings.memory import build_memory, describe_source, explain_full_reading
from ..findings.selection import Selection
from ..findings.sightings import HISTORY_LOST, extract_history, parse_history, parse_min_sightings
from ..judging.engine import judge
from ..models.codec import Json
from ..models.kinds import get_finding_subject
from ..models.memory import Memory, decode_memory, encode_memory
from ..models.snapshot import Cloud, Reading, Scope, Snapshot, decode, encode
from ..options.guest_devices import read_guests
from ..options.policy import Policy, find_absent_allocators, parse_policy, warn_ended_exclusions
from ..options.run import MemoryOptions
from ..options.scope import parse_scope
from ..reading.candidates import check_named_consumers
from ..reading.host_groups import CellHosts, parse_cell_hosts, resolve_host_groups, resolve_projects
from ..reading.incremental import FullReadingNeeded, IncrementalCollector
from ..reading.others import add_surroundings
from ..run.folder import DETECTED, stage_of_run


@stage_of_run(DETECTED)
def detect(context: CloudContext) -> dict[str, t.Any]:
    """Return the findings about a cloud, or about a snapshot of one."""
    options = context.options
    policy, scope = parse_policy(options), parse_scope(options)
    guests, cell_hosts = read_guests(options["guests"]), parse_cell_hosts(options)
    memory = _MemoryFile(context, scope)
    # These are checked before the cloud is read, which takes long.
    dest, state = options["dest"], options["state"]
    min_sightings = parse_min_sightings(options, state or dest)
    selection = Selection(options["select"]) if options["select"] else None
    if options["snapshot_src"]:
        snapshot = _load_snapshot(context, scope)
        # Exclusions that have ended since were in force when the snapshot was taken.
        policy = parse_policy(options, snapshot.finished_at)
    else:
        snapshot = _read_cloud(context, scope, cell_hosts, policy, memory)
    policy = d.replace(policy, guests=guests)
    # Kept before it is judged, so that a fault of a rule can be examined.
    if options["snapshot_dest"]:
        write_json(options["snapshot_dest"], encode(snapshot))
    # How often it has seen a finding decides what is changed.
    if state:
        require_private_file(state)
    # Read before dest is written, which may be the same file.
    history = read_or_put_aside(state or dest, parse_history, HISTORY_LOST, context.warn)
    if not (options["allow_unknown_consumers"] or options["snapshot_src"]):
        seen_before = set(map(get_finding_subject, history.first_seen)) if history else set()
        check_named_consumers(snapshot, seen_before)
    # The index is expensive for a large cloud: it is built once for the rules and the document.
    index = SnapshotIndex(snapshot)
    findings = judge(index, policy)
    versions: Json = {
        "collection": options["collection_version"],
        "ansible_core": context.core,
        "openstacksdk": get_sdk_version(),
    }
    amounts = count_amounts(index, policy)
    document = build_document(index, findings, selection, history, min_sightings, versions, amounts)
    # Written in check mode too: detection changes nothing.
    if dest:
        write_json(dest, document)
    if state:
        write_json(state, extract_history(document))
    if memory.is_kept and not options["snapshot_src"]:
        memory.write(build_memory(index, findings))
    _warn_about_policy(context, policy, index)
    # Most likely a typo in the expression, which would otherwise end in an empty plan.
    if selection and not any(entry["selected"] for entry in document["findings"]):
        context.warn("select returns none of the findings, so nothing may be changed.")
    return {
        "changed": False,
        "versions": versions,
        "finished_at": document["finished_at"],
        "summary": document["summary"],
        **{key: document[key][:MAX_RETURNED] for key in ENTRY_LISTS},
        **({"dest": dest} if dest else {}),
    }


def _load_snapshot(context: CloudContext, scope: Scope) -> Snapshot:
    """Return the snapshot in the file of `snapshot_src`.

    Raises InvalidInput when it should be narrowed.
    """
    # What was not read cannot be judged, and what was read belongs together.
    if scope != Scope() or context.options["mode"] == "incremental":
        raise InvalidInput(
            "snapshot_src is judged as it was read: it cannot be combined with hosts, consumers, "
            "projects, aggregates, availability_zones, cells, kinds, mode or shard."
        )
    return decode(read_json(context.options["snapshot_src"]))


def _read_cloud(
    context: CloudContext, scope: Scope, cell_hosts: CellHosts, policy: Policy, memory: _MemoryFile
) -> Snapshot:
    session = context.connect()
    scope = resolve_projects(session, scope, context.warn)
    scope = resolve_host_groups(session, scope, cell_hosts, context.warn)
    session.require_one_clock()
    # Older services prove less: said before the reading, which takes long.
    for sentence in list_unmet_requirements(session.cloud):
        context.warn(str(sentence))
    collector = IncrementalCollector(session, policy.pci_aliases)
    return add_surroundings(session, _read_allocations(session, collector, scope, memory))


def _read_allocations(
    session: Session, collector: IncrementalCollector, scope: Scope, memory: _MemoryFile
) -> Snapshot:
    if not memory.is_incremental:
        return collector.collect(scope)
    try:
        return collector.collect_changes(scope, memory.recall(session.cloud, scope))
    except FullReadingNeeded as reason:
        snapshot = collector.collect(scope)
        return d.replace(snapshot, reading=Reading(why_full=str(reason)))


class _MemoryFile:
    """The file that remembers a reading for the next one, which reads what has changed since.

    is_kept: whether it is to be written after this reading.
    """

    def __init__(self, context: CloudContext, scope: Scope) -> None:
        """Raise InvalidInput when the options contradict each other."""
        options = context.options
        self._path, self._warn = options["memory"], context.warn
        self._full_every: int = MemoryOptions.full_every.parse(options["full_every"])
        self.is_incremental = options["mode"] == "incremental"
        if self.is_incremental and not self._path:
            raise InvalidInput(
                "mode=incremental needs a file that keeps the last reading: set memory to a path "
                "that is not removed between runs."
            )
        for name in ("dest", "state", "snapshot_dest", "snapshot_src"):
            if self._path and self._path == options[name]:
                raise InvalidInput(
                    f"memory and {name} are the same file: give memory one of its own."
                )
        # Nobody asked for the file who never reads incrementally.
        is_wanted = self.is_incremental or (self._path and os.path.isfile(self._path))
        self.is_kept = is_wanted and not scope.is_limited_to_hosts

    def recall(self, cloud: Cloud, scope: Scope) -> Memory:
        """Return what the file remembers.

        Raises FullReadingNeeded when that says nothing about what has to be read now.
        """
        if not os.path.isfile(self._path):
            raise FullReadingNeeded(f"There is no file {self._path} yet that remembers a reading.")
        memory = self._read()
        if memory is None:
            raise FullReadingNeeded(f"{self._path} could not be used.")
        source = describe_source(cloud, scope)
        reason = explain_full_reading(memory, source, get_utc_now(), self._full_every)
        if reason:
            raise FullReadingNeeded(reason)
        return memory

    def _read(self) -> Memory | None:
        """Return the memory in the file; None without one. Any other file is put aside."""
        lost = "Everything is read again."
        return read_or_put_aside(
            self._path, lambda contents, _path: decode_memory(contents), lost, self._warn
        )

    def write(self, memory: Memory | None) -> None:
        """Keep a memory; after an unsound reading, which has none, the older one stays."""
        if memory is None:
            return
        # A file that is no memory is not overwritten. An incremental reading has read it already.
        if not self.is_incremental:
            self._read()
        write_json(self._path, encode_memory(memory), compact=True)


def _warn_about_policy(context: CloudContext, policy: Policy, index: SnapshotIndex) -> None:
    """Warn about options that have no effect, or none any more."""
    warn_ended_exclusions(context, policy)
    # A typo in a name would leave it without effect, and nobody would notice.
    for name in find_absent_allocators(policy, index.snapshot.cloud):
        context.warn(
            f"ignore_allocators names {name}, which the service catalogue of this cloud does not "
            "have."
        )
    # Such a name may be misspelt, and then the provider that was meant is not excluded at all.
    for name in index.list_unknown_names(policy.exclude_providers):
        context.warn(
            f"exclude_providers names {name}, which is neither a resource provider nor a host of "
            "this cloud: nothing is excluded by it."
        )
