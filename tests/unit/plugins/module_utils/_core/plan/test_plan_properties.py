"""Properties of every plan.

It is read back as it was written, and every single edit is refused.

Somebody who edits a plan and computes its digest again cannot make a different write unnoticed
either. A plan is self-consistent when each of its changes follows from its own documents. One edit
keeps it consistent only where a document says something that nothing else in the plan repeats: the
owner of the consumer (`project_id`, `user_id`, `consumer_type`), the partner, and the name,
generation and parent of a provider below a root. Such an edit is read; the step then has a
different change, and a step whose change is not the one of the renewed proof is skipped. Every
other edit is refused, or does not concern a write.
"""

import copy
import json
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest

from .......plugins.module_utils._common.errors import InvalidInput, UnsoundReading
from .......plugins.module_utils._core.models.change import Change
from .......plugins.module_utils._core.models.kinds import CHANGEABLE_KINDS
from .......plugins.module_utils._core.plan.plan import Plan
from .....examples import count_examples
from ...judging import NO_MINIMUM_AGE, build_findings
from ...situations import build_world_of_every_action
from ...world import World
from ...worlds import worlds
from .signed import parse_signed

KINDS = [kind.name for kind in CHANGEABLE_KINDS]
OWNERS = ("project_id", "user_id", "consumer_type")
OF_PROVIDERS = ("uuid", "name", "generation", "parent")
KEYS = (
    *OWNERS,
    *OF_PROVIDERS,
    "providers",
    "partner",
    "allocations",
    "resources",
    "VCPU",
    "mappings",
    "consumer",
    "generation",
    "changes",
    "format",
)


def _planned(world: World, **snapshot: t.Any) -> Plan:
    return Plan.from_findings(build_findings(world.snapshot(**snapshot), NO_MINIMUM_AGE), KINDS)


def _written(plan: Plan) -> Plan:
    return parse_signed(_through_json(plan.as_dict()))


def _through_json(told: t.Any) -> t.Any:
    return json.loads(json.dumps(told))


def _plan_every_action() -> Plan:
    world, changes = build_world_of_every_action()
    return _planned(world, **changes)


EVERY_ACTION = _plan_every_action()
TOLD = _through_json(EVERY_ACTION.as_dict())


def _writes(plan: Plan) -> list[t.Any]:
    claims = [_write(part) for step in plan.steps for part in step.change.parts]
    return claims + [json.dumps(step.change.as_dict(), sort_keys=True) for step in plan.removals]


def _write(part: Change) -> t.Any:
    # As text, because to Python 1, True and 1.0 are equal.
    return json.dumps([part.consumer, part.generation, part.before, part.after], sort_keys=True)


def _places(node: t.Any, *path: t.Any) -> t.Iterator[tuple[t.Any, ...]]:
    """Yield the path of every value within `node`."""
    for key, value in (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    ):
        yield (*path, key)
        yield from _places(value, *path, key)


def _at(node: t.Any, path: t.Iterable[t.Any]) -> t.Any:
    for part in path:
        node = node[part]
    return node


PLACES = list(_places(TOLD))
LEAVES = [
    path for path in PLACES if not _at(TOLD, path) or not isinstance(_at(TOLD, path), (dict, list))
]
OBJECTS = [(), *(path for path in PLACES if isinstance(_at(TOLD, path), dict))]
KEYED = [path for path in PLACES if isinstance(path[-1], str)]
VALUES = st.one_of(
    st.sampled_from([_at(TOLD, path) for path in PLACES]),
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            1.0,
            2,
            10**30,
            float("inf"),
            float("nan"),
            "",
            "1",
            [],
            {},
            [None],
            {"": None},
        ]
    ),
    st.uuids().map(str),
    st.text(max_size=5),
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[tuple[t.Any, ...], t.Any]:
    """Return a plan with one leaf changed, one key removed or one added, and its place."""
    told = copy.deepcopy(TOLD)
    match draw(st.sampled_from(["change", "remove", "add"])):
        case "change":
            path = draw(st.sampled_from(LEAVES))
            _at(told, path[:-1])[path[-1]] = draw(VALUES)
        case "remove":
            path = draw(st.sampled_from(KEYED))
            del _at(told, path[:-1])[path[-1]]
        case _:
            within = draw(st.sampled_from(OBJECTS))
            path = (
                *within,
                draw(st.one_of(st.sampled_from(KEYS), st.uuids().map(str), st.text(max_size=3))),
            )
            hypothesis.assume(path[-1] not in _at(told, within))
            _at(told, within)[path[-1]] = draw(VALUES)
    return path, _through_json(told)


