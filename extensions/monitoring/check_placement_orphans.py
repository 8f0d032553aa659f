# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the findings.json of a scheduled run, as Nagios, Icinga, NRPE and their relatives do.

It prints one line, and exits with 0 (OK), 1 (WARNING), 2 (CRITICAL) or 3 (UNKNOWN). It reads files
only: no cloud, no Ansible, and nothing besides Python 3.9 or newer. README.md describes it.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses as d
import datetime
import json
import os
import re
import sys
import typing as t

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
STATUS_NAMES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

# The version of findings.json that this script reads.
FORMAT = 1

# The kinds of findings, so that a threshold for another one is an error and not silent for ever.
_KINDS = (
    "deleted_server",
    "ended_migration",
    "deleted_migration",
    "evacuated_source",
    "extra_host",
    "unhosted_server",
    "unknown_consumer",
    "unreverted_allocation",
    "former_provider",
    "misplaced_allocation",
    "missing_allocation",
    "leaked_port",
    "wrong_amount",
    "wrong_owner",
    "leaked_child",
    "orphaned_provider",
    "name_conflict",
    "missing_provider",
    "hidden_allocation",
    "capacity_mismatch",
    "uneven_capacity",
    "aggregate_mismatch",
    "trait_mismatch",
    "zone_mismatch",
    "unconfirmed_resize",
    "stuck_migration",
    "unfinished_evacuation",
    "stale_service",
    "stuck_server",
    "missing_project",
    "bare_metal_mismatch",
)

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
# How far a time may be ahead of the clock of this machine.
_MAX_AHEAD = 300
# The figures that every file has; kinds and resource classes are added to them.
_COUNTS = ("orphans", "drifted", "undecided", "protected", "new", "failed")
_NOT_MADE = ("blocked", "skipped", "failed")
# What an undecided consumer is: the name of a status, in the words of the options.
_UNDECIDED = ("ok", "warning", "critical")


class UnknownState(Exception):
    """Nothing can be concluded; the text is the reason."""


@d.dataclass
class Figures:
    """The figures of one file, or the sums of those of all files.

    counts: by name, as in `_COUNTS`.
    kinds: the findings that are left, by kind.
    stranded: what their changes would free, by resource class.
    scope: None for a whole cloud, else the number and the count of a shard.
    """

    cloud: tuple[str, str]
    age: float
    counts: collections.Counter[str]
    kinds: collections.Counter[str]
    stranded: collections.Counter[str]
    unjudged: int = 0
    shard: tuple[int, int] | None = None

    def get(self, name: str) -> int:
        """Return a figure by the name that a threshold has."""
        if name in _COUNTS:
            return self.counts[name]
        if is_class(name):
            return self.stranded[name]
        return self.kinds[name]


def main(arguments: list[str] | None = None) -> int:
    """Check the files, print the line, and return the exit status."""
    try:
        options = parse_options(arguments)
        status, text = check(options)
    except UnknownState as error:
        status, text = UNKNOWN, clean(str(error))
    print(f"{STATUS_NAMES[status]} - {text}")
    return status


def check(options: argparse.Namespace) -> tuple[int, str]:
    """Return the status of all files, and the line about them."""
    now = datetime.datetime.now(datetime.timezone.utc)
    each = [read_figures(path, now, options) for path in options.files]
    require_all_shards(each)
    figures = add_up(each)
    status, alarms = compare(figures, options)
    unjudged = f"{figures.unjudged} hosts were not judged because their cell does not answer"
    # What was found is proven. That there is nothing more is not.
    if status == OK and figures.unjudged:
        status = UNKNOWN
        alarms = [unjudged]
    elif figures.unjudged:
        alarms.append(unjudged)
    return status, format_line(figures, alarms, options)


# --- the files


def read_figures(path: str, now: datetime.datetime, options: argparse.Namespace) -> Figures:
    """Return the figures of a findings.json. Raises UnknownState if it proves nothing."""
    found = read_json(path)
    try:
        if found["format"] != FORMAT:
            raise UnknownState(f"{path} has format {found['format']}, and this check reads 1")
        age = (now - parse_time(found["finished_at"])).total_seconds()
        require_age(path, age, options.max_age)
        require_sound(path, found["summary"]["coverage"])
        if not options.any_scope:
            require_whole(path, found["scope"])
        return count(path, found, age)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnknownState(
            f"{path} is not a findings.json that a run of osops.placement wrote"
        ) from error


