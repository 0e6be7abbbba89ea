"""A moses.ini in memory: its text, its sections, its features and their weights.

Moses resolves relative paths against its working directory.  If a file exists next to the ini but not in the working
directory, Moses would stop; phrasetool then resolves all relative paths against the ini's folder, so that a model
folder can be used from anywhere.
The files of one ini are never taken from both folders, because a file that happens to be in the working directory
belongs to another model.
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

# Characters that Moses strips from the ends of a line; only the first two separate words.
BLANK = " \t\r"
WORD = re.compile(r"[^ \t\r]+")
# Words that Moses reads as true and as false (moses/Util.cpp), in upper or lower case.
_TRUE, _FALSE = ("yes", "y", "true", "1"), ("no", "n", "false", "0")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PARTS = re.compile(r"([^#]*?)([ \t\r]*(?:#.*)?)\Z", re.DOTALL)
# Endings that Moses itself appends to the names of tables; `.gz` may also have been removed from the file's name.
_ENDINGS = ("", ".gz", ".minphr", ".minlexr", ".binphr.idx", ".binlexr.idx")


@dataclass(frozen=True)
class FeatureLine:
    """A line of the `[feature]` section, or an equivalent line of version 1.

    Attributes:
        kind: the class, e.g. `PhraseDictionaryMemory`.
        name: its name, e.g. `TranslationModel0`; by default the class and its number.
        arguments: its other `key=value` words.
        line: 1-based line number.
        section: the section that holds the line: `feature`, or a section of version 1 such as `ttable-file`.
    """

    kind: str
    name: str
    arguments: Mapping[str, str]
    line: int
    section: str = "feature"


def bare(line: str) -> str:
    """Return a line without its comment and without leading and trailing blanks."""
    return line.split("#", 1)[0].strip(BLANK)


def boolean(text: str) -> bool | None:
    """Return a word as Moses' truth value; None for a word that Moses rejects."""
    word = text.lower()
    return True if word in _TRUE else False if word in _FALSE else None


def parse_number(text: str) -> float | None:
    """Return a word as a number, as C++ parses it; None if it is not a finite number."""
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def _parts(line: str) -> tuple[str, str]:
    """Split a line into its content, and the blanks, comment and CR that follow."""
    match = _PARTS.match(line)
    assert match
    return match[1], match[2]


def with_arguments(line: str, changed: Mapping[str, str]) -> str:
    """Return a feature line with some of its `key=value` words changed, or appended."""
    text, rest = _parts(line)
    for key, value in changed.items():
        match = re.search(rf"(?<=[ \t]){re.escape(key)}=[^ \t\r]*", text)
        if match:
            text = f"{text[: match.start()]}{key}={value}{text[match.end() :]}"
        else:
            text = f"{text} {key}={value}"
    return text + rest


def with_words(line: str, changed: Mapping[int, str]) -> str:
    """Return a line with some of its words replaced, given by 0-based position."""
    words = list(WORD.finditer(line))
    for index in sorted(changed, reverse=True):
        line = line[: words[index].start()] + changed[index] + line[words[index].end() :]
    return line


def with_numbers(line: str, values: Sequence[float], first: int = 1) -> str:
    """Return a line with these numbers after its `first` words; an unchanged number keeps its spelling."""
    text, rest = _parts(line)
    words = list(WORD.finditer(text))
    end = words[first - 1].end() if first else 0
    pieces = [text[:end]]
    for index, value in enumerate(values, first):
        spelling, space = number_text(value), " "
        if index < len(words):
            word = words[index]
            space, end = text[end : word.start()], word.end()
            spelling = word[0] if float(word[0]) == value else spelling
        pieces += [space, spelling]
    return "".join(pieces) + rest


def number_text(value: float) -> str:
    """Return a weight as text, with all digits of single precision."""
    return format(float(value), ".9g")


def like(text: str, neighbour: str) -> str:
    """Return a new line, with a CR if the neighbouring line ends with one."""
    return text + "\r" if neighbour.endswith("\r") else text


@dataclass(frozen=True)
class PathBase:
    """The folder against which relative paths are resolved, and a note on this choice.

    Attributes:
        folder: the folder; empty for the working directory.
        note: explanation if the choice differs from that of Moses or is ambiguous; otherwise empty.
        doubtful: whether the other folder has a file of the same name with other content.
    """

    folder: str
    note: str = ""
    doubtful: bool = False


