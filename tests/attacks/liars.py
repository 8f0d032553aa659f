"""What can stand between the collection and a service: policies, caches, other workers, old copies.

Each is a `Middlebox` of an interposer.
"""

import dataclasses as d
import email.utils
import json
import random
import re
import typing as t

from ..integration.interposer import Answered, Asked, Middlebox

Ask = t.Callable[[Asked], Answered]
Change = t.Callable[[Answered], Answered]


UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ANY = frozenset(range(100, 600))
_FORBIDDEN = "Policy does not allow this to be performed."


@d.dataclass
class Liar:
    """Answers matching requests by `lie`, all of them or some by chance, and counts them.

    statuses: the statuses of the true answers that it replaces.
    """

    pattern: str
    lie: t.Callable[[Asked, Answered], Answered]
    chance: float = 1.0
    seed: int = 0
    statuses: t.Container[int] = (200,)
    lies: int = 0

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def __call__(self, asked: Asked, ask: Ask) -> Answered:
        answered = ask(asked)
        if not re.search(self.pattern, asked.line) or answered.status not in self.statuses:
            return answered
        if self._dice.random() >= self.chance:
            return answered
        self.lies += 1
        return self.lie(asked, answered)


def deny(pattern: str) -> Middlebox:
    """Answer 403 to each matching request, as both services do."""
    body = {
        "forbidden": {"code": 403, "message": _FORBIDDEN},
        "errors": [{"status": 403, "title": "Forbidden", "detail": _FORBIDDEN}],
    }
    denied = Answered(403, [("Content-Type", "application/json")], json.dumps(body).encode())
    return Liar(pattern, lambda _asked, _answered: denied, statuses=_ANY)


def change(pattern: str, function: Change, **options: t.Any) -> Middlebox:
    """Change the answers to matching requests; options are those of `Liar`."""
    return Liar(pattern, lambda _asked, answered: function(answered), **options)


def edit(pattern: str, function: t.Callable[[t.Any], t.Any], **options: t.Any) -> Middlebox:
    """Change the JSON of the answers to matching requests."""
    return change(
        pattern, lambda answered: answered.replace_json(function(answered.json)), **options
    )


def hide(*fields: str) -> t.Callable[[t.Any], t.Any]:
    """Return a function that takes fields out of a body, at whatever depth."""

    def clean(body: t.Any) -> t.Any:
        if isinstance(body, list):
            return [clean(entry) for entry in body]
        if isinstance(body, dict):
            return {key: clean(value) for key, value in body.items() if key not in fields}
        return body

    return clean


def empty(key: str) -> t.Callable[[t.Any], t.Any]:
    """Return a function that leaves nothing in one list of a body."""
    return lambda body: {**body, key: []} if key in body else body


@d.dataclass
class Copies:
    """Keeps the answers to matching GET requests, and gives them again when it is told to.

    A cache in front of a service, or a database that lags behind, depending on `dated`: "age" has
    an Age header and the Date of the first time, "date" only the Date, and "fresh" neither.
    """

    pattern: str
    dated: str = "fresh"
    statuses: t.Container[int] = _ANY
    chance: float = 1.0
    serves: bool = False
    served: int = 0
    _kept: dict[str, Answered] = d.field(default_factory=dict)
    _dice: random.Random = d.field(default_factory=lambda: random.Random(1))

    def __call__(self, asked: Asked, ask: Ask) -> Answered:
        if asked.method != "GET" or not re.search(self.pattern, asked.line):
            return ask(asked)
        if self.serves:
            kept = self._kept.get(asked.path)
            if kept is None or self._dice.random() >= self.chance:
                return ask(asked)
            self.served += 1
            return self._date(kept)
        answered = ask(asked)
        if answered.status in self.statuses:
            self._kept[asked.path] = answered
        return answered

    def _date(self, kept: Answered) -> Answered:
        old = email.utils.formatdate(
            email.utils.mktime_tz((2026, 1, 1, 0, 0, 0, 0, 0, 0, 0)), usegmt=True
        )
        if self.dated == "age":
            return kept.replace_header("Age", "300")
        if self.dated == "date":
            return kept.replace_header("Date", old)
        return kept.replace_header("Date", email.utils.formatdate(usegmt=True))
