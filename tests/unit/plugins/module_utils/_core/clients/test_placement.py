"""Trees as evidence: all of their providers, or the first answer that is not one."""

import typing as t

import pytest

from .......plugins.module_utils._common.errors import MalformedResponse
from .......plugins.module_utils._core.clients.placement import PlacementReader
from .......plugins.module_utils._core.models.snapshot import Answer
from ...service import Service

ROOT, CHILD = "aaaaaaa0-0000-4000-8000-000000000000", "aaaaaaa1-0000-4000-8000-000000000000"
OTHER_ROOT = "aaaaaaa3-0000-4000-8000-000000000000"
CPU, VF = {"resources": {"VCPU": 1}}, {"resources": {"CUSTOM_VF": 1}}


ONE, TWO = (f"bbbbbbb{number}-0000-4000-8000-000000000000" for number in (1, 2))


def _query(root: t.Any, child: t.Any) -> Answer[t.Any]:
    """Ask for the allocations of a tree; a number stands for the status of an error."""
    answers = {
        f"/resource_providers/{uuid}/allocations": (
            found if isinstance(found, int) else {"allocations": found}
        )
        for uuid, found in ((ROOT, root), (CHILD, child))
    }
    reader = PlacementReader(Service(answers).open("Placement", (1, 20)))
    return reader.query_tree_allocations(ROOT, [ROOT, CHILD])


def test_consumers_have_what_they_have_on_each_provider() -> None:
    answer = _query(root={ONE: CPU, TWO: CPU}, child={TWO: VF})

    assert answer.status == 200
    assert answer.value == {
        ONE: {ROOT: {"VCPU": 1}},
        TWO: {ROOT: {"VCPU": 1}, CHILD: {"CUSTOM_VF": 1}},
    }


def test_one_provider_that_cannot_be_read_leaves_the_tree_unread() -> None:
    assert _query(root=503, child={}).value is None
    assert _query(root={ONE: CPU}, child=404).value is None


@pytest.mark.parametrize("entry", [{}, None, []])
def test_consumer_without_its_amounts_is_one_sentence(entry: t.Any) -> None:
    with pytest.raises(MalformedResponse, match="something unexpected"):
        _query(root={ONE: entry}, child={})


SHARING = "aaaaaaa2-0000-4000-8000-000000000000"
INVENTORY = {
    "total": 8,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 8,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


def _entry(uuid: str, parent: str | None = None) -> dict[str, t.Any]:
    root = ROOT if parent else uuid
    names = {"uuid": uuid, "name": uuid[:8], "generation": 1}
    return {**names, "root_provider_uuid": root, "parent_provider_uuid": parent}


def _tree() -> dict[str, t.Any]:
    """A host with a child; the aggregate of the child has a sharing provider."""
    answers: dict[str, t.Any] = {
        f"/resource_providers?in_tree={ROOT}": {
            "resource_providers": [_entry(ROOT), _entry(CHILD, ROOT)]
        },
        "/resource_providers?required=MISC_SHARES_VIA_AGGREGATE&member_of=in:agg": {
            "resource_providers": [_entry(SHARING)]
        },
    }
    parts = {ROOT: ("VCPU", [], []), CHILD: ("VGPU", ["T"], ["agg"])}
    parts[SHARING] = ("DISK_GB", ["MISC_SHARES_VIA_AGGREGATE"], ["agg"])
    for uuid, (cls, traits, aggregates) in parts.items():
        path = f"/resource_providers/{uuid}"
        answers[f"{path}/inventories"] = {"inventories": {cls: INVENTORY}}
        answers[f"{path}/traits"] = {"traits": traits}
        answers[f"{path}/aggregates"] = {"aggregates": aggregates}
    return answers


def _query_host_tree(**answers: t.Any) -> tuple[Answer[t.Any], list[str]]:
    """Return the answer about the tree, and what was asked; `answers` replace some of its own."""
    service = Service({**_tree(), **answers})
    answer = PlacementReader(service.open("Placement", (1, 20))).query_host_tree(ROOT)
    return answer, service.asked


def test_tree_of_a_host_has_what_shares_with_any_provider_of_it() -> None:
    answer, _asked = _query_host_tree()

    assert answer.value is not None and answer.request == f"GET /resource_providers?in_tree={ROOT}"
    tree = answer.value.providers
    assert {uuid: sorted(row.inventories) for uuid, row in tree.items()} == {
        ROOT: ["VCPU"],
        CHILD: ["VGPU"],
        SHARING: ["DISK_GB"],
    }
    assert [row.sharing for row in tree.values()] == [False, False, True]
    assert (tree[CHILD].parent, tree[CHILD].traits) == (ROOT, frozenset({"T"}))


@pytest.mark.parametrize("part", ["inventories", "traits", "aggregates"])
@pytest.mark.parametrize("uuid", [ROOT, CHILD, SHARING])
@pytest.mark.parametrize("status", [403, 404])
def test_tree_with_a_provider_that_cannot_be_read_is_unread(
    uuid: str, part: str, status: int
) -> None:
    path = f"/resource_providers/{uuid}/{part}"
    answer, _asked = _query_host_tree(**{path: status})

    assert (answer.request, answer.status, answer.value) == (f"GET {path}", status, None)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([], id="gone"),
        pytest.param(
            [(ROOT, None), *((f"{n:08}{ROOT[8:]}", ROOT) for n in range(200))], id="large"
        ),
        # A cache has answered with what it keeps of another request.
        pytest.param([(OTHER_ROOT, None)], id="of-another-host"),
    ],
)
def test_tree_that_is_not_all_of_a_host_is_unread(entries: list[tuple[str, str | None]]) -> None:
    path = f"/resource_providers?in_tree={ROOT}"
    listed = {"resource_providers": [_entry(*entry) for entry in entries]}
    answer, asked = _query_host_tree(**{path: listed})

    assert (answer.status, answer.value, asked) == (200, None, [path])


