"""What the role `host_decommission` hands to the filter that writes its last lines."""

from __future__ import annotations

from pathlib import Path

import yaml
from jinja2 import Environment, nodes

ROOT = Path(__file__).parents[3]
VARIABLES = ROOT / "roles" / "host_decommission" / "vars" / "main.yml"
FILTER = ROOT / "plugins" / "filter" / "host_result.yml"


def test_the_role_passes_everything_that_its_result_is_made_of() -> None:
    """With the default of an option, a host that is gone could be shown as failed."""
    variables = yaml.safe_load(VARIABLES.read_text(encoding="utf-8"))
    options = yaml.safe_load(FILTER.read_text(encoding="utf-8"))["DOCUMENTATION"]["options"]
    parsed = Environment(autoescape=True).parse(variables["_host_decommission_result"])

    (used,) = (
        part for part in parsed.find_all(nodes.Filter) if part.name == "osops.placement.host_result"
    )

    optional = {name for name, option in options.items() if not option.get("required")}
    assert {argument.key for argument in used.kwargs} == optional
