#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_summary
short_description: Add up what the runs over several clouds, regions or shards found
version_added: 1.0.0
description:
  - Reads what M(osops.placement.orphan_detect) and M(osops.placement.orphan_remediate) wrote for
    each of several clouds, regions or shards, and tells it as one, with a row for each.
  - No cloud is asked, and a run that failed is told and is no error here.
author:
  - osops.placement contributors (@osops)
extends_documentation_fragment:
  - osops.placement._attributes
attributes:
  check_mode:
    support: full
    details: The summary is written in check mode too.
  diff_mode:
    support: N/A
    details: Nothing of a cloud is changed.
  idempotent:
    support: full
options:
  runs:
    description: The runs, in the order in which they are told.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: What it goes by, such as the name of an inventory host.
        type: str
        required: true
      region:
        description: Its region, where it came to no findings that tell it.
        type: str
      shard:
        description: Its shard, where it came to no findings that tell it.
        type: str
      error:
        description: What it failed with; empty when it ended well.
        type: str
        default: ''
      findings:
        description: Path of the findings that it wrote.
        type: path
      remediation:
        description: Path of the C(remediation.json) that it wrote.
        type: path
  dest:
    description: Where to write the summary, as JSON of mode 0600.
    type: path
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_remediate
"""

EXAMPLES = r"""
---
- name: Tell of two regions together
  osops.placement.orphan_summary:
    runs:
      - name: north
        findings: /var/lib/placement/north/findings.json
        remediation: /var/lib/placement/north/remediation.json
      - name: south
        error: Nova cannot be reached.
    dest: /var/lib/placement/summary.json
  register: together

- name: Fail when one of them failed
  ansible.builtin.assert:
    that: together.failures | length == 0
    fail_msg: "{{ together.failures | join(' ') }}"
"""

RETURN = r"""
summary:
  description:
    - C(complete) tells whether every run ended well after a sound reading. C(totals) has the sums
      of what each of C(runs) has - C(verdicts), C(kinds), C(stranded) (by resource class), C(tally)
      (outcomes of changes) and C(coverage).
    - C(missing_shards) names the shards of a cloud that are not among the runs, while others of it
      are.
  returned: success
  type: dict
  sample:
    complete: false
    totals:
      verdicts:
        orphaned: 12
failures:
  description: What each run failed with that did.
  returned: success
  type: list
  elements: str
  sample:
    - "south: Nova cannot be reached."
table:
  description: The summary as lines, to be shown.
  returned: success
  type: list
  elements: str
  sample:
    - "       orphaned  drifted  protected  undecided  changed"
dest:
  description: The file that the summary was written to.
  returned: when O(dest) is given
  type: str
  sample: /var/lib/placement/summary.json
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.json_files import (
    read_json,
    write_json,
)
from ansible_collections.osops.placement.plugins.module_utils._common.runner import run_offline
from ansible_collections.osops.placement.plugins.module_utils._findings.summary import (
    RunResult,
    format_table,
    list_failures,
    summarize_runs,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
    validate_document,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
        FindingsDocument,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        RemediationDocument,
    )


def work(module: AnsibleModule) -> dict[str, t.Any]:
    summary = summarize_runs([_read_run(run) for run in module.params["runs"]])
    dest = module.params["dest"]
    # Written in check mode too: a summary changes nothing.
    if dest:
        write_json(dest, summary)
    result = {
        "changed": False,
        "summary": summary,
        "failures": list_failures(summary),
        "table": format_table(summary),
    }
    if dest:
        result["dest"] = dest
    return result


def _read_run(run: Mapping[str, t.Any]) -> RunResult:
    """Return one run with its files; a file that is not valid counts as an error of the run."""
    paths = {part: run[part] for part in ("findings", "remediation") if run[part]}
    findings: FindingsDocument | None = None
    remediation: RemediationDocument | None = None
    errors = []
    if run["error"]:
        errors.append(run["error"])
    # One by one: a file that is not valid must not hide the other.
    try:
        if "findings" in paths:
            path = paths["findings"]
            findings = validate_document("findings", read_json(path), path)
    except InvalidInput as error:
        errors.append(str(error))
    try:
        if "remediation" in paths:
            path = paths["remediation"]
            remediation = validate_document("remediation", read_json(path), path)
    except InvalidInput as error:
        errors.append(str(error))
    return RunResult(
        run["name"],
        # An empty text is what a template gives for a variable that is not set.
        run["region"] or None,
        run["shard"] or None,
        " ".join(errors),
        findings,
        remediation,
        paths,
    )


def main() -> None:
    run = {
        "name": {"type": "str", "required": True},
        "region": {"type": "str"},
        "shard": {"type": "str"},
        "error": {"type": "str", "default": ""},
        "findings": {"type": "path"},
        "remediation": {"type": "path"},
    }
    argument_spec = {
        "runs": {"type": "list", "elements": "dict", "required": True, "options": run},
        "dest": {"type": "path"},
    }
    run_offline(AnsibleModule(argument_spec, supports_check_mode=True), work)


if __name__ == "__main__":
    main()
