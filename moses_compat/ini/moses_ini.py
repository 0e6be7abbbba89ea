"""A moses.ini in memory: its text, its sections, the features and weights it means.

Moses starts relative paths from its working directory.  If a file that exists next to the ini does not exist there,
Moses would stop; then all relative paths start from the ini's folder, so that a folder with a model can be used from
anywhere.
Files of one ini never come from both folders: what is in the working directory by chance is another model's.
"""

from __future__ import annotations

import filecmp
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from phrasetool.errors import DataError

# What Moses strips from the ends of a line; words are parted by the first two only.
BLANK = " \t\r"
WORD = re.compile(r"[^ \t\r]+")
# Words that Moses takes for true and for false (moses/Util.cpp), in any case.
_TRUE, _FALSE = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PARTS = re.compile(r"([^#]*?)([ \t\r]*(?:#.*)?)\Z", re.DOTALL)
# Endings that Moses adds to the names of tables itself; `.gz` may also be an ending that the file has lost.
_ENDINGS = ("", ".gz", ".minphr", ".minlexr", ".binphr.idx", ".binlexr.idx")


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


def parse_number(text: str) -> float | None:
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


@dataclass(frozen=True)
class PathBase:
    """A folder, and what should be known about the choice.

    Attributes:
        folder: the folder; empty for the working directory.
        note: how the paths are read if it is not as Moses reads them, or if another reading is possible; may be empty.
        doubtful: whether a file of the same name and with another content exists in the other folder.
    """

    folder: str
    note: str = ""
    doubtful: bool = False


def base_of(ini: str, paths: Sequence[str]) -> PathBase:
    """The folder that relative paths of an ini start from.

    Args:
        ini: the path of the ini.
        paths: all paths that it names; some may not exist.

    Raises:
        ValueError: some exist in the working directory alone, and others next to the ini alone.
    """
    own = os.path.dirname(ini)
    relative = [path for path in paths if not os.path.isabs(path)]
    here = {path: place for path in relative if (place := _existing(path))}
    beside = {path: place for path in relative if (place := _existing(os.path.join(own, path)))}
    if not own or os.path.realpath(own) == os.path.realpath("."):
        return PathBase(own)
    missing_here, missing_beside = ([path for path in one if path not in other] for one, other in
                                    ((beside, here), (here, beside)))  # fmt: skip
    if missing_here and missing_beside:
        raise ValueError(
            f"{missing_beside[0]} exists in the working directory alone and {missing_here[0]} in {own} alone; "
            "relative paths start from one folder"
        )
    doubtful = [path for path in here if path in beside and _differ(here[path], beside[path])]
    if here and not missing_here:
        if not doubtful:
            return PathBase("")
        note = f"{doubtful[0]} of the working directory is used, as by Moses, and not that in {own}, which differs"
        return PathBase("", note, True)
    if not beside:
        return PathBase(own)
    note = f"its paths start from {own}: {missing_here[0]} does not exist in the working directory, where Moses looks"
    if doubtful:
        note += f"; {doubtful[0]} of the working directory, which differs from that in {own}, is not used"
    return PathBase(own, note, bool(doubtful))


def _existing(path: str) -> str:
    names = [*(path + ending for ending in _ENDINGS), path.removesuffix(".gz")]
    return next(filter(os.path.exists, names), "")


def _differ(first: str, second: str) -> bool:
    if os.path.samefile(first, second):
        return False
    if not (os.path.isfile(first) and os.path.isfile(second)):
        return True
    return os.path.getsize(first) != os.path.getsize(second) or not filecmp.cmp(first, second, shallow=False)


_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# How text of an ini becomes bytes and the other way round: bytes that are no UTF-8 come back as they were.
ENCODING = ("utf-8", "surrogateescape")


@dataclass
class MosesIni:
    """A parsed moses.ini.

    Attributes:
        path: the file.
        lines: its text, cut at every LF: the last one is empty if the file ends as it should.
        version: 1 or 2.
        sections: section name -> its values, comments and blank lines left out.
        section_lines: section name -> the 1-based line numbers of its values.
        features: the feature functions, in order.
        weights: feature name -> numbers.
        weight_lines: feature name -> 1-based number of the line its weights stand in, or begin in.
        number_lines: version 1 only: feature name -> the line of each of its weights.
    """

    path: str
    lines: list[str]
    version: int = 2
    sections: dict[str, list[str]] = field(default_factory=dict)
    section_lines: dict[str, list[int]] = field(default_factory=dict)
    features: list[FeatureLine] = field(default_factory=list)
    weights: dict[str, list[float]] = field(default_factory=dict)
    weight_lines: dict[str, int] = field(default_factory=dict)
    number_lines: dict[str, list[int]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The ini as it is, byte for byte once written with `ENCODING`."""
        return "\n".join(self.lines)

    def error(self, message: str, line: int | None = None, *, remedy: str | None = None) -> DataError:
        """An error that names the file, and the line if there is one; see `DataError`."""
        return DataError(self.path, message, line, remedy=remedy)

    @cached_property
    def path_base(self) -> PathBase:
        """Where relative paths start from, see `base_of`.

        Raises:
            DataError: it cannot be told.
        """
        named = [path for feature in self.features if (path := feature.arguments.get("path"))]
        try:
            return base_of(self.path, named)
        except ValueError as error:
            raise self.error(str(error)) from error

    def resolve(self, path: str) -> str:
        """A path as the ini means it.

        Raises:
            DataError: see `path_base`.
        """
        if os.path.isabs(path) or not self.path_base.folder:
            return path
        return os.path.normpath(os.path.join(self.path_base.folder, path))

    @property
    def paths(self) -> list[str]:
        """The files its features name, resolved; some may not exist."""
        return [self.resolve(path) for feature in self.features if (path := feature.arguments.get("path"))]

    def values(self, section: str) -> list[tuple[str, int]]:
        """The values of a section and their 1-based line numbers."""
        return list(zip(self.sections.get(section, []), self.section_lines.get(section, []), strict=True))

    def number(self, section: str, default: int) -> int:
        """The integer a section holds."""
        values = self.sections.get(section)
        if not values:
            return default
        if not _WHOLE.fullmatch(values[0]):
            line = next(iter(self.section_lines.get(section, [])), None)
            raise self.error(f"[{section}]: expected a whole number, found {values[0]!r}", line)
        return int(values[0])

    def check_weights(self) -> None:
        """Refuse weights of no feature, as Moses does.

        Raises:
            DataError: there are some, or weights of a sparse feature, which the decoder does not have.
        """
        names = {feature.name for feature in self.features}
        for name, line in self.weight_lines.items():
            if name not in names and name.split("_")[0] in names:
                raise self.error(f"{name}= is a weight of a sparse feature; those are not supported", line)
            if name not in names:
                raise self.error(f"there is no feature {name} for these weights", line)
