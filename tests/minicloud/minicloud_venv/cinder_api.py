"""Cinder's API, for ``minicloud_venv.serve``.

It looks for its configuration in the folders of the system, unless an argument names the file.
"""

from __future__ import annotations

import os
import sys

sys.argv = ["cinder-api", "--config-file", os.environ["MINICLOUD_CINDER_CONFIG"]]

from cinder.wsgi import api  # noqa: E402

application = api.application
