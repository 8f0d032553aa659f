"""Writes a line for each HTTP request of a process into the file COMPARE_REQUESTS.

Python imports this file when it starts, in every process that a command starts. All commands that
are compared send their requests with the same library.
"""

import os
import typing as t
from pathlib import Path

if "COMPARE_REQUESTS" in os.environ:
    import requests

    _FILE = Path(os.environ["COMPARE_REQUESTS"])
    _send = requests.Session.send

    def _send_and_count(
        session: requests.Session, request: requests.PreparedRequest, **options: t.Any
    ) -> requests.Response:
        with _FILE.open("a", encoding="utf-8") as file:
            file.write(f"{request.method} {request.url}\n")
        return _send(session, request, **options)

    requests.Session.send = _send_and_count  # type: ignore[assignment,method-assign]
