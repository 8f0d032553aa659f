# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs that a server requests: shared, dedicated or some of each. Pure.

The sources are get_cpu_policy_constraint and its neighbours, and numa_get_constraints, which
refuses what does not go together (nova/virt/hardware.py).
"""

from __future__ import annotations

import dataclasses as d
import re
from collections.abc import Mapping

from .specs import RefusedByNovaError, check_value, parse_group_spec, read_boolean, read_integer

_HYPERTHREADING = "HW_CPU_HYPERTHREADING"
_THREAD_TRAITS = {"isolate": "forbidden", "require": "required"}

# More CPUs than any host has; a mask beyond it is not expanded.
_HIGHEST_CPU = 100_000


@d.dataclass(frozen=True)
class CpuDemand:
    """What the CPU policies of a server request.

    vcpus, pcpus: amounts; None where the policies say nothing about the class.
    hyperthreading: `required` or `forbidden` for the trait HW_CPU_HYPERTHREADING; else empty.
    pinned: whether all CPUs are dedicated, so that Nova also tries hosts without PCPU.
    """

    vcpus: int | None
    pcpus: int | None
    hyperthreading: str
    pinned: bool


def read_cpu_demand(vcpus: int, specs: Mapping[str, str], image: Mapping[str, str]) -> CpuDemand:
    """Return what the CPU policies of a flavor with `vcpus` and of an image request.

    Raises RefusedByNovaError for policies that Nova does not accept together.
    """
    policy = _read_policy(specs, image)
    thread_policy = _read_thread_policy(specs, image)
    emulator_policy = _read_emulator_policy(specs)
    realtime = _read_realtime_cpus(vcpus, specs, image, emulator_policy)
    dedicated = _read_dedicated_cpus(vcpus, specs)
    _check_policies(
        _find_effective_policy(vcpus, specs, policy, emulator_policy),
        _find_effective_threads(specs, image, thread_policy),
        emulator_policy,
        realtime,
        dedicated,
    )

    shared_amount = dedicated_amount = None
    if policy == "dedicated":
        dedicated_amount = vcpus
    elif policy == "mixed":
        dedicated_amount = len(dedicated or realtime or ())
        shared_amount = vcpus - dedicated_amount
    if dedicated_amount is not None and emulator_policy == "isolate":
        dedicated_amount += 1
    return CpuDemand(
        vcpus=shared_amount,
        pcpus=dedicated_amount,
        hyperthreading=_THREAD_TRAITS.get(thread_policy or "", ""),
        pinned=policy == "dedicated",
    )


def parse_cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a mask such as `0-3,^1`.

    Raises RefusedByNovaError for anything else (nova/virt/hardware.py, parse_cpu_spec).
    """
    included: set[int] = set()
    excluded: set[int] = set()
    for rule in filter(None, map(str.strip, text.split(","))):
        cpus = excluded if rule.startswith("^") else included
        cpus.update(_parse_range(rule.removeprefix("^")))
    return frozenset(included - excluded)


def _parse_range(text: str) -> range:
    first, hyphen, last = text.partition("-")
    start, end = read_integer(first), read_integer(last if hyphen else first)
    if start is None or end is None or not start <= end <= _HIGHEST_CPU:
        raise RefusedByNovaError("a mask of CPUs is not valid")
    return range(start, end + 1)


def _parse_mask(vcpus: int, mask: str) -> frozenset[int]:
    # A mask that begins with an exclusion is about all CPUs.
    if mask.strip().startswith("^"):
        return parse_cpus(f"0-{vcpus - 1},{mask}")
    return parse_cpus(mask)


def _read_policy(specs: Mapping[str, str], image: Mapping[str, str]) -> str | None:
    flavor_policy, image_policy = specs.get("hw:cpu_policy"), image.get("hw_cpu_policy")
    if not flavor_policy:
        return image_policy
    check_value("hw:cpu_policy", flavor_policy, ("dedicated", "shared", "mixed"))
    # Only a flavor with dedicated CPUs may be more than what the image requests.
    if flavor_policy == "mixed" and image_policy == "dedicated":
        raise RefusedByNovaError("the image requests dedicated CPUs and the flavor mixed ones")
    if flavor_policy == "shared" and image_policy in ("dedicated", "mixed"):
        raise RefusedByNovaError("the image requests dedicated CPUs and the flavor shared ones")
    return flavor_policy


def _read_thread_policy(specs: Mapping[str, str], image: Mapping[str, str]) -> str | None:
    flavor_policy = specs.get("hw:cpu_thread_policy")
    image_policy = image.get("hw_cpu_thread_policy")
    if flavor_policy is None:
        return image_policy
    # Nova ignores an empty one, except where the server has NUMA cells.
    check_value("hw:cpu_thread_policy", flavor_policy, ("prefer", "isolate", "require"))
    if flavor_policy == "prefer":
        return flavor_policy
    if image_policy and image_policy != flavor_policy:
        raise RefusedByNovaError("flavor and image differ in hw:cpu_thread_policy")
    return flavor_policy


