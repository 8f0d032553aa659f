# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Domains of libvirt, by its command `virsh`. Runs on hypervisors: any Python from 3.9 on reads this."""

from __future__ import annotations

import dataclasses as d
import re
import shlex
import typing as t
import xml.etree.ElementTree as ET

from ansible_collections.osops.placement.plugins.module_utils._common.errors import (
    HostError,
    InvalidInput,
)
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible.module_utils.basic import AnsibleModule

SHUT_OFF = "shut off"
KEPT_UNLESS_REMOVED = ("nvram", "tpm")
REFUSED_UNLESS_REMOVED = ("managed_save", "snapshots")
MAX_XML_BYTES = 10 * 1024 * 1024

_MAX_ERROR_LENGTH = 500
_KEEP_TPM_VERSION = (8, 9)
_TIMEOUT_STATUSES = (124, 137)  # of timeout
_NOVA_METADATA_TAG = re.compile(r"\{(http://openstack\.org/xmlns/libvirt/nova/[0-9.]+)\}instance")


@d.dataclass(frozen=True)
class Domain:
    """A domain as libvirt knows it. `nova` is None when it has no metadata of Nova: it is somebody else's."""

    uuid: str
    name: str
    state: str
    vcpus: int
    memory_mb: int
    persistent: bool
    managed_save: bool
    snapshots: int
    nvram: str | None
    firmware: bool
    tpm: bool
    nova: t.Mapping[str, str | None] | None
    disks: tuple[str, ...]

    def as_dict(self) -> dict[str, t.Any]:
        told = {**d.asdict(self), "disks": list(self.disks)}
        del told["firmware"]
        return told

    def __str__(self) -> str:
        return f"domain {self.name!r} ({self.uuid})"


def virsh_options() -> dict[str, dict[str, t.Any]]:
    """Return the options by which libvirt is reached."""
    return {
        "virsh": {"type": "str", "default": "virsh"},
        "uri": {"type": "str", "default": "qemu:///system"},
        "virsh_timeout": {"type": "int", "default": 60},
    }


