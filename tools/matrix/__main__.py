"""`python -m matrix`: tests several releases in parallel, with one controller at a time."""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
from pathlib import Path

from minicloud_ctl import releases
from minicloud_ctl.errors import MinicloudError
from minicloud_ctl.paths import REPOSITORY

from matrix import page
from matrix.clouds import Cloud
from matrix.controllers import PYTHONS, Controller, NotRun, list_controllers, read_oldest_sdk
from matrix.results import Cell, Results, read_junit

if t.TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = REPOSITORY / "docs" / "tested-versions.md"
OLDEST = "oldest"
NEWEST = "newest"
_LOCK = threading.Lock()
_STOP = threading.Event()


def build_parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="make matrix MATRIX_ARGS='...'",
        description=(
            "Run the acceptance tests with many versions, and write docs/tested-versions.md. The "
            "earlier results of other versions stay in the table."
        ),
    )
    top.add_argument(
        "--ansible-core",
        action="append",
        choices=PYTHONS,
        help="only this version; can be repeated",
    )
    top.add_argument(
        "--python", action="append", metavar="X.Y", help="only controllers with this Python"
    )
    top.add_argument("--sdk", choices=[OLDEST, NEWEST], help="only this openstacksdk")
    top.add_argument(
        "--openstack", action="append", choices=releases.RELEASES, help="only this release"
    )
    top.add_argument(
        "--missing",
        action="store_true",
        help="only combinations without a result, such as after an interrupted run",
    )
    top.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="number of releases at a time (default: 2)"
    )
    top.add_argument(
        "--short",
        action="store_true",
        help="only few tests, with the oldest controller and the newest OpenStack; writes no page",
    )
    top.add_argument(
        "--page",
        action="store_true",
        help="run nothing, and write the page from the earlier results",
    )
    top.add_argument(
        "--home",
        type=Path,
        default=REPOSITORY / ".minicloud" / "matrix",
        help="the folder with the state folders of the clouds",
    )
    return top


def main(argv: list[str]) -> int:
    arguments = build_parser().parse_args(argv)
    # Finished results are kept, and the clouds are stopped; `--missing` continues with the rest.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: _STOP.set())
    if arguments.short:
        return _short(arguments.home)
    results = Results.load()
    if not arguments.page:
        chosen = [each for each in list_controllers() if _is_chosen(each, arguments)]
        # The oldest first, then the newest: an interrupted run then has the most useful results.
        chosen = [*chosen[:1], *chosen[:0:-1]]
        names = arguments.openstack or list(releases.RELEASES)

        def run(name: str) -> bool:
            left = [
                each
                for each in chosen
                if not (arguments.missing and name in results.cells.get(str(each), {}))
            ]
            return not left or _run_release(Cloud(name, arguments.home), left, results)

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            good = all(list(pool.map(run, names))) and not _STOP.is_set()
    else:
        good = True
    for controller in list_controllers():
        results.add_row(controller)
    results.keep_only({str(controller) for controller in list_controllers()}, releases.RELEASES)
    results.save()
    PAGE.write_text(page.render(results), encoding="utf-8")
    return 0 if good else 1


def _is_chosen(controller: Controller, arguments: argparse.Namespace) -> bool:
    return (
        controller.ansible_core in (arguments.ansible_core or PYTHONS)
        and controller.python in (arguments.python or [controller.python])
        and arguments.sdk in (None, OLDEST if controller.sdk == read_oldest_sdk() else NEWEST)
    )


def _run_release(cloud: Cloud, chosen: Iterable[Controller], results: Results) -> bool:
    """Test one release with all controllers; a failure does not stop the others."""
    good, ready, why = True, False, ""
    try:
        for controller in chosen:
            if _STOP.is_set():
                break
            try:
                with _LOCK:
                    controller.install()
                if not ready:
                    # A cloud that cannot start is not tried again for each controller.
                    why = why or _prepare(cloud, results)
                    if why:
                        raise NotRun(why)
                    ready = True
                cloud.restore()
                cell = _test(cloud, controller)
                if _STOP.is_set():
                    break
            except NotRun as reason:
                cell = Cell(_today(), not_run=str(reason))
            # After a failure, the cloud can be in any state.
            if not cell.good:
                ready = False
            good = good and cell.good and not cell.not_run
            with _LOCK:
                results.add(controller, cloud.name, cell)
                results.save()
            _print_cell(cloud, controller, cell)
    finally:
        cloud.stop()
    return good


def _prepare(cloud: Cloud, results: Results) -> str:
    """Start a cloud with every situation in it, and return the reason if that is impossible."""
    began = time.monotonic()
    try:
        cloud.start()
        cloud.create_situations()
    except MinicloudError as error:
        return str(error)
    with _LOCK:
        results.add_release(cloud.read_versions())
    print(f"{cloud.name}: ready after {time.monotonic() - began:.0f} s", flush=True)
    return ""


def _short(home: Path) -> int:
    cloud, controller = Cloud(releases.NEWEST.name, home / "short"), list_controllers()[0]
    try:
        controller.install()
        cloud.start()
        cell = _test(cloud, controller, "--deselect=tests/integration/test_scenarios.py")
    except (NotRun, MinicloudError) as reason:
        # If the cloud cannot start, the tests that follow fail for the same reason.
        cell = Cell(_today(), not_run=str(reason))
    finally:
        cloud.stop()
    _print_cell(cloud, controller, cell)
    return 0 if cell.good else 1


def _test(cloud: Cloud, controller: Controller, *more: str) -> Cell:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "junit.xml")
        python = str(controller.venv / "bin" / "python")
        command = [python, "-m", "pytest", "-q", "-m", "acceptance", f"--junitxml={report}", *more]
        done = subprocess.run(
            [*command, *_find_test_files()],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            env={**cloud.environment, "PYTEST_ADDOPTS": "", "TMPDIR": folder},
        )
        if not report.exists():
            return Cell(_today(), failed=[f"pytest itself: {(done.stdout + done.stderr)[-1500:]}"])
        cell = read_junit(report, _today(), round(time.monotonic() - began))
    if not cell.good:
        log = cloud.paths.home.parent / f"{cloud.name}-{controller.venv.name}.log"
        log.write_text(done.stdout, encoding="utf-8")
        print(f"see {log}", flush=True)
    return cell


def _find_test_files() -> list[str]:
    """Return the files with acceptance tests; other files import too many packages."""
    found = (REPOSITORY / "tests" / "integration").glob("test_*.py")
    return [
        str(path)
        for path in sorted(found)
        if "pytest.mark.acceptance" in path.read_text(encoding="utf-8")
    ]


def _print_cell(cloud: Cloud, controller: Controller, cell: Cell) -> None:
    outcome = f"not run: {cell.not_run}" if cell.not_run else f"{cell} in {cell.seconds} s"
    print(
        f"{controller}, OpenStack {cloud.name}: {outcome}",
        *(f"\n    {name}" for name in cell.failed),
        flush=True,
    )


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


if __name__ == "__main__":
    os.chdir(REPOSITORY)
    sys.exit(main(sys.argv[1:]))
