# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the user wants to have looked at: the options that `doc_fragments/_scope.py` documents, and what they mean."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._judge import KINDS
from ansible_collections.osops.placement.plugins.module_utils._model import Scope
from ansible_collections.osops.placement.plugins.module_utils._uuid import canonical, required

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping


def scope_options() -> dict[str, dict[str, t.Any]]:
    return {
        "hosts": {"type": "list", "elements": "str", "default": []},
        "consumers": {"type": "list", "elements": "str", "default": []},
        "projects": {"type": "list", "elements": "str", "default": []},
        "kinds": {"type": "list", "elements": "str", "default": [], "choices": [kind.name for kind in KINDS]},
        "mode": {"type": "str", "default": "full", "choices": ["full", "triage"]},
    }


def scope(options: Mapping[str, t.Any]) -> Scope:
    """Return the scope that the options describe. Raises InvalidInput for what is no UUID, and for a triage of named things."""
    chosen = Scope(
        hosts=tuple(sorted({canonical(name) or name for name in options["hosts"]})),
        consumers=tuple(sorted({required(text, "consumers:") for text in options["consumers"]})),
        # Keystone writes the uuids of projects without dashes.
        projects=tuple(sorted({text.replace("-", "") for text in options["projects"]})),
        kinds=tuple(options["kinds"]),
        mode=options["mode"],
    )
    if chosen.narrow and chosen.mode == "triage":
        raise InvalidInput("mode=triage is for whole clouds: what hosts or consumers name is always looked at in full.")
    return chosen