@pytest.mark.parametrize("wanted", [ROOT, ROOT[:8]])
@pytest.mark.parametrize("mixed_up", ["match", "tree"])
def test_answer_about_another_provider_than_the_wanted_one_is_refused(
    wanted: str, mixed_up: str
) -> None:
    match, tree = [_entry(ROOT)], [_entry(ROOT), _entry(CHILD, ROOT)]
    if mixed_up == "match":
        match = tree = [_entry(OTHER_ROOT)]
    else:
        tree = [_entry(OTHER_ROOT)]
    name = "uuid" if wanted == ROOT else "name"
    service = Service(
        {
            "/resource_providers?required=MISC_SHARES_VIA_AGGREGATE": {"resource_providers": []},
            f"/resource_providers?{name}={wanted}": {"resource_providers": match},
            f"/resource_providers?in_tree={ROOT}": {"resource_providers": tree},
            f"/resource_providers?in_tree={OTHER_ROOT}": {"resource_providers": tree},
        }
    )
    reader = PlacementReader(service.open("Placement", (1, 20)))

    with pytest.raises(MalformedResponse, match="proxy"):
        reader.list_providers_in_trees([wanted])


CALM = (7, 3, 1)
WRITTEN = [(7, 1, 1), (8, 3, 3), (8, 3, 3)]
# A deletion gives the provider no new generation.
DELETED = [(7, 3, 1), (7, 1, 1), (7, 1, 1)]
QUIET = [(8, 3, 3)] * 3


@pytest.mark.parametrize(
    ("states", "hidden"),
    [
        ([CALM] * 3, {"VCPU": 2}),
        ([*WRITTEN, *QUIET], {}),
        ([*DELETED, *QUIET], {}),
        ([*WRITTEN, *DELETED, *WRITTEN], None),
    ],
)
def test_totals_are_of_one_moment(
    states: list[tuple[int, int, int]], hidden: dict[str, int] | None
) -> None:
    """Each answer has its generation, and how many VCPUs are in use and listed."""
    service, rest = Service({}), iter(states)

    def request(url: str, *given: t.Any, **options: t.Any) -> t.Any:
        path = url.removeprefix("http://service")
        generation, used, listed = next(rest)
        parts = {"usages": {"VCPU": used}, "allocations": {ONE: {"resources": {"VCPU": listed}}}}
        part = path.rpartition("/")[2]
        service.answers[path] = {"resource_provider_generation": generation, part: parts[part]}
        return Service.request(service, url, *given, **options)

    service.request = request  # type: ignore[method-assign]
    value = PlacementReader(service.open("Placement", (1, 20))).query_totals(ROOT).value

    assert (value and value.hidden) == hidden


@pytest.mark.parametrize("status", [403, 404, 503])
def test_totals_need_each_answer(status: int) -> None:
    path = f"/resource_providers/{ROOT}"
    usages = {"resource_provider_generation": 1, "usages": {}}
    service = Service({f"{path}/usages": usages, f"{path}/allocations": status})

    assert PlacementReader(service.open("Placement", (1, 20))).query_totals(ROOT).value is None
