"""The phrase tables of a moses.ini: choice of a table, checks before columns are added, and weights."""

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
# Classes that read a binary table, and their names in messages.
BINARY = {
    "PhraseDictionaryCompact": "CompactPT",
    "PhraseDictionaryOnDisk": "OnDisk",
    "PhraseDictionaryBinary": "binary",
    "ProbingPT": "ProbingPT",
}
# Sections that may refer to a feature by its name, with as many numbers as it has scores.
_OVERWRITES = (
    "weight-add", "weight-overwrite", "alternate-weight-setting", "feature-add", "feature-overwrite",
    "feature-name-overwrite",
)  # fmt: skip
_COUNTED = re.compile(r"\b(path|num-features|tuneable-components)=")
_ENDING = re.compile(r"\.(gz|minphr)$")


@dataclass(frozen=True)
class TableWeights:
    """The weights of a model that determine the score of an entry.

    Attributes:
        scores: float32, shape (C,), weights of the score columns.
        phrase_penalty: weight of each phrase.
        distortion: weight of each word that a jump spans.
        name: name of the table's feature in the ini, for messages.
        size: sum of the absolute values of all weights of the model, by which scores are normalised.
    """

    scores: FloatArray
    phrase_penalty: float = 0.0
    distortion: float = 0.0
    name: str = "the model"
    size: float = 1.0

    def total(self, logs: FloatArray) -> FloatArray:
        """Return the contributions of N entries to the model score.

        Args:
            logs: float32, shape (N, C), natural logarithms of the scores of the entries.

        Returns:
            float32, shape (N,).
        """
        # Column by column: the order of additions in a matrix product may depend on the number of entries.
        total = np.full(len(logs), self.phrase_penalty, np.float64)
        for column, weight in enumerate(self.scores.astype(np.float64)):
            total += weight * logs[:, column]
        return total.astype(np.float32)


def weights_of(ini: MosesIni, table: FeatureLine) -> TableWeights:
    """Return the weights that an ini of version 1 or 2 gives the entries of one of its phrase tables.

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
    """Return the weights of a feature, which the ini must define."""
    if feature.name not in ini.weights:
        raise ini.error(
            f"[weight] has no line {feature.name}=, and Moses would take 1 for every weight; give it one", feature.line
        )
    return ini.weights[feature.name]


def phrase_tables(ini: MosesIni) -> list[FeatureLine]:
    """Return all phrase tables of an ini, of any class, in order."""
    return [
        feature for feature in ini.features
        if feature.kind in (*TEXT, *BINARY)
        or feature.kind.startswith(("PhraseDictionary", "Mmsapt", "[ttable-file]"))
    ]  # fmt: skip


def find_table(ini: MosesIni, table: str) -> FeatureLine:
    """Return the phrase table of an ini that is this file, or its only table (of which this file may be a part).

    Paths are resolved with `MosesIni.resolve`; if no table has exactly this name, `.gz` may be missing on either side.

    Raises:
        DataError: the ini has several tables of which none or more than one is this file, or no table at all.
    """
    tables = phrase_tables(ini)
    matches = _matching(ini, tables, table)
    if len(matches) == 1:
        return matches[0]
    if not matches and len(tables) == 1:
        # A table may be pruned before it is annotated, and then has another name.
        return tables[0]
    if matches:
        raise ini.error(f"several of its phrase tables are {table}: {_listed(matches)}; expected one")
    raise ini.error(f"none of its phrase tables is {table}: {_listed(tables)}", remedy="put the table into the ini")


def choose_table(ini: MosesIni, table: str, name: str | None = None) -> FeatureLine:
    """Return the phrase table of an ini that another table is to replace.

    Args:
        ini: the ini.
        table: the new table file; if the ini names it already, its feature is returned.
        name: name of the feature, in version 1 also the name that convert-moses-ini-to-v2.perl gives it; if None, the
            ini must have only one text table, or name `table`.

    Raises:
        DataError: no table matches, or several do.
    """
    tables = phrase_tables(ini)
    if name is not None:
        for index, feature in enumerate(tables):
            if feature.name == name or (ini.version == 1 and name == f"TranslationModel{index}"):
                return feature
        raise ini.error(f"there is no phrase table {name}: {_listed(tables)}")
    matches = _matching(ini, tables, table)
    if not matches:
        matches = [feature for feature in tables if feature.kind in TEXT] or tables
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise ini.error(f"there is no phrase table: {_listed(tables)}")
    raise ini.error(f"several phrase tables could be meant: {_listed(matches)}", remedy="name a table of the ini")


def _listed(tables: Sequence[FeatureLine]) -> str:
    return ", ".join(f"{t.name} ({t.arguments.get('path', t.kind)})" for t in tables) or "it names none"


def _matching(ini: MosesIni, tables: Sequence[FeatureLine], table: str) -> list[FeatureLine]:
    """Return the tables with exactly this path, or else those whose path differs from it only by an ending."""

    def named(feature: FeatureLine, paths: Iterable[str]) -> bool:
        return "path" in feature.arguments and any(_same(ini.resolve(path), table) for path in paths)

    exact = [feature for feature in tables if named(feature, [feature.arguments.get("path", "")])]
    return exact or [feature for feature in tables if named(feature, _spellings(feature.arguments.get("path", "")))]


def _spellings(path: str) -> list[str]:
    """Return the possible names of the text table for a path, which may be that of a binary table made from it."""
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
        DataError: the table or the ini is unsuitable; the message names the line and the remedy.
    """
    _check_kind(ini, table)
    for feature in ini.features:
        _check_counts(ini, feature, least=int(feature is table))
        if "_" in feature.name and _tuneable(feature) and feature.section == "feature":
            raise ini.error(
                f"{feature.name}: tuning treats a name with an underscore as a sparse feature; "
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
            if _refers_to(value, table.name) and not harmless:
                raise ini.error(f"[{section}] also refers to {table.name}; edit the ini by hand", line)


def _check_kind(ini: MosesIni, table: FeatureLine) -> None:
    path = table.arguments.get("path", "")
    if table.kind in BINARY:
        text_table = _text_table_next_to(ini.resolve(path)) if path else None
        named = f" ({text_table} exists next to it)" if text_table else ""
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


def _text_table_next_to(path: str) -> str | None:
    """Return the text table that a binary one was probably made from."""
    folder = os.path.dirname(path)
    names = [*_spellings(path), os.path.join(folder, "phrase-table.gz"), os.path.join(path, "phrase-table.gz")]
    return next((name for name in names if os.path.isfile(name) and name != path), None)


def _check_counts(ini: MosesIni, feature: FeatureLine, least: int) -> None:
    """Refuse a feature whose number of weights is not `num-features`, which is 0 for sparse features."""
    text = feature.arguments.get("num-features")
    if text is None and feature.kind not in TEXT:
        # The class itself determines the number of scores.
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


def _refers_to(value: str, name: str) -> bool:
    return any(name in (word, word.removesuffix("="), word.removeprefix("name=")) for word in WORD.findall(value))
