# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real Neutron is an option: it is installed once, beside everything, and replaces the stub."""

from __future__ import annotations

import dataclasses as d
import json
import sys
import typing as t

import pytest
from minicloud_ctl import configs, install, neutron, releases, services
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

if t.TYPE_CHECKING:
    from pathlib import Path

L3 = "neutron-l3-agent"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "home", tmp_path / "venv")


def change(paths: Paths, **values: t.Any) -> states.State:
    """Write a new state with these values, and return it."""
    with states.changing(paths, new=True) as state:
        for name, value in values.items():
            setattr(state, name, value)
    return state


def list_agents(host: str, **changes: t.Any) -> dict[tuple[str, str], dict[str, t.Any]]:
    """Return the agents of a host as Neutron lists them; `changes` are for that of Open vSwitch."""
    found = {}
    for binary in neutron.BINARIES:
        found[host, binary] = {"binary": binary, "alive": True, "resources_synced": None}
    found[host, neutron.OVS].update({"resources_synced": True, **changes})
    return found


def test_stub_is_the_default(paths: Paths) -> None:
    state = change(paths)
    (stub,) = services.neutron(paths, state)
    assert (stub.name, stub.port) == ("neutron", state.ports["neutron"])
    configs.write_all(paths, state)
    assert not configs.neutron_folder(paths).exists()


def test_real_neutron_has_the_port_of_the_stub(paths: Paths) -> None:
    state = change(paths, parts=["neutron"])
    server, agents = services.neutron(paths, state)
    assert (server.name, server.port) == ("neutron-server", state.ports["neutron"])
    assert agents.port is None and str(paths.state) in agents.argv
    others = [known for known in services.all_services(paths, state) if known.kind != "neutron"]
    with_neutron = [
        known.name
        for known in others
        if str(paths.part("neutron")) in known.environment.get("PYTHONPATH", "")
    ]
    assert with_neutron == ["neutron-agents"]


def test_own_settings_of_neutron_are_kept(paths: Paths) -> None:
    state = change(paths, parts=["neutron"])
    configs.write_all(paths, state)
    local = configs.neutron_folder(paths) / "local.conf"
    local.write_text("[DEFAULT]\ndebug = true\n")
    configs.write_all(paths, state)
    assert "debug = true" in local.read_text()


def test_state_without_parts_is_read(paths: Paths) -> None:
    document = d.asdict(change(paths))
    del document["parts"], document["dead_agents"]
    paths.state.write_text(json.dumps(document))
    assert states.load(paths).parts == []


@pytest.mark.parametrize(
    ("known", "dead", "ready"),
    [
        pytest.param(list_agents("a"), {}, True, id="all report"),
        pytest.param({}, {}, False, id="none is known"),
        pytest.param(list_agents("b"), {}, False, id="another host"),
        pytest.param(list_agents("a", alive=False), {}, False, id="one is dead"),
        pytest.param(list_agents("a", resources_synced=False), {}, False, id="not in Placement"),
        pytest.param(list_agents("a", resources_synced=None), {}, False, id="not tried yet"),
        pytest.param(
            list_agents("a", alive=False), {"a": [neutron.OVS]}, True, id="dead on purpose"
        ),
        pytest.param(
            list_agents("a", alive=False), {"b": [neutron.OVS]}, False, id="dead on another host"
        ),
    ],
)
def test_agents_are_ready_when_they_report_and_are_in_placement(
    known: dict[tuple[str, str], dict[str, t.Any]], dead: dict[str, list[str]], ready: bool
) -> None:
    assert neutron.are_ready(known, ["a"], dead) is ready


def test_agents_need_the_real_neutron(paths: Paths) -> None:
    change(paths, computes={"compute-1": {}})
    with pytest.raises(MinicloudError, match="up --with neutron"):
        neutron.switch_agents(paths, "compute-1", [L3], alive=False)


def test_agents_of_an_unknown_host_are_refused(paths: Paths) -> None:
    change(paths, parts=["neutron"], computes={"compute-1": {}})
    with pytest.raises(MinicloudError, match=r"no compute host compute-9; there are: compute-1\."):
        neutron.switch_agents(paths, "compute-9", [L3], alive=False)
    assert states.load(paths).dead_agents == {}


@pytest.fixture
def calls(paths: Paths) -> Path:
    """A virtual environment whose Python creates what it should create, and records its calls."""
    recorded = paths.venv.parent / "calls"
    program = paths.venv / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"with open({str(recorded)!r}, 'a') as stream:\n"
        "    print(sys.argv[2], file=stream)\n"
        "if '--target' in sys.argv:\n"
        "    pathlib.Path(sys.argv[sys.argv.index('--target') + 1]).mkdir()\n"
    )
    program.chmod(0o755)
    return recorded


def test_neutron_is_installed_once_beside_the_environment(paths: Paths, calls: Path) -> None:
    before = sorted(paths.venv.rglob("*"))
    assert install.install_part(paths, "neutron")
    assert not install.install_part(paths, "neutron")
    assert calls.read_text().split() == ["pip", "minicloud_venv.neutron_schema"]
    assert sorted(paths.venv.rglob("*")) == before
    assert paths.part("neutron").parent == paths.venv.parent


def test_neutron_is_installed_again_when_its_requirements_differ(paths: Paths, calls: Path) -> None:
    install.install_part(paths, "neutron")
    (paths.part("neutron") / "minicloud-installed").write_text("another\n")
    (paths.part("neutron") / "old").touch()
    assert install.install_part(paths, "neutron")
    assert not (paths.part("neutron") / "old").exists()


def test_release_without_neutron_is_refused(paths: Paths) -> None:
    old = d.replace(paths, release=releases.RELEASES["train"])
    with pytest.raises(MinicloudError, match="no real Neutron for release train"):
        install.install_part(old, "neutron")


def test_part_needs_few_packages_besides_those_of_its_release() -> None:
    """pip installs them without their dependencies, so none may replace one of the environment."""
    checked = 0
    for release in releases.RELEASES.values():
        for file in map(release.part, states.PARTS):
            if not file.exists():
                continue
            pinned = list_names(release.constraints) | list_names(release.requirements)
            assert not pinned & list_names(file)
            checked += 1
    assert checked


def list_names(file: Path) -> set[str]:
    lines = file.read_text().splitlines()
    return {line.partition("==")[0].lower() for line in lines if not line.startswith("#")}
