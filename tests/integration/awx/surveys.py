"""AWX's rules for surveys, for the answers to them, and for other variables of a launch."""

from __future__ import annotations

import json
import typing as t

import yaml

from .kinds import Entry
from .store import Refused

# The type of the default, which is text for a multiselect: one choice in each line.
_DEFAULTS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "textarea": (str,),
    "password": (str,),
    "integer": (int,),
    "float": (float, int),
    "multiplechoice": (str,),
    "multiselect": (str,),
}
_QUESTION = {"type": str, "question_name": str, "variable": str, "required": bool}


def check_survey(spec: Entry) -> None:
    """Refuse a survey that AWX refuses; an empty name is none of its reasons."""
    for field, wanted in (("name", str), ("description", str), ("spec", list)):
        if field not in spec:
            raise Refused(400, {"error": f"Field '{field}' is missing from survey spec."})
        if not isinstance(spec[field], wanted):
            raise Refused(400, {"error": f"Expected {wanted.__name__} for field '{field}'."})
    if not spec["spec"]:
        raise Refused(400, {"error": "'spec' doesn't contain any items."})
    variables = set()
    for number, question in enumerate(spec["spec"]):
        if error := _mistake(question, number):
            raise Refused(400, {"error": error})
        if question["variable"] in variables:
            error = f"'variable' '{question['variable']}' duplicated in survey question {number}."
            raise Refused(400, {"error": error})
        variables.add(question["variable"])


def _mistake(question: Entry, number: int) -> str:
    for field, wanted in _QUESTION.items():
        if field not in question:
            return f"'{field}' missing from survey question {number}"
        if not isinstance(question[field], wanted):
            return f"'{field}' in survey question {number} expected to be {wanted.__name__}."
    kind, default = question["type"], question.get("default", "")
    if kind not in _DEFAULTS:
        return f"'{kind}' in survey question {number} is not one of the allowed question types."
    if default != "" and not isinstance(default, _DEFAULTS[kind]):
        return f"Default value {default} in survey question {number} expected to be {kind}."
    for limit in ("min", "max"):
        if question.get(limit) is not None and not isinstance(question[limit], int):
            return f"The {limit} limit in survey question {number} expected to be integer."
    if kind in ("multiplechoice", "multiselect"):
        return _mistaken_choices(question, number)
    return ""


def _mistaken_choices(question: Entry, number: int) -> str:
    if "choices" not in question:
        return f"Survey question {number} of type {question['type']} must specify choices."
    defaults = str(question.get("default", "")).splitlines()
    if question["type"] == "multiplechoice" and len(defaults) > 1:
        return "Multiple Choice (Single Select) can only have one default value."
    if any(default not in question["choices"] for default in defaults):
        return "Default choice must be answered from the choices listed."
    return ""


def questions_of(template: Entry, survey: Entry | None) -> list[Entry]:
    """Return the questions that a template asks. A disabled survey asks nothing."""
    if not template.get("survey_enabled") or not survey:
        return []
    return list(survey["spec"])


def _wrong_answer(question: Entry, answers: Entry, required: bool) -> str:
    """Return what is wrong with the answer to one question. A default is no answer."""
    variable, kind = question["variable"], question["type"]
    if variable not in answers:
        return f"'{variable}' value missing" if question["required"] and required else ""
    answer = answers[variable]
    if kind in ("text", "textarea", "password"):
        return _wrong_size(question, answer, str, "a string")
    if kind == "integer":
        return _wrong_size(question, answer, int, "an integer")
    choices = question["choices"]
    if isinstance(choices, str):
        choices = choices.splitlines()
    if kind == "multiselect" and not isinstance(answer, list):
        return f"'{variable}' value is expected to be a list."
    for one in answer if kind == "multiselect" else [answer]:
        if one not in choices:
            return f"Value {one} for '{variable}' expected to be one of {choices}."
    return ""


def _wrong_size(question: Entry, answer: t.Any, wanted: type[str] | type[int], name: str) -> str:
    variable, least, most = question["variable"], question.get("min"), question.get("max")
    # True is an int to Python, and not to AWX.
    if not isinstance(answer, wanted) or isinstance(answer, bool):
        return f"Value {answer} for '{variable}' expected to be {name}."
    size: int = len(answer) if isinstance(answer, str) else answer
    if least not in ("", None) and size < int(least):
        return f"'{variable}' value {answer} is too small (must be at least {least})."
    if most not in ("", None) and size > int(most):
        return f"'{variable}' value {answer} is too large (must be no more than {most})."
    return ""


def read_variables(given: t.Any) -> Entry:
    """Return variables that are given as a mapping, as JSON or as YAML."""
    variables = yaml.safe_load(given) if isinstance(given, str) else given
    if variables in (None, ""):
        return {}
    if not isinstance(variables, dict):
        raise Refused(400, {"extra_vars": ["Must be valid JSON or YAML."]})
    return dict(variables)


class Accepted(t.NamedTuple):
    """The variables that a template takes, those that it does not take, and the errors."""

    variables: Entry
    ignored: Entry
    errors: Entry


def accept(
    template: Entry, questions: list[Entry], given: Entry, *, required: bool = True
) -> Accepted:
    """Sort the variables that somebody wants to give to a template.

    A variable that is neither asked for nor the template's own is an error for schedules and
    nodes; a launch only ignores it.
    """
    accepted, rest, ignored, wrong = {}, dict(given), {}, []
    for question in questions:
        variable = question["variable"]
        if error := _wrong_answer(question, given, required):
            wrong.append(error)
            if variable in rest:
                ignored[variable] = rest.pop(variable)
        elif variable in rest:
            accepted[variable] = rest.pop(variable)
    errors: Entry = {"variables_needed_to_start": wrong} if wrong else {}
    if template.get("ask_variables_on_launch"):
        accepted |= rest
        rest = {}
    own = read_variables(template.get("extra_vars"))
    rest = {name: value for name, value in rest.items() if (name, value) not in own.items()}
    if rest:
        ignored |= rest
        names = ", ".join(rest)
        errors["extra_vars"] = [
            f"Variables {names} are not allowed on launch. Check the Prompt on Launch setting on "
            "the Job Template to include Extra Variables."
        ]
    return Accepted(accepted, ignored, errors)


def variables_of_job(template: Entry, questions: list[Entry], given: Entry) -> str:
    """Return the extra variables of a job as JSON: template, defaults, then what was given.

    A default that is not a valid answer is left out, and that of a multiselect never is one: it
    is text and not a list.
    """
    defaults = {}
    for question in questions:
        variable, default = question["variable"], question.get("default")
        if default is not None and not _wrong_answer(question, {variable: default}, True):
            defaults[variable] = default
    own = read_variables(template.get("extra_vars"))
    return json.dumps({**own, **defaults, **given})
