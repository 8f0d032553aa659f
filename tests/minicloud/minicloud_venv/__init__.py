# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs inside the virtual environment of the minicloud.

It is the glue that real services need to share one loopback machine.

Nothing here is imported by the command line; it is found through PYTHONPATH and through the entry
points that ``minicloud_ctl.configs`` writes into the state folder.
"""
