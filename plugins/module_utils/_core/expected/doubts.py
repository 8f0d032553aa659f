# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which amounts something that could not be read may change on a host. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection

from ..models.resource_request import HostTree, MissingInput, TreeProvider
from .search import Key

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
