"""Versions and messages of a service.

Everything else about a session is tested with the real services.

Then the entry of every module, and several places that must agree: the table of kinds, the modules,
the role and the README.
"""

import pathlib
import re
import types
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from .......plugins.module_utils._common.errors import CloudError
from .......plugins.module_utils._core.clients.api import Api
from .......plugins.module_utils._core.clients.session import CloudTask, Session, find_other_novas
from .......plugins.module_utils._core.models.kind import REMEDIATE
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.options.connection import ConnectionOptions
from .......plugins.module_utils._core.options.orphan_cleanup import OrphanCleanupOptions
from .......plugins.module_utils._hosts.host_decommission import HOST_DECOMMISSION
from .......plugins.modules import orphan_report
from .......plugins.plugin_utils._report.notification import NOTICE_FORMATTERS
from .......plugins.plugin_utils._report.report_files import FORMATS
from ...service import Service


def _placement(newest: tuple[int, int]) -> Api:
    """Return Placement as the SDK discovers it at that version."""
    return Service({}, newest).open("Placement", (1, 28))


@pytest.mark.parametrize("newest", [(1, 31), (1, 39), (2, 0)])
def test_offered_microversion_is_used(newest: tuple[int, int]) -> None:
    assert _placement(newest).require_microversion(1, 31) == "1.31"


def test_service_too_old_for_one_request_or_for_everything_says_what_it_offers() -> None:
    with pytest.raises(CloudError, match=r"1\.30\b.*1\.31"):
        _placement((1, 30)).require_microversion(1, 31)
    with pytest.raises(CloudError, match=r"1\.27\b.*1\.28"):
        _placement((1, 27))


PLACEMENTS = {
    "north": "http://placement",
    "south": "http://placement/",
    "east": "http://placement.east",
}
NOVAS = {region: f"http://nova.{region}/v2.1" for region in PLACEMENTS}
API = "https://api.example.org"


def _list_services(**urls: t.Mapping[str | None, str]) -> list[dict[str, t.Any]]:
    """Return a catalogue: the URLs of each type of service by region."""
    return [
        {"type": kind, "endpoints": [{"region": name, "url": url} for name, url in given.items()]}
        for kind, given in urls.items()
    ]


@pytest.mark.parametrize(
    ("compute", "placement", "region", "others"),
    [
        ("http://nova.south/v2.1/", "", "south", ("north",)),
        ("http://nova.north/v2.1/project", "", "south", ("south",)),
        ("http://an.override:8774/v2.1/", "", "south", ("north",)),
        ("http://an.override:8774/v2.1/", "", None, ("north", "south")),
        ("http://nova.east/v2.1/", ".east", "east", ()),
    ],
)
def test_another_nova_on_the_same_placement_is_found_in_the_catalogue(
    compute: str, placement: str, region: str | None, others: tuple[str, ...]
) -> None:
    catalogue = _list_services(
        compute=NOVAS, placement=PLACEMENTS, image={"west": "http://placement"}
    )

    assert find_other_novas(catalogue, compute, f"http://placement{placement}/", region) == others


@pytest.mark.parametrize(("here", "there"), [("one", "two"), ("two", "one")])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("/compute", "/compute-two/v2.1"),
        ("/compute", "/compute/two"),
        ("/v1/one/compute/v2.1", "/v1/two/compute/v2.1"),
        ("/v2.1/one", "/v2.1/two"),
    ],
)
def test_nova_whose_url_starts_like_ours_is_another(
    one: str, two: str, here: str, there: str
) -> None:
    urls = {"one": f"{API}{one}", "two": f"{API}{two}"}
    catalogue = _list_services(compute=urls, placement=dict.fromkeys(urls, f"{API}/placement"))
    # The version is discovered if the catalogue does not have it.
    endpoint = f"{urls[here]}/" if "/v2.1" in urls[here] else f"{urls[here]}/v2.1/"

    assert find_other_novas(catalogue, endpoint, f"{API}/placement/", here) == (there,)


@pytest.mark.parametrize(
    ("services", "told"),
    [
        # The region has no Placement of its own.
        ({"compute": {"south": "http://nova.south/v2.1"}}, ("south",)),
        ({"compute": {"east": "http://n"}, "placement": {"east": "http://placement.east"}}, ()),
        ({"computev21": {"north": "http://second.north/v2.1/$(project_id)s"}}, ("north",)),
        ({"compute_legacy": {"north": "http://nova.north/v2/%(tenant_id)s"}}, ()),
        (403, None),
        (0, None),
    ],
)
def test_all_endpoints_of_keystone_show_a_nova_that_the_catalogue_lacks(
    services: t.Any, told: tuple[str, ...] | None
) -> None:
    answers: dict[str, t.Any] = {"/services": services}
    if isinstance(services, dict):
        ours = {"compute": {"north": NOVAS["north"]}, "placement": {"north": "http://placement"}}
        both = [*_list_services(**ours), *_list_services(**services)]
        rows = [
            {"service_id": number, "region_id": row["region"], "url": row["url"]}
            for number, service in enumerate(both)
            for row in service["endpoints"]
        ]
        types_by_id = [{"id": number, "type": row["type"]} for number, row in enumerate(both)]
        answers = {"/services": {"services": types_by_id}, "/endpoints": {"endpoints": rows}}
    keystone = Service(answers).open("Keystone")
    urls = {"compute": f"{NOVAS['north']}/", "placement": "http://placement/"}
    apis: t.Any = {name: types.SimpleNamespace(endpoint=url) for name, url in urls.items()}
    session = Session(
        **apis,
        network=None,
        identity=keystone,
        region="north",
        project=None,
        allocators=(),
        other_novas=(),
    )

    answered = session.query_other_novas()

    assert answered.value == told
    assert session.query_other_novas().status == (services if told is None else 200)


