# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that bring a guest on its hypervisor into the requested state.

They are refused as a whole, or done one after the other, each with a check immediately before it.
This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import functools
import socket
import typing as t
from collections.abc import Callable

from ..._common.clock import get_utc_now
from ..._common.context import Context
from ..._common.errors import HostError, InvalidInput, PlacementToolsError
from ..._common.text import normalize_uuid
from ..._common.times import parse_duration, seconds_between, shift_time
from .domain_xml import SHUT_OFF, Domain, parse_domain
from .instance_dirs import (
    SUFFIX_BY_KIND,
    InstanceDirectories,
    InstanceDirectory,
    QuarantinedDirectory,
)
from .virsh import REFUSED_UNLESS_REMOVED, Virsh, find_newest_xml, read_xml, save_xml

PARTS = ["domains", "directories"]

_EPOCH = "1970-01-01T00:00:00Z"
_DISPLAY_NAMES = {"managed_save": "a managed save", "snapshots": "snapshots"}


def require_canonical_uuid(uuid: str, option: str) -> str:
    """Return `uuid`. Raises InvalidInput when it is not spelled as Nova spells uuids.

    Nova names domains and directories so; no other spelling would match them.
    """
    if normalize_uuid(uuid) != uuid:
        raise InvalidInput(
            f"{option} {uuid!r} is not a UUID as Nova writes it (lower case, with dashes)."
        )
    return uuid


def read_guests(context: Context) -> dict[str, t.Any]:
    """Return the parts of the guests that the options request."""
    options = context.options
    uuids = options["uuids"]
    if uuids is not None:
        uuids = [require_canonical_uuid(uuid, "uuids") for uuid in uuids]
    instances = InstanceDirectories.from_options(options)
    result: dict[str, t.Any] = {
        "changed": False,
        "host": socket.gethostname(),
        "read_at": get_utc_now(),
        "compute_id": instances.compute_id(),
        "domains": None,
        "directories": None,
        "quarantined": None,
    }
    # The directories come first: a guest that starts meanwhile is seen as a domain.
    if "directories" in options["parts"]:
        directories = instances.list_directories(uuids)
        quarantined = instances.list_quarantined(uuids)
        result["directories"] = [directory.as_dict() for directory in directories]
        result["quarantined"] = [d.asdict(entry) for entry in quarantined]
    if "domains" in options["parts"]:
        domains = Virsh(context).list_domains(uuids)
        result["domains"] = [domain.as_dict() for domain in domains]
    return result


def ensure_guest_state(context: Context) -> dict[str, t.Any]:
    """Bring a guest into the state that the options request, and return the result of the module.

    In check mode the result says what would be done. When a step fails, the result has `failed` in
    it, with the error and with what was done until then.

    Raises PlacementToolsError, with nothing done, when any of the steps is refused.
    """
    task = _Task(context)
    # Everything is checked before the first step, so that a refusal leaves nothing half done.
    steps = task.plan_steps()
    before = task.describe_state()
    try:
        for step in steps:
            step()
    except PlacementToolsError as error:
        return task.build_result(failed=True, msg=str(error))
    return task.build_result(diff={"before": before, "after": task.describe_state()})


