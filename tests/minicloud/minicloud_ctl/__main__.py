"""``python -m minicloud_ctl``."""

import sys

from minicloud_ctl.cli import main

sys.exit(main(sys.argv[1:]))