def base_of(ini: str, paths: Sequence[str]) -> PathBase:
    """Choose the folder against which the relative paths of an ini are resolved.

    Args:
        ini: the path of the ini.
        paths: all paths that it names; some may not exist.

    Raises:
        ValueError: some files exist only in the working directory, and others only next to the ini.
    """
    own = os.path.dirname(ini)
    relative = [path for path in paths if not os.path.isabs(path)]
    here = {path: file for path in relative if (file := _existing(path))}
    next_to_ini = {path: file for path in relative if (file := _existing(os.path.join(own, path)))}
    if not own or os.path.realpath(own) == os.path.realpath("."):
        return PathBase(own)
    missing_here, missing_next_to_ini = ([path for path in first if path not in second] for first, second in
                                         ((next_to_ini, here), (here, next_to_ini)))  # fmt: skip
    if missing_here and missing_next_to_ini:
        raise ValueError(
            f"{missing_next_to_ini[0]} exists only in the working directory and {missing_here[0]} only in {own}; "
            "all relative paths must start from one folder"
        )
    doubtful = [path for path in here if path in next_to_ini and _differ(here[path], next_to_ini[path])]
    if here and not missing_here:
        if not doubtful:
            return PathBase("")
        note = f"{doubtful[0]} of the working directory is used, as by Moses, and not that in {own}, which differs"
        return PathBase("", note, True)
    if not next_to_ini:
        return PathBase(own)
    missing = missing_here[0]
    note = (
        f"its paths are relative to {own}, because {missing} does not exist in the working directory, where Moses looks"
    )
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
# Codec and error handler for the text of an ini; bytes that are not UTF-8 survive reading and writing.
ENCODING = ("utf-8", "surrogateescape")


@dataclass
class MosesIni:
    """A parsed moses.ini.

    Attributes:
        path: the file.
        lines: its text, split at every LF; the last one is empty if the file ends with LF.
        version: 1 or 2.
        sections: section name -> its values, without comments and blank lines.
        section_lines: section name -> the 1-based line numbers of its values.
        features: the feature functions, in order.
        weights: feature name -> numbers.
        weight_lines: feature name -> 1-based number of the (first) line that holds its weights.
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
        """The text of the ini; encoded with `ENCODING` it is byte-identical to the file."""
        return "\n".join(self.lines)

    def error(self, message: str, line: int | None = None, *, remedy: str | None = None) -> DataError:
        """Return an error that names the file and, if given, the line; see `DataError`."""
        return DataError(self.path, message, line, remedy=remedy)

    @cached_property
    def path_base(self) -> PathBase:
        """The folder against which relative paths are resolved, see `base_of`.

        Raises:
            DataError: the files exist partly in one folder and partly in the other.
        """
        named = [path for feature in self.features if (path := feature.arguments.get("path"))]
        try:
            return base_of(self.path, named)
        except ValueError as error:
            raise self.error(str(error)) from error

    def resolve(self, path: str) -> str:
        """Return a path of the ini resolved against its base folder.

        Raises:
            DataError: see `path_base`.
        """
        if os.path.isabs(path) or not self.path_base.folder:
            return path
        return os.path.normpath(os.path.join(self.path_base.folder, path))

    @property
    def paths(self) -> list[str]:
        """The files that the features name, resolved; some may not exist."""
        return [self.resolve(path) for feature in self.features if (path := feature.arguments.get("path"))]

    def values(self, section: str) -> list[tuple[str, int]]:
        """Return the values of a section and their 1-based line numbers."""
        return list(zip(self.sections.get(section, []), self.section_lines.get(section, []), strict=True))

    def number(self, section: str, default: int) -> int:
        """Return the integer of a section, or the default if it has no value."""
        values = self.sections.get(section)
        if not values:
            return default
        if not _WHOLE.fullmatch(values[0]):
            line = next(iter(self.section_lines.get(section, [])), None)
            raise self.error(f"[{section}]: expected a whole number, found {values[0]!r}", line)
        return int(values[0])

    def check_weights(self) -> None:
        """Refuse weights without a feature, as Moses does.

        Raises:
            DataError: weights belong to a missing feature, or to a sparse feature, which the decoder does not support.
        """
        names = {feature.name for feature in self.features}
        for name, line in self.weight_lines.items():
            if name not in names and name.split("_")[0] in names:
                raise self.error(f"{name}= is a weight of a sparse feature; those are not supported", line)
            if name not in names:
                raise self.error(f"there is no feature {name} for these weights", line)
