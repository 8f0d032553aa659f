"""Several runs of the role `orphan_cleanup` in one play: none uses what another one left."""

import typing as t

import pytest

from .strays import Strays
from .support import Ansible

CLEANUP = {
    "orphan_cleanup_min_age": "0",
    "orphan_cleanup_unknown_min_age": "0",
    "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
    "orphan_cleanup_max_share": 1.0,
}
# A template that only fails when the task of a module needs it.
BROKEN = {"_orphan_cleanup_policy": "{{ defined_nowhere }}"}


def _run(entry_point: str = "main", **variables: t.Any) -> dict[str, t.Any]:
    role = {"name": "osops.placement.orphan_cleanup", "tasks_from": entry_point}
    return {"ansible.builtin.include_role": role, "vars": {**CLEANUP, **variables}}


def _rescue(run: dict[str, t.Any]) -> dict[str, t.Any]:
    said = {"ansible.builtin.debug": {"msg": "The first run ends here."}}
    return {"block": [run], "rescue": [said]}


def _keep(**facts: t.Any) -> dict[str, t.Any]:
    return {"ansible.builtin.set_fact": facts}


@pytest.mark.long
def test_failure_of_one_run_is_not_that_of_the_next(ansible: Ansible, strays: Strays) -> None:
    one = strays.consumers[0]

    done = ansible.play(
        {
            "tasks": [
                _rescue(_run(orphan_cleanup_consumers=[one], **BROKEN)),
                _run(orphan_cleanup_consumers=[one]),
            ]
        }
    )

    first, _task, second = done.output.partition("The first run ends here.")
    assert done.status == 0 and strays.held == strays.consumers[1:], done.output
    assert "defined_nowhere" in first and "defined_nowhere" not in second
    assert "Outcome: 1 removed." in second


@pytest.mark.long
def test_findings_of_more_than_is_named_now_are_not_changed(
    ansible: Ansible, strays: Strays
) -> None:
    one = strays.consumers[0]
    named = {"orphan_cleanup_consumers": [one]}

    done = ansible.play({"tasks": [_run("detect"), _run("remediate", **named)]})

    assert done.status != 0 and strays.held == strays.consumers, done.output
    refusal = "The findings are not only about the consumers that are named now"
    assert refusal in done.told and done.output.count("fatal:") == 1, done.output

    done = ansible.play({"tasks": [_run("detect", **named), _run("remediate", **named)]})

    assert done.status == 0 and strays.held == strays.consumers[1:], done.output


@pytest.mark.long
def test_each_run_applies_exactly_its_own_plan(ansible: Ansible, strays: Strays) -> None:
    """The last run comes after one by another plan, and one that failed."""
    one, other, _kept = strays.consumers
    planned = "{{ _orphan_cleanup_planned.packed }}"

    done = ansible.play(
        {
            "tasks": [
                _run("detect", orphan_cleanup_consumers=[one]),
                _keep(plan_of_one=planned),
                _run("detect", orphan_cleanup_consumers=[other]),
                _keep(plan_of_other=planned),
                _run(orphan_cleanup_plan="{{ plan_of_one }}"),
                # The results of that run are now those of a plan that was applied.
                _rescue(_run(orphan_cleanup_plan="{{ plan_of_other }}", **BROKEN)),
                _run(orphan_cleanup_plan="{{ plan_of_other }}"),
            ]
        }
    )

    assert done.status == 0 and strays.held == strays.consumers[2:], done.output
    earlier, _task, last = done.output.partition("The first run ends here.")
    assert earlier.count("Outcome: 1 removed.") == 1 and one[:8] in earlier
    assert last.count("Outcome: 1 removed.") == 1 and other[:8] in last