def _said_nowhere_else(path: tuple[t.Any, ...]) -> bool:
    return (
        path[-1] in OWNERS
        or path[-2:] == ("partner", "consumer")
        or ("providers" in path and path[-1] in OF_PROVIDERS)
    )


def _steps(plan: Plan) -> list[t.Any]:
    return [*plan.steps, *plan.removals]


def test_edited_plan_has_every_action_and_a_partner() -> None:
    changes = [step.change for step in EVERY_ACTION.steps]

    assert {change.action for change in changes} == {"remove", "reduce", "rewrite", "create"}
    assert any(change.partner for change in changes)
    assert [len(step.change.providers) for step in EVERY_ACTION.removals] == [1, 3]


@hypothesis.settings(max_examples=count_examples(200))
@hypothesis.given(worlds())
def test_every_plan_is_read_back_unchanged(world: World) -> None:
    try:
        plan = _planned(world)
    except UnsoundReading:
        hypothesis.reject()

    assert _written(plan) == plan


@hypothesis.settings(max_examples=count_examples(1000))
@hypothesis.given(edits())
def test_any_edit_is_refused(edit: tuple[tuple[t.Any, ...], t.Any]) -> None:
    _path, told = edit
    # As text, because to Python 1, True and 1.0 are equal.
    hypothesis.assume(json.dumps(told) != json.dumps(TOLD))

    with pytest.raises(InvalidInput):
        Plan.parse(told)


def test_each_field_that_is_edited_is_refused() -> None:
    """All of them are tried: each value as another one, and each one left out."""
    for path in PLACES:
        for edit in (*_lookalikes(_at(TOLD, path)), None, "", 7, []):
            told = copy.deepcopy(TOLD)
            _at(told, path[:-1])[path[-1]] = edit
            if repr(edit) == repr(_at(TOLD, path)):
                continue
            with pytest.raises(InvalidInput):
                Plan.parse(told)
        told = copy.deepcopy(TOLD)
        del _at(told, path[:-1])[path[-1]]
        with pytest.raises(InvalidInput):
            Plan.parse(told)


@hypothesis.settings(max_examples=count_examples(3000))
@hypothesis.given(edits())
def test_any_signed_edit_is_refused_or_harmless(edit: tuple[tuple[t.Any, ...], t.Any]) -> None:
    path, told = edit
    try:
        plan = parse_signed(told)
    except InvalidInput:
        hypothesis.event("refused")
        return
    if _writes(plan) == _writes(EVERY_ACTION):
        hypothesis.event("changes no write")
        return
    hypothesis.event("for the new proof")
    assert _said_nowhere_else(path), path
    assert [(step.finding, step.change.action) for step in _steps(plan)] == [
        (step.finding, step.change.action) for step in _steps(EVERY_ACTION)
    ]
    assert (
        sum(
            step.change != known.change
            for step, known in zip(_steps(plan), _steps(EVERY_ACTION), strict=True)
        )
        == 1
    )


def test_any_signed_lookalike_is_refused_or_harmless() -> None:
    """All of them are tried.

    The number as text, as a fraction or as true, the text with a blank, the object as a list.
    """
    for path in PLACES:
        for other in _lookalikes(_at(TOLD, path)):
            told = copy.deepcopy(TOLD)
            _at(told, path[:-1])[path[-1]] = other
            try:
                assert _writes(parse_signed(told)) == _writes(EVERY_ACTION) or _said_nowhere_else(
                    path
                ), (path, other)
            except InvalidInput:
                continue


def _lookalikes(value: t.Any) -> list[t.Any]:
    if isinstance(value, int):
        return [str(value), float(value), value == 1, [value]]
    if isinstance(value, str):
        return [f"{value} ", value.upper(), [value], value + "\0"]
    return [list(value)] if isinstance(value, dict) else []
