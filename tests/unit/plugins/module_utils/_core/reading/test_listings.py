"""Which hosts are looked up, and how often."""

import types
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.reading.listings import HostLookups
from ...world import World, answer


class Site(World):
    """A host, and a provider that may belong to another one."""

    def __init__(self) -> None:
        super().__init__()
        self.here = self.host("compute-1")
        self.server(self.here, self.here)
        self.gone = self.provider("gone.example")
        self.asked: list[str] = []
        self.searched: list[str] = []
        self.found: tuple[str, ...] = ()

    def lookups(self, status: int = 404, **changes: t.Any) -> HostLookups:
        def get_host(name: str) -> t.Any:
            self.asked.append(name)
            return answer(f"GET /os-hosts/{name}", status)

        def search_nodes(name: str) -> t.Any:
            self.searched.append(name)
            return answer("GET /os-hypervisors?…", 200, self.found)

        nova = types.SimpleNamespace(get_host=get_host, search_nodes=search_nodes)
        self.index = ListingsIndex(self.listings(host_lookups={}, **changes))
        return HostLookups(t.cast("t.Any", nova), self.index.listings)


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_a_host_is_looked_up_once(site: Site) -> None:
    lookups = site.lookups()
    lookups.look_up(["b", "a"])
    lookups.look_up(["a", "c"])

    assert sorted(site.asked) == ["a", "b", "c"]
    assert set(lookups.answers) == {"a", "b", "c"}


def test_a_root_without_a_node_is_looked_up_with_and_without_its_domain(site: Site) -> None:
    lookups = site.lookups()
    lookups.look_up_roots(site.index, [site.gone, site.here])
    lookups.search_roots(site.index, [site.gone])

    assert sorted(site.asked) == ["gone", "gone.example"]
    assert site.searched == ["gone.example"]


def test_an_unsound_reading_looks_up_no_root(site: Site) -> None:
    lookups = site.lookups(migrations=answer("GET /os-migrations", 500))
    lookups.look_up_roots(site.index, [site.gone])

    assert site.asked == []


@pytest.mark.parametrize(
    ("found", "asked"),
    [(("in-another-cell-2",), []), ((), ["gone", "gone.example"])],
    ids=["unexplained", "without a service"],
)
def test_only_unexplained_hosts_that_listings_leave_out_end_the_lookups_of_roots(
    site: Site, found: tuple[str, ...], asked: list[str]
) -> None:
    site.found = found
    lookups = site.lookups(status=200)
    lookups.look_up(["in-another-cell"])
    site.asked.clear()
    lookups.look_up_roots(site.index, [site.gone])

    assert sorted(site.asked) == asked
