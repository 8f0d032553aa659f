"""Answers of surveys as AWX writes them into a job: every text is `!unsafe`.

Each version of ansible-core treats such texts in its own way: from 2.19 on they are read as if they
had no quotes. The matrix runs these tests with each of them, so they import few packages.
"""

import typing as t
from collections.abc import Callable

import pytest

from .automation import PLAYBOOKS, ROOT, dump_extra_variables
from .strays import Strays
from .support import Ansible, Placement, Run

# Who evaluates it leaves a file.
COMMAND = '{{ lookup("ansible.builtin.pipe", "touch executed") }}'
# Ansible's own lines around the message of a failed task.
MAX_LINES = 60


@pytest.fixture
def run(ansible: Ansible) -> Callable[..., Run]:
    """Run a wrapper playbook of the pattern with the answers of a survey."""

    def one(playbook: str, answers: dict[str, t.Any]) -> Run:
        variables = ansible.folder / "extravars.yml"
        variables.write_text(dump_extra_variables(answers, {}), encoding="utf-8")
        return ansible.command(
            "ansible-playbook", str(ROOT / PLAYBOOKS / playbook), "-e", f"@{variables}"
        )

    return one


@pytest.mark.acceptance
def test_answers_choose_what_is_removed(run: Callable[..., Run], few: Strays) -> None:
    few.claim()
    named, *others = few.consumers
    answers = {
        "placement_hosts": "compute-1, compute-2",
        "orphan_cleanup_consumers": few.consumers,
        "orphan_cleanup_kinds": ["unknown_consumer"],
        "orphan_cleanup_remediate_kinds": ["unknown_consumer"],
        "orphan_cleanup_min_age": "0",
        "orphan_cleanup_unknown_min_age": "0s",
        "orphan_cleanup_max_changes": "2",
        "orphan_cleanup_max_share": "1.0",
        "orphan_cleanup_validate_certs": "no",
        "orphan_cleanup_fail_on": "never",
        "orphan_cleanup_report_formats": ["json"],
        # An object of JMESPath and a text that would be a template: both are data.
        "orphan_cleanup_select": f"[?consumer=='{named}'].{{id: id, note: '{COMMAND}'}}",
    }

    done = run("clean_up_orphans.yml", answers)

    assert done.status == 0, done.output
    assert few.held == others, done.output
    assert not (done.folder / "executed").exists()
    few.others_are_unchanged()


@pytest.mark.long
@pytest.mark.parametrize(
    ("answers", "sentences"),
    [
        pytest.param(
            {"placement_hosts": "{{ 7 * 7 }}"},
            ["neither Nova nor Placement knows {{ 7 * 7 }}."],
            marks=pytest.mark.acceptance,
            id="a template as a host",
        ),
        pytest.param(
            {"placement_hosts": "12345"},
            ["neither Nova nor Placement knows 12345.", "in quotes, in a survey too"],
            marks=pytest.mark.acceptance,
            id="a host of digits",
        ),
        pytest.param(
            {"orphan_cleanup_max_changes": "many"},
            ["orphan_cleanup_max_changes is 'many', which is not a whole number."],
            marks=pytest.mark.acceptance,
            id="a word as a number",
        ),
        pytest.param(
            {"orphan_cleanup_kinds": ["deleted_servers"]},
            ["not a known value; did you mean deleted_server?"],
            marks=pytest.mark.long,
            id="a kind that is misspelt",
        ),
        pytest.param(
            {"orphan_cleanup_select": "[?kind=='{{"},
            ["select is not a valid JMESPath expression"],
            marks=pytest.mark.long,
            id="a selection that is cut short",
        ),
        pytest.param(
            {"orphan_cleanup_consumers": ["{{ 7 * 7 }}"]},
            ["consumers: '{{ 7 * 7 }}' is not a valid UUID."],
            marks=pytest.mark.long,
            id="a template as a consumer",
        ),
        pytest.param(
            {"orphan_cleanup_validate_certs": "maybe"},
            ["orphan_cleanup_validate_certs is 'maybe', which is neither true nor false."],
            marks=pytest.mark.long,
            id="a word as a boolean",
        ),
    ],
)
def test_wrong_answer_is_refused_with_one_sentence(
    run: Callable[..., Run], placement: Placement, answers: dict[str, t.Any], sentences: list[str]
) -> None:
    """The sentences are those of ansible-core up to 2.18, and from 2.19 on."""
    before = placement.everything()

    refused = run("clean_up_orphans.yml", answers)

    assert refused.status != 0, refused.output
    assert any(sentence in refused.told for sentence in sentences), refused.output
    assert "Traceback" not in refused.output
    assert len(refused.output.splitlines()) <= MAX_LINES, refused.output
    assert not (refused.folder / "executed").exists()
    assert placement.everything() == before
