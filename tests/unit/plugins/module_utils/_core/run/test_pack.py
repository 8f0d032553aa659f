"""A pack comes through every reader unchanged, or is refused."""

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

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.run import pack as pack_module
from .......plugins.module_utils._core.run.pack import (
    MAX_LENGTH,
    find_packs,
    pack_files,
    read_packed,
    read_packed_plan,
    unpack_files,
)

PREFIX = "osops.placement.run:1:"
PLAN = {"region": "{{ 1 }} #", "changes": [{"generation": None}]}
RECORDS = [{"event": "before"}, {"event": "after", "reason": "…"}]
ONE, TWO = pack_files({"journal": RECORDS}), pack_files({"plan": PLAN, "moves": []})
DAMAGED = "cut short"
# All characters of a pack, and some that do not belong there.
CHARACTERS = st.characters(codec="utf-8") | st.sampled_from("0123456789abcdefXYZ_-:/=. \n")


def sign(contents: bytes) -> str:
    """Return a pack with a correct digest, as a forger would write it."""
    return sign_data(base64.urlsafe_b64encode(contents).decode().rstrip("="))


def sign_data(data: str) -> str:
    return f"{PREFIX}{hashlib.sha256(data.encode()).hexdigest()}:{data}"


def sign_json(value: t.Any) -> str:
    return sign(zlib.compress(json.dumps(value).encode()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=10,
)


@hypothesis.given(plan=st.dictionaries(st.text(), JSON), records=st.lists(JSON))
def test_files_come_back_as_they_were(plan: t.Any, records: t.Any) -> None:
    text = pack_files({"plan": plan, "moves": records})

    assert unpack_files([text, ONE]) == [{"plan": plan, "moves": records}, {"journal": RECORDS}]
    assert find_packs(text) == [text]
    # Nothing that a reader of YAML or a template could evaluate, or where a line could break.
    assert not set(text) & set(" {}[]#'\"\\\n&*!|>%@`,?/=+")


@hypothesis.given(data=st.data())
def test_any_edited_character_is_refused(data: st.DataObject) -> None:
    where = data.draw(st.integers(0, len(ONE) - 1))
    other = data.draw(CHARACTERS.filter(lambda character: character != ONE[where]))

    with pytest.raises(InvalidInput):
        unpack_files([ONE[:where] + other + ONE[where + 1 :]])


def test_any_cut_is_refused() -> None:
    for length in range(len(ONE)):
        for part in (ONE[:length], ONE[length + 1 :]):
            with pytest.raises(InvalidInput):
                unpack_files([part])


def test_bits_that_nothing_unpacks_are_refused() -> None:
    """Python decodes several texts to the same bytes."""
    texts = (pack_files({"journal": ["x" * length]}) for length in range(9))
    data = next(data for data in (text.rpartition(":")[2] for text in texts) if len(data) % 4)
    edited = data[:-1] + chr(ord(data[-1]) + 1)
    assert base64.urlsafe_b64decode(data + "==") == base64.urlsafe_b64decode(edited + "==")

    for forged in (edited, f"{data}=", f"{data}==", f"{data}==AAAA", f"{data}\n", f" {data}"):
        with pytest.raises(InvalidInput, match=DAMAGED):
            unpack_files([sign_data(forged)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ONE.replace(":1:", ":2:"), "version '2'"),
        ("osops.placement.run:" + "2" * 21 + ":", f"version '{'2' * 20}'"),
        ("osops.placement.plan:1:eNq", "version 2.0"),
        ("osops.placement.journal:1:1/1:00:ab", "version 2.0"),
        (PREFIX, DAMAGED),
        (sign(b"not compressed"), DAMAGED),
        (sign(zlib.compress(b"{}")[:-1]), DAMAGED),
        (sign(zlib.compress(b"{}") + b"more"), DAMAGED),
        (sign(zlib.compress(b"{")), DAMAGED),
        (sign(zlib.compress(b"[" * 100_000)), DAMAGED),
        (sign(zlib.compress(b" " * (64 << 20))), DAMAGED),
        *((sign_json(value), DAMAGED) for value in (None, [], "plan.json")),
        *((sign_json({"plan": plan}), DAMAGED) for plan in ("/etc/passwd", None)),
        (sign_json({"journal": "journal.jsonl"}), DAMAGED),
        (sign_json({"moves": {}}), DAMAGED),
        (sign_json({"../plan": {}}), DAMAGED),
    ],
    ids=range(19),
)
def test_refusal_says_in_one_sentence_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        unpack_files([text])

    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_packs_together_unpack_to_no_more_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_module, "_MAX_BYTES", 100)
    half = sign_json({"moves": [0] * 15})

    assert len(unpack_files([half])) == 1
    with pytest.raises(InvalidInput):
        unpack_files([half] * 2)
    with pytest.raises(InvalidInput):
        unpack_files([sign_json({"moves": [0] * 30}), half])
    # No limit is none for a library that unpacks.
    monkeypatch.setattr(pack_module, "_MAX_BYTES", len(json.dumps({"moves": [0] * 15})))
    assert len(unpack_files([half])) == 1
    with pytest.raises(InvalidInput):
        unpack_files([half] * 2)


