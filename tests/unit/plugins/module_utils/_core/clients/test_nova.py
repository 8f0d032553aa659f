"""Nova's listings are read completely, whatever Nova drops from a page.

They are read from several markers at once.

Then the meaning of tracebacks in instance actions, and rows that Nova never sends. The tracebacks
are from a real Nova, without some lines in between.
"""

import threading
import typing as t
from collections.abc import Callable, Iterable

import pytest

from .......plugins.module_utils._common.errors import CloudError, MalformedResponse
from .......plugins.module_utils._core.clients.nova import NovaReader, parse_action, parse_service
from .......plugins.module_utils._core.models.nova import ActionEvent, Hypervisor
from .......plugins.module_utils._core.models.snapshot import Answer
from ...service import Response, Service, build_compute_node

Handler = Callable[[dict[str, str]], tuple[int, t.Any]]


UNKNOWN_MARKER = {"badRequest": {"code": 400, "message": "Marker could not be found."}}


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


class Listing:
    """Nova's compute nodes.

    Nova counts a page first, and then drops those from it that are not discovered yet.
    """

    def __init__(self, numbers: Iterable[int], undiscovered: Iterable[int] = ()) -> None:
        self.known = [uuid(number) for number in numbers]
        self.dropped = {uuid(number) for number in undiscovered}
        self.pages = 0
        self._lock = threading.Lock()

    def __call__(self, query: dict[str, str]) -> tuple[int, t.Any]:
        with self._lock:
            self.pages += 1
            if (marker := query.get("marker")) and marker not in self.known:
                return 400, {"badRequest": {"message": f"Marker {marker} not found."}}
            start = self.known.index(marker) + 1 if marker else 0
            page = self.known[start : start + int(query["limit"])]
        nodes = [build_compute_node(row, row) for row in page if row not in self.dropped]
        return 200, {"hypervisors": nodes}


def _read(handler: Handler, roots: Iterable[int] = ()) -> Answer[tuple[Hypervisor, ...]]:
    return _reader(handler).list_hypervisors(True, list(map(uuid, roots)))


def _reader(handler: Handler) -> NovaReader:
    service = Service({}, (2, 96))
    service.request = lambda url, method, params=None, **_: Response(*handler(params or {}))  # type: ignore[method-assign]
    return NovaReader(service.open("Nova", (2, 69)))


def _numbers(answer: Answer[tuple[Hypervisor, ...]]) -> list[int]:
    assert (answer.status, answer.value is None) == (200, False)
    return sorted(int(node.uuid[:8], 16) for node in answer.value or ())


@pytest.mark.parametrize("count", [0, 1, 49, 50, 51, 200, 201, 1000])
@pytest.mark.parametrize(
    "order",
    [
        lambda known: known,
        lambda known: known[::-1],
        lambda known: known[1::2] + known[::2],
        lambda known: [],
    ],
)
def test_each_compute_node_is_read_once_in_any_order_of_placement(
    count: int, order: Callable[[list[int]], list[int]]
) -> None:
    numbers = list(range(count))

    assert _numbers(_read(Listing(numbers), order(numbers))) == numbers


def test_nothing_is_read_twice_in_novas_own_order() -> None:
    listing = Listing(range(1000))
    _read(listing, range(1000))

    # Seven small parts and those of 25, each of one page, and two requests that look for more.
    assert listing.pages == 7 + 38 + 2


def test_providers_without_a_compute_node_are_not_used_as_markers() -> None:
    assert _numbers(_read(Listing(range(400)), range(200, 600))) == list(range(400))


@pytest.mark.parametrize(
    ("cells", "undiscovered"),
    [
        ([range(200)], range(50, 100)),
        ([range(400)], range(110, 215)),
        ([range(120), range(1000, 1120)], range(60, 120)),
        ([range(120), range(1000, 1120)], range(1000, 1120)),
        ([range(900)], range(899)),
    ],
)
def test_undiscovered_rack_hides_no_compute_node(cells: list[range], undiscovered: range) -> None:
    known = [number for cell in cells for number in cell]
    # Placement returns them in the order of their creation, which differs from Nova's when there
    # are several cells.
    created = sorted(known, key=lambda number: (number % 1000 >= 40, number))
    expected = sorted(set(known) - set(undiscovered))

    assert _numbers(_read(Listing(known, undiscovered), created)) == expected
    assert _numbers(_read(Listing(known, undiscovered))) == expected


