"""The foundation of the integration tests.

It has the minicloud, `ansible-playbook` and `ansible`, and reads Placement without our code.
"""

import dataclasses as d
import json
import os
import re
import shlex
import subprocess
import sys
import typing as t
import urllib.request
import uuid
from pathlib import Path

import pytest
from minicloud_ctl.releases import at_most

from ...plugins.module_utils._core.models.kinds import CONDITION_KINDS, DRIFT_KINDS, ORPHAN_KINDS
from ...plugins.module_utils._core.run.folder import STAGES
from ..unit.plugins.modules.returned import find_undocumented
from .forks import run_forked

ROOT = Path(__file__).parents[2]
# Each kind that a run can change.
EVERY_KIND = {
    "orphan_cleanup_remediate_kinds": [
        kind.name
        for kind in (*ORPHAN_KINDS, *DRIFT_KINDS, *CONDITION_KINDS)
        if kind.by_default != "report"
    ]
}


class Minicloud:
    """The small OpenStack of `tests/minicloud`, through its command line."""

    def __init__(self, root: Path, home: Path, kept: bool) -> None:
        self.root = root
        self._kept = kept
        self._command = [str(root / "tests" / "minicloud" / "minicloud"), "--home", str(home)]
        self.home = home
        # The scenarios that need a newer release.
        self.left_out: set[str] = set()

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"minicloud {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def forget(self) -> None:
        """Stop the cloud and delete everything in it, unless it is to be kept."""
        if not self._kept:
            self.run("down", "--purge")

    @property
    def environment(self) -> dict[str, str]:
        """The `OS_*` variables of its administrator."""
        lines = (shlex.split(line)[1] for line in self.run("env").splitlines())
        return dict(line.split("=", 1) for line in lines)

    @property
    def clouds_yaml(self) -> Path:
        return Path(self.environment["OS_CLIENT_CONFIG_FILE"])

    @property
    def ports(self) -> dict[str, int]:
        """The port of each service."""
        return json.loads((self.home / "state.json").read_text())["ports"]

    @property
    def nova_manage(self) -> list[str]:
        """The command that an operator has on a controller."""
        return [*self._command, "nova-manage"]

    def scenario(self, *names: str) -> None:
        told = self.run("scenario", *names)
        self.left_out |= {line.split()[0] for line in told.splitlines() if " left out: " in line}

    def needs_compute(self, microversion: str, why: str) -> None:
        """Skip the test if Nova is older than this."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['nova-api']}/") as answer:
            newest = next(
                known["version"] for known in json.load(answer)["versions"] if known["id"] == "v2.1"
            )
        major, minor = map(int, newest.split("."))
        _needs("compute", microversion, (major, minor), why)

    def truth(self, name: str) -> dict[str, t.Any]:
        """Return the ground truth of a scenario, with every allocation in it.

        The test is skipped if its cloud is too old for it.
        """
        path = self.home / "scenarios" / f"{name}.json"
        if not path.exists() and name in self.left_out:
            pytest.skip(f"this release is too old for the scenario {name}")
        return json.loads(path.read_text())


def _needs(service: str, microversion: str, newest: tuple[int, int], why: str) -> None:
    if at_most(microversion, newest) != microversion:
        here = f"this release has {newest[0]}.{newest[1]}"
        pytest.skip(f"{why} only from {service} {microversion} on; {here}")


class Placement:
    """Placement, queried directly."""

    def __init__(self, adapter: t.Any) -> None:
        self._adapter = adapter
        self.newest: tuple[int, int] = adapter.get_endpoint_data().max_microversion

    def needs(self, microversion: str, why: str) -> None:
        """Skip the test if Placement is older than this."""
        _needs("Placement", microversion, self.newest, why)

    def get(self, path: str, microversion: str = "1.38") -> dict[str, t.Any]:
        answer = self._adapter.get(path, microversion=at_most(microversion, self.newest))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, consumer: str, body: dict[str, t.Any], microversion: str = "1.28") -> None:
        answer = self._adapter.put(f"/allocations/{consumer}", json=body, microversion=microversion)
        assert answer.status_code == 204, answer.text

    def change(
        self,
        method: str,
        path: str,
        body: dict[str, t.Any] | None = None,
        microversion: str = "1.38",
    ) -> None:
        """Change something other than an allocation."""
        answer = self._adapter.request(
            path, method, json=body, microversion=at_most(microversion, self.newest)
        )
        assert answer.status_code < 300, answer.text

    def create_provider(
        self,
        name: str,
        inventories: dict[str, t.Any],
        *,
        parent: str | None = None,
        traits: t.Sequence[str] = (),
        aggregate: str | None = None,
    ) -> str:
        """Create a provider, in the aggregate if one is given, and return its uuid."""
        created = str(uuid.uuid4())
        self.change(
            "POST",
            "/resource_providers",
            {"uuid": created, "name": name, **({"parent_provider_uuid": parent} if parent else {})},
        )
        contents = {
            "inventories": inventories,
            "traits": list(traits),
            "aggregates": [aggregate] if aggregate else [],
        }
        for part, content in contents.items():
            generation = self.get(f"/resource_providers/{created}")["generation"]
            self.change(
                "PUT",
                f"/resource_providers/{created}/{part}",
                {"resource_provider_generation": generation, part: content},
            )
        return created

    def providers(self) -> dict[str, str]:
        """Return provider uuids by name."""
        return {
            entry["name"]: entry["uuid"]
            for entry in self.get("/resource_providers")["resource_providers"]
        }

    def allocation(self, consumer: str) -> dict[str, t.Any]:
        return self.get(f"/allocations/{consumer}")

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        return {
            provider: allocation["resources"]
            for provider, allocation in self.allocation(consumer)["allocations"].items()
        }

    def everything(self) -> dict[str, t.Any]:
        """Return all allocations with their generations.

        They are equal before and after if and only if nobody wrote.
        """
        consumers: dict[str, t.Any] = {}
        for provider in self.providers().values():
            for consumer, allocation in self.get(f"/resource_providers/{provider}/allocations")[
                "allocations"
            ].items():
                consumers.setdefault(consumer, {})[provider] = allocation
        return consumers


@d.dataclass(frozen=True)
class Run:
    """A finished `ansible-playbook`."""

    status: int
    output: str
    folder: Path

    def read(self, name: str) -> t.Any:
        """Return the contents of one of the JSON files in its output folder."""
        return json.loads((self.folder / "orphan-cleanup" / name).read_text())

    @property
    def failed_stages(self) -> set[str]:
        """The stages that `run.json` calls failed."""
        state = self.read("run.json")
        return {name for name in STAGES if state.get(name, {}).get("failed")}

    def records(self, journal: Path) -> list[dict[str, t.Any]]:
        return [json.loads(line) for line in journal.read_text().splitlines()]

    @property
    def entries(self) -> list[dict[str, t.Any]]:
        """Everything that detection lists."""
        found = self.read("findings.json")
        return [entry for key in ("findings", "protected", "undecided") for entry in found[key]]

    def entry(self, consumer: str) -> dict[str, t.Any]:
        """Return the entry of detection about one consumer."""
        return next(entry for entry in self.entries if entry["consumer"] == consumer)

    def outcome(self, consumer: str) -> dict[str, t.Any]:
        """Return the outcome of the change of one consumer."""
        return next(
            outcome
            for outcome in self.read("remediation.json")["outcomes"]
            if outcome["consumer"] == consumer
        )

    @property
    def told(self) -> str:
        """The output in one line, without the line breaks of wrapping."""
        return " ".join(self.output.split())

    @property
    def changed(self) -> int:
        recap = next(
            line
            for line in self.output.splitlines()
            if line.startswith("localhost") and "changed=" in line
        )
        return int(recap.partition("changed=")[2].split()[0])


class Aggregate:
    """A host aggregate, deleted at the end of a `with` block."""

    def __init__(self, cloud: t.Any, name: str, *hosts: str, zone: str | None = None) -> None:
        self._cloud = cloud
        body = {"aggregate": {"name": name, "availability_zone": zone}}
        made = cloud.nova("POST", "/os-aggregates", body)["aggregate"]
        self.id, self.uuid, self.name = made["id"], made["uuid"], name
        self.path = f"/os-aggregates/{self.id}"
        self.add(*hosts)

    def do(self, action: str, content: t.Any) -> None:
        self._cloud.nova("POST", f"{self.path}/action", {action: content})

    def add(self, *hosts: str) -> None:
        for host in hosts:
            self.do("add_host", {"host": host})

    def remove(self, *hosts: str) -> None:
        for host in hosts:
            self.do("remove_host", {"host": host})

    @property
    def hosts(self) -> list[str]:
        return self._cloud.nova("GET", self.path)["aggregate"]["hosts"]

    def delete(self) -> None:
        self.remove(*self.hosts)
        self._cloud.nova("DELETE", self.path)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.delete()


def long(*values: t.Any) -> t.Any:
    """Return parameters that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.long)


