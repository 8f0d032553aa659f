# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is missing of the inputs of a server or contradicts itself, and what that could change.

Pure.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence

from ..._common.errors import Reason
from ..models.resource_request import (
    HostTree,
    MissingInput,
    ResourceRequest,
    ServerInputs,
    TreeProvider,
)
from .devices import MEMORY_ENCRYPTION, parse_pci_request
from .ports import list_missing_ports, list_missing_profile
from .problems import sum_request
from .search import Key
from .specs import RefusedByNovaError


def list_missing_inputs(inputs: ServerInputs) -> tuple[MissingInput, ...]:
    """Return each part of the inputs that is unknown and can decide on the request."""
    if inputs.extra_specs is None:
        reason = inputs.unread.get(
            "extra_specs", "Nova does not show the extra specs of its flavor"
        )
        return (MissingInput("flavor", reason),)
    return (
        *_list_missing_image(inputs, inputs.extra_specs),
        *_list_missing_volume(inputs, inputs.extra_specs),
        *_list_missing_devices(inputs, inputs.extra_specs),
        *list_missing_ports(inputs),
        *_list_missing_accelerators(inputs, inputs.extra_specs),
    )


def list_image_classes(specs: Mapping[str, str]) -> frozenset[str]:
    """Return the classes of which the image of a server can decide on the amount.

    specs: the extra specs of its flavor, which overrule the image.
    """
    classes: set[str] = set()
    # The policy of an image counts only if the flavor has none; its mask of realtime CPUs counts
    # wherever some CPUs are realtime.
    policy = specs.get("hw:cpu_policy")
    if not policy or (policy == "mixed" and "hw:cpu_realtime" in specs):
        classes |= {"VCPU", "PCPU"}
    if not specs.get("hw:mem_encryption"):
        classes.add(MEMORY_ENCRYPTION)
    return frozenset(classes)


