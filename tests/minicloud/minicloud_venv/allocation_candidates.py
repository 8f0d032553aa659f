"""Placement's own allocation candidates, for the tests of our placements.

It reads worlds as JSON from standard input, one a line, puts the providers of each into a Placement
without anything else in it, and writes the candidates that Placement gives.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile

import webob
from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy, policy
from placement.db.sqlalchemy import migration


class Placement:
    """Placement in this process, without Keystone."""

    def __init__(self, folder):
        config = cfg.ConfigOpts()
        placement_conf.register_opts(config)
        config.set_override("connection", f"sqlite:///{folder}/placement.db", "placement_database")
        config([], project="placement", default_config_files=[])
        config.set_override("sqlite_synchronous", False, "placement_database")
        config.set_override("auth_strategy", "noauth2", "api")
        db_api.configure(config)
        migration.upgrade("head")
        policy.init(config)
        self._app = deploy.loadapp(config)
        self._made = set()

    def send(self, method, path, document=None):
        request = webob.Request.blank(path, method=method)
        request.headers["X-Auth-Token"] = "admin"
        request.headers["OpenStack-API-Version"] = "placement 1.39"
        if document is not None:
            request.content_type = "application/json"
            request.body = json.dumps(document).encode()
        answer = request.get_response(self._app)
        if answer.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text}")
        return answer.json if answer.body else None

    def list_candidates(self, world):
        """Return the allocations of all candidates of a world."""
        paths = {f"/resource_classes/{cls}" for cls in world["classes"]}
        paths |= {f"/traits/{trait}" for trait in world["traits"]}
        for path in paths - self._made:
            self.send("PUT", path)
        self._made |= paths
        for provider in world["providers"]:
            self._create(provider)
        answer = self.send("GET", f"/allocation_candidates?{world['query']}")
        for provider in reversed(world["providers"]):
            self.send("DELETE", f"/resource_providers/{provider['uuid']}")
        candidates = []
        for candidate in answer["allocation_requests"]:
            allocations = {}
            for provider, entry in candidate["allocations"].items():
                allocations[provider] = entry["resources"]
            candidates.append(allocations)
        return candidates

    def _create(self, provider):
        path = f"/resource_providers/{provider['uuid']}"
        named = {"uuid": provider["uuid"], "name": provider["uuid"]}
        document = {**named, "parent_provider_uuid": provider["parent"]}
        self.send("POST", "/resource_providers", document)
        generation = 0
        for part in ("inventories", "traits", "aggregates"):
            if provider[part]:
                document = {part: provider[part], "resource_provider_generation": generation}
                answer = self.send("PUT", f"{path}/{part}", document)
                generation = answer["resource_provider_generation"]


def main():
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        placement = Placement(folder)
        for line in sys.stdin:
            print(json.dumps(placement.list_candidates(json.loads(line))))


if __name__ == "__main__":
    main()
