"""The rules that no answer may let a run break."""

import dataclasses as d
import re
import typing as t
from collections.abc import Container, Iterator, Mapping, Sequence

from .truth import Held, State, list_differences
from .wire import Write

# How long a message may be.
_MAX_MESSAGE = 400
# What tells that something in our own code was not prepared for an answer.
_TRACEBACK = re.compile(r"Traceback \(most recent|unexpected [A-Z]\w+|object at 0x|\bNoneType\b")
_DUMP = re.compile(r"""[\[{]['"]\w+['"]: |\[\{|\{\{['"]|<!DOCTYPE""")
# What says that a write may have been made.
_DOUBTS = ("unknown whether", "accepted the change", "already has what was to be written")
_UNCHANGED = ("skipped", "failed")


@d.dataclass(frozen=True)
class Violation:
    """A broken rule, and what shows it."""

    rule: str
    what: str
    is_about_truth: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


@d.dataclass
class Allowed:
    """What each consumer may have: what it has before, and what a run without faults makes of it.

    contents: by consumer, None where that is nothing.
    """

    contents: dict[str, set[Held | None]]

    def has(self, consumer: str, held: Held | None) -> bool:
        content = held.content if held else None
        return content in self.contents.get(consumer, {None})


def check_allocations(
    before: State, now: State, allowed: Allowed, writes: Sequence[Write]
) -> Iterator[Violation]:
    """No allocation that is needed has changed, not even its generation."""
    written = {consumer for write in writes for consumer in write.consumers if write.status < 300}
    for consumer in sorted(list_differences(before, now)):
        if consumer not in written:
            # Nova did it itself.
            continue
        if not allowed.has(consumer, now.get(consumer)):
            yield Violation(
                "an allocation that is needed was changed",
                f"{consumer} had {before.get(consumer)}, and has {now.get(consumer)}",
                True,
            )
    for consumer in sorted(written & before.keys()):
        if len(allowed.contents.get(consumer, {None})) < 2 and consumer in now:
            yield Violation("a consumer without a fault was written", consumer, True)


def check_journal(writes: Sequence[Write]) -> Iterator[Violation]:
    """The journal has each write before it happens."""
    for write in writes:
        if write.unrecorded:
            yield Violation(
                "a write was not in the journal before", ", ".join(sorted(write.unrecorded))
            )


def check_outcomes(
    before: State, now: State, result: Mapping[str, t.Any], writes: Sequence[Write]
) -> Iterator[Violation]:
    """What the run says of each consumer is true."""
    changed = list_differences(before, now)
    written = {consumer for write in writes for consumer in write.consumers if write.status < 300}
    outcomes = result.get("outcomes", [])
    spoken: set[str] = set()
    for outcome in outcomes:
        consumers = _list_consumers(outcome)
        spoken |= consumers
        said = outcome["outcome"]
        is_unknown = any(words in outcome["reason"] for words in _DOUBTS)
        if said not in _UNCHANGED and not changed & consumers and said != "restored":
            yield Violation(f"{said} is reported, and nothing changed", str(outcome)[:600], True)
        is_denied = said in _UNCHANGED and changed & consumers & written and not is_unknown
        if is_denied and not any(_says_changed(other, consumers) for other in outcomes):
            yield Violation(f"{said} is reported, and it was changed", str(outcome)[:600], True)
    for consumer in sorted(changed & written - spoken):
        yield Violation("a change is not reported", f"{consumer}: {str(result)[:400]}", True)


def _says_changed(outcome: Mapping[str, t.Any], consumers: Container[str]) -> bool:
    is_same = any(consumer in consumers for consumer in _list_consumers(outcome))
    return is_same and outcome["outcome"] not in _UNCHANGED


def _list_consumers(outcome: Mapping[str, t.Any]) -> set[str]:
    found = {outcome.get("consumer")}
    for name in ("change", "write"):
        change = outcome.get(name) or {}
        partner = change.get("partner") or {}
        found |= {change.get("consumer"), partner.get("consumer")}
    partner = outcome.get("partner") or {}
    found.add(partner.get("consumer"))
    return {consumer for consumer in found if consumer}


def check_texts(name: str, result: Mapping[str, t.Any]) -> Iterator[Violation]:
    """Every message is a sentence for an operator."""
    message = str(result.get("msg", ""))
    if result.get("failed"):
        if not message.strip():
            yield Violation("a failure has no message", name)
        if len(message) > _MAX_MESSAGE:
            yield Violation("a message is too long", f"{name}: {len(message)}: {message}")
        if "\n" in message.strip():
            yield Violation("a message has several lines", f"{name}: {message}")
    for text in _list_texts(result):
        if _TRACEBACK.search(text):
            yield Violation("a traceback or an error of Python", f"{name}: {text[:1500]}")
        elif _DUMP.search(text):
            yield Violation("a message shows raw data", f"{name}: {text[:600]}")


def check_output(output: str) -> Iterator[Violation]:
    """The output of a playbook has no traceback."""
    found = _TRACEBACK.search(output)
    if found:
        place = max(found.start() - 300, 0)
        shown = output[place : found.end() + 1200]
        yield Violation("a traceback or an error of Python", shown)


# The keys whose values are sentences.
_SENTENCES = ("msg", "reason", "failed_checks", "warnings", "why_full", "stopped", "exception")


def _list_texts(value: t.Any, is_sentence: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        if is_sentence:
            yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _list_texts(inner, key in _SENTENCES)
    elif isinstance(value, list):
        for inner in value:
            yield from _list_texts(inner, is_sentence)
