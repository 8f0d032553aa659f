"""What the rules find in a snapshot, and the document about it, as `orphan_detect` makes them."""

import typing as t

import pytest

from .....plugins.module_utils._core.expected.amounts import count_amounts
from .....plugins.module_utils._core.facts.index import SnapshotIndex
from .....plugins.module_utils._core.findings.document import build_document
from .....plugins.module_utils._core.judging import engine
from .....plugins.module_utils._core.models.finding import Finding
from .....plugins.module_utils._core.models.snapshot import Snapshot
from .....plugins.module_utils._core.options.policy import Policy

# Most tests are about a proof, not about how old the allocation is.
NO_MINIMUM_AGE = Policy(min_age=0, unknown_min_age=0)


def judge(snapshot: Snapshot, policy: Policy) -> tuple[Finding, ...]:
    """Judge all candidates of a snapshot, and the cloud as a whole."""
    return engine.judge(SnapshotIndex(snapshot), policy)


def build_findings(snapshot: Snapshot, policy: Policy, *more: t.Any, **options: t.Any) -> t.Any:
    """Return the contents of `findings.json` about a snapshot."""
    index = SnapshotIndex(snapshot)
    options.setdefault("amounts", count_amounts(index, policy))
    return build_document(index, engine.judge(index, policy), *more, **options)


def list_cases(by_reason: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[t.Any]:
    """Return the cases of a table by the ID of the expected reason, for `parametrize`."""
    return [
        pytest.param(reason, case, id=name)
        for reason, cases in by_reason.items()
        for name, case in cases.items()
    ]