class _Task:
    """A guest, as it was last read, and what was done with it."""

    def __init__(self, context: Context) -> None:
        self._options = options = context.options
        self._check = context.check_mode
        self._uuid: str | None = None
        if options["uuid"] is not None:
            self._uuid = require_canonical_uuid(options["uuid"], "uuid")
        self._now = shift_time(options["now"], 0) if options["now"] else None
        self._virsh = Virsh(context)
        self._instances = InstanceDirectories.from_options(options)
        self._domain: Domain | None = None
        self._path: str | None = None
        self._quarantined_dirs: list[QuarantinedDirectory] = []
        self._actions: list[str] = []
        self._xml_path: str | None = None
        self._moved_to: str | None = None
        self._purged: list[str] = []

    def plan_steps(self) -> list[Callable[[], None]]:
        """Return the steps to take, after all of them were checked. Raises PlacementToolsError."""
        domain_state = self._options["domain"]
        directory_state = self._options["directory"]
        if self._uuid is not None and (domain_state or directory_state == "quarantined"):
            self._domain = self._virsh.get_domain(self._uuid)
        steps: list[Callable[[], None]] = []
        # The domain goes before its directory, which it may still use, and comes back after it.
        if domain_state == "undefined" and self._domain is not None:
            steps.append(self._plan_removal(self._domain))
        if directory_state == "quarantined":
            steps += self._plan_quarantine()
        elif directory_state == "present":
            steps += self._plan_restore()
        elif directory_state == "purged":
            steps += self._plan_purge()
        if domain_state == "defined" and self._domain is None:
            steps += self._plan_definition()
        return steps

    def describe_state(self) -> dict[str, t.Any]:
        """Return what Ansible shows with `--diff`."""
        domain = None
        if self._domain is not None:
            domain = {name: getattr(self._domain, name) for name in ("name", "state", "uuid")}
        state: dict[str, t.Any] = {"domain": domain, "directory": self._path}
        if self._options["directory"] == "purged":
            paths = [entry.path for entry in self._quarantined_dirs]
            state["quarantined"] = [path for path in paths if path not in self._purged]
        return state

    def build_result(self, **more: t.Any) -> dict[str, t.Any]:
        """Return the result of the module, with the fields `more` added."""
        return {
            "changed": bool(self._actions),
            "uuid": self._uuid,
            "actions": self._actions,
            "domain": self._domain and self._domain.as_dict(),
            "directory": self._path,
            "xml_path": self._xml_path,
            "quarantined": self._moved_to,
            "purged": self._purged,
            **more,
        }

    def _plan_removal(self, domain: Domain) -> Callable[[], None]:
        self._check_expected_domain(domain)
        self._check_undefine_allowed(domain, destroy=self._options["destroy"])
        self._virsh.check_undefine_allowed(domain, self._options["remove"])
        remove = self._pretend_removal if self._check else self._undefine_domain
        return functools.partial(remove, domain)

    def _check_expected_domain(self, domain: Domain) -> None:
        """Raise HostError if the domain is not Nova's, or no longer the one that was read."""
        if domain.nova is None:
            raise HostError(
                f"The {domain} has no metadata of Nova, so Nova did not define it: "
                "it is not changed."
            )
        expected_state = self._options["expect_state"]
        if expected_state not in (None, domain.state):
            raise HostError(
                f"The {domain} is {domain.state}, but was {expected_state} when it was read: "
                "check again what uses it."
            )
        created_at = domain.nova["created_at"]
        expected_created_at = self._options["expect_created_at"]
        if expected_created_at not in (None, created_at):
            raise HostError(
                f"Nova defined the {domain} at {created_at}, and not at {expected_created_at}: "
                "it is no longer the domain that was read."
            )

    def _pretend_removal(self, domain: Domain) -> None:
        if domain.state != SHUT_OFF:
            self._actions.append("destroy")
        # A transient domain is gone as soon as it is destroyed.
        if domain.persistent:
            self._actions.append("undefine")
        self._domain = None

    def _check_undefine_allowed(self, domain: Domain, *, destroy: bool) -> None:
        if domain.state != SHUT_OFF and not destroy:
            raise HostError(
                f"The {domain} is {domain.state}, and only a domain that is {SHUT_OFF} is "
                "undefined: shut it off, or set destroy."
            )
        for hindrance in REFUSED_UNLESS_REMOVED:
            if getattr(domain, hindrance) and hindrance not in self._options["remove"]:
                raise HostError(
                    f"The {domain} has {_DISPLAY_NAMES[hindrance]}, which would be lost: "
                    f"add {hindrance} to remove if it is not needed."
                )

    def _undefine_domain(self, domain: Domain) -> None:
        xml = self._virsh.dump_xml(domain.uuid)
        if parse_domain(xml, state=SHUT_OFF, persistent=True).uuid != domain.uuid:
            raise HostError(
                f"libvirt returned the XML of another domain for the {domain}: nothing was changed."
            )
        # Saved before anything is destroyed, because a transient domain then has no XML any more.
        self._xml_path = save_xml(self._options["backup_path"], domain.uuid, xml)
        if domain.state != SHUT_OFF:
            self._virsh.destroy(domain)
            self._actions.append("destroy")
        self._domain = self._virsh.get_domain(domain.uuid)
        # A transient domain is gone as soon as it is destroyed.
        if self._domain is None:
            return
        # Somebody may have started the domain again meanwhile.
        self._check_undefine_allowed(self._domain, destroy=False)
        self._virsh.undefine(self._domain, self._options["remove"])
        self._domain = self._virsh.get_domain(domain.uuid)
        if self._domain is not None:
            # libvirt also undefines a domain that runs, and forgets it as soon as it stops.
            self._virsh.define(xml)
            self._domain = self._virsh.get_domain(domain.uuid)
            raise HostError(
                f"The {domain} was started while it was undefined. It was defined again: find out "
                "who started it."
            )
        self._actions.append("undefine")

    def _plan_quarantine(self) -> list[Callable[[], None]]:
        directory = self._find_directory()
        if directory is None:
            return []
        expected = self._options["expect_changed_at"]
        if expected not in (None, directory.changed_at):
            raise HostError(
                f"{directory.path} last changed at {directory.changed_at}, but the directory that "
                f"was read last changed at {expected}: check again what uses it."
            )
        running = self._domain is not None and self._domain.state != SHUT_OFF
        # The removal of the domain, which was planned before, destroys its guest first.
        gone_by_then = running and self._options["domain"] == "undefined"
        if not gone_by_then:
            self._check_shut_off(directory)
        self._instances.check_move_allowed(
            directory, allow_shared=self._options["allow_shared"], to_be_closed=gone_by_then
        )

        return [functools.partial(self._move_to_quarantine, directory)]

    def _move_to_quarantine(self, directory: InstanceDirectory) -> None:
        if not self._check:
            self._moved_to = self._quarantine(directory)
        self._path = None
        self._actions.append("quarantine")

    def _quarantine(self, directory: InstanceDirectory) -> str:
        self._domain = self._virsh.get_domain(directory.uuid)
        self._check_shut_off(directory)
        current = directory
        # A guest that was destroyed may have written until then.
        if "destroy" in self._actions:
            current = self._find_directory() or directory
        return self._instances.quarantine(
            current,
            allow_shared=self._options["allow_shared"],
            # The later of two clocks: later, both of them must say that it is old.
            earliest=seconds_between(_EPOCH, self._now) or 0,
        )

    def _find_directory(self) -> InstanceDirectory | None:
        suffix = SUFFIX_BY_KIND[self._options["directory_kind"]]
        directory = self._instances.get_directory(f"{self._uuid}{suffix}")
        self._path = directory.path if directory else None
        return directory

    def _check_shut_off(self, directory: InstanceDirectory) -> None:
        if self._domain is not None and self._domain.state != SHUT_OFF:
            raise HostError(
                f"{directory.path} is not moved, because the {self._domain} is "
                f"{self._domain.state}."
            )

    def _plan_restore(self) -> list[Callable[[], None]]:
        existing = self._find_directory()
        if existing is not None and existing.link:
            raise HostError(
                f"{existing.path} is a symbolic link: remove it, and run again to restore the "
                "directory in quarantine."
            )
        if existing is not None:
            return []
        kind = self._options["directory_kind"]
        quarantined = self._instances.list_quarantined([str(self._uuid)])
        entries = [entry for entry in quarantined if entry.kind == kind]
        if not entries:
            raise HostError(
                f"The directory of {self._uuid} (kind {kind}) is neither in "
                f"{self._instances.path} nor in {self._instances.store}."
            )
        return [functools.partial(self._restore, entries[-1])]

    def _restore(self, entry: QuarantinedDirectory) -> None:
        restore = self._instances.get_original_path if self._check else self._instances.restore
        self._path = restore(entry)
        self._actions.append("restore")

    def _plan_purge(self) -> list[Callable[[], None]]:
        min_age = parse_duration(self._options["older_than"], "older_than")
        uuids = None if self._uuid is None else [self._uuid]
        self._quarantined_dirs = self._instances.list_quarantined(uuids)
        old = [
            entry
            for entry in self._quarantined_dirs
            if min(seconds_between(entry.moved_at, self._now) or 0, entry.age_seconds) >= min_age
        ]
        self._instances.check_purge_allowed(old)
        return [functools.partial(self._purge, old)]

    def _purge(self, entries: list[QuarantinedDirectory]) -> None:
        for entry in entries:
            if not self._check:
                self._instances.purge(entry)
            # One action for all of them, and only once something is deleted.
            if not self._purged:
                self._actions.append("purge")
            self._purged.append(entry.path)

    def _plan_definition(self) -> list[Callable[[], None]]:
        uuid = str(self._uuid)
        path = self._options["xml_path"] or find_newest_xml(self._options["backup_path"], uuid)
        xml = read_xml(path)
        described = parse_domain(xml, state=SHUT_OFF, persistent=True)
        if described.uuid != uuid or described.nova is None:
            raise InvalidInput(
                f"{path} describes the {described}, but not a domain of Nova with the UUID {uuid}."
            )

        def define() -> None:
            if self._check:
                self._domain = described
            else:
                self._domain = self._define_domain(uuid, xml)
            self._xml_path = path
            self._actions.append("define")

        return [define]

    def _define_domain(self, uuid: str, xml: bytes) -> Domain:
        if uuid in self._virsh.list_uuids():
            raise HostError(f"A domain {uuid} was defined meanwhile, and is not changed.")
        self._virsh.define(xml)
        domain = self._virsh.get_domain(uuid)
        if domain is None or not domain.persistent:
            raise HostError(
                f"libvirt accepted the XML of {uuid}, but has no such domain: check the log of "
                "libvirt."
            )
        return domain
