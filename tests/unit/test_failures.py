import pytest

from ..failures import LONGEST_LINE, summarize

NEW_ANSIBLE = """AssertionError:
  PLAY [Find orphaned allocations] ***
  TASK [Show the result] ***
  [ERROR]: Task failed: Action failed: select is not a valid JMESPath expression
  Origin: /somewhere
assert 2 == 0
 +  where 2 = Run(status=2, output='...').status"""
OLD_ANSIBLE = """AssertionError:
  TASK [Show the result] ***
  fatal: [localhost]: FAILED! => {"changed": false, "msg": "host \\"x\\" is unknown"}
assert 2 == 0"""


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (NEW_ANSIBLE, "assert 2 == 0: select is not a valid JMESPath expression"),
        (OLD_ANSIBLE, 'assert 2 == 0: host "x" is unknown'),
        (
            "assert {'a': 1} == {'a': 2}\n\n  Differing items:\n  {'a': 1} != {'a': 2}\n  Use -v",
            "assert {'a': 1} == {'a': 2}: Differing items: {'a': 1} != {'a': 2}",
        ),
        (
            "AssertionError: assert [3] == [4]\n  \n  At index 0 diff: 3 != 4\n  Use -v to",
            "assert [3] == [4]: At index 0 diff: 3 != 4",
        ),
        ("AssertionError: the host is gone\nassert not [1]", "assert not [1]: the host is gone"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("assert False\n +  where False = all(<generator>)", "assert False"),
        ("", "no message"),
    ],
)
def test_message_becomes_one_line(message: str, told: str) -> None:
    assert summarize(message) == told


def test_line_is_short_and_printable() -> None:
    told = summarize("assert x\n[ERROR]: \x1b[31m" + "red " * 1000)

    assert len(told) <= LONGEST_LINE
    assert told.isprintable()
