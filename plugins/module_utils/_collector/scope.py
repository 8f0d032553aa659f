# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user wants to have looked at: the options that `doc_fragments/_scope.py` documents, and
what they mean.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import (
    normalize_uuid,
    require_uuid,
)
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import KINDS
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope, Shard

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

MAX_SHARDS = 256


def scope_options() -> dict[str, dict[str, t.Any]]:
    return {
        "hosts": {"type": "list", "elements": "str", "default": []},
        "consumers": {"type": "list", "elements": "str", "default": []},
        "projects": {"type": "list", "elements": "str", "default": []},
        "kinds": {
            "type": "list",
            "elements": "str",
            "default": [],
            "choices": [kind.name for kind in KINDS],
        },
        "mode": {"type": "str", "default": "full", "choices": ["full", "triage"]},
        "shard": {"type": "str"},
    }


def parse_scope(options: Mapping[str, t.Any]) -> Scope:
    """Return the scope that the options describe. Raises InvalidInput for what is no UUID or shard,
    and for what cannot go together.
    """
    chosen = Scope(
        hosts=tuple(sorted({normalize_uuid(name) or name for name in options["hosts"]})),
        consumers=tuple(
            sorted({require_uuid(text, "consumers:") for text in options["consumers"]})
        ),
        # Keystone writes the uuids of projects without dashes.
        projects=tuple(sorted({text.replace("-", "") for text in options["projects"]})),
        kinds=tuple(options["kinds"]),
        mode=options["mode"],
        shard=_parse_shard(options["shard"]) if options["shard"] else None,
    )
    if chosen.is_narrow and chosen.mode == "triage":
        raise InvalidInput(
            "mode=triage is for whole clouds: what hosts or consumers name is always looked at "
            "in full."
        )
    if chosen.is_narrow and chosen.shard:
        raise InvalidInput(
            f"shard={chosen.shard} is a part of a whole cloud: what hosts or consumers name is "
            "not cut into shards."
        )
    if chosen.mode == "triage" and chosen.shard:
        raise InvalidInput(
            f"shard={chosen.shard} cannot go with mode=triage, which reads only few hosts anyway: "
            "who claims a share of another one would be "
            "left to a shard that does not look there."
        )
    return chosen


def _parse_shard(text: str) -> Shard:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text.strip())
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count <= MAX_SHARDS:
        raise InvalidInput(
            f"shard={text!r} is none: give its number and how many there are, such as 2/8 (at "
            f"most {MAX_SHARDS})."
        )
    return Shard(number, count)
