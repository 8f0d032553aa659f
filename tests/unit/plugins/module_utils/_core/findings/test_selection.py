"""A selection returns findings or their ids, and everything else is refused."""

from __future__ import annotations

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.findings.selection import Selection

FINDINGS = [
    {
        "id": "extra_host/a",
        "kind": "extra_host",
        "age_seconds": 9000,
        "providers": [{"name": "compute-1"}],
    },
    {
        "id": "deleted_server/b",
        "kind": "deleted_server",
        "age_seconds": 60,
        "providers": [{"name": "compute-2"}],
    },
    {
        "id": "unconfirmed_resize/c",
        "kind": "unconfirmed_resize",
        "age_seconds": None,
        "providers": [],
    },
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


@pytest.mark.parametrize("expression", ["[?kind==", "[?kind=='a'", "=", "nonesuch("])
def test_invalid_expression_is_refused_before_the_reading(expression: str) -> None:
    with pytest.raises(InvalidInput, match="select is not a valid JMESPath expression: "):
        Selection(expression)


@pytest.mark.parametrize(
    "expression",
    ["[].kind", "[].age_seconds", "length(@)", "'extra_host/d'", "[].providers", "[0].providers"],
)
def test_result_without_findings_or_ids_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="select must return findings or their ids"):
        Selection(expression).select_ids(FINDINGS)


@pytest.mark.parametrize("expression", ["[::0]", "[?contains(kind, `1`)]"])
def test_error_inside_the_library_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="select cannot be applied"):
        Selection(expression).select_ids(FINDINGS)


def test_too_deeply_nested_expression_is_refused() -> None:
    with pytest.raises(InvalidInput, match="select is not a valid JMESPath expression"):
        Selection("(" * 20000 + "id" + ")" * 20000)


def test_inapplicable_expression_is_refused() -> None:
    with pytest.raises(InvalidInput, match="select cannot be applied to the findings: "):
        Selection("sum([].kind)").select_ids(FINDINGS)


def test_empty_findings_give_an_empty_selection() -> None:
    assert Selection("[]").select_ids([]) == frozenset()
