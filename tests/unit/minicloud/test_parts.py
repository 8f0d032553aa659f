# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real Cinder and Cyborg, and hosts with devices, are only in clouds that ask for them."""

from __future__ import annotations

import typing as t

import pytest
from minicloud_ctl import configs, cyborg, install, nested, parts, releases, services
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths

if t.TYPE_CHECKING:
    from pathlib import Path

NESTED = {"nova": "first", "cell": "cell1", "running": True, "driver": nested.DRIVER}
PLAIN = {"nova": "first", "cell": "cell1", "running": True}


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "home", tmp_path / "venv")


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that would have been installed."""
    installed: list[str] = []
    monkeypatch.setattr(install, "install_part", lambda _paths, part: installed.append(part))
    return installed


def list_names(paths: Paths) -> set[str]:
    state = states.load(paths)
    return {service.name for service in services.all_services(paths, state)}


def test_part_gets_a_port_of_its_own_once(paths: Paths, without_packages: list[str]) -> None:
    states.create(paths)
    parts.prepare(paths, ["cinder"])
    port = states.load(paths).ports["cinder"]
    parts.prepare(paths, ["cinder", "neutron"])

    state = states.load(paths)
    assert (state.parts, state.ports["cinder"]) == (["cinder", "neutron"], port)
    assert len(set(state.ports.values())) == len(state.ports)
    assert without_packages == ["cinder", "cinder", "neutron"]


def test_services_of_a_part_are_only_in_a_cloud_that_has_it(
    paths: Paths, without_packages: list[str]
) -> None:
    states.create(paths)
    before = list_names(paths)
    parts.prepare(paths, ["cinder", "cyborg"])

    added = list_names(paths) - before
    assert added == {*services.PROCESSES["cinder"], *services.PROCESSES["cyborg"]}


def test_only_hosts_with_devices_have_an_agent_of_cyborg(
    paths: Paths, without_packages: list[str]
) -> None:
    states.create(paths)
    parts.prepare(paths, ["cyborg"])
    with states.changing(paths) as state:
        state.computes = {"nested-1": dict(NESTED), "compute-1": dict(PLAIN)}

    (agent,) = services.cyborg_agents(paths, states.load(paths))
    assert agent.host == "nested-1"
    cyborg.write_config(paths, states.load(paths))
    folder = configs.part_folder(paths, "cyborg")
    assert agent.argv[3::2] == [str(folder / "cyborg.conf"), str(folder / "hosts/nested-1.conf")]
    assert "host = nested-1" in (folder / "hosts/nested-1.conf").read_text()


def test_option_that_is_given_several_times_has_a_line_for_each(tmp_path: Path) -> None:
    configs.ini(tmp_path / "nova.conf", {"pci": {"alias": ["a", "b"]}})

    assert (tmp_path / "nova.conf").read_text().splitlines()[:3] == [
        "[pci]",
        "alias = a",
        "alias = b",
    ]


def test_only_hosts_with_devices_say_so_in_their_configuration(paths: Paths) -> None:
    for host, driver in (("nested-1", nested.DRIVER), ("compute-1", "")):
        configs.write_compute(paths, host, "first", driver)
    folder = configs.nova_folder(paths, "first") / "hosts"

    assert "device_spec" in (folder / "nested-1.conf").read_text()
    assert "device_spec" not in (folder / "compute-1.conf").read_text()


def test_release_without_devices_is_refused() -> None:
    nested.check(releases.NEWEST)
    with pytest.raises(MinicloudError, match="train has no hosts with devices"):
        nested.check(releases.RELEASES["train"])
