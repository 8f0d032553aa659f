"""Random hosts with children and shared pools, and a random resource request for each."""

import dataclasses as d
import random
import typing as t
from collections.abc import Iterator
from urllib.parse import urlencode

from ...plugins.module_utils._core.models.other_services import (
    HostTree,
    RequestGroup,
    ResourceRequest,
    TreeProvider,
)
from ...plugins.module_utils._core.models.placement import Allocations, Inventory

_AGGREGATE = "00000000-0000-4000-8000-00000000000a"
_SHARING = "MISC_SHARES_VIA_AGGREGATE"
_ROOT_CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_A")
_CHILD_CLASSES = ("VGPU", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "VCPU")
_TRAITS = ("CUSTOM_RED", "CUSTOM_BLUE")


@d.dataclass(frozen=True)
class PlacementWorld:
    """A host, what is requested, and what the server has of it after something went wrong."""

    tree: HostTree
    request: ResourceRequest

    def describe(self) -> dict[str, t.Any]:
        """Return it as tests/minicloud/minicloud_venv/allocation_candidates.py takes it."""
        providers = []
        for provider in self.tree.providers.values():
            in_aggregate = provider.sharing or provider.uuid == self.tree.root
            providers.append(
                {
                    "uuid": provider.uuid,
                    "parent": provider.parent,
                    "inventories": {
                        cls: d.asdict(inventory) for cls, inventory in provider.inventories.items()
                    },
                    "traits": sorted(provider.traits),
                    "aggregates": [_AGGREGATE] if in_aggregate else [],
                }
            )
        return {
            "classes": ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"],
            "traits": list(_TRAITS),
            "providers": providers,
            "query": self._build_query(),
        }

    def _build_query(self) -> str:
        parameters = []
        for group in self.request.groups.values():
            resources = ",".join(f"{cls}:{amount}" for cls, amount in group.resources.items())
            parameters.append((f"resources{group.name}", resources))
            traits = [*sorted(group.required), *(f"!{trait}" for trait in sorted(group.forbidden))]
            if traits:
                parameters.append((f"required{group.name}", ",".join(traits)))
        policy = "isolate" if self.request.isolate else "none"
        parameters.append(("group_policy", policy))
        for names in self.request.same_subtree:
            parameters.append(("same_subtree", ",".join(sorted(names))))
        return urlencode(parameters)


def list_placement_worlds(count: int, seed: int) -> Iterator[PlacementWorld]:
    """Yield `count` random worlds, always the same for a seed."""
    for number in range(count):
        yield _Dice(f"{seed}/{number}").roll_world()


def disturb(allocations: Allocations, world: PlacementWorld, seed: str) -> Allocations:
    """Return allocations with one to three mistakes: more, less, lost or elsewhere."""
    dice = random.Random(seed)
    disturbed = {provider: dict(resources) for provider, resources in allocations.items()}
    for _number in range(dice.choice((1, 1, 2, 3))):
        if not disturbed:
            break
        provider = dice.choice(sorted(disturbed))
        cls = dice.choice(sorted(disturbed[provider]))
        amount = disturbed[provider][cls]
        mistake = dice.choice(("more", "less", "class", "provider", "elsewhere", "surplus"))
        other = dice.choice(sorted(world.tree.providers))
        # Placement accepts only classes of which the provider has an inventory.
        classes = world.tree.providers[other].inventories
        if mistake == "more":
            disturbed[provider][cls] = amount + 1
        elif mistake == "less" and amount > 1:
            disturbed[provider][cls] = amount - 1
        elif mistake == "provider":
            del disturbed[provider]
        elif mistake == "surplus" and classes:
            disturbed.setdefault(other, {}).setdefault(dice.choice(sorted(classes)), 1)
        else:
            del disturbed[provider][cls]
            if not disturbed[provider]:
                del disturbed[provider]
            if mistake == "elsewhere" and cls in classes and _is_valid(amount, classes[cls]):
                disturbed.setdefault(other, {}).setdefault(cls, amount)
    return disturbed


def _is_valid(amount: int, inventory: Inventory) -> bool:
    return inventory.min_unit <= amount <= inventory.max_unit and amount % inventory.step_size == 0


