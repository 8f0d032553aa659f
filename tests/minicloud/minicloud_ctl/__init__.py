# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of the minicloud.

It uses the standard library only, so that any Python from 3.11 on runs it without an installation.

Data flows one way: paths -> state -> configs/databases -> services (processes) -> identity ->
ready; scenarios use all of it.
"""
