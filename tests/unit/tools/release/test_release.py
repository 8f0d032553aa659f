"""The tarball and the bill of materials of a release."""

import hashlib
import io
import json
import tarfile
import typing as t
from pathlib import Path

import pytest
from release import sbom, tarball

EPOCH = 1_700_000_000


def hash_text(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def build(path: Path, names: list[str], mtime: int, private: bool, owner: str) -> None:
    """Write a tarball as ansible-galaxy does, in a clone of some age, order and umask."""
    contents = {"README.md": b"read\n", "plugins/run": b"#!/bin/sh\n"}
    entries = [{"name": ".", "ftype": "dir", "chksum_sha256": None}]
    for name in names:
        kind = "file" if name in contents else "dir"
        checksum = hash_text(contents[name]) if name in contents else None
        entries.append({"name": name, "ftype": kind, "chksum_sha256": checksum})
    files = json.dumps({"files": entries, "format": 1}).encode()
    named = {"namespace": "osops", "name": "placement", "description": "What it is."}
    listed = {"name": "FILES.json", "chksum_sha256": hash_text(files)}
    document = {"collection_info": {**named, "version": "9.9.9"}, "file_manifest_file": listed}
    manifest = json.dumps({**document, "format": 1}).encode()
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (("MANIFEST.json", manifest), ("FILES.json", files)):
            add(tar, name, content, mtime, 0o644, owner)
        for name in names:
            is_program = name == "plugins/run"
            mode = (0o700 if is_program else 0o600) if private else (0o755 if is_program else 0o664)
            add(tar, name, contents.get(name), mtime, mode, owner)


def add(
    tar: tarfile.TarFile, name: str, content: bytes | None, mtime: int, mode: int, owner: str
) -> None:
    member = tarfile.TarInfo(name)
    member.mtime, member.mode, member.uname = mtime, mode, owner
    if content is None:
        member.type = tarfile.DIRTYPE
    member.size = len(content or b"")
    tar.addfile(member, io.BytesIO(content or b""))


@pytest.fixture
def normalized(tmp_path: Path) -> Path:
    build(tmp_path / "built", ["README.md", "plugins", "plugins/run"], 1, True, "alice")
    tarball.normalize(tmp_path / "built", tmp_path / "one.tar.gz", EPOCH)
    return tmp_path / "one.tar.gz"


def test_same_files_give_the_same_bytes(normalized: Path, tmp_path: Path) -> None:
    build(tmp_path / "built", ["plugins", "plugins/run", "README.md"], 2, False, "bob")
    tarball.normalize(tmp_path / "built", tmp_path / "two.tar.gz", EPOCH)

    assert normalized.read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_other_contents_give_other_bytes(normalized: Path, tmp_path: Path) -> None:
    build(tmp_path / "built", ["README.md", "plugins"], 1, True, "alice")
    tarball.normalize(tmp_path / "built", tmp_path / "two.tar.gz", EPOCH)

    assert normalized.read_bytes() != (tmp_path / "two.tar.gz").read_bytes()


def test_tarball_still_matches_its_own_checksums(normalized: Path) -> None:
    """`ansible-galaxy` verifies them when it installs a collection."""
    with tarfile.open(normalized) as tar:
        read = {
            member.name: t.cast("t.IO[bytes]", tar.extractfile(member)).read()
            for member in tar.getmembers()
            if member.isfile()
        }
        modes = {member.name: member.mode for member in tar.getmembers()}
        times = {member.mtime for member in tar.getmembers()}
    manifest, files = json.loads(read["MANIFEST.json"]), json.loads(read["FILES.json"])["files"]

    assert manifest["file_manifest_file"]["chksum_sha256"] == hash_text(read["FILES.json"])
    checksums = {
        entry["name"]: entry["chksum_sha256"] for entry in files if entry["ftype"] != "dir"
    }
    assert checksums == {name: hash_text(read[name]) for name in ("README.md", "plugins/run")}
    assert (modes["README.md"], modes["plugins/run"], modes["plugins"]) == (0o644, 0o755, 0o755)
    assert times == {EPOCH}


def test_bill_names_the_collection_its_files_and_what_is_pinned(normalized: Path) -> None:
    names = ["ansible-core", "jmespath", "Jinja2", "openstacksdk", "pip"]
    environment = {
        "bomFormat": "CycloneDX",
        "metadata": {"tools": {}},
        "components": [{"bom-ref": f"{name}==1", "name": name} for name in names],
        "dependencies": [{"ref": "ansible-core==1", "dependsOn": ["Jinja2==1"]}, {"ref": "pip==1"}],
    }
    pinned = "# a comment\nansible-core==1 ; python_full_version >= '3.12'\njinja2==1\n"
    pinned += "jmespath==1\nopenstacksdk==1\n"

    document = sbom.build_document(environment, normalized, pinned)

    assert [found["name"] for found in document["components"]] == names[:-1]
    collection = document["metadata"]["component"]
    assert (collection["name"], collection["version"]) == ("placement", "9.9.9")
    content = hash_text(normalized.read_bytes())
    assert collection["hashes"] == [{"alg": "SHA-256", "content": content}]
    assert {file["name"] for file in collection["components"]} == {"README.md", "plugins/run"}
    direct = ["ansible-core==1", "jmespath==1", "openstacksdk==1"]
    assert document["dependencies"] == [
        {"ref": "osops.placement@9.9.9", "dependsOn": direct},
        {"ref": "ansible-core==1", "dependsOn": ["Jinja2==1"]},
    ]
