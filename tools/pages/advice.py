"""Every sentence that tells the user to do something, and the tests that follow it.

A sentence is found by its words: a clause that begins with one of the verbs. It has the ID of its
reason, or else the name of its file and of the function or constant that has it. A test says by
`@pytest.mark.follows` which of them it follows: it does what is said, where it is said.
"""

import ast
import pathlib
import re
import typing as t

from ..markup import escape, format_table
from .reasons import format_words, is_reason

ROOT = pathlib.Path(__file__).parents[2]
# Documentation, names, and sentences about wrong variables, which have a table of their own.
_LEFT_OUT = {"modules", "doc_fragments", "lookup", "_variables", "kind_table.py"}
# What begins with one of these words tells nobody to do anything.
_OTHERS = re.compile(
    r"resize \S+ (to|of)|resize or cold|a resize|detach a port|make of|name of|state of|check mode"
    r"|list --|use of|move to|see below|is to be"
)
_VERBS = (
    r"abort|add|ask|build|check|choose|clean|compare|confirm|connect|copy|correct|"
    r"create|cut|decommission|delete|detect|disable|drain|enable|end|evacuate|fence|"
    r"find|fix|free|give|have|heal|increase|install|keep|leave|look|lower|make|"
    r"mend|migrate|mount|move|name|pass|plan|put|raise|read|reboot|rebuild|redeploy|"
    r"remove|rename|repeat|replace|reset|restart|restore|retry|return|revert|run|"
    r"save|select|set|shut|solve|start|stop|take|try|unset|upgrade|use|verify|wait|"
    r"write"
)
_ADVICE = re.compile(
    rf"(?:^|[.:;,] |\((?=\w+ \w)|\b(?:and|then|first) )(?:do not )?(?:{_VERBS})\b"
    r"(?! (?:is|are|was|were|has|failed|of|mode)\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z…])")


def list_advice() -> dict[str, str]:
    """Return all advice by its key, sorted, with an ellipsis for what differs from time to time."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        if _LEFT_OUT.isdisjoint(path.parts):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for key, words in _list_texts(tree, path.stem, None):
                told = [one for one in _SENTENCE.split(words) if _is_advice(one)]
                found.setdefault(key, []).extend(told)
    return {key: " ".join(told) for key, told in sorted(found.items()) if told}


def _is_advice(sentence: str) -> bool:
    return bool(_ADVICE.search(_OTHERS.sub("", sentence))) and len(sentence.split()) > 2


def _list_texts(node: ast.AST, place: str, identity: str | None) -> t.Iterator[tuple[str, str]]:
    """Yield each text of the code with the key that it has as advice; no docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        within, known = place, identity
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            within = f"{place.partition('.')[0]}.{child.name}"
        elif isinstance(child, ast.Assign) and isinstance(node, ast.Module):
            within = f"{place}.{getattr(child.targets[0], 'id', '')}"
        elif isinstance(child, ast.Call):
            if ast.unparse(child.func) == "InvalidInput":
                continue
            known = ast.literal_eval(child.args[0]) if is_reason(child) else identity
        if isinstance(child, ast.Constant | ast.JoinedStr):
            yield known or place, format_words(child)
        else:
            yield from _list_texts(child, within, known)


def list_followers() -> dict[str, list[str]]:
    """Return by key the tests that follow an advice, as their paths from `tests` on and names."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in getattr(node, "decorator_list", []):
                if ast.unparse(mark).startswith("pytest.mark.follows("):
                    test = f"{path.relative_to(ROOT / 'tests')}::{node.name}"
                    for key in mark.args:
                        found.setdefault(ast.literal_eval(key), []).append(test)
    return found


def format_advice() -> str:
    """Return a table of all advice, with the test that follows it or a dash."""
    followers = list_followers()
    rows = (
        (
            f"`{key}`",
            " ".join(escape(words, "|<*").split()),
            "<br>".join(f"`{test}`" for test in followers.get(key, [])) or "–",
        )
        for key, words in list_advice().items()
    )
    return format_table(["ID or place", "what it says", "followed in"], rows)
