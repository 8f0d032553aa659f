# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`make matrix`: the acceptance tests with each of many versions.

They are versions of ansible-core, Python, openstacksdk and OpenStack.
"""
