"""Writes a tarball of `ansible-galaxy collection build` again, with the same bytes everywhere.

Usage: python -m release.tarball BUILT FOLDER

SOURCE_DATE_EPOCH is the time of all files in it. `ansible-galaxy` itself writes the times of the
clone, the time of the build, and the files in the order in which the file system lists them.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import typing as t
from pathlib import Path

_MANIFEST, _FILES = "MANIFEST.json", "FILES.json"
_FOLDER, _PROGRAM, _DATA, _LINK = 0o755, 0o755, 0o644, 0o777


def normalize(built: Path, target: Path, epoch: int) -> None:
    """Write the tarball `built` again as `target`.

    epoch: the time of all files in it, in seconds since 1970.
    """
    with tarfile.open(built) as source:
        members = {member.name: member for member in source.getmembers()}
        contents = {name: _read(source, member) for name, member in members.items()}
    contents[_FILES] = _sort_files(contents[_FILES])
    contents[_MANIFEST] = _set_checksum(contents[_MANIFEST], contents[_FILES])
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in _order(members):
            content = contents[name]
            tar.addfile(_describe(members[name], len(content), epoch), io.BytesIO(content))
    # The name of a file and the time are part of the header too.
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=epoch) as zipped,
    ):
        zipped.write(packed.getvalue())


def _read(source: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = source.extractfile(member) if member.isfile() else None
    return file.read() if file else b""


def _order(names: t.Iterable[str]) -> list[str]:
    """Return the names in their order: what describes the others comes first."""
    others = sorted(set(names) - {_MANIFEST, _FILES})
    return [_MANIFEST, _FILES, *others]


def _describe(member: tarfile.TarInfo, size: int, epoch: int) -> tarfile.TarInfo:
    """Return a member without what differs from machine to machine."""
    described = tarfile.TarInfo(member.name)
    described.type = member.type
    described.linkname = member.linkname
    described.size = size
    described.mtime = epoch
    described.mode = _choose_mode(member)
    return described


def _choose_mode(member: tarfile.TarInfo) -> int:
    if member.isdir():
        return _FOLDER
    if member.issym():
        return _LINK
    return _PROGRAM if member.mode & stat.S_IXUSR else _DATA


def _sort_files(content: bytes) -> bytes:
    """Return FILES.json with its entries in the order of their names."""
    document = json.loads(content)
    document["files"].sort(key=lambda entry: entry["name"])
    return _dump(document)


def _set_checksum(content: bytes, files: bytes) -> bytes:
    """Return MANIFEST.json with the checksum of FILES.json."""
    document = json.loads(content)
    document["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(files).hexdigest()
    return _dump(document)


def _dump(document: dict[str, t.Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def main(built: str, folder: str) -> int:
    target = Path(folder) / Path(built).name
    target.parent.mkdir(parents=True, exist_ok=True)
    normalize(Path(built), target, int(os.environ["SOURCE_DATE_EPOCH"]))
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
