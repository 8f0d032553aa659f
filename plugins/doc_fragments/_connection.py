# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - The name of the cloud in C(clouds.yaml), for example V(admin), or a whole cloud
        configuration as a dictionary.
      - If neither O(cloud) nor O(auth) is set, the environment variables C(OS_CLOUD) and C(OS_*)
        select the cloud, as with every OpenStack client.
    type: raw
  region_name:
    description:
      - The name of the region, for example V(RegionOne). By default, the region of the cloud
        configuration.
    type: str
  interface:
    description:
      - The interface of the endpoints in the service catalogue. By default, that of the cloud
        configuration.
    type: str
    choices:
      - public
      - internal
      - admin
    aliases:
      - endpoint_type
  auth:
    description:
      - The credentials, as a dictionary for the plugin that O(auth_type) names, such as
        C(auth_url), C(username), C(password) and C(project_name). By default, those of the cloud
        configuration.
    type: dict
  auth_type:
    description:
      - The name of the keystoneauth plugin that authenticates, for example V(password) or
        V(v3applicationcredential). By default, that of the cloud configuration.
    type: str
  ca_cert:
    description:
      - The path of a CA bundle that verifies the certificates of the API endpoints. By default,
        that of the cloud configuration, or else the CAs of the system.
    type: path
    aliases:
      - cacert
  validate_certs:
    description:
      - Whether the certificates of the API endpoints must be valid. They must by default, unless
        the cloud configuration says otherwise.
    type: bool
    aliases:
      - verify
  client_cert:
    description:
      - The path of a client certificate. By default, that of the cloud configuration, or none.
    type: path
    aliases:
      - cert
  client_key:
    description:
      - The path of the key of the client certificate. By default, that of the cloud configuration,
        or none.
    type: path
    aliases:
      - key
  api_timeout:
    description:
      - The number of seconds to wait for the response to one API request. A connection must be made
        within 10 of these seconds.
    type: int
    default: 120
requirements:
  - python >= 3.11
  - openstacksdk >= 1.0.0
notes:
  - Requires Placement 1.28 (Rocky) and compute 2.69 (Stein) or newer microversions, and a role
    that can read Placement and see the servers, hosts and migrations of all projects (admin by
    default).
"""