def _list_missing_image(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    if inputs.image_properties is not None:
        return
    # Without classes, only traits are unknown.
    reason = inputs.unread.get("image_properties", "the properties of its image could not be read")
    yield MissingInput("image", reason, classes=list_image_classes(specs))


def _list_missing_volume(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    if inputs.volume_backed is not None or not inputs.disk:
        return
    if "resources:DISK_GB" in specs:
        return
    reason = inputs.unread.get(
        "volume_backed", "it could not be read whether its root disk is a volume"
    )
    yield MissingInput("volume", reason, classes=frozenset({"DISK_GB"}))


def _list_missing_devices(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    try:
        requests = parse_pci_request(specs.get("pci_passthrough:alias", ""))
    except RefusedByNovaError:
        # Either there is no such extra spec, or the request is refused as a whole.
        requests = []
    for name, count in dict(requests).items():
        if count > 0 and name not in inputs.pci_aliases:
            reason = f"the PCI alias {name} is only in the configuration of Nova"
            yield MissingInput("pci_alias", reason)
    profile = specs.get("accel:device_profile")
    if profile:
        yield from list_missing_profile(profile, inputs.device_profiles, inputs.unread)


def _list_missing_accelerators(
    inputs: ServerInputs, specs: Mapping[str, str]
) -> Iterator[MissingInput]:
    if inputs.accelerators is not None:
        return
    has_profile = bool(specs.get("accel:device_profile"))
    for port in inputs.ports or ():
        has_profile = has_profile or bool(port.device_profile)
    if has_profile:
        reason = inputs.unread.get("accelerators", "Cyborg does not show which devices it has")
        yield MissingInput("accelerators", reason)


# Nova gives it to each provider of a PCI device (nova/compute/pci_placement_translator.py).
PCI_TRAIT = "COMPUTE_MANAGED_PCI_DEVICE"
# These decide only on which provider has something, not on amounts.
_WITHOUT_AMOUNTS = ("accelerators",)


@d.dataclass(frozen=True)
class Doubt:
    """What a missing input may change on a host.

    everything: whether it may change any amount. providers, classes: else the providers and the
        resource classes of which it may change the amounts.
    """

    everything: bool
    providers: frozenset[str]
    classes: frozenset[str]

    def covers(self, key: Key, possible: bool) -> bool:
        """Return whether it may change the amount of this class on this provider.

        possible: whether the provider has an inventory or an allocation of the class. An amount
            that may not be requested at all need not be possible anywhere.
        """
        if self.everything or key[1] in self.classes:
            return True
        return possible and key[0] in self.providers


def find_doubt(missing: MissingInput, tree: HostTree, present: Collection[Key]) -> Doubt | None:
    """Return what a missing input may change on this host; None if it changes nothing there.

    What no provider has an inventory of, nothing can have requested: the server is on this host.
    """
    if missing.name in _WITHOUT_AMOUNTS:
        return None
    if missing.classes is not None:
        if missing.classes.isdisjoint(_find_new_classes(tree, present) - {"VCPU"}):
            return None
        return Doubt(False, frozenset(), missing.classes)
    if missing.pci or missing.name == "pci_alias":
        doubt = _doubt_providers(tree, _is_pci_device)
        # Where no device is allocated, none has been added.
        if missing.pci and doubt and doubt.providers.isdisjoint(_list_providers(present)):
            return None
        return doubt
    if missing.name in ("ports", "device_profile"):
        return _doubt_providers(tree, _is_child)
    return Doubt(True, frozenset(), frozenset())


def _find_new_classes(tree: HostTree, present: Collection[Key]) -> set[str]:
    classes = {cls for _provider, cls in present}
    for provider in tree.providers.values():
        classes |= provider.inventories.keys()
    return classes


def _list_providers(keys: Collection[Key]) -> set[str]:
    return {provider for provider, _cls in keys}


def _doubt_providers(tree: HostTree, test: t.Callable[[TreeProvider], bool]) -> Doubt | None:
    providers = set()
    for provider in tree.providers.values():
        if provider.inventories and test(provider):
            providers.add(provider.uuid)
    if not providers:
        return None
    return Doubt(False, frozenset(providers), frozenset())


def _is_pci_device(provider: TreeProvider) -> bool:
    return PCI_TRAIT in provider.traits


def _is_child(provider: TreeProvider) -> bool:
    return provider.parent is not None and not provider.sharing


def fit_to_host(request: ResourceRequest, tree: HostTree) -> ResourceRequest:
    """Return the request without the PCI devices that Nova does not have in Placement.

    No API shows `[pci]report_in_placement`, but a host where it is set has a provider for each
    device (nova/compute/pci_placement_translator.py). Where such providers exist and none has the
    class of an alias, the alias is not that of Nova: then `pci_alias` is missing.
    """
    reported: set[str] = set()
    has_devices = False
    for provider in tree.providers.values():
        if PCI_TRAIT in provider.traits:
            has_devices = True
            reported |= provider.inventories.keys()
    groups = {}
    strange: set[str] = set()
    for name, group in request.groups.items():
        if group.pci and reported.isdisjoint(group.resources):
            strange |= group.resources.keys()
            continue
        groups[name] = group
    if not strange:
        return request
    missing = request.missing
    if has_devices:
        reason = f"no PCI device of its host has {', '.join(sorted(strange))}, as the alias says"
        missing = (*missing, MissingInput("pci_alias", reason))
    rules = tuple(rule for rule in request.rules if rule.group in groups)
    return d.replace(request, groups=groups, rules=rules, missing=missing)


def find_contradiction(
    requests: Sequence[ResourceRequest], tree: HostTree, present: Mapping[Key, int]
) -> Reason | None:
    """Return what contradicts what, so that no change can be certain; None if nothing does."""
    for request in requests:
        doubt = _find_provider_doubt(request, tree, present)
        if doubt:
            return doubt
    sums: dict[str, int] = {}
    for (provider, cls), amount in present.items():
        if provider not in tree.providers:
            return None
        sums[cls] = sums.get(cls, 0) + amount
    for request in requests:
        if sums == sum_request(request):
            return Reason(
                "right_amounts_on_other_providers",
                "its amounts are right, but not on the providers on which Nova would request them",
            )
    return None


def _find_provider_doubt(
    request: ResourceRequest, tree: HostTree, present: Mapping[Key, int]
) -> Reason | None:
    for group in request.groups.values():
        if group.provider is None or not group.resources:
            continue
        if group.provider not in tree.providers:
            return Reason(
                "group_provider_of_other_host",
                f"provider {group.provider} of request group {group.name} is not of its host",
            )
        if any((group.provider, cls) in present for cls in group.resources):
            continue
        for provider in tree.providers:
            if all((provider, cls) in present for cls in group.resources):
                return Reason(
                    "group_provider_contradicted",
                    f"request group {group.name} has provider {group.provider} according to "
                    f"another service and {provider} according to Placement",
                )
    return None
