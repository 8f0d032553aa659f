"""`hypervisor_guest` deletes what has been in quarantine long enough, and nothing else."""

import os
import time
import uuid
from pathlib import Path

import pytest

from . import libvirt as real
from .hypervisor import DAY, Host

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(real.lacking()), reason=real.lacking())]


def _now(ahead: int = 0) -> str:
    """Return the time by a clock that goes so many seconds ahead, as another machine gives it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + ahead))


def _quarantined(host: Host, stamp: str, suffix: str = "") -> Path:
    """Create a directory that has been in quarantine since then."""
    name = str(uuid.uuid4()) + suffix
    host.directory(name)
    kind = {"": "instance", "_resize": "resize"}[suffix]
    moved = host.do(name[:36], directory="quarantined", directory_kind=kind)["quarantined"]
    return Path(moved).rename(host.store / f"{name}.{stamp}")


def test_module_deletes_only_what_was_in_quarantine_long_enough(host: Host) -> None:
    def stamp(ago: int) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - ago))

    old, resize = _quarantined(host, stamp(8 * DAY)), _quarantined(host, stamp(30 * DAY), "_resize")
    young, ahead = _quarantined(host, stamp(6 * DAY)), _quarantined(host, stamp(-9 * DAY))
    for path in (young, ahead):
        os.utime(path, (0, 0))
    left = host.directory(str(uuid.uuid4()))
    result = host.twins(directory="purged", older_than="7d", now=_now())
    assert result["actions"] == ["purge"]
    assert result["purged"] == sorted([str(old), str(resize)])
    assert set(result["diff"]["before"]["quarantined"]) - set(
        result["diff"]["after"]["quarantined"]
    ) == set(result["purged"])
    assert [path.exists() for path in (old, resize, young, ahead, left)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_module_deletes_only_the_named_instance_from_quarantine(host: Host) -> None:
    one, other = _quarantined(host, "20200101T000000Z"), _quarantined(host, "20200101T000000Z")
    assert host.twins(one.name[:36], directory="purged", older_than="7d", now=_now())["purged"] == [
        str(one)
    ]
    assert other.exists()


def test_module_keeps_foreign_files_in_quarantine(host: Host) -> None:
    entry = _quarantined(host, "20200101T000000Z")
    name = entry.name[:36]
    target = host.folder / "volume"
    target.mkdir()
    (target / "precious").write_text("precious")
    (entry / "link").symlink_to(target)
    (entry / "precious").symlink_to(target / "precious")
    stays = [host.store / f"{uuid.uuid4()}.20200101T000000Z" for _each in range(2)]
    stays[0].symlink_to(target)
    stays[1].write_text("a file")
    others = (
        "notes",
        name,
        f"{name}.20201399T000000Z",
        f"{name}.20200101T000000",
        f"{name.upper()}.20200101T000000Z",
    )
    for other in others:
        (host.store / other).mkdir()
        stays.append(host.store / other)
    assert host.twins(directory="purged", older_than="0s", now=_now())["purged"] == [str(entry)]
    assert (target / "precious").read_text() == "precious"
    assert all(os.path.lexists(path) for path in stays)
    assert host.info()["quarantined"] == []


def test_module_keeps_open_files_in_quarantine(host: Host) -> None:
    paths = [_quarantined(host, "20200101T000000Z") for _each in range(2)]
    with host.ansible.opening(paths[1] / "disk"):
        assert "is in use" in host.refused(directory="purged", older_than="1d", now=_now())
    assert len(host.twins(directory="purged", older_than="1d", now=_now())["purged"]) == 2


def test_deletion_from_quarantine_requires_a_minimum_age(host: Host) -> None:
    entry = _quarantined(host, "20200101T000000Z")
    assert "older_than" in host.refused(directory="purged")
    assert "now" in host.refused(directory="purged", older_than="7d")
    assert "noon" in host.refused(directory="purged", older_than="7d", now="noon")
    assert "soon" in host.refused(directory="purged", older_than="soon", now=_now())
    assert entry.exists()


@pytest.mark.parametrize("behind", [True, False])
def test_one_clock_that_goes_wrong_deletes_nothing(host: Host, behind: bool) -> None:
    """That of the host is a year ahead of the other, which is the same as the reverse."""
    year = 366 * DAY
    moved = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - (year if behind else 0)))
    entry = _quarantined(host, moved)

    wrong = _now(-year if behind else year)
    result = host.do(directory="purged", older_than="30d", now=wrong)

    assert (result["failed"], result["purged"], entry.exists()) == (False, [], True)


def test_directory_gets_the_later_of_two_times(host: Host) -> None:
    """The clock of the host may be a year behind, until somebody corrects it."""
    names = [host.directory(str(uuid.uuid4())).name for _each in range(2)]
    ahead = 366 * DAY
    for name, seconds in zip(names, (ahead, -ahead), strict=True):
        host.do(name, directory="quarantined", now=_now(seconds))
    moved = {entry["uuid"]: entry["moved_at"] for entry in host.info()["quarantined"]}

    assert moved[names[0]][:10] == _now(ahead)[:10]
    assert moved[names[1]][:10] == _now()[:10]
