"""moses.ini as it is read; changes to it are in `moses_compat.ini_editing`, version 1 in `moses_compat.ini_version_1`.

Facts from moses/Parameter.cpp, FF/FeatureFunction.cpp and StaticData.cpp: `#` begins a comment anywhere; a section
holds one value per line; a feature line is a class name and `key=value` words; a weight line is a feature's name with
`=` at its end, and numbers.  Words are parted by spaces and tabs, by no other character.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moses_compat import ini_editing, ini_version_1
from moses_compat.ini_lines import BLANK, WORD, FeatureLine, bare
from moses_compat.streams import Input
from phrasetool.errors import DataError
from phrasetool.smt.decoder.features import FeatureSet
from phrasetool.smt.decoder.orientation import ReorderingModel

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

    def error(self, message: str, line: int | None = None) -> DataError:
        """An error that names the file, and the line if there is one."""
        return DataError(self.path, message, line)

    def resolve(self, path: str) -> str:
        """A path as the ini means it: as it stands if it exists, else beside the ini."""
        if os.path.isabs(path) or os.path.exists(path):
            return path
        return os.path.normpath(os.path.join(os.path.dirname(self.path), path))

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
        """The text of the ini with these weights in it; see `ini_editing.with_weights`."""
        return ini_editing.with_weights(self, weights, comment)

    def moved_to(self, folder: str) -> MosesIni:
        """The ini as it must read in another folder; see `ini_editing.moved_to`."""
        return ini_editing.moved_to(self, folder)


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

    Raises:
        PhraseToolError: a path has a character that no path in an ini can have.
    """
    for path in (table, language_model, reordering or ""):
        ini_editing.writable_path(path)
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


def read_moses_ini(path: str) -> MosesIni:
    """Read a moses.ini of version 1 or 2.

    Raises:
        DataError: the file cannot be read, mixes both versions, or a line is not what its section holds.
    """
    with Input(path) as source:
        data = source.read_all()
    # Not `splitlines`, which knows more line ends than Moses; a CR stays where it is.
    ini = MosesIni(path, data.decode(*ENCODING).split("\n"))
    section = ""
    for number, line in enumerate(ini.lines, 1):
        value = bare(line)
        if not value:
            continue
        if value[0] == "[":
            # What follows the bracket is ignored, and so is the line if there is none.
            if "]" in value:
                section = value[1 : value.index("]")].strip(BLANK)
                ini.sections.setdefault(section, [])
                ini.section_lines.setdefault(section, [])
            continue
        ini.sections.setdefault(section, []).append(value)
        ini.section_lines.setdefault(section, []).append(number)
    _interpret(ini)
    return ini


def _interpret(ini: MosesIni) -> None:
    old = ini_version_1.sections_of(ini)
    if old and not ini.sections.keys() & {"feature", "weight"}:
        ini.version = 1
        ini_version_1.convert(ini)
        return
    unnamed: dict[str, int] = {}
    for value, number in ini.values("feature"):
        ini.features.append(_feature(ini, value, number, unnamed))
    for value, number in ini.values("weight"):
        _weight(ini, value, number)
    if not ini.features:
        raise ini.error("there is no [feature] section; expected a moses.ini")
    if old:
        raise ini.error(f"[{old[0]}] is of version 1, [feature] of version 2; Moses refuses to mix them")


def _feature(ini: MosesIni, value: str, number: int, unnamed: dict[str, int]) -> FeatureLine:
    kind, *words = WORD.findall(value)
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, argument = word.partition("=")
        if not equals:
            raise ini.error(f"{kind}: expected key=value, found {word!r}", number)
        if key in arguments:
            raise ini.error(f"{kind}: the key {key} stands twice", number)
        arguments[key] = argument
    name = arguments.pop("name", "")
    if not name:
        # Moses counts those without a name only.
        name = f"{kind}{unnamed.get(kind, 0)}"
        unnamed[kind] = unnamed.get(kind, 0) + 1
    if any(feature.name == name for feature in ini.features):
        raise ini.error(f"a second feature with the name {name}", number)
    return FeatureLine(kind, name, arguments, number)


def _weight(ini: MosesIni, value: str, number: int) -> None:
    name, *words = WORD.findall(value)
    if not name.endswith("="):
        raise ini.error(f"expected a feature name with = at its end and numbers, found {value!r}", number)
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
