"""Which mutants there are, and the sample of them that is judged.

A mutant is the code with one small change. Cosmic Ray makes the changes, and we add one that it
lacks: a statement that is not there.
"""

from __future__ import annotations

import collections
import dataclasses as d
import hashlib
import typing as t
from collections.abc import Iterable, Iterator
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names

from .normalizing import normalize

ROOM = "plugins/module_utils"
# What decides whether something may be changed, and what changes it.
MODULES = (
    "_core/kinds/*.py",
    "_core/judging/*.py",
    "_core/expected/amounts.py",
    "_core/expected/corrections.py",
    "_core/facts/deletion.py",
    "_core/facts/protections.py",
    "_core/facts/trees.py",
    "_core/plan/*.py",
    "_core/changes/*.py",
    "_core/run/*.py",
    "_hosts/emptiness.py",
    "_hosts/drain.py",
    "_hosts/redeploy.py",
    "_hosts/move_journal.py",
    "_hosts/move_run.py",
    "_hosts/server_move.py",
)

# A comparison with None has the same result either way, and whether equal texts are one object is
# the interpreter's own affair.
_SAME_RESULT = ("_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq")
# Most of Cosmic Ray's operators are about these nodes alone: asking all about each node takes
# minutes.
_NODE_TYPES = {"ReplaceBinaryOperator": "operator", "ReplaceComparisonOperator": "comparison"}
_BINARY = frozenset({"+", "-", "*", "/", "//", "%", "**", ">>", "<<", "|", "&", "^"})


class RemoveStatement(Operator):
    """An operator that removes a check, a call or a `raise`."""

    def mutation_positions(self, node: t.Any) -> Iterator[tuple[t.Any, t.Any]]:
        if _is_removable(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: t.Any, index: int) -> t.Any:
        prefix = node.get_first_leaf().prefix
        return parso.parse(f"{prefix}pass\n")

    @classmethod
    def examples(cls) -> Iterable[Example]:
        return (Example("if x:\n    y()\n", "pass\n"), Example("y()\n", "pass\n"))


def _is_removable(node: t.Any) -> bool:
    if node.type == "if_stmt":
        return not any(getattr(child, "value", "") in ("elif", "else") for child in node.children)
    if node.type != "simple_stmt":
        return False
    statement = node.children[0]
    if statement.type == "atom_expr":
        return bool(statement.children[-1].children[0].value == "(")
    return bool(statement.type == "raise_stmt")


@d.dataclass(frozen=True)
class Place:
    """A place of a module that an operator changes in one way or in several."""

    module: str
    start: tuple[int, int]


@d.dataclass(frozen=True)
class Mutation:
    """One change of a module.

    id: stays the same when other functions of the module change.
    occurrence: counts the places of the operator in the module.
    """

    id: str
    place: Place
    operator: str
    occurrence: int


@d.dataclass(frozen=True)
class Mutant:
    """The code of a module with one change."""

    id: str
    module: str
    line: int
    before: str
    after: str
    code: str


def draw_mutants(root: Path, seed: int, count: int) -> list[Mutant]:
    """Return a sample of so many mutants of the repository `root`, at most one for each place.

    The order is that of a checksum of the seed and the ID: a change of one function leaves the
    sample of all others as it is, and a smaller sample is the beginning of a larger one.
    """
    places: dict[Place, list[Mutation]] = collections.defaultdict(list)
    codes = {}
    for module in list_modules(root):
        codes[module] = (root / ROOM / module).read_text(encoding="utf-8")
        for mutation in _list_mutations(module, codes[module]):
            places[mutation.place].append(mutation)
    sample: list[Mutant] = []
    for mutations in sorted(places.values(), key=lambda found: _rank(seed, found[0].id)):
        for mutation in sorted(mutations, key=lambda found: _rank(seed, found.id)):
            mutant = _make_mutant(mutation, codes[mutation.place.module])
            if mutant:
                sample.append(mutant)
                break
        if len(sample) == count:
            break
    return sample


def list_modules(root: Path) -> list[str]:
    """Return the modules to be mutated, by room and name."""
    modules = []
    for pattern in MODULES:
        for path in sorted((root / ROOM).glob(pattern)):
            if path.name != "__init__.py":
                modules.append(str(path.relative_to(root / ROOM)))
    return modules


def _rank(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def _list_operators() -> dict[str, Operator]:
    operators: dict[str, Operator] = {"RemoveStatement": RemoveStatement()}
    for name in operator_names():
        operator = get_operator(name)
        # Those with arguments replace a variable that somebody names.
        if not operator.arguments() and not name.endswith(_SAME_RESULT):
            operators[name.removeprefix("core/")] = operator()
    return operators


_OPERATORS = _list_operators()


def _list_mutations(module: str, code: str) -> Iterator[Mutation]:
    nodes = list(ast_nodes(get_ast(code)))
    names = [ASTQuery(node).get_definition_name() or "" for node in nodes]
    for operator_name, operator in _OPERATORS.items():
        wanted = _NODE_TYPES.get(operator_name.partition("_")[0])
        occurrence = 0
        in_function: collections.Counter[str] = collections.Counter()
        for node, function in zip(nodes, names, strict=True):
            if wanted and node.type != wanted:
                continue
            if wanted == "operator" and node.value not in _BINARY:
                continue
            for start, _end in operator.mutation_positions(node):
                in_function[function] += 1
                mutation_id = f"{module} {function} {operator_name} {in_function[function]}"
                yield Mutation(mutation_id, Place(module, start), operator_name, occurrence)
                occurrence += 1


def _make_mutant(mutation: Mutation, code: str) -> Mutant | None:
    """Return the mutant, None if it is no other code: annotations, say, are never evaluated."""
    mutated = mutate_code(code, _OPERATORS[mutation.operator], mutation.occurrence)
    try:
        if mutated is None or normalize(mutated) == normalize(code):
            return None
    except SyntaxError:
        return None
    line = mutation.place.start[0]
    before, after = code.splitlines(), mutated.splitlines()
    # A statement of several lines is shown by its first one.
    return Mutant(
        mutation.id,
        mutation.place.module,
        line,
        before[line - 1].strip(),
        after[line - 1].strip() if line <= len(after) else "",
        mutated,
    )
