# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which part of the cloud a detection could not judge.

For everything that reads `summary.coverage` of `findings.json`.
"""

from __future__ import annotations

import typing as t

from ..._common.text import format_count, summarize_names

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.codec import Unchecked
    from .entries import Coverage

# Why the amounts of a server were not checked.
_UNCHECKED = {
    "flavor": "has a flavor that Nova does not show",
    "image": "needs the properties of its image",
    "volume": "needs the attachments of its volumes",
    "volume_image": "needs Cinder",
    "ports": "needs Neutron",
    "pci_alias": "needs the alias of a PCI device",
    "device_profile": "needs a device profile of Cyborg",
    "accelerators": "needs the devices of Cyborg",
    "tree": "needs the providers of its host",
    "contradictory": "has a request that contradicts its host",
    "unsettled": "is not settled",
    "unchanged": "has not changed since an earlier reading",
    "not_compared": "is only compared if the kind wrong_amount is named",
}
# The verbs of these reasons for several servers.
_PLURALS = {"has": "have", "is": "are", "lacks": "lack", "needs": "need"}


def list_unjudged_hosts(coverage: Unchecked) -> list[str]:
    """Return the sorted names of the hosts that were not judged.

    Files of version 1.0 do not have them: then the list is empty.
    """
    return sorted(coverage.get("unjudged_hosts") or ())


def describe_unjudged_hosts(coverage: Unchecked) -> str:
    """Return a sentence for people about what was not judged, empty when everything was."""
    without_service = coverage.get("hosts_without_service") or []
    groups = (
        (
            "cell does not answer",
            set(list_unjudged_hosts(coverage)).difference(without_service),
            "",
        ),
        (
            "row in Nova's table services was deleted",
            without_service,
            " Restart nova-compute there, which registers again; where it refuses because it has "
            "guests, restore the row. If the host is gone, run nova-manage cell_v2 delete_host.",
        ),
    )
    sentences = []
    for cause, hosts, advice in groups:
        one, many = f"host was not judged, because its {cause}", "hosts were not judged, because"
        counted = format_count(len(hosts), one, f"{many} their {cause}")
        if hosts:
            sentences.append(f"{counted}: {summarize_names(sorted(hosts))}.{advice}")
    if sentences:
        return " ".join(sentences)
    # Files of version 1.0 say only that something was not judged, and not what.
    if coverage.get("partial"):
        return "Part of the cloud was not judged, because a cell does not answer."
    return ""


def describe_reading(coverage: Coverage) -> str:
    """Return a sentence for people about what was read; empty when simply everything was."""
    if coverage.get("reading") == "incremental":
        return (
            "Only what changed was read, and what had a finding. The last full reading began at "
            f"{coverage['full_at']}."
        )
    why_full = coverage.get("why_full")
    return f"Everything was read. {why_full}" if why_full else ""


def describe_amounts(coverage: Coverage) -> str:
    """Return a sentence for people about the servers whose amounts were checked.

    It is empty where there are no servers, and for files of older versions.
    """
    amounts = coverage.get("amounts")
    if not amounts or not amounts["servers"]:
        return ""
    servers = format_count(amounts["servers"], "server", "servers")
    text = f"Amounts checked for {amounts['checked']} of {servers}"
    if amounts["by_host"]:
        text += f" ({amounts['by_host']} only by the sums of their host)"
    reasons = []
    for name, count in sorted(amounts["unchecked"].items(), key=lambda item: (-item[1], item[0])):
        one = _UNCHECKED.get(name, f"lacks {name}")
        verb, _space, rest = one.partition(" ")
        many = f"{_PLURALS[verb]} {rest.replace(' its ', ' their ')}"
        reasons.append(format_count(count, one, many))
    return "; ".join([text, *reasons]) + "."
