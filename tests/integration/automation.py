"""The programs with which AWX and Event-Driven Ansible run jobs.

They are in environments of their own (`make venv-automation venv-automation-2.18`): jobs run on the
ansible-core of their execution environment, which need not be the newest.
"""

import configparser
import dataclasses as d
import json
import os
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml

from .support import Ansible

ROOT = Path(__file__).parents[2]
PATTERN = ROOT / "extensions" / "patterns" / "orphan_cleanup"
# Within a project.
PLAYBOOKS = PATTERN.relative_to(ROOT) / "playbooks"

NEWEST, OLDEST = "newest", "2.18"

# The environment that has each ansible-core. Only the newest has ansible-rulebook and
# ansible-builder.
_VENVS = {NEWEST: "automation", OLDEST: "automation-2.18"}


def program(name: str, core: str = NEWEST) -> str:
    """Return the path of a program of an environment; AUTOMATION_VENV can name that of the newest.

    Without it the test is skipped.
    """
    venv = ROOT / ".venv" / _VENVS[core]
    if core == NEWEST:
        venv = Path(os.environ.get("AUTOMATION_VENV") or venv)
    path = venv / "bin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there: run make venv-{_VENVS[core]}")
    return str(path)


def find_ansible_playbook(ansible: Ansible, core: str) -> str:
    """Return the path of an ansible-playbook with this ansible-core."""
    # The environment of the tests has the newest too, and is always there.
    if core == NEWEST:
        return ansible.program("ansible-playbook")
    return program("ansible-playbook", core)


def environment(ansible: Ansible, core: str = NEWEST) -> dict[str, str]:
    """Return the variables of a job, whose Ansible comes first in PATH."""
    folder = str(Path(program("ansible-playbook", core)).parent)
    return {**ansible.environment, "PATH": os.pathsep.join([folder, ansible.environment["PATH"]])}


class _UnsafeDumper(yaml.SafeDumper):
    """Writes every text and every key as `!unsafe`, which templates never evaluate."""


_UnsafeDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("!unsafe", text, style=None)
)


def dump_extra_variables(
    variables: t.Mapping[str, t.Any], of_template: t.Mapping[str, t.Any]
) -> str:
    """Return the extra variables of a job as AWX writes them, one document after another.

    AWX trusts only what the template itself has: a variable of the template that a survey, an
    artifact or a launch has replaced is unsafe as a whole. From ansible-core 2.19 on, an unsafe
    text is read as if it had no quotes.
    """
    parts = []
    for name, value in {**of_template, **variables}.items():
        trusted = name in of_template and of_template[name] == value
        dumper = yaml.SafeDumper if trusted else _UnsafeDumper
        parts.append(yaml.dump({name: value}, Dumper=dumper, default_flow_style=False))
    return "".join(parts)


def compute_collections_path(folder: Path, project: Path, image: Path) -> str:
    """Return the collections path of a job, as AWX computes it.

    First come the collections that the project requires. The whole `collections_path` of the
    project's own ansible.cfg follows, once for each folder in it that is not among AWX's defaults.
    Last come these defaults, which are folders of the image.

    folder: the private folder of the job.
    image: the collections of the image, in place of /usr/share/ansible/collections.
    """
    settings = configparser.ConfigParser()
    settings.read(project / "ansible.cfg")
    configured = settings.get("defaults", "collections_path", fallback="", raw=True)
    defaults = ["~/.ansible/collections", str(image)]
    own = [path for path in configured.split(":") if path and path not in defaults]
    return ":".join([str(folder / "requirements_collections"), *[configured] * len(own), *defaults])


@d.dataclass(frozen=True)
class Job:
    """A finished job: its status, its output, and the artifacts that AWX would keep."""

    status: int
    output: str
    artifacts: dict[str, t.Any]

    @property
    def told(self) -> str:
        """The output in one line, without the line breaks of wrapping."""
        return " ".join(self.output.split())


def job(
    ansible: Ansible,
    folder: Path,
    playbook: str,
    variables: dict[str, t.Any],
    check: bool = False,
    core: str = NEWEST,
    project: Path = ROOT,
    image: Path = ROOT / "collections",
    host_variables: t.Mapping[str, t.Any] | None = None,
) -> Job:
    """Run a wrapper playbook of the pattern as AWX does, in a folder like a new container.

    As in AWX, a check is a job type, surveys and the artifacts of the previous job are extra
    variables, and a job passes on what the last event of the play has of `set_stats`.

    project: the checkout, which is the current directory of the job.
    image: the folder with the collections of the execution environment.
    """
    runner = program("ansible-runner", core)
    # The current directory is the checkout, in which no test may write.
    of_template = {
        f"{role}_output_dir": str(folder / "out")
        for role in ("orphan_cleanup", "host_decommission")
    }
    (folder / "env").mkdir(parents=True)
    (folder / "env" / "extravars").write_text(dump_extra_variables(variables, of_template))
    (folder / "env" / "settings").write_text(json.dumps({"suppress_env_files": True}))
    if check:
        (folder / "env" / "cmdline").write_text("--check")
    (folder / "inventory").mkdir()
    inventory = {"localhost": host_variables or {"ansible_connection": "local"}}
    (folder / "inventory" / "hosts.json").write_text(json.dumps({"all": {"hosts": inventory}}))
    (folder / "project").symlink_to(project)
    done = subprocess.run(
        [runner, "run", str(folder), "-p", str(PLAYBOOKS / playbook), "--ident", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **environment(ansible, core),
            "ANSIBLE_COLLECTIONS_PATH": compute_collections_path(folder, project, image),
        },
        cwd=folder,
    )
    events = [
        json.loads(path.read_text())
        for path in (folder / "artifacts" / "1" / "job_events").glob("*.json")
    ]
    artifacts = [
        event["event_data"].get("artifact_data", {})
        for event in events
        if event["event"] == "playbook_on_stats"
    ]
    return Job(done.returncode, done.stdout + done.stderr, artifacts[0] if artifacts else {})
