# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the template of the HTML page gets above its table. Nothing here is escaped yet."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        CloudDocument,
    )


class VerdictCount(t.TypedDict):
    """How many entries have a verdict, and what that means."""

    name: str
    count: str
    meaning: str


class NewCount(t.TypedDict):
    """How many findings are new, of how many."""

    count: str
    of: str


class ClassLine(t.TypedDict):
    """What is stranded of one resource class. Texts are empty where they are not known."""

    # The short name and the name of Placement.
    label: str
    name: str
    stranded: str
    # The fraction (0 to 1) of all that is allocated in the cloud, and the same as text.
    fraction: float | None
    percentage: str
    # Of what these fractions are, as sentences.
    notes: list[str]


class Command(t.TypedDict):
    """A command to copy, and what it does."""

    label: str
    text: str


class KindCount(t.TypedDict):
    """How many findings are of a kind, and what that kind is."""

    name: str
    count: str
    # Sentences, empty for a kind of another version.
    meaning: str
    policy: str
    # The address of its documentation, empty for a kind of another version.
    url: str
    # What shows the changes of this kind only; None for a kind that is never changed.
    command: Command | None
    # The length of the bar (0 to 1); that of the most frequent kind is 1.
    fraction: float


class Cell(t.TypedDict):
    """What is stranded of one resource class, on a host or of a project."""

    label: str
    # Empty for nothing.
    amount: str
    # The fraction (0 to 1) of what is allocated there, and the same as text.
    fraction: float | None
    percentage: str


class Line(t.TypedDict):
    """What is stranded on a host or of a project."""

    name: str
    # One for each of `RESOURCE_COLUMNS`.
    cells: list[Cell]
    # Other resource classes, as text.
    others: str


class Lines(t.TypedDict):
    """The hosts or the projects, those with the largest amounts first."""

    # The lines that are shown, and those that are folded.
    first: list[Line]
    rest: list[Line]
    # Whether any cell has a fraction.
    fractions: bool
    # How many lines are left out, empty for none.
    more: str


class OutcomeCount(t.TypedDict):
    """How many changes had an outcome."""

    name: str
    count: str


class RemediationOverview(t.TypedDict):
    """What a run changed, or in check mode would have changed."""

    check_mode: bool
    tally: list[OutcomeCount]
    # The path of the journal; None where nothing was written.
    journal: str | None


class ComplaintLine(t.TypedDict):
    """A complaint of a host."""

    kind: str
    # A uuid or a name.
    about: str
    text: str


class Unexplained(t.TypedDict):
    """The complaints of hosts that no entry explains."""

    complaints: list[ComplaintLine]
    # How many are left out, empty for none.
    more: str


class Overview(t.TypedDict):
    """Everything above the table. Numbers are texts, as the page shows them."""

    cloud: CloudDocument
    finished_at: str
    # What all figures are about.
    about: str
    # What the reading was narrowed to, as labels and texts.
    scope: list[tuple[str, str]]
    complete: bool
    # A sentence for each reason why nothing may be changed.
    failed_checks: list[str]
    # A sentence about what was not judged, empty when everything was.
    unjudged: str
    # A sentence for each thing that was not searched.
    unread: list[str]
    # How many consumers were not looked up, empty for none.
    left_out: str
    verdicts: list[VerdictCount]
    # None where the findings do not say what is new.
    fresh: NewCount | None
    # What was read, as labels and numbers.
    read: list[tuple[str, str]]
    classes: list[ClassLine]
    kinds: list[KindCount]
    # The labels of `RESOURCE_COLUMNS`.
    columns: list[str]
    hosts: Lines
    projects: Lines
    # None where no remediation ran.
    remediation: RemediationOverview | None
    # What a reader may do next.
    commands: list[Command]
    unexplained: Unexplained
