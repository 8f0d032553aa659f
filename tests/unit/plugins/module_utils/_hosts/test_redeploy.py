"""The checks of a host that was deployed again: one lacking part, one sentence about it."""

import dataclasses as d
import types
import typing as t

import pytest

from ......plugins.module_utils._common.errors import CloudError, InvalidInput
from ......plugins.module_utils._core.models.nova import Aggregate, Hypervisor, Service
from ......plugins.module_utils._core.models.placement import Provider, ProviderState
from ......plugins.module_utils._hosts import redeploy
from ......plugins.module_utils._hosts.host_record import FormerHost
from ......plugins.module_utils._hosts.migrations import UnfinishedEvacuations
from ......plugins.module_utils._hosts.redeploy import (
    MISSING,
    OK,
    RESTORABLE,
    Check,
    HostRestoration,
    Losses,
    RedeployedHost,
    find_losses,
    list_checks,
)
from ..drain_world import build_migration
from ..world import PLENTY, answer

HOST = "compute-1"
NODE = Hypervisor("11111111-1111-4111-8111-111111111111", HOST, HOST, "up", "enabled", ())
SERVICE = Service("nova-compute", HOST, "enabled", "up", id="s1", zone="nova")
ROOT = Provider(NODE.uuid, HOST, 1, NODE.uuid, None)
OTHER = Provider(
    "22222222-2222-4222-8222-222222222222", HOST, 1, "22222222-2222-4222-8222-222222222222", None
)
SSD = Aggregate("33333333-3333-4333-8333-333333333333", "ssd", "az1", (HOST,), id=1)
STATE = ProviderState(
    {"VCPU": PLENTY, "MEMORY_MB": PLENTY}, frozenset({"COMPUTE_NODE"}), frozenset({SSD.uuid}), 1
)
WHOLE = RedeployedHost(
    HOST, (SERVICE,), (NODE,), True, ROOT, STATE, None, (SSD,), UnfinishedEvacuations(HOST)
)
EVACUATION = build_migration(1, "done", type="evacuation")
# In the order in which they come back.
NAMES = "service, host mapping, compute node, provider, inventory, traits, aggregates, evacuations"


def test_whole_host_has_one_line_for_each_part() -> None:
    checks = list_checks(WHOLE)

    assert ", ".join(check.name for check in checks) == NAMES
    assert {check.outcome for check in checks} == {OK}
    assert all(check.detail for check in checks)


def test_host_may_be_in_no_aggregate() -> None:
    (check,) = [
        check
        for check in list_checks(d.replace(WHOLE, aggregates=()))
        if check.name == "aggregates"
    ]

    assert (check.outcome, check.detail) == (OK, "in none")


def test_disabled_service_is_up_and_says_why() -> None:
    disabled = d.replace(SERVICE, status="disabled", disabled_reason="new disks")
    check = list_checks(d.replace(WHOLE, services=(disabled,)))[0]

    assert check.outcome == OK and "(new disks)" in check.detail


def _services(**changes: t.Any) -> dict[str, t.Any]:
    return {"services": (d.replace(SERVICE, **changes),)}


def _state(**changes: t.Any) -> dict[str, t.Any]:
    return {"state": d.replace(STATE, **changes)}


BARE_NODE = {"provider": None, "state": None}
RESERVED = {"VCPU": d.replace(PLENTY, reserved=1000)}
UNFINISHED = UnfinishedEvacuations(HOST, (EVACUATION,))

