# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats in which a report can be written."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable

from . import csv_file, html_page, markdown, prometheus
from .report import Report


@d.dataclass(frozen=True)
class Format:
    """The name of the file of a format, and the function that returns its contents."""

    file: str
    render: Callable[[Report], str]


PROMETHEUS = "prometheus"

FORMATS = {
    "html": Format("report.html", html_page.render),
    "markdown": Format("report.md", markdown.render),
    "csv": Format("findings.csv", csv_file.render),
    PROMETHEUS: Format("placement_orphans.prom", prometheus.render),
}

# JSON is findings.json itself, which is there before any report is.
FORMAT_NAMES = ("json", *FORMATS)
