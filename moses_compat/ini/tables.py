"""The phrase tables of a moses.ini: choice of one, checks before columns are added, and the weights of its entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from moses_compat.ini.moses_ini import WORD, FeatureLine, MosesIni, boolean
from moses_compat.ini.reading import overwritten
from phrasetool.phrases import FloatArray

# Classes that read a table as text.
TEXT = ("PhraseDictionaryMemory", "PhraseDictionaryScope3", "RuleTable")
# Classes that read what a program made of a table.
BINARY = {
    "PhraseDictionaryCompact": "CompactPT",
    "PhraseDictionaryOnDisk": "OnDisk",
    "PhraseDictionaryBinary": "binary",
    "ProbingPT": "ProbingPT",
}
# Sections that may speak of a feature by its name, with as many numbers as it has scores.
_OVERWRITES = (
    "weight-add", "weight-overwrite", "alternate-weight-setting", "feature-add", "feature-overwrite",
    "feature-name-overwrite",
)  # fmt: skip
_COUNTED = re.compile(r"\b(path|num-features|tuneable-components)=")
_ENDING = re.compile(r"\.(gz|minphr)$")


@dataclass(frozen=True)
class TableWeights:
    """The weights of a model that make the score of an entry.

    Attributes:
        scores: float32, shape (C,), of the score columns.
        phrase_penalty: of one more phrase.
        distortion: of a jump by a word.
        name: of the table's feature in the ini, for messages.
        size: the sum of the sizes of all weights of the model; scores divided by it do not depend on their scale.
    """

    scores: FloatArray
    phrase_penalty: float = 0.0
    distortion: float = 0.0
    name: str = "the model"
    size: float = 1.0

    def total(self, logs: FloatArray) -> FloatArray:
        """What N entries add to the score of the model.

        Args:
            logs: float32, shape (N, C), natural logarithms of their scores.

        Returns:
            float32, shape (N,).
        """
        # Column by column: a product of matrices may add in an order that depends on the number of entries.
        total = np.full(len(logs), self.phrase_penalty, np.float64)
        for column, weight in enumerate(self.scores.astype(np.float64)):
            total += weight * logs[:, column]
        return total.astype(np.float32)


def weights_of(ini: MosesIni, table: FeatureLine) -> TableWeights:
    """The weights that an ini of version 1 or 2 gives the entries of one of its phrase tables.

    Args:
        ini: the ini.
        table: the feature of the table; see `choose_table`.

    Returns:
        The weights; 0 for the phrase penalty or the distortion if the ini has no such feature.

    Raises:
        DataError: a feature has no weights, or not as many as it needs.
    """
    ini = overwritten(ini)
    scores = np.array(_weights(ini, table), np.float32)
    single = {"PhrasePenalty": 0.0, "Distortion": 0.0}
    for feature in ini.features:
        if feature.kind in single:
            values = _weights(ini, feature)
            if len(values) != 1:
                raise ini.error(
                    f"{feature.name} has {len(values)} weights; expected one", ini.weight_lines.get(feature.name)
                )
            single[feature.kind] += values[0]
    size = sum(
        abs(value)
        for feature in ini.features
        if feature.kind != "UnknownWordPenalty"
        for value in ini.weights.get(feature.name, ())
    )
    return TableWeights(scores, single["PhrasePenalty"], single["Distortion"], table.name, size or 1.0)


def _weights(ini: MosesIni, feature: FeatureLine) -> list[float]:
    """The weights of a feature, which must stand in the ini."""
    if feature.name not in ini.weights:
        raise ini.error(
            f"[weight] has no line {feature.name}=, and Moses would take 1 for every weight; give it one", feature.line
        )
    return ini.weights[feature.name]


def phrase_tables(ini: MosesIni) -> list[FeatureLine]:
    """All phrase tables of an ini, of whatever kind, in order."""
    return [
        feature for feature in ini.features
        if feature.kind in (*TEXT, *BINARY)
        or feature.kind.startswith(("PhraseDictionary", "Mmsapt", "[ttable-file]"))
    ]  # fmt: skip


def find_table(ini: MosesIni, table: str) -> FeatureLine:
    """The phrase table of an ini that is this file, or the only one it has (of which this file may be a part).

    Paths are read as by `MosesIni.resolve`; `.gz` may be missing on either side, if no table has the very name.

    Raises:
        DataError: it has several tables and none is this file, or several are.
    """
    tables = phrase_tables(ini)
    found = _matching(ini, tables, table)
    if len(found) == 1:
        return found[0]
    if not found and len(tables) == 1:
        # Annotating follows pruning, and a pruned table has another name.
        return tables[0]
    if found:
        raise ini.error(f"several of its phrase tables are {table}: {_listed(found)}; expected one")
    raise ini.error(f"none of its phrase tables is {table}: {_listed(tables)}", remedy="put the table into the ini")


def choose_table(ini: MosesIni, table: str, name: str | None = None) -> FeatureLine:
    """The phrase table of an ini whose place another one shall take.

    Args:
        ini: the ini.
        table: the file to come; if the ini names it already, that is the place.
        name: of the feature, in version 1 also the name that convert-moses-ini-to-v2.perl gives it; without it, the ini
            must have one text table only, or name `table`.

    Raises:
        DataError: there is no such table, or several could be meant.
    """
    tables = phrase_tables(ini)
    if name is not None:
        for index, feature in enumerate(tables):
            if feature.name == name or (ini.version == 1 and name == f"TranslationModel{index}"):
                return feature
        raise ini.error(f"there is no phrase table {name}: {_listed(tables)}")
    found = _matching(ini, tables, table)
    if not found:
        found = [feature for feature in tables if feature.kind in TEXT] or tables
    if len(found) == 1:
        return found[0]
    if not found:
        raise ini.error(f"there is no phrase table: {_listed(tables)}")
    raise ini.error(f"several phrase tables could be meant: {_listed(found)}", remedy="name a table of the ini")


def _listed(tables: Sequence[FeatureLine]) -> str:
    return ", ".join(f"{t.name} ({t.arguments.get('path', t.kind)})" for t in tables) or "it names none"


def _matching(ini: MosesIni, tables: Sequence[FeatureLine], table: str) -> list[FeatureLine]:
    """The tables whose path is this file; or else, whose path is this file but for an ending."""

    def named(feature: FeatureLine, paths: Iterable[str]) -> bool:
        return "path" in feature.arguments and any(_same(ini.resolve(path), table) for path in paths)

    exact = [feature for feature in tables if named(feature, [feature.arguments.get("path", "")])]
    return exact or [feature for feature in tables if named(feature, _spellings(feature.arguments.get("path", "")))]


def _spellings(path: str) -> list[str]:
    """The names of a text table that may be meant by a path, or that a binary table may have been made from."""
    stem = _ENDING.sub("", path)
    return [stem, f"{stem}.gz"]


def _same(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False


def check_table(ini: MosesIni, table: FeatureLine) -> None:
    """Refuse a table to which no columns can be added, or an ini that Moses or its tuning would refuse.

    Raises:
        DataError: says what is wrong, in which line, and what to do.
    """
    _check_kind(ini, table)
    for feature in ini.features:
        _check_counts(ini, feature, least=int(feature is table))
        if "_" in feature.name and _tuneable(feature) and feature.section == "feature":
            raise ini.error(
                f"{feature.name}: tuning takes a name with an underscore for a sparse feature; "
                "rename it here and in [weight]",
                feature.line,
            )
        if any(table.name in feature.arguments.get(key, "").split(",") for key in ("components", "members")):
            raise ini.error(
                f"{feature.name} combines {table.name} with other tables; all of them need the same new columns, "
                "which is not supported: edit the ini by hand",
                feature.line,
            )
    if _tuneable(table):
        _weights(ini, table)
    for section in _OVERWRITES:
        for value, line in ini.values(section):
            harmless = section == "feature-overwrite" and not _COUNTED.search(value)
            if _speaks_of(value, table.name) and not harmless:
                raise ini.error(f"[{section}] speaks of {table.name} too; edit the ini by hand", line)


def _check_kind(ini: MosesIni, table: FeatureLine) -> None:
    path = table.arguments.get("path", "")
    if table.kind in BINARY:
        beside = _text_beside(ini.resolve(path)) if path else None
        named = f" ({beside} lies beside it)" if beside else ""
        memory = "PhraseDictionaryMemory" if ini.version == 2 else "type 0"
        raise ini.error(
            f"{table.name} is a {BINARY[table.kind]} table ({path}), which cannot be annotated: annotate the text "
            f"table it was made from{named} and binarise the result, or name that table here as {memory}",
            table.line,
        )
    if table.kind not in TEXT:
        raise ini.error(f"{table.name}: a {table.kind} reads no text table, so no columns can be added", table.line)
    if not path:
        raise ini.error(f"{table.name}: expected path=FILE", table.line)


def _text_beside(path: str) -> str | None:
    """The text table that a binary one was probably made from."""
    folder = os.path.dirname(path)
    names = [*_spellings(path), os.path.join(folder, "phrase-table.gz"), os.path.join(path, "phrase-table.gz")]
    return next((name for name in names if os.path.isfile(name) and name != path), None)


def _check_counts(ini: MosesIni, feature: FeatureLine, least: int) -> None:
    """Refuse other numbers of weights than features; features that are sparse alone have `num-features=0`."""
    text = feature.arguments.get("num-features")
    if text is None and feature.kind not in TEXT:
        # How many scores it has is the class's own affair.
        return
    text = "1" if text is None else text
    if not (text.isascii() and text.isdecimal()):
        raise ini.error(f"{feature.name}: expected num-features=NUMBER, found {text!r}", feature.line)
    if (size := int(text)) < least:
        raise ini.error(f"{feature.name}: num-features=0: a table without scores cannot get more", feature.line)
    weights = ini.weights.get(feature.name)
    if weights is not None and len(weights) != size:
        where = f"line {ini.weight_lines[feature.name]} has" if feature.name in ini.weight_lines else "has"
        raise ini.error(
            f"{feature.name} has num-features={size}, but {where} {len(weights)} weights; Moses stops at that",
            feature.line,
        )
    flags = feature.arguments.get("tuneable-components")
    if flags is not None and len(flags.split(",")) != size:
        raise ini.error(
            f"{feature.name} has num-features={size}, but {len(flags.split(','))} tuneable-components", feature.line
        )


def _tuneable(feature: FeatureLine) -> bool:
    return boolean(feature.arguments.get("tuneable", "true")) is not False


def _speaks_of(value: str, name: str) -> bool:
    return any(name in (word, word.removesuffix("="), word.removeprefix("name=")) for word in WORD.findall(value))
