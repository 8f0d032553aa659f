"""Plans of somebody who edits them and computes the digest again."""

import contextlib
import typing as t

from .......plugins.module_utils._core.plan.plan import Plan, digest_others


def sign(document: t.Any) -> t.Any:
    """Return a plan with the digest of what it is now; what has none is returned as it is."""
    with contextlib.suppress(TypeError, AttributeError):
        return {**document, "digest": digest_others(document)}
    return document


def parse_signed(document: t.Any) -> Plan:
    """Return the plan in a document whose digest fits."""
    return Plan.parse(sign(document))
