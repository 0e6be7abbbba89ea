"""Pages whose commands are run: their shell blocks, literally and in one shell, and the outputs printed behind them.

A block of `sh` is run.  A block of `text` behind it is its output, standard error included; a line `...` stands for
any number of lines.  Numbers may differ by `TOLERANCE`, times by anything.  Where `<!-- varies -->` stands before a
block of output, it is enough if half of its lines are there: which phrases a model trained on little data finds is
chance.
"""

import re
import subprocess
from dataclasses import dataclass

TOLERANCE = 0.15
ELISION = "..."
# Of numbers such as similarities, and of what is nearly zero.
_CLOSE = 0.1
_BLOCK = re.compile(
    r"(?P<varies><!-- varies -->\n)?^```(?P<kind>sh|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
# Values that vary by chance: differences of BLEU and their p-values, durations, the name of the model.
_CHANCE = re.compile(r"[-+±]\d+\.\d+(?: +\d\.\d+)?|\d+(?:\.\d+)? s\b|-[0-9a-f]{8}\b")


@dataclass
class Block:
    """Commands, and what is printed of their output.

    Attributes:
        commands: of one block.
        output: the lines printed behind it; None if nothing is.
        varies: whether its words may differ.
    """

    commands: str
    output: list[str] | None = None
    varies: bool = False


def blocks(page):
    """The blocks of a page, in order."""
    collected = []
    for match in _BLOCK.finditer(page):
        if match["kind"] == "sh":
            collected.append(Block(match["text"]))
        elif collected and collected[-1].output is None:
            collected[-1].output, collected[-1].varies = match["text"].splitlines(), bool(match["varies"])
    return collected


def run(found, cwd, env, timeout):
    """Run the blocks one after another in one shell; the output of each, as lines.

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
    """A line without its numbers."""
    return " ".join(_NUMBER.sub("#", _CHANCE.sub("#", line)).split())


def same(printed, real):
    """Whether a printed line is that line, but for what may differ."""
    if words_of(printed) != words_of(real):
        return False
    numbers = ([float(n.replace(",", "")) for n in _NUMBER.findall(_CHANCE.sub("#", line))] for line in (printed, real))
    return all(abs(a - b) <= max(TOLERANCE * abs(a), _CLOSE) for a, b in zip(*numbers, strict=True))


def matches(printed, real):
    """Whether the lines printed are those lines, `...` standing for any number of them."""
    if not printed:
        return not real
    if printed[0] == ELISION:
        return any(matches(printed[1:], real[skipped:]) for skipped in range(len(real) + 1))
    return bool(real) and same(printed[0], real[0]) and matches(printed[1:], real[1:])


def is_right(block, real):
    """Whether the output printed behind a block is what came out."""
    if block.output is None:
        return True
    if not block.varies:
        return matches(block.output, real)
    there = {words_of(line) for line in real}
    printed = [words_of(line) for line in block.output if line != ELISION]
    return sum(line in there for line in printed) * 2 >= len(printed)
