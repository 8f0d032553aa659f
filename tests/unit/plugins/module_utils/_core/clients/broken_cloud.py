"""A Keystone, a Placement and a Nova on one port, each of which can be broken.

The real services of the minicloud do not break in these ways, so these only answer what a session
asks before the first listing.
"""

import dataclasses as d
import datetime
import ipaddress
import json
import ssl
import typing as t

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ......integration.local_server import LocalServer, QuietHandler

PROJECT = "2a9b3f0e6b1d4c0f8a7e5d4c3b2a1908"
HTML = "<html><head><title>Log in</title></head><body><h1>Welcome to the guest Wi-Fi</h1></body>"


def write_certificate(path: str, name: str, days: int) -> None:
    """Write a certificate that no CA has signed, and its key, for a host name or an address.

    days: how long it is valid from now on; it began ten days ago.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    named: x509.GeneralName = x509.DNSName(name)
    if name[0].isdigit():
        named = x509.IPAddress(ipaddress.ip_address(name))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([named]), critical=False)
        .sign(key, hashes.SHA256())
    )
    with open(path, "wb") as stream:
        stream.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        stream.write(certificate.public_bytes(serialization.Encoding.PEM))


@d.dataclass(frozen=True)
class Canned:
    """One answer, whatever the request."""

    status: int = 200
    body: t.Any = None
    headers: t.Mapping[str, str] = d.field(default_factory=dict)

    @property
    def text(self) -> str:
        """The body as it is sent."""
        if isinstance(self.body, str):
            return self.body
        return json.dumps(self.body)


class BrokenCloud(LocalServer):
    """Answers as a sound cloud does, except for what `answers` replaces.

    answers: by method and path without a query, such as `GET /v3/projects`; `*` is for any method
        and a path that ends with it stands for all that begin like it. The first that fits counts.
    catalog: the service catalogue of each token; None for the one of a sound cloud.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Canned] = {}
        self.catalog: list[dict[str, t.Any]] | None = None
        self.scope: dict[str, t.Any] = {"project": {"id": PROJECT, "name": "admin"}}
        self.placement_version = "1.39"
        self.compute_version = "2.96"
        self.projects: list[dict[str, str]] = []
        self.requests: list[str] = []
        # Something that a test needs as long as the cloud.
        self.keep: t.Any = None
        cloud = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                canned = cloud.find(self.command, self.path)
                data = canned.text.encode()
                self.send_response(canned.status)
                kind = "text/html" if isinstance(canned.body, str) else "application/json"
                headers = {"Content-Type": kind, "Content-Length": str(len(data))}
                for name, value in {**headers, **canned.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_HEAD = _answer

        super().__init__(Handler)

    @property
    def auth_url(self) -> str:
        """The address of its Keystone."""
        return f"{self.address}/v3"

    def build_options(self) -> dict[str, t.Any]:
        """Return the options of a module that connects with a password."""
        names = ("cloud", "auth_type", "region_name", "interface", "validate_certs", "ca_cert")
        auth = {"auth_url": self.auth_url, "username": "admin", "password": "s3cret"}
        scope = {"project_name": "ops", "project_domain_name": "Default"}
        return {
            **dict.fromkeys([*names, "client_cert", "client_key"]),
            "auth": {**auth, **scope, "user_domain_name": "Default"},
            "api_timeout": 2,
        }

    def use_tls(self, path: str) -> None:
        """Answer with TLS from now on, with the certificate and the key in one file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def find(self, method: str, path: str) -> Canned:
        """Return the answer to one request."""
        self.requests.append(f"{method} {path}")
        bare, _mark, query = path.partition("?")
        for pattern, canned in self.answers.items():
            wanted, _space, prefix = pattern.partition(" ")
            if wanted not in ("*", method):
                continue
            if bare == prefix or (prefix.endswith("*") and bare.startswith(prefix[:-1])):
                return canned
        return self._find_sound(method, bare, query)

    def _find_sound(self, method: str, path: str, query: str) -> Canned:
        address = self.address
        if (method, path) == ("POST", "/v3/auth/tokens"):
            return Canned(201, {"token": self._build_token()}, {"X-Subject-Token": "gAAAA"})
        if path.rstrip("/") == "/v3":
            version = {"id": "v3.14", "status": "stable", "links": self._link(f"{address}/v3/")}
            return Canned(body={"version": version})
        if path == "/v3/projects":
            name = query.partition("name=")[2].partition("&")[0]
            found = [project for project in self.projects if project["name"] == name]
            return Canned(body={"projects": found, "links": {}})
        if path.startswith("/v3/projects/"):
            wanted = path.rpartition("/")[2]
            for project in self.projects:
                if project["id"] == wanted:
                    return Canned(body={"project": project})
            return Canned(404, {"error": {"message": f"Could not find project: {wanted}."}})
        if path.rstrip("/") == "/placement":
            return Canned(body={"versions": [self._describe("v1.0", self.placement_version)]})
        if path.rstrip("/") == "/compute/v2.1":
            return Canned(body={"version": self._describe("v2.1", self.compute_version)})
        return Canned(404, {"itemNotFound": {"message": "no such page", "code": 404}})

    def _build_token(self) -> dict[str, t.Any]:
        catalog = self.catalog
        if catalog is None:
            catalog = [self.build_service("compute"), self.build_service("placement")]
            catalog.append(self.build_service("identity"))
        times = {"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z"}
        user = {"id": "1", "name": "u", "domain": {"id": "default", "name": "Default"}}
        token = {"methods": ["password"], "user": user, "catalog": catalog, **times}
        for kind, scope in self.scope.items():
            token[kind] = {**scope, "domain": {"id": "default", "name": "Default"}}
        return token

    def build_service(
        self, kind: str, region: str = "RegionOne", interface: str = "public"
    ) -> dict[str, t.Any]:
        """Return one service as a catalogue lists it."""
        paths = {"compute": "/compute/v2.1", "placement": "/placement", "identity": "/v3"}
        endpoint = {
            "id": kind,
            "interface": interface,
            "region": region,
            "region_id": region,
            "url": f"{self.address}{paths[kind]}",
        }
        return {"id": kind, "type": kind, "name": kind, "endpoints": [endpoint]}

    def _describe(self, name: str, newest: str) -> dict[str, t.Any]:
        page = "placement" if name == "v1.0" else "compute/v2.1"
        return {
            "id": name,
            "status": "CURRENT",
            "version": newest,
            "max_version": newest,
            "min_version": newest.partition(".")[0] + (".0" if name == "v1.0" else ".1"),
            "links": self._link(f"{self.address}/{page}"),
        }

    @staticmethod
    def _link(url: str) -> list[dict[str, str]]:
        return [{"rel": "self", "href": url}]
