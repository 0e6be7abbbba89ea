"""Lines of a moses.ini: words, comments, and changes that leave everything else of a line as it was."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# What Moses strips from the ends of a line; words are parted by the first two only.
BLANK = " \t\r"
WORD = re.compile(r"[^ \t\r]+")
# Words that Moses takes for true and for false (moses/Util.cpp), in any case.
_TRUE, _FALSE = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PARTS = re.compile(r"([^#]*?)([ \t\r]*(?:#.*)?)\Z", re.DOTALL)


@dataclass(frozen=True)
class FeatureLine:
    """A line of the `[feature]` section, or one of version 1 that means the same.

    Attributes:
        kind: the class, e.g. `PhraseDictionaryMemory`.
        name: its name, e.g. `TranslationModel0`; by default the class and its number.
        arguments: its other `key=value` words.
        line: 1-based line number.
        section: where it stands: `feature`, or a section of version 1 such as `ttable-file`.
    """

    kind: str
    name: str
    arguments: Mapping[str, str]
    line: int
    section: str = "feature"


def bare(line: str) -> str:
    """A line without its comment and the blanks around it."""
    return line.split("#", 1)[0].strip(BLANK)


def boolean(text: str) -> bool | None:
    """The truth value that Moses reads in a word; None for a word that it stops at."""
    word = text.lower()
    return True if word in _TRUE else False if word in _FALSE else None


def number(text: str) -> float | None:
    """The finite number that a word is, as C++ reads it; None for another word."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _parts(line: str) -> tuple[str, str]:
    """What a line says; and the blanks, the comment and the CR behind it."""
    match = _PARTS.match(line)
    assert match
    return match[1], match[2]


def with_arguments(line: str, changed: Mapping[str, str]) -> str:
    """A feature line with some of its `key=value` words changed, or added behind the others."""
    text, rest = _parts(line)
    for key, value in changed.items():
        found = re.search(rf"(?<=[ \t]){re.escape(key)}=[^ \t\r]*", text)
        if found:
            text = f"{text[: found.start()]}{key}={value}{text[found.end() :]}"
        else:
            text = f"{text} {key}={value}"
    return text + rest


def with_words(line: str, changed: Mapping[int, str]) -> str:
    """A line with some of its words changed, by their places from 0."""
    words = list(WORD.finditer(line))
    for place in sorted(changed, reverse=True):
        line = line[: words[place].start()] + changed[place] + line[words[place].end() :]
    return line


def with_numbers(line: str, values: Sequence[float], first: int = 1) -> str:
    """A line with these numbers behind its first words; a number that has its value keeps its spelling."""
    text, rest = _parts(line)
    words = list(WORD.finditer(text))
    end = words[first - 1].end() if first else 0
    pieces = [text[:end]]
    for place, value in enumerate(values, first):
        spelling, space = number_text(value), " "
        if place < len(words):
            word = words[place]
            space, end = text[end : word.start()], word.end()
            spelling = word[0] if float(word[0]) == value else spelling
        pieces += [space, spelling]
    return "".join(pieces) + rest


def number_text(value: float) -> str:
    """A weight as it is written: all the digits of single precision."""
    return format(float(value), ".9g")


def like(text: str, neighbour: str) -> str:
    """A new line, with a CR if the line beside it ends with one."""
    return text + "\r" if neighbour.endswith("\r") else text
