# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a guest needs of its host besides CPUs, memory and disk. Pure.

Memory encryption and persistent memory have amounts; everything else here has only traits. Each
function is named after the one in nova/scheduler/utils.py that it follows.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Mapping

from ..models.other_services import PciAlias, ServerInputs
from .specs import (
    Group,
    RefusedByNovaError,
    check_value,
    choose_value,
    parse_group_spec,
    read_boolean,
    read_integer,
)

# A flavor cannot have more devices than that.
_MOST_DEVICES = 1_000


def parse_pci_request(value: str) -> list[tuple[str, int]]:
    """Return the name of each alias and how many devices of it `pci_passthrough:alias` requests.

    Raises RefusedByNovaError for another form than `name:count,…`.
    """
    requests = []
    for part in value.split(","):
        name, _colon, count = part.partition(":")
        # Without a colon there is no number either.
        number = read_integer(count)
        if number is None or number > _MOST_DEVICES:
            raise RefusedByNovaError("pci_passthrough:alias of the flavor is not valid")
        requests.append((name.strip(), number))
    return requests


def list_pci_groups(
    requests: Iterable[tuple[str, int]], aliases: Mapping[str, PciAlias]
) -> Iterator[tuple[str, Group]]:
    """Yield a group for each device of the known aliases, with its name.

    The source is nova/objects/request_spec.py, generate_request_groups_from_pci_requests.
    """
    for position, (name, count) in enumerate(requests):
        alias = aliases.get(name)
        if alias is None:
            continue
        for number in range(count):
            group = Group()
            group.add_resource(alias.resource_class, 1, f"PCI alias {name}")
            group.required |= alias.traits
            group.pci = True
            # In Nova the name begins with a random uuid.
            yield f"pci_{position}-{number}", group


def list_profile_groups(
    profile: str, inputs: ServerInputs, port: str = ""
) -> Iterator[tuple[str, Group]]:
    """Yield the groups of a Cyborg device profile, with their names; none of an unknown one.

    port: the uuid of the port that names the profile; empty for the flavor.

    The source is nova/accelerator/cyborg.py, get_device_request_groups.
    """
    for number, specs in enumerate(inputs.device_profiles.get(profile, ())):
        group = Group()
        for key, value in specs.items():
            spec = parse_group_spec(key)
            if spec is not None:
                group.add_spec(spec, value, f"device profile {profile}")
        # Cyborg may name the provider of the group, if it is one.
        providers = {
            accelerator.provider
            for accelerator in inputs.accelerators or ()
            if (accelerator.device_profile, accelerator.group) == (profile, number)
        }
        group.provider = providers.pop() if len(providers) == 1 else None
        yield f"device_profile_{number}{port}", group


def count_devices(groups: Iterable[Mapping[str, str]]) -> int:
    """Return the sum of all amounts of a device profile.

    Raises RefusedByNovaError for an amount that is not a number.
    """
    total = 0
    for key, value in (item for specs in groups for item in specs.items()):
        spec = parse_group_spec(key)
        if spec is None or spec.kind != "resources":
            continue
        try:
            total += int(value)
        except ValueError:
            raise RefusedByNovaError("a device profile has an invalid amount") from None
    return total


