"""A service behind a real client, with an answer for each path."""

import json
import types
import typing as t

from keystoneauth1.exceptions import ConnectFailure

from .....plugins.module_utils._core.clients.api import Api


def build_compute_node(uuid: str, host: str) -> dict[str, t.Any]:
    """Return a compute node as Nova lists it, with the name of its host."""
    return {
        "id": uuid,
        "hypervisor_hostname": host,
        "service": {"host": host},
        "state": "up",
        "status": "enabled",
    }


def open_service(
    name: str, request: t.Callable[..., t.Any], newest: tuple[int, int], minimum: tuple[int, int]
) -> Api:
    """Return a client of `http://name` whose requests a function answers."""
    versions = types.SimpleNamespace(max_microversion=newest)
    adapter = types.SimpleNamespace(
        get_endpoint=lambda: f"http://{name}", get_endpoint_data=lambda: versions, request=request
    )
    return Api(name.title(), adapter, minimum)


class Service:
    """An adapter of keystoneauth: each path has a body, or a status for an error.

    asked: the paths that were requested, with their query, and beside it the microversion of each.
    A status of 0 stands for no answer.
    """

    def __init__(self, answers: t.Mapping[str, t.Any], newest: tuple[int, int] = (1, 39)) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.microversions: list[str | None] = []
        self.max_microversion = newest

    def open(self, name: str, minimum: tuple[int, int] | None = None) -> Api:
        return Api(name, self, minimum)

    def get_endpoint(self) -> str:
        return "http://service"

    def get_endpoint_data(self) -> t.Any:
        return self

    def request(self, url: str, method: str, **options: t.Any) -> t.Any:
        path = url.removeprefix("http://service")
        query = "&".join(f"{key}={value}" for key, value in (options.get("params") or {}).items())
        asked = f"{path}?{query}" if query else path
        self.asked.append(asked)
        self.microversions.append(options.get("microversion"))
        found = self.answers.get(asked, self.answers.get(path, 404))
        if found == 0:
            raise ConnectFailure("refused")
        if isinstance(found, int):
            return Response(found, {"itemNotFound": {"message": "no", "code": found}})
        return Response(200, found)


class Response:
    """A response of requests."""

    def __init__(self, status: int, body: t.Any) -> None:
        self.status_code = status
        self.headers: dict[str, str] = {}
        self.content = json.dumps(body).encode()

    def json(self) -> t.Any:
        return json.loads(self.content)
