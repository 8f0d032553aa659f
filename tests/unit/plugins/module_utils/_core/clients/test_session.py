"""Versions and messages of a service.

Everything else about a session is tested with the real services.

Then the entry of every module, and several places that must agree: the table of kinds, the modules,
the role and the README.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import types
import typing as t

import pytest
import yaml
from ansible.module_utils import basic

from .......plugins.module_utils._common.errors import CloudError, InvalidInput
from .......plugins.module_utils._core.clients.api import Api, Reply
from .......plugins.module_utils._core.clients.session import (
    CloudTask,
    connect,
    find_other_novas,
)
from .......plugins.module_utils._core.models.kind import REMEDIATE
from .......plugins.module_utils._core.models.kinds import KINDS
from .......plugins.module_utils._core.options.connection import ConnectionOptions
from .......plugins.module_utils._core.options.orphan_cleanup import OrphanCleanupOptions
from .......plugins.module_utils._hosts.host_decommission import (
    HOST_DECOMMISSION,
    RetirementOptions,
)
from .......plugins.plugin_utils._report.notification import NOTICE_FORMATTERS
from .......plugins.plugin_utils._report.report_files import FORMATS


def _placement(newest: tuple[int, int]) -> Api:
    """Return Placement as the SDK discovers it at that version."""
    adapter = types.SimpleNamespace(
        get_endpoint=lambda: "http://placement",
        get_endpoint_data=lambda: types.SimpleNamespace(max_microversion=newest),
    )
    return Api("Placement", adapter, (1, 28))


@pytest.mark.parametrize("newest", [(1, 31), (1, 39), (2, 0)])
def test_offered_microversion_is_used(newest: tuple[int, int]) -> None:
    assert _placement(newest).require_microversion(1, 31) == "1.31"


def test_service_too_old_for_one_request_says_so() -> None:
    with pytest.raises(CloudError) as error:
        _placement((1, 30)).require_microversion(1, 31)

    assert str(error.value) == (
        "Placement at http://placement/ offers microversions up to 1.30, "
        "but 1.31 or newer is required."
    )


def test_service_too_old_for_everything_is_refused_at_once() -> None:
    with pytest.raises(CloudError, match=r"1\.28 or newer is required"):
        _placement((1, 27))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"errors": [{"detail": "Access was denied.\n\n Policy does not allow it.  "}]},
            "Access was denied. Policy does not allow it.",
        ),
        (
            {"badRequest": {"message": "Marker could not be found", "code": 400}},
            "Marker could not be found",
        ),
        ({}, ""),
    ],
)
def test_message_of_a_service_becomes_one_line(body: t.Any, said: str) -> None:
    assert Reply(400, {}, body).detail == said


PLACEMENTS = {
    "north": "http://placement",
    "south": "http://placement/",
    "east": "http://placement.east",
}
CATALOGUE = [
    {
        "type": "compute",
        "endpoints": [
            {"region": region, "url": f"http://nova.{region}/v2.1"} for region in PLACEMENTS
        ],
    },
    {
        "type": "placement",
        "endpoints": [{"region": region, "url": url} for region, url in PLACEMENTS.items()],
    },
    {"type": "image", "endpoints": [{"region": "west", "url": "http://placement"}]},
]


@pytest.mark.parametrize(
    ("compute", "region", "others"),
    [
        ("http://nova.south/v2.1/", "south", ("north",)),
        ("http://nova.north/v2.1/project", "south", ("south",)),
        ("http://an.override:8774/v2.1/", "south", ("north",)),
        ("http://an.override:8774/v2.1/", None, ("north", "south")),
    ],
)
def test_another_nova_on_the_same_placement_is_found_in_the_catalogue(
    compute: str, region: str | None, others: tuple[str, ...]
) -> None:
    assert find_other_novas(CATALOGUE, compute, "http://placement/", region) == others


def test_region_with_its_own_placement_does_not_count() -> None:
    assert (
        find_other_novas(CATALOGUE, "http://nova.east/v2.1/", "http://placement.east/", "east")
        == ()
    )


@pytest.mark.parametrize(("here", "there"), [("one", "two"), ("two", "one")])
@pytest.mark.parametrize(
    "urls",
    [
        {
            "one": "https://api.example.org/compute",
            "two": "https://api.example.org/compute-two/v2.1",
        },
        {"one": "https://api.example.org/compute", "two": "https://api.example.org/compute/two"},
        {
            "one": "https://api.example.org/v1/one/compute/v2.1",
            "two": "https://api.example.org/v1/two/compute/v2.1",
        },
        {"one": "https://api.example.org/v2.1/one", "two": "https://api.example.org/v2.1/two"},
    ],
)
def test_nova_whose_url_starts_like_ours_is_another(
    urls: dict[str, str], here: str, there: str
) -> None:
    catalogue = [
        {
            "type": "compute",
            "endpoints": [{"region": region, "url": url} for region, url in urls.items()],
        },
        {
            "type": "placement",
            "endpoints": [
                {"region": region, "url": "https://api.example.org/placement"} for region in urls
            ],
        },
    ]
    # The version is discovered if the catalogue does not have it.
    endpoint = f"{urls[here]}/" if "/v2.1" in urls[here] else f"{urls[here]}/v2.1/"
    assert find_other_novas(catalogue, endpoint, "https://api.example.org/placement/", here) == (
        there,
    )


def test_endpoint_without_region_and_custom_url_count_as_one_region() -> None:
    catalogue = [
        {"type": "compute", "endpoints": [{"region": None, "url": "http://nova/v2.1"}]},
        {"type": "placement", "endpoints": [{"region": None, "url": "http://placement"}]},
    ]
    assert (
        find_other_novas(catalogue, "http://an.override:8774/v2.1/", "http://placement/", None)
        == ()
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"auth_type": "none", "auth": {"endpoint": "http://127.0.0.1:9"}},
            "auth_type none does not ask Keystone",
        ),
        (
            {"auth_type": "admin_token", "auth": {"endpoint": "http://127.0.0.1:9", "token": "x"}},
            "auth_type admin_token does not ask Keystone",
        ),
        ({"cloud": ["a"]}, "cloud must be the name of a cloud"),
        ({"cloud": {1: 2}}, "cloud has a key that is not text"),
        ({"cloud": {"auth": "text"}}, "auth must be a dictionary"),
        (
            {"auth": {"auth_url": 5, "username": "u", "password": "p", "project_name": "p"}},
            "auth_url in auth must be text",
        ),
        (
            {"cloud": {"auth": {"auth_url": "http://127.0.0.1:9"}, "api_timeout": "soon"}},
            "api_timeout is 'soon'",
        ),
    ],
)
def test_impossible_connection_options_are_one_sentence(
    given: dict[str, t.Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    options = dict.fromkeys(
        (
            "cloud",
            "auth",
            "auth_type",
            "region_name",
            "interface",
            "validate_certs",
            "ca_cert",
            "client_cert",
            "client_key",
        )
    )
    with pytest.raises(InvalidInput) as error:
        connect({**options, "api_timeout": 5, **given})
    assert sentence in str(error.value)


# Modules

ROOT = pathlib.Path(__file__).parents[6]


def _documented(name: str) -> dict[str, t.Any]:
    """Return the documented options of a module."""
    plugin = importlib.import_module(f"ansible_collections.osops.placement.plugins.modules.{name}")
    return t.cast("dict[str, t.Any]", yaml.safe_load(plugin.DOCUMENTATION)["options"])


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

    assert result == {
        "failed": True,
        "msg": (
            "cloud is a whole configuration, so region_name cannot be set beside it: put them "
            "into it."
        ),
        "reason_id": "invalid_input",
    }


@pytest.mark.parametrize(
    ("params", "hidden"),
    [
        # Hiding a project named `ops` would damage every path with `ops` in it.
        (
            {
                "auth": {
                    "username": "admin",
                    "project_name": "ops",
                    "password": "pw",
                    "application_credential_secret": "s3",
                    "token": "t",
                    "code": "once",
                }
            },
            {"pw", "s3", "t", "once"},
        ),
        ({"cloud": "ops", "auth": {"password": "pw", "auth_url": "ops"}}, {"pw"}),
        (
            {
                "cloud": {
                    "region_name": "r",
                    "auth": {"username": "admin", "password": "pw", "passcode": 123456},
                }
            },
            {"pw", "123456"},
        ),
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
    documented = _documented("orphan_report")

    assert (
        OrphanCleanupOptions.report_formats.choices
        == documented["formats"]["choices"]
        == ["json", *FORMATS]
    )
    assert (
        OrphanCleanupOptions.notify_format.choices
        == documented["notify_format"]["choices"]
        == list(NOTICE_FORMATTERS)
    )


def test_decommission_modules_offer_the_kinds_of_the_role() -> None:
    ours = RetirementOptions.kinds
    of_role = HOST_DECOMMISSION.options["host_decommission_remediate_kinds"]

    assert (ours.choices, ours.default) == (of_role.choices, of_role.default)


def test_decommission_role_requires_a_target() -> None:
    """No default may ever name a host, and no stage may run without one."""
    target = HOST_DECOMMISSION.options["host_decommission_target"]

    assert target.required and target.default is None
    assert HOST_DECOMMISSION.options["host_decommission_max_hosts"].default == 1


def test_readme_lists_the_kinds_with_their_defaults() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]*) \| (yes|no)\b[^|]*\|$",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )

    assert rows == [
        (kind.name, kind.meaning, "yes" if kind.by_default == REMEDIATE else "no") for kind in KINDS
    ]
