"""The part of Placement that a writer uses, behind the adapter of an HTTP session.

It follows `handlers/allocation.py` for generations, types and empty consumers, and
`objects/allocation.py` for the capacity of providers that have inventories. Network failures happen
exactly where a test says.
"""

import email.utils
import json
import re
import threading
import types
import typing as t

import keystoneauth1.exceptions as ksa

from .....plugins.module_utils._core.clients.api import Api
from .service import open_service

HERE, THERE = "aaaaaaa0-0000-4000-8000-000000000000", "aaaaaaa1-0000-4000-8000-000000000000"

Body = dict[str, t.Any]
Fault = t.Callable[[Body], "int | tuple[int, Body] | None"]
"""What happens to one POST instead.

It is the status of a proxy's answer, the status and the body of Placement's, or an exception.
"""


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def _provider(uuid: str) -> Body:
    return {
        "uuid": uuid,
        "name": uuid,
        "generation": 1,
        "root_provider_uuid": uuid,
        "parent_provider_uuid": None,
    }


class Placement:
    """Consumers and their allocations."""

    def __init__(self) -> None:
        self.held: dict[str, Body] = {}
        self.providers = [HERE, THERE]
        # By provider and class; a provider without any has room for everything.
        self.stock: dict[str, dict[str, Body]] = {}
        # Placement before 14.0 refuses also what does not add to an overuse.
        self.is_strict = False
        # The generations of consumers whose record is there without allocations, and the consumers
        # whose allocations no answer shows.
        self.records: dict[str, int] = {}
        self.hidden: set[str] = set()
        self.posts: list[tuple[str, list[str]]] = []
        self.faults: list[Fault | None] = []
        self.under_way: list[Body] = []
        self.reads_fail = False
        # How long ago all allocations were written; None if no answer says so.
        self.age_seconds: int | None = 7200
        self._lock = threading.Lock()

    def give(
        self, number: int, type: str | None = None, generation: int = 1, **resources: int
    ) -> str:
        """Give a consumer `resources` of one provider; without any it has no allocation."""
        self.held.pop(uuid(number), None)
        if resources:
            shares = {HERE: {"resources": dict(resources)}}
            self.held[uuid(number)] = {
                "allocations": shares,
                "generation": generation,
                "project": "p",
                "user": "u",
                "type": type,
            }
        return uuid(number)

    def api(self) -> Api:
        return open_service("placement", self._request, (1, 39), (1, 28))

    def _request(self, url: str, method: str, microversion: str, **options: t.Any) -> t.Any:
        path = url.removeprefix("http://placement/")
        with self._lock:
            if method == "GET" and path.startswith("allocations/"):
                status, body = (
                    (500, {})
                    if self.reads_fail
                    else (200, self._told(path.removeprefix("allocations/"), microversion))
                )
            elif (method, path) == ("GET", "resource_providers"):
                status, body = (
                    200,
                    {
                        "resource_providers": []
                        if options["params"]
                        else list(map(_provider, self.providers))
                    },
                )
            elif method == "GET" and path.startswith("resource_providers/"):
                status, body = self._describe(*path.split("/")[1:])
            elif (method, path) == ("POST", "allocations"):
                body = json.loads(json.dumps(options["json"]))
                self.posts.append((microversion, sorted(body)))
                fault = self.faults.pop(0) if self.faults else None
                status, body = self._faulty(fault, body, microversion)
            else:
                raise AssertionError(f"{method} {path}")
        return types.SimpleNamespace(
            status_code=status, headers=self._date(), content=b"{}", json=lambda: body
        )

    def _date(self) -> dict[str, str]:
        if self.age_seconds is None:
            return {}
        now = 1_800_000_000
        modified = email.utils.formatdate(now - self.age_seconds, usegmt=True)
        return {"Date": email.utils.formatdate(now, usegmt=True), "Last-Modified": modified}

    def _faulty(self, fault: Fault | None, body: Body, microversion: str) -> tuple[int, Body]:
        late, self.under_way = self.under_way, []
        for earlier in late:
            self.take(earlier, microversion)
        answer = fault(body) if fault else None
        if answer is None:
            return self.take(body, microversion)
        if isinstance(answer, int):
            return answer, {}
        return answer

    def _told(self, consumer: str, microversion: str) -> Body:
        held = self.held.get(consumer)
        if held is None or consumer in self.hidden:
            return {"allocations": {}}
        told = {
            "allocations": {
                provider: {**share, "generation": 5}
                for provider, share in held["allocations"].items()
            },
            "consumer_generation": held["generation"],
            "project_id": held["project"],
            "user_id": held["user"],
        }
        return (
            {**told, "consumer_type": held["type"] or "unknown"}
            if _at_least(microversion, 38)
            else told
        )

    def _describe(self, provider: str, part: str) -> tuple[int, Body]:
        """Return a part of a provider; those without an inventory are gone meanwhile."""
        if provider not in self.stock:
            return 404, build_error("No such provider.", "placement.undefined_code")
        known: Body = {"resource_provider_generation": 1}
        if part == "inventories":
            return 200, {**known, part: self.stock[provider]}
        if part == "usages":
            used = {cls: self.used(provider, cls) for cls in self.stock[provider]}
            return 200, {**known, part: used}
        shown = {one: held for one, held in self.held.items() if one not in self.hidden}
        listed = {one: held["allocations"].get(provider) for one, held in shown.items()}
        return 200, {**known, part: {one: share for one, share in listed.items() if share}}

    def used(self, provider: str, cls: str, but: t.Collection[str] = ()) -> int:
        """Return what is in use of a class, but not by some consumers."""
        shares = [
            held["allocations"].get(provider, {"resources": {}})["resources"]
            for consumer, held in self.held.items()
            if consumer not in but
        ]
        return sum(share.get(cls, 0) for share in shares)

    def _has_room(self, body: Body) -> bool:
        """Return what `_check_capacity_exceeded` finds; what is only removed counts as zero."""
        amounts = [
            (uuid, cls, amount if wanted["allocations"] else 0)
            for consumer, wanted in body.items()
            for uuid, share in (
                wanted["allocations"] or self.held.get(consumer, {}).get("allocations", {})
            ).items()
            for cls, amount in share["resources"].items()
            if uuid in self.stock
        ]
        classes = {cls for _uuid, cls, _amount in amounts}
        for uuid, cls, amount in amounts:
            stock = self.stock[uuid].get(cls)
            if not amount and classes & set(self.stock[uuid]):
                continue
            if stock is None or not stock["min_unit"] <= amount <= stock["max_unit"]:
                return False
            capacity = (stock["total"] - stock["reserved"]) * stock["allocation_ratio"]
            then = self.used(uuid, cls, body) + sum(
                more for *where, more in amounts if where == [uuid, cls]
            )
            is_worse = self.is_strict or then > self.used(uuid, cls)
            if amount % stock["step_size"] or (then > capacity and is_worse):
                return False
        return True

    def take(self, body: Body, microversion: str) -> tuple[int, Body]:
        typed = _at_least(microversion, 38)
        for wanted in body.values():
            if set(wanted) != {
                "allocations",
                "consumer_generation",
                "project_id",
                "user_id",
                *(["consumer_type"] if typed else []),
            }:
                return 400, build_error("JSON does not validate", "placement.undefined_code")
            if typed and not re.fullmatch("[A-Z0-9_]+", wanted["consumer_type"]):
                return 400, build_error("JSON does not validate", "placement.undefined_code")
        for consumer, wanted in body.items():
            now = self.records.get(consumer)
            now = self.held[consumer]["generation"] if consumer in self.held else now
            given = wanted["consumer_generation"]
            if given != now:
                said = f"consumer generation conflict - expected {now} but got {given}"
                return 409, build_error(said, "placement.concurrent_update")
        if not self._has_room(body):
            said = "Unable to allocate inventory: the requested amount would exceed the capacity."
            return 409, build_error(said, "placement.undefined_code")
        for consumer, wanted in body.items():
            record = self.records.pop(consumer, 0)
            before = self.held.pop(consumer, {"generation": record, "type": None})
            if wanted["allocations"]:
                self.held[consumer] = {
                    "allocations": wanted["allocations"],
                    "generation": before["generation"] + 1,
                    "project": wanted["project_id"],
                    "user": wanted["user_id"],
                    "type": wanted["consumer_type"] if typed else before["type"],
                }
        return 204, {}

    # Failures of a POST

    def lost(self, body: Body) -> int | None:
        """The request never arrives."""
        raise ksa.ConnectFailure("lost")

    def unanswered(self, body: Body) -> int | None:
        """It takes effect, and the answer is lost."""
        self.take(body, "1.28")
        raise ksa.ConnectFailure("lost")

    def late(self, body: Body) -> int | None:
        """It takes effect only when the next has arrived."""
        self.under_way.append(body)
        raise ksa.ConnectTimeout("late")


def refuse(status: int) -> Fault:
    """Return the fault that Placement refuses a POST with `status`."""
    return lambda _body: (status, build_error("refused", "placement.undefined_code"))


def _at_least(microversion: str, minor: int) -> bool:
    return int(microversion.partition(".")[2]) >= minor


def build_error(detail: str, code: str) -> Body:
    return {"errors": [{"detail": detail, "code": code}]}