def test_endpoint_without_region_and_custom_url_count_as_one_region() -> None:
    catalogue = _list_services(
        compute={None: "http://nova/v2.1"}, placement={None: "http://placement"}
    )

    assert (
        find_other_novas(catalogue, "http://an.override:8774/v2.1/", "http://placement/", None)
        == ()
    )


# Modules


class Ended(Exception):
    """The end of a module, with its result."""


def _run(monkeypatch: pytest.MonkeyPatch, **params: t.Any) -> tuple[dict[str, t.Any], set[str]]:
    """Return the result of a module that connects, and what is hidden in it.

    Its options contradict each other, so that it fails before any request.
    """
    options = {
        **dict.fromkeys(ConnectionOptions.build_spec()),
        "cloud": {},
        "region_name": "RegionOne",
        **params,
    }
    # Ansible hides every value of an option with no_log.
    hidden = {*_leaves(options["auth"]), *_leaves(options["cloud"])}

    def fail(**result: t.Any) -> t.NoReturn:
        raise Ended(result)

    module = types.SimpleNamespace(
        params=options,
        no_log_values=hidden,
        check_mode=False,
        _diff=False,
        warn=pytest.fail,
        fail_json=fail,
        exit_json=fail,
    )
    monkeypatch.setattr(basic, "AnsibleModule", lambda *_spec, **_rules: module)
    with pytest.raises(Ended) as ended:
        CloudTask(lambda cloud: {"name": cloud.connect().cloud.name}, {}).run_module()
    return ended.value.args[0], module.no_log_values


def _leaves(option: t.Any) -> set[str]:
    if isinstance(option, dict):
        return {leaf for value in option.values() for leaf in _leaves(value)}
    return set() if option is None else {str(option)}


def test_error_fails_the_task_with_its_sentence_and_the_id_of_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _hidden = _run(monkeypatch)

    assert (result["failed"], result["reason_id"]) == (True, "invalid_input")
    assert "region_name" in result["msg"]


NAMES = {"username": "admin", "project_name": "ops"}
SECRETS = {"password": "pw", "application_credential_secret": "s3", "token": "t", "code": "once"}


@pytest.mark.parametrize(
    ("params", "hidden"),
    [
        # Hiding a project named `ops` would damage every path with `ops` in it.
        ({"auth": {**NAMES, **SECRETS}}, set(SECRETS.values())),
        ({"cloud": "ops", "auth": {"password": "pw", "auth_url": "ops"}}, {"pw"}),
        ({"cloud": {"region_name": "r", "auth": {**NAMES, "passcode": 123456}}}, {"123456"}),
        # What is also a secret stays hidden.
        ({"auth": {"username": "admin", "password": "admin"}}, {"admin"}),
    ],
)
def test_only_secrets_of_the_authentication_are_hidden_in_results(
    monkeypatch: pytest.MonkeyPatch, params: dict[str, t.Any], hidden: set[str]
) -> None:
    assert _run(monkeypatch, **params)[1] == hidden


def test_secrets_are_marked_no_log() -> None:
    spec = ConnectionOptions.build_spec()

    assert {name for name, option in spec.items() if option.get("no_log")} == {
        "auth",
        "client_key",
        "cloud",
    }


def test_role_and_orphan_report_offer_every_format_and_product() -> None:
    documented = yaml.safe_load(orphan_report.DOCUMENTATION)["options"]
    offered = {
        "formats": (OrphanCleanupOptions.report_formats, ["json", *FORMATS]),
        "notify_format": (OrphanCleanupOptions.notify_format, list(NOTICE_FORMATTERS)),
    }

    for name, (option, all_of_them) in offered.items():
        assert option.choices == documented[name]["choices"] == all_of_them


def test_decommission_role_requires_a_target() -> None:
    """No default may ever name a host, and no stage may run without one."""
    target = HOST_DECOMMISSION.options["host_decommission_target"]

    assert target.required and target.default is None
    assert HOST_DECOMMISSION.options["host_decommission_max_hosts"].default == 1


def test_readme_lists_the_kinds_with_their_defaults() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| (yes|no)\b[^|]*\|$",
        (pathlib.Path(__file__).parents[6] / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    assert rows == [
        (kind.name, kind.meaning, "yes" if kind.by_default == REMEDIATE else "no") for kind in KINDS
    ]
