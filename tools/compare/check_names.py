"""Compares the names of hosts, as Canonical's check for Nagios does.

This is a new statement of what `run_allocation_checks.py` of charm-openstack-service-checks
compares, and none of its code. `make compare COMPARE_ARGS='--nrpe PATH'` runs the original.

Prints a JSON document: {"alerts": {consumer: {"placement": [provider name], "nova": [host]}}}.
"""

import json
import sys

import openstack


def main() -> int:
    cloud = openstack.connect()
    hosts: dict[str, str] = {}
    for server in cloud.compute.servers(details=True, all_projects=True):
        if server.compute_host is not None:
            hosts[server.id] = server.compute_host
    providers: dict[str, set[str]] = {server: set() for server in hosts}
    for provider in cloud.placement.get("/resource_providers").json()["resource_providers"]:
        path = f"/resource_providers/{provider['uuid']}/allocations"
        for consumer in cloud.placement.get(path).json()["allocations"]:
            providers.setdefault(consumer, set()).add(provider["name"])
    alerts = {}
    for consumer, names in providers.items():
        expected = {hosts[consumer]} if consumer in hosts else set()
        if names != expected:
            alerts[consumer] = {"placement": sorted(names), "nova": sorted(expected)}
    print(json.dumps({"alerts": alerts}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
