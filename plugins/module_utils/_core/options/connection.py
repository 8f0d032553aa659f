# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The connection to a cloud. Names and meaning are those of openstack.cloud."""

from __future__ import annotations

from ..._common.options import Bool, Dict, Options, Path, Raw, Seconds, Text

_OF_ENVIRONMENT = "leave it out for that of the environment."


class ConnectionOptions(Options):
    cloud = Raw(secret=True, empty=_OF_ENVIRONMENT)
    """
    The name of the cloud in C(clouds.yaml), for example V(admin), or a whole cloud configuration as
    a dictionary.

    If neither O(cloud) nor O(auth) is set, the environment variables C(OS_CLOUD) and C(OS_*) select
    the cloud, as with every OpenStack client.
    """

    region_name = Text(empty=_OF_ENVIRONMENT)
    """
    The name of the region, for example V(RegionOne). By default, the region of the cloud
    configuration.
    """

    interface = Text(choices=("public", "internal", "admin"), aliases=["endpoint_type"])
    """
    The interface of the endpoints in the service catalogue. By default, that of the cloud
    configuration.
    """

    auth = Dict(secret=True)
    """
    The credentials, as a dictionary for the plugin that O(auth_type) names, such as C(auth_url),
    C(username), C(password) and C(project_name). By default, those of the cloud configuration.
    """

    auth_type = Text()
    """
    The name of the keystoneauth plugin that authenticates, for example V(password) or
    V(v3applicationcredential). By default, that of the cloud configuration.
    """

    ca_cert = Path(aliases=["cacert"])
    """
    The path of a CA bundle that verifies the certificates of the API endpoints. By default, that of
    the cloud configuration, or else the CAs of the system.
    """

    validate_certs = Bool(aliases=["verify"])
    """
    Whether the certificates of the API endpoints must be valid. They must by default, unless the
    cloud configuration says otherwise.
    """

    client_cert = Path(aliases=["cert"])
    """
    The path of a client certificate. By default, that of the cloud configuration, or none.
    """

    client_key = Path(secret=True, aliases=["key"])
    """
    The path of the key of the client certificate. By default, that of the cloud configuration, or
    none.
    """

    api_timeout = Seconds(120, lowest=1)
    """
    The number of seconds to wait for the response to one API request. A connection must be made
    within 10 of these seconds.
    """
