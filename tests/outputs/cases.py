"""Cases: the lines of the `*.txt` files in the folder of this module, with placeholders filled in.

A line is a command line without `phrasetool`:

* `@x` is the input x (see `inputs.py`); all other files are written to an empty folder;
* `;` separates commands that run one after another in one folder;
* `< FILE` at the end is standard input, `NAME=VALUE` at the beginning sets an environment variable, `STOP=TEXT`
  interrupts the command when it has written that text to standard error; `cp A B` copies;
* `{a|b}` stands for two cases, one with a and one with b, and `{name}` for one case for each value of `values()`;
* `!` at the beginning means that a command must fail, `?` that it may; otherwise, all commands must succeed.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# The reference run is last: its cases take longest, and other cases reveal most errors earlier.
FILES = ("usage", "tables", "demo", "text", "training", "experiments", "programs", "reference")
REFERENCE = "reference"

# Options for threads and blocks of table commands; small blocks hold a few lines of a table of that size.
_THREADS = ("--threads 1", "--threads 2")
_SMALL_BLOCKS = {"tiny": 40, "small": 5_000, "large": 100_000}
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Step:
    """A command.

    Attributes:
        words: words of the command line, without `phrasetool`.
        variables: environment variables.
        stdin: file for standard input, None for none.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    stdin: str | None

    @classmethod
    def of(cls, text: str) -> Step:
        """Parse a command."""
        words = shlex.split(text)
        stdin = None
        if len(words) > 1 and words[-2] == "<":
            *words, _, stdin = words
        variables = dict(itertools.takewhile(lambda pair: pair[0].isupper() and len(pair) > 1,
                                             (word.split("=", 1) for word in words)))  # fmt: skip
        return cls(tuple(words[len(variables) :]), variables, stdin)


@dataclass(frozen=True)
class Case:
    """Commands whose outputs are compared.

    Attributes:
        file: its file, one of `FILES`.
        text: its line, with placeholders filled in.
        fails: whether it must fail, None if it may.
    """

    file: str
    text: str
    fails: bool | None

    @property
    def steps(self) -> list[Step]:
        """Commands of the case."""
        return [Step.of(part) for part in self.text.split(" ; ")]

    @property
    def commands(self) -> list[str]:
        """Names of its phrasetool commands; the last one is the command under test."""
        return [step.words[0] for step in self.steps if step.words and step.words[0] != "cp"]


def values(tables: Iterable[str], quick: bool) -> dict[str, tuple[str, ...]]:
    """Return the values of placeholders.

    Args:
        tables: names of the odd tables.
        quick: whether to run each command with fewer combinations of threads and blocks.
    """
    result = {"t": tuple(tables), "threads": _THREADS[1:] if quick else _THREADS}
    for name, size in _SMALL_BLOCKS.items():
        blocks = ("", f" --block-bytes {size}")
        combinations = tuple(threads + block for threads in _THREADS for block in blocks)
        result[name] = (*(combinations[:1] if name == "small" else ()), combinations[-1]) if quick else combinations
    return result


def read_cases(file: str, found: Mapping[str, tuple[str, ...]], scores: Mapping[str, int]) -> Iterator[Case]:
    """Yield the cases of a file.

    Args:
        file: one of `FILES`.
        found: values of placeholders.
        scores: number of scores per entry of each odd table, for `{n}`.
    """
    text = Path(__file__).with_name(f"{file}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        line = " ".join(line.split())
        if not line or line.startswith("#"):
            continue
        fails = {"!": True, "?": None}.get(line[0], False)
        for case in _filled(line.lstrip("!? "), found, scores):
            yield Case(file, case, fails)


def _filled(line: str, found: Mapping[str, tuple[str, ...]], scores: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each choice of values; all occurrences of a placeholder get the same value."""
    names = [name for name in dict.fromkeys(_BRACES.findall(line)) if name != "n"]
    choices = [tuple(name.split("|")) if "|" in name else found[name] for name in names]
    for chosen in itertools.product(*choices):
        filled = line
        for name, value in zip(names, chosen, strict=True):
            filled = filled.replace(f"{{{name}}}", value)
        if "t" in names:
            filled = filled.replace("{n}", str(scores[chosen[names.index("t")]]))
        yield " ".join(filled.split())
