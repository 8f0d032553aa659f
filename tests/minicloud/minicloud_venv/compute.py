# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

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
