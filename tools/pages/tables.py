"""Sections as Markdown: the kinds with their proofs, the protections, the soundness checks, the
screens of AWX, the variables of the roles, the contents of the collection, and the figures of the
judges.

In a page, a section is between `<!-- begin NAME -->` and `<!-- end NAME -->`.
"""

import inspect
import pathlib
import re
import types
import typing as t

from ...plugins.module_utils._core.facts import agreement, soundness
from ...plugins.module_utils._core.facts.protections import PROTECTIONS
from ...plugins.module_utils._core.facts.soundness import REQUIREMENTS, format_version
from ...plugins.module_utils._core.kinds.registry import CHECKS, PROOFS
from ...plugins.module_utils._core.models.kind import OPT_IN, REMEDIATE, REPORT, Kind
from ...plugins.module_utils._core.models.kinds import CONDITION_KINDS, DRIFT_KINDS, ORPHAN_KINDS
from ...tests.judges.mutants.page import format_mutants
from ...tests.judges.nova.page import format_nova
from ...tests.judges.stack.page import format_stack
from ..markup import format_table, renew_sections
from .advice import format_advice
from .badges import format_badges
from .contents import format_modules, format_playbooks, format_roles
from .reasons import format_error_ids, format_reasons
from .screens import draw_approval, draw_survey
from .variables import format_connection, format_role

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = (
    DOCS.parent / "README.md",
    DOCS / "advice.md",
    DOCS / "awx.md",
    DOCS / "judges.md",
    DOCS / "kinds.md",
    DOCS / "reasons.md",
    DOCS / "safety.md",
    DOCS / "variables.md",
)
DEFAULTS = {REMEDIATE: ", made by default", OPT_IN: ", made if you choose this kind", REPORT: ""}
CHECK_ANNOTATIONS = {"listings": "Listings", "return": "Reason | None"}
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`])")


def renewed(page: pathlib.Path) -> str:
    """Return the text of a page with new sections."""
    return renew_sections(page, PARTS)


def read_docstring(function: t.Callable[..., t.Any]) -> dict[str, str]:
    """Return the paragraphs of a docstring.

    The first is `head`; the name of each other is its first word.
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


def _format_kinds(kinds: tuple[Kind, ...]) -> t.Callable[[], str]:
    return lambda: "\n".join(map(_format_kind, kinds))


def _format_kind(kind: Kind) -> str:
    text = read_docstring({**PROOFS, **CHECKS}[kind.name])
    rows = {
        "Proof": text["Proof"],
        "Needs": text["Needs"],
        f"Change{DEFAULTS[kind.by_default]}": text["Change"],
    }
    lines = "".join(f"* **{name}**: {_format_item(value)}\n" for name, value in rows.items())
    return f"### {kind.name}\n\n{_capitalize(kind.meaning)}.\n\n{lines}"


def _format_item(text: str) -> str:
    """Return the text of an item of a list with one sentence a line."""
    return SENTENCE_END.sub("\n  ", _capitalize(text))


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]


def _format_protections() -> str:
    heads = {f"`{name}`": read_docstring(rule)["head"] for name, rule in PROTECTIONS.items()}
    return format_table(["named in the findings as", "when"], heads.items())


def _format_soundness_checks() -> str:
    return "".join(f"* {read_docstring(check)['head']}\n" for check in _find_checks(soundness))


def _format_agreement_checks() -> str:
    return "".join(f"* {read_docstring(check)['head']}\n" for check in _find_checks(agreement))


def _find_checks(module: types.ModuleType) -> list[t.Callable[..., t.Any]]:
    """Return the functions of a module that return the reason why a snapshot is unsound."""
    return [
        known
        for known in vars(module).values()
        if inspect.isfunction(known) and inspect.get_annotations(known) == CHECK_ANNOTATIONS
    ]


def _format_requirements() -> str:
    rows = []
    for requirement, kind in REQUIREMENTS:
        version = f"{requirement.service} {format_version(requirement.since)}"
        rows.append([version, requirement.proof, f"`{kind}`" if kind else "every kind"])
    return format_table(["below", "not provable", "undecided"], rows)


PARTS: t.Mapping[str, t.Callable[[], str]] = {
    "orphans": _format_kinds(ORPHAN_KINDS),
    "drifts": _format_kinds(DRIFT_KINDS),
    "conditions": _format_kinds(CONDITION_KINDS),
    "protections": _format_protections,
    "soundness": _format_soundness_checks,
    "agreement": _format_agreement_checks,
    "requirements": _format_requirements,
    "reasons": format_reasons,
    "error_ids": format_error_ids,
    "advice": format_advice,
    "survey": draw_survey,
    "approval": draw_approval,
    "badges": format_badges,
    "playbooks": format_playbooks,
    "roles": format_roles,
    "modules": format_modules,
    "connection": format_connection,
    "orphan_cleanup": lambda: format_role("orphan_cleanup"),
    "host_decommission": lambda: format_role("host_decommission"),
    "hypervisor_cleanup": lambda: format_role("hypervisor_cleanup"),
    "nova_judge": format_nova,
    "mutants": format_mutants,
    "stack_judge": format_stack,
}
