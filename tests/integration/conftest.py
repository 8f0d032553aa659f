"""A real cloud for the tests, and the two ways to reach it: playbooks and single modules.

Each session makes a new cloud in a folder of its own, one for each worker of pytest-xdist. With
MINICLOUD_HOME set, the existing one is used and kept.
"""

import os
import subprocess
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from minicloud_ctl import releases
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from . import libvirt as real
from .hypervisor import Host
from .interposer import Wires, interposed
from .libvirt import Libvirt
from .local_server import Webhook
from .strays import Strays
from .support import ROOT, Ansible, Minicloud, Placement
from .world import World


@pytest.fixture(scope="session")
def own_cloud() -> Iterator[Minicloud]:
    """The cloud of this process, which need not run."""
    kept = os.environ.get("MINICLOUD_HOME")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    cloud = Minicloud(
        ROOT, Path(kept or ROOT / ".minicloud" / "integration") / worker, kept=bool(kept)
    )
    cloud.forget()
    # Installed here, so that a failed installation is not repeated for each module.
    cloud.run("install")
    yield cloud
    cloud.forget()


@pytest.fixture(scope="module")
def minicloud(own_cloud: Minicloud, request: pytest.FixtureRequest) -> Iterator[Minicloud]:
    """The running cloud.

    A module with OWN_CLOUD gets a new one that no other module uses afterwards. So does a module
    with REAL_PARTS, the names of real parts that it needs, such as "neutron", and one with
    WITHOUT_DATE, whose services answer without a Date, as behind uWSGI.
    """
    alone = _needs_own_cloud(request.module)
    parts = getattr(request.module, "REAL_PARTS", ())
    for part in parts:
        if not releases.choose().part(part).exists():
            pytest.skip(f"the minicloud has no real {part.capitalize()} for this release")
    if alone:
        own_cloud.forget()
    options = [f"--with={part}" for part in parts]
    if getattr(request.module, "WITHOUT_DATE", False):
        options.append("--without-date")
    own_cloud.run("up", *options)
    yield own_cloud
    if alone:
        own_cloud.forget()


@pytest.fixture(scope="module")
def connection(minicloud: Minicloud) -> t.Any:
    """The tests' own admin connection."""
    return Connection(
        config=OpenStackConfig(config_files=[str(minicloud.clouds_yaml)]).get_one("minicloud")
    )


@pytest.fixture(scope="module")
def placement(connection: t.Any) -> Placement:
    return Placement(connection.placement)


@pytest.fixture
def ansible(minicloud: Minicloud, tmp_path: Path) -> Ansible:
    """Ansible as a user runs it, in an empty current directory."""
    return Ansible(ROOT, tmp_path, minicloud.environment)


@pytest.fixture(scope="module")
def world(minicloud: Minicloud) -> Iterator[World]:
    """The cloud, with methods that change it until the end of the module."""
    world = World(minicloud.home)
    yield world
    world.close()


@pytest.fixture(scope="module")
def libvirt() -> Iterator[Libvirt]:
    yield from real.running()


@pytest.fixture(scope="module")
def keeper() -> Iterator[subprocess.Popen[t.Any]]:
    """The first process of the namespace that contains the processes of a hypervisor."""
    yield from real.namespace()


@pytest.fixture
def host(libvirt: Libvirt, keeper: subprocess.Popen[t.Any], tmp_path: Path) -> Host:
    """A hypervisor without guests and without a cloud."""
    libvirt.forget()
    return Host(libvirt, real.Inside(keeper, tmp_path), tmp_path)


@pytest.fixture
def wires(minicloud: Minicloud, ansible: Ansible) -> Iterator[Wires]:
    """Interposers between Ansible and the two services."""
    with interposed(ansible, minicloud) as wires:
        yield wires


@pytest.fixture(scope="module")
def few(
    minicloud: Minicloud, placement: Placement, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strays]:
    """Three orphans and the plan to remove them: one request writes them all."""
    yield from _strays(minicloud, placement, tmp_path_factory, 3)


@pytest.fixture
def strays(few: Strays) -> Iterator[Strays]:
    """Three orphans, with their allocations restored before each test."""
    few.release()
    few.claim()
    yield few
    few.others_are_unchanged()


@pytest.fixture(scope="module")
def healthy(minicloud: Minicloud) -> None:
    minicloud.scenario("healthy")


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as webhook:
        yield webhook


@pytest.fixture(scope="module")
def many(
    minicloud: Minicloud, placement: Placement, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strays]:
    """Twenty orphans and the plan to remove them, which needs three requests."""
    yield from _strays(minicloud, placement, tmp_path_factory, 20)


def _strays(
    minicloud: Minicloud, placement: Placement, tmp_path_factory: pytest.TempPathFactory, count: int
) -> Iterator[Strays]:
    placement.needs("1.38", "unknown consumers can be proven")
    minicloud.scenario("healthy")
    strays = Strays(
        Ansible(ROOT, tmp_path_factory.mktemp("strays"), minicloud.environment), placement, count
    )
    yield strays
    strays.release()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run modules with a cloud of their own first, and tests without a cloud last.

    Before all of them come two files that take minutes, one of which runs unit tests itself.

    Those take longest, all of them less than the situations, and with these at the end the workers
    finish at the same time.
    """
    items.sort(key=_rank)


def _needs_own_cloud(module: t.Any) -> bool:
    names = ("OWN_CLOUD", "REAL_PARTS", "WITHOUT_DATE")
    return any(getattr(module, name, None) for name in names)


def _rank(item: pytest.Item) -> int:
    if item.path.name in ("test_scenarios.py", "test_oldest_python.py"):
        return -1
    if _needs_own_cloud(getattr(item, "module", None)):
        return 0
    return 2 if {"integration", "attacks"}.isdisjoint(item.path.parts) else 1