# What a host lacks, the check that is missing then, and what its detail has.
LACKING: dict[str, tuple[dict[str, t.Any], str, str]] = {
    "no service": ({"services": ()}, "service", "start it"),
    "two services": ({"services": (SERVICE, SERVICE)}, "service", "in different cells"),
    "down": (_services(state="down", updated_at="12:00"), "service", "last reported at 12:00"),
    "forced down": (_services(state="down", forced_down=True), "service", "forced down"),
    "its cell is silent": (_services(status="UNKNOWN", state=None), "service", "does not answer"),
    "no mapping": ({"mapped": False, "nodes": ()}, "host mapping", "discover_hosts"),
    "mapping unknown": ({"mapped": None}, "host mapping", "did not say"),
    "no node": ({**BARE_NODE, "nodes": ()}, "compute node", "its log"),
    "no provider": (BARE_NODE, "provider", "no provider 11111111"),
    "namesake": ({**BARE_NODE, "namesake": OTHER}, "provider", "because provider 22222222"),
    "another name": ({"provider": d.replace(ROOT, name="x")}, "provider", "has the name x"),
    "no inventory": (_state(inventories={}), "inventory", "no VCPU and no MEMORY_MB"),
    "all reserved": (_state(inventories=RESERVED), "inventory", "no VCPU and no MEMORY_MB"),
    "no traits": (_state(traits=frozenset()), "traits", "COMPUTE_NODE"),
    "not mirrored": (_state(aggregates=frozenset()), "aggregates", "sync_aggregates"),
    "an evacuation": ({"evacuations": UNFINISHED}, "evacuations", "Restart nova-compute on"),
}


@pytest.mark.parametrize(("changes", "name", "sentence"), LACKING.values(), ids=LACKING)
def test_lacking_part_is_named(changes: dict[str, t.Any], name: str, sentence: str) -> None:
    checks = {check.name: check for check in list_checks(d.replace(WHOLE, **changes))}

    assert checks[name].outcome == MISSING
    assert sentence in checks[name].detail


def test_host_of_ironic_is_not_compared_with_one_provider() -> None:
    second = d.replace(NODE, uuid=OTHER.uuid, name="node-2")
    host = d.replace(WHOLE, nodes=(NODE, second), provider=None, state=None)

    assert {check.outcome for check in list_checks(host)} == {OK}


SHARED, GONE = "44444444-4444-4444-8444-444444444444", "55555555-5555-4555-8555-555555555555"
LOST = d.replace(SSD, hosts=())
BARE = d.replace(WHOLE, aggregates=(LOST,), state=d.replace(STATE, aggregates=frozenset()))
THEN = ProviderState(
    {"VCPU": d.replace(PLENTY, allocation_ratio=4.0), "MEMORY_MB": PLENTY},
    frozenset({"COMPUTE_NODE", "HW_CPU_X86_AVX", "COMPUTE_STATUS_DISABLED", "CUSTOM_SSD"}),
    frozenset({SSD.uuid, SHARED, GONE}),
)
RECORD = FormerHost(
    node=NODE.uuid,
    zone="az1",
    disabled_reason=None,
    aggregates=(Aggregate(SSD.uuid, "ssd", "az1", ()), Aggregate(GONE, "gone", None, ())),
    provider=THEN,
)


class Clients:
    """Both writers, which remember what they were asked for."""

    def __init__(self, refusal: str = "") -> None:
        self.calls: list[tuple[t.Any, ...]] = []
        self._refusal = refusal

    def add_host(self, aggregate: Aggregate, host: str) -> None:
        self._record("aggregate", aggregate.name, host)

    def add_traits_and_aggregates(
        self, provider: Provider, traits: t.Any, aggregates: t.Any
    ) -> tuple[set[str], None]:
        self._record("provider", provider.uuid, *traits, *aggregates)
        return set(), None

    def set_allocation_ratio(self, provider: Provider, cls: str, ratio: float) -> None:
        self._record("ratio", provider.uuid, cls, ratio)

    def _record(self, *call: t.Any) -> None:
        self.calls.append(call)
        if self._refusal:
            raise CloudError(self._refusal)


def _restore(
    host: t.Any, *parts: str, record: FormerHost = RECORD, check: bool = False, refusal: str = ""
) -> tuple[dict[str, Check], list[tuple[t.Any, ...]]]:
    clients: t.Any = Clients(refusal)
    checks = HostRestoration(clients, clients, parts, check).restore(host, record)
    return {check.name: check for check in checks}, clients.calls


def test_only_what_the_api_owns_is_lost() -> None:
    """Traits of the driver and of the scheduler are Nova's; a deleted aggregate stays deleted."""
    assert find_losses(BARE, RECORD) == Losses(
        host_aggregates=(LOST,),
        traits=("CUSTOM_SSD",),
        aggregates=(SHARED,),
        ratios=(("VCPU", 4.0),),
    )