def test_listing_in_another_order_is_read_in_large_pages() -> None:
    """Only its first providers are compute nodes of this Nova, and these come last."""
    listing = Listing(range(2000))
    _read(listing, [*range(1999, 1900, -1), *range(5000, 6901)])

    assert listing.pages < 100


def test_listing_that_lost_a_marker_is_read_again() -> None:
    listing, first_page = Listing(range(200)), threading.Event()

    def vanishing(query: dict[str, str]) -> tuple[int, t.Any]:
        if "marker" not in query:
            answered = listing(query)
            if not first_page.is_set():
                listing.known.remove(uuid(49))
            first_page.set()
            return answered
        first_page.wait(10)
        return listing(query)

    assert _numbers(_read(vanishing, range(200))) == [*range(49), *range(50, 200)]


@pytest.mark.parametrize("rows", [["x"], [{}], [None], {"a": 1}])
def test_rows_of_another_shape_are_reported(rows: t.Any) -> None:
    with pytest.raises(CloudError, match="something unexpected"):
        _read(lambda query: (200, {"hypervisors": rows}))


def test_refused_page_leaves_no_value() -> None:
    listing = Listing(range(1000))

    def dying(query: dict[str, str]) -> tuple[int, t.Any]:
        return (500, {}) if query.get("marker") == uuid(494) else listing(query)

    answer = _read(dying, range(1000))

    assert (answer.status, answer.value) == (500, None)


def test_refusal_of_one_part_is_that_of_the_listing() -> None:
    """While a cell is down, Nova refuses every part, and each refusal can take it minutes."""
    asked: list[t.Any] = []
    reader = _reader(lambda query: (asked.append(query), (500, {}))[1])
    reader.believe_errors(True)

    answer = reader.list_hypervisors(True, list(map(uuid, range(5000))))

    assert (answer.status, answer.value) == (500, None)
    assert len(asked) == 1


def _servers(*numbers: int, more: bool = False) -> dict[str, t.Any]:
    links = (
        {"servers_links": [{"rel": "next", "href": "http://nova/servers?marker=…"}]} if more else {}
    )
    return {"servers": [{"id": uuid(number), "status": "ACTIVE"} for number in numbers], **links}


def test_server_that_lost_its_cell_ends_a_listing_without_an_error() -> None:
    """Nova lists it on its host, and does not find it as a marker."""
    found = _reader(
        lambda query: (400, UNKNOWN_MARKER) if "marker" in query else (200, _servers(1, 2))
    ).query_servers_on_host("compute-1")

    assert [server.uuid for server in found.value or ()] == [uuid(1), uuid(2)]
    assert found.status == 200


def test_listing_that_never_accepts_its_own_markers_leaves_no_value() -> None:
    """One API worker lists them.

    Another one, which answers the request for the next page, does not know their cell.
    """
    first_pages = []

    def forgetful(query: dict[str, str]) -> tuple[int, t.Any]:
        if "marker" in query:
            return 400, UNKNOWN_MARKER
        first_pages.append(query)
        return 200, _servers(1, 2, more=True)

    answer = _reader(forgetful).query_servers_on_host("compute-1")

    assert (answer.status, answer.value) == (400, None)
    assert len(first_pages) == 3


class HostListing:
    """The servers of one host, as Nova lists them.

    max_limit: `[api]max_limit`. links: whether the links to the next pages arrive.
    """

    def __init__(self, count: int, max_limit: int = 1000, links: bool = True) -> None:
        self.numbers = list(range(count))
        self.max_limit = max_limit
        self.links = links
        self.queries: list[dict[str, str]] = []

    def __call__(self, query: dict[str, str]) -> tuple[int, t.Any]:
        self.queries.append(query)
        start = 0
        if "marker" in query:
            start = int(query["marker"][:8], 16) + 1
        limit = min(int(query["limit"]), self.max_limit)
        page = self.numbers[start : start + limit]
        return 200, _servers(*page, more=self.links and len(page) == limit)


