# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ironic's API as a WSGI application, with the configuration file in $IRONIC_CONFIG_FILE."""

from __future__ import annotations

import os
import sys

sys.argv = ["ironic-api", "--config-file", os.environ["IRONIC_CONFIG_FILE"]]

# It parses sys.argv when it is imported.
from ironic.wsgi import application  # noqa: E402

__all__ = ["application"]