def test_files_that_are_too_long_are_left_out_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(length: int) -> str:
        return pack_files({"journal": [random.Random(1).randbytes(length).hex()]})

    assert len(pack(290_000)) <= MAX_LENGTH
    assert pack(310_000) == ""
    monkeypatch.setattr(pack_module, "_MAX_BYTES", 1000)
    assert pack_files({"journal": ["0" * 1000]}) == ""


def test_the_longest_pack_may_have_as_many_characters_as_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pack_module, "MAX_LENGTH", len(ONE))
    assert unpack_files([pack_files({"journal": RECORDS})]) == [{"journal": RECORDS}]

    monkeypatch.setattr(pack_module, "MAX_LENGTH", len(ONE) - 1)
    assert pack_files({"journal": RECORDS}) == ""
    with pytest.raises(InvalidInput, match=DAMAGED):
        unpack_files([ONE])


def hand_on(value: t.Any) -> t.Any:
    """Return the value as the next job gets it, from the reader of the installed ansible-core."""

    class Unsafe(yaml.SafeDumper):
        pass

    Unsafe.add_representer(str, lambda dumper, text: dumper.represent_scalar("!unsafe", text))
    return DataLoader().load(yaml.dump({"journal": value}, Dumper=Unsafe))["journal"]


@pytest.mark.parametrize(
    "arrive",
    [
        hand_on,
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
        lambda value: [{"host": "compute-1", "packed": value[0]}, {"packed": value[-1]}],
        lambda value: "".join(f"- {part}\n" for part in value),
        lambda value: [f" {part}\n" for part in value],
    ],
    ids=range(15),
)
def test_packs_are_found_however_they_arrive(arrive: t.Callable[[t.Any], t.Any]) -> None:
    assert find_packs(arrive([ONE, TWO])) == [ONE, TWO]


@pytest.mark.parametrize(
    "value",
    [
        *(None, 7, b"x", {}, [], [{}], "", RECORDS, PLAN),
        *("orphan-cleanup/journal-1.jsonl", ["orphan-cleanup/journal-1.jsonl"]),
        *("/x/osops.placement.run:1:", "x.osops.placement.run:1:"),
    ],
    ids=str,
)
def test_anything_else_has_no_pack(value: t.Any) -> None:
    assert find_packs(value) == []
    assert read_packed(value, "journal") is None


def test_first_file_that_is_there_counts() -> None:
    assert read_packed([ONE, TWO], "journal", "plan") == ("journal", [RECORDS])
    assert read_packed(TWO, "journal", "plan") == ("plan", [PLAN])
    assert read_packed([TWO, TWO], "moves") == ("moves", [[], []])
    with pytest.raises(InvalidInput, match="moves and plan"):
        read_packed(TWO, "journal")


def test_text_that_is_no_pack_among_packs_is_not_left_out() -> None:
    for others in ([""], ["sops.placement.run:1:x"], [ONE[:-1]]):
        with pytest.raises(InvalidInput, match=DAMAGED):
            read_packed([ONE, *others], "journal")


def test_a_plan_is_that_of_one_pack() -> None:
    assert read_packed_plan(TWO) == read_packed_plan([ONE, TWO]) == PLAN
    assert read_packed_plan("plan.json") is read_packed_plan(PLAN) is read_packed_plan("") is None
    for wrong in (ONE, f"{TWO} {TWO}", TWO[:-1]):
        with pytest.raises(InvalidInput):
            read_packed_plan(wrong)
