"""Checks of pages: all shell blocks of a page are run in one shell, and their output is compared with the page.

A `text` block after an `sh` block is its output, including standard error; a line `...` stands for any number of
lines.  Numbers may differ by `TOLERANCE`, times by any amount.  If `<!-- varies -->` precedes a block of output, half
of its lines suffice: which phrases a model trained on little data finds is random.
"""

import re
import subprocess
from dataclasses import dataclass

TOLERANCE = 0.15
ELISION = "..."
# Absolute tolerance for numbers such as similarities and for those near zero.
_CLOSE = 0.1
_BLOCK = re.compile(
    r"(?P<varies><!-- varies -->\n)?^```(?P<kind>sh|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
# Values that vary between runs: differences of BLEU and their p-values, durations, the hash of a model.
_CHANCE = re.compile(r"[-+±]\d+\.\d+(?: +\d\.\d+)?|\d+(?:\.\d+)? s\b|-[0-9a-f]{8}\b")


@dataclass
class Block:
    """Commands, and their output as printed on the page.

    Attributes:
        commands: text of the shell block.
        output: lines of the output block that follows it; None without one.
        varies: whether up to half of the lines may differ.
    """

    commands: str
    output: list[str] | None = None
    varies: bool = False


def blocks(page):
    """Return the shell blocks of a page, in order."""
    collected = []
    for match in _BLOCK.finditer(page):
        if match["kind"] == "sh":
            collected.append(Block(match["text"]))
        elif collected and collected[-1].output is None:
            collected[-1].output, collected[-1].varies = match["text"].splitlines(), bool(match["varies"])
    return collected


def run(found, cwd, env, timeout):
    """Run blocks one after another in one shell; return the output lines of each.

    Raises:
        AssertionError: a command fails.
    """
    mark = "== end of a block =="
    script = "set -e\n" + "".join(f"{block.commands}echo '{mark}'\n" for block in found)
    outcome = subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=env, timeout=timeout, check=False, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stdout
    parts = outcome.stdout.split(f"{mark}\n")
    assert len(parts) == len(found) + 1, outcome.stdout
    return [part.splitlines() for part in parts[:-1]]


def words_of(line):
    """Return a line with its numbers replaced by `#`."""
    return " ".join(_NUMBER.sub("#", _CHANCE.sub("#", line)).split())


def same(printed, real):
    """Return whether a line of a page equals an output line within the tolerances."""
    if words_of(printed) != words_of(real):
        return False
    numbers = ([float(n.replace(",", "")) for n in _NUMBER.findall(_CHANCE.sub("#", line))] for line in (printed, real))
    return all(abs(a - b) <= max(TOLERANCE * abs(a), _CLOSE) for a, b in zip(*numbers, strict=True))


def matches(printed, real):
    """Return whether lines of a page match the output lines; `...` stands for any number of lines."""
    if not printed:
        return not real
    if printed[0] == ELISION:
        return any(matches(printed[1:], real[skipped:]) for skipped in range(len(real) + 1))
    return bool(real) and same(printed[0], real[0]) and matches(printed[1:], real[1:])


def is_right(block, real):
    """Return whether the output printed for a block matches its real output."""
    if block.output is None:
        return True
    if not block.varies:
        return matches(block.output, real)
    real_lines = {words_of(line) for line in real}
    printed = [words_of(line) for line in block.output if line != ELISION]
    return sum(line in real_lines for line in printed) * 2 >= len(printed)
