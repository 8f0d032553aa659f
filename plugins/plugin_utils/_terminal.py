# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings and outcomes as lines for a terminal.

Whatever comes from a cloud is hostile until printed: names may hold escape sequences, newlines or 255 characters.
"""

from __future__ import annotations

import collections
import itertools
import textwrap
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._complaints import joined

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping

_ROWS = 100
_SPARED_ROWS = 20
_COMPLAINTS = 3
_NAME = 40
_LABEL = 9
_USUAL = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")

# What a host says by each kind of complaint.
_SAID = {
    "not_in_database": "it is not found in the database",
    "not_managed": "it is not managed here",
    "moved_away": "it has moved to <to>",
    "power_state_counts": "servers in the database: <database>, on the hypervisor: <hypervisor>",
    "provider_conflict": "another resource provider has this name",
    "rpc_version_cap": "version <requested> was requested where <cap> is the cap",
}

# What a change does to its consumer, and then what it leaves it with.
_VERBS = {"remove": "keeping", "reduce": "keeping", "rewrite": "giving it", "create": "giving it"}
_TREE = "delete_providers"

Entry = t.Mapping[str, t.Any]

# What a line is about; the colours of Ansible's own that stand for it are chosen where it is printed.
CHANGED, SPARED, DOUBTFUL, WRONG, FINE = "changed", "spared", "doubtful", "wrong", "fine"


class Line(str):
    """A line that is about something good or bad."""

    tone: str

    def __new__(cls, text: str, tone: str) -> Line:
        line = super().__new__(cls, text)
        line.tone = tone
        return line


def toned(lines: Iterable[str]) -> list[tuple[str | None, str]]:
    """Return the text of lines, those of one tone in a row together."""
    runs = itertools.groupby(lines, key=lambda line: getattr(line, "tone", None))
    return [(tone, "\n".join(run)) for tone, run in runs]


def findings_lines(
    findings: Mapping[str, t.Any], path: str, kinds: Collection[str] | None, width: int, complaints: Iterable[Entry] = ()
) -> list[str]:
    """Return the table of what a detection found: orphans, drift, what is protected and undecided, and a line of totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    """
    told = joined(findings, complaints)
    log = _log(told["explained"], width)
    found = sorted(findings["findings"], key=lambda entry: (entry["kind"], _host(entry), entry["id"]))
    # What a user chose to have put right is told like an orphan, with the write that would be made.
    orphans = [entry for entry in found if entry["verdict"] == "orphaned" or (kinds and entry["kind"] in kinds and _writes(entry))]
    drifted = [entry for entry in found if entry not in orphans]
    title = f"Orphaned allocations in {printable(findings['cloud']['placement_endpoint'])} at {findings['finished_at']}"
    lines = ["", *_wrapped(title, width)]
    if orphans:
        lines += ["", f"{'KIND':20}{'CONSUMER':38}SERVER"]
    for entry in orphans[:_ROWS]:
        lines += [*_with_write(entry, kinds, width), *log(entry)]
    lines += _more(orphans, _ROWS, path, width)
    if drifted:
        lines += ["", "Not as it should be, and left alone:"]
    for entry in drifted[:_ROWS]:
        lines += [*_spared(entry, width, CHANGED), *log(entry)]
        if _writes(entry):
            lines += _field("could", f"be put right; not now, for {entry['kind']} is not among the kinds to remediate", width)
    lines += _more(drifted, _ROWS, path, width)
    for title, key, tone in (("Undecided, and left alone:", "undecided", DOUBTFUL), ("Protected, and left alone:", "protected", SPARED)):
        if findings[key]:
            lines += ["", title]
            for entry in findings[key][:_SPARED_ROWS]:
                lines += [*_spared(entry, width, tone), *log(entry)]
            lines += _more(findings[key], _SPARED_ROWS, path, width)
    unexplained = told["unexplained"]
    if unexplained:
        lines += ["", "Complaints of hosts without a finding:"]
    for record in unexplained[:_ROWS]:
        about = record.get("instance") or (record.get("provider") or {}).get("name") or ""
        lines += [
            f"{printable(record['kind'], 19):20}{printable(about, min(_NAME, width - 20))}".rstrip(),
            *_field("log", complaint(record), width),
        ]
    lines += [f"… and {len(unexplained) - _ROWS} more"] if len(unexplained) > _ROWS else []
    return [*lines, "", *_totals(findings["summary"], width)]


def remediation_lines(remediation: Mapping[str, t.Any], journal: str | None, width: int) -> list[str]:
    """Return what became of each change that was not simply made, and the tally."""
    lines = [""]
    told_of = [outcome for outcome in remediation["outcomes"] if outcome["reason"]]
    for outcome in told_of[:_ROWS]:
        # What is deleted is no consumer's: its finding names the root of the tree.
        about = outcome.get("consumer") or printable(outcome["finding"].partition("/")[2])
        tone = WRONG if outcome["outcome"] == "failed" else SPARED
        lines += [Line(f"{outcome['outcome']:9} {about}  {outcome['kind']}", tone), *_field("why", outcome["reason"], width)]
    lines += _more(told_of, _ROWS, "remediation.json", width)
    told = ", ".join(f"{count} {name}" for name, count in remediation["tally"].items() if count)
    if not told:
        lines.append("Nothing to remediate.")
    elif remediation["check_mode"]:
        lines += _wrapped(f"Check mode, nothing was written. Without it: {told}.", width)
    else:
        tone = WRONG if remediation["tally"].get("failed") else FINE
        lines += [Line(line, tone) for line in _wrapped(f"Outcome: {told}.", width)]
    return [*lines, *(_path(f"Journal: {printable(journal)}", width) if journal else [])]


def host_lines(host: Mapping[str, t.Any], width: int) -> list[str]:
    """Return what Nova and Placement have of a host that is to be retired, and what holds it back."""
    name = printable(host["name"], _NAME)
    if not host["known"]:
        return ["", f"{name}: neither Nova nor Placement knows it."]
    service = host["service"]
    state = f"{service['status']}, {service['state']}" if service else "none"
    if service and service["disabled_reason"]:
        state += f" ({service['disabled_reason']})"
    lines = ["", name, *_field("service", state, width)]
    for label, key in (("nodes", "nodes"), ("tree", "providers"), ("in", "aggregates")):
        told = [f"{printable(known['name'], _NAME)} ({known['uuid']})" for known in host[key]]
        lines += _field(label, ", ".join(told), width)
    for title, key, subject in (("Held back by:", "blockers", "subject"), ("Left over, and no hindrance:", "left_over", "consumer")):
        if host[key]:
            lines += ["", title]
        for known in host[key][:_ROWS]:
            about = f"{known['kind']:20}{printable(known[subject], 37):38}{_name(known.get('name', ''), width)}".rstrip()
            lines += [about, *_field("why", known["reason"], width)]
        lines += _more(host[key], _ROWS, "host.json", width)
    return lines if host["blockers"] else [*lines, "", Line("Nothing holds it back.", FINE)]


def guest_lines(found: Mapping[str, t.Any], path: str, kinds: Collection[str], width: int) -> list[str]:
    """Return what hypervisors have of servers that are not there: what is left over, and what only looks like it.

    kinds: those that are put away.
    """
    coverage = found["summary"]["coverage"]
    lines = ["", f"Left over on {coverage['hosts']} hypervisors at {found['finished_at']}"]
    for entry in found["findings"][:_ROWS]:
        what = "undefine the domain" if entry["kind"] == "leftover_domain" else "move the directory to the quarantine"
        left = "" if entry["kind"] in kinds else f"{entry['kind']} is not among the kinds to remediate"
        lines += ["", *_guest(entry, width), *_write(what, left, width)]
    lines += _more(found["findings"], _ROWS, path, width)
    for title, key in (("Undecided, and left alone:", "undecided"), ("Protected, and left alone:", "protected")):
        if found[key]:
            lines += ["", title]
            for entry in found[key][:_SPARED_ROWS]:
                lines += _guest(entry, width)
            lines += _more(found[key], _SPARED_ROWS, path, width)
    told = ", ".join(f"{count} {verdict}" for verdict, count in found["summary"]["verdicts"].items())
    lines += ["", *_wrapped(f"Of {coverage['domains']} domains and {coverage['directories']} directories: {told}.", width)]
    return [*lines, *_gates(coverage, width)]


def printable(text: t.Any, limit: int | None = None) -> str:
    """Return `text` with every character that a terminal would act on spelled out, cut to `limit` characters."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(text))
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def amounts(resources: Mapping[str, int], shares: Mapping[str, float] | None = None) -> str:
    """Return amounts as `2 VCPU, 2048 MEMORY_MB, 1 CUSTOM_PCI`, with `shares` as `2 VCPU (0.4%)`."""
    ordered = sorted(resources, key=lambda cls: (_USUAL.index(cls) if cls in _USUAL else len(_USUAL), cls))
    told = {cls: f" ({shares[cls]:.1%})" for cls in ordered if shares and cls in shares}
    return ", ".join(f"{resources[cls]} {printable(cls)}{told.get(cls, '')}" for cls in ordered) or "nothing"


