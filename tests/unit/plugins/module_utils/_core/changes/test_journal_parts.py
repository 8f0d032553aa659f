# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A journal as texts: it comes through every reader unchanged, or is refused."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import typing as t
import zlib

import hypothesis
import hypothesis.strategies as st
import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.changes import journal_parts
from ansible_collections.osops.placement.plugins.module_utils._core.changes.journal_parts import (
    MAX_PART,
    MAX_TOTAL,
    find_journal_parts,
    is_journal_text,
    join_journal_parts,
    split_journal,
)

PREFIX = "osops.placement.journal:1:"
LINES = b'{"event": "before"}\n{"event": "after"}\n'
# All characters of a part, and some that do not belong there.
CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("0123456789abcdefXYZ_-:/=. \n")


def _random_bytes(length: int) -> bytes:
    """Bytes that cannot be compressed."""
    return random.Random(length).randbytes(length)


def _sign(contents: bytes, number: str = "1/1") -> str:
    """Return a part with a correct digest, as a forger would write it."""
    data = base64.urlsafe_b64encode(contents).decode().rstrip("=")
    return f"{PREFIX}{number}:{hashlib.sha256(data.encode()).hexdigest()}:{data}"


THREE = split_journal(_random_bytes(160_000))
(ONE,) = split_journal(LINES)


@hypothesis.given(lines=st.binary(max_size=2000), size=st.integers(1, 500))
def test_any_journal_comes_back_as_it_was(lines: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_parts, "MAX_PART", size)
        parts = split_journal(lines)

    assert join_journal_parts(parts) == [lines]
    assert all(is_journal_text(part) for part in parts)


@hypothesis.given(data=st.data())
def test_any_edited_character_is_refused(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_parts, "MAX_PART", 40)
        parts = split_journal(LINES)
    which = data.draw(st.integers(0, len(parts) - 1))
    where = data.draw(st.integers(0, len(parts[which]) - 1))
    other = data.draw(CHARACTERS.filter(lambda character: character != parts[which][where]))
    parts[which] = parts[which][:where] + other + parts[which][where + 1 :]

    with pytest.raises(InvalidInput):
        join_journal_parts(parts)


