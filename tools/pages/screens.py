"""What AWX asks a user, as text: a survey and an approval of the pattern."""

import pathlib
import textwrap
import typing as t

import yaml

PATTERN = pathlib.Path(__file__).parents[2] / "extensions" / "patterns" / "orphan_cleanup"
_WIDTH = 100


def draw_survey() -> str:
    """Return the survey of the workflow, with its defaults."""
    survey = _read("template_surveys/clean_up_orphans.yml")
    lines = [survey["name"], *_wrap(survey["description"], "")]
    for question in survey["spec"]:
        lines += ["", question["question_name"]]
        lines += _wrap(question["question_description"], "  ")
        lines += _draw_answer(question)
    return _fence(lines)


def draw_approval() -> str:
    """Return the approval that the workflow waits for."""
    for entry in _read("setup.yml")["awx_objects"]:
        if "approval" in entry:
            approval = entry["approval"]
            lines = [approval["name"], *_wrap(approval["description"], "")]
            return _fence([*lines, "", "[ Approve ]  [ Deny ]"])
    raise LookupError("setup.yml has no approval.")


def _draw_answer(question: dict[str, t.Any]) -> list[str]:
    default = str(question["default"])
    if not question["choices"]:
        return [f"  [ {default or ' ' * 20} ]"]
    chosen = default.split("\n")
    return [f"  [{'x' if choice in chosen else ' '}] {choice}" for choice in question["choices"]]


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _fence(lines: list[str]) -> str:
    return "\n".join(["```text", *lines, "```"])


def _read(name: str) -> t.Any:
    return yaml.safe_load((PATTERN / name).read_text(encoding="utf-8"))
