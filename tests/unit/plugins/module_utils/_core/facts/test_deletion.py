"""When Nova has said that a server is deleted, and what it has said of it."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.deletion import (
    describe_deletion,
    find_deleted_server,
    is_deleted,
)
from .......plugins.module_utils._core.models.nova import Action
from .......plugins.module_utils._core.models.snapshot import Evidence
from ...situations import Cloud, deleted_server
from ...world import NOW, answer

CREATED = Action("create", "req-1", "user", NOW, None)


def _read(actions: t.Any = None, **fields: t.Any) -> Evidence:
    """Return the answers about a deleted server, with other fields in the listing.

    actions: as Nova shows them; by default it shows a delete action.
    """
    cloud = Cloud()
    server = deleted_server(cloud)
    cloud.deleted[server] = d.replace(cloud.deleted[server], **fields)
    subject = cloud.snapshot().evidence[server]
    if actions is not None:
        subject = d.replace(subject, actions=actions)
    return subject


NO_ACTIONS = answer("GET actions", 404)
OTHER_ACTIONS = answer("GET actions", 200, (CREATED,))


@pytest.mark.parametrize(
    ("actions", "fields", "is_found"),
    [
        (None, {}, True),
        (NO_ACTIONS, {}, True),
        (None, {"status": "SOFT_DELETED"}, False),
        # The brief listing, which some credentials get.
        (None, {"status": ""}, True),
        (NO_ACTIONS, {"status": ""}, False),
        (OTHER_ACTIONS, {"status": ""}, False),
        (None, {"uuid": "another"}, False),
    ],
    ids=str,
)
def test_listing_of_the_deleted_counts_with_what_it_shows(
    actions: t.Any, fields: dict[str, t.Any], is_found: bool
) -> None:
    subject = _read(actions, **fields)

    assert (find_deleted_server(subject) is not None) is is_found


@pytest.mark.parametrize(
    "fields",
    [
        {"server": answer("GET server", 200)},
        {"server": answer("GET server", 503)},
        {"migrations": answer("GET migrations", 503)},
    ],
    ids=str,
)
def test_listing_of_the_deleted_needs_the_other_answers(fields: dict[str, t.Any]) -> None:
    assert not is_deleted(d.replace(_read(), **fields))


@pytest.mark.parametrize(
    ("actions", "fields", "said"),
    [
        (None, {}, f"User admin deleted server {{}} at {NOW}."),
        (NO_ACTIONS, {"terminated_at": "then"}, "was last changed at then; Nova recorded no"),
        (NO_ACTIONS, {"terminated_at": None, "updated": "later"}, "was last changed at later;"),
    ],
)
def test_deletion_is_described_by_what_nova_recorded(
    actions: t.Any, fields: dict[str, t.Any], said: str
) -> None:
    subject = _read(actions, **fields)

    assert said.format(subject.uuid) in describe_deletion(subject)
