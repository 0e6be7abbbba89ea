"""The cases: lines of the `*.txt` files beside this module, with the values of their placeholders put in.

A line is what a user would type after `phrasetool`:

* `@x` is the input x (see `inputs.py`), and everything else is written in an empty folder;
* `;` stands between commands that run one after the other in one folder;
* `< FILE` at the end is standard input, `NAME=VALUE` at the beginning sets a variable of the environment, `STOP=TEXT`
  interrupts the command when it has written that text to standard error; `cp A B` copies;
* `{a|b}` stands for two cases, one with a and one with b, and `{name}` for one for each of the values in `VALUES`;
* `!` at the beginning says that the command must fail, `?` that it may; without, all must succeed.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# Reference run last: its cases take longest, and whatever is wrong shows elsewhere first.
FILES = ("usage", "tables", "demo", "text", "training", "experiments", "programs", "reference")
REFERENCE = "reference"

# What a table's threads and blocks may be; the small blocks are of some lines of a table of that kind.
_THREADS = ("--threads 1", "--threads 2")
_SMALL_BLOCKS = {"tiny": 40, "small": 5_000, "large": 100_000}
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Step:
    """A command.

    Attributes:
        words: of the command line, without `phrasetool`.
        variables: of the environment.
        stdin: the file it reads, if any.
    """

    words: tuple[str, ...]
    variables: Mapping[str, str]
    stdin: str | None

    @classmethod
    def of(cls, text: str) -> Step:
        """Read one."""
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
        file: of `FILES`, where it stands.
        text: as it stands there, placeholders filled in.
        fails: whether it must fail, None if it may.
    """

    file: str
    text: str
    fails: bool | None

    @property
    def steps(self) -> list[Step]:
        """Its commands."""
        return [Step.of(part) for part in self.text.split(" ; ")]

    @property
    def commands(self) -> list[str]:
        """Names of phrasetool's commands in it, the one it is about last."""
        return [step.words[0] for step in self.steps if step.words and step.words[0] != "cp"]


def values(tables: Iterable[str], quick: bool) -> dict[str, tuple[str, ...]]:
    """What placeholders stand for.

    Args:
        tables: names of the odd tables.
        quick: fewer ways to run each command.
    """
    result = {"t": tuple(tables), "threads": _THREADS[1:] if quick else _THREADS}
    for name, size in _SMALL_BLOCKS.items():
        blocks = ("", f" --block-bytes {size}")
        ways = tuple(threads + block for threads in _THREADS for block in blocks)
        result[name] = (*(ways[:1] if name == "small" else ()), ways[-1]) if quick else ways
    return result


def read_cases(file: str, found: Mapping[str, tuple[str, ...]], scores: Mapping[str, int]) -> Iterator[Case]:
    """The cases of a file.

    Args:
        file: of `FILES`.
        found: what placeholders stand for.
        scores: of the odd tables, how many scores an entry has; for `{n}`.
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
    """A line for each choice of values; a placeholder that stands twice has one value."""
    names = [name for name in dict.fromkeys(_BRACES.findall(line)) if name != "n"]
    choices = [tuple(name.split("|")) if "|" in name else found[name] for name in names]
    for chosen in itertools.product(*choices):
        filled = line
        for name, value in zip(names, chosen, strict=True):
            filled = filled.replace(f"{{{name}}}", value)
        if "t" in names:
            filled = filled.replace("{n}", str(scores[chosen[names.index("t")]]))
        yield " ".join(filled.split())
