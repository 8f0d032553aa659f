# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the judge knows as Markdown: the kinds with their proofs, the protections, the gates.

In a page it stands between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import types
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    CONDITION_KINDS,
    DRIFT_KINDS,
    OPT_IN,
    ORPHAN_KINDS,
    REMEDIATE,
    REPORT,
)
from ansible_collections.osops.placement.plugins.module_utils._rules.engine import CHECKS, PROOFS
from ansible_collections.osops.placement.plugins.module_utils._rules.protections import PROTECTIONS
from ansible_collections.osops.placement.plugins.module_utils._snapshot import agreement, soundness
from ansible_collections.osops.placement.plugins.module_utils._snapshot.microversions import (
    REQUIREMENTS,
    format_version,
)

if t.TYPE_CHECKING:
    from ansible_collections.osops.placement.plugins.module_utils._models.kinds import Kind

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "kinds.md", DOCS / "safety.md")
MADE = {REMEDIATE: ", made by default", OPT_IN: ", made if you choose this kind", REPORT: ""}
GATE = {"listings": "Listings", "return": "str | None"}
SECTION = re.compile(r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def renewed(page: pathlib.Path) -> str:
    """Return the text of a page with its parts as they are to be now."""
    return SECTION.sub(
        lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}",
        page.read_text(encoding="utf-8"),
    )


def told(function: t.Callable[..., t.Any]) -> dict[str, str]:
    """Return the paragraphs of a docstring.

    The first as `head`, the others by the word that they begin with.
    """
    head, *paragraphs = (
        " ".join(text.split()) for text in (inspect.getdoc(function) or "").split("\n\n")
    )
    return {
        "head": head,
        **{
            name: text
            for name, _colon, text in (paragraph.partition(": ") for paragraph in paragraphs)
        },
    }


def _kinds(kinds: tuple[Kind, ...]) -> t.Callable[[], str]:
    return lambda: "\n".join(map(_kind, kinds))


def _kind(kind: Kind) -> str:
    text = told({**PROOFS, **CHECKS}[kind.name])
    rows = {
        "Proof": text["Proof"],
        "Needs": text["Needs"],
        f"Change{MADE[kind.by_default]}": text["Change"],
    }
    lines = "".join(f"* **{name}**: {_capital(value)}\n" for name, value in rows.items())
    return f"### {kind.name}\n\n{_capital(kind.meaning)}.\n\n{lines}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _protections() -> str:
    rows = (f"| `{name}` | {told(function)['head']} |\n" for name, function in PROTECTIONS.items())
    return f"| named in the findings as | when |\n|---|---|\n{''.join(rows)}"


def _closing() -> str:
    """The gates in the order in which they are written.

    They are the functions that look at a snapshot and may give a reason.
    """
    return "".join(f"* {told(gate)['head']}\n" for gate in _checks_of(soundness))


def _agreement_checks() -> str:
    return "".join(f"* {told(check)['head']}\n" for check in _checks_of(agreement))


def _checks_of(module: types.ModuleType) -> list[t.Callable[..., t.Any]]:
    return [
        known
        for known in vars(module).values()
        if inspect.isfunction(known) and inspect.get_annotations(known) == GATE
    ]


def _offers() -> str:
    rows = (
        (
            f"| {need.service} {format_version(need.since)} | {need.proof} | "
            f"{', '.join(f'`{kind}`' for kind in need.kinds or ()) or 'every kind'} |\n"
        )
        for need in REQUIREMENTS
    )
    return f"| below | nobody can tell | undecided |\n|---|---|---|\n{''.join(rows)}"


PARTS: t.Mapping[str, t.Callable[[], str]] = {
    "orphans": _kinds(ORPHAN_KINDS),
    "drifts": _kinds(DRIFT_KINDS),
    "conditions": _kinds(CONDITION_KINDS),
    "protections": _protections,
    "gates": _closing,
    "agreement": _agreement_checks,
    "offers": _offers,
}
