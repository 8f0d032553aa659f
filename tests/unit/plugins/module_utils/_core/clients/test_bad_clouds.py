"""Every way to a cloud that does not work is one sentence: what is wrong, where, what to do."""

import os
import re
import socket
import time
import typing as t
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keystoneauth1.exceptions import UnknownConnectionError
from urllib3.exceptions import IncompleteRead, ProtocolError

from .......plugins.module_utils._common.errors import MalformedResponse, PlacementToolsError
from .......plugins.module_utils._core.clients import session
from .......plugins.module_utils._core.clients.login_errors import translate_sdk_errors
from .broken_cloud import HTML, BrokenCloud, Canned, write_certificate

# Secrets that no sentence may show.
SECRETS = ("s3cret", "t0ken")
# Port 9 of the loopback interface belongs to the discard service, which nobody runs.
NOWHERE = "http://127.0.0.1:9"
ERROR = {"error": {"code": 403, "message": "You are not authorized.", "title": "Forbidden"}}


class Setting:
    """What one case needs: the cloud, the options of the module, and files."""

    def __init__(self, cloud: BrokenCloud, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud = cloud
        self.folder = folder
        self.patch = monkeypatch
        self.options = cloud.build_options()

    def connect(self) -> str:
        """Return the sentence of the failure, without the addresses and paths of this test."""
        with pytest.raises(PlacementToolsError) as raised:
            session.connect(self.options)
        sentence = str(raised.value)
        for address in (self.cloud.address, self.cloud.address.replace("http", "https")):
            sentence = sentence.replace(address, "CLOUD")
        return sentence.replace(str(self.folder), "FOLDER")


Step = t.Callable[[Setting], None]


def answers(pattern: str, status: int, body: t.Any = HTML, **headers: str) -> Step:
    def prepare(setting: Setting) -> None:
        setting.cloud.answers[pattern] = Canned(status, body, headers)

    return prepare


def token(body: t.Any) -> Step:
    return lambda setting: setting.cloud.answers.update(
        {"POST /v3/auth/tokens": Canned(201, body, {"X-Subject-Token": "t0ken"})}
    )


def auth(**values: t.Any) -> Step:
    return lambda setting: setting.options["auth"].update(values)


def auth_url(change: Callable[[str], str]) -> Step:
    def prepare(setting: Setting) -> None:
        setting.options["auth"]["auth_url"] = change(setting.cloud.auth_url)

    return prepare


def options(**values: t.Any) -> Step:
    return lambda setting: setting.options.update(values)


def variables(**values: str) -> Step:
    def prepare(setting: Setting) -> None:
        for name, value in values.items():
            setting.patch.setenv(name, value)

    return prepare


def clouds(text: str | bytes, cloud: str | None = "one") -> Step:
    """Write a clouds.yaml, which alone says what the cloud is."""

    def prepare(setting: Setting) -> None:
        path = setting.folder / "clouds.yaml"
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(data.replace(b"CLOUD", setting.cloud.address.encode()))
        setting.patch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        setting.options.update(auth=None, cloud=cloud)

    return prepare


def catalog(*kinds: str) -> Step:
    def prepare(setting: Setting) -> None:
        setting.cloud.catalog = [setting.cloud.build_service(kind) for kind in kinds]

    return prepare


def placement_url(url: str) -> Step:
    def prepare(setting: Setting) -> None:
        service = setting.cloud.build_service("placement")
        service["endpoints"][0]["url"] = url
        setting.cloud.catalog = [service, setting.cloud.build_service("compute")]

    return prepare


def raw_catalog(*entries: t.Any) -> Step:
    return lambda setting: setattr(setting.cloud, "catalog", list(entries))


def versions(**newest: str) -> Step:
    def prepare(setting: Setting) -> None:
        for name, version in newest.items():
            setattr(setting.cloud, f"{name}_version", version)

    return prepare


def unscoped(setting: Setting) -> None:
    setting.cloud.scope = {}
    setting.cloud.catalog = []


def of_token(**parts: t.Any) -> Step:
    """Let the token be for something else than a project, or have something more."""
    return lambda setting: setting.cloud.scope.update(parts)


def federated(discovery: str) -> Step:
    """Log in with the password of an identity provider."""

    def prepare(setting: Setting) -> None:
        names = {"identity_provider": "idp", "protocol": "openid", "client_id": "c"}
        found = {"client_secret": "s3cret", "discovery_endpoint": discovery}
        setting.options["auth_type"] = "v3oidcpassword"
        setting.options["auth"].update(names, **found)
        del setting.options["auth"]["user_domain_name"]

    return prepare


def tls(name: str, days: int = 2, trusted: bool = True) -> Step:
    """Serve the cloud with a certificate for a name or an address."""

    def prepare(setting: Setting) -> None:
        path = str(setting.folder / "certificate.pem")
        write_certificate(path, name, days)
        setting.cloud.use_tls(path)
        setting.options["auth"]["auth_url"] = setting.cloud.auth_url.replace("http", "https")
        if trusted:
            setting.options["ca_cert"] = path

    return prepare


def silent(scheme: str) -> Step:
    """Use a port that accepts connections and never answers."""

    def prepare(setting: Setting) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        setting.cloud.keep = listener
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v3"
        setting.options["auth"]["auth_url"] = url

    return prepare


WRONG_PATH = "Set auth_url to the address of Keystone, which usually ends with /v3."
PORTAL = "Is a proxy or a login page in the way?"
GOOD = "auth_url: 'CLOUD/v3', username: a, password: s3cret, project_name: p"

BAD_ADDRESSES = {
    "another scheme": "ftp://h/v3",
    "a wrong port": "http://h:99999/v3",
    "a port that is text": "http://h:abc/v3",
    "a password": "ftp://me:s3cret@h/v3",
    "nothing but a password": "s3cret",
    "a slash in its password": "https://me:s3/s3cret@h/v3",
    "a number and a mark in its password": "https://me:5000#s3cret@h/v3",
    "a space in its password": "https://me:a s3cret@h/v3",
}
CASES: dict[str, tuple[list[Step], str]] = {
    # clouds.yaml
    "YAML error": ([clouds("clouds:\n  one: [1\n  b: s3cret\n")], "YAML (line 3, column 4): check"),
    "password that is an alias": (
        [clouds("clouds:\n  one:\n    auth:\n      password: *s3cret\n")],
        "FOLDER/clouds.yaml is not valid YAML (line 4, column 17)",
    ),
    "password that is a tag": (
        [clouds("clouds:\n  one:\n    auth:\n      password: !s3cret x\n")],
        "FOLDER/clouds.yaml is not valid YAML (line 4, column 17)",
    ),
    "tab": ([clouds("clouds:\n\tone:\n")], "(line 2, column 1): replace the tabs with spaces."),
    "list": ([clouds("- one\n")], "FOLDER/clouds.yaml is not a clouds.yaml: it must be a mapping"),
    "text": ([clouds("one")], "FOLDER/clouds.yaml is not a clouds.yaml"),
    "empty file": ([clouds("")], "FOLDER/clouds.yaml is not a clouds.yaml"),
    "no clouds": ([clouds("cloud: {one: {}}")], "FOLDER/clouds.yaml has no clouds"),
    "clouds are a list": ([clouds("clouds: [one]")], "FOLDER/clouds.yaml has no clouds"),
    "cloud is text": ([clouds("clouds: {one: text}")], "Cloud one in FOLDER/clouds.yaml is not a"),
    "cloud is empty": ([clouds("clouds: {one: }")], "Cloud one in FOLDER/clouds.yaml is not a"),
    "auth of a cloud is text": (
        [clouds("clouds: {one: {auth: s3cret}}")],
        "auth of cloud one in FOLDER/clouds.yaml is not a mapping",
    ),
    "not UTF-8": ([clouds(b"clouds: \xff\xfe")], "FOLDER/clouds.yaml is not text in UTF-8"),
    "binary": ([clouds(b"\x00\x01")], "FOLDER/clouds.yaml is not valid YAML"),
    "near match": (
        [clouds("clouds: {admin-prod: {}, admin-test: {}}", "admin_prod")],
        "There is no cloud admin_prod in FOLDER/clouds.yaml. Did you mean admin-prod",
    ),
    "only one cloud": ([clouds("clouds: {north: {}}", "zzz")], "yaml. The only one is north."),
    "no name for several clouds": (
        [clouds("clouds: {one: {}, two: {}}", None)],
        "No cloud is named, and FOLDER/clouds.yaml has several",
    ),
    "file that does not exist": (
        [options(auth=None, cloud="one"), variables(OS_CLIENT_CONFIG_FILE="/nonexistent.yaml")],
        "There is no file /nonexistent.yaml, which OS_CLIENT_CONFIG_FILE names",
    ),
    "directory": (
        [options(auth=None, cloud="one"), variables(OS_CLIENT_CONFIG_FILE="/etc")],
        "/etc cannot be read: Is a directory. Check the path and its permissions.",
    ),
    "no cloud at all": (
        [options(auth=None)],
        "and there is no clouds.yaml: set cloud (or OS_CLOUD)",
    ),
    "cloud without auth_url": ([clouds("clouds: {one: {}}")], "The credentials lack auth_url"),
    "region that the cloud does not list": (
        [
            clouds(f"clouds: {{one: {{regions: [a, b], auth: {{{GOOD}}}}}}}"),
            options(region_name="c"),
        ],
        "The configuration of the cloud is not valid: Region c is not a valid region name",
    ),
    # Options
    "time of 0": ([options(api_timeout=0)], "api_timeout is 0: give the seconds to wait"),
    "negative time": ([options(api_timeout=-5)], "api_timeout is -5: give the seconds to wait"),
    "time in a dictionary": (
        [options(cloud={"auth": {}, "api_timeout": "soon"}, auth=None)],
        "api_timeout is 'soon'",
    ),
    "cloud is a list": ([options(cloud=["one"])], "cloud must be the name of a cloud"),
    "cloud with a number as key": ([options(cloud={1: 2}, auth=None)], "cloud has a key"),
    "auth is text": ([options(auth="s3cret")], "auth must be a dictionary"),
    "auth of a whole cloud is text": (
        [options(cloud={"auth": "s3cret"}, auth=None)],
        "auth must be a dictionary",
    ),
    "no password": ([auth(password=None)], "The credentials have no password: set it in auth"),
    "no user": ([auth(username=None)], "The credentials have no username: set it in auth"),
    "application credential without its auth_type": (
        [auth(application_credential_id="a", application_credential_secret="s3cret")],
        "which its auth_type does not know: set auth_type (or OS_AUTH_TYPE) to v3applicationcred",
    ),
    "identity provider that is down": (
        [federated(f"{NOWHERE}/.well-known/openid-configuration")],
        f"The identity provider at {NOWHERE} cannot be reached: nothing listens on that port.",
    ),
    "unknown key in auth": ([auth(projectname="ops")], "auth has the key projectname, which its"),
    "unknown auth_type": ([options(auth_type="v3pasword")], "known. Did you mean v3password"),
    "CA that does not exist": ([options(ca_cert="/no.pem")], "ca_cert is /no.pem, and there is no"),
    "client certificate that does not exist": (
        [options(client_cert="/no.pem")],
        "client_cert is /no.pem, and there is no such file",
    ),
    "auth_url is a number": ([auth(auth_url=5)], "auth_url in auth must be text"),
    "auth_url without http": (
        [auth_url(lambda url: url.partition("://")[2])],
        "auth_url is not a valid address: write it as https://HOST:5000/v3. It is not shown",
    ),
    **{
        f"auth_url with {what}": ([auth(auth_url=url)], "auth_url is not a valid address")
        for what, url in BAD_ADDRESSES.items()
    },
    "auth_url with a password, to nowhere": (
        [auth(auth_url=f"http://me:s3cret@{NOWHERE[7:]}/v3")],
        f"Keystone at {NOWHERE}/v3 cannot be reached",
    ),
    "endpoint with a password, to nowhere": (
        [variables(OS_PLACEMENT_ENDPOINT_OVERRIDE=f"http://me:s3cret@{NOWHERE[7:]}")],
        f"Placement at {NOWHERE}/ cannot be reached",
    ),
    "endpoint with a slash in its password": (
        [variables(OS_COMPUTE_ENDPOINT_OVERRIDE="http://me:s3/s3cret@h")],
        "compute_endpoint_override is not a valid address: write it as https://HOST:PORT/PATH.",
    ),
    "endpoint that is a password": (
        [variables(OS_PLACEMENT_ENDPOINT_OVERRIDE="s3cret")],
        "placement_endpoint_override is not a valid address",
    ),
    # The way to Keystone
    "refused port": (
        [auth(auth_url=f"{NOWHERE}/v3")],
        f"Keystone at {NOWHERE}/v3 cannot be reached: nothing listens on that port.",
    ),
    "unknown host": (
        [auth(auth_url="http://keystone.invalid:5000/v3")],
        "Keystone at http://keystone.invalid:5000/v3 cannot be reached: its host name does not",
    ),
    "https to an http port": (
        [auth_url(lambda url: url.replace("http", "https"))],
        "Keystone at CLOUD/v3 cannot be reached: it does not use TLS. Write http://",
    ),
    "http to an https port": (
        [tls("127.0.0.1"), auth_url(str)],
        "the connection was closed without an answer. Check that the service runs, and whether its "
        "port needs https:// instead of http://.",
    ),
    "no answer": ([silent("http")], "does not answer in time. Check that the service runs"),
    "no answer to TLS": ([silent("https")], "the TLS handshake was not finished in time."),
    "proxy that does not run": (
        [variables(http_proxy=f"http://me:s3cret@{NOWHERE[7:]}")],
        "cannot be reached: the proxy 127.0.0.1:9 does not answer, or refuses to connect. Check "
        "HTTPS_PROXY and HTTP_PROXY",
    ),
    "certificate that no CA has signed": (
        [tls("127.0.0.1", trusted=False)],
        "has a certificate that cannot be verified (self-signed certificate). Set ca_cert",
    ),
    "certificate that has expired": ([tls("127.0.0.1", days=-1)], "certificate that has expired."),
    "certificate of another host": ([tls("other")], "has a certificate that is for another "),
    "CA that is a key": (
        [tls("127.0.0.1"), options(ca_cert=__file__)],
        "a file of certificates has none. Check ca_cert and client_cert.",
    ),
    # Keystone's answers
    "login page on every path": (
        [answers("* /*", 200)],
        f"Keystone at CLOUD/v3 answers 200 with a web page instead of its versions. {PORTAL}",
    ),
    "login page for the token": ([answers("POST /v3/*", 200)], "something that is not Keystone's"),
    "login page by a redirection": (
        [answers("* /*", 302, "", Location="/login")],
        "Keystone at CLOUD/v3 has an address that is not valid, or redirects to one.",
    ),
    # keystoneauth waits for itself here, and never ends.
    "401 on every path": (
        [answers("* /*", 401)],
        f"Keystone at CLOUD/v3 answered 401 to a request that needs no credentials. {PORTAL}",
    ),
    "403 on every path": ([answers("* /*", 403)], "answered 403 when asked for a token."),
    "404 on every path": ([answers("* /*", 404)], WRONG_PATH),
    "429 on every path": ([answers("* /*", 429)], "The service limits the rate of requests"),
    "500 on every path": ([answers("* /*", 500)], "Look for the cause in the log"),
    "502 on every path": ([answers("* /*", 502)], "The service behind the proxy does not answer"),
    "503 on every path": ([answers("* /*", 503)], "The service is not available"),
    "wrong password": (
        [answers("POST /v3/*", 401, {"error": {"message": "Please log in.", "code": 401}})],
        "Keystone at CLOUD/v3 refused the credentials of user admin for project ops. Check user, "
        "password and project, and their domains.",
    ),
    "user without a role": (
        [answers("POST /v3/*", 403, ERROR)],
        "Keystone at CLOUD/v3 refuses a token of user admin for project ops: You are not "
        "authorized. Check the project and the user's roles in it.",
    ),
    "auth_url without /v3": (
        [auth_url(lambda url: url.removesuffix("/v3"))],
        f"Keystone at CLOUD answered 404 when asked for its versions. {WRONG_PATH}",
    ),
    "auth_url with /v2.0": (
        [auth_url(lambda url: url.replace("/v3", "/v2.0"))],
        f"Keystone at CLOUD/v2.0 is asked for version 2, which no longer exists. {WRONG_PATH}",
    ),
    "auth_url with a wrong path": ([auth_url(lambda url: f"{url}/identity")], WRONG_PATH),
    "token without a project": ([unscoped], "gave a token without a project"),
    "token that is text": ([token({"token": "x"})], "gave a token that cannot be read."),
    "token that is a list": ([token([1])], "something that is not Keystone's."),
    "token without a catalogue": ([token({"token": {}})], "gave a token that cannot be read."),
    "catalogue of text": ([raw_catalog("x")], "gave a token that cannot be read."),
    "catalogue without types": ([raw_catalog({"endpoints": []})], "gave a token that cannot"),
    "catalogue with a region that is no text": (
        [raw_catalog({"type": "compute", "endpoints": [{"url": "http://a", "region": {}}]})],
        "gave a token that cannot be read.",
    ),
    # The service catalogue
    "no Placement": (
        [catalog("compute", "identity")],
        "Placement is not in the service catalogue of Keystone at CLOUD/v3. Check that this cloud "
        "has it, and use the right cloud. It lists compute, identity.",
    ),
    "no Nova": ([catalog("placement")], "Nova is not in the service catalogue"),
    "empty catalogue": ([catalog()], "It lists no service at all."),
    "wrong region": (
        [options(region_name="RegionTwo")],
        "Placement is not in region RegionTwo by the service catalogue of Keystone at CLOUD/v3. "
        "Set region_name to a region of Placement. Did you mean RegionOne?",
    ),
    "wrong interface": (
        [options(interface="internal")],
        "Placement has no internal endpoint in the service catalogue of Keystone at CLOUD/v3. Set "
        "interface to one of those it has: public.",
    ),
    "endpoint that is no address": ([placement_url("x")], "Placement has an address that is not"),
    "endpoint of an unknown host": (
        [placement_url("http://placement.invalid")],
        "Placement at http://placement.invalid/ cannot be reached: its host name does not resolve.",
    ),
    "auth_type without Keystone": (
        [options(auth_type="none", auth={"endpoint": NOWHERE})],
        "auth_type none does not ask Keystone",
    ),
    "token that Keystone did not give": (
        [options(auth_type="admin_token", auth={"endpoint": NOWHERE, "token": "t0ken"})],
        "auth_type admin_token does not ask Keystone",
    ),
    # Placement and Nova
    "Placement is a login page": (
        [answers("* /placement*", 200)],
        "Placement at CLOUD/placement/ answered GET / with something that is not JSON",
    ),
    "Placement is another service": (
        [answers("* /placement*", 200, {"hello": "world"})],
        "Placement at CLOUD/placement/ answered something that is not a list of versions.",
    ),
    "Placement has broken versions": (
        [answers("* /placement*", 200, {"versions": ["x"]})],
        "answered something that is not a list of versions.",
    ),
    "Nova has broken versions": (
        [answers("* /compute*", 200, {"version": "x"})],
        "Nova at CLOUD/compute/v2.1 answered something that is not a list of versions.",
    ),
    "Placement does not accept the token": (
        [answers("* /placement*", 401)],
        "Placement at CLOUD/placement/ answered 401 when asked for its versions. It does not "
        "accept the token",
    ),
    "Placement does not accept the token for its access rules": (
        [of_token(application_credential={"access_rules": []}), answers("* /placement*", 401)],
        "answered 401 when asked for its versions. The access rules of the application credential",
    ),
    "Placement forbids a token for the system": (
        [of_token(system={"all": True}), answers("* /placement*", 403)],
        "answered 403 when asked for its versions. The token is for the system and not for a ",
    ),
    "Placement forbids": ([answers("* /placement*", 403)], "Use credentials with a role"),
    "old Placement": (
        [versions(placement="1.19")],
        "Placement at CLOUD/placement/ offers microversions up to 1.19, but 1.20 or newer is",
    ),
    "old Nova": (
        [versions(compute="2.50")],
        "Nova at CLOUD/compute/v2.1/ offers microversions up to 2.50, but 2.53 or newer is",
    ),
}


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    for name in list(os.environ):
        if name.startswith("OS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # Failed requests are sent again, as they are in a real run, but here without the pauses.
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    # The SDK has looked for the home of the user when it was imported.
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [])
    monkeypatch.setattr("openstack.config.loader.SECURE_FILES", [])
    with BrokenCloud() as cloud:
        yield Setting(cloud, tmp_path, monkeypatch)


@pytest.mark.parametrize(("steps", "sentence"), CASES.values(), ids=CASES.keys())
def test_bad_cloud_is_one_sentence(setting: Setting, steps: list[Step], sentence: str) -> None:
    for step in steps:
        step(setting)
    began = time.monotonic()

    said = setting.connect()

    assert sentence in said
    # What, where and what to do, said once and in time.
    assert time.monotonic() - began < 8
    assert "\n" not in said and len(said) < 400
    assert len(re.findall(r"[.?!](?: |$)", said)) <= 4, said
    assert not re.search(r"Error|Exception|object at 0x|Pool\(|<html", said), said
    assert not any(secret in said for secret in SECRETS)
    # A login asks for a token; nothing else is ever sent before everything has been found.
    for line in setting.cloud.requests:
        assert line.startswith("GET ") or line.endswith("/auth/tokens")


def test_old_sdk_is_named(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "get_sdk_version", lambda: "0.61.3")

    assert "has openstacksdk 0.61.3, and 1.0.0 or newer is needed" in setting.connect()


def test_sound_cloud_is_none_of_them(setting: Setting) -> None:
    assert session.connect(setting.options).placement.newest == (1, 39)


def test_web_server_may_want_a_ticket_before_it_shows_the_versions(setting: Setting) -> None:
    """As with v3kerberos, whose token is asked for without a look at the versions."""
    answers("GET /v3", 401)(setting)
    answers("GET /v3/", 401)(setting)
    setting.options["auth_type"] = "v3password"

    assert session.connect(setting.options).placement.newest == (1, 39)


def test_connection_waits_less_than_an_answer(setting: Setting) -> None:
    setting.options["api_timeout"] = 300
    adapter = session.connect(setting.options).placement._adapter

    assert adapter.session.timeout == (10.0, 300.0)


def test_answer_that_broke_off_is_named_once_by_its_address() -> None:
    broken = ProtocolError("Connection broken: IncompleteRead(675)", IncompleteRead(675, 219))
    url = "http://nova.example/v2.1/os-migrations"
    error = UnknownConnectionError(f"Unexpected exception for {url}: {broken}", broken)

    with pytest.raises(MalformedResponse) as raised, translate_sdk_errors("Nova at http://nova"):
        raise error

    said = f"Nova at http://nova sent an incomplete answer to {url}. Is a proxy in the way?"
    assert str(raised.value) == said