KEPT = d.replace(RECORD, aggregates=RECORD.aggregates[:1])
KEEPING = d.replace(WHOLE, state=d.replace(THEN, generation=9))
GOLD = d.replace(THEN, inventories={**THEN.inventories, "CUSTOM_GOLD": PLENTY})


@pytest.mark.parametrize(
    ("host", "record", "losses"),
    [
        (KEEPING, KEPT, Losses()),
        # A class that is gone is left to nova-compute.
        (BARE, d.replace(RECORD, provider=GOLD), find_losses(BARE, RECORD)),
        # Without a provider, then or now, only host aggregates are known.
        (BARE, d.replace(RECORD, provider=None), Losses((LOST,))),
        (d.replace(BARE, state=None), RECORD, Losses((LOST,))),
    ],
)
def test_losses_are_what_the_host_had_and_lacks(
    host: RedeployedHost, record: FormerHost, losses: Losses
) -> None:
    assert find_losses(host, record) == losses


def _predict(host: t.Any, *parts: str) -> dict[str, str]:
    checks, calls = _restore(host, *parts, check=True)
    assert calls == []
    return {name: check.outcome for name, check in checks.items()}


RESTORED = {
    "host aggregate ssd",
    "operator's traits",
    "Placement aggregates",
    "allocation ratio of VCPU",
}


def test_check_mode_predicts_what_is_restored() -> None:
    assert _predict(BARE, *RESTORABLE) == {
        "host aggregate gone": "differs",
        **dict.fromkeys(RESTORED, "restored"),
    }


@pytest.mark.parametrize(
    ("left_out", "names"),
    [
        ("aggregates", {"host aggregate ssd", "Placement aggregates"}),
        ("traits", {"operator's traits"}),
        ("ratios", {"allocation ratio of VCPU"}),
    ],
)
def test_what_is_not_wanted_is_only_named(left_out: str, names: set[str]) -> None:
    wanted = [part for part in RESTORABLE if part != left_out]
    predicted = _predict(BARE, *wanted)

    assert {predicted[name] for name in names} == {"differs"}


def test_aggregates_that_the_host_is_still_in_are_one_check() -> None:
    checks, calls = _restore(WHOLE, *RESTORABLE, record=KEPT)

    check = checks["host aggregates"]
    assert (check.outcome, check.detail) == ("ok", "still in ssd")
    assert "host aggregates" not in _restore(BARE, *RESTORABLE)[0]
    assert "host aggregates" not in _restore(WHOLE, record=d.replace(RECORD, aggregates=()))[0]
    assert ("aggregate", "ssd", HOST) not in calls


def test_zone_is_named_unless_its_aggregate_comes_back() -> None:
    assert "availability zone" not in _predict(BARE, "aggregates")
    assert _predict(BARE, "traits")["availability zone"] == "differs"


def test_nothing_is_said_of_a_whole_host_whose_zone_was_not_recorded() -> None:
    checks, calls = _restore(KEEPING, *RESTORABLE, record=d.replace(KEPT, zone=None))

    assert (list(checks), calls) == (["host aggregates"], [])


@pytest.mark.parametrize("gone", ["provider", "state"])
def test_nothing_is_added_to_a_provider_that_is_gone(gone: str) -> None:
    clients: t.Any = Clients()
    restoration = HostRestoration(clients, clients, RESTORABLE, False)
    checks = restoration._restore_provider(
        d.replace(BARE, **{gone: None}), find_losses(BARE, RECORD)
    )

    assert (list(checks), clients.calls) == ([], [])


def test_host_without_a_node_cannot_be_added_yet() -> None:
    """Nova answers such a request with an error."""
    host = d.replace(BARE, nodes=(), provider=None, state=None)

    assert _predict(host, *RESTORABLE)["host aggregate ssd"] == "missing"


def test_service_that_was_disabled_before_is_named() -> None:
    record = d.replace(RECORD, disabled_reason="memory errors")
    checks, calls = _restore(BARE, record=record)

    # Nothing that is wanted sends nothing.
    assert calls == []
    assert checks["disabled reason"].outcome == "differs"
    assert "memory errors" in checks["disabled reason"].detail


