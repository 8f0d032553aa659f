"""What values stand for: what is certain is read, and no path leads out of the folder for all."""

import datetime
import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from ......plugins.filter.roles import host_names
from ......plugins.plugin_utils._variables.values import (
    NAME,
    PARENT,
    PLACES,
    build_host_path,
    choose_document,
    make_folder_name,
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder, with a home beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/operator")


@pytest.mark.parametrize("host", ["compute-1", "a.b_c-D9", "x" * 80])
def test_a_plain_name_is_the_name_of_the_folder(host: str) -> None:
    assert make_folder_name(host) == host


@pytest.mark.parametrize(
    ("host", "begin"),
    [
        ("..", "_.-"),
        (".hidden", "_hidden-"),
        ("../west", "_._west-"),
        ("a/b", "a_b-"),
        ("a b", "a_b-"),
        ("ä", "_-"),
        ("x" * 81, "x" * 80 + "-"),
    ],
)
def test_any_other_name_gets_a_digest(host: str, begin: str) -> None:
    name = make_folder_name(host)

    assert name.startswith(begin) and len(name) == len(begin) + 8
    assert "/" not in name and not name.startswith(".")


def test_two_hosts_never_share_a_folder() -> None:
    hosts = ["a/b", "a_b", "a b", "x" * 81, "x" * 82]

    assert len({make_folder_name(host) for host in hosts}) == len(hosts)


@pytest.mark.parametrize(
    ("path", "host", "place", "expected"),
    [
        ("out", "", "folder", "HERE/out"),
        ("out", "north", "folder", "HERE/out/north"),
        ("out/", "north", "folder", "HERE/out/north"),
        ("../out", "north", "folder", "PARENT/out/north"),
        ("/out", "../west", "folder", f"/out/{make_folder_name('../west')}"),
        ("~/out", "", "folder", "/home/operator/out"),
        ("~/out", "north", "folder", "/home/operator/out/north"),
        ("kept/state.json", "", "parent", "HERE/kept/state.json"),
        ("kept/state.json", "north", "parent", "HERE/kept/north/state.json"),
        ("state.json", "north", "parent", "HERE/north/state.json"),
        ("/kept/state.json", "north", "parent", "/kept/north/state.json"),
        ("~/state.json", "north", "parent", "/home/operator/north/state.json"),
        ("text/placement.prom", "", "name", "HERE/text/placement.prom"),
        ("text/placement.prom", "north", "name", "HERE/text/placement-north.prom"),
        ("/text/placement", "north", "name", "/text/placement-north"),
        ("~/a.b/c.prom", "north", "name", "/home/operator/a.b/c-north.prom"),
    ],
)
def test_each_host_has_its_part_of_a_path(path: str, host: str, place: str, expected: str) -> None:
    here = Path.cwd().resolve()
    expected = expected.replace("HERE", str(here)).replace("PARENT", str(here.parent))

    assert build_host_path(path, host, place) == expected


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("host", ["", "north"])
def test_no_path_stays_no_path(host: str, place: str) -> None:
    assert build_host_path("", host, place) == ""


def test_a_link_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")

    assert build_host_path("link/x") == str(tmp_path.resolve() / "there" / "x")


@pytest.mark.parametrize("host", ["", "north"])
@pytest.mark.parametrize("place", [PARENT, NAME])
def test_link_in_place_of_a_file_to_write_is_not_resolved(
    tmp_path: Path, place: str, host: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    path = Path(build_host_path("link/file.prom", host, place))
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "theirs")

    assert build_host_path("link/file.prom", host, place) == str(path)
    assert path.is_relative_to(tmp_path.resolve() / "folder")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("plan.json", "HERE/plan.json"),
        ("~/plan.json", "/home/operator/plan.json"),
        ("/plan.json", "/plan.json"),
        (" /plan.json\n", "/plan.json"),
        ("\n", ""),
        ("", ""),
        (None, ""),
        (0, 0),
        ([], []),
        ([{"event": "planned"}], [{"event": "planned"}]),
        ("osops.placement.run:1:00:ab", "osops.placement.run:1:00:ab"),
        ('["osops.placement.run:1:00:ab"]', '["osops.placement.run:1:00:ab"]'),
        (["osops.placement.run:1:00:ab"], ["osops.placement.run:1:00:ab"]),
        ({"by_host": {"north": ["osops.placement.run:1"]}}, ["osops.placement.run:1"]),
        ({}, {}),
        ({"changes": []}, {"changes": []}),
        ({"by_host": {"north": {"changes": []}}}, {"changes": []}),
        ({"by_host": {"north": ""}}, ""),
        ({"by_host": {"south": {"changes": []}}}, ""),
        ({"by_host": {}}, ""),
        ({"by_host": None}, ""),
        ({"by_host": "osops.placement.run:1:x"}, ""),
        ({"by_host": {"north": None}}, ""),
        ({"by_host": {False: {"changes": []}}}, ""),
        ({"by_host": {"host north": {"changes": []}, "host south": ""}}, {"changes": []}),
        ({"by_host": {"host south": {"changes": []}}}, ""),
        # A name never takes the plan of a host whose name has the same words.
        ({"by_host": {"host south": {"changes": []}, "north": {"changes": []}}}, ""),
        ("osops.placement.run:1:abc", "osops.placement.run:1:abc"),
        ({"by_host": {"host north": "osops.placement.run:1:abc"}}, "osops.placement.run:1:abc"),
    ],
)
def test_a_document_is_a_path_or_its_contents(document: t.Any, expected: t.Any) -> None:
    """What is empty stays empty, and is refused where it is used."""
    if isinstance(expected, str):
        expected = expected.replace("HERE", str(Path.cwd().resolve()))

    assert choose_document(document, "north") == expected


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (None, []),
        ("", []),
        (" \n", []),
        ([], []),
        ([""], []),
        ("compute-1", ["compute-1"]),
        (" compute-1 , compute-2,", ["compute-1", "compute-2"]),
        (["compute-1", "compute-2"], ["compute-1", "compute-2"]),
        (["compute-1, compute-2"], ["compute-1", "compute-2"]),
        # A reader that leaves texts as they are.
        ("12345", ["12345"]),
        ("no, on", ["no", "on"]),
        ("'12345'", ["12345"]),
        ("'no', \"on\" ,compute-1", ["no", "on", "compute-1"]),
        ("'it", ["'it"]),
        ("'", ["'"]),
    ],
)
def test_names_are_read(answer: t.Any, names: list[str]) -> None:
    assert host_names(answer, "placement_hosts") == names


@pytest.mark.parametrize(
    "answer",
    [
        *(12345, 0, 1.5, True, False, datetime.date(2026, 11, 20)),
        datetime.datetime(2026, 11, 20, 3, 4, 5, tzinfo=datetime.UTC),
        *({"compute-1": None}, ["compute-1", 12345], ["compute-1", None], [["compute-1"]]),
    ],
    ids=str,
)
def test_names_that_became_something_else_are_not_guessed(answer: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"placement_hosts .* in quotes"):
        host_names(answer, "placement_hosts")


@pytest.mark.parametrize("answer", [",", "''", ' "" ,', ["compute-1", "''"]])
def test_an_answer_without_a_name_does_not_mean_all_hosts(answer: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"placement_hosts .* does not"):
        host_names(answer, "placement_hosts")


@pytest.mark.parametrize(
    ("answer", "names"),
    [("a,b", ["a,b"]), ("'12345'", ["12345"]), (["a", " 'b' "], ["a", "b"]), ("", [])],
)
def test_a_text_can_be_one_name(answer: t.Any, names: list[str]) -> None:
    assert host_names(answer, "host_decommission_target", split=False) == names
