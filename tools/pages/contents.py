"""What the collection contains: its playbooks, roles and modules, with links to their files."""

import pathlib
import re
import typing as t

import yaml

from ..markup import format_table
from .variables import format_markup

ROOT = pathlib.Path(__file__).parents[2]
_DOCUMENTATION = re.compile(r'^DOCUMENTATION = r?"""\n(.*?)"""', re.MULTILINE | re.DOTALL)


def format_playbooks() -> str:
    """Return a table of the playbooks that users start."""
    rows = []
    for path in sorted((ROOT / "playbooks").glob("[a-z]*.yml")):
        first, *_others = yaml.safe_load(path.read_text(encoding="utf-8"))
        rows.append(_list_cells(path.stem, path, first["name"]))
    return format_table(["playbook", "what it does"], rows)


def format_roles() -> str:
    """Return a table of the roles."""
    rows = []
    for folder in sorted((ROOT / "roles").iterdir()):
        spec = yaml.safe_load((folder / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
        summary = spec["argument_specs"]["main"]["short_description"]
        rows.append(_list_cells(folder.name, folder / "README.md", summary))
    return format_table(["role", "what it does"], rows)


def format_modules() -> str:
    """Return a table of the modules."""
    rows = []
    for path in sorted((ROOT / "plugins" / "modules").glob("*.py")):
        found = _DOCUMENTATION.search(path.read_text(encoding="utf-8"))
        assert found, path
        summary = yaml.safe_load(found[1])["short_description"]
        rows.append(_list_cells(path.stem, path, summary))
    return format_table(["module", "what it does"], rows)


def _list_cells(name: str, path: pathlib.Path, summary: str) -> list[str]:
    return [f"[`{name}`]({link_page(str(path.relative_to(ROOT)))})", format_markup(summary)]


def link_page(name: str) -> str:
    """Return the address of a file that also works where the README is shown alone, as on Galaxy.

    name: its path in the repository.
    """
    return f"{read_galaxy()['repository']}/blob/main/{name}"


def link_image(name: str) -> str:
    """Return the address of an image itself, not of the page that shows it in the repository."""
    repository = read_galaxy()["repository"].replace("github.com", "raw.githubusercontent.com")
    return f"{repository}/main/{name}"


def read_galaxy() -> dict[str, t.Any]:
    return yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
