"""Which requests are sent about the amounts of a server, and no more than are needed."""

from __future__ import annotations

import dataclasses as d
import types
import typing as t

import pytest

from .......plugins.module_utils._common.parallel import ReadOnce
from .......plugins.module_utils._core.clients.other_services import CyborgReader
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.other_services import ServerPort
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED, ListedAmounts, Scope
from .......plugins.module_utils._core.reading.order import PROOF_OF_SERVER, walk
from .......plugins.module_utils._core.reading.servers import Context, Look
from .......plugins.module_utils._core.reading.sources import Clients, Sources
from ...world import CLAIM, FLAVOR, World, answer

# The rows from the tree of the host to the devices.
AMOUNTS = PROOF_OF_SERVER[1:10]
MORE = {**CLAIM, "VCPU": 7}
NO_DISK = {"VCPU": 1, "MEMORY_MB": 512}
ALWAYS = ["tree", "image", "interfaces", "ports"]
PROFILE = d.replace(FLAVOR, extra_specs={"accel:device_profile": "fpga"})


class Site(World):
    """A host, and readers that record what they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = self.host("compute-1"), self.host("compute-2")
        self.asked: list[str] = []
        self.trees = ReadOnce(self.query_host_tree)

    def query_host_tree(self, root: str) -> t.Any:
        return self._record("tree", answer("GET", 200, self.host_tree(root)))

    def _record(self, question: str, answered: t.Any) -> t.Any:
        self.asked.append(question)
        return answered

    def made(self, held: t.Mapping[str, int] = CLAIM, **fields: t.Any) -> str:
        return self.hold(self.server(self.here, **fields), self.here, amounts=held)

    def look_up(self, server: str, fresh: bool = False, **context: t.Any) -> list[str]:
        """Return what is asked about a server."""
        snapshot = self.snapshot()
        known = snapshot.evidence[server]
        blank = dict.fromkeys(
            ("shape", "interfaces", "server_ports", "attachments", "root_volume"), NOT_ASKED
        )
        subject = d.replace(known, **blank)
        readers: dict[str, t.Any] = {
            "get_server_with_image_properties": ("image", known.shape),
            "list_attached_port_uuids": ("interfaces", known.interfaces),
            "list_ports": ("ports", known.server_ports),
            "list_attachments": ("attachments", known.attachments),
            "list_instance_actions": ("actions", known.actions),
            "get_root_volume": ("volume", known.root_volume),
            "get_device_profile": ("profile", answer("GET", 404)),
            "list_accelerator_requests": ("accelerators", answer("GET", 200, ())),
        }
        service: t.Any = types.SimpleNamespace(query_host_tree=self.query_host_tree)
        for name, (question, answered) in readers.items():
            setattr(service, name, lambda uuid, row=(question, answered): self._record(*row))
        index = ListingsIndex(snapshot)
        given = Context(
            index=index,
            scope=context.pop("scope", Scope()),
            fresh=fresh,
            **context,
        )
        sources = Sources(Clients(service, service, service, service, service), index, ())
        sources.host_trees = self.trees
        look = Look(given, server, known.allocation)
        look.evidence = subject
        walk(AMOUNTS, sources, look)
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture(name="site")
def _site() -> Site:
    return Site()


def test_server_with_what_its_flavor_says_needs_no_request(site: Site) -> None:
    assert site.look_up(site.made()) == []
    assert site.look_up(site.made(NO_DISK, image=None, volumes=("v",))) == []


@pytest.mark.parametrize(
    ("held", "fields", "more"),
    [
        (MORE, {}, []),
        (MORE, {"image": None, "volumes": ("v",)}, ["attachments", "volume"]),
        (MORE, {"volumes": ("v",)}, ["attachments"]),
        (MORE, {"flavor": PROFILE}, ["profile", "accelerators"]),
    ],
)
def test_only_what_may_decide_is_asked(
    site: Site, held: dict[str, int], fields: dict[str, t.Any], more: list[str]
) -> None:
    assert site.look_up(site.made(held, **fields)) == [*ALWAYS, *more]


def test_cinder_is_not_asked_while_the_root_disk_is_unknown(site: Site) -> None:
    server = site.made(MORE, image=None, volumes=("v", "w"), root_device=None)

    assert site.look_up(server) == [*ALWAYS, "attachments"]


def test_profile_of_a_port_is_asked_for(site: Site) -> None:
    server = site.made(MORE)
    site.ports[server] = (ServerPort("p", "accelerator-direct", (), device_profile="fpga"),)

    assert site.look_up(server) == [*ALWAYS, "profile", "accelerators"]


def test_tree_is_read_once_for_all_servers_of_a_host(site: Site) -> None:
    assert site.look_up(site.made(MORE)) == ALWAYS
    assert site.look_up(site.made(MORE)) == ALWAYS[1:]


@pytest.mark.parametrize(
    ("context", "asks"),
    [
        ({}, False),
        ({"with_amounts": True}, True),
        ({"with_amounts": True, "fresh": True}, True),
        ({"listed_amounts": "differing"}, True),
        ({"listed_amounts": "settled"}, False),
        # Right before a write no listing replaces a lookup.
        ({"listed_amounts": "settled", "with_amounts": True, "fresh": True}, True),
        ({"scope": "named"}, True),
        # Other renewed proofs name their consumers too.
        ({"scope": "named", "fresh": True}, False),
    ],
    ids=str,
)
def test_server_that_seems_right_is_asked_for_where_more_is_to_be_known(
    site: Site, context: dict[str, t.Any], asks: bool
) -> None:
    server = site.made()
    listed = {
        "differing": ListedAmounts(differing=(server,)),
        "settled": ListedAmounts(candidates={server: ""}),
    }
    context = dict(context)
    if "listed_amounts" in context:
        context["listed_amounts"] = listed[context["listed_amounts"]]
    if "scope" in context:
        context["scope"] = Scope(consumers=(server,))

    assert site.look_up(server, **context) == (ALWAYS if asks else [])


def test_server_with_a_child_or_without_its_host_is_asked_for(site: Site) -> None:
    child = site.provider("child", site.here)
    nested = site.hold(site.made(), child, amounts={"CUSTOM_VF": 1})

    assert site.look_up(nested) == ALWAYS
    assert site.look_up(site.server(site.here)) == ALWAYS[1:]
    assert site.look_up(site.server(site.here, site.there)) == ALWAYS[1:]


def test_unsettled_server_and_one_on_two_hosts_are_not_asked_for(site: Site) -> None:
    assert site.look_up(site.made(MORE, task_state="resize_prep")) == []
    assert site.look_up(site.hold(site.made(MORE), site.there)) == []


def test_cyborg_that_the_catalogue_lacks_is_no_error() -> None:
    assert CyborgReader(None).get_device_profile("x") == NOT_ASKED