MEMORY_ENCRYPTION = "MEM_ENCRYPTION_CONTEXT"
_ENCRYPTION_TRAITS = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_STATELESS_MODELS = ("amd-sev-snp", "intel-tdx")
_TPM_MODEL_TRAITS = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_TPM_VERSION_TRAITS = {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"}
# By the prefix and the name of a choice, all values that Nova accepts; only some require a trait.
_CHOICES: Mapping[tuple[str, str], Mapping[str, str | None]] = {
    ("hw", "pci_numa_affinity_policy"): {
        **dict.fromkeys(("required", "legacy", "preferred")),
        "socket": "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    },
    ("os", "secure_boot"): {
        **dict.fromkeys(("disabled", "optional")),
        "required": "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
    },
    ("hw", "maxphysaddr_mode"): {
        "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
    },
}


def add_guest_features(main: Group, specs: Mapping[str, str], image: Mapping[str, str]) -> None:
    """Add all of it to the group without a suffix.

    Raises RefusedByNovaError for what Nova does not accept.
    """
    _add_memory_encryption(main, specs, image)
    _add_persistent_memory(main, specs)
    _add_tpm(main, specs, image)
    for (prefix, name), traits in _CHOICES.items():
        value = choose_value(specs, image, prefix, name)
        if value is None:
            continue
        check_value(f"{prefix}:{name}", value, traits)
        trait = traits[value]
        if trait:
            main.add_trait(trait, "required")
    if _is_stateless(image):
        main.add_trait("COMPUTE_SECURITY_STATELESS_FIRMWARE", "required")


def _add_memory_encryption(main: Group, specs: Mapping[str, str], image: Mapping[str, str]) -> None:
    flavor_text, image_text = specs.get("hw:mem_encryption"), image.get("hw_mem_encryption")
    wanted = [read_boolean(text) for text in (flavor_text, image_text) if text is not None]
    if True not in wanted:
        return
    if False in wanted:
        raise RefusedByNovaError("flavor and image differ in hw:mem_encryption")
    # Unlike elsewhere an empty model in the flavor differs from that of the image.
    flavor_model = specs.get("hw:mem_encryption_model")
    image_model = image.get("hw_mem_encryption_model")
    if None not in (flavor_model, image_model) and flavor_model != image_model:
        raise RefusedByNovaError("flavor and image differ in hw:mem_encryption_model")
    model = image_model or flavor_model or "amd-sev"
    check_value("hw:mem_encryption_model", model, _ENCRYPTION_TRAITS)
    _check_encryption(model, image)
    is_of_image = flavor_text is None
    source = "hw:mem_encryption of the image" if is_of_image else "extra spec hw:mem_encryption"
    main.add_resource(MEMORY_ENCRYPTION, 1, source)
    main.add_trait(_ENCRYPTION_TRAITS[model], "required")


def _check_encryption(model: str, image: Mapping[str, str]) -> None:
    """Raise RefusedByNovaError if the image does not go with memory encryption."""
    if image.get("hw_firmware_type") != "uefi":
        raise RefusedByNovaError("memory encryption needs an image with hw_firmware_type=uefi")
    if "q35" not in image.get("hw_machine_type", "q35"):
        raise RefusedByNovaError("memory encryption needs machine type q35")
    if model in _STATELESS_MODELS and not _is_stateless(image):
        raise RefusedByNovaError(f"{model} needs an image with hw_firmware_stateless=true")
    if model == "intel-tdx" and image.get("hw_video_model") != "none":
        raise RefusedByNovaError(f"{model} needs an image with hw_video_model=none")


def _is_stateless(image: Mapping[str, str]) -> bool:
    is_uefi = image.get("hw_firmware_type") == "uefi"
    return is_uefi and read_boolean(image.get("hw_firmware_stateless", ""))


def _add_persistent_memory(main: Group, specs: Mapping[str, str]) -> None:
    labels = filter(None, (part.strip() for part in specs.get("hw:pmem", "").split(",")))
    amounts = collections.Counter(_name_class(f"PMEM_NAMESPACE_{label}") for label in labels)
    for cls, amount in amounts.items():
        main.add_resource(cls, amount, "extra spec hw:pmem")


def _name_class(name: str) -> str:
    """Return the custom class of a name, in which other characters become one underscore each run.

    The source is normalize_name of the os-resource-classes library.
    """
    return "CUSTOM_" + re.sub("[^A-Za-z0-9]+", "_", name).upper()


def _add_tpm(main: Group, specs: Mapping[str, str], image: Mapping[str, str]) -> None:
    version = choose_value(specs, image, "hw", "tpm_version")
    if version is None:
        return
    chosen_model = choose_value(specs, image, "hw", "tpm_model")
    model = "tpm-tis" if chosen_model is None else chosen_model
    if version not in _TPM_VERSION_TRAITS or model not in _TPM_MODEL_TRAITS:
        raise RefusedByNovaError("Nova does not accept hw:tpm_version or hw:tpm_model")
    if model == "tpm-crb" and version != "2.0":
        raise RefusedByNovaError("TPM model tpm-crb needs TPM version 2.0")
    main.add_trait(_TPM_MODEL_TRAITS[model], "required")
    main.add_trait(_TPM_VERSION_TRAITS[version], "required")
