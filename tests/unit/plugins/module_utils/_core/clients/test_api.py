"""Answers that no service sends: the request is repeated, and a lasting failure is a sentence."""

import json
import typing as t

import pytest

from .......plugins.module_utils._common.errors import CloudError, MalformedResponse
from .......plugins.module_utils._core.clients import api as module
from .......plugins.module_utils._core.clients.api import Api, Reply, ServiceClock
from .......plugins.module_utils._core.clients.placement import PlacementReader
from ...service import Response, Service

PROVIDER = "8a8177dd-0000-4000-8000-000000000001"
ALLOCATION = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 1}, "generation": 1}},
    "consumer_generation": 1,
    "project_id": "project",
    "user_id": "user",
    "consumer_type": "unknown",
}
RIGHT = json.dumps(ALLOCATION)
NOW = "Mon, 23 Nov 2026 10:00:00 GMT"
T = t.TypeVar("T")


def _serve(
    answer: t.Callable[[str], tuple[int, dict[str, str | None], str]],
    newest: tuple[int, int] = (1, 39),
) -> Api:
    """Return a Placement with such answers by address: status, headers without None, and body."""

    def request(url: str, *_arguments: t.Any, **_options: t.Any) -> Response:
        status, headers, body = answer(url)
        response = Response(status, None)
        response.headers = {name: value for name, value in headers.items() if value is not None}
        response.content = body.encode()
        return response

    service = Service({}, newest)
    service.request = request  # type: ignore[method-assign]
    return service.open("Placement", min(newest, (1, 28)))


def _take(left: list[T]) -> T:
    """Return the next of several values, and from then on the last one."""
    return left.pop(0) if len(left) > 1 else left[0]


def _open(*bodies: str, newest: tuple[int, int] = (1, 39), **headers: str) -> Api:
    """Return a Placement that answers with these bodies in turn."""
    left = list(bodies)
    return _serve(lambda _url: (200, {"Date": NOW, **headers}, _take(left)), newest)


def _answer_at(*dates: str | None) -> Api:
    """Return a Placement of which each answer has the next of these dates."""
    left = list(dates)
    return _serve(lambda _url: (200, {"Date": _take(left)}, "{}"))


BROKEN = [
    pytest.param("[" * 100_000, "not JSON", id="nested too deeply"),
    pytest.param(RIGHT[:20], "not JSON", id="cut"),
    pytest.param(json.dumps({**ALLOCATION, "consumer_generation": "1"}), "generation", id="text"),
    pytest.param(RIGHT.replace('"VCPU": 1', '"VCPU": null'), "resources", id="null"),
    pytest.param(RIGHT.replace('"VCPU": 1', '"VCPU": Infinity'), "resources", id="no number"),
    pytest.param("[]", "something unexpected", id="list"),
]


@pytest.mark.parametrize(("body", "named"), BROKEN)
def test_lasting_answer_that_no_service_sends_is_one_sentence(body: str, named: str) -> None:
    api = _open(body)

    with pytest.raises(MalformedResponse, match=f"{named}.*proxy") as raised:
        PlacementReader(api).get_allocation("a")

    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200


@pytest.mark.parametrize("newest", [(1, 27), (1, 28)])
def test_allocation_without_a_generation_is_one_of_an_older_placement(
    newest: tuple[int, int],
) -> None:
    body = {key: held for key, held in ALLOCATION.items() if key != "consumer_generation"}
    reader = PlacementReader(_open(json.dumps(body), newest=newest))

    if newest < (1, 28):
        allocation = reader.get_allocation("a").value
        assert allocation is not None and allocation.generation is None
        return
    with pytest.raises(MalformedResponse):
        reader.get_allocation("a")


@pytest.mark.parametrize(("body", "named"), BROKEN[:-1])
def test_request_with_such_an_answer_is_sent_again(body: str, named: str) -> None:
    api = _open(body, RIGHT)

    allocation = PlacementReader(api).get_allocation("a").value

    assert allocation is not None and allocation.resources == {PROVIDER: {"VCPU": 1}}
    assert api.retried == 1, named


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"itemNotFound": {"message": "a\nb"}}, "a b"),
        ({"errors": [{"detail": "a\n\n b"}, {"detail": "c"}]}, "a b c"),
        ({"badRequest": {"message": "\x1b[2J"}}, r"\x1b[2J"),
        ({"badRequest": {"message": "x" * 3000}}, "x" * 249 + "…"),
        (
            {"errors": [{"detail": "Invalid: 'x'\n\nFailed validating 'format' in schema:\n {}"}]},
            "Invalid: 'x'",
        ),
        ({"errors": [{"detail": None}, 7]}, ""),
        ({"error": {"message": {"message": 1}}}, ""),
        ({"message": "x"}, ""),
        ([], ""),
    ],
)
def test_message_of_a_service_is_a_line_for_a_sentence(body: t.Any, detail: str) -> None:
    assert Reply(400, {}, body).detail == detail