class Ansible:
    """`ansible-playbook` and `ansible`, with an environment for the collection and the cloud."""

    # A command that gets others, and runs them.
    within: t.Sequence[str] = ()

    def __init__(self, root: Path, folder: Path, environment: dict[str, str]) -> None:
        self._bin = Path(sys.executable).parent
        self.folder = folder
        inherited = {
            name: value
            for name, value in os.environ.items()
            # The width is that of a run without a terminal, whatever started the tests.
            if not name.startswith(("OS_", "ANSIBLE_")) and name != "COLUMNS"
        }
        self.environment = {
            **inherited,
            **environment,
            "ANSIBLE_COLLECTIONS_PATH": str(root / "collections"),
            "ANSIBLE_HOME": str(folder / ".ansible"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "1",
        }

    def playbook(
        self, name: str, *arguments: str, variables: dict[str, t.Any] | None = None
    ) -> Run:
        """Run `osops.placement.NAME` without a minimum age.

        Everything that the tests create is young.
        """
        young = dict(variables or {})
        # The others have another role.
        if not name.endswith(("_host", "_hypervisor")):
            for age in ("orphan_cleanup_min_age", "orphan_cleanup_unknown_min_age"):
                young.setdefault(age, 0)
        return self.command(
            "ansible-playbook", f"osops.placement.{name}", "-e", json.dumps(young), *arguments
        )

    def play(self, *plays: dict[str, t.Any], arguments: t.Sequence[str] = ()) -> Run:
        """Run a user's own plays, all of them on this machine."""
        path = self.folder / f"play-{uuid.uuid4()}.json"
        here = {"connection": "local", "gather_facts": False}
        interpreter = {"ansible_python_interpreter": sys.executable}
        path.write_text(
            json.dumps(
                [
                    {
                        "hosts": "localhost",
                        **here,
                        **play,
                        "vars": {**interpreter, **play.get("vars", {})},
                    }
                    for play in plays
                ]
            )
        )
        return self.command("ansible-playbook", str(path), *arguments)

    def module(self, name: str, /, *flags: str, **arguments: t.Any) -> dict[str, t.Any]:
        """Run one module on localhost and return its result.

        With `--diff` Ansible runs it, and its output is `printed_diff`.

        Without `--diff` this saves the second that Ansible itself takes: every playbook shows that
        Ansible and the modules work together.
        """
        if "--diff" not in flags:
            return self.direct(name, **arguments, _ansible_check_mode="--check" in flags)
        given = ("-a", json.dumps(arguments)) if arguments else ()
        interpreter = f"ansible_python_interpreter={sys.executable}"
        done = self.command(
            "ansible",
            "localhost",
            "-e",
            interpreter,
            *flags,
            "-m",
            f"osops.placement.{name}",
            *given,
        )
        diff, found, rest = done.output.partition("localhost | ")
        assert found, done.output
        outcome, _arrow, result = rest.partition(" => ")
        return {
            **json.JSONDecoder().raw_decode(result)[0],
            "failed": "FAILED" in outcome,
            "printed_diff": diff,
        }

    def started(
        self, name: str, /, *, wrapper: t.Sequence[str] = (), **arguments: t.Any
    ) -> subprocess.Popen[str]:
        """Start one module as the process that Ansible would start, to be watched or killed.

        `told` waits for its end.

        wrapper: a command that gets the command of the module, and runs it.
        """
        parameters = self.folder / f"arguments-{uuid.uuid4()}.json"
        parameters.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        return subprocess.Popen(
            [
                *wrapper,
                sys.executable,
                "-m",
                f"ansible_collections.osops.placement.plugins.modules.{name}",
                str(parameters),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.module_environment,
        )

    @property
    def module_environment(self) -> dict[str, str]:
        """Return the environment in which a module finds the collection without Ansible's help."""
        path = os.pathsep.join(
            [self.environment["ANSIBLE_COLLECTIONS_PATH"], self.environment.get("PYTHONPATH", "")]
        )
        return {**self.environment, "PYTHONPATH": path}

    def direct(self, name: str, /, **arguments: t.Any) -> dict[str, t.Any]:
        """Run one module without the seconds that Ansible itself and the imports take."""
        result = self._run_module(name, arguments)
        undocumented = find_undocumented(name, result)
        assert not undocumented, f"{name} returns without a word in RETURN: {undocumented}"
        return result

    def _run_module(self, name: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
        return run_forked(name, arguments, self.folder, self.module_environment)

    def program(self, name: str) -> str:
        return str(self._bin / name)

    def command(
        self, program: str, *arguments: str, folder: Path | None = None, **environment: str
    ) -> Run:
        """Run a program of the environment, or that with another path, as a run has printed it."""
        done = subprocess.run(
            [*self.within, self.program(program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder or self.folder,
            env={**self.environment, **environment},
        )
        return Run(done.returncode, done.stdout + done.stderr, self.folder)

    def launch(
        self, name: str, variables: t.Mapping[str, t.Any], **environment: str
    ) -> subprocess.Popen[str]:
        """Start `osops.placement.NAME` in a group of processes, to be killed with all of them."""
        # The tests themselves may run under nohup.
        command = ("env", "--default-signal=HUP", self.program("ansible-playbook"))
        return subprocess.Popen(
            [*command, f"osops.placement.{name}", "-e", json.dumps(variables)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env={**self.environment, **environment},
            start_new_session=True,
        )


def installed(folder: Path) -> tuple[Path, Path]:
    """Build the collection and install it below `folder`.

    Returns the tarball and the collections path.
    """
    galaxy, collections = (
        [str(Path(sys.executable).with_name("ansible-galaxy")), "collection"],
        folder / "collections",
    )
    subprocess.run(
        [*galaxy, "build", str(ROOT), "--output-path", str(folder)], check=True, capture_output=True
    )
    (tarball,) = folder.glob("osops-placement-*.tar.gz")
    # In another directory: inside the clone, ansible.cfg would report it as already installed.
    command = [*galaxy, "install", str(tarball), "--collections-path", str(collections)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return tarball, collections


def told(process: subprocess.Popen[str]) -> dict[str, t.Any]:
    """Return the result of a module at its end, empty when it was killed."""
    output, errors = process.communicate(timeout=120)
    assert output or process.returncode < 0, errors
    return {"failed": False, **json.loads(output)} if output else {}


def has_detected(run: Run) -> bool:
    """Return whether the role looked for findings, instead of skipping that task."""
    return re.search(r"Find orphaned allocations\] \*+ ok:", run.told) is not None


def assert_nothing_changed(run: Run, before: dict[str, t.Any], placement: Placement) -> None:
    """Assert that all allocations and their generations are unchanged.

    The output has no traceback of our own code either.
    """
    assert "Traceback" not in run.output, run.output
    now = placement.everything()
    changed = {
        consumer: (before.get(consumer), now.get(consumer))
        for consumer in before | now
        if before.get(consumer) != now.get(consumer)
    }
    assert not changed, f"what was held before and after: {changed}"