def _with_write(entry: Entry, kinds: Collection[str] | None, width: int) -> list[str]:
    change, left = entry["change"], why_not(entry, kinds)
    if change["action"] == _TREE:
        tree = ", ".join(f"{printable(provider['name'], _NAME)} ({provider['uuid']})" for provider in change["providers"])
        return ["", *_spared(entry, width, CHANGED), *_write(f"DELETE /resource_providers of {tree}", left, width)]
    names = {provider["uuid"]: printable(provider["name"], _NAME) for provider in entry["providers"]}

    def told(shares: Mapping[str, Mapping[str, int]]) -> str:
        return "; ".join(f"{amounts(share)} of {names.get(provider, provider)}" for provider, share in shares.items())

    writes = [_at_generation(part) for part in (change, change["partner"]) if part]
    kept = ", ".join(names.get(provider, provider) for provider in change["after"]["allocations"])
    write = f"POST /allocations of {' and '.join(writes)}, {_VERBS[change['action']]} {kept or 'nothing'}"
    return [
        "",
        Line(_head(entry, width), CHANGED),
        *_since(entry, width),
        *_field("host", _host(entry), width),
        *_field("frees", told(change["frees"]), width),
        *_field("claims", told(change["claims"]), width),
        *_field("why", entry["reason"], width),
        *_write(write, left, width),
    ]


