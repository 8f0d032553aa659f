# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - Name of the cloud in C(clouds.yaml), for example V(admin), or a whole cloud configuration
        as a dictionary.
      - If neither O(cloud) nor O(auth) is set, the environment variables C(OS_CLOUD) and C(OS_*)
        are used, as with every OpenStack client.
    type: raw
  auth:
    description:
      - Authentication data in the form that the plugin in O(auth_type) takes, such as
        C(auth_url), C(username), C(password) and C(project_name).
    type: dict
  auth_type:
    description:
      - Name of the keystoneauth plugin that authenticates, for example V(password) or
        V(v3applicationcredential).
      - If it is not set, the configuration of the cloud decides.
    type: str
  region_name:
    description:
      - Name of the region, for example V(RegionOne).
      - If it is not set, the configuration of the cloud decides.
    type: str
  interface:
    description:
      - Which endpoints of the service catalogue to use.
      - If it is not set, the configuration of the cloud decides.
    type: str
    choices:
      - public
      - internal
      - admin
    aliases:
      - endpoint_type
  validate_certs:
    description:
      - Whether to verify the TLS certificates of the API endpoints.
      - If it is not set, the configuration of the cloud decides, and certificates are verified by
        default.
    type: bool
    aliases:
      - verify
  ca_cert:
    description:
      - Path of a CA bundle that verifies the certificates of the API endpoints.
    type: path
    aliases:
      - cacert
  client_cert:
    description:
      - Path of a client certificate.
    type: path
    aliases:
      - cert
  client_key:
    description:
      - Path of the key of the client certificate.
    type: path
    aliases:
      - key
  api_timeout:
    description:
      - How many seconds to wait for the answer to one API request, more than 0. A connection must
        be made within 10 of these seconds.
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