def read_json(path: str) -> t.Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise UnknownState(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnknownState(f"{path} is not JSON, or was cut short") from error


def parse_time(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text[:-1] if text.endswith("Z") else text)
    return moment.replace(tzinfo=datetime.timezone.utc)


def require_age(path: str, age: float, max_age: int) -> None:
    if age > max_age:
        raise UnknownState(
            f"{path} is {format_age(age)} old, and --max-age is {format_age(max_age)}: "
            "does the scheduled run still succeed?"
        )
    if age < -_MAX_AHEAD:
        raise UnknownState(
            f"{path} was written {format_age(-age)} from now: the clocks of two machines differ"
        )


def require_sound(path: str, coverage: t.Any) -> None:
    failed_checks = [str(reason) for reason in coverage["failed_checks"]]
    if failed_checks:
        raise UnknownState(f"the reading in {path} is not sound: {' '.join(failed_checks)}")
    if not coverage["complete"] and not count_unjudged(coverage):
        raise UnknownState(f"the reading in {path} is not complete")


def count_unjudged(coverage: t.Any) -> int:
    return len(coverage.get("unjudged_hosts") or ()) or int(coverage["silent_hosts"])


def require_whole(path: str, scope: t.Any) -> None:
    """Raise UnknownState if the run read only what somebody chose, and not for this check."""
    chosen = [key for key in ("hosts", "consumers", "projects", "kinds") if scope[key]]
    if scope["mode"] != "full":
        chosen.append(f"mode {scope['mode']}")
    if chosen:
        raise UnknownState(
            f"{path} is only about some of the cloud ({', '.join(chosen)}): give scheduled runs an "
            "output directory of their own, or set --any-scope"
        )


def count(path: str, found: t.Any, age: float) -> Figures:
    """Return the figures of a document whose reading proves something."""
    shard = found["scope"].get("shard")
    figures = Figures(
        cloud=(str(found["cloud"]["placement_endpoint"]), str(found["cloud"]["region"] or "")),
        age=age,
        counts=collections.Counter(),
        kinds=collections.Counter(),
        stranded=collections.Counter(),
        unjudged=count_unjudged(found["summary"]["coverage"]),
        shard=(int(shard["number"]), int(shard["count"])) if shard else None,
    )
    require_consistent(path, found)
    made, figures.counts["failed"] = read_outcomes(path)
    for entry in found["findings"]:
        change = entry["change"]
        if change and is_made(entry["id"], change, made):
            continue
        figures.counts["orphans" if entry["verdict"] == "orphaned" else "drifted"] += 1
        figures.counts["new"] += bool(entry["new"])
        figures.kinds[entry["kind"]] += 1
        for amounts in ((change or {}).get("frees") or {}).values():
            figures.stranded.update({name: int(amount) for name, amount in amounts.items()})
    for verdict in ("undecided", "protected"):
        figures.counts[verdict] = len(found[verdict])
    return figures


def require_consistent(path: str, found: t.Any) -> None:
    """Raise UnknownState if entries are missing: somebody edited the file."""
    verdicts: collections.Counter[str] = collections.Counter()
    for key in ("findings", "undecided", "protected"):
        verdicts.update(entry["verdict"] for entry in found[key])
    if +verdicts != +collections.Counter(found["summary"]["verdicts"]):
        raise UnknownState(f"the figures in {path} contradict its entries: it was edited")


# --- what the same run, or a later one, has changed


def read_outcomes(path: str) -> tuple[dict[str, t.Any], int]:
    """Return the changes that were made after a findings.json, and how many have failed."""
    beside = os.path.join(os.path.dirname(path), "remediation.json")
    try:
        # One of an earlier run is older than the findings.
        if os.stat(beside).st_mtime_ns < os.stat(path).st_mtime_ns:
            return {}, 0
    except OSError:
        return {}, 0
    remediation = read_json(beside)
    try:
        if remediation["check_mode"]:
            return {}, 0
        outcomes = remediation["outcomes"]
        made = {each["finding"]: each for each in outcomes if each["outcome"] not in _NOT_MADE}
        for finding in read_restored(beside):
            made.pop(finding, None)
        return made, sum(each["outcome"] == "failed" for each in outcomes)
    except (AttributeError, KeyError, TypeError) as error:
        raise UnknownState(
            f"{beside} is not a remediation.json that a run of osops.placement wrote"
        ) from error


def read_restored(remediation: str) -> list[str]:
    """Return the findings whose changes were undone after a remediation.json was written."""
    beside = os.path.join(os.path.dirname(remediation), "restoration.json")
    try:
        if os.stat(beside).st_mtime_ns < os.stat(remediation).st_mtime_ns:
            return []
    except OSError:
        return []
    restoration = read_json(beside)
    try:
        if restoration["check_mode"]:
            return []
        return [
            each["finding"] for each in restoration["outcomes"] if each["outcome"] not in _NOT_MADE
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise UnknownState(
            f"{beside} is not a restoration.json that a run of osops.placement wrote"
        ) from error


def is_made(identity: str, change: t.Any, made: dict[str, t.Any]) -> bool:
    """Return whether exactly this change was made, and not one of the same consumer before."""
    outcome = made.get(identity)
    return outcome is not None and all(outcome.get(key) == change[key] for key in change)


# --- several files


def require_all_shards(each: list[Figures]) -> None:
    """Raise UnknownState if shards of a cloud are missing while others are there."""
    shards: dict[tuple[tuple[str, str], int], set[int]] = {}
    for figures in each:
        if figures.shard:
            number, total = figures.shard
            shards.setdefault((figures.cloud, total), set()).add(number)
    for (cloud, total), numbers in shards.items():
        missing = sorted(set(range(1, total + 1)) - numbers)
        if missing:
            names = ", ".join(f"{number}/{total}" for number in missing)
            raise UnknownState(f"no file is about shard {names} of {cloud[0]}")


def add_up(each: list[Figures]) -> Figures:
    """Return the sums of the figures; the age is that of the oldest file."""
    total = each[0]
    for figures in each[1:]:
        total.counts.update(figures.counts)
        total.kinds.update(figures.kinds)
        total.stranded.update(figures.stranded)
        total.age = max(total.age, figures.age)
        # Several shards of a cloud name the same hosts.
        same = figures.cloud == total.cloud
        total.unjudged = (
            max(total.unjudged, figures.unjudged) if same else total.unjudged + figures.unjudged
        )
    return total


def compare(figures: Figures, options: argparse.Namespace) -> tuple[int, list[str]]:
    """Return the status, and each threshold that is exceeded."""
    status, alarms = OK, []
    for level, thresholds in ((WARNING, options.warning), (CRITICAL, options.critical)):
        for name, limit in thresholds.items():
            if figures.get(name) > limit:
                status = max(status, level)
                alarms.append(f"{name} {figures.get(name)} > {limit}")
    return status, alarms


# --- the line


def format_line(figures: Figures, alarms: list[str], options: argparse.Namespace) -> str:
    counts = figures.counts
    kinds = ", ".join(f"{number} {clean(kind)}" for kind, number in sorted(figures.kinds.items()))
    parts = [f"{counts['orphans']} orphaned, {counts['drifted']} drifted"]
    if kinds:
        parts[0] += f" ({kinds})"
    parts.append(f"{counts['undecided']} undecided, {counts['protected']} protected")
    if counts["failed"]:
        parts.append(f"{counts['failed']} changes failed")
    if +figures.stranded:
        parts.append(f"stranded: {format_amounts(figures.stranded)}")
    parts.append(f"read {format_age(figures.age)} ago")
    text = "; ".join(parts)
    if alarms:
        text += f" [{', '.join(alarms)}]"
    return f"{text}|{' '.join(format_performance(figures, options))}"


def format_amounts(stranded: collections.Counter[str]) -> str:
    parts = []
    for name, amount in sorted((+stranded).items()):
        if name == "MEMORY_MB":
            parts.append(f"{amount / 1024:.1f} GiB".replace(".0 ", " "))
        elif name == "DISK_GB":
            parts.append(f"{amount} GiB disk")
        else:
            parts.append(f"{amount} {clean(name)}")
    return ", ".join(parts)


def format_performance(figures: Figures, options: argparse.Namespace) -> list[str]:
    """Return the figures as performance data, `label=value;warning;critical;minimum`."""
    data = []
    thresholds = [*options.warning, *options.critical]
    kinds = {*figures.kinds, *(name for name in thresholds if name in _KINDS)}
    classes = {*figures.stranded, *(name for name in thresholds if is_class(name))}
    for name in (*_COUNTS, *sorted(kinds), *sorted(classes)):
        limits = [options.warning.get(name, ""), options.critical.get(name, "")]
        label = f"stranded_{name}" if is_class(name) else name
        data.append(
            f"{re.sub('[^A-Za-z0-9_]', '_', label)}={figures.get(name)};{limits[0]};{limits[1]};0"
        )
    data.append(f"age={max(0, int(figures.age))}s;;;0")
    return data


def is_class(name: str) -> bool:
    """Return whether a figure is of a resource class: only their names are in upper case."""
    return name.isupper()


def format_age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def clean(text: str) -> str:
    """Return a text that neither begins performance data nor ends the line."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable.replace("|", "/")


# --- options


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UNKNOWN: its own exit status, 2, would be CRITICAL."""

    def error(self, message: str) -> t.NoReturn:
        raise UnknownState(f"{message} (--help lists the options)")


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(
        description="Check the findings.json of a scheduled run of osops.placement.",
        epilog="A threshold is exceeded when the figure is greater. METRIC is one of "
        f"{', '.join(_COUNTS)} (the default is orphans), a kind such as deleted_server, or a "
        "resource class such as VCPU, of which it is the stranded amount.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a findings.json, or several")
    parser.add_argument(
        "-w",
        "--warning",
        action="append",
        metavar="[METRIC=]N",
        default=None,
        help="can be given several times; without it, orphans=0",
    )
    parser.add_argument(
        "-c",
        "--critical",
        action="append",
        metavar="[METRIC=]N",
        default=None,
        help="can be given several times; failed=0 holds without it, too",
    )
    parser.add_argument(
        "--max-age",
        default="26h",
        metavar="DURATION",
        help="older files are UNKNOWN; 90, 90s, 15m, 26h or 7d (default: %(default)s)",
    )
    parser.add_argument(
        "--any-scope",
        action="store_true",
        help="accept a file that is only about named hosts, consumers, projects or kinds",
    )
    parser.add_argument(
        "--undecided",
        choices=_UNDECIDED,
        default=_UNDECIDED[0],
        help="the status if any consumer is undecided and no threshold says more; in addition to "
        "the thresholds, while -w undecided=0 replaces orphans=0 (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    options.warning = parse_thresholds(options.warning or ["orphans=0"])
    # A change that failed is critical, whatever else is.
    options.critical = {"failed": 0, **parse_thresholds(options.critical or [])}
    if options.undecided != _UNDECIDED[0]:
        getattr(options, options.undecided).setdefault("undecided", 0)
    options.max_age = parse_duration(options.max_age)
    return options


def parse_thresholds(texts: list[str]) -> dict[str, int]:
    thresholds = {}
    for text in texts:
        matched = re.fullmatch(r"(?:([A-Za-z]\w*)=)?([0-9]{1,18})", text)
        if not matched:
            raise UnknownState(f"{text!r} is not a threshold such as 10 or VCPU=64")
        name = matched[1] or "orphans"
        if name not in (*_COUNTS, *_KINDS) and not name.isupper():
            raise UnknownState(
                f"{name!r} is neither one of {', '.join(_COUNTS)} nor a kind nor a resource class"
            )
        thresholds[name] = int(matched[2])
    return thresholds


def parse_duration(text: str) -> int:
    matched = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text)
    if not matched:
        raise UnknownState(f"--max-age {text!r} is not a duration such as 90s, 15m, 26h or 7d")
    return int(matched[1]) * _UNITS[matched[2]]


if __name__ == "__main__":
    sys.exit(main())