@pytest.mark.parametrize(
    ("count", "max_limit", "links", "requests"),
    [
        # The first host takes a request that shows whether links arrive.
        pytest.param(0, 1000, True, 2, id="no-server"),
        pytest.param(1, 1000, True, 3, id="one-server"),
        pytest.param(99, 1000, True, 3, id="one-batch"),
        # Nova may have read these in two batches, and lost the cell between them.
        pytest.param(100, 1000, True, 4, id="two-batches"),
        pytest.param(1000, 1000, True, 4, id="full-page"),
        # These full pages of 50 have a link, and the page after the last one is empty.
        pytest.param(50, 50, True, 4, id="full-page-of-max-limit"),
        pytest.param(70, 50, True, 5, id="second-page-ends"),
        pytest.param(50, 50, False, 5, id="proxy-without-links-full-page"),
        pytest.param(70, 50, False, 7, id="proxy-without-links"),
        pytest.param(1, 1, False, 5, id="proxy-without-links-and-pages-of-one"),
    ],
)
def test_servers_of_a_host_are_complete_with_as_few_requests_as_possible(
    count: int, max_limit: int, links: bool, requests: int
) -> None:
    listing = HostListing(count, max_limit, links)
    reader = _reader(listing)

    for _host in range(2):
        found = reader.list_server_uuids_on_host("compute-1")
        assert list(found.value or ()) == [uuid(number) for number in range(count)]
    assert len(listing.queries) == requests


@pytest.mark.parametrize("read", ["list_server_uuids", "list_server_projects"])
def test_listing_of_all_servers_does_not_end_with_a_missing_link(read: str) -> None:
    """Nova dropped a server that had a build request and a row, and the page was full before."""

    def drop(query: dict[str, str]) -> tuple[int, t.Any]:
        if query["limit"] == "1":
            return 200, _servers(1, more=True)
        if "marker" in query:
            return 200, _servers(*([3] if query["marker"] == uuid(2) else []))
        return 200, _servers(1, 2)

    reader = _reader(drop)
    # Links were seen to arrive.
    reader.list_server_uuids_on_host("compute-1")
    found: t.Any = getattr(reader, read)()
    rows = getattr(found, "value", found)

    assert len(rows) == 3


def test_host_that_became_empty_says_nothing_of_links() -> None:
    listing = HostListing(1)

    def leave(query: dict[str, str]) -> tuple[int, t.Any]:
        if query["limit"] == "1":
            listing.numbers = []
        return listing(query)

    assert _reader(leave).list_server_uuids_on_host("compute-1").value == (uuid(0),)
    assert [query.get("marker") for query in listing.queries] == [None, None, uuid(0)]


def _ignore_marker(query: dict[str, str]) -> tuple[int, t.Any]:
    return 200, _servers(1, 2)


def _go_round(query: dict[str, str]) -> tuple[int, t.Any]:
    if query.get("marker") == uuid(2):
        return 200, _servers(3, 4)
    return 200, _servers(1, 2)


@pytest.mark.parametrize("pages", [_ignore_marker, _go_round])
def test_listing_whose_pages_repeat_is_an_error(pages: Handler) -> None:
    with pytest.raises(CloudError, match=r"/servers\b.*no end"):
        _reader(pages).list_server_uuids()


def test_parts_that_all_begin_at_the_beginning_are_an_error() -> None:
    nova = Listing(range(600))

    with pytest.raises(CloudError, match=r"/os-hypervisors/detail\b.*no end"):
        _read(lambda query: nova({**query, "marker": ""}), range(600))


def test_single_500_is_retried_and_counted() -> None:
    statuses = [200, 200, 500]
    reader = _reader(lambda query: (statuses.pop(), {"hypervisors": []}))

    assert reader.list_hypervisors(False).status == 200
    assert reader.retried == 1


def test_persistent_500_is_final_after_retries_and_at_once_while_a_cell_is_down() -> None:
    asked: list[t.Any] = []
    reader = _reader(lambda query: (asked.append(query), (500, {}))[1])

    assert reader.get_server(uuid(1)).status == 500
    assert (len(asked), reader.retried) == (3, 2)

    reader.believe_errors(True)
    assert reader.get_server(uuid(1)).status == 500
    assert len(asked) == 4


@pytest.mark.parametrize("body", [{}, {"error": {"message": "not found"}}, {"servers": []}])
def test_foreign_404_proves_nothing(body: t.Any) -> None:
    with pytest.raises(CloudError, match=r"a 404.*proxy"):
        _reader(lambda query: (404, body)).get_server(uuid(1))