@hypothesis.given(data=st.data())
def test_parts_in_any_other_order_are_refused(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(3)), max_size=4))
    hypothesis.assume(chosen not in ([], [0, 1, 2]))

    with pytest.raises(InvalidInput):
        join_journal_parts([THREE[which] for which in chosen])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (THREE[:2], "The journal has 3 parts, and part 3 is missing"),
        (THREE[1:], "Text 1 is part 2 of a journal, where part 1 belongs"),
        ([THREE[0], THREE[2]], "Text 2 is part 3 of a journal, where part 2 belongs"),
        ([THREE[1], THREE[0], THREE[2]], "Text 1 is part 2 of a journal, where part 1 belongs"),
        ([THREE[0], *split_journal(_random_bytes(160_001))[1:]], "Text 2 is of another journal"),
        ([ONE[:-1]], "edited or cut short: its digest does not match"),
        ([ONE.replace(PREFIX, "osops.placement.journal:2:")], "Text 1 has version '2'"),
        ([f"osops.placement.journal:{'2' * 21}:"], f"Text 1 has version '{'2' * 20}' of"),
        ([THREE[0], THREE[1].replace(":1:2/3", ":1:2/1")], "Text 2 is of another journal"),
        ([ONE.replace(":1:1/1", ":1:1-1")], "Text 1 is not a part of a journal"),
        ([ONE, 7], "Text 2 is not a part of a journal"),
        ([ONE, None], "Text 2 is not a part of a journal"),
        ([ONE, {"event": "planned"}], "Text 2 is not a part of a journal"),
        ([ONE, ""], "Text 2 is not a part of a journal"),
        ([_sign(b"not compressed")], "cannot be unpacked"),
        ([_sign(zlib.compress(LINES)[:-1])], "cannot be unpacked"),
        ([_sign(zlib.compress(LINES) + b"more")], "cannot be unpacked"),
        ([_sign(zlib.compress(bytes(200 * 1024 * 1024)))], "cannot be unpacked"),
        ([], "There is no part of a journal"),
    ],
)
def test_refusal_says_in_one_sentence_what_is_wrong(parts: list[t.Any], said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        join_journal_parts(parts)

    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_several_journals_are_read_one_after_another() -> None:
    assert join_journal_parts([*THREE, ONE]) == [_random_bytes(160_000), LINES]


def test_no_part_and_no_journal_is_too_long() -> None:
    data_of_all = "".join(part.rpartition(":")[2] for part in THREE)

    assert [len(part.rpartition(":")[2]) for part in THREE[:2]] == [MAX_PART, MAX_PART]
    assert base64.urlsafe_b64decode(data_of_all + "=" * (-len(data_of_all) % 4))
    assert max(map(len, THREE)) < MAX_PART + 200
    longest = split_journal(_random_bytes(MAX_TOTAL * 3 // 4 - 1000))
    assert len(longest) == MAX_TOTAL // MAX_PART
    # A journal that does not fit is left out as a whole.
    assert split_journal(_random_bytes(MAX_TOTAL * 3 // 4 + 1)) == []


def _hand_on(value: t.Any) -> t.Any:
    """Return the value as the next job gets it, from the reader of the installed ansible-core."""

    class Unsafe(yaml.SafeDumper):
        pass

    Unsafe.add_representer(str, lambda dumper, text: dumper.represent_scalar("!unsafe", text))
    return DataLoader().load(yaml.dump({"journal": value}, Dumper=Unsafe))["journal"]


@pytest.mark.parametrize(
    "hand_on",
    [
        _hand_on,
        lambda value: yaml.safe_load(yaml.safe_dump(value)),
        lambda value: yaml.safe_load(yaml.safe_dump(value, default_style="|")),
        # By hand, without quotes, and as an answer of a survey.
        lambda value: yaml.safe_load("".join(f"- {part}\n" for part in value)),
        lambda value: DataLoader().load("".join(f"- !unsafe {part}\n" for part in value)),
        lambda value: json.loads(json.dumps(value, indent=2)),
        lambda value: json.dumps(value, indent=2),
        "\n".join,
        lambda value: " ".join(value) + "\n",
        # As AWX shows the artifacts of a job.
        lambda value: json.dumps({"orphan_cleanup_run": {}, "orphan_cleanup_journal": value}),
        lambda value: {"orphan_cleanup_run": {}, "orphan_cleanup_journal": value},
        lambda value: json.dumps({"by_host": {"host north": value}}, indent=4),
        lambda value: yaml.safe_dump({"a_plan": "osops.placement.plan:1:x", "journal": value}),
        lambda value: "".join(f"- {part}\n" for part in value),
        lambda value: [f" {part}\n" for part in value],
    ],
)
@pytest.mark.parametrize("parts", [[ONE], THREE], ids=["one", "three"])
def test_parts_are_read_however_they_arrive(
    hand_on: t.Callable[[t.Any], t.Any], parts: list[str]
) -> None:
    arrived = hand_on(parts)

    found = find_journal_parts(arrived)

    assert found is not None
    assert join_journal_parts(found) == join_journal_parts(parts)


def test_one_part_is_read_as_a_text() -> None:
    assert find_journal_parts(ONE) == [ONE]
    assert find_journal_parts(_hand_on(ONE)) == [ONE]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "orphan-cleanup/journal-1.jsonl",
        "/x/osops.placement.journal:1",
        "[1]",
        7,
        {},
        [],
        [{}],
        ["orphan-cleanup/journal-1.jsonl"],
    ],
)
def test_other_values_are_not_parts(value: t.Any) -> None:
    assert find_journal_parts(value) is None


def test_text_with_broken_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is neither JSON nor the parts"):
        find_journal_parts(f'["{ONE}"')
