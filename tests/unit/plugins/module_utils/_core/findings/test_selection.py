"""A selection returns findings or their ids, and everything else is refused."""

import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.findings.selection import Selection

FINDINGS: t.Any = [
    {
        "id": f"{kind}/{name}",
        "kind": kind,
        "age_seconds": age,
        "providers": [{"name": host} for host in hosts],
    }
    for kind, name, age, hosts in (
        ("extra_host", "a", 9000, ["compute-1"]),
        ("deleted_server", "b", 60, ["compute-2"]),
        ("unconfirmed_resize", "c", None, []),
    )
]


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("[?kind=='extra_host']", {"extra_host/a"}),
        ("[?kind=='extra_host'].id", {"extra_host/a"}),
        ("[?kind=='extra_host'] | [0]", {"extra_host/a"}),
        ("[?kind=='extra_host'] | [0].id", {"extra_host/a"}),
        ("[?age_seconds > `100`]", {"extra_host/a"}),
        ("[?providers[?name=='compute-2']]", {"deleted_server/b"}),
        ("[]", {"extra_host/a", "deleted_server/b", "unconfirmed_resize/c"}),
        ("@", {"extra_host/a", "deleted_server/b", "unconfirmed_resize/c"}),
        ("[?kind=='nonesuch']", set()),
        ("nonesuch", set()),
        ("[?kind=='nonesuch'] | [0]", set()),
    ],
)
def test_selection_returns_matching_findings(expression: str, ids: set[str]) -> None:
    assert Selection(expression).select_ids(FINDINGS) == ids


@pytest.mark.parametrize(
    "expression",
    ["[?kind==", "[?kind=='a'", "=", "nonesuch(", "(" * 20000 + "id" + ")" * 20000],
    ids=lambda expression: expression[:9],
)
def test_invalid_expression_is_refused_before_the_reading(expression: str) -> None:
    with pytest.raises(InvalidInput):
        Selection(expression)


@pytest.mark.parametrize(
    "expression",
    [
        # Neither findings nor their ids.
        *("[].kind", "[].age_seconds", "length(@)", "'extra_host/d'"),
        *("[].providers", "[0].providers"),
        # Errors within the library.
        *("[::0]", "[?contains(kind, `1`)]", "sum([].kind)"),
    ],
)
def test_other_result_is_refused(expression: str) -> None:
    selection = Selection(expression)

    with pytest.raises(InvalidInput):
        selection.select_ids(FINDINGS)


def test_empty_findings_give_an_empty_selection() -> None:
    assert Selection("[]").select_ids([]) == frozenset()
