"""Ironic's API as a WSGI application, with the configuration file in $IRONIC_CONFIG_FILE."""

from __future__ import annotations

import os
import sys

sys.argv = ["ironic-api", "--config-file", os.environ["IRONIC_CONFIG_FILE"]]

# It parses sys.argv when it is imported.
from ironic.wsgi import application  # noqa: E402

__all__ = ["application"]
