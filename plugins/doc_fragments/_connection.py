# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this doc fragment is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  cloud:
    description:
      - Name of the cloud in C(clouds.yaml), or a whole cloud configuration as a dictionary.
      - Without it and without O(auth), the environment variables
        C(OS_CLOUD) and C(OS_*) decide, as for every OpenStack client.
    type: raw
  auth:
    description:
      - Authentication data as the plugin in O(auth_type) takes it, such
        as C(auth_url), C(username), C(password) and C(project_name).
    type: dict
  auth_type:
    description:
      - Name of the keystoneauth plugin that authenticates.
    type: str
  region_name:
    description:
      - Name of the region.
    type: str
  interface:
    description:
      - Which of the catalogue's endpoints to use.
    type: str
    choices:
      - public
      - internal
      - admin
    aliases:
      - endpoint_type
  validate_certs:
    description:
      - Whether the certificates of the API endpoints must be valid.
        They must, unless the cloud's configuration says otherwise.
    type: bool
    aliases:
      - verify
  ca_cert:
    description:
      - Path of a CA bundle to verify the API endpoints with.
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
      - Path of the client certificate's key.
    type: path
    aliases:
      - key
  api_timeout:
    description:
      - Seconds to wait for an API's answer.
    type: int
    default: 120
requirements:
  - python >= 3.11
  - openstacksdk >= 1.0.0
notes:
  - Needs Placement 1.28 (Rocky) and compute 2.69 (Stein) or newer microversions, and a role that
    may read Placement and see the servers, hosts and migrations of all projects (admin by default).
"""
