"""Host aggregates, and which providers are in an aggregate or have a trait."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.clients.groups import AggregateClient, ProviderGroupReader
from .......plugins.module_utils._core.models.nova import Aggregate
from .......plugins.module_utils._core.models.placement import ProviderAggregates
from .......plugins.module_utils._core.models.snapshot import NOT_ASKED
from ...service import Response, Service

SSD = Aggregate("33333333-3333-4333-8333-333333333333", "ssd", "az1", (), id=7)
REFUSAL = {"conflictingRequest": {"message": "One or more hosts already in availability zone(s)."}}


class Nova(Service):
    """The aggregates of a cloud, one of which takes a host with this status, or does not."""

    def __init__(self, status: int = 200, accepted: bool = True) -> None:
        super().__init__({}, (2, 90))
        self.hosts: list[str] = []
        self.sent: list[t.Any] = []
        self._status = status
        self._accepted = accepted

    def request(self, url: str, method: str, **options: t.Any) -> Response:
        if method == "POST":
            body = options["json"]
            self.sent.append((method, url.removeprefix("http://service"), body))
            self.hosts += [body["add_host"]["host"]] * self._accepted
            return Response(self._status, {} if self._status == 200 else REFUSAL)
        row = {"id": 7, "uuid": SSD.uuid, "name": "ssd", "availability_zone": "az1"}
        return Response(200, {"aggregates": [{**row, "hosts": self.hosts}]})


def _client(nova: Nova) -> AggregateClient:
    return AggregateClient(nova.open("Nova", (2, 60)))


def test_host_is_added_by_the_number_of_the_aggregate() -> None:
    nova = Nova()
    _client(nova).add_host(SSD, "compute-1")

    assert nova.sent == [("POST", "/os-aggregates/7/action", {"add_host": {"host": "compute-1"}})]
    assert _client(nova).list_aggregates_of("compute-1") == (d.replace(SSD, hosts=("compute-1",)),)


def test_host_that_somebody_else_has_added_is_no_failure() -> None:
    """Nova answers 409 then, as it does where it refuses."""
    nova = Nova(status=409, accepted=True)
    _client(nova).add_host(SSD, "compute-1")

    assert nova.hosts == ["compute-1"]


@pytest.mark.parametrize(
    ("status", "sentence"), [(409, "already in availability zone"), (200, "does not list it")]
)
def test_host_that_is_not_in_it_afterwards_is_a_failure(status: int, sentence: str) -> None:
    with pytest.raises(CloudError, match=sentence):
        _client(Nova(status, accepted=False)).add_host(SSD, "compute-1")


ROWS = {"resource_providers": [{"uuid": "one"}, {"uuid": "two"}]}
AGGREGATES = {"aggregates": ["b", "a"], "resource_provider_generation": 3}


def _read_groups(service: Service) -> ProviderGroupReader:
    return ProviderGroupReader(service.open("Placement", (1, 10)))


@pytest.mark.parametrize(
    ("method", "arguments", "microversion", "query"),
    [
        ("query_members", ("rack",), "1.18", "member_of=rack"),
        (
            "query_members_without_trait",
            ("rack", "CUSTOM_X"),
            "1.22",
            "member_of=rack&required=!CUSTOM_X",
        ),
        ("query_providers_with_trait", ("CUSTOM_X",), "1.18", "required=CUSTOM_X"),
    ],
)
def test_one_request_returns_the_providers(
    method: str, arguments: tuple[str, ...], microversion: str, query: str
) -> None:
    service = Service({"/resource_providers": ROWS})

    assert getattr(_read_groups(service), method)(*arguments).value == ("one", "two")
    assert service.asked == [f"/resource_providers?{query}"]
    assert service.microversions == [microversion]


def test_aggregates_come_with_the_generation() -> None:
    service = Service({"/resource_providers/one/aggregates": AGGREGATES})

    assert _read_groups(service).query_aggregates("one").value == ProviderAggregates(3, ("a", "b"))


def test_a_trait_that_placement_does_not_know_is_an_answer() -> None:
    reply = _read_groups(Service({"/resource_providers": 400})).query_members_without_trait(
        "rack", "CUSTOM_X"
    )

    assert (reply.status, reply.value) == (400, None)


def test_an_older_placement_is_not_asked_for_what_it_ignores() -> None:
    """Without the filter it would list every provider."""
    service = Service({"/resource_providers": ROWS}, (1, 21))

    assert _read_groups(service).query_members_without_trait("rack", "CUSTOM_X") == NOT_ASKED
    assert service.asked == []
