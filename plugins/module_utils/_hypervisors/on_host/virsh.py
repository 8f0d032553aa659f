# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains of libvirt, by its command `virsh`.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import os
import re
import shlex
import typing as t

from ..._common.context import Context
from ..._common.errors import HostError, InvalidInput
from ..._common.json_files import belongs_to_others
from ..._common.text import normalize_uuid
from .domain_xml import MAX_XML_BYTES, Domain, parse_domain
from .files import TIMESTAMP_PATTERN, describe_os_error, find_free_name
from .options import HypervisorOptions

# What belongs to a domain and may be lost with it: libvirt can keep the first two when it undefines
# the domain.
KEPT_UNLESS_REMOVED = ("nvram", "tpm")
REFUSED_UNLESS_REMOVED = ("managed_save", "snapshots")
_MAX_ERROR_LENGTH = 500
_KEEP_TPM_VERSION = (8, 9)
# timeout exits with 124; with 137 when it had to kill the command.
_TIMEOUT_STATUSES = (124, 137)


class Virsh:
    """`virsh`, run without a shell; each call ends after `virsh_timeout` seconds at most."""

    def __init__(self, context: Context) -> None:
        command = context.options["virsh"]
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(
                f"virsh {command!r} cannot be split as a command line: {error}."
            ) from error
        if not self._command:
            raise InvalidInput("virsh is empty: set it to a command, such as virsh.")
        self._timeout = HypervisorOptions.virsh_timeout.parse(context.options["virsh_timeout"])
        self._module = context.module
        self._uri = context.options["uri"]

    def list_uuids(self, *which: str) -> list[str]:
        """Return the uuids of all domains, or of those that the options `which` select."""
        output = self._run("list", "--all", "--uuid", *which)
        uuids = output.decode(errors="replace").split()
        for uuid in uuids:
            # The option virsh may name any program, and its output becomes part of commands.
            if normalize_uuid(uuid) != uuid:
                raise HostError(
                    f"{self._command_line} list --uuid returned {uuid!r}, which is not a UUID: "
                    "set virsh to the client of libvirt."
                )
        return sorted(uuids)

    def list_domains(self, uuids: t.Collection[str] | None = None) -> list[Domain]:
        """Return all domains, or those of `uuids` that exist."""
        existing = self.list_uuids()
        # One listing for each fact is faster than a question for each domain.
        uuids_by_fact = {
            fact: set(self.list_uuids(option)) for fact, option in _LIST_OPTIONS.items()
        }
        domains = []
        for uuid in existing:
            if uuids is not None and uuid not in uuids:
                continue
            facts = {fact: uuid in members for fact, members in uuids_by_fact.items()}
            domain = self._read_domain(uuid, facts)
            if domain is not None:
                domains.append(domain)
        return domains

    def get_domain(self, uuid: str) -> Domain | None:
        """Return the domain with that uuid; None when there is none."""
        return next(iter(self.list_domains([uuid])), None)

    def dump_xml(self, uuid: str) -> bytes:
        """Return the XML from which the domain can be defined again, including its secrets."""
        return self._run("dumpxml", uuid, "--inactive", "--security-info").strip() + b"\n"

    def destroy(self, domain: Domain) -> None:
        """Stop the guest at once, like pulling the power plug of a machine."""
        self._run("destroy", domain.uuid)

    def check_undefine_allowed(self, domain: Domain, remove: t.Collection[str]) -> None:
        """Raise HostError when libvirt would silently lose something that is not in `remove`."""
        if not domain.tpm or "tpm" in remove:
            return
        # A newer virsh repeats the request to an older libvirt without the flag, which then removes
        # the state.
        match = re.search(rb"daemon: (\d+)\.(\d+)", self._run("version", "--daemon"))
        if match is None or tuple(map(int, match.groups())) < _KEEP_TPM_VERSION:
            raise HostError(
                f"The {domain} has a TPM, whose state libvirt cannot keep before version "
                f"{'.'.join(map(str, _KEEP_TPM_VERSION))}: add tpm to remove if it is not needed."
            )

    def undefine(self, domain: Domain, remove: t.Collection[str]) -> None:
        """Undefine the domain. What is not in `remove` is kept, or makes libvirt refuse."""
        flags = {
            "--nvram": domain.firmware and "nvram" in remove,
            "--keep-nvram": domain.firmware and "nvram" not in remove,
            # Otherwise libvirt removes the state.
            "--keep-tpm": domain.tpm and "tpm" not in remove,
            "--managed-save": "managed_save" in remove,
            "--snapshots-metadata": "snapshots" in remove,
        }
        self._run("undefine", domain.uuid, *(flag for flag, is_set in flags.items() if is_set))

    def define(self, xml: bytes) -> None:
        """Define the domain that `xml` describes."""
        # By way of its input: in a container, virsh does not see the host's files.
        self._run("define", "/dev/stdin", stdin=xml)

    def _read_domain(self, uuid: str, facts: t.Mapping[str, bool]) -> Domain | None:
        try:
            # Both in one call, which halves the time on a hypervisor with many domains. A uuid from
            # libvirt's own listing was checked to be one, and cannot be a command.
            output = self._run(f"domstate {uuid}; dumpxml {uuid}")
            snapshots = self._count_snapshots(uuid) if facts["snapshots"] else 0
        except HostError:
            # The domain may have been undefined after it was listed.
            if uuid not in self.list_uuids():
                return None
            raise
        state, start, xml = output.partition(b"<")
        return parse_domain(
            start + xml,
            state=state.decode(errors="replace").strip(),
            persistent=facts["persistent"],
            managed_save=facts["managed_save"],
            snapshots=snapshots,
        )

    def _count_snapshots(self, uuid: str) -> int:
        names = self._run("snapshot-list", uuid, "--name")
        return sum(1 for line in names.splitlines() if line.strip())

    def _run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Return what virsh writes. Raises HostError when it fails or takes too long."""
        command = [self._find_program(), *self._command[1:]]
        command += ["--quiet", "--connect", self._uri, *arguments]
        # Ansible's run_command has no time limit, and libvirt can hang while a guest or its storage
        # does.
        status, output, complaint = self._module.run_command(
            ["timeout", "--kill-after=5", str(self._timeout), *command],
            data=stdin,
            binary_data=True,
            encoding=None,
            # Other languages have other words for the states of a domain.
            environ_update={"LC_ALL": "C"},
            expand_user_and_vars=False,
        )
        subcommand = arguments[0].partition(" ")[0]
        shown = f"{self._command_line} {subcommand}"
        if status in _TIMEOUT_STATUSES:
            raise HostError(
                f"{shown} has not ended within {self._timeout} seconds, and may still take effect: "
                "check whether libvirt hangs, or increase virsh_timeout."
            )
        if status:
            reason = sanitize_output(complaint.decode(errors="replace"))
            raise HostError(f"{shown} failed at {self._uri}: {reason or f'exit status {status}'}")
        return t.cast("bytes", output)

    def _find_program(self) -> str:
        program = self._module.get_bin_path(self._command[0])
        if program is None:
            raise HostError(
                f"{self._command[0]} does not exist on this host, or cannot be run: install the "
                "client of libvirt, or set virsh to the command that runs it, such as docker exec "
                "-i nova_libvirt virsh."
            )
        return t.cast("str", program)

    @property
    def _command_line(self) -> str:
        return " ".join(self._command)


_LIST_OPTIONS = {
    "persistent": "--persistent",
    "managed_save": "--with-managed-save",
    "snapshots": "--with-snapshot",
}


def sanitize_output(text: str) -> str:
    """Return the output of a program as one line, safe for a terminal and not too long."""
    printable = [character if character.isprintable() else " " for character in text]
    words = "".join(printable).split()
    return " ".join(words)[:_MAX_ERROR_LENGTH]


def save_xml(folder: str, uuid: str, xml: bytes) -> str:
    """Write the XML of a domain to a new file, flush it to disk, and return its path.

    The XML contains secrets: only its owner may read the file.

    Raises HostError when the file cannot be written, or when others can change the folder.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            name = _write_new_file(directory, folder, uuid, xml)
        finally:
            os.close(directory)
    except OSError as error:
        raise HostError(
            f"backup_path {folder} cannot be written: {describe_os_error(error)}. "
            "Nothing was changed: choose another directory."
        ) from error
    return os.path.join(folder, name)


