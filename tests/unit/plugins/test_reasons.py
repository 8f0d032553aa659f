"""Each reason has an ID of its own, and a test that asserts it."""

import collections
import copy
import pickle
import re
from pathlib import Path

from ....plugins.module_utils._common.errors import CloudError, InvalidInput, Reason
from ....tools.pages.advice import list_advice, list_followers
from ....tools.pages.reasons import list_error_ids, list_reasons

TESTS = Path(__file__).parents[2]
# So many pieces of advice have no test that follows them (docs/advice.md). There are only fewer.
NOT_FOLLOWED = 194
_QUOTED = re.compile(r'"([a-z0-9_]+)"')


def test_each_id_is_defined_once_and_in_snake_case() -> None:
    ids = [reason.id for reason in list_reasons()] + list(list_error_ids())
    counts = collections.Counter(ids)

    assert len(counts) > 300
    assert [name for name, count in counts.items() if count > 1] == []
    assert [name for name in counts if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)] == []


def test_each_id_is_asserted() -> None:
    quoted: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        if path != Path(__file__):
            quoted.update(_QUOTED.findall(path.read_text(encoding="utf-8")))

    assert {reason.id for reason in list_reasons()} - quoted == set()


def test_new_advice_is_followed() -> None:
    keys, followers = list_advice().keys(), list_followers()

    assert followers.keys() - keys == set()
    assert len(keys - followers.keys()) <= NOT_FOLLOWED


def test_a_reason_is_its_words_and_keeps_its_id() -> None:
    reason = Reason("server_gone", "It is gone.")

    assert (reason, reason.id) == ("It is gone.", "server_gone")
    for copied in (copy.deepcopy(reason), pickle.loads(pickle.dumps(reason))):
        assert (copied, copied.id) == (reason, reason.id)
    assert type(str(reason)) is str


def test_a_doubt_about_a_reason_decides() -> None:
    reason = Reason("found", "It is left over.").but(Reason("doubted", "a cell is down"))

    assert (reason.id, reason) == ("doubted", "It is left over. But a cell is down.")
    assert reason.extend("", "Run again.").id == "doubted"
    assert reason.extend("", "Run again.").endswith("is down. Run again.")


def test_an_error_has_its_own_id_or_that_of_its_class() -> None:
    errors = [
        InvalidInput("Wrong."),
        InvalidInput("not_a_root", "Wrong."),
        InvalidInput(Reason("not_a_root", "Wrong.")),
        CloudError("http://me:secret@host does not answer."),
    ]

    assert [error.reason.id for error in errors] == [
        "invalid_input",
        "not_a_root",
        "not_a_root",
        "cloud_error",
    ]
    assert {str(error) for error in errors[:3]} == {"Wrong."}
    assert errors[3].reason == str(errors[3]) == "http://host does not answer."