def test_novas_own_404_is_an_answer() -> None:
    body = {"itemNotFound": {"code": 404, "message": "Instance could not be found."}}

    assert _reader(lambda query: (404, body)).get_server(uuid(1)).status == 404


def test_answer_of_another_shape_is_retried() -> None:
    bodies = iter([{}, {"servers": []}])
    reader = _reader(lambda query: (200, next(bodies)))

    assert reader.list_newest_servers(1).value == ()
    assert reader.retried == 1


def _action(number: int, action: str = "reboot", **more: t.Any) -> dict[str, t.Any]:
    """Return an instance action as Nova lists it."""
    about = {"action": action, "request_id": f"req-{number}", "user_id": "u"}
    return {**about, "start_time": "", "message": None, **more}


def _actions_in_pages(count: int, size: int, broken_from: int | None = None) -> Handler:
    """Return Nova's answer about a server with `count` actions.

    It shows at most `size` of them at once, [api]max_limit.
    """
    rows = list(map(_action, range(count)))

    def answer(query: dict[str, str]) -> tuple[int, t.Any]:
        start = int(query["marker"].removeprefix("req-")) + 1 if "marker" in query else 0
        if broken_from is not None and start >= broken_from:
            return 404, {"itemNotFound": {"message": "Instance could not be found."}}
        page = rows[start : start + size]
        links = {"links": [{"rel": "next"}]} if len(page) >= size else {}
        return 200, {"instanceActions": page, **links}

    return answer


@pytest.mark.parametrize(("count", "size"), [(0, 2), (1, 2), (2, 2), (5, 2), (1001, 1000)])
def test_all_actions_of_a_server_are_read(count: int, size: int) -> None:
    """Their list proves that a server was never moved.

    The oldest of them are on its last page.
    """
    found = _reader(_actions_in_pages(count, size)).list_instance_actions(uuid(1))

    assert [action.request_id for action in found.value or ()] == [
        f"req-{number}" for number in range(count)
    ]


def test_actions_with_an_unreadable_page_are_unknown() -> None:
    found = _reader(_actions_in_pages(5, 2, broken_from=2)).list_instance_actions(uuid(1))

    assert (found.status, found.value) == (404, None)


def test_endless_actions_are_unknown() -> None:
    page = {"instanceActions": [_action(1)], "links": [{"rel": "next"}]}

    assert _reader(lambda query: (200, page)).list_instance_actions(uuid(1)).value is None


# Rows

RESIZE = """\
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 6340, in resize_instance
    self._resize_instance(context, instance, image, migration,
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line {line}, in _resize_instance
"""
RAISED_BY_THE_DRIVER = f"""{RESIZE.format(line=6377)}\
    disk_info = self.driver.migrate_disk_and_power_off(
  File "/usr/lib/python3/dist-packages/nova/virt/libvirt/driver.py", line 11580, \
in migrate_disk_and_power_off
"""
ROLLED_BACK = f"""{RESIZE.format(line=6354)}\
    with self._error_out_instance_on_exception(
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 11410, \
in _error_out_instance_on_exception
    raise error.inner_exception
"""
ROLLED_BACK_WITHOUT_PLACEMENT = f"""{RESIZE.format(line=6354)}\
    with self._error_out_instance_on_exception(
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 11405, \
in _error_out_instance_on_exception
    self._instance_update(context, instance,
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 749, in _instance_update
    self._update_resource_tracker(context, instance)
"""
NOT_SAVED = f"""{RESIZE.format(line=6408)}\
    instance.save(expected_task_state=task_states.RESIZE_MIGRATING)
"""
VOLUMES = f"""{RESIZE.format(line=6383)}\
    self._terminate_volume_connections(context, instance, bdms)
"""
REVERT_REFUSED = """\
  File "/usr/lib/python3/dist-packages/nova/compute/manager.py", line 6344, in resize_instance
    self._revert_allocation(context, instance, migration)
"""


