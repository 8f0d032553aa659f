"""A program `openstack` that knows the commands which findings print, and no other.

It takes the options of python-openstackclient and osc-placement, and sends the requests that those
send. A test runs the printed commands with it in a real shell, as an operator would.
"""

import argparse
import sys
import typing as t

import openstack


def main() -> int:
    connection = openstack.connect()
    arguments = _make_parser().parse_args()
    act: t.Callable[..., t.Any] = arguments.act
    reply = act(connection, arguments)
    if reply.status_code >= 300:
        sys.stderr.write(f"{reply.text} (HTTP {reply.status_code})\n")
        return 1
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("openstack", allow_abbrev=False)
    parser.add_argument("--os-placement-api-version", default="1.0")
    groups = parser.add_subparsers(required=True)
    provider = groups.add_parser("resource").add_subparsers(required=True).add_parser("provider")
    parts = provider.add_subparsers(required=True)
    setting = parts.add_parser("aggregate").add_subparsers(required=True).add_parser("set")
    setting.add_argument("--aggregate", action="append", default=[])
    setting.add_argument("--generation", type=int, required=True)
    setting.add_argument("uuid")
    setting.set_defaults(act=_set_aggregates)
    traits = parts.add_parser("trait").add_subparsers(required=True)
    listing = traits.add_parser("list")
    listing.add_argument("-f", choices=["value"], required=True)
    listing.add_argument("-c", choices=["name"], required=True)
    listing.add_argument("uuid")
    listing.set_defaults(act=_list_traits)
    setting = traits.add_parser("set")
    setting.add_argument("--trait", action="append", default=[])
    setting.add_argument("uuid")
    setting.set_defaults(act=_set_traits)
    setting = parts.add_parser("inventory").add_subparsers(required=True).add_parser("set")
    setting.add_argument("--amend", action="store_true", required=True)
    setting.add_argument("--resource", action="append", required=True)
    setting.add_argument("uuid")
    setting.set_defaults(act=_set_inventory)
    return parser


def _set_aggregates(connection: t.Any, arguments: argparse.Namespace) -> t.Any:
    return connection.placement.put(
        f"/resource_providers/{arguments.uuid}/aggregates",
        microversion=arguments.os_placement_api_version,
        json={
            "aggregates": arguments.aggregate,
            "resource_provider_generation": arguments.generation,
        },
    )


def _get_traits(connection: t.Any, arguments: argparse.Namespace) -> t.Any:
    return connection.placement.get(
        f"/resource_providers/{arguments.uuid}/traits",
        microversion=arguments.os_placement_api_version,
    )


def _list_traits(connection: t.Any, arguments: argparse.Namespace) -> t.Any:
    reply = _get_traits(connection, arguments)
    for trait in reply.json().get("traits", ()):
        print(trait)
    return reply


def _set_traits(connection: t.Any, arguments: argparse.Namespace) -> t.Any:
    before = _get_traits(connection, arguments).json()
    return connection.placement.put(
        f"/resource_providers/{arguments.uuid}/traits",
        microversion=arguments.os_placement_api_version,
        json={**before, "traits": arguments.trait},
    )


def _set_inventory(connection: t.Any, arguments: argparse.Namespace) -> t.Any:
    path = f"/resource_providers/{arguments.uuid}/inventories"
    inventories = connection.placement.get(path, microversion="1.26").json()
    for resource in arguments.resource:
        cls, _colon, assignment = resource.partition(":")
        field, _equals, value = assignment.partition("=")
        inventories["inventories"][cls][field] = float(value)
    return connection.placement.put(path, microversion="1.26", json=inventories)


if __name__ == "__main__":
    sys.exit(main())
