"""AWX's rules for surveys, for the answers to them, and for other variables of a launch."""

import json
import typing as t

import yaml

from .store import Entry, Refused

_TEXTS = ("text", "textarea", "password")
_CHOICES = ("multiplechoice", "multiselect")
# The type of the default, which is text for a multiselect: one choice in each line.
_DEFAULTS: dict[str, type] = {"integer": int, **dict.fromkeys((*_TEXTS, *_CHOICES), str)}
_SURVEY = {"name": str, "description": str, "spec": list}
_QUESTION = {"type": str, "question_name": str, "variable": str, "required": bool}


def check_survey(spec: Entry) -> None:
    """Refuse a survey that AWX refuses; an empty name is none of its reasons."""
    mistakes = _wrong_types(spec, _SURVEY)
    if not mistakes:
        variables = [question.get("variable") for question in spec["spec"]]
        if not variables or len(set(variables)) < len(variables):
            mistakes.append("spec")
        mistakes += [name for question in spec["spec"] for name in _find_mistakes(question)]
    if mistakes:
        raise Refused(400, {"error": f"These parts of the survey are wrong: {mistakes}."})


def _wrong_types(given: Entry, wanted: t.Mapping[str, type]) -> list[str]:
    return [name for name, of_type in wanted.items() if not isinstance(given.get(name), of_type)]


def _find_mistakes(question: Entry) -> list[str]:
    """Return the fields of a question that are wrong."""
    mistakes = _wrong_types(question, _QUESTION)
    kind, default = question.get("type"), question.get("default", "")
    if kind not in _DEFAULTS:
        return [*mistakes, "type"]
    if default != "" and not isinstance(default, _DEFAULTS[kind]):
        return [*mistakes, "default"]
    for limit in ("min", "max"):
        if question.get(limit) is not None and not isinstance(question[limit], int):
            mistakes.append(limit)
    if kind in _CHOICES:
        defaults = default.splitlines()
        if kind == "multiplechoice" and len(defaults) > 1:
            mistakes.append("default")
        if "choices" not in question or not set(defaults) <= set(question["choices"]):
            mistakes.append("choices")
    return mistakes


def questions_of(template: Entry, surveys: t.Mapping[int, Entry]) -> list[Entry]:
    """Return the questions that a template asks. A disabled survey asks nothing."""
    if not template.get("survey_enabled"):
        return []
    return list(surveys.get(template["id"], {}).get("spec", []))


def _wrong_answer(question: Entry, answers: Entry, required: bool = True) -> str:
    """Return what is wrong with the answer to one question. A default is no answer."""
    variable, kind = question["variable"], question["type"]
    if variable not in answers:
        return f"'{variable}' value missing" if question["required"] and required else ""
    answer = answers[variable]
    if kind not in _CHOICES:
        return _wrong_size(question, answer, str if kind in _TEXTS else int)
    choices = question["choices"]
    if kind == "multiselect" and not isinstance(answer, list):
        return f"'{variable}' value is expected to be a list."
    for one in answer if kind == "multiselect" else [answer]:
        if one not in choices:
            return f"Value {one} for '{variable}' expected to be one of {choices}."
    return ""


def _wrong_size(question: Entry, answer: t.Any, wanted: type) -> str:
    variable, least, most = question["variable"], question.get("min"), question.get("max")
    # True is an int to Python, and not to AWX.
    if not isinstance(answer, wanted) or isinstance(answer, bool):
        return f"Value {answer} for '{variable}' expected to be {wanted.__name__}."
    size = len(answer) if isinstance(answer, str) else answer
    if (least is not None and size < least) or (most is not None and size > most):
        return f"'{variable}' value {answer} is too small or too large."
    return ""


def read_variables(given: t.Any) -> Entry:
    """Return variables that are given as a mapping, as JSON or as YAML."""
    variables = yaml.safe_load(given) if isinstance(given, str) else given
    if not isinstance(variables or {}, dict):
        raise Refused(400, {"extra_vars": ["Must be valid JSON or YAML."]})
    return dict(variables or {})


class Accepted(t.NamedTuple):
    """The variables that a template takes, and what is wrong with the others."""

    variables: Entry
    errors: Entry


def accept(
    template: Entry, questions: list[Entry], given: Entry, *, required: bool = True
) -> Accepted:
    """Sort the variables that somebody wants to give to a template.

    A variable that is neither asked for nor the template's own is an error for schedules and
    nodes; a launch only ignores it.
    """
    asked = {one["variable"]: _wrong_answer(one, given, required) for one in questions}
    wrong = [error for error in asked.values() if error]
    accepted = {name: value for name, value in given.items() if asked.get(name) == ""}
    rest = {name: value for name, value in given.items() if name not in asked}
    errors: Entry = {"variables_needed_to_start": wrong} if wrong else {}
    own = read_variables(template.get("extra_vars"))
    if template.get("ask_variables_on_launch"):
        accepted |= rest
    elif others := [name for name in rest if (name, rest[name]) not in own.items()]:
        said = f"Variables {', '.join(others)} are not allowed on launch."
        errors["extra_vars"] = [said]
    return Accepted(accepted, errors)


def variables_of_job(template: Entry, questions: list[Entry], given: Entry) -> str:
    """Return the extra variables of a job as JSON: template, defaults, then what was given.

    A default that is not a valid answer is left out, and that of a multiselect never is one: it
    is text and not a list.
    """
    defaults = {
        question["variable"]: question["default"]
        for question in questions
        if question.get("default") is not None
        and not _wrong_answer(question, {question["variable"]: question["default"]})
    }
    return json.dumps({**read_variables(template.get("extra_vars")), **defaults, **given})
