"""A cache or a proxy that answers a request about one server with the answer about another one."""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._common.errors import MalformedResponse
from .......plugins.module_utils._core.clients.nova import NovaReader
from ...service import Response, Service

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
ACTION = {
    "action": "delete",
    "request_id": "req-1",
    "user_id": "u",
    "start_time": None,
    "message": None,
}


def _answer_about(uuid: str) -> dict[str, t.Any]:
    action = {**ACTION, "instance_uuid": uuid}
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
    service = Service({}, (2, 96))
    body = {"itemNotFound": {"message": message, "code": 404}}
    service.request = lambda *_arguments, **_options: Response(404, body)  # type: ignore[method-assign]
    nova = NovaReader(service.open("Nova", (2, 60)))

    if counts:
        assert nova.get_server(ASKED).status == 404
    else:
        with pytest.raises(MalformedResponse, match="about something else"):
            nova.get_server(ASKED)


def _open(answers: dict[str, t.Any]) -> NovaReader:
    return NovaReader(Service(answers, (2, 96)).open("Nova", (2, 60)))
