"""The commands: each calls another module and prints little."""

from __future__ import annotations

import argparse
import shlex
import sys
import time

from minicloud_ctl import (
    api_workers,
    cells,
    configs,
    databases,
    install,
    lifecycle,
    nested,
    neutron,
)
from minicloud_ctl import state as states
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import Paths
from minicloud_ctl.scenarios import REGISTRY, runner


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="minicloud", description="A real small OpenStack on 127.0.0.1, without root."
    )
    top.add_argument(
        "--home", help="state folder (default: $MINICLOUD_HOME, else .minicloud in the repository)"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "install", help="create the virtual environment; 'up' does so when needed"
    )
    command.add_argument(
        "--with", dest="parts", action="append", default=[], choices=states.PARTS, help="also this"
    )
    command = commands.add_parser(
        "up", help="start everything that does not run, and wait until it is ready"
    )
    command.add_argument(
        "--computes",
        type=int,
        default=4,
        metavar="N",
        help="create compute-1 to compute-N (default: 4)",
    )
    command.add_argument(
        "--with",
        dest="parts",
        action="append",
        default=[],
        choices=states.PARTS,
        help="add a real service, which stays until 'down --purge'; neutron: instead of the stub",
    )
    command.add_argument(
        "--without-date",
        action="store_true",
        help="the APIs answer without a Date, as behind uWSGI, until 'down --purge'",
    )
    command = commands.add_parser("down", help="stop everything")
    command.add_argument(
        "--purge", action="store_true", help="also delete all state except the virtual environment"
    )
    commands.add_parser(
        "status", help="list the services; exit status 0 when all that should run do"
    )
    commands.add_parser("env", help="print 'export OS_...' lines for a shell")
    command = commands.add_parser("kill", help="kill the nova-compute of a host with SIGKILL")
    command.add_argument("host")
    command = commands.add_parser(
        "start", help="start the nova-compute of a host, and create an unknown host"
    )
    command.add_argument("host")
    command.add_argument(
        "--nested",
        action="store_true",
        help="a new host gets devices, and so a tree of providers",
    )
    command.add_argument(
        "--without-disk",
        action="store_true",
        help="such a host has no disk of its own; another provider shares one with it",
    )
    command = commands.add_parser(
        "cell",
        help=(
            "add a cell to the running cloud; nova-api and the scheduler are restarted, workers "
            "are not"
        ),
    )
    command.add_argument("name", help="for example cell2")
    command.add_argument("hosts", nargs="*", metavar="HOST", help="hosts to start in it")
    command = commands.add_parser(
        "worker", help="start another nova-api beside the first, and print its port"
    )
    command.add_argument("name")
    command.add_argument(
        "--prime",
        action="append",
        default=[],
        choices=list(api_workers.CACHES),
        help="fill this list of cells now",
    )
    command.add_argument("--stop", action="store_true", help="end the worker")
    command = commands.add_parser(
        "agent", help="let a network agent of the real Neutron die or live again"
    )
    command.add_argument("host")
    command.add_argument("binary", choices=[*neutron.BINARIES, "all"], metavar="BINARY")
    command.add_argument("state", choices=["up", "down"])
    command = commands.add_parser(
        "nova-manage", help="run nova-manage with this cloud's configuration"
    )
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    command = commands.add_parser("scenario", help="create situations in the cloud; see --list")
    command.add_argument("names", nargs="*", metavar="NAME", help="scenarios, or 'all'")
    command.add_argument("--list", action="store_true", help="list all scenarios")
    command.add_argument(
        "--again", action="store_true", help="create an existing scenario once more"
    )
    command.add_argument(
        "--renew",
        action="store_true",
        help="create a scenario once more if its allocations are no longer the recorded ones",
    )
    command.add_argument("--undo", action="store_true", help="revert the named scenarios")
    command = commands.add_parser("rename", help="give a scenario's server another name")
    command.add_argument("name", metavar="SCENARIO")
    command.add_argument("server_name", metavar="NAME")
    command = commands.add_parser("age", help="make all allocations and events older")
    command.add_argument("days", type=int)
    return top


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        paths = Paths.choose(arguments.home)
        return COMMANDS[arguments.command](paths, arguments)
    except MinicloudError as error:
        print(f"minicloud: {error}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("minicloud: interrupted; 'minicloud down' stops what was started.", file=sys.stderr)
        return 130


def _install(paths: Paths, arguments: argparse.Namespace) -> int:
    if not install.install(paths):
        print(f"{paths.venv} is up to date")
    for part in arguments.parts:
        if not install.install_part(paths, part):
            print(f"{paths.part(part)} is up to date")
    return 0


def _up(paths: Paths, arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    lifecycle.up(paths, arguments.computes, arguments.parts, arguments.without_date)
    print(
        f'minicloud is ready ({time.monotonic() - began:.1f} s): eval "$(tests/minicloud/minicloud '
        'env)"'
    )
    return 0


def _down(paths: Paths, arguments: argparse.Namespace) -> int:
    lifecycle.down(paths, arguments.purge)
    return 0


def _status(paths: Paths, arguments: argparse.Namespace) -> int:
    rows = lifecycle.status(paths)
    table = [("SERVICE", "HOST", "PID", "STATE"), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    return 1 if any(word == "down" for *_rest, word in rows) else 0


def _env(paths: Paths, arguments: argparse.Namespace) -> int:
    for name, value in configs.cloud_environment(paths, states.load(paths)).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _kill(paths: Paths, arguments: argparse.Namespace) -> int:
    lifecycle.kill_compute(paths, arguments.host)
    return 0


def _start(paths: Paths, arguments: argparse.Namespace) -> int:
    driver = ""
    if arguments.nested:
        nested.check(paths.release)
        driver = nested.POOLED_DRIVER if arguments.without_disk else nested.DRIVER
    lifecycle.start_computes(paths, [arguments.host], driver=driver)
    return 0


def _scenario(paths: Paths, arguments: argparse.Namespace) -> int:
    if arguments.list:
        for name, entry in REGISTRY.items():
            print(f"{name:<24} {entry.description}")
        return 0
    if not arguments.names:
        raise MinicloudError(
            "Name at least one scenario, or 'all'; 'minicloud scenario --list' shows all names."
        )
    if arguments.undo:
        runner.undo(paths, arguments.names)
        return 0
    choice = runner.Existing(again=arguments.again, renew=arguments.renew)
    return 0 if runner.run(paths, arguments.names, choice) else 1


def _rename(paths: Paths, arguments: argparse.Namespace) -> int:
    runner.rename(paths, arguments.name, arguments.server_name)
    return 0


def _age(paths: Paths, arguments: argparse.Namespace) -> int:
    databases.set_back(paths, 24 * arguments.days)
    return 0


def _cell(paths: Paths, arguments: argparse.Namespace) -> int:
    cells.add(paths, arguments.name, arguments.hosts)
    return 0


def _worker(paths: Paths, arguments: argparse.Namespace) -> int:
    if arguments.stop:
        api_workers.stop(paths, [arguments.name])
        return 0
    ports = api_workers.start(paths, arguments.name)
    api_workers.prime(paths, arguments.name, *arguments.prime)
    print(ports[arguments.name])
    return 0


def _agent(paths: Paths, arguments: argparse.Namespace) -> int:
    binaries = neutron.BINARIES if arguments.binary == "all" else [arguments.binary]
    neutron.switch_agents(paths, arguments.host, binaries, arguments.state == "up")
    return 0


def _nova_manage(paths: Paths, arguments: argparse.Namespace) -> int:
    return lifecycle.nova_manage(paths, arguments.arguments)


COMMANDS = {
    "install": _install,
    "up": _up,
    "down": _down,
    "status": _status,
    "env": _env,
    "kill": _kill,
    "start": _start,
    "cell": _cell,
    "worker": _worker,
    "agent": _agent,
    "nova-manage": _nova_manage,
    "scenario": _scenario,
    "age": _age,
    "rename": _rename,
}
