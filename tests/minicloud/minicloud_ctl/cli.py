"""The commands: each calls another module and prints little."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

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

# Returns the exit status; None for 0.
Run = Callable[[Paths, argparse.Namespace], int | None]
Argument = tuple[tuple[str, ...], dict[str, Any]]

COMMANDS: dict[str, tuple[Run, str, tuple[Argument, ...]]] = {}


def argument(*names: str, **options: Any) -> Argument:
    return names, options


def flag(name: str, text: str) -> Argument:
    return argument(name, action="store_true", help=text)


def parts(text: str) -> Argument:
    return argument(
        "--with", dest="parts", action="append", default=[], choices=states.PARTS, help=text
    )


def command(text: str, *arguments: Argument) -> Callable[[Run], Run]:
    """Make the function `_NAME` the command NAME, with this help and these arguments."""

    def register(run: Run) -> Run:
        COMMANDS[run.__name__.strip("_").replace("_", "-")] = (run, text, arguments)
        return run

    return register


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="minicloud", description="A real small OpenStack on 127.0.0.1, without root."
    )
    top.add_argument(
        "--home", help="state folder (default: $MINICLOUD_HOME, else .minicloud in the repository)"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_run, text, arguments) in COMMANDS.items():
        described = commands.add_parser(name, help=text)
        for names, options in arguments:
            described.add_argument(*names, **options)
    return top


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    run, _text, _arguments = COMMANDS[arguments.command]
    try:
        return run(Paths.choose(arguments.home), arguments) or 0
    except MinicloudError as error:
        print(f"minicloud: {error}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("minicloud: interrupted; 'minicloud down' stops what was started.", file=sys.stderr)
        return 130


@command("create the virtual environment; 'up' does so when needed", parts("also this"))
def _install(paths: Paths, arguments: argparse.Namespace) -> None:
    if not install.install(paths):
        print(f"{paths.venv} is up to date")
    for part in arguments.parts:
        if not install.install_part(paths, part):
            print(f"{paths.part(part)} is up to date")


@command(
    "start everything that does not run, and wait until it is ready",
    argument(
        "--computes",
        type=int,
        default=4,
        metavar="N",
        help="create compute-1 to compute-N (default: 4)",
    ),
    parts("add a real service, which stays until 'down --purge'; neutron: instead of the stub"),
    flag("--without-date", "the APIs answer without a Date, as behind uWSGI, until 'down --purge'"),
)
def _up(paths: Paths, arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    lifecycle.up(paths, arguments.computes, arguments.parts, arguments.without_date)
    seconds = time.monotonic() - began
    print(f'minicloud is ready ({seconds:.1f} s): eval "$(tests/minicloud/minicloud env)"')


@command("stop everything", flag("--purge", "also delete all state except the virtual environment"))
def _down(paths: Paths, arguments: argparse.Namespace) -> None:
    lifecycle.down(paths, arguments.purge)


@command("list the services; exit status 0 when all that should run do")
def _status(paths: Paths, _arguments: argparse.Namespace) -> int:
    rows = lifecycle.status(paths)
    table = [("SERVICE", "HOST", "PID", "STATE"), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
    return 1 if any(word == "down" for *_rest, word in rows) else 0


@command("print 'export OS_...' lines for a shell")
def _env(paths: Paths, _arguments: argparse.Namespace) -> None:
    for name, value in configs.cloud_environment(paths, states.load(paths)).items():
        print(f"export {name}={shlex.quote(value)}")


@command("kill the nova-compute of a host with SIGKILL", argument("host"))
def _kill(paths: Paths, arguments: argparse.Namespace) -> None:
    lifecycle.kill_compute(paths, arguments.host)


@command(
    "start the nova-compute of a host, and create an unknown host",
    argument("host"),
    flag("--nested", "a new host gets devices, and so a tree of providers"),
    flag(
        "--without-disk", "such a host has no disk of its own; another provider shares one with it"
    ),
)
def _start(paths: Paths, arguments: argparse.Namespace) -> None:
    driver = ""
    if arguments.nested:
        nested.check(paths.release)
        driver = nested.POOLED_DRIVER if arguments.without_disk else nested.DRIVER
    lifecycle.start_computes(paths, [arguments.host], driver=driver)


@command(
    "add a cell to the running cloud; nova-api and the scheduler are restarted, workers are not",
    argument("name", help="for example cell2"),
    argument("hosts", nargs="*", metavar="HOST", help="hosts to start in it"),
)
def _cell(paths: Paths, arguments: argparse.Namespace) -> None:
    cells.add(paths, arguments.name, arguments.hosts)


@command(
    "start another nova-api beside the first, and print its port",
    argument("name"),
    argument(
        "--prime",
        action="append",
        default=[],
        choices=list(api_workers.CACHES),
        help="fill this list of cells now",
    ),
    flag("--stop", "end the worker"),
)
def _worker(paths: Paths, arguments: argparse.Namespace) -> None:
    if arguments.stop:
        api_workers.stop(paths, [arguments.name])
        return
    ports = api_workers.start(paths, arguments.name)
    api_workers.prime(paths, arguments.name, *arguments.prime)
    print(ports[arguments.name])


@command(
    "let a network agent of the real Neutron die or live again",
    argument("host"),
    argument("binary", choices=[*neutron.BINARIES, "all"], metavar="BINARY"),
    argument("state", choices=["up", "down"]),
)
def _agent(paths: Paths, arguments: argparse.Namespace) -> None:
    binaries = neutron.BINARIES if arguments.binary == "all" else [arguments.binary]
    neutron.switch_agents(paths, arguments.host, binaries, arguments.state == "up")


@command(
    "run nova-manage with this cloud's configuration",
    argument("arguments", nargs=argparse.REMAINDER),
)
def _nova_manage(paths: Paths, arguments: argparse.Namespace) -> int:
    return lifecycle.nova_manage(paths, arguments.arguments)


@command(
    "create situations in the cloud; see --list",
    argument("names", nargs="*", metavar="NAME", help="scenarios, or 'all'"),
    flag("--list", "list all scenarios"),
    flag("--again", "create an existing scenario once more"),
    flag(
        "--renew", "create a scenario once more if its allocations are no longer the recorded ones"
    ),
    flag("--undo", "revert the named scenarios"),
)
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


@command(
    "give a scenario's server another name",
    argument("name", metavar="SCENARIO"),
    argument("server_name", metavar="NAME"),
)
def _rename(paths: Paths, arguments: argparse.Namespace) -> None:
    runner.rename(paths, arguments.name, arguments.server_name)


@command("make all allocations and events older", argument("days", type=int))
def _age(paths: Paths, arguments: argparse.Namespace) -> None:
    databases.set_back(paths, 24 * arguments.days)