@pytest.mark.parametrize(
    ("traceback", "in_copy"),
    [
        (RAISED_BY_THE_DRIVER, True),
        (ROLLED_BACK, True),
        (ROLLED_BACK_WITHOUT_PLACEMENT, True),
        (NOT_SAVED, False),
        (VOLUMES, False),
        (REVERT_REFUSED, False),
        ("", False),
        (None, False),
    ],
)
def test_traceback_shows_whether_the_driver_gave_up_the_copy(
    traceback: str | None, in_copy: bool
) -> None:
    (event,) = _parse_events(traceback=traceback)

    assert event.failed_in_copy is in_copy


def test_missing_traceback_leaves_the_copy_unknown() -> None:
    """These credentials see the events of actions, but no traceback."""
    assert not _parse_events()[0].failed_in_copy


def _parse_events(**more: t.Any) -> tuple[ActionEvent, ...]:
    times = {"start_time": "", "finish_time": ""}
    event = {"event": "compute_resize_instance", **times, "result": "Error", "host": "h", **more}
    return parse_action(_action(1, "migrate", events=[event])).events


@pytest.mark.parametrize("host", [None, "", 7])
def test_service_without_the_name_of_a_host_is_refused(host: t.Any) -> None:
    with pytest.raises(ValueError, match="host"):
        parse_service({"binary": "nova-compute", "host": host, "status": "enabled"})


# A cache or a proxy answers a request about one server with the answer about another one

ASKED = "8a8177dd-0000-4000-8000-00000000000a"
OTHER = "8a8177dd-0000-4000-8000-00000000000b"
MIGRATION = {
    "id": 1,
    "uuid": "8a8177dd-0000-4000-8000-00000000000c",
    "migration_type": "resize",
    "status": "done",
    "source_compute": "a",
    "source_node": "a",
    "dest_compute": "b",
    "dest_node": "b",
    "created_at": None,
    "updated_at": None,
}


def _answer_about(uuid: str) -> dict[str, t.Any]:
    action = _action(1, "delete", instance_uuid=uuid)
    return {
        f"/servers/{ASKED}": {"server": {"id": uuid, "status": "ACTIVE"}},
        "/servers/detail": {"servers": [{"id": uuid}]},
        "/servers": {"servers": [{"id": uuid}]},
        "/os-migrations": {"migrations": [{**MIGRATION, "instance_uuid": uuid}]},
        f"/servers/{ASKED}/os-instance-actions": {"instanceActions": [action]},
        f"/servers/{ASKED}/os-instance-actions/req-1": {"instanceAction": action},
    }


Ask = t.Callable[[NovaReader], t.Any]
QUESTIONS: dict[str, Ask] = {
    "server": lambda nova: nova.get_server(ASKED),
    "server with its image": lambda nova: nova.get_server_with_image_properties(ASKED),
    "deleted server": lambda nova: nova.find_deleted_server(ASKED),
    "rows": lambda nova: nova.list_server_rows(ASKED),
    "migrations": lambda nova: nova.list_migrations_of_server(ASKED),
    "actions": lambda nova: nova.list_instance_actions(ASKED),
    "action": lambda nova: nova.get_instance_action(ASKED, "req-1"),
}


def _open(answers: dict[str, t.Any]) -> NovaReader:
    return NovaReader(Service(answers, (2, 96)).open("Nova", (2, 60)))


@pytest.mark.parametrize("question", QUESTIONS)
def test_answer_about_another_server_is_none(question: str) -> None:
    nova = _open(_answer_about(OTHER))

    with pytest.raises(MalformedResponse, match="something unexpected"):
        QUESTIONS[question](nova)


@pytest.mark.parametrize("uuid", [ASKED, ASKED.upper()])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answer_about_the_server_counts(question: str, uuid: str) -> None:
    """Some databases do not distinguish upper and lower case."""
    assert QUESTIONS[question](_open(_answer_about(uuid))).status == 200


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        (f"Instance {ASKED} could not be found.", True),
        (f"Instance {ASKED.upper()} could not be found.", True),
        ("Not found.", True),
        (f"Not found (req-{OTHER}).", True),
        (f"Instance {OTHER} could not be found.", False),
    ],
)
def test_404_counts_unless_it_names_another_server(message: str, counts: bool) -> None:
    body = {"itemNotFound": {"message": message, "code": 404}}
    nova = _reader(lambda _query: (404, body))

    if counts:
        assert nova.get_server(ASKED).status == 404
    else:
        with pytest.raises(MalformedResponse, match="about something else"):
            nova.get_server(ASKED)