def _guest(entry: Entry, width: int) -> list[str]:
    size = entry["guest"].get("size_bytes")
    size_told = "" if size is None else f", {size / 1024**3:.1f} GiB"
    return [
        f"{entry['kind']:20}{entry['uuid']:38}{_server(entry, width)}".rstrip(),
        *_field("host", f"{entry['host']}, {entry['name']}{size_told}", width),
        *_field("why", entry["reason"], width),
    ]


def _write(write: str, left: str, width: int) -> list[str]:
    return _field("could" if left else "write", f"{write}; not now, for {left}" if left else write, width)


def _log(explained: Iterable[Mapping[str, t.Any]], width: int) -> Callable[[Entry], list[str]]:
    """Return what tells of an entry what hosts said of it."""
    records: dict[str, list[Entry]] = collections.defaultdict(list)
    for pair in explained:
        records[pair["finding"]].append(pair["record"])

    def lines(entry: Entry) -> list[str]:
        own = records[entry["id"]]
        more = f"; and {len(own) - _COMPLAINTS} more" if len(own) > _COMPLAINTS else ""
        return _field("log", "; ".join(map(complaint, own[:_COMPLAINTS])) + more, width) if own else []

    return lines


def complaint(record: Entry) -> str:
    """Return who complained of what, how often and until when."""
    said = _SAID.get(record["kind"], record["kind"])
    facts = {"to": record.get("other_host") or "no host", **(record.get("counts") or {}), **(record.get("versions") or {})}
    for name, fact in facts.items():
        said = said.replace(f"<{name}>", str(fact))
    claimed = f", holding {amounts(record['amounts'])}" if record.get("amounts") else ""
    last = f", last at {record['last_seen']}" if record.get("last_seen") else ""
    return f"{printable(record['host'], _NAME)} says: {said}{claimed} ({record.get('count', 1)} times{last})"


