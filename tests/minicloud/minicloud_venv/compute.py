"""nova-compute with the drivers of ``minicloud_venv.virt`` and ``minicloud_venv.nested``.

Run as ``python -m minicloud_venv.compute ARGUMENTS...``.
"""

from __future__ import annotations

import sys

from nova.cmd.compute import main

from minicloud_venv import nested, virt

if __name__ == "__main__":
    sys.modules.update({f"nova.virt.{name}": virt for name in virt.NAMES})
    sys.modules[f"nova.virt.{nested.NAME}"] = nested
    sys.argv[0] = "nova-compute"
    main()