@pytest.mark.parametrize("disabled_reason", [None, "memory errors"])
@pytest.mark.parametrize("status", ["enabled", "disabled", None])
def test_service_is_compared_if_there_is_one(
    disabled_reason: str | None, status: str | None
) -> None:
    services = [d.replace(WHOLE.services[0], status=status, zone="az1")] if status else []
    host = d.replace(WHOLE, services=tuple(services))
    checks, _calls = _restore(host, record=d.replace(RECORD, disabled_reason=disabled_reason))

    assert "availability zone" not in checks
    assert ("disabled reason" in checks) is (disabled_reason is not None and status == "enabled")


def test_everything_wanted_is_restored_once() -> None:
    checks, calls = _restore(BARE, *RESTORABLE)

    assert {name for name, check in checks.items() if check.outcome == "restored"} == RESTORED
    assert calls == [
        ("aggregate", "ssd", HOST),
        ("provider", NODE.uuid, "CUSTOM_SSD"),
        ("provider", NODE.uuid, SHARED),
        ("ratio", NODE.uuid, "VCPU", 4.0),
    ]


def test_refusal_is_a_failed_check_and_the_others_go_on() -> None:
    checks, calls = _restore(BARE, *RESTORABLE, refusal="Another zone.")

    assert len(calls) == 4
    assert checks["host aggregate ssd"].outcome == "failed"
    assert checks["host aggregate ssd"].detail.endswith(" Another zone.")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(None, "still lacks CUSTOM_SSD"), (CloudError("Placement answered 409."), "answered 409")],
)
def test_what_the_provider_still_lacks_is_a_failed_check(
    error: CloudError | None, reason: str
) -> None:
    clients: t.Any = Clients()
    clients.add_traits_and_aggregates = lambda *_call: ({"CUSTOM_SSD"}, error)

    (check,) = [
        check
        for check in HostRestoration(clients, clients, ["traits"], False).restore(BARE, RECORD)
        if check.name == "operator's traits"
    ]

    assert check.outcome == "failed" and reason in check.detail


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("also", [SERVICE, d.replace(SERVICE, binary="nova-conductor")])
def test_host_is_read_with_the_provider_of_its_compute_node(
    monkeypatch: pytest.MonkeyPatch, is_there: bool, also: Service
) -> None:
    services = (SERVICE, d.replace(also, host="compute-2"), d.replace(SERVICE, binary="nova-api"))
    elsewhere = d.replace(NODE, uuid=OTHER.uuid, host="compute-2")
    readers: t.Any = types.SimpleNamespace(
        list_services=lambda: answer("GET /os-services", 200, services),
        list_hypervisors=lambda with_servers: answer("GET nodes", 200, (NODE, elsewhere)),
        list_aggregates=lambda: (SSD,),
        list_providers=lambda: {one.uuid: one for one in (ROOT, OTHER)[not is_there :]},
        read=lambda uuid: d.replace(STATE, generation=len(uuid)),
    )
    for name in ("NovaReader", "PlacementReader", "ProviderStateReader"):
        monkeypatch.setattr(redeploy, name, lambda _api: readers)
    monkeypatch.setattr(redeploy, "_read_mapping", lambda *_host: True)
    session: t.Any = types.SimpleNamespace(compute=None, placement=None)

    host = redeploy.RedeployedHostReader(session).read(HOST)

    state = d.replace(STATE, generation=36)
    found = {"provider": ROOT, "state": state} if is_there else {"provider": None, "state": None}
    assert host == d.replace(WHOLE, **found, namesake=OTHER)


