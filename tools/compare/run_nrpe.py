"""Runs the function `check_allocations` of Canonical's original check.

Prints each of its alerts as a JSON text, because names can have line breaks.

Usage: python -m compare.run_nrpe PATH-OF-run_allocation_checks.py

The rest of that file reads and writes files of Nagios.
"""

import importlib.util
import json
import sys
import types

import openstack


def main(path: str) -> int:
    # The original imports it for its own connection to Placement.
    sys.modules["os_client_config"] = types.ModuleType("os_client_config")
    spec = importlib.util.spec_from_file_location("run_allocation_checks", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file.")
    original = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(original)
    cloud = openstack.connect()
    for _level, sentence in original.check_allocations(cloud, cloud.placement):
        print(json.dumps(sentence))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
