#!/usr/bin/python
# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphan_summary
short_description: Summarize the runs over several clouds, regions or shards
version_added: 1.0.0
description:
  - Reads the files that M(osops.placement.orphan_detect) and M(osops.placement.orphan_remediate)
    wrote for each of several clouds, regions or shards, and adds them up.
  - It sends no request to any cloud. A run that failed is part of the summary, and does not make
    this module fail.
  - M(osops.placement.orphan_report) draws the summary.
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
    description: The runs, in the order of the summary.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The name of the run, such as the name of an inventory host.
        type: str
        required: true
      region:
        description: The region, for a run without findings. Findings name their region themselves.
        type: str
      shard:
        description: The shard, for a run without findings. Findings name their shard themselves.
        type: str
      error:
        description: The message that the run failed with. Empty if the run did not fail.
        type: str
        default: ''
      findings:
        description: Path of the findings that the run wrote.
        type: path
      remediation:
        description: Path of the C(remediation.json) that the run wrote.
        type: path
  dest:
    description: Path of a file for the summary, which is written as JSON with mode 0600. Without it
      no file is written.
    type: path
seealso:
  - module: osops.placement.orphan_detect
  - module: osops.placement.orphan_remediate
  - module: osops.placement.orphan_report
"""

EXAMPLES = r"""
---
- name: Summarize two regions
  osops.placement.orphan_summary:
    runs:
      - name: north
        findings: /var/lib/placement/north/findings.json
        remediation: /var/lib/placement/north/remediation.json
      - name: south
        error: Nova cannot be reached.
    dest: /var/lib/placement/summary.json
  register: summarized

- name: Show the summary
  osops.placement.orphan_report:
    summary: "{{ summarized.dest }}"

- name: Fail when one of the runs failed
  ansible.builtin.assert:
    that: summarized.failures | length == 0
    fail_msg: "{{ summarized.failures | join(' ') }}"
"""

RETURN = r"""
summary:
  description:
    - C(complete) says whether every run ended well after a sound reading. C(totals) has the sums of
      what each of C(runs) has - C(verdicts), C(kinds), C(stranded) (by resource class), C(tally)
      (outcomes of changes) and C(coverage).
    - C(missing_shards) names the shards of a cloud that are not among the runs, if other shards of
      that cloud are.
  returned: success
  type: dict
  sample:
    complete: false
    totals:
      verdicts:
        orphaned: 12
failures:
  description: A message for each run that failed.
  returned: success
  type: list
  elements: str
  sample:
    - "south: Nova cannot be reached."
dest:
  description: Path of the file with the summary.
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
    list_failures,
    summarize_runs,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.validation import (
    validate_document,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping


def work(module: AnsibleModule) -> dict[str, t.Any]:
    summary = summarize_runs([_read_run(run) for run in module.params["runs"]])
    dest = module.params["dest"]
    if dest:
        write_json(dest, summary)
    result = {
        "changed": False,
        "summary": summary,
        "failures": list_failures(summary),
    }
    if dest:
        result["dest"] = dest
    return result


def _read_run(run: Mapping[str, t.Any]) -> RunResult:
    """Return one run with its files; a file that is not valid counts as an error of the run."""
    documents: dict[str, t.Any] = {}
    paths = {part: run[part] for part in ("findings", "remediation") if run[part]}
    errors = []
    if run["error"]:
        errors.append(run["error"])
    for part, path in paths.items():
        try:
            documents[part] = validate_document(part, read_json(path), path)
        except InvalidInput as error:
            errors.append(str(error))
    return RunResult(
        run["name"],
        run["region"] or None,
        run["shard"] or None,
        " ".join(errors),
        paths=paths,
        **documents,
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
