"""Nova, Placement and Glance as the scenarios need them.

Each method is short and does one thing; errors are MinicloudErrors.
"""

import urllib.parse
from typing import Any

from minicloud_ctl import releases
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.rest import Answer, Session
from minicloud_ctl.state import State
from minicloud_ctl.waiting import wait_for

IMAGE = "minicloud"
# name: (VCPUs, MB of memory, GB of disk)
FLAVORS = {
    "m1.tiny": (1, 512, 1),
    "m1.small": (2, 2048, 10),
    "m1.medium": (4, 4096, 20),
    "m1.large": (8, 8192, 40),
}


class Cloud:
    """The API of one Nova (``first`` or ``second``) and of the services that both use."""

    def __init__(
        self, state: State, nova: str = "first", user: str = "admin", project: str = "admin"
    ) -> None:
        self.session = Session(state, user, project)
        self._api = "nova-api" if nova == "first" else f"{nova}-nova-api"
        self._release = releases.choose(state.release)

    # Nova -----------------------------------------------------------------------------------------

    def nova_call(
        self, method: str, path: str, body: object = None, version: str = "2.90"
    ) -> Answer:
        version = releases.at_most(version, self._release.compute)
        return self.session.call(
            self._api, method, f"/v2.1{path}", body, {"OpenStack-API-Version": f"compute {version}"}
        )

    def nova(self, method: str, path: str, body: object = None, version: str = "2.90") -> Any:
        answer = self.nova_call(method, path, body, version)
        if not answer.ok:
            raise MinicloudError(f"Nova answered {answer.status} to {method} {path}: {answer.body}")
        return answer.body

    def compute_services(self) -> dict[str, dict]:
        """Return nova-compute services by host, as ``GET /os-services`` shows them."""
        return {
            service["host"]: service
            for service in self.nova("GET", "/os-services?binary=nova-compute")["services"]
        }

    def hypervisors(self) -> dict[str, str]:
        """Return hypervisor uuids by host; each is also the uuid of its root provider."""
        # From 2.88 on Nova asks each host for its uptime, which the fake driver does not know and
        # logs as an error.
        found = self.nova("GET", "/os-hypervisors/detail", version="2.87")["hypervisors"]
        return {hypervisor["service"]["host"]: hypervisor["id"] for hypervisor in found}

    def flavor(self, name: str) -> str:
        """Return the id of a flavor by its name."""
        found = {flavor["name"]: flavor["id"] for flavor in self.nova("GET", "/flavors")["flavors"]}
        if name not in found:
            raise MinicloudError(f"There is no flavor {name}.")
        return found[name]

    # Placement ------------------------------------------------------------------------------------

    def placement_call(
        self, method: str, path: str, body: object = None, version: str = "1.36"
    ) -> Answer:
        version = releases.at_most(version, self._release.placement)
        return self.session.call(
            "placement", method, path, body, {"OpenStack-API-Version": f"placement {version}"}
        )

    def placement(self, method: str, path: str, body: object = None, version: str = "1.36") -> Any:
        answer = self.placement_call(method, path, body, version)
        if not answer.ok:
            raise MinicloudError(
                f"Placement answered {answer.status} to {method} {path}: {answer.body}"
            )
        return answer.body

    def providers(self) -> dict[str, str]:
        """Return provider names by uuid."""
        return {
            provider["uuid"]: provider["name"]
            for provider in self.placement("GET", "/resource_providers")["resource_providers"]
        }

    # Neutron --------------------------------------------------------------------------------------

    def neutron(self, method: str, path: str, body: object = None) -> Any:
        return self.session.must("neutron", method, f"/v2.0{path}", body)

    # Cinder ---------------------------------------------------------------------------------------

    def cinder(self, method: str, path: str, body: object = None) -> Any:
        headers = {"OpenStack-API-Version": "volume 3.71"}
        return self.session.must("cinder", method, f"/v3{path}", body, headers)

    # Cyborg ---------------------------------------------------------------------------------------

    def cyborg(self, method: str, path: str, body: object = None) -> Any:
        return self.session.must("cyborg", method, f"/v2{path}", body)

    # Created by ``up`` ----------------------------------------------------------------------------

    def create_flavors(self) -> None:
        there = {flavor["name"] for flavor in self.nova("GET", "/flavors")["flavors"]}
        for name, (vcpus, memory, disk) in FLAVORS.items():
            if name not in there:
                flavor = {"name": name, "vcpus": vcpus, "ram": memory, "disk": disk}
                self.nova("POST", "/flavors", {"flavor": flavor})

    def create_image(self) -> str:
        """Create the one image; the fake driver never reads its content."""
        there = self.image()
        if there:
            return there
        kind = {"disk_format": "raw", "container_format": "bare"}
        document = {"name": IMAGE, "visibility": "public", **kind}
        image = self.session.must("glance", "POST", "/v2/images", document)["id"]
        self.session.must("glance", "PUT", f"/v2/images/{image}/file", b"minicloud\n" * 64)
        wait_for("the image to become active", self.image, 30)
        return image

    def image(self) -> str | None:
        query = urllib.parse.urlencode({"name": IMAGE, "status": "active"})
        found = self.session.must("glance", "GET", f"/v2/images?{query}")["images"]
        return found[0]["id"] if found else None
