# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be changed: the policy and its options, and what is excluded by name.

After the end of its exclusion, nothing is protected any longer.
"""

from __future__ import annotations

import dataclasses as d
import datetime
import json
import re
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ..._common.clock import get_utc_now
from ..._common.context import Context
from ..._common.errors import InvalidInput, Reason
from ..._common.options import Age, Bool, List, Options
from ..._common.text import normalize_uuid, require_uuid
from ..._common.times import UTC
from ..models.other_services import PciAlias
from ..models.snapshot import Cloud
from .pci_aliases import parse_pci_aliases

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.other_services import HostGuests


# The types of services that allocate from Placement themselves, and what each is called here:
# Zun (by either name; also on Nova's own providers and without a consumer type), Cyborg and Blazar.
ALLOCATORS: Mapping[str, str] = {
    "container": "container",
    "application-container": "container",
    "accelerator": "accelerator",
    "reservation": "reservation",
}


# --- what is excluded by name: for ever, or until a day or a moment

_KEYS = ("name", "until", "reason")

# Nothing else that Python takes for a date: `20261231` and `2026-W53-4` are more likely a slip.
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")

# Some write 9999-12-31 for ever.
_LAST_DAY = datetime.datetime(9999, 12, 30, tzinfo=UTC)


class Exclusions(List):
    """Names that are excluded, each for ever or until a time."""

    note = (
        "Each entry is such a name or UUID, or a dictionary with it as C(name) and, optionally, "
        "C(until) and C(reason). C(until) is the last day of the exclusion (UTC), or a time such "
        "as V(2026-12-31T18:00:00Z). After that, the entry excludes nothing, and a warning says so."
    )


@d.dataclass(frozen=True)
class Exclusion:
    """A consumer or provider that is excluded by name.

    until: the day or the moment of its end as the user wrote it, empty without an end.
    ends: the first moment at which it is over.
    """

    name: str
    until: str = ""
    reason: str = ""
    ends: datetime.datetime | None = None

    def has_ended(self, now: str) -> bool:
        """Return whether it is over at `now`, a time as both APIs write it."""
        return self.ends is not None and _parse_time(now) >= self.ends

    @property
    def note(self) -> str:
        """What follows the word «excluded» in a sentence: until when, and the operator's reason."""
        until = f" until {self.until}" if self.until else ""
        return f"{until}: {self.reason}" if self.reason else until


def parse_exclusions(entries: Iterable[t.Any], option: str) -> list[Exclusion]:
    """Return what the entries of `option` exclude, in their order.

    Raises InvalidInput for an entry that cannot be understood.
    """
    return [_parse_exclusion(entry, option) for entry in entries]


def _parse_exclusion(entry: t.Any, option: str) -> Exclusion:
    if not isinstance(entry, dict):
        return Exclusion(_parse_name(entry, option))
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if unknown:
        raise InvalidInput(
            f"{option}: an entry has the unknown keys {', '.join(unknown)}. "
            f"Valid keys are {', '.join(_KEYS)}."
        )
    if "name" not in entry:
        raise InvalidInput(f"{option}: an entry has no name, so it would exclude nothing.")
    name = _parse_name(entry["name"], option)
    reason = _parse_reason(entry.get("reason"), option)
    if "until" not in entry:
        return Exclusion(name, reason=reason)
    until = _convert_to_text(entry["until"])
    return Exclusion(name, until, reason, _parse_end(until, f"{option}: until of {name}"))


def _parse_name(value: t.Any, option: str) -> str:
    # A name cannot be recovered from what YAML takes it for: 5349 can have been written as 012345,
    # and the provider of that name would not be excluded.
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{option}: {value!r} is not a name: write it in quotes.")
    # Ansible can hand over a list as its text, which would exclude nothing.
    if value.lstrip().startswith(("[", "{")):
        raise InvalidInput(
            f"{option}: {value!r} is the text of a list or of an entry, not a name. "
            "Give a list, with its dates in quotes."
        )
    return value.strip()


def _parse_reason(value: t.Any, option: str) -> str:
    if isinstance(value, dict | list):
        raise InvalidInput(f"{option}: the reason {value!r} is not text.")
    if value is None:
        return ""
    return " ".join(str(value).split()).rstrip(".")


