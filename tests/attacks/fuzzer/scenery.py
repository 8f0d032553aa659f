"""The situations in the cloud of the fuzzer, and the way to it."""

import contextlib
import json
import re
import typing as t
from pathlib import Path

from ...integration.support import Ansible, Minicloud
from .wire import FuzzingInterposer

SCENARIOS = (
    "healthy",
    "shared_disk",
    "former_shared_disk",
    "hostile_names",
    "deleted_server",
    "deleted_by_sql",
    "purged_server",
    "nested_child",
    "ended_migration",
    "ended_migration_deleted",
    "ended_migration_unshelved",
    "deleted_migration",
    "evacuated_source",
    "extra_host",
    "booting",
    "move_in_flight",
    "unconfirmed_resize",
    "soft_deleted",
    "error_with_host",
    "shelved_offloaded",
    "unreverted_allocation",
    "failed_cold_migration",
    "lost_instance_mapping",
    "lost_mapping_extra_host",
    "missing_allocation",
    "foreign_consumer",
    "foreign_uuid",
    "foreign_provider",
    "wrong_amount",
    "wrong_owner",
    "misplaced_allocation",
    "leaked_child",
    "error_without_host",
)
# A quick world for the test of the fuzzer itself.
FEW_SCENARIOS = ("healthy", "extra_host", "error_with_host", "missing_allocation", "wrong_owner")
CELL_HOST = "cell2-fuzzed"


@contextlib.contextmanager
def interpose(ansible: Ansible, minicloud: Minicloud) -> t.Iterator[list[FuzzingInterposer]]:
    """Let Ansible reach Nova, Placement and Keystone through interposers, within a `with` block."""
    ports = minicloud.ports
    with (
        FuzzingInterposer(f"http://127.0.0.1:{ports['nova-api']}/v2.1", "nova") as nova,
        FuzzingInterposer(f"http://127.0.0.1:{ports['placement']}", "placement") as placement,
        FuzzingInterposer(f"http://127.0.0.1:{ports['keystone']}/v3", "keystone") as keystone,
    ):
        region = "region_name: RegionOne"
        ways = (
            f"{region}\n    compute_endpoint_override: {nova.url}\n"
            f"    placement_endpoint_override: {placement.url}\n"
            f"    identity_endpoint_override: {keystone.url}"
        )
        config = minicloud.clouds_yaml.read_text().replace(region, ways)
        config = re.sub(r"auth_url: \S+", f"auth_url: {keystone.url}", config)
        path = ansible.folder / "fuzzed.yaml"
        path.write_text(config)
        ansible.environment.update(OS_CLIENT_CONFIG_FILE=str(path))
        yield [nova, placement, keystone]


def read_scenarios(
    minicloud: Minicloud, scenarios: t.Sequence[str]
) -> tuple[list[str], list[tuple[str, str]], dict[str, tuple[str, str]]]:
    """Return the consumers of the scenarios, always in the same order, and what is needed.

    What is needed are pairs of a consumer and a provider. Last, by migration, the server that must
    get what the migration has, and the provider of it.
    """
    consumers: dict[str, None] = {}
    needed = []
    pairs = {}
    for name in scenarios:
        record = minicloud.truth(name)
        for server in record["servers"]:
            consumers[server] = None
        for allocation in record["allocations"]:
            consumers[allocation["consumer"]] = None
            if allocation["truth"] != "orphaned":
                needed.append((allocation["consumer"], allocation["provider"]))
            if allocation["kind"] == "unreverted_allocation":
                (other,) = record["allocations"][1:]
                pairs[other["consumer"]] = (allocation["consumer"], other["provider"])
    return list(consumers), needed, pairs


def read_recorded(folder: Path) -> set[str]:
    """Return the consumers that the journals in a folder say are about to be written."""
    recorded = set()
    for journal in folder.rglob("journal-*.jsonl"):
        for line in journal.read_text().splitlines():
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                if record.get("event") == "before":
                    recorded.add(record.get("consumer"))
                    recorded.add((record.get("partner") or {}).get("consumer"))
    return recorded
