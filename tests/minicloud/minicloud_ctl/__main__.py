"""``python -m minicloud_ctl``."""

from __future__ import annotations

import sys

from minicloud_ctl.cli import main

sys.exit(main(sys.argv[1:]))