def _write_new_file(directory: int, folder: str, uuid: str, xml: bytes) -> str:
    """Write the file in the open `directory`, whose path is `folder`, and return its name."""
    if belongs_to_others(directory):
        raise HostError(
            f"backup_path {folder} can be changed by other users: make root its owner, with mode "
            "0700."
        )
    name = find_free_name(uuid, ".xml", directory)
    # A new file only: the XML must not be written through a link that somebody has prepared.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=directory)
    with os.fdopen(file, "wb") as stream:
        stream.write(xml)
        stream.flush()
        os.fsync(file)
    # Without this the entry of the file in the folder could be lost in a crash.
    os.fsync(directory)
    return name


def find_newest_xml(folder: str, uuid: str) -> str:
    """Return the path of the XML that was saved last of a domain.

    Raises InvalidInput when there is none, or when the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise InvalidInput(
            f"backup_path {folder} cannot be read: {describe_os_error(error)}. "
            "Set xml_path, or another backup_path."
        ) from error
    pattern = re.compile(rf"{uuid}\.{TIMESTAMP_PATTERN}\.xml")
    saved = sorted(filter(pattern.fullmatch, names))
    if not saved:
        raise InvalidInput(
            f"backup_path {folder} has no XML of {uuid}: set xml_path, or another backup_path."
        )
    return os.path.join(folder, saved[-1])


def read_xml(path: str) -> bytes:
    """Return the XML in a file, or of one that is too long the beginning that shows this.

    Raises InvalidInput when the file cannot be read.
    """
    try:
        with open(path, "rb") as stream:
            return stream.read(MAX_XML_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {describe_os_error(error)}.") from error
