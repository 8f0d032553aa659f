"""The console blocks of a page, and the directives in comments above them.

A page is a story: its commands run in their order, in one shell. The comments say what a reader of
the page does not have to know:

<!-- before: COMMAND -->             run this first
<!-- names: PAGE = SCENARIO PATH --> on the page, PAGE stands for this value of a scenario's truth
<!-- names: PAGE = newest PATTERN --> or for the newest file of this name
<!-- shows: last 9 lines -->         the page shows this part of the last command's output
<!-- shows: from TEXT -->            or that output, from the first line with this text
<!-- exit: 2 -->                     the last command ends with this status
<!-- not run: REASON -->             the block cannot run in a test
"""

import dataclasses as d
import re
import typing as t

PROMPT = "$ "
OMITTED = "…"
_FENCE = "```"
_DIRECTIVE = re.compile(r"<!-- (before|names|shows|exit|not run): (.*) -->")
_LAST = re.compile(r"last (\d+) lines")

# What differs from run to run, and means the same.
_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b([0-9a-f]{8}|[0-9a-f]{32})\b"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "TIME"),
    (re.compile(r"journal-[\w.+-]*?\.jsonl"), "JOURNAL"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|m|h|d|seconds?|minutes?|hours?|days?)\b"), "AGE"),
    (re.compile(r"generation \d+"), "GENERATION"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    # Ansible fills the lines of its headings.
    (re.compile(r"\*{3,}"), "***"),
    (re.compile(r"\s+"), " "),
)


@d.dataclass
class Command:
    """One command with the output that the page shows."""

    text: str
    output: list[str] = d.field(default_factory=list)


@d.dataclass
class Block:
    """One fenced block, with the number of the line after its opening fence."""

    line: int
    commands: list[Command]
    # The directives `before` and `names`, in their order.
    setup: list[tuple[str, str]]
    shows: str
    status: int
    not_run: str


def read_blocks(page: str) -> list[Block]:
    """Return the console blocks of a page in their order."""
    blocks = []
    directives: list[tuple[str, str]] = []
    body: list[str] = []
    opening = ""
    for number, line in enumerate(page.splitlines(), start=1):
        if opening:
            if line == _FENCE:
                if opening == f"{_FENCE}console":
                    blocks.append(_make_block(number - len(body), body, directives))
                opening, directives, body = "", [], []
            else:
                body.append(line)
        elif line.startswith(_FENCE):
            opening = line
        elif found := _DIRECTIVE.fullmatch(line):
            directives.append((found[1], found[2]))
        elif line:
            directives = []
    return blocks


def _make_block(line: int, body: list[str], directives: list[tuple[str, str]]) -> Block:
    setup = [(key, value) for key, value in directives if key in ("before", "names")]
    single = dict(directives)
    return Block(
        line=line,
        commands=_read_commands(body),
        setup=setup,
        shows=single.get("shows", ""),
        status=int(single.get("exit", 0)),
        not_run=single.get("not run", ""),
    )


def _read_commands(body: list[str]) -> list[Command]:
    commands: list[Command] = []
    continued = False
    for line in body:
        if continued:
            commands[-1].text += f"\n{line}"
        elif line.startswith(PROMPT):
            commands.append(Command(line.removeprefix(PROMPT)))
        elif not commands:
            raise ValueError(f"A console block begins with '{PROMPT}', not with {line!r}.")
        else:
            commands[-1].output.append(line)
        continued = (continued or line.startswith(PROMPT)) and line.endswith("\\")
    return commands


def select_lines(output: str, shows: str) -> list[str]:
    """Return the part of an output that a page shows."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if shows == "everything":
        return lines
    if last := _LAST.fullmatch(shows):
        first = max(len(lines) - int(last[1]), 0)
    else:
        first = _find_line(lines, shows.removeprefix("from "))
    kept = lines[first:]
    while kept and not kept[0]:
        kept.pop(0)
    return [OMITTED, *kept] if first else kept


def _find_line(lines: list[str], text: str) -> int:
    for number, line in enumerate(lines):
        if text.lower() in line.lower():
            return number
    raise LookupError(f"No line of the output has {text!r}:\n" + "\n".join(lines))


def equal_outputs(shown: t.Sequence[str], printed: t.Sequence[str]) -> bool:
    """Return whether two outputs differ only in what differs from run to run."""
    return _normalize(shown) == _normalize(printed)


def _normalize(lines: t.Sequence[str]) -> str:
    text = "\n".join(lines)
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text


def replace_outputs(page: str, blocks: t.Sequence[Block]) -> str:
    """Return the page with the outputs of these blocks, which have the same commands as before."""
    lines = page.splitlines()
    # From the last block on, because the numbers of the lines before it stay the same.
    for block in sorted(blocks, key=lambda block: block.line, reverse=True):
        first = block.line - 1
        end = lines.index(_FENCE, first)
        lines[first:end] = _draw(block)
    return "\n".join(lines) + "\n"


def _draw(block: Block) -> list[str]:
    drawn = []
    for command in block.commands:
        drawn += f"{PROMPT}{command.text}".splitlines()
        drawn += command.output
    return drawn
