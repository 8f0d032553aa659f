# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lookups of what decides on the amounts of one server: its image, disks, ports and devices."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ..clients.accelerators import CyborgReader
from ..clients.block_storage import VolumeReader
from ..clients.neutron import NeutronReader
from ..clients.nova import NovaReader
from ..expected.inputs import find_root_volume, list_device_profiles
from ..expected.listed import compare_listed
from ..facts.server import ServerView
from ..models.nova import Server
from ..models.snapshot import NOT_ASKED, Evidence

if t.TYPE_CHECKING:  # pragma: no cover
    from .lookups import LookupContext


@d.dataclass(frozen=True)
class AmountLookups:
    """Asks Nova, Neutron, Cinder and Cyborg what a server requests."""

    nova: NovaReader
    neutron: NeutronReader
    volumes: VolumeReader
    cyborg: CyborgReader

    def add_evidence(self, view: ServerView, context: LookupContext) -> Evidence:
        """Return the evidence about a server, with the answers about its amounts if needed."""
        evidence = view.subject
        if view.own_tree is None or not _needs_amounts(view, context):
            return evidence
        uuid = evidence.uuid
        # Placement is read before Nova, so that a server that was just resized is seen resized.
        context.host_trees.get(view.own_tree)
        shape = self.nova.get_server_with_image_properties(uuid)
        evidence = d.replace(
            evidence,
            shape=shape,
            interfaces=self.nova.list_attached_port_uuids(uuid),
            server_ports=self.neutron.list_ports(uuid),
        )
        if shape.value is not None and (shape.value.volumes or not shape.value.image):
            evidence = self._add_volume_evidence(evidence, shape.value)
        return self._add_device_evidence(evidence, context)

    def _add_volume_evidence(self, evidence: Evidence, server: Server) -> Evidence:
        """Look up from which volume a server boots, if from any."""
        uuid = evidence.uuid
        evidence = d.replace(evidence, attachments=self.nova.list_attachments(uuid))
        # Of a server with an image Nova itself shows the properties.
        if server.image:
            return evidence
        if evidence.actions == NOT_ASKED:
            evidence = d.replace(evidence, actions=self.nova.list_instance_actions(uuid))
        volume = find_root_volume(server, evidence.attachments.value)
        if volume is None:
            return evidence
        return d.replace(evidence, root_volume=self.volumes.get_root_volume(volume))

    def _add_device_evidence(self, evidence: Evidence, context: LookupContext) -> Evidence:
        """Look up the device profiles that the flavor and the ports of a server name."""
        server = evidence.server.value
        specs = None
        if server is not None and server.flavor is not None:
            specs = server.flavor.extra_specs
        names = list_device_profiles(specs, evidence.server_ports.value or ())
        if not names:
            return evidence
        return d.replace(
            evidence,
            device_profiles=tuple(map(context.device_profiles.get, names)),
            accelerators=self.cyborg.list_accelerator_requests(evidence.uuid),
        )


def _needs_amounts(view: ServerView, context: LookupContext) -> bool:
    """Return whether more has to be read about a server to decide on its allocation.

    That is so for a settled server whose allocation on its host is not just what its flavor says.
    """
    server, own, allocation = view.server, view.own_tree, view.subject.allocation.value
    if server is None or own is None or allocation is None or not view.settled:
        return False
    if own not in view.server_trees:
        return True
    if not view.has_only_own_tree(context.nova_roots):
        return False
    listed = context.listed_amounts
    # The listing has the properties of its image, which the direct lookup lacks.
    if not context.fresh and listed.candidates.get(server.uuid) == "":
        return False
    is_named = not context.fresh and server.uuid in context.scope.consumers
    if context.with_amounts or is_named or server.uuid in listed.differing:
        return True
    # On which of several providers the amounts have to be, only the tree of the host shows.
    if view.server_trees[own] != {own}:
        return True
    return not compare_listed(server, allocation.resources, context.pci_aliases).fits