@pytest.mark.parametrize(
    ("modified", "age"),
    [
        ("Mon, 23 Nov 2026 09:00:00 GMT", 3600),
        ("Mon, 23 Nov 2026 09:00:00 -0000", 3600),
        ("Mon, 23 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 23 Nov 2026 10:00:00 +99999999999999", None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("0", None),
        (None, None),
    ],
)
def test_age_is_unknown_without_a_time_of_the_last_write(
    modified: str | None, age: int | None
) -> None:
    headers = {"Date": NOW} | ({"Last-Modified": modified} if modified else {})
    answer = PlacementReader(_open(RIGHT, **headers)).get_allocation("a")

    assert answer.value and answer.value.age_seconds == age


@pytest.mark.parametrize("generation", [{}, {"consumer_generation": None}])
def test_listing_of_a_provider_is_not_the_allocation_of_a_consumer(
    generation: dict[str, t.Any],
) -> None:
    listing = {"allocations": ALLOCATION["allocations"], **generation}
    reader = PlacementReader(_open(json.dumps(listing)))

    with pytest.raises(MalformedResponse, match="something unexpected"):
        reader.get_allocation("a")


@pytest.mark.parametrize("key", ["uuid", "name", "generation", "root_provider_uuid"])
def test_provider_without_one_of_its_keys_is_one_sentence(key: str) -> None:
    entry = {"uuid": PROVIDER, "name": "a", "generation": 1, "root_provider_uuid": PROVIDER}
    entry = {**entry, "parent_provider_uuid": None}
    del entry[key]
    reader = PlacementReader(_open(json.dumps({"resource_providers": [entry]})))

    with pytest.raises(MalformedResponse, match="something unexpected"):
        reader.list_providers()
    with pytest.raises(MalformedResponse, match="something unexpected"):
        reader.query_host_tree(PROVIDER)


def test_every_request_asks_caches_on_the_way_for_a_new_answer() -> None:
    api = _open(RIGHT)
    sent: list[t.Mapping[str, str]] = []
    answer = api._adapter.request

    def request(*arguments: t.Any, headers: t.Mapping[str, str], **options: t.Any) -> t.Any:
        sent.append(headers)
        return answer(*arguments, **options)

    api._adapter.request = request
    api.get("/x", "1.28")
    api.ask("/x", "1.28", lambda reply: reply.body, own_connection=True)

    assert [headers["Cache-Control"] for headers in sent] == ["no-cache", "no-cache"]


TOMORROW, SOON = "Tue, 24 Nov 2026 10:00:00 GMT", "Mon, 23 Nov 2026 10:04:00 GMT"
LONG_AGO = "Mon, 23 Nov 2026 06:00:00 GMT"


@pytest.mark.parametrize(
    "second",
    [
        TOMORROW,
        "Sun, 22 Nov 2026 10:00:00 GMT",
        "Mon, 23 Nov 2026 10:06:00 GMT",
        "Tue, 24 Nov 2026 10:00:00 -0000",
    ],
)
def test_clocks_that_are_apart_leave_no_age(second: str) -> None:
    api = _answer_at(NOW, second)
    api.needs_one_clock = True
    api.get("/x", "1.28")

    with pytest.raises(CloudError, match="5m apart"):
        api.get("/x", "1.28")


@pytest.mark.parametrize(
    ("needed", "second"),
    [
        (True, NOW),
        (True, SOON),
        (True, "Mon, 23 Nov 2026 11:04:00 +0100"),
        (True, "tomorrow"),
        (True, "Mon, 23 Nov 99999 10:00:00 GMT"),
        (True, f"Mon, 23 Nov 2026 {'9' * 400}:00:00 GMT"),
        (True, None),
        # No age is needed.
        (False, TOMORROW),
    ],
)
def test_clocks_that_are_near_or_unknown_or_not_needed_are_accepted(
    needed: bool, second: str | None
) -> None:
    api = _answer_at(NOW, second)
    api.needs_one_clock = needed
    api.get("/x", "1.28")

    assert api.get("/x", "1.28").status == 200


def _telling(date: str | None, *own: str | None, status: int = 200) -> Api:
    """Return a Placement that writes this Date, and these times of its own at GET / in turn."""
    left = list(own)

    def answer(url: str) -> tuple[int, dict[str, str | None], str]:
        if url == "http://service/":
            return status, {"Date": date, "Last-Modified": _take(left)}, RIGHT
        return 200, {"Date": date, "Last-Modified": LONG_AGO}, RIGHT

    api = _serve(answer)
    api.clock = ServiceClock(api)
    api.needs_one_clock = True
    return api


@pytest.mark.parametrize(
    ("date", "own"),
    [
        (NOW, [NOW]),
        # As behind uWSGI.
        (None, [NOW]),
        (None, [NOW, NOW, NOW, SOON]),
        # A proxy writes a Date of its own.
        (SOON, [NOW]),
        (NOW, [SOON]),
        (NOW, [None]),
        ("yesterday", [NOW]),
        (NOW, ["yesterday"]),
    ],
)
def test_age_is_by_the_earliest_of_the_clocks(date: str | None, own: list[str | None]) -> None:
    answer = PlacementReader(_telling(date, *own)).get_allocation("a")

    assert answer.value and answer.value.age_seconds == pytest.approx(4 * 3600, abs=30)
    assert answer.at.startswith("2026-11-23T10:00:")


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("own", [None, "", "yesterday", "Mon, 23 Nov 99999 10:00:00 GMT"])
def test_no_age_is_known_where_nothing_tells_the_time(own: str | None, status: int) -> None:
    api = _telling(None, own, status=status)
    answer = PlacementReader(api).get_allocation("a")

    assert answer.value and answer.value.age_seconds is None
    assert not api.tells_time


@pytest.mark.parametrize(
    ("date", "own"),
    [(TOMORROW, [NOW]), (NOW, [TOMORROW]), (None, [NOW, TOMORROW]), (None, [TOMORROW, NOW])],
)
def test_servers_of_placement_whose_clocks_are_apart_leave_no_age(
    date: str | None, own: list[str]
) -> None:
    with pytest.raises(CloudError, match="5m apart"):
        PlacementReader(_telling(date, *own)).get_allocation("a")


def test_clock_is_read_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    elapsed = [0.0]
    monkeypatch.setattr(module, "read_monotonic_clock", lambda: elapsed[0])
    api = _telling(None, NOW, NOW, NOW, NOW, TOMORROW)
    reader = PlacementReader(api)
    reader.get_allocation("a")
    elapsed[0] = 59.0
    later = reader.get_allocation("a")
    elapsed[0] = 61.0

    assert later.value and later.value.age_seconds == 4 * 3600 + 59
    with pytest.raises(CloudError, match="5m apart"):
        reader.get_allocation("a")


def test_placement_tells_the_time_of_a_nova_that_sends_none() -> None:
    nova = _answer_at(None, TOMORROW)
    nova.clock = _telling(None, NOW).clock
    first, second = (nova.ask("/x", "2.68", lambda reply: reply.body) for _count in range(2))

    assert first.at.startswith("2026-11-23T10:00:")
    assert second.at == "2026-11-24T10:00:00Z"


@pytest.mark.parametrize(("length", "advises"), [(100, True), (250, False)])
def test_advice_is_left_out_where_a_service_says_much(length: int, advises: bool) -> None:
    reply = Reply(403, {}, {"errors": [{"detail": "x" * length}]})

    with pytest.raises(CloudError) as raised:
        _open(RIGHT).expect(reply, "to change the allocation of " + "c" * 36)
    assert str(raised.value).endswith("(admin by default).") is advises
    assert "x" * (length - 1) in str(raised.value) and len(str(raised.value)) <= 400


def test_strange_name_in_a_request_is_shown_on_one_printable_line() -> None:
    """A terminal must not act on the name of a host that a sentence quotes."""
    name = "a\n\x1b[31mb"
    api = _open("{}")
    answer = api.ask("/x", "1.28", lambda reply: reply.body, host=name)
    with pytest.raises(CloudError) as raised:
        api.expect(Reply(403, {}, {}, frozenset()), f"for the ports of {name}")

    assert answer.request == r"GET /x?host=a\n\x1b[31mb"
    assert r"for the ports of a\n\x1b[31mb" in str(raised.value)