class Virsh:
    """`virsh`, run without a shell; each call ends in time."""

    def __init__(self, module: AnsibleModule) -> None:
        command, timeout = module.params["virsh"], module.params["virsh_timeout"]
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(
                f"virsh {command!r} cannot be split as a command line: {error}."
            ) from error
        if not self._command:
            raise InvalidInput("virsh is empty: give the command, such as virsh.")
        if timeout < 1:
            raise InvalidInput(f"virsh_timeout is {timeout}: give at least one second.")
        self._module = module
        self._uri = module.params["uri"]
        self._timeout = timeout

    def list_uuids(self, *which: str) -> list[str]:
        """Return the uuids of all domains, or of those of `which` libvirt says that."""
        told = self._run("list", "--all", "--uuid", *which).decode(errors="replace").split()
        if foreign := [word for word in told if normalize_uuid(word) != word]:
            raise HostError(
                f"{self._command_line} list --uuid answers with {foreign[0]!r}, which is no UUID: set virsh to libvirt's own client."
            )
        return sorted(told)

    def list_domains(self, uuids: t.Collection[str] | None = None) -> list[Domain]:
        """Return the domains, or those of `uuids` that there are."""
        known = self.list_uuids()
        facts = {fact: set(self.list_uuids(option)) for fact, option in _LIST_OPTIONS.items()}
        chosen = known if uuids is None else [uuid for uuid in known if uuid in uuids]
        found = (
            self._read_domain(uuid, {fact: uuid in those for fact, those in facts.items()})
            for uuid in chosen
        )
        return [domain for domain in found if domain]

    def get_domain(self, uuid: str) -> Domain | None:
        """Return the domain of that uuid, None when there is none."""
        return next(iter(self.list_domains([uuid])), None)

    def dump_xml(self, uuid: str) -> bytes:
        """Return the XML from which the domain could be defined again, secrets in it."""
        return self._run("dumpxml", uuid, "--inactive", "--security-info").strip() + b"\n"

    def destroy(self, domain: Domain) -> None:
        self._run("destroy", domain.uuid)

    def check_undefine_allowed(self, domain: Domain, remove: t.Collection[str]) -> None:
        """Raise HostError when libvirt would not keep what is not in `remove`, and would not say so."""
        if domain.tpm and "tpm" not in remove:
            # A newer virsh asks an older libvirt again without the flag, which then removes the state.
            match = re.search(rb"daemon: (\d+)\.(\d+)", self._run("version", "--daemon"))
            if match is None or tuple(map(int, match.groups())) < _KEEP_TPM_VERSION:
                raise HostError(
                    f"The {domain} has a TPM, whose state libvirt cannot keep before version {'.'.join(map(str, _KEEP_TPM_VERSION))}: "
                    "name tpm in remove if it may be lost."
                )

    def undefine(self, domain: Domain, remove: t.Collection[str]) -> None:
        """Undefine the domain. What is not in `remove` is kept, or makes libvirt refuse."""
        flags = []
        if domain.firmware:
            flags.append("--nvram" if "nvram" in remove else "--keep-nvram")
        if domain.tpm and "tpm" not in remove:
            # Otherwise libvirt removes the state.
            flags.append("--keep-tpm")
        if "managed_save" in remove:
            flags.append("--managed-save")
        if "snapshots" in remove:
            flags.append("--snapshots-metadata")
        self._run("undefine", domain.uuid, *flags)

    def define(self, xml: bytes) -> None:
        # By way of its input: in a container, virsh does not see the host's files.
        self._run("define", "/dev/stdin", stdin=xml)

    def _read_domain(self, uuid: str, facts: t.Mapping[str, bool]) -> Domain | None:
        try:
            # Together, so that a hypervisor with many domains is asked in half the time; the uuid is one, and cannot be a command.
            told = self._run(f"domstate {uuid}; dumpxml {uuid}")
            names = self._run("snapshot-list", uuid, "--name") if facts["snapshots"] else b""
        except HostError:
            if uuid not in self.list_uuids():
                return None
            raise
        state, start, xml = told.partition(b"<")
        return parse_domain(
            start + xml,
            state=state.decode(errors="replace").strip(),
            persistent=facts["persistent"],
            managed_save=facts["managed_save"],
            snapshots=sum(1 for line in names.splitlines() if line.strip()),
        )

    def _run(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        program = self._module.get_bin_path(self._command[0])
        if program is None:
            raise HostError(
                f"{self._command[0]} is not there on this host, or cannot be run: install libvirt's client, or set virsh to the command "
                "that reaches it, such as docker exec -i nova_libvirt virsh."
            )
        command = [program, *self._command[1:], "--quiet", "--connect", self._uri, *arguments]
        status, output, complaint = self._module.run_command(
            ["timeout", "--kill-after=5", str(self._timeout), *command],
            data=stdin,
            binary_data=True,
            encoding=None,
            environ_update={"LC_ALL": "C"},
            expand_user_and_vars=False,
        )
        shown = f"{self._command_line} {arguments[0].partition(' ')[0]}"
        if status in _TIMEOUT_STATUSES:
            raise HostError(
                f"{shown} has not ended in {self._timeout} seconds, and what it was to do may still come: "
                "look whether libvirt hangs, or raise virsh_timeout."
            )
        if status:
            raise HostError(
                f"{shown} failed at {self._uri}: {sanitize_output(complaint.decode(errors='replace')) or f'exit status {status}'}"
            )
        return t.cast("bytes", output)

    @property
    def _command_line(self) -> str:
        return " ".join(self._command)


_LIST_OPTIONS = {
    "persistent": "--persistent",
    "managed_save": "--with-managed-save",
    "snapshots": "--with-snapshot",
}


def parse_domain(
    xml: bytes, *, state: str, persistent: bool, managed_save: bool = False, snapshots: int = 0
) -> Domain:
    """Return the domain that `xml` describes. Raises HostError when it describes none."""
    # libvirt writes no document type, with which a few lines could grow to gigabytes.
    if len(xml) > MAX_XML_BYTES or b"<!DOCTYPE" in xml:
        raise HostError(
            f"The XML of a domain has {len(xml)} bytes or a document type: libvirt writes neither such."
        )
    try:
        root = ET.fromstring(xml)
    except ET.ParseError as error:
        raise HostError(f"The XML of a domain cannot be read: {error}.") from error
    uuid = normalize_uuid(root.findtext("uuid", ""))
    if root.tag != "domain" or uuid is None:
        raise HostError("The XML of a domain describes none, or one without a UUID.")
    system = root.find("os")
    nvram, source = root.findtext("os/nvram", "").strip(), root.find("os/nvram/source")
    if source is not None:
        nvram = source.get("file") or ""
    disks = [
        source.get("file") or source.get("dev") for source in root.findall("devices/disk/source")
    ]
    return Domain(
        uuid=uuid,
        name=root.findtext("name", ""),
        state=state,
        vcpus=_parse_number(root.findtext("vcpu")),
        memory_mb=_parse_number(root.findtext("memory")) // 1024,
        persistent=persistent,
        managed_save=managed_save,
        snapshots=snapshots,
        nvram=nvram or None,
        firmware=system is not None
        and (system.find("nvram") is not None or system.get("firmware") is not None),
        tpm=any(
            backend.get("type") == "emulator" for backend in root.findall("devices/tpm/backend")
        ),
        nova=_parse_nova_metadata(root),
        disks=tuple(path for path in disks if path),
    )


def sanitize_output(text: str) -> str:
    """Return what a program said in one line that can do a terminal no harm, and not too long."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    return " ".join(words)[:_MAX_ERROR_LENGTH]


def _parse_number(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 0


def _parse_nova_metadata(root: ET.Element) -> dict[str, str | None] | None:
    """Return what Nova wrote into the metadata of a domain, None when it wrote nothing."""
    for element in root.findall("metadata/*"):
        match = _NOVA_METADATA_TAG.fullmatch(element.tag)
        if match is None:
            continue
        space = f"{{{match.group(1)}}}"
        known = {part: element.find(f"{space}owner/{space}{part}") for part in ("project", "user")}
        flavor = element.find(f"{space}flavor")
        created = element.findtext(f"{space}creationTime")
        return {
            "name": element.findtext(f"{space}name"),
            "flavor": None if flavor is None else flavor.get("name"),
            **{part: None if found is None else found.get("uuid") for part, found in known.items()},
            "created_at": f"{created.replace(' ', 'T')}Z" if created else None,
        }
    return None
