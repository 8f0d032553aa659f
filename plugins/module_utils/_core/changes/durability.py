# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a folder, and the journal in it, outlives the job that writes there."""

from __future__ import annotations

import contextlib
import dataclasses as d
import os
import re
from collections.abc import Mapping

from ..._common.text import make_printable
from .journal_parts import SAFE_CHANGES

MOUNTINFO = "/proc/self/mountinfo"

# podman and CRI-O create the first of these files in their containers, and Docker the second one.
MARKERS = ("/run/.containerenv", "/.dockerenv")

# Kubernetes sets this variable in its containers, and AWX the other one in its jobs. AWX's JOB_ID
# says nothing, because other schedulers set it too.
_KUBERNETES = "KUBERNETES_SERVICE_HOST"
_AWX = "AWX_PRIVATE_DATA_DIR"

# The private folder of an AWX job has the first name in the container of the job, and the second
# one on the node. Without AWX, /runner can be any folder.
_RUNNER = "/runner"
_AWX_FOLDER = re.compile(r"/awx_[0-9]+_[a-z0-9_]{8}(/|$)")

# Docker and podman name a volume like this if the user does not, and delete it with the container.
_ANONYMOUS = re.compile(r"/volumes/[0-9a-f]{64}/_data(/|$)")

_EMPTY_DIR = "/volumes/kubernetes.io~empty-dir/"
_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_LAYERS = ("overlay", "aufs", "fuse.fuse-overlayfs")

# How mountinfo writes spaces and backslashes in paths.
_ESCAPED = re.compile(rb"\\([0-7]{3})")

_ADVICE = (
    "mount a folder that is kept, and set orphan_cleanup_output_dir to it "
    "(https://github.com/osops/ansible-placement/blob/main/docs/awx.md#keep-the-journals)."
)


@d.dataclass(frozen=True)
class Surroundings:
    """What shows where the folders of a process are kept.

    mountinfo: the text of its mountinfo, empty if it cannot be read.
    """

    mountinfo: str
    is_container: bool
    is_awx_job: bool = False


@d.dataclass(frozen=True)
class _Mount:
    # The folder that is mounted, as a path in its file system.
    root: str
    point: str
    fstype: str


def read_surroundings(environment: Mapping[str, str] | None = None) -> Surroundings:
    """Return the surroundings of this process.

    environment: its environment variables, None to read them now.
    """
    if environment is None:
        environment = os.environ
    mountinfo = b""
    # There is no /proc on macOS, for example.
    with contextlib.suppress(OSError), open(MOUNTINFO, "rb") as stream:
        mountinfo = stream.read()
    marked = any(os.path.exists(path) for path in MARKERS)
    is_awx_job = bool(environment.get(_AWX))
    is_container = marked or is_awx_job or bool(environment.get(_KUBERNETES))
    return Surroundings(os.fsdecode(mountinfo), is_container, is_awx_job)


def explain_loss(path: str, surroundings: Surroundings) -> str:
    """Return why the folder `path` is lost after a job, empty if it is kept.

    path: absolute, without symbolic links.
    """
    mount = _find_mount(path, surroundings.mountinfo)
    if mount is None:
        # In a container a folder is lost unless something proves that it is kept.
        return "the mounts of this container cannot be read" if surroundings.is_container else ""
    if _EMPTY_DIR in mount.root:
        return "it is on an emptyDir volume, which Kubernetes deletes with the pod"
    if _is_private(path, mount, surroundings):
        return "it is in the private folder of the job, which AWX deletes"
    if mount.fstype in _MEMORY:
        return f"it is in memory ({mount.fstype})"
    if surroundings.is_container:
        return _explain_loss_in_container(mount)
    return ""


def _is_private(path: str, mount: _Mount, surroundings: Surroundings) -> bool:
    """Return whether a folder belongs to the private folder of an AWX job."""
    if surroundings.is_awx_job and mount.point == _RUNNER:
        return True
    return any(_AWX_FOLDER.search(part) for part in (path, mount.root))


def _explain_loss_in_container(mount: _Mount) -> str:
    if mount.point == "/":
        return "it is inside the container"
    if mount.fstype in _LAYERS:
        return "it is on an overlay mount, whose changes go with the container"
    if _ANONYMOUS.search(mount.root):
        return "it is on a volume without a name, which is deleted with the container"
    return ""


def _find_mount(path: str, mountinfo: str) -> _Mount | None:
    """Return the mount that `path` is on, None if it cannot be found."""
    found: _Mount | None = None
    # Not by splitlines: mountinfo has other line breaks in paths as they are.
    for line in mountinfo.split("\n"):
        mount = _parse_mount(line)
        if mount is None or not _contains(mount.point, path):
            continue
        # Of two mounts on one folder, the later one hides the other.
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def _parse_mount(line: str) -> _Mount | None:
    before, _separator, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if len(left) < 5 or not right[0]:
        return None
    return _Mount(_unescape(left[3]), _unescape(left[4]), right[0])


def _unescape(path: str) -> str:
    def replace(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 8) & 0xFF])

    return os.fsdecode(_ESCAPED.sub(replace, os.fsencode(path)))


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def find_loss(path: str) -> str:
    """Return why the folder `path`, which need not exist yet, is lost after this job."""
    return explain_loss(os.path.realpath(path), read_surroundings())


def describe_loss(path: str, reason: str, changes: int) -> str:
    """Return a sentence that says that the folder `path` is lost, and what to do.

    changes: how many changes the journal in it will have.
    """
    too_long = ""
    if changes > SAFE_CHANGES:
        too_long = f", and above {SAFE_CHANGES} changes it may be too long for the artifacts"
    return (
        f"The journal in {make_printable(path)} is lost after this job, "
        f"because {reason}{too_long}: {_ADVICE}"
    )


def describe_refusal(path: str, reason: str) -> str:
    """Return the same for a run that requires a folder that is kept."""
    return (
        "Nothing was changed, because orphan_cleanup_require_durable_output is set and the journal "
        f"in {make_printable(path)} would be lost after this job ({reason}): {_ADVICE}"
    )
