"""Adds the collection itself to a CycloneDX document of what users install for it.

Usage: python -m release.sbom ENVIRONMENT TARBALL PINNED

ENVIRONMENT: what `cyclonedx-py environment` wrote about an environment with nothing else.
PINNED: the requirements of that environment.

Prints the document: the collection with all its files, and the libraries with their dependencies.
"""

import hashlib
import json
import re
import sys
import tarfile
import typing as t
from pathlib import Path

# What users install themselves. The rest comes with it.
_DIRECT = ("ansible-core", "jmespath", "openstacksdk")

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)

Document = dict[str, t.Any]


def build_document(environment: Document, tarball: Path, pinned: str) -> Document:
    """Return the whole document."""
    manifest, files = _read_tarball(tarball)
    collection = manifest["collection_info"]
    name = f"{collection['namespace']}.{collection['name']}"
    reference = f"{name}@{collection['version']}"
    names = {_normalize(found) for found in _PIN.findall(pinned)}
    components = [
        component
        for component in environment["components"]
        # The environment also has the tool that installed the others.
        if _normalize(component["name"]) in names
    ]
    references = {component["bom-ref"] for component in components}
    direct = [
        component["bom-ref"] for component in components if _normalize(component["name"]) in _DIRECT
    ]
    dependencies = [
        dependency for dependency in environment["dependencies"] if dependency["ref"] in references
    ]
    return {
        **environment,
        "metadata": {
            **environment["metadata"],
            "component": {
                "type": "application",
                "bom-ref": reference,
                "group": collection["namespace"],
                "name": collection["name"],
                "version": collection["version"],
                "description": collection["description"],
                "licenses": [{"license": {"id": "GPL-3.0-or-later"}}],
                "hashes": [_describe_hash(_hash(tarball.read_bytes()))],
                "components": [_describe_file(entry) for entry in files if _is_file(entry)],
            },
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": sorted(direct)}, *dependencies],
    }


def _read_tarball(path: Path) -> tuple[Document, list[Document]]:
    """Return MANIFEST.json, and the files of FILES.json."""
    with tarfile.open(path) as tar:
        documents = []
        for name in ("MANIFEST.json", "FILES.json"):
            file = tar.extractfile(name)
            assert file is not None
            documents.append(json.load(file))
    manifest, files = documents
    return manifest, files["files"]


def _is_file(entry: Document) -> bool:
    return bool(entry["ftype"] == "file")


def _describe_file(entry: Document) -> Document:
    return {
        "type": "file",
        "bom-ref": f"file:{entry['name']}",
        "name": entry["name"],
        "hashes": [_describe_hash(entry["chksum_sha256"])],
    }


def _describe_hash(content: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": content}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _normalize(name: str) -> str:
    """Return the name of a distribution in its canonical form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(environment: str, tarball: str, pinned: str) -> int:
    # Only the environment of `make sbom` has it.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    document = build_document(
        json.loads(Path(environment).read_text(encoding="utf-8")),
        Path(tarball),
        Path(pinned).read_text(encoding="utf-8"),
    )
    text = json.dumps(document, indent=1, sort_keys=True)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error:
        raise SystemExit(f"The document does not match the schema of CycloneDX: {error}")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
