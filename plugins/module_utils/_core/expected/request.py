# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resource requests that Nova may have made for a server. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..models.other_services import MissingInput, ResourceRequest, ServerInputs
from .cpus import CpuDemand, read_cpu_demand
from .devices import (
    add_guest_features,
    count_devices,
    list_pci_groups,
    list_profile_groups,
    parse_pci_request,
)
from .inputs import DEVICE_PROFILE_SPEC, PCI_ALIAS_SPEC, find_profile, list_missing_inputs
from .specs import (
    MAIN_GROUP,
    Group,
    GroupBuilder,
    RefusedByNovaError,
    check_image_values,
    parse_group_spec,
)


def build_requests(inputs: ServerInputs) -> tuple[ResourceRequest, ...]:
    """Return the resource requests that Nova may have made for a server, the usual one first.

    There are two for a server with pinned CPUs: Nova requests VCPU instead of PCPU from hosts that
    have no PCPU (nova/scheduler/manager.py, select_destinations).

    What Nova would have refused is a request without groups, in which `flavor` is missing.
    """
    specs = inputs.extra_specs or {}
    image = inputs.image_properties or {}
    missing = list_missing_inputs(inputs)
    try:
        check_image_values(image)
        demand = read_cpu_demand(inputs.vcpus, specs, image)
        requests = [_build_request(inputs, demand, missing)]
        if demand.pinned:
            # The second request is made as if there were no CPU policies at all.
            unpinned = CpuDemand(vcpus=None, pcpus=None, hyperthreading="", pinned=False)
            requests.append(_build_request(inputs, unpinned, missing, again=True))
    except RefusedByNovaError as error:
        refusal = MissingInput("flavor", f"Nova does not accept such a flavor and image: {error}")
        if inputs.image_properties is None:
            # The flavor may go together with the image that could not be read.
            refusal = MissingInput("image", f"without its image its flavor is incomplete: {error}")
        return (ResourceRequest(groups={}, missing=(*missing, refusal)),)
    return tuple(requests)


def _build_request(
    inputs: ServerInputs, demand: CpuDemand, missing: tuple[MissingInput, ...], again: bool = False
) -> ResourceRequest:
    """Build one request in the order of Nova, because what comes first may decide on the rest.

    again: whether it is the second one, for which Nova takes the groups of ports and devices as the
        first one left them, without amounts of zero.

    The source is nova/scheduler/utils.py, ResourceRequest.from_request_spec.
    """
    specs = inputs.extra_specs or {}
    image = inputs.image_properties or {}
    builder = GroupBuilder()
    main = builder.get_group(MAIN_GROUP)
    _add_extra_specs(builder, specs)
    for name, value in image.items():
        if name.startswith("trait:") and value == "required":
            main.add_trait(name.removeprefix("trait:"), value)
    _add_cpus(main, demand)
    builder.add_groups(_list_other_groups(inputs), without_zeros=again)
    _add_flavor(builder, inputs)
    add_guest_features(main, specs, image)
    unknown = builder.list_unknown_classes()
    if unknown:
        reason = f"it is not known whether Nova knows the class {', '.join(sorted(unknown))}"
        missing = (*missing, MissingInput("flavor", reason, classes=unknown))
    subtrees = (port.same_subtree for port in inputs.ports or ())
    return ResourceRequest(
        groups=builder.finish_groups(),
        isolate=builder.isolate,
        same_subtree=tuple(frozenset(names) for names in subtrees if names),
        rules=builder.finish_rules(),
        missing=missing,
    )


def _add_extra_specs(builder: GroupBuilder, specs: Mapping[str, str]) -> None:
    # Nova ignores any other value.
    builder.isolate = specs.get("group_policy") == "isolate"
    for key, value in specs.items():
        spec = parse_group_spec(key)
        if spec is not None:
            builder.get_group(spec.group).add_spec(spec, value, f"extra spec {key}")


def _add_cpus(main: Group, demand: CpuDemand) -> None:
    if demand.vcpus is not None:
        main.add_resource("VCPU", demand.vcpus, "the shared CPUs of the flavor")
    if demand.pcpus is not None:
        main.add_resource("PCPU", demand.pcpus, "the dedicated CPUs of the flavor")
    if demand.hyperthreading:
        main.add_trait("HW_CPU_HYPERTHREADING", demand.hyperthreading)


def _list_other_groups(inputs: ServerInputs) -> Iterator[tuple[str, Group]]:
    """Yield the groups of devices and ports, with their names."""
    specs = inputs.extra_specs or {}
    if PCI_ALIAS_SPEC in specs:
        yield from list_pci_groups(parse_pci_request(specs[PCI_ALIAS_SPEC]), inputs.pci_aliases)
    profile = specs.get(DEVICE_PROFILE_SPEC)
    if profile:
        yield from list_profile_groups(profile, inputs)
    yield from _list_port_groups(inputs)


def _add_flavor(builder: GroupBuilder, inputs: ServerInputs) -> None:
    """Add the amounts of the flavor itself, of those classes that nothing else requests."""
    main = builder.get_group(MAIN_GROUP)
    if not builder.has_class("VCPU", "PCPU"):
        main.add_resource("VCPU", inputs.vcpus, "the VCPUs of the flavor")
    if not builder.has_class("MEMORY_MB"):
        main.add_resource("MEMORY_MB", inputs.ram, "the memory of the flavor")
    if not builder.has_class("DISK_GB"):
        _add_disk(main, inputs)


def _add_disk(main: Group, inputs: ServerInputs) -> None:
    # Swap is in MiB and rounded up to GiB.
    swap = -(-inputs.swap // 1024)
    amounts = {"ephemeral disk": inputs.ephemeral, "swap": swap}
    if not inputs.volume_backed:
        amounts = {"root disk": inputs.disk, **amounts}
    parts = [name for name, amount in amounts.items() if amount]
    total = sum(amounts.values())
    if total:
        main.add_resource("DISK_GB", total, f"the {' and '.join(parts)} of the flavor")


def _list_port_groups(inputs: ServerInputs) -> Iterator[tuple[str, Group]]:
    """Yield the groups that the ports request, with their names; what is unknown is left out.

    Raises RefusedByNovaError for a port with more than one device.

    The source is nova/network/neutron.py, create_resource_requests.
    """
    for port in inputs.ports or ():
        profile = find_profile(port)
        if profile:
            if count_devices(inputs.device_profiles.get(profile, ())) > 1:
                raise RefusedByNovaError("the device profile of a port has more than one device")
            yield from list_profile_groups(profile, inputs, port.uuid)
        for requested in port.groups or ():
            group = Group()
            group.amounts.update(requested.resources)
            group.sources.update(dict.fromkeys(requested.resources, f"port {port.uuid}"))
            group.required |= requested.required
            group.provider = port.providers.get(requested.uuid, port.providers.get(""))
            yield requested.uuid, group
