# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compact plan as a text: it comes through every reader unchanged, or is refused."""

from __future__ import annotations

import base64
import json
import typing as t
import zlib

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.plan.approval import (
    MAX_COMPACT_CHANGES,
    Approval,
    ApprovedChange,
)
from ansible_collections.osops.placement.plugins.module_utils._core.plan.plan_text import (
    format_plan_text,
    is_plan_text,
    parse_plan_text,
)

CONSUMER = "11111111-2222-4333-8444-555555555555"
PREFIX = "osops.placement.plan:1:"

# Texts that YAML takes for something else.
OTHERS = ["NO", "on", "1", "0x10", "1:30", "null", "~", "1.5", ".inf", "2026-11-20", "=", "<<"]


def _approval(region: str | None = "RegionOne", count: int = 1) -> Approval:
    changes = []
    for number in range(count):
        consumer = f"{CONSUMER[:-4]}{number:04x}"
        changes.append(
            ApprovedChange(
                finding=f"deleted_server/{consumer}",
                kind="deleted_server",
                consumer=consumer,
                generation=number,
                digest=f"{number:064x}",
            )
        )
    return Approval(
        placement_endpoint="http://placement/",
        region=region,
        detected_at="2026-11-20T03:04:05Z",
        consumers=4711,
        count=count,
        changes=tuple(changes),
    )


def _pack(contents: bytes) -> str:
    return PREFIX + base64.b64encode(zlib.compress(contents)).decode()


def _hand_on(value: t.Any) -> t.Any:
    """Return the value as the next job gets it, from the reader of the installed ansible-core."""

    class Unsafe(yaml.SafeDumper):
        pass

    Unsafe.add_representer(str, lambda dumper, text: dumper.represent_scalar("!unsafe", text))
    return DataLoader().load(yaml.dump({"plan": value}, Dumper=Unsafe))["plan"]


@pytest.mark.parametrize("region", ["RegionOne", None, "", "{{ 1 }}", "{% x %}", *OTHERS])
def test_plan_is_the_same_in_the_next_job(region: str | None) -> None:
    approval = _approval(region)
    text = format_plan_text(approval.as_dict())

    arrived = _hand_on(text)

    assert arrived == text and is_plan_text(arrived)
    assert Approval.parse(parse_plan_text(arrived)) == approval
    assert Approval.parse(parse_plan_text(f"\n {arrived}\n")) == approval


def test_text_has_nothing_that_a_reader_could_evaluate() -> None:
    text = format_plan_text(_approval("{{ 1 }} #").as_dict())

    assert text.startswith(PREFIX)
    assert not set(text) & set(" {}[]#'\"\\\n&*!|>%@`,?")


def test_the_largest_plan_is_far_smaller_than_what_awx_keeps() -> None:
    approval = _approval(count=MAX_COMPACT_CHANGES)
    text = format_plan_text(approval.as_dict())

    assert MAX_COMPACT_CHANGES == 1000
    assert len(text) < 300 * 1024
    assert Approval.parse(parse_plan_text(text)) == approval


@pytest.mark.parametrize("value", [None, "", "plan.json", "/plan.json", {}, 1, False, b"x"])
def test_anything_else_is_not_a_plan_text(value: t.Any) -> None:
    assert not is_plan_text(value)


@pytest.mark.parametrize("version", ["2", "", "1a", "01"])
def test_other_versions_are_refused(version: str) -> None:
    text = format_plan_text(_approval().as_dict()).replace(":1:", f":{version}:", 1)

    with pytest.raises(InvalidInput, match=r"reads version 1\.$"):
        parse_plan_text(text)


def test_each_edited_character_is_noticed() -> None:
    text = format_plan_text(_approval().as_dict())
    for position in range(len(PREFIX), len(text)):
        other = "A" if text[position] != "A" else "B"
        with pytest.raises(InvalidInput, match=r"The (text of the )?compact plan"):
            Approval.parse(parse_plan_text(text[:position] + other + text[position + 1 :]))


def test_bits_of_the_last_character_that_nothing_unpacks_are_noticed() -> None:
    texts = (format_plan_text(_approval("x" * length).as_dict()) for length in range(100))
    text = next(text for text in texts if text.endswith("="))
    data = text.rstrip("=")
    # Before the padding, these bits are zero.
    edited = text.replace(data, data[:-1] + chr(ord(data[-1]) + 1))

    with pytest.raises(InvalidInput, match="edited or cut short"):
        parse_plan_text(edited)


def test_each_cut_is_noticed() -> None:
    text = format_plan_text(_approval().as_dict())
    for length in range(len(PREFIX), len(text)):
        with pytest.raises(InvalidInput, match="edited or cut short"):
            parse_plan_text(text[:length])


@pytest.mark.parametrize(
    "text",
    [
        PREFIX,
        f"{PREFIX}…",
        f"{PREFIX}e30=",
        f"{PREFIX}{{{{ 1 }}}}",
        _pack(b"{"),
        _pack(b"\xff"),
        _pack(b"[" * 100_000),
        format_plan_text(_approval().as_dict()) + "=",
        format_plan_text(_approval().as_dict()) + "AAAA",
    ],
)
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="edited or cut short: its text cannot be unpacked"):
        parse_plan_text(text)


def test_text_that_unpacks_to_more_than_any_plan_has_is_refused() -> None:
    largest = b'{"compact":true}'.ljust(4 * 1024 * 1024)

    assert parse_plan_text(_pack(largest)) == {"compact": True}
    with pytest.raises(InvalidInput, match="edited or cut short"):
        parse_plan_text(_pack(largest + b" "))


@pytest.mark.parametrize(
    "document", [None, [], "plan.json", 1, {}, {"compact": False}, {"compact": 1}, {"changes": []}]
)
def test_text_is_always_that_of_a_compact_plan(document: t.Any) -> None:
    """Without this, null would be no plan at all, and a run would detect and plan itself."""
    with pytest.raises(InvalidInput, match="does not have a compact plan in it"):
        parse_plan_text(_pack(json.dumps(document).encode()))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("placement_endpoint", None),
        ("placement_endpoint", ""),
        ("region", False),
        ("region", 1),
        ("detected_at", "2026-11-20T03:04:05+00:00"),
        ("detected_at", "2026-11-20 03:04:05"),
        ("detected_at", None),
        ("consumers", "4711"),
        ("consumers", True),
        ("count", 1.0),
        ("count", None),
        ("digest", None),
    ],
)
def test_each_field_has_one_type(field: str, value: t.Any) -> None:
    document: t.Any = {**_approval().as_dict(), field: value}

    with pytest.raises(InvalidInput, match=f"^The compact plan has .* as {field}, which must be "):
        Approval.parse(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("finding", None),
        ("kind", False),
        ("consumer", 1),
        ("generation", "1"),
        ("generation", -1),
        ("generation", False),
        ("digest", 10**63),
        ("digest", "A" * 64),
    ],
)
def test_each_field_of_a_change_has_one_type(field: str, value: t.Any) -> None:
    document: t.Any = _approval().as_dict()
    document["changes"][0][field] = value

    with pytest.raises(InvalidInput, match=f"^The compact plan has .* as {field}, which must be "):
        Approval.parse(document)
