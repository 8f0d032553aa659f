# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The code that runs inside the virtual environment of the minicloud.

It connects the real services on one loopback machine.

The command line imports nothing here; the services find it through PYTHONPATH and through the entry
points that ``minicloud_ctl.configs`` writes into the state folder.
"""
