"""Read a moses.ini of either version.

Facts from moses/Parameter.cpp, FF/FeatureFunction.cpp and StaticData.cpp: `#` begins a comment anywhere; a section
holds one value per line; a feature line is a class name and `key=value` words; a weight line is a feature's name with
`=` at its end, and numbers.  Words are parted by spaces and tabs, by no other character.
"""

from __future__ import annotations

from moses_compat.files.streams import Input
from moses_compat.ini import version_1
from moses_compat.ini.lines import WORD, FeatureLine, bare
from moses_compat.ini.lines import number as as_number
from moses_compat.ini.moses_ini import ENCODING, MosesIni


def read_moses_ini(path: str) -> MosesIni:
    """Read a moses.ini of version 1 or 2.

    Raises:
        DataError: the file cannot be read, mixes both versions, or a line is not what its section holds.
    """
    with Input(path) as source:
        data = source.read_all()
    return parse_moses_ini(path, data.decode(*ENCODING))


def parse_moses_ini(path: str, text: str) -> MosesIni:
    """The text of a moses.ini of version 1 or 2, as if it stood in that file.

    Raises:
        DataError: as `read_moses_ini`.
    """
    # Not `splitlines`, which knows more line ends than Moses; a CR stays where it is.
    ini = MosesIni(path, text.split("\n"))
    section = ""
    for number, line in enumerate(ini.lines, 1):
        value = bare(line)
        if not value:
            continue
        if value[0] == "[":
            # What follows the bracket is ignored, and so is the line if there is none.
            if "]" in value:
                section = value[1 : value.index("]")]
                ini.sections.setdefault(section, [])
                ini.section_lines.setdefault(section, [])
            continue
        ini.sections.setdefault(section, []).append(value)
        ini.section_lines.setdefault(section, []).append(number)
    _interpret(ini)
    for feature in ini.features:
        if any("\0" in argument for argument in feature.arguments.values()):
            raise ini.error(f"{feature.name}: a zero byte, which no name of a file and no number has", feature.line)
    return ini


def _interpret(ini: MosesIni) -> None:
    old = version_1.sections_of(ini)
    if old and not ini.sections.keys() & {"feature", "weight"}:
        ini.version = 1
        version_1.convert(ini)
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
    values = [as_number(word) for word in words]
    if None in values:
        raise ini.error(f"{name}= a weight is not a finite number", number)
    ini.weights[name] = [value for value in values if value is not None]
    ini.weight_lines[name] = number
