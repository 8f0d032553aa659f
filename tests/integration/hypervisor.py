"""A hypervisor for the tests.

It has a real libvirt, real directories, and the two modules that read and change them.
"""

import os
import time
import typing as t
from pathlib import Path

from .libvirt import Inside, Libvirt

DAY = 86400


class Host:
    """A hypervisor: a libvirt, a folder of instances, and the two modules."""

    def __init__(self, libvirt: Libvirt, ansible: Inside, folder: Path) -> None:
        self.libvirt = libvirt
        self.ansible = ansible
        self.folder = folder
        self.instances = folder / "instances"
        self.backups = folder / "backups"
        self.store = self.instances / ".quarantine"
        for other in ("_base", "locks"):
            (self.instances / other).mkdir(parents=True)
        self.where = {"uri": libvirt.uri, "instances_path": str(self.instances)}

    def directory(self, name: str) -> Path:
        """Create a directory as Nova does, last changed yesterday."""
        path = self.instances / name
        path.mkdir()
        (path / "disk").write_bytes(b"x" * 8192)
        (path / "console.log").write_text("booting\n")
        yesterday = time.time() - DAY
        for each in (path / "disk", path / "console.log", path):
            os.utime(each, (yesterday, yesterday))
        return path

    def guest(self, **how: t.Any) -> str:
        """Create a shut off domain with its directory, and return its uuid."""
        made = self.libvirt.domain(**how)
        self.directory(made)
        return made

    def info(self, **arguments: t.Any) -> dict[str, t.Any]:
        return self.ansible.direct("hypervisor_guest_info", **{**self.where, **arguments})

    def seen(self, domain: str) -> dict[str, t.Any]:
        (found,) = self.info(uuids=[domain], parts=["domains"])["domains"]
        return found

    def shown(self, name: str) -> dict[str, t.Any]:
        return next(
            entry
            for entry in self.info(parts=["directories"])["directories"]
            if entry["name"] == name
        )

    def do(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        return self.ansible.direct("hypervisor_guest", **self._with(of, arguments))

    def predict(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        """Return the prediction of check mode, which must change nothing."""
        before = self.everything()
        result = self.do(of, _ansible_check_mode=True, _ansible_diff=True, **arguments)
        assert self.everything() == before
        return result

    def refused(self, of: str | None = None, /, **arguments: t.Any) -> str:
        """Return the sentence with which a request is refused.

        It is refused in check mode and without, and everything stays as it was.
        """
        before = self.everything()
        results = [self.do(of, _ansible_check_mode=check, **arguments) for check in (False, True)]
        assert self.everything() == before
        assert [result["failed"] for result in results] == [True, True], results
        assert [result.get("changed", False) for result in results] == [False, False]
        assert results[0]["msg"] == results[1]["msg"]
        return t.cast("str", results[0]["msg"])

    def twins(self, of: str | None = None, /, **arguments: t.Any) -> dict[str, t.Any]:
        """Return the result, after check mode predicted exactly that.

        A second run must have nothing to do.
        """
        foretold = self.predict(of, **arguments)
        result = self.do(of, _ansible_diff=True, **arguments)
        assert not foretold["failed"] and not result["failed"], result.get("msg")
        assert foretold["changed"] is True
        dated = {"xml_path", "quarantined", "invocation"}
        assert {key: value for key, value in foretold.items() if key not in dated} == {
            key: value for key, value in result.items() if key not in dated
        }
        again = self.do(of, _ansible_diff=True, **arguments)
        assert (again["changed"], again["actions"], again["failed"]) == (False, [], False)
        assert again["diff"]["before"] == again["diff"]["after"]
        assert again["domain"] == result["domain"] and again["directory"] == result["directory"]
        return result

    def everything(self) -> dict[str, t.Any]:
        """Return the complete state of all guests.

        It is equal before and after if and only if nothing was done.
        """
        files = {
            str(path): (
                path.lstat().st_ino,
                path.lstat().st_mtime_ns,
                os.readlink(path) if path.is_symlink() else None,
            )
            for path in sorted(self.folder.rglob("*"))
            if not path.name.startswith(("arguments-", ".ansible"))
        }
        return {**files, "domains": self.libvirt.everything()}

    def reaching(self, script: str) -> str:
        """Write a `virsh` that behaves as the script says. `"$@"` are its arguments."""
        path = self.folder / "virsh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def _with(self, of: str | None, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        named = {} if of is None else {"uuid": of}
        return {**self.where, "backup_path": str(self.backups), **named, **arguments}
