"""Record, and draw; with `--draw`, draw the last recording once more."""

import sys

from . import drawing, recording

if "--draw" not in sys.argv[1:]:
    recording.save(recording.record())
drawing.FILE.write_text(drawing.draw(recording.load()), encoding="utf-8")
