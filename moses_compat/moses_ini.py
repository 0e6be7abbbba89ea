"""moses.ini, version 2: read, and written back with nothing changed but what was asked for.

Facts from moses/Parameter.cpp, FF/FeatureFunction.cpp and StaticData.cpp: `#` begins a comment anywhere; a section
holds one value per line; a feature line is a class name and `key=value` words; a weight line is a feature's name with
`=` at its end, and numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moses_compat.streams import Input
from phrasetool.errors import DataError

_SECTION = re.compile(r"\[\s*([^\]]*?)\s*\]\s*$")


@dataclass(frozen=True)
class FeatureLine:
    """A line of the `[feature]` section.

    Attributes:
        kind: the class, e.g. `PhraseDictionaryMemory`.
        name: its name, e.g. `TranslationModel0`; by default the class and its number.
        arguments: its other `key=value` words.
        line: 1-based line number.
    """

    kind: str
    name: str
    arguments: Mapping[str, str]
    line: int


@dataclass
class MosesIni:
    """A parsed moses.ini.

    Attributes:
        path: the file.
        lines: its lines, without line ends.
        sections: section name -> its values, comments and blank lines left out.
        features: the feature functions, in order.
        weights: feature name -> numbers.
    """

    path: str
    lines: list[str]
    sections: dict[str, list[str]] = field(default_factory=dict)
    features: list[FeatureLine] = field(default_factory=list)
    weights: dict[str, list[float]] = field(default_factory=dict)
    _weight_lines: dict[str, int] = field(default_factory=dict)

    def error(self, message: str, line: int | None = None) -> DataError:
        """An error that names the file, and the line if there is one."""
        return DataError(self.path, message, line)

    def resolve(self, path: str) -> str:
        """A path as the ini means it: as it stands if it exists, else beside the ini."""
        if os.path.isabs(path) or os.path.exists(path):
            return path
        return os.path.normpath(os.path.join(os.path.dirname(self.path), path))

    def number(self, section: str, default: int) -> int:
        """The integer a section holds."""
        values = self.sections.get(section)
        if not values:
            return default
        try:
            return int(values[0])
        except ValueError as error:
            raise self.error(f"[{section}]: expected a whole number, found {values[0]!r}") from error

    def with_weights(self, weights: Mapping[str, Sequence[float]], comment: str = "") -> str:
        """The text of the ini with these weights in it; every other line stays as it is.

        Args:
            weights: feature name -> numbers; a feature without a weight line gets one.
            comment: lines to put at the top, without `#`.
        """
        lines = list(self.lines)
        missing = []
        for name, values in weights.items():
            text = f"{name}= {' '.join(format(float(v), '.9g') for v in values)}"
            if name in self._weight_lines:
                lines[self._weight_lines[name] - 1] = text
            else:
                missing.append(text)
        if missing:
            places = [i for i, line in enumerate(lines) if (m := _SECTION.match(_bare(line))) and m[1] == "weight"]
            if places:
                lines[places[-1] + 1 : places[-1] + 1] = missing
            else:
                lines += ["", "[weight]", *missing]
        return "".join(f"{line}\n" for line in [*(f"# {c}" for c in comment.splitlines()), *lines])


def _bare(line: str) -> str:
    return line.split("#", 1)[0].strip()


def read_moses_ini(path: str) -> MosesIni:
    """Read a moses.ini.

    Raises:
        DataError: the file cannot be read, is of version 1, or a line is not what its section holds.
    """
    with Input(path) as source:
        data = source.read_all()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    ini = MosesIni(path, text.splitlines())
    section = ""
    counts: dict[str, int] = {}
    for number, line in enumerate(ini.lines, 1):
        bare = _bare(line)
        if not bare:
            continue
        if match := _SECTION.match(bare):
            section = match[1]
            ini.sections.setdefault(section, [])
            continue
        ini.sections.setdefault(section, []).append(bare)
        if section == "feature":
            ini.features.append(_feature(ini, bare, number, counts))
        elif section == "weight":
            _weight(ini, bare, number)
    if "ttable-file" in ini.sections and not ini.features:
        raise ini.error(
            "this is a moses.ini of version 1 ([ttable-file]); convert it with Moses' convert-moses-ini-to-v2.perl"
        )
    if not ini.features:
        raise ini.error("there is no [feature] section; expected a moses.ini")
    return ini


def _feature(ini: MosesIni, bare: str, number: int, counts: dict[str, int]) -> FeatureLine:
    kind, *words = bare.split()
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ini.error(f"{kind}: expected key=value, found {word!r}", number)
        if key in arguments:
            raise ini.error(f"{kind}: the key {key} stands twice", number)
        arguments[key] = value
    index = counts.get(kind, 0)
    counts[kind] = index + 1
    return FeatureLine(kind, arguments.pop("name", f"{kind}{index}"), arguments, number)


def _weight(ini: MosesIni, bare: str, number: int) -> None:
    name, *words = bare.split()
    if not name.endswith("="):
        raise ini.error(f"expected a feature name with = at its end and numbers, found {bare!r}", number)
    try:
        ini.weights[name[:-1]] = [float(word) for word in words]
    except ValueError as error:
        raise ini.error(f"{name} a weight is not a number", number) from error
    ini._weight_lines[name[:-1]] = number