def _at_generation(change: Mapping[str, t.Any]) -> str:
    generation = change["generation"]
    return f"{change['consumer']}, {'new' if generation is None else f'at generation {generation}'}"


def _writes(entry: Entry) -> bool:
    """Tell whether there is a write that would settle a finding."""
    return bool(entry["change"])


def why_not(entry: Entry, kinds: Collection[str] | None) -> str:
    if kinds is not None and entry["kind"] not in kinds:
        return f"{entry['kind']} is not among the kinds to remediate"
    return "" if entry["selected"] else "it is not selected"


def _spared(entry: Entry, width: int, tone: str) -> list[str]:
    return [Line(_head(entry, width), tone), *_since(entry, width), *_field("why", entry["reason"], width)]


def _since(entry: Entry, width: int) -> list[str]:
    """Tell of what was known before since when it is."""
    return [] if entry["new"] else _field("known", f"since {entry['first_seen']}", width)


def _head(entry: Entry, width: int) -> str:
    """Return the kind, what it is about, and the server's name where there is one."""
    about = entry["consumer"] or printable(entry["id"].partition("/")[2], 37)
    return f"{entry['kind']:20}{about:38}{_server(entry, width)}".rstrip()


def _server(entry: Entry, width: int) -> str:
    return _name(entry["server"]["name"], width) if entry["server"] else ""


def _name(name: t.Any, width: int) -> str:
    """Return a name as the third column, in what room there is for it."""
    return printable(name, min(_NAME, max(width - 58, 8)))


def _host(entry: Entry) -> str:
    dropped = {printable(provider["root_name"], _NAME) for provider in entry["providers"] if provider["dropped"]}
    return ", ".join(sorted(dropped))


def _totals(summary: Mapping[str, t.Any], width: int) -> list[str]:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    stranded = summary["stranded"]["resource_classes"]
    shares = summary["stranded"]["share_of_claimed"]
    told = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} not as they should be"
    if verdicts["orphaned"] + verdicts["drifted"]:
        told += f" ({sum(summary['new'].values())} of them new)"
    told += f"; {amounts(stranded, shares)} of all that is claimed are stranded" if stranded else ""
    lines = _wrapped(
        f"Total: {told}; {verdicts['protected']} protected; {verdicts['undecided']} undecided; "
        f"of {coverage['consumers']} consumers on {coverage['providers']} providers and {coverage['hypervisors']} hypervisors.",
        width,
    )
    if coverage["left_out"]:
        lines += _wrapped(
            f"{coverage['left_out']} more consumers look wrong and were not looked at closely, for nothing may be changed.", width
        )
    return [*lines, *_gates(coverage, width)]


def _gates(coverage: Mapping[str, t.Any], width: int) -> list[str]:
    told = [_wrapped(f"NOTHING MAY BE CHANGED: {printable(gate)}", width) for gate in coverage["closed_gates"]]
    return [Line(line, WRONG) for line in itertools.chain.from_iterable(told)]


def _field(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text),
        width,
        initial_indent=f"    {label:{_LABEL}}",
        subsequent_indent=" " * (4 + _LABEL),
        break_on_hyphens=False,
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _path(text: str, width: int) -> list[str]:
    """Return a sentence that ends with a path, which is never cut: it is there to be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _more(entries: Iterable[Entry], shown: int, path: str, width: int) -> list[str]:
    left = len(list(entries)) - shown
    return _path(f"… and {left} more in {printable(path)}", width) if left > 0 else []