def _read_emulator_policy(specs: Mapping[str, str]) -> str | None:
    policy = specs.get("hw:emulator_threads_policy")
    if not policy:
        return None
    check_value("hw:emulator_threads_policy", policy, ("share", "isolate"))
    return policy


def _read_dedicated_cpus(vcpus: int, specs: Mapping[str, str]) -> frozenset[int] | None:
    mask = specs.get("hw:cpu_dedicated_mask")
    if not mask:
        return None
    dedicated = _parse_mask(vcpus, mask)
    # At least one CPU has to be dedicated, and at least one shared.
    if not dedicated or not dedicated < set(range(vcpus)):
        raise RefusedByNovaError("hw:cpu_dedicated_mask does not go with the VCPUs of the flavor")
    return dedicated


def _read_realtime_cpus(
    vcpus: int, specs: Mapping[str, str], image: Mapping[str, str], emulator_policy: str | None
) -> frozenset[int] | None:
    if not read_boolean(specs.get("hw:cpu_realtime", "")):
        return None
    mask = image.get("hw_cpu_realtime_mask") or specs.get("hw:cpu_realtime_mask")
    everything = frozenset(range(vcpus))
    realtime = _parse_mask(vcpus, mask) if mask else everything
    if not realtime or not realtime <= everything:
        raise RefusedByNovaError("hw:cpu_realtime_mask does not go with the VCPUs of the flavor")
    if realtime == everything and not emulator_policy:
        raise RefusedByNovaError("hw:cpu_realtime leaves no CPU for the emulator")
    return realtime


def _find_effective_policy(
    vcpus: int, specs: Mapping[str, str], policy: str | None, emulator_policy: str | None
) -> str | None:
    """Return the policy that follows from amounts of VCPU or PCPU among the extra specs."""
    shared, dedicated = _sum_requested(specs, "VCPU"), _sum_requested(specs, "PCPU")
    if policy and (shared or dedicated):
        raise RefusedByNovaError("hw:cpu_policy does not go with resources:VCPU or resources:PCPU")
    if shared and dedicated:
        raise RefusedByNovaError("resources:VCPU does not go with resources:PCPU")
    if dedicated:
        needed = vcpus + 1 if emulator_policy == "isolate" else vcpus
        if dedicated != needed:
            raise RefusedByNovaError("resources:PCPU is not the number of CPUs of the flavor")
        return "dedicated"
    return "shared" if shared else policy


def _sum_requested(specs: Mapping[str, str], cls: str) -> int:
    """Return the sum of those amounts of a class that Nova compares with the flavor."""
    return sum(read_integer(value) or 0 for value in _list_values(specs, "resources", cls))


def _list_values(specs: Mapping[str, str], kind: str, start: str) -> list[str]:
    """Return the values of a class or trait that Nova compares with the policies of CPUs."""
    values = []
    for key, value in specs.items():
        spec = parse_group_spec(key)
        is_numbered = spec is not None and re.fullmatch("|[1-9][0-9]*", spec.group)
        # Nova looks only at how the name begins.
        if spec and is_numbered and spec.kind == kind and spec.name.startswith(start):
            values.append(value)
    return values


def _find_effective_threads(
    specs: Mapping[str, str], image: Mapping[str, str], thread_policy: str | None
) -> str | None:
    """Return the thread policy that follows from the trait of hyperthreading."""
    of_image = image.get(f"trait:{_HYPERTHREADING}") == "required"
    values = _list_values(specs, "trait", _HYPERTHREADING)
    value = values[0] if values else "required" if of_image else ""
    if thread_policy and value:
        raise RefusedByNovaError(f"hw:cpu_thread_policy does not go with trait:{_HYPERTHREADING}")
    return {"forbidden": "isolate", "required": "require"}.get(value, thread_policy)


def _check_policies(
    policy: str | None,
    thread_policy: str | None,
    emulator_policy: str | None,
    realtime: frozenset[int] | None,
    dedicated: frozenset[int] | None,
) -> None:
    if policy == "mixed":
        if bool(realtime) == bool(dedicated):
            raise RefusedByNovaError("mixed CPUs need one mask, of dedicated or of realtime CPUs")
        return
    if dedicated:
        raise RefusedByNovaError("hw:cpu_dedicated_mask needs hw:cpu_policy=mixed")
    if policy == "dedicated":
        return
    if thread_policy:
        raise RefusedByNovaError("hw:cpu_thread_policy needs dedicated CPUs")
    if emulator_policy == "isolate":
        raise RefusedByNovaError("hw:emulator_threads_policy=isolate needs dedicated CPUs")
    if realtime:
        raise RefusedByNovaError("hw:cpu_realtime needs dedicated CPUs")