def _convert_to_text(value: t.Any) -> str:
    """Return a date as text: YAML makes an object of its own of one without quotes."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value if isinstance(value, str) else repr(value)


def _parse_end(until: str, what: str) -> datetime.datetime:
    try:
        if _DAY.fullmatch(until):
            # The day itself still counts.
            return min(_parse_time(until), _LAST_DAY) + datetime.timedelta(days=1)
        if _MOMENT.fullmatch(until):
            return _parse_time(until)
    except ValueError:
        pass
    raise InvalidInput(
        f"{what} is {until!r}, which is neither a date nor a time. Write a date such as "
        "2026-12-31, which ends at midnight UTC, or a time such as 2026-12-31T18:00:00Z."
    )


def _parse_time(text: str) -> datetime.datetime:
    """Return a time; one without a zone is in UTC."""
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def convert_exclusions(entries: t.Any) -> t.Any:
    """Return a list of exclusions with text in place of dates, as Ansible hands it to a module.

    YAML makes a date of `until: 2026-12-31`, and ansible-core 2.18 makes one text of a whole list
    with a date in it. On the command line, `-e NAME=[…]` gives a JSON text in place of a list.
    """
    if isinstance(entries, str) and entries.startswith("["):
        return json.loads(entries)
    return _convert_dates(entries)


def _convert_dates(value: t.Any) -> t.Any:
    if isinstance(value, Mapping):
        return {key: _convert_dates(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_convert_dates(part) for part in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


# --- the policy


@d.dataclass(frozen=True)
class Policy:
    """The policy of the user; ages are in seconds.

    unconfirmed_min_age, stuck_min_age, stale_min_age: the ages from which on unconfirmed resizes,
        stuck migrations and stale services are reported.
    ignore_allocators: the services that allocate nothing on Nova's hosts, as the user has checked.
    sole_nova: whether no other Nova uses this Placement, as the user has checked.
    exclusion_notes: by name, what to say of an exclusion that has an end or a reason.
    ended_exclusions: the exclusions that have ended, as sentences.
    guests: what was seen of guests on hosts; evidence that no API can give.
    pci_aliases: by name, the aliases of PCI devices in nova.conf, which no API shows.
    """

    min_age: int = 3600
    unknown_min_age: int = 86400
    unconfirmed_min_age: int = 7 * 86400
    stuck_min_age: int = 86400
    stale_min_age: int = 7 * 86400
    exclude_consumers: frozenset[str] = frozenset()
    exclude_providers: frozenset[str] = frozenset()
    ignore_allocators: frozenset[str] = frozenset()
    sole_nova: bool = False
    exclusion_notes: Mapping[str, str] = d.field(default_factory=dict)
    ended_exclusions: tuple[str, ...] = ()
    guests: tuple[HostGuests, ...] = ()
    pci_aliases: Mapping[str, PciAlias] = d.field(default_factory=dict)

    def explain_exclusion(self, names: Iterable[str]) -> Reason | None:
        """Return a sentence about one of these providers or hosts that is excluded.

        None when none of `names` is.
        """
        excluded = self.exclude_providers.intersection(names)
        if not excluded:
            return None
        note = self.get_exclusion_note(excluded)
        return Reason("provider_excluded", f"Provider {min(excluded)} is excluded by name{note}.")

    def get_exclusion_note(self, names: Collection[str]) -> str:
        """Return until when the first of `names` is excluded, and why.

        Empty when the user did not say so.
        """
        return self.exclusion_notes.get(min(names), "") if names else ""


class ExclusionOptions(Options):
    exclude_consumers = Exclusions(elements="raw")
    """
    The UUIDs of consumers that are never changed. They are reported as protected.
    """

    exclude_providers = Exclusions(elements="raw")
    """
    The names or UUIDs of resource providers or hosts that are never changed, and neither is any
    consumer with an allocation on them or on another provider of their trees. Where nothing has
    exactly that name, letter case and domain do not matter.
    """


class AgeOptions(Options):
    min_age = Age("1h")
    """
    Allocations that are younger than this are protected. The age is the time since the allocation
    was last written, by the clock of Placement.

    So are allocations whose server, or a migration of it, Nova has changed within this time.
    """

    unknown_min_age = Age("24h")
    """
    The minimum age for the kind V(unknown_consumer), which rests on absence of evidence alone.

    Since 2.0.0.
    """


class ProofOptions(AgeOptions, ExclusionOptions):
    sole_nova = Bool(False)
    """
    Whether no other Nova uses this Placement. Set it once you have checked that, if these
    credentials may not list all endpoints in Keystone.

    The service catalogue lacks endpoints that are disabled or those of other projects. A provider
    without a compute node may be a running host of such a Nova, so that V(orphaned_provider),
    V(name_conflict) and V(unknown_consumer) on it are undecided.

    It has no effect where Keystone lists an endpoint of another Nova.

    Since 3.0.0.
    """

    ignore_allocators = List()
    """
    The types of services that have no allocations on Nova's hosts, such as V(container) (Zun),
    V(reservation) (Blazar) or V(accelerator) (Cyborg). Name a service only after you have checked
    that.

    Such a service makes allocations itself, and Zun makes them on Nova's own hosts and without a
    consumer type. While the service catalogue has such a service that is not named here, an
    V(unknown_consumer) without a type is undecided.

    Any other type is an error. A type that is not in the service catalogue leads to a warning.

    Since 2.0.0.
    """

    pci_aliases = List(elements="dict")
    """
    The aliases of PCI devices that flavors of this cloud request, as C([pci]alias) in the
    configuration of Nova has them. No API shows them, so that without this option the amounts of
    servers with such devices are not certain.

    Each entry has Nova's own keys C(name), C(vendor_id), C(product_id), C(resource_class),
    C(traits), C(device_type), C(numa_policy) and C(live_migratable). Put hexadecimal numbers in
    quotes.

    Since 2.0.0.
    """


class PolicyOptions(ProofOptions):
    unconfirmed_min_age = Age("7d")
    """
    A resize that has waited for longer than this to be confirmed or reverted is reported as
    V(unconfirmed_resize). Only a detection reports this kind.

    Since 2.0.0.
    """

    stuck_min_age = Age("24h")
    """
    A migration that is under way but has not changed for longer than this is reported as
    V(stuck_migration). Only a detection reports this kind.

    The same is the least age of a V(stuck_server), and of the cleaning of a bare metal node that
    is reported as V(bare_metal_mismatch).

    A server that has been in BUILD for longer than this with neither a host nor a task is no longer
    protected as booting.
    """

    stale_min_age = Age("7d")
    """
    A compute service that is down, has not reported for longer than this, and is disabled, forced
    down or without a compute node is reported as V(stale_service). Only a detection reports this
    kind.
    """


def parse_policy(options: Mapping[str, t.Any], at: str | None = None) -> Policy:
    """Return the policy that the options describe, some of them or all.

    Raises InvalidInput for what is not a duration, a date, a UUID or an alias of a PCI device.

    at: the time by which exclusions have ended or not; None for now.
    """
    at = at or get_utc_now()
    listed = PolicyOptions.list_options()
    options = {**{name: option.default for name, option in listed.items()}, **options}
    consumers = [
        d.replace(entry, name=require_uuid(entry.name, "exclude_consumers:"))
        for entry in parse_exclusions(options["exclude_consumers"], "exclude_consumers")
    ]
    # A provider may be named by its UUID or by its name.
    providers = [
        d.replace(entry, name=normalize_uuid(entry.name) or entry.name)
        for entry in parse_exclusions(options["exclude_providers"], "exclude_providers")
    ]
    ages: dict[str, t.Any] = {
        name: option.parse(options[name])
        for name, option in listed.items()
        if isinstance(option, Age)
    }
    return Policy(
        **ages,
        exclude_consumers=_list_active_names(consumers, at),
        exclude_providers=_list_active_names(providers, at),
        ignore_allocators=_parse_allocators(options["ignore_allocators"]),
        sole_nova=options["sole_nova"],
        pci_aliases=parse_pci_aliases(options["pci_aliases"]),
        exclusion_notes=_list_active_notes((*consumers, *providers), at),
        ended_exclusions=(
            *_describe_ended_exclusions("exclude_consumers", consumers, at),
            *_describe_ended_exclusions("exclude_providers", providers, at),
        ),
    )


def _parse_allocators(service_types: Iterable[str]) -> frozenset[str]:
    listed = list(service_types)
    unknown = sorted(set(listed) - set(ALLOCATORS))
    if unknown:
        raise InvalidInput(
            f"ignore_allocators: {unknown[0]!r} is not a known type of service that allocates from "
            f"Placement. Known types are {', '.join(sorted(ALLOCATORS))}."
        )
    return frozenset(ALLOCATORS[name] for name in listed)


def _list_active_names(entries: Iterable[Exclusion], at: str) -> frozenset[str]:
    """Return the names that are excluded at that time."""
    return frozenset(entry.name for entry in entries if not entry.has_ended(at))


def _list_active_notes(entries: Iterable[Exclusion], at: str) -> dict[str, str]:
    """Return the notes of the exclusions that have not ended, by name."""
    return {entry.name: entry.note for entry in entries if entry.note and not entry.has_ended(at)}


def _describe_ended_exclusions(option: str, entries: Collection[Exclusion], at: str) -> list[str]:
    """Return a sentence for each exclusion that has ended, unless another of that name has not."""
    active = _list_active_names(entries, at)
    return [
        f"{option}: {entry.name} is no longer excluded, because its exclusion ended with "
        f"{entry.until}."
        for entry in entries
        if entry.has_ended(at) and entry.name not in active
    ]


def find_absent_allocators(policy: Policy, cloud: Cloud) -> list[str]:
    """Return the services that are to be ignored and that the catalogue does not have."""
    return sorted(policy.ignore_allocators - set(cloud.allocators))


def warn_ended_exclusions(context: Context, policy: Policy) -> None:
    """Warn of the exclusions that have ended. Ansible shows a warning of several tasks once."""
    for sentence in policy.ended_exclusions:
        context.warn(sentence)
