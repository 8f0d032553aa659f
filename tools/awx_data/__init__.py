# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`make pages`: writes the set-up of AWX in the form of infra.aap_configuration and awx.awx.

`extensions/patterns/orphan_cleanup/setup.yml` is the source.
Whatever this package does not know in it is an error, so that nothing is left out silently.
"""
