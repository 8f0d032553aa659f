"""Looks for consumers that are no servers, as `orphan_allocations.py` of stackdev does.

This is a new statement of what the script looks up, and none of its code.
`make compare COMPARE_ARGS='--script PATH'` runs the original.

Prints a JSON document: {"orphan_allocations": [{"server_id": consumer}]}.
"""

import json
import sys

import openstack

# Consumers with other resource classes on a provider are left alone there.
_PLAIN = {"VCPU", "MEMORY_MB", "DISK_GB"}


def main() -> int:
    cloud = openstack.connect()
    orphans = []
    for provider in cloud.placement.resource_providers():
        path = f"/resource_providers/{provider.id}/allocations"
        for consumer, held in cloud.placement.get(path).json()["allocations"].items():
            if not held["resources"].keys() <= _PLAIN:
                continue
            if cloud.compute.find_server(consumer, all_projects=True) is None:
                orphans.append({"server_id": consumer})
    print(json.dumps({"orphan_allocations": orphans}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
