"""The IDs of all reasons, with the words beside them in the code."""

import ast
import dataclasses as d
import inspect
import pathlib
import typing as t

from ...plugins.module_utils._common import errors
from ..markup import escape, format_table

PLUGINS = pathlib.Path(__file__).parents[2] / "plugins"
_ERRORS = {
    name: known
    for name, known in vars(errors).items()
    if inspect.isclass(known)
    and issubclass(known, errors.PlacementToolsError)
    and known is not errors.PlacementToolsError
}


@d.dataclass(frozen=True)
class DefinedReason:
    """A reason where the code defines it.

    path: the file, from `plugins` on. words: with an ellipsis for what differs from time to time.
    """

    id: str
    path: pathlib.PurePath
    words: str


def list_reasons() -> list[DefinedReason]:
    """Return all reasons in the order of their IDs, and one that is defined twice both times."""
    reasons: list[DefinedReason] = []
    for path in sorted(PLUGINS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and is_reason(node):
                identity = ast.literal_eval(node.args[0])
                words = format_words(node.args[1])
                if identity:
                    reasons.append(DefinedReason(identity, path.relative_to(PLUGINS), words))
    return sorted(reasons, key=lambda reason: reason.id)


def is_reason(call: ast.Call) -> bool:
    """Return whether a call has an ID and words, as `Reason` and our errors take them."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return (name == "Reason" or name in _ERRORS) and len(call.args) > 1 and _is_text(call.args[0])


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def format_words(node: ast.expr) -> str:
    """Return a text of the code, with an ellipsis for what differs from time to time."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(format_words, node.values))
    return "…"


def list_error_ids() -> dict[str, str]:
    """Return the IDs of errors that are raised without one, each with what it means."""
    found: dict[str, str] = {}
    for error in _ERRORS.values():
        found[errors.name_class(error)] = (inspect.getdoc(error) or "").partition("\n\n")[0]
    return dict(sorted(found.items()))


def format_reasons() -> str:
    """Return a table of all reasons."""
    rows = [(reason.id, reason.words, _describe_place(reason)) for reason in list_reasons()]
    return _format_table(["ID", "words", "about"], rows)


def format_error_ids() -> str:
    """Return a table of the IDs of errors."""
    return _format_table(["ID", "meaning"], list_error_ids().items())


def _describe_place(reason: DefinedReason) -> str:
    """Return the kind that has the reason, or what the room of its file is about."""
    room = reason.path.parts[2]
    if room == "kinds":
        return f"[`{reason.path.stem}`](kinds.md#{reason.path.stem})"
    if reason.path.stem in ("soundness", "agreement"):
        return "[soundness](safety.md#soundness-checks)"
    return _PLACES.get(room, _PLACES.get(reason.path.parts[1], ""))


_PLACES = {
    "facts": "findings",
    "options": "findings",
    "judging": "findings",
    "expected": "[amounts](findings.md#checked-amounts)",
    "plan": "changes",
    "changes": "changes",
    "clients": "changes",
    "run": "changes",
    "_hypervisors": "[hypervisors](hypervisors.md)",
}


def _format_table(columns: list[str], rows: t.Iterable[tuple[str, ...]]) -> str:
    cells = (
        [f"`{name}`", *(" ".join(escape(text, "|<*").split()) for text in texts)]
        for name, *texts in rows
    )
    return format_table(columns, cells)
