"""Nova's own resource requests, for the tests of ours.

It reads worlds as JSON from standard input, one a line, and writes what Nova's code requests for
each of them. Only the answers of Neutron and Cyborg are made up, and so is the configuration.
"""

from __future__ import annotations

import json
import logging
import sys

import nova.conf
from nova import context, objects
from nova.accelerator import cyborg
from nova.network import neutron
from nova.pci import request as pci_request
from nova.scheduler import utils
from nova.virt import hardware

CONF = nova.conf.CONF
NETWORK = "00000000-0000-4000-8000-000000000001"
SERVER = "00000000-0000-4000-8000-000000000002"


class Answer:
    """An answer of Cyborg."""

    def __init__(self, document):
        self._document = document

    def json(self):
        return self._document


class Cyborg(cyborg._CyborgClient):
    """Nova's client with made up answers."""

    def __init__(self, profiles):
        super().__init__(None)
        self._profiles = profiles

    def _call_cyborg(self, method, *_arguments, params):
        name = params["name"]
        known = [{"groups": self._profiles[name]}] if name in self._profiles else []
        return Answer({"device_profiles": known}), None


class Network(neutron.API):
    """Nova's API of Neutron with made up answers."""

    def __init__(self, ports, extended):
        super().__init__()
        self._ports = {port["id"]: port for port in ports}
        self._extended = extended

    def _show_port(self, _context, port_id, neutron_client=None, fields=None):
        return self._ports[port_id]

    def _get_physnet_tunneled_info(self, _context, _neutron, _network):
        return None, False

    def _has_extension(self, _extension, _context=None, _client=None):
        return self._extended


def calculate(world):
    """Return the resource requests of a world, the usual one first."""
    profiles = world["device_profiles"]
    cyborg.get_client = lambda _context: Cyborg(profiles)
    CONF.set_override("alias", [json.dumps(alias) for alias in world["aliases"]], "pci")
    pci_request.get_alias_from_config.cache_clear()
    flavor = objects.Flavor(name="any", **world["flavor"])
    image = objects.ImageMeta.from_dict({"name": "any", "properties": world["image_properties"]})
    numa_topology = hardware.numa_get_constraints(flavor, image)

    pci_requests = pci_request.get_pci_requests_from_flavor(flavor)
    positions = {request.request_id: number for number, request in enumerate(pci_requests.requests)}
    network = Network(world["ports"], world["extended"])
    requested = objects.NetworkRequestList(
        objects=[objects.NetworkRequest(port_id=port["id"]) for port in world["ports"]]
    )
    user = context.RequestContext("user", "project")
    _metadata, groups, parameters = network.create_resource_requests(user, requested, pci_requests)
    profile = flavor.extra_specs.get("accel:device_profile")
    if profile:
        groups = groups + cyborg.get_device_profile_request_groups(user, profile)
    requests = {"port_resource_requests": groups, "request_level_params": parameters}
    server = image, flavor, numa_topology, pci_requests
    # Without filter properties, instance group and availability zone.
    spec = objects.RequestSpec.from_components(user, SERVER, *server, {}, None, None, **requests)
    spec.is_bfv = world["volume_backed"]
    request = utils.ResourceRequest.from_request_spec(spec)
    described = [describe(request, positions)]
    if request.cpu_pinning_requested:
        request = utils.ResourceRequest.from_request_spec(spec, enable_pinning_translate=False)
        described.append(describe(request, positions))
    return described


def describe(request, positions):
    """Return a request as JSON's types.

    The groups of PCI devices are named after their position instead of a random uuid.
    """
    groups = {}
    for name, group in request._rg_by_id.items():
        start, _hyphen, number = (name or "").rpartition("-")
        if start in positions:
            name = f"pci_{positions[start]}-{number}"
        groups[name or ""] = {
            "resources": dict(group.resources),
            "required": sorted(group.required_traits),
            "forbidden": sorted(group.forbidden_traits),
        }
    return {
        "groups": groups,
        "isolate": request.group_policy == "isolate",
        "same_subtree": [sorted(names) for names in request._same_subtree],
    }


def main():
    objects.register_all()
    CONF([], project="nova", default_config_files=[])
    CONF.set_override("pci_in_placement", True, "filter_scheduler")
    logging.disable(logging.CRITICAL)
    # These ask Neutron and Keystone.
    neutron.get_client = lambda *_arguments, **_options: None
    for line in sys.stdin:
        world = json.loads(line)
        try:
            answer = {"requests": calculate(world)}
        except Exception as error:
            answer = {"refused": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
