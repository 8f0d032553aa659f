# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a folder, and the journal in it, outlives the job that writes there."""

from __future__ import annotations

import dataclasses as d
import json
import os
import re
import subprocess

from ..._common.text import make_printable

# The last of several mounts on one folder is the one that is seen.
_FINDMNT = ("findmnt", "--json", "--output", "FSROOT,TARGET,FSTYPE", "--target")
_SECONDS = 30

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

# The journal of so many changes fits into a pack with certainty.
SAFE_CHANGES = 2000

_ADVICE = (
    "mount a folder that is kept, and set orphan_cleanup_output_dir to it "
    "(https://github.com/osops/ansible-placement/blob/main/docs/awx.md#keep-the-journals)."
)


@d.dataclass(frozen=True)
class Mount:
    """What a folder is on.

    root: the folder that is mounted, as a path in its file system.
    """

    root: str
    point: str
    fstype: str


def find_loss(path: str) -> str:
    """Return why the folder `path`, which need not exist yet, is lost after this job."""
    path = os.path.realpath(path)
    is_awx_job = bool(os.environ.get(_AWX))
    is_marked = any(os.path.exists(marker) for marker in MARKERS)
    is_container = is_awx_job or is_marked or bool(os.environ.get(_KUBERNETES))
    return explain_loss(path, _find_mount(path), is_container, is_awx_job)


def _find_mount(path: str) -> Mount | None:
    """Return the mount that `path` is on; None without findmnt, as on macOS."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    try:
        # The process of a task has no module that would run it.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            [*_FINDMNT, path], capture_output=True, check=True, timeout=_SECONDS
        )
        found = json.loads(done.stdout)["filesystems"][-1]
        return Mount(found["fsroot"], found["target"], found["fstype"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None


def explain_loss(
    path: str, mount: Mount | None, is_container: bool, is_awx_job: bool = False
) -> str:
    """Return why the folder `path` is lost after a job, empty if it is kept.

    path: absolute, without symbolic links.
    """
    if mount is None:
        # In a container a folder is lost unless something proves that it is kept.
        return "the mounts of this container cannot be read" if is_container else ""
    if _EMPTY_DIR in mount.root:
        return "it is on an emptyDir volume, which Kubernetes deletes with the pod"
    is_private = any(_AWX_FOLDER.search(part) for part in (path, mount.root))
    if is_private or (is_awx_job and mount.point == _RUNNER):
        return "it is in the private folder of the job, which AWX deletes"
    if mount.fstype in _MEMORY:
        return f"it is in memory ({mount.fstype})"
    return _explain_loss_in_container(mount) if is_container else ""


def _explain_loss_in_container(mount: Mount) -> str:
    if mount.point == "/":
        return "it is inside the container"
    if mount.fstype in _LAYERS:
        return "it is on an overlay mount, whose changes go with the container"
    if _ANONYMOUS.search(mount.root):
        return "it is on a volume without a name, which is deleted with the container"
    return ""


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
