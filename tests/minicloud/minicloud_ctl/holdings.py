"""Allocations and providers through Placement's API.

``allocations`` always has this form: {provider uuid: {resource class: amount}}.
"""

import uuid
from dataclasses import dataclass

from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.rest import Answer
from minicloud_ctl.waiting import wait_for

Allocations = dict[str, dict[str, int]]

# Nova writes at this microversion, so its consumers have no type; from 1.38 on a type is required.
UNTYPED = "1.28"
TYPED = "1.38"
PROVIDER_CHANGED = "concurrently updated the resource provider data"


@dataclass(frozen=True)
class Holding:
    """The whole allocation of one consumer; ``generation`` is None if it has none."""

    allocations: Allocations
    project: str = ""
    user: str = ""
    generation: int | None = None


def somebody() -> Holding:
    """The owner of foreign consumers: a project and a user that Keystone does not know."""
    return Holding({}, str(uuid.uuid4()), str(uuid.uuid4()))


def of(cloud: Cloud, consumer: str) -> Holding:
    body = cloud.placement("GET", f"/allocations/{consumer}", version=UNTYPED)
    allocations = {provider: share["resources"] for provider, share in body["allocations"].items()}
    return Holding(
        allocations,
        body.get("project_id", ""),
        body.get("user_id", ""),
        body.get("consumer_generation"),
    )


def await_providers(cloud: Cloud, consumer: str, *providers: str) -> None:
    """Wait until the consumer has allocations on exactly these providers.

    Nova ends most operations before it has cleaned up in Placement.
    """
    wait_for(
        f"consumer {consumer} to hold {list(providers)}",
        lambda: set(of(cloud, consumer).allocations) == set(providers),
    )


def document(holding: Holding, allocations: Allocations) -> dict:
    """Return the body of ``PUT /allocations/{consumer}``, with the owner of ``holding``."""
    return {
        "allocations": {
            provider: {"resources": resources} for provider, resources in allocations.items()
        },
        "project_id": holding.project,
        "user_id": holding.user,
        "consumer_generation": holding.generation,
    }


def put(cloud: Cloud, consumer: str, allocations: Allocations, owner: Holding) -> None:
    """Give an untyped consumer exactly this allocation, which replaces its current one."""
    path = f"/allocations/{consumer}"
    # Read once: a change of this very consumer must not be overwritten by a repetition.
    holding = Holding(allocations, owner.project, owner.user, of(cloud, consumer).generation)

    def write() -> Answer | None:
        answer = cloud.placement_call("PUT", path, document(holding, allocations), UNTYPED)
        # Another consumer was written on the same provider just then. Nova repeats its request too.
        return None if PROVIDER_CHANGED in str(answer.body) else answer

    answer = wait_for(f"Placement to accept the allocation of {consumer}", write)
    if not answer.ok:
        raise MinicloudError(f"Placement answered {answer.status} to PUT {path}: {answer.body}")


def write_back(cloud: Cloud, consumer: str, holding: Holding) -> None:
    """Give a consumer its earlier allocation again."""
    put(cloud, consumer, holding.allocations, holding)


def add(cloud: Cloud, consumer: str, more: Allocations) -> None:
    """Give an untyped consumer this beside what it has."""
    held = of(cloud, consumer)
    put(cloud, consumer, {**held.allocations, **more}, held)


def put_typed(
    cloud: Cloud, consumer: str, kind: str, allocations: Allocations, owner: Holding
) -> None:
    """Create a consumer that is not Nova's."""
    body = {**document(owner, allocations), "consumer_generation": None, "consumer_type": kind}
    cloud.placement("PUT", f"/allocations/{consumer}", body, TYPED)


def create_provider(
    cloud: Cloud,
    name: str,
    inventory: dict[str, int],
    parent: str | None = None,
    traits: tuple[str, ...] = (),
) -> str:
    """Create a provider with these amounts; missing custom classes are created first.

    Returns its uuid.
    """
    provider = str(uuid.uuid4())
    document = {"uuid": provider, "name": name}
    if parent:
        document["parent_provider_uuid"] = parent
    cloud.placement("POST", "/resource_providers", document)
    for resource_class in inventory:
        if resource_class.startswith("CUSTOM_"):
            cloud.placement("PUT", f"/resource_classes/{resource_class}")
    inventories = {resource_class: {"total": total} for resource_class, total in inventory.items()}
    parts = {"inventories": inventories, "traits": list(traits)}
    for generation, (part, content) in enumerate(parts.items()):
        if content or part == "inventories":
            body = {"resource_provider_generation": generation, part: content}
            cloud.placement("PUT", f"/resource_providers/{provider}/{part}", body)
    return provider