class Cloud:
    """A host that is read and given back what it lacks; each reading is counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, host: RedeployedHost) -> None:
        self.readings = 0
        self.record: FormerHost | None = RECORD
        self._host = host
        clients = Clients()
        for name, fake in {
            "RedeployedHostReader": lambda _session: self,
            "AggregateClient": lambda _compute: clients,
            "ProviderWriter": lambda _placement: clients,
            "read_host_file": lambda document: document,
            "parse_former_host": lambda *_facts: self.record,
            "name_cloud": lambda _cloud: {},
        }.items():
            monkeypatch.setattr(redeploy, name, fake)

    def read(self, _name: str) -> RedeployedHost:
        self.readings += 1
        return self._host

    def add_evacuations(self, host: RedeployedHost, _names: t.Any) -> RedeployedHost:
        return host

    def restore(
        self, *parts: str, check: bool = False, assume_restarted: bool = False
    ) -> dict[str, t.Any]:
        options = {
            "host": HOST,
            "record": {},
            "restore": parts,
            "assume_restarted": assume_restarted,
        }
        session = types.SimpleNamespace(compute=None, placement=None, cloud=None)
        context: t.Any = types.SimpleNamespace(
            options=options, check_mode=check, connect=lambda: session
        )
        return redeploy.restore_host(context)


@pytest.mark.parametrize(
    ("parts", "check", "changed", "readings"),
    [(RESTORABLE, False, True, 2), (RESTORABLE, True, True, 1), ((), False, False, 1)],
)
def test_host_is_read_again_after_a_write(
    monkeypatch: pytest.MonkeyPatch,
    parts: tuple[str, ...],
    check: bool,
    changed: bool,
    readings: int,
) -> None:
    cloud = Cloud(monkeypatch, BARE)

    assert cloud.restore(*parts, check=check)["changed"] is changed
    assert cloud.readings == readings


EVACUATED = d.replace(WHOLE, evacuations=UnfinishedEvacuations(HOST, (EVACUATION,)))


@pytest.mark.parametrize(
    ("host", "completes"),
    [
        (EVACUATED, True),
        (d.replace(EVACUATED, services=()), False),
        (d.replace(EVACUATED, services=(d.replace(SERVICE, state="down"),)), False),
        (WHOLE, False),
    ],
)
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("assumed", [False, True])
def test_check_mode_can_assume_a_restart_that_completes(
    monkeypatch: pytest.MonkeyPatch,
    host: RedeployedHost,
    completes: bool,
    check: bool,
    assumed: bool,
) -> None:
    result = Cloud(monkeypatch, host).restore(check=check, assume_restarted=assumed)
    left = [] if completes and check and assumed else host.evacuations.evacuations

    assert result["restart_completes"] is completes
    assert result["evacuations"] == [evacuation.server for evacuation in left]


@pytest.mark.parametrize(
    ("record", "doubted"),
    [(RECORD, False), (d.replace(RECORD, names_cloud=False), True), (None, False)],
)
def test_record_that_names_no_cloud_is_a_check_of_its_own(
    monkeypatch: pytest.MonkeyPatch, record: FormerHost | None, doubted: bool
) -> None:
    cloud = Cloud(monkeypatch, WHOLE)
    cloud.record = record
    result = cloud.restore()

    assert ("record" in {check["name"] for check in result["checks"]}) is doubted
    assert result["recorded"] is (record is not None)


@pytest.mark.parametrize(
    ("host", "is_complete"),
    [(WHOLE, True), (d.replace(WHOLE, nodes=(), provider=None, state=None), False)],
)
def test_host_is_complete_if_nothing_is_missing(
    monkeypatch: pytest.MonkeyPatch, host: RedeployedHost, is_complete: bool
) -> None:
    cloud = Cloud(monkeypatch, host)
    cloud.record = None

    assert cloud.restore()["complete"] is is_complete


def test_no_host_is_not_every_host() -> None:
    context: t.Any = types.SimpleNamespace(options={"host": " "})

    with pytest.raises(InvalidInput, match="host must not be empty"):
        redeploy.restore_host(context)


@pytest.mark.parametrize(
    ("status", "detail", "mapped"),
    [
        (200, "", True),
        (404, "Host 'compute-1' is not mapped to any cell", False),
        (404, "Compute host compute-1 could not be found.", True),
        (503, "", None),
    ],
)
def test_mapping_is_known_by_what_nova_does_not_find(
    status: int, detail: str, mapped: bool | None
) -> None:
    reply = types.SimpleNamespace(status=status, detail=detail)
    compute: t.Any = types.SimpleNamespace(get=lambda _path, _microversion: reply)

    assert redeploy._read_mapping(compute, HOST) is mapped
