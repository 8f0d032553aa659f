"""How the allocation of a live server can be damaged."""

from collections.abc import Callable, Mapping

from minicloud_ctl import holdings

Allocations = holdings.Allocations


# The classes that the host without devices has, too.
ORDINARY = ("VCPU", "MEMORY_MB", "DISK_GB")
# The classes of child providers that have room for more.
ROOMY = ("VGPU", "MEM_ENCRYPTION_CONTEXT", "FPGA")


def double(held: Allocations, root: str, _other: str) -> Allocations:
    """Return twice as much of the host itself."""
    return {**held, root: {name: 2 * amount for name, amount in held[root].items()}}


def halve(held: Allocations, root: str, _other: str) -> Allocations | None:
    """Return half as much of the host itself; None where nothing can be halved."""
    less = {name: max(amount // 2, 1) for name, amount in held[root].items()}
    return {**held, root: less} if less != held[root] else None


def lose_child(held: Allocations, root: str, _other: str) -> Allocations | None:
    """Return everything but the least that another provider has; None where there is none."""
    others = sorted(set(held) - {root}, key=lambda provider: sum(held[provider].values()))
    if not others:
        return None
    return {provider: amounts for provider, amounts in held.items() if provider != others[0]}


def gain_child(held: Allocations, root: str, _other: str) -> Allocations | None:
    """Return more of a child provider; None where there is none with room."""
    for provider in sorted(set(held) - {root}):
        more = {name: held[provider][name] + 1 for name in ROOMY if name in held[provider]}
        if more:
            return {**held, provider: {**held[provider], **more}}
    return None


def lose_all(_held: Allocations, _root: str, _other: str) -> Allocations:
    return {}


def move(held: Allocations, root: str, other: str) -> Allocations | None:
    """Return what another host can have of it; None where it cannot have anything."""
    amounts = {name: held[root][name] for name in ORDINARY if name in held[root]}
    return {other: amounts} if amounts else None


# Each gets what a server has, its host's provider and that of another host, and returns what it
# then has. A change of the owner alone is not among them.
DAMAGES: Mapping[str, Callable[[Allocations, str, str], Allocations | None]] = {
    "more": double,
    "less": halve,
    "child lost": lose_child,
    "child gained": gain_child,
    "all lost": lose_all,
    "moved": move,
}
