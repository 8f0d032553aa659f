"""Makes and undoes scenarios, several at a time, because they mostly wait for Nova."""

import concurrent.futures
import time
from dataclasses import dataclass

from minicloud_ctl import holdings
from minicloud_ctl import state as states
from minicloud_ctl.cloud import Cloud
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.scenarios import REGISTRY
from minicloud_ctl.scenarios.registry import Context, read_record, write_record

SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Existing:
    """Which scenarios are created once more: all, or those that somebody has cleaned up."""

    again: bool = False
    renew: bool = False


def choose(names: list[str]) -> list[str]:
    """Return the requested names in the order of the registry.

    ``all`` stands for those that can exist in one cloud.
    """
    unknown = sorted(set(names) - set(REGISTRY) - {"all"})
    if unknown:
        raise MinicloudError(
            f"There is no scenario {', '.join(unknown)}; 'minicloud scenario --list' shows what "
            "there is."
        )
    return [
        name
        for name, entry in REGISTRY.items()
        if name in names or ("all" in names and entry.in_all)
    ]


def run(paths: Paths, names: list[str], existing: Existing) -> bool:
    """Make what is not made yet and print a line for each.

    Returns False when one failed, which does not stop the others.
    """
    wanted = choose(names)
    closed = states.load(paths).closed_cells
    if closed and wanted != ["cell_down"]:
        raise MinicloudError(
            "A cell of this cloud is down on purpose: run 'minicloud scenario --undo cell_down' "
            "first."
        )
    entries = [REGISTRY[name] for name in wanted]
    groups = (
        ([entry.name for entry in entries if entry.in_all and entry.alone], 1),
        ([entry.name for entry in entries if entry.in_all and not entry.alone], SIDE_BY_SIDE),
        # These come last, because they close the cloud to all that follow.
        ([entry.name for entry in entries if not entry.in_all], 1),
    )
    good = True
    for group, workers in groups:
        good = _make_all(paths, group, workers, existing) and good
    return good


def _make_all(paths: Paths, names: list[str], workers: int, existing: Existing) -> bool:
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda name: _make(paths, name, existing), names)
        try:
            good = True
            for line, made in results:
                print(line, flush=True)
                good = good and made
            return good
        except BaseException:
            # After an interruption nothing more may begin.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _make(paths: Paths, name: str, existing: Existing) -> tuple[str, bool]:
    record = read_record(paths, name)
    if record and _is_kept(paths, record, existing):
        return f"{name:<24} made before", True
    if REGISTRY[name].placement > paths.release.placement:
        return f"{name:<24} left out: the Placement of {paths.release.name} is too old for it", True
    began = time.monotonic()
    context = Context(paths, name)
    try:
        REGISTRY[name].make(context)
        context.save()
    except MinicloudError as error:
        context.give_up()
        return f"{name:<24} FAILED: {error}" + (f"\n{error.detail}" if error.detail else ""), False
    return f"{name:<24} {time.monotonic() - began:5.1f} s  {REGISTRY[name].description}", True


def _is_kept(paths: Paths, record: dict, existing: Existing) -> bool:
    """Return whether a scenario that was made before is not made once more."""
    if record.get("undone") or existing.again:
        return False
    return not existing.renew or _is_as_recorded(paths, record)


def _is_as_recorded(paths: Paths, record: dict) -> bool:
    """Return whether all consumers of a scenario still have the recorded allocations."""
    cloud = Cloud(states.load(paths))
    return all(
        holdings.of(cloud, allocation["consumer"]).allocations.get(allocation["provider"])
        == allocation["resources"]
        for allocation in record["allocations"]
    )


def rename(paths: Paths, name: str, server_name: str) -> None:
    """Give the server of a scenario another name, in the database, because it may be deleted."""
    record = read_record(paths, name)
    if record is None or not record["server"]:
        raise MinicloudError(f"Scenario {name} is not made, or has no server.")
    statement = "UPDATE instances SET display_name = ? WHERE uuid = ?"
    Context(paths, name).sql(statement, server_name, record["server"])
    record["servers"][record["server"]] = server_name
    write_record(paths, {**record, "server_name": server_name})


def undo(paths: Paths, names: list[str]) -> None:
    for name in choose(names):
        undo_it = REGISTRY[name].undo
        record = read_record(paths, name)
        if undo_it is None:
            raise MinicloudError(
                f"Scenario {name} cannot be undone; 'minicloud down --purge' forgets everything."
            )
        if record is None or record.get("undone"):
            raise MinicloudError(f"Scenario {name} is not made, so there is nothing to undo.")
        undo_it(Context(paths, name))
        write_record(paths, {**record, "undone": True})
        print(f"{name:<24} undone", flush=True)
