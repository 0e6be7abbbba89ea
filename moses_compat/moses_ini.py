"""moses.ini, version 2: read, and written back with nothing changed but what was asked for.

Facts from moses/Parameter.cpp, FF/FeatureFunction.cpp and StaticData.cpp: `#` begins a comment anywhere; a section
holds one value per line; a feature line is a class name and `key=value` words; a weight line is a feature's name with
`=` at its end, and numbers.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from moses_compat.streams import Input
from phrasetool.errors import DataError
from phrasetool.smt.decoder.features import FeatureSet
from phrasetool.smt.decoder.orientation import ReorderingModel

# How text of an ini becomes bytes and the other way round.
ENCODING = ("utf-8", "surrogateescape")

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
        weight_lines: feature name -> 1-based number of the line its weights stand in.
    """

    path: str
    lines: list[str]
    sections: dict[str, list[str]] = field(default_factory=dict)
    features: list[FeatureLine] = field(default_factory=list)
    weights: dict[str, list[float]] = field(default_factory=dict)
    weight_lines: dict[str, int] = field(default_factory=dict)

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
            if name in self.weight_lines:
                lines[self.weight_lines[name] - 1] = text
            else:
                missing.append(text)
        if missing:
            places = [i for i, line in enumerate(lines) if (m := _SECTION.match(_bare(line))) and m[1] == "weight"]
            if places:
                lines[places[-1] + 1 : places[-1] + 1] = missing
            else:
                lines += ["", "[weight]", *missing]
        return "".join(f"{line}\n" for line in [*(f"# {c}" for c in comment.splitlines()), *lines])

    def moved_to(self, folder: str) -> MosesIni:
        """The ini as it must read in another folder: paths relative to its own folder become absolute."""
        if os.path.abspath(folder) == os.path.abspath(os.path.dirname(self.path)):
            return self
        lines = list(self.lines)
        for feature in self.features:
            path = feature.arguments.get("path", "")
            if path and not os.path.isabs(path) and not os.path.exists(path):
                absolute = os.path.abspath(self.resolve(path))
                lines[feature.line - 1] = _with_arguments(lines[feature.line - 1], {"path": absolute})
        return replace(self, lines=lines)

    def with_table(self, path: str, columns: int, weight: float = 0.0) -> str:
        """The text of the ini for another phrase table; every other line stays as it is.

        New columns are expected behind the old ones.  A weight of 0 for them leaves every model score as it was.

        Args:
            path: the table.
            columns: its scores per entry.
            weight: of each new column.

        Raises:
            DataError: the ini has not exactly one PhraseDictionaryMemory, or its columns are more than the table's.
        """
        tables = [line for line in self.features if line.kind == "PhraseDictionaryMemory"]
        if len(tables) != 1:
            raise self.error(f"expected one PhraseDictionaryMemory, found {len(tables)}")
        table = tables[0]
        before = int(table.arguments.get("num-features", "0"))
        if columns < before:
            raise self.error(f"{table.name} has {before} columns, but {path} only {columns}", table.line)
        changed = {"num-features": str(columns), "path": path}
        if "tuneable-components" in table.arguments:
            flags = table.arguments["tuneable-components"].split(",") + ["true"] * (columns - before)
            changed["tuneable-components"] = ",".join(flags)
        lines = list(self.lines)
        lines[table.line - 1] = _with_arguments(lines[table.line - 1], changed)
        edited = replace(self, lines=lines)
        old = self.weights.get(table.name, [])
        if columns == before:
            return edited.with_weights({})
        return edited.with_weights({table.name: [*old, *[weight] * (columns - len(old))]})


def _with_arguments(line: str, changed: Mapping[str, str]) -> str:
    """A feature line with some of its `key=value` words changed, spaces and comment as they were."""
    text, hash_, comment = line.partition("#")
    for key, value in changed.items():
        found = re.search(rf"(?<=\s){re.escape(key)}=\S*", text)
        if found:
            text = f"{text[: found.start()]}{key}={value}{text[found.end() :]}"
        else:
            text = f"{text.rstrip()} {key}={value}{' ' if hash_ else ''}"
    return text + hash_ + comment


def new_moses_ini(
    table: str, columns: int, language_model: str, order: int, reordering: str | None = None,
    reordering_type: str = "wbe-msd-bidirectional-fe-allff", distortion_limit: int = 6,
) -> str:  # fmt: skip
    """The text of a moses.ini as train-model.perl writes it, with its default weights.

    Args:
        table: path of the phrase table.
        columns: its scores per entry.
        language_model: path of an ARPA file or kenlm binary.
        order: its order.
        reordering: path of a reordering table.
        reordering_type: its type.
        distortion_limit: words a jump may span.
    """
    features = FeatureSet(columns, ReorderingModel.parse(reordering_type) if reordering else None)
    weights, slices = features.default_weights(), features.slices
    factors = "input-factor=0 output-factor=0"
    lines = [
        "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]", str(distortion_limit), "",
        "[feature]", "UnknownWordPenalty", "WordPenalty", "PhrasePenalty",
        f"PhraseDictionaryMemory name=TranslationModel0 num-features={columns} path={table} {factors}",
    ]  # fmt: skip
    if reordering and features.reordering:
        size = features.reordering.weights
        lines.append(
            f"LexicalReordering name=LexicalReordering0 num-features={size} type={reordering_type} {factors} "
            f"path={reordering}"
        )
    lines += ["Distortion", f"KENLM name=LM0 factor=0 path={language_model} order={order}", "", "[weight]"]
    lines.append("UnknownWordPenalty0= 1")
    lines += [f"{features.name(f)}= {' '.join(f'{w:g}' for w in weights[part])}" for f, part in slices.items()]
    return "".join(f"{line}\n" for line in lines)


def _bare(line: str) -> str:
    return line.split("#", 1)[0].strip()


def read_moses_ini(path: str) -> MosesIni:
    """Read a moses.ini.

    Raises:
        DataError: the file cannot be read, is of version 1, or a line is not what its section holds.
    """
    with Input(path) as source:
        data = source.read_all()
    # Bytes that are no UTF-8 come back as they were when the text is written with `ENCODING`.
    text = data.decode(*ENCODING)
    # Not `splitlines`, which knows more line ends than Moses; a CR stays where it is.
    ini = MosesIni(path, text.removesuffix("\n").split("\n"))
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
    name = arguments.pop("name", f"{kind}{index}")
    if any(feature.name == name for feature in ini.features):
        raise ini.error(f"a second feature with the name {name}", number)
    return FeatureLine(kind, name, arguments, number)


def _weight(ini: MosesIni, bare: str, number: int) -> None:
    name, *words = bare.split()
    if not name.endswith("="):
        raise ini.error(f"expected a feature name with = at its end and numbers, found {bare!r}", number)
    name = name[:-1]
    if name in ini.weights:
        raise ini.error(f"the weights of {name} stand twice", number)
    try:
        ini.weights[name] = [float(word) for word in words]
    except ValueError as error:
        raise ini.error(f"{name}= a weight is not a number", number) from error
    if not all(map(math.isfinite, ini.weights[name])):
        raise ini.error(f"{name}= a weight is not finite", number)
    ini.weight_lines[name] = number
