"""What is read of a host's network agents, and which of its ports count as used."""

import contextlib
import json
import typing as t

import pytest

from ......plugins.module_utils._common import clock
from ......plugins.module_utils._common.errors import CloudError
from ......plugins.module_utils._core.clients.api import Api
from ......plugins.module_utils._core.clients.other_services import list_cinder_services
from ......plugins.module_utils._core.models.nova import Aggregate, Service
from ......plugins.module_utils._core.models.other_services import OtherService
from ......plugins.module_utils._hosts.parts import (
    Agent,
    AgentReader,
    AgentResource,
    AgentWriter,
    BoundPort,
    HostParts,
    NetworkParts,
    describe_other_service,
    find_lonely_aggregates,
    find_used_ports,
    find_zone_hosts,
    list_part_warnings,
    read_network_parts,
    select_other_services,
)
from ..world import answer

AGENT = Agent("a-1", "neutron-l3-agent", "L3 agent", "old", alive=False)


class Nova:
    """Answers with one status to the lookup of any server."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked: list[str] = []

    def get_server(self, uuid: str) -> t.Any:
        self.asked.append(uuid)
        return answer(f"GET /servers/{uuid}", self.status, None)


class Neutron:
    """The agents and ports of one host; an error in place of either."""

    def __init__(self, agents: t.Any = (), ports: t.Any = ()) -> None:
        self.agents, self.ports = agents, ports

    def list_agents(self, _host: str) -> t.Any:
        return self._give(self.agents)

    def list_bound_ports(self, _host: str) -> t.Any:
        return self._give(self.ports)

    def _give(self, value: t.Any) -> t.Any:
        if isinstance(value, CloudError):
            raise value
        return value


def _read(neutron: Neutron | None) -> NetworkParts:
    return read_network_parts("old", t.cast("t.Any", neutron), t.cast("t.Any", Nova(404)))


def test_nothing_is_asked_without_a_network_service() -> None:
    assert _read(None) == NetworkParts()


def test_ports_are_read_only_for_agents_that_may_be_deleted() -> None:
    refused = CloudError("No.")

    assert _read(Neutron((), refused)) == NetworkParts()
    for neutron in (Neutron(refused), Neutron((AGENT,), refused)):
        parts = _read(neutron)
        # An agent under ports that are not known is not one that may be deleted.
        assert parts.agents == () and parts.unread.endswith(" No.")


@pytest.mark.parametrize(
    ("owner", "device", "status", "is_used"),
    [
        ("compute:nova", "s-1", 404, False),
        ("compute:nova", "s-1", 200, True),
        # Anything but Nova's own "there is none" leaves the server possible.
        ("compute:nova", "s-1", 500, True),
        ("compute:nova", "s-1", 403, True),
        ("baremetal:none", "s-1", 404, False),
        ("compute:nova", "", 200, False),
        ("network:dhcp", "dhcp-of-a-network", 404, True),
        ("network:dhcp", "reserved_dhcp_port", 404, False),
        ("network:router_interface", "r-1", 404, True),
        ("", "something", 404, True),
        ("", "", 200, False),
    ],
)
def test_ports_whose_device_may_be_there(
    owner: str, device: str, status: int, is_used: bool
) -> None:
    port = BoundPort("p-1", owner, device)
    nova = Nova(status)
    found = find_used_ports("old", t.cast("t.Any", Neutron(ports=(port,))), t.cast("t.Any", nova))

    assert found == ((port,) if is_used else ())
    assert nova.asked in ([], ["s-1"])


def _service(host: str, zone: str | None = "az1", binary: str = "nova-compute") -> Service:
    return Service(binary, host, "enabled", "up", id=f"id-of-{binary}-{host}", zone=zone)


def test_hosts_of_a_zone_have_a_nova_compute_there() -> None:
    services = [
        _service("old"),
        _service("other-zone", "az2"),
        _service("control", binary="nova-scheduler"),
        # Its cell does not answer, and its zone is not known.
        _service("silent", None),
    ]

    assert find_zone_hosts("old", "az1", services) == ()
    assert find_zone_hosts("old", "az1", [*services, _service("new")]) == ("new",)
    assert find_zone_hosts("old", None, services) is None


def test_aggregates_without_another_host() -> None:
    services = [_service("old"), _service("new"), _service("control", binary="nova-scheduler")]
    members = {"lonely": ("old",), "stale": ("old", "gone", "control"), "shared": ("old", "new")}
    aggregates = [
        Aggregate(f"uuid-of-{name}", name, None, hosts, id=1) for name, hosts in members.items()
    ]
    lonely = find_lonely_aggregates("old", aggregates, services)

    assert [entry.name for entry in lonely] == ["lonely", "stale"]
    warnings = list(list_part_warnings("old", HostParts(lonely_aggregates=lonely, unread=("No.",))))
    assert [text.rpartition(" ")[2] for text in warnings] == ["lonely.", "stale.", "No."]


def test_other_services_with_the_name_of_the_host() -> None:
    def build(binary: str, host: str) -> OtherService:
        return OtherService("block-storage", None, binary, host, "enabled", "down")

    services = [_service("old"), _service("old", binary="nova-console"), _service("old.example")]
    cinder = [
        build("cinder-volume", "old@lvm"),
        build("cinder-backup", "old"),
        build("cinder-volume", "older@lvm"),
        build("cinder-volume", "new@old"),
    ]
    found = select_other_services("old", services, cinder)

    commands = [describe_other_service(entry)["command"] for entry in found]
    ends = ("remove cinder-backup old", "remove cinder-volume old@lvm", "id-of-nova-console-old")
    assert all(command.endswith(end) for command, end in zip(commands, ends, strict=True))


GONE = (404, {"NeutronError": {"type": "AgentNotFound", "message": "no agent"}})
FORBIDDEN = (403, {"NeutronError": {"type": "PolicyNotAuthorized", "message": "not yours"}})


class Reply:
    """An answer of the service."""

    headers: t.ClassVar[dict[str, str]] = {}

    def __init__(self, status: int, body: t.Any) -> None:
        self.status_code = status
        self.content = json.dumps(body).encode()

    def json(self) -> t.Any:
        return json.loads(self.content)


class Adapter:
    """A service with one answer for each request."""

    def __init__(self, answers: dict[str, tuple[int, t.Any]]) -> None:
        self.answers, self.requests = answers, list[str]()

    def get_endpoint(self) -> str:
        return "http://service"

    def request(self, url: str, method: str, params: t.Any = None, **_other: t.Any) -> Reply:
        query = "&".join(f"{key}={value}" for key, value in (params or {}).items())
        request = f"{method} {url.removeprefix('http://service')}?{query}".rstrip("?")
        self.requests.append(request)
        return Reply(*self.answers[request])


def _row(uuid: str, host: str = "old", **fields: t.Any) -> dict[str, t.Any]:
    return {
        "id": uuid,
        "binary": f"binary-{uuid}",
        "agent_type": "Open vSwitch agent",
        "host": host,
        "alive": False,
        **fields,
    }


def _api(answers: dict[str, t.Any]) -> Api:
    return Api("Neutron", Adapter(answers), None)


def _reader(answers: dict[str, t.Any]) -> AgentReader:
    """Read with credentials that may see everything."""
    return AgentReader(_api(answers), "own", {"admin"})


HERE = "GET /v2.0/agents?host=old"
ANY = "GET /v2.0/agents?limit=1"
NETWORKS = "GET /v2.0/networks?limit=1"


def test_agents_of_the_host_alone_with_what_they_serve() -> None:
    l3 = _row("a-2", agent_type="L3 agent", alive=True, heartbeat_timestamp="2026-11-02 03:04:05")
    # A service that ignores the filter answers with agents of other hosts too.
    rows = [_row("a-3", host="older"), l3, _row("a-1", description="")]
    reader = _reader(
        {
            HERE: (200, {"agents": rows}),
            "GET /v2.0/agents/a-2/l3-routers": (200, {"routers": [{"id": "r-1", "name": "edge"}]}),
        }
    )
    switch, router = reader.list_agents("old")

    assert switch == Agent("a-1", "binary-a-1", "Open vSwitch agent", "old", alive=False)
    assert router.alive and router.heartbeat_at == "2026-11-02 03:04:05"
    assert router.resources == (AgentResource("router", "r-1", "edge"),)


@pytest.mark.parametrize("fields", [{}, {"alive": None}, {"alive": True}])
def test_an_agent_is_dead_only_if_neutron_says_so(fields: dict[str, t.Any]) -> None:
    row = _row("a-1")
    row.pop("alive")
    reader = _reader({HERE: (200, {"agents": [{**row, **fields}]})})

    assert [agent.alive for agent in reader.list_agents("old")] == [True]


@pytest.mark.parametrize("answer", [FORBIDDEN, GONE])
def test_resources_that_neutron_does_not_list_are_not_known(answer: tuple[int, t.Any]) -> None:
    rows = [_row("a-1", agent_type="DHCP agent")]
    reader = _reader({HERE: (200, {"agents": rows}), "GET /v2.0/agents/a-1/dhcp-networks": answer})

    assert [agent.resources for agent in reader.list_agents("old")] == [None]


@pytest.mark.parametrize(
    ("others", "networks", "is_known"),
    [
        # Another host has agents.
        ([_row("a-9", host="new")], None, True),
        # An administrator of a cloud without agents, and somebody who sees none of them.
        ([], [{"id": "n-1", "provider:network_type": "vlan"}], True),
        ([], [{"id": "n-1"}], False),
        ([], [], True),
    ],
)
def test_no_agent_may_mean_that_they_are_hidden(
    others: list[t.Any], networks: list[t.Any] | None, is_known: bool
) -> None:
    answers: dict[str, t.Any] = {
        HERE: (200, {"agents": []}),
        "GET /v2.0/agents/a-1": GONE,
        ANY: (200, {"agents": others}),
    }
    if networks is not None:
        answers[NETWORKS] = (200, {"networks": networks})
    reader = _reader(answers)
    known = contextlib.nullcontext() if is_known else pytest.raises(CloudError, match="agent")

    with known:
        assert reader.list_agents("old") == ()
    with known:
        assert reader.get_agent("a-1") is None


@pytest.mark.parametrize("path", [HERE, ANY, NETWORKS])
def test_refused_requests_are_errors(path: str) -> None:
    answers: dict[str, t.Any] = {
        HERE: (200, {"agents": []}),
        ANY: (200, {"agents": []}),
        NETWORKS: (200, {"networks": []}),
    }
    with pytest.raises(CloudError, match="403"):
        _reader({**answers, path: FORBIDDEN}).list_agents("old")


PORTS = "GET /v2.0/ports?binding:host_id=old"


@pytest.mark.parametrize(
    ("rows", "is_certain"),
    [
        ([], False),
        ([{"id": "p-1", "project_id": "own", "binding:host_id": "new"}], False),
        # Without the host of the ports, the filter shows nothing either.
        ([{"id": "p-1", "project_id": "other"}], False),
        # Ports of routers with high availability are nobody's.
        ([{"id": "p-1", "project_id": "", "binding:host_id": "new"}], False),
        ([{"id": "p-1", "project_id": "other", "binding:host_id": "new"}], True),
    ],
)
def test_no_port_may_mean_that_those_of_other_projects_are_hidden(
    rows: list[t.Any], is_certain: bool
) -> None:
    api = _api({PORTS: (200, {"ports": []}), "GET /v2.0/ports?limit=100": (200, {"ports": rows})})
    assert AgentReader(api, "own", {"admin", "member"}).list_bound_ports("old") == ()
    certain = contextlib.nullcontext() if is_certain else pytest.raises(CloudError, match="project")

    with certain:
        assert AgentReader(api, "own", {"auditor"}).list_bound_ports("old") == ()


def test_ports_of_the_host_alone() -> None:
    ports = [
        {"id": "p-2", "binding:host_id": "old", "device_owner": "compute:nova", "device_id": "s"},
        {"id": "p-1", "binding:host_id": "old"},
        {"id": "p-3", "binding:host_id": "new", "device_owner": "compute:nova", "device_id": "s"},
        # Who may not see the binding sees no port of the host.
        {"id": "p-4", "device_owner": "compute:nova", "device_id": "s"},
    ]

    assert _reader({PORTS: (200, {"ports": ports})}).list_bound_ports("old") == (
        BoundPort("p-1", "", ""),
        BoundPort("p-2", "compute:nova", "s"),
    )


@pytest.mark.parametrize("answer", [(204, {}), GONE])
def test_an_agent_is_deleted_once_it_cannot_be_read(answer: tuple[int, t.Any]) -> None:
    adapter = Adapter(
        {
            "DELETE /v2.0/agents/a-1": answer,
            "GET /v2.0/agents/a-1": GONE,
            ANY: (200, {"agents": [_row("a-9")]}),
        }
    )
    AgentWriter(Api("Neutron", adapter, None)).delete_agent(AGENT)

    assert adapter.requests[0] == "DELETE /v2.0/agents/a-1"


@pytest.mark.parametrize(
    ("answer", "sentence"), [((204, {}), "but still lists it"), (FORBIDDEN, "not yours")]
)
def test_an_agent_that_is_still_there_was_not_deleted(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, t.Any], sentence: str
) -> None:
    monkeypatch.setattr(clock, "_LAG", 0)
    listed = (200, {"agent": _row("a-1")})
    api = _api({"DELETE /v2.0/agents/a-1": answer, "GET /v2.0/agents/a-1": listed})

    with pytest.raises(CloudError, match=sentence):
        AgentWriter(api).delete_agent(AGENT)


def test_services_of_cinder() -> None:
    row = {"binary": "cinder-volume", "host": "old@lvm", "status": "enabled", "state": "down"}
    (service,) = list_cinder_services(_api({"GET /os-services": (200, {"services": [row]})}))

    assert (service.api, service.id, service.host) == ("block-storage", None, "old@lvm")
    refused = _api({"GET /os-services": (403, {"forbidden": {"message": "no"}})})
    with pytest.raises(CloudError, match="403"):
        list_cinder_services(refused)


def _next(path: str, marker: str, **filters: str) -> dict[str, str]:
    """A link to a next page; its address is that of a service behind a proxy."""
    query = "&".join(f"{key}={value}" for key, value in filters.items())
    return {"rel": "next", "href": f"http://inside:9696{path}?limit=1&{query}&marker={marker}"}


def test_every_page_of_neutron_is_read() -> None:
    """With pagination_max_limit, Neutron answers a request without a limit with one page."""
    bound = {"binding:host_id": "old", "device_owner": "compute:nova", "device_id": "s"}
    nets, ports = "/v2.0/agents/a-1/dhcp-networks", "/v2.0/ports"
    dhcp = _row("a-1", agent_type="DHCP agent")
    previous = {"rel": "previous", "href": f"http://inside:9696{ports}?page_reverse=True&marker=x"}
    answers = {
        HERE: (200, {"agents": [dhcp], "agents_links": [_next("/v2.0/agents", "a-1")]}),
        f"{HERE}&marker=a-1": (200, {"agents": [_row("a-2")], "agents_links": [previous]}),
        f"GET {nets}?": (200, {"networks": [{"id": "n-1"}], "networks_links": [_next(nets, "m")]}),
        f"GET {nets}?marker=m": (200, {"networks": [{"id": "n-2"}]}),
        PORTS: (200, {"ports": [{"id": "p-1", **bound}], "ports_links": [_next(ports, "p-1")]}),
        f"{PORTS}&marker=p-1": (
            200,
            {"ports": [{"id": "p-2", **bound}], "ports_links": [previous, _next(ports, "p-2")]},
        ),
        # A full last page has a link to an empty one.
        f"{PORTS}&marker=p-2": (200, {"ports": []}),
    }
    answers = {key.rstrip("?"): answer for key, answer in answers.items()}
    reader = _reader(answers)

    first, second = reader.list_agents("old")
    assert (first.uuid, second.uuid) == ("a-1", "a-2")
    assert [resource.uuid for resource in first.resources or ()] == ["n-1", "n-2"]
    assert [port.uuid for port in reader.list_bound_ports("old")] == ["p-1", "p-2"]


def test_a_page_that_neutron_refuses_leaves_the_whole_listing_unknown() -> None:
    link = _next("/v2.0/agents/a-1/dhcp-networks", "n-1")
    answers = {
        HERE: (200, {"agents": [_row("a-1", agent_type="DHCP agent")]}),
        "GET /v2.0/agents/a-1/dhcp-networks": (
            200,
            {"networks": [{"id": "n-1"}], "networks_links": [link]},
        ),
        "GET /v2.0/agents/a-1/dhcp-networks?marker=n-1": FORBIDDEN,
        PORTS: (200, {"ports": [], "ports_links": [_next("/v2.0/ports", "p-1")]}),
        f"{PORTS}&marker=p-1": FORBIDDEN,
    }
    reader = _reader(answers)

    assert [agent.resources for agent in reader.list_agents("old")] == [None]
    with pytest.raises(CloudError, match="403"):
        reader.list_bound_ports("old")


def test_a_listing_that_links_to_itself_has_no_end() -> None:
    page = (200, {"ports": [], "ports_links": [_next("/v2.0/ports", "p-1")]})

    with pytest.raises(CloudError, match="no end"):
        _reader({PORTS: page, f"{PORTS}&marker=p-1": page}).list_bound_ports("old")
