"""Wrong variables, and the sentence about each: tables for the unit and the integration tests."""

import typing as t
from pathlib import Path

import yaml


class Bad(t.NamedTuple):
    """One wrong input.

    run: a playbook, or a role with its entry point, such as `hypervisor_cleanup purge`.
    given: what follows `-e` on the command line.
    sentence: a part of the message.
    """

    run: str
    given: str
    sentence: str


LONG = "x" * 10_000


def _read_rows() -> dict[str, tuple[Bad, ...]]:
    parts = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    return {
        part: tuple(Bad(run, given.replace("LONG", LONG), said) for run, given, said in rows)
        for part, rows in parts.items()
    }


BAD = _read_rows()
# Only a run can show the sentence: what Ansible makes of a text, and what it evaluates.
TEMPLATES = BAD.pop("only a run can show the sentence")

# What follows `--limit` and `-i` on the command line, in place of `-e`.
NO_HOSTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "cleanup_orphans",
        ("--limit", "compute-1"),
        "this playbook runs on localhost, which --limit 'compute-1'",
    ),
    (
        "detect_orphans",
        ("-i", "a,b,", "--limit", "a"),
        "name what to examine in orphan_cleanup_hosts",
    ),
    (
        "decommission_host",
        ("--limit", "compute-1"),
        "name what to examine in host_decommission_target",
    ),
    ("drain_host", ("--limit", "compute-1"), "name what to examine in host_decommission_target"),
    ("restore_allocations", ("--limit", "compute-1"), "runs on localhost"),
    ("heal_allocations", ("--limit", "compute-1"), "runs on localhost"),
    ("cleanup_clouds", (), "no host of the inventory matches 'clouds'; there is no inventory"),
    ("detect_clouds", ("-i", "a,b,"), "or name others in orphan_cleanup_clouds"),
    ("detect_clouds", ("-e", "orphan_cleanup_clouds="), "orphan_cleanup_clouds is empty"),
    ("cleanup_hypervisor", (), "no host of the inventory matches 'compute'; there is no inventory"),
    (
        "cleanup_hypervisor",
        ("-i", "a,b,", "--limit", "a", "-e", "hypervisor_cleanup_hosts=b"),
        "--limit 'a' leaves out all hosts that match 'b'",
    ),
)

# What follows the playbook on the command line, and would leave out stages or check mode.
LEFT_OUT: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cleanup_orphans", ("--skip-tags", "remediate"), "so leave out --skip-tags remediate:"),
    ("cleanup_orphans", ("-check",), "-check is -c heck to Ansible, and no check mode: give --"),
    ("detect_orphans", ("--tags", "detect"), "has a tag, so leave out --tags detect:"),
    ("cleanup_orphans", ("--tags", "never"), "so leave out --tags never:"),
    ("cleanup_orphans", ("--tags", "tagged"), "so leave out --tags tagged:"),
    ("cleanup_orphans", ("--skip-tags", "always"), "leave out the checks before the first change"),
    ("cleanup_orphans", ("--start-at-task", "Make the changes"), "leave out the checks before"),
    ("restore_allocations", ("--tags", "restore"), "so leave out --tags restore:"),
    ("heal_allocations", ("--tags", "heal"), "so leave out --tags heal:"),
    ("drain_host", ("--tags", "drain"), "name the stages that you want in host_decommission_st"),
    ("decommission_host", ("--skip-tags", "delete"), "so leave out --skip-tags delete:"),
    ("redeploy_host", ("--skip-tags", "always"), "leave out the checks before the first change"),
    ("cleanup_clouds", ("--tags", "detect"), "so leave out --tags detect:"),
    ("cleanup_hypervisor", ("--tags", "detect"), "so leave out --tags detect:"),
)