class _Dice:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def happens(self, probability: float) -> bool:
        return self.random.random() < probability

    def roll_world(self) -> PlacementWorld:
        tree = self.roll_tree()
        return PlacementWorld(tree, self.roll_request(tree))

    def roll_tree(self) -> HostTree:
        root = self.roll_provider(0, None, _ROOT_CLASSES, 0.9)
        providers = [root]
        for number in range(1, self.random.choice((2, 2, 3, 4, 6))):
            parent = root if self.happens(0.7) else self.random.choice(providers)
            providers.append(self.roll_provider(number, parent.uuid, _CHILD_CLASSES, 0.6))
        for number in range(8, 8 + self.random.choice((0, 0, 0, 1, 2))):
            pool = self.roll_provider(number, None, ("DISK_GB", "CUSTOM_B"), 0.7)
            providers.append(d.replace(pool, sharing=True, traits=pool.traits | {_SHARING}))
        return HostTree(root.uuid, {provider.uuid: provider for provider in providers})

    def roll_provider(
        self, number: int, parent: str | None, classes: tuple[str, ...], rate: float
    ) -> TreeProvider:
        uuid = f"00000000-0000-4000-8000-00000000001{number}"
        inventories = {cls: self.roll_inventory() for cls in classes if self.happens(rate)}
        traits = frozenset(trait for trait in _TRAITS if self.happens(0.3))
        return TreeProvider(uuid, f"provider {number}", parent, False, inventories, traits)

    def roll_inventory(self) -> Inventory:
        total = self.random.choice((1, 2, 4, 8, 8, 8))
        return Inventory(
            total=total,
            reserved=0,
            min_unit=self.random.choice((1,) * 12 + (2,)),
            max_unit=self.random.choice((total,) * 6 + (2,)),
            step_size=self.random.choice((1,) * 12 + (2,)),
            allocation_ratio=self.random.choice((1.0, 1.0, 1.5, 16.0)),
        )

    def roll_request(self, tree: HostTree) -> ResourceRequest:
        groups = {}
        # What nobody has is requested seldom.
        usual_classes = list(_CHILD_CLASSES)
        if self.happens(0.9):
            children = [provider for provider in tree.providers.values() if provider.parent]
            offered = {cls for provider in children for cls in provider.inventories}
            usual_classes = [cls for cls in _CHILD_CLASSES if cls in offered]
        main = {cls: self.roll_amount() for cls in _ROOT_CLASSES[::2] if self.happens(0.5)}
        if self.happens(0.1):
            main["DISK_GB"] = self.roll_amount()
        if main:
            groups[""] = self.roll_group("", main)
        names = ["1", "_A", "_B"][: self.random.choice((0, 1, 1, 2, 2, 3))]
        isolate = self.happens(0.3)
        for name in names:
            size = self.random.choice((1, 1, 1, 2))
            # With group_policy=isolate Placement answers with wrong sums where a provider has a
            # class for a group with a name and for the one without (copy_arr_if_needed in
            # placement/objects/research_context.py).
            usual = [cls for cls in usual_classes if not (isolate and cls in main)]
            classes = self.random.sample(usual, min(size, len(usual)))
            if not classes:
                continue
            groups[name] = self.roll_group(name, {cls: self.roll_amount() for cls in classes})
        if not groups:
            groups[""] = self.roll_group("", {"VCPU": 1})
        same_subtree: tuple[frozenset[str], ...] = ()
        named = [name for name in groups if name]
        if len(named) > 1 and self.happens(0.3):
            same_subtree = (frozenset(named[:2]),)
        return ResourceRequest(groups, isolate, same_subtree)

    def roll_amount(self) -> int:
        return self.random.choice((1, 1, 1, 1, 2, 2, 4))

    def roll_group(self, name: str, resources: dict[str, int]) -> RequestGroup:
        required = frozenset(trait for trait in _TRAITS if self.happens(0.08 if name else 0.01))
        forbidden = frozenset(trait for trait in _TRAITS if self.happens(0.05)) - required
        return RequestGroup(name, resources, required, forbidden)
