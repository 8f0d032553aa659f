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
    details: This module changes nothing in a cloud.
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
  contains:
    format:
      description: Version of the format.
      returned: success
      type: int
      sample: 1
    complete:
      description: Whether there is at least one run, and every run succeeded after a sound
        reading.
      returned: success
      type: bool
      sample: false
    totals:
      description: The sums over all runs.
      returned: success
      type: dict
      contains:
        verdicts:
          description: Number of findings by verdict.
          returned: success
          type: dict
          sample:
            orphaned: 12
        kinds:
          description: Number of findings by kind.
          returned: success
          type: dict
          sample:
            deleted_server: 12
        stranded:
          description: Stranded amounts by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 24
        tally:
          description: Number of changes by outcome; empty without a remediation.
          returned: success
          type: dict
          sample:
            removed: 12
        coverage:
          description: 'How much was read: numbers of C(providers), C(hypervisors), C(servers) and
            C(consumers).'
          returned: success
          type: dict
          sample:
            providers: 40
        unjudged_hosts:
          description: Number of hosts that were not judged. A host that several shards name
            counts once.
          returned: success
          type: int
          sample: 0
    runs:
      description: The runs, in the order in which they were given.
      returned: success
      type: list
      elements: dict
      contains:
        name:
          description: Name of the run.
          returned: success
          type: str
          sample: north
        region:
          description: Region; V(null) without one.
          returned: success
          type: str
          sample: RegionOne
        placement_endpoint:
          description: The Placement service; V(null) for a run without findings.
          returned: success
          type: str
          sample: http://203.0.113.10/placement
        shard:
          description: Shard; V(null) for a run on a whole cloud.
          returned: success
          type: str
        error:
          description: The error of the run; empty if it succeeded.
          returned: success
          type: str
          sample: ''
        complete:
          description: Whether the reading was sound and all cells answered.
          returned: success
          type: bool
          sample: true
        failed_checks:
          description: Why the reading was not sound, one sentence each.
          returned: success
          type: list
          elements: str
          sample: []
        partial:
          description: Whether some hosts were not judged because their cell did not answer.
          returned: success
          type: bool
          sample: false
        unjudged_hosts:
          description: Names of the hosts that were not judged because their cell did not answer.
          returned: success
          type: list
          elements: str
          sample: []
        finished_at:
          description: When detection finished, in UTC; V(null) for a run without findings.
          returned: success
          type: str
          sample: '2026-11-20T03:04:05Z'
        check_mode:
          description: Whether remediation ran in check mode; V(null) without a remediation.
          returned: success
          type: bool
          sample: false
        journal:
          description: Path of the journal; V(null) without one.
          returned: success
          type: str
        findings:
          description: Path of the findings; V(null) without one.
          returned: success
          type: str
          sample: /var/lib/placement/north/findings.json
        remediation:
          description: Path of C(remediation.json); V(null) without one.
          returned: success
          type: str
          sample: /var/lib/placement/north/remediation.json
        verdicts:
          description: Number of findings by verdict.
          returned: success
          type: dict
          sample:
            orphaned: 12
        kinds:
          description: Number of findings by kind.
          returned: success
          type: dict
          sample:
            deleted_server: 12
        stranded:
          description: Stranded amounts by resource class.
          returned: success
          type: dict
          sample:
            VCPU: 24
        tally:
          description: Number of changes by outcome; empty without a remediation.
          returned: success
          type: dict
          sample:
            removed: 12
        coverage:
          description: 'How much was read: numbers of C(providers), C(hypervisors), C(servers) and
            C(consumers).'
          returned: success
          type: dict
          sample:
            providers: 40
    missing_shards:
      description: The clouds of which some shards are among the runs and others are not.
      returned: success
      type: list
      elements: dict
      contains:
        placement_endpoint:
          description: The Placement service of the cloud.
          returned: success
          type: str
          sample: http://203.0.113.10/placement
        region:
          description: Region of the cloud; V(null) without one.
          returned: success
          type: str
          sample: RegionOne
        shards:
          description: The missing shards.
          returned: success
          type: list
          elements: str
          sample:
            - 3/8
      sample: []
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
from collections.abc import Mapping

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import InvalidInput
from ..module_utils._common.json_files import read_json, write_json
from ..module_utils._common.runner import run_offline
from ..module_utils._core.findings.summary import RunResult, list_failures, summarize_runs
from ..module_utils._core.findings.validation import validate_document

_FILES = ("findings", "remediation")


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
    }
    if dest:
        result["dest"] = dest
    return result


def _read_run(run: Mapping[str, t.Any]) -> RunResult:
    """Return one run with its files; a file that is not valid counts as an error of the run."""
    paths: dict[t.Any, str] = {name: run[name] for name in _FILES if run[name]}
    documents = {}
    errors = []
    if run["error"]:
        errors.append(run["error"])
    # One by one: a file that is not valid must not hide the other.
    for name, path in paths.items():
        try:
            documents[name] = validate_document(name, read_json(path), path)
        except InvalidInput as error:
            errors.append(str(error))
    return RunResult(
        run["name"],
        # An empty text is what a template gives for a variable that is not set.
        run["region"] or None,
        run["shard"] or None,
        " ".join(errors),
        documents.get("findings"),
        documents.get("remediation"),
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
