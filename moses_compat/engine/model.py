"""From a moses.ini to a model that translates: which files it names, and what the decoder makes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.engine.arpa import load_language_model
from moses_compat.engine.decoder_tables import InputPhrases, load_entries, load_reordering
from moses_compat.ini.lines import FeatureLine
from moses_compat.ini.moses_ini import MosesIni
from moses_compat.ini.reading import read_moses_ini
from moses_compat.ini.tables import BINARY
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.features import FeatureSet, Vector
from phrasetool.smt.decoder.orientation import ReorderingModel
from phrasetool.smt.decoder.table import Entries, TranslationTable, build_table
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from phrasetool.watch import ReadingProgress

_SINGLE = ("Distortion", "WordPenalty", "PhrasePenalty")
_LANGUAGE_MODELS = ("KENLM", "SRILM", "IRSTLM", "LM")
# Sections that change what is translated, and values that leave them off.
_UNSUPPORTED = ("weight-file", "xml-input", "drop-unknown", "input-type", "lmodel-oov-feature", "phrase-drop-allowed")
_HARMLESS = ("0", "false", "pass-through")
_KNOWN = (*_SINGLE, "UnknownWordPenalty", "PhraseDictionaryMemory", "LexicalReordering", *_LANGUAGE_MODELS)
# Of features and the like; `isdigit` takes digits that `int` does not.
_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class MosesModel:
    """What a moses.ini describes, before any table is read.

    Attributes:
        ini: the file.
        features: the feature functions, by the ini's names.
        weights: float64, shape (F,); 0 for a feature the ini does not have.
        listed: the feature functions the ini has and lets be tuned, in the order of a vector: those of n-best lists.
        tuneable: bool, shape (F,): what tuning may change.
        table, language_model: paths.
        reordering: path, or None.
        search: the ini's limits.
        table_name: what messages call the table, if not by its path.
    """

    ini: MosesIni
    features: FeatureSet
    weights: Vector
    listed: tuple[str, ...]
    tuneable: npt.NDArray[np.bool_]
    table: str
    language_model: str
    reordering: str | None
    search: SearchOptions
    table_name: str | None = None

    @classmethod
    def read(cls, path: str, table: str | None = None, reordering: str | None = None) -> MosesModel:
        """Read a moses.ini.

        Args:
            path: the ini.
            table, reordering: use these files instead of those it names.

        Raises:
            DataError: it cannot be read, or asks for what this decoder does not have; see `read_moses_ini`.
        """
        ini = read_moses_ini(path)
        lines = _lines_by_feature(ini)
        ini.check_weights()
        table_line, language_line = lines["TranslationModel"], lines["LM"]
        reordering_line = lines.get("LexicalReordering")
        if reordering is not None and reordering_line is None:
            raise ini.error(f"there is no LexicalReordering among the features that could read {reordering}")
        features = FeatureSet(
            _number(ini, table_line, "num-features"),
            _reordering_model(ini, reordering_line) if reordering_line else None,
            {feature: line.name for feature, line in lines.items()},
            _unknown_weight(ini, lines.get("UnknownWordPenalty")),
        )
        return cls(
            ini,
            features,
            _weights(ini, features, lines),
            tuple(f for f in features.sizes if f in lines and lines[f].arguments.get("tuneable") != "false"),
            _tuneable(ini, features, lines),
            table or _path(ini, table_line),
            _path(ini, language_line),
            (reordering or _path(ini, reordering_line, ".gz")) if reordering_line else None,
            _search_options(ini, table_line),
        )

    @property
    def paths(self) -> list[str]:
        """The files it reads."""
        return [self.table, self.language_model, *([self.reordering] if self.reordering is not None else [])]

    @property
    def tables(self) -> dict[str, str]:
        """What is read of it, as progress calls it, and where it is."""
        return {"phrase table": self.table, "reordering table": self.reordering or ""}

    def searching(self, **options: Any) -> MosesModel:
        """The model with other limits of the search than its ini's; fields of `SearchOptions`, None for the ini's."""
        given = {name: value for name, value in options.items() if value is not None}
        return replace(self, search=replace(self.search, **given))

    def load(
        self, text: bytes | ByteArray, threads: int = 1, progress: ReadingProgress | None = None
    ) -> tuple[Translator, InputPhrases]:
        """Read everything that the translation of a text needs.

        Args:
            text: one tokenised sentence a line.
            threads: for reading.
            progress: told how far reading is.

        Returns:
            The translator, and the text in its ids.

        Raises:
            DataError: a file is damaged or does not fit the ini.
        """
        source, targets = InputPhrases.of(text), Symbols()
        entries = self._phrase_entries(source, targets, threads, progress)
        # Unknown words are copied, so the language model is asked for those of the text, too.
        vocabulary = [*targets.words, *source.symbols.words]
        pool = ThreadPoolExecutor(1)
        try:
            reading = pool.submit(load_language_model, self.language_model, vocabulary)
            if threads == 1:
                wait([reading])
            entries = self._with_reordering(entries, source, targets, threads, progress)
            model = reading.result()
        finally:
            # Who interrupts does not wait for a large language model.
            pool.shutdown(wait=False)
        table = _table(entries, source, targets)
        return Translator(table, model, self.features, self.weights, self.search.table_limit), source

    def load_table(
        self, source: InputPhrases, targets: Symbols, threads: int = 1, progress: ReadingProgress | None = None
    ) -> TranslationTable:
        """Read the phrase and reordering table entries that a text can use; see `load`."""
        return _table(self.load_entries(source, targets, threads, progress), source, targets)

    def load_entries(
        self, source: InputPhrases, targets: Symbols, threads: int = 1, progress: ReadingProgress | None = None
    ) -> Entries:
        """The same, as they stand in the table."""
        entries = self._phrase_entries(source, targets, threads, progress)
        return self._with_reordering(entries, source, targets, threads, progress)

    def _phrase_entries(
        self, source: InputPhrases, targets: Symbols, threads: int, progress: ReadingProgress | None
    ) -> Entries:
        columns = self.features.table_scores
        return load_entries(
            self.table, source, targets, columns, threads, _part(progress, "phrase table"), self.table_name
        )

    def _with_reordering(
        self, entries: Entries, source: InputPhrases, targets: Symbols, threads: int, progress: ReadingProgress | None
    ) -> Entries:
        if self.reordering is not None and self.features.reordering is not None:
            scores = load_reordering(
                self.reordering, entries, source, targets, self.features.reordering.columns,
                self.features.reordering.source_only, threads, _part(progress, "reordering table"),
            )  # fmt: skip
            entries = replace(entries, reordering=scores)
        return entries

    def named_weights(self, weights: Vector) -> dict[str, list[float]]:
        """Weights by the ini's feature names, for `MosesIni.with_weights`."""
        slices = self.features.slices
        return {self.features.name(feature): weights[slices[feature]].tolist() for feature in self.listed}


def _table(entries: Entries, source: InputPhrases, targets: Symbols) -> TranslationTable:
    return build_table(entries, source.symbols, targets, np.unique(source.sentences.words).astype(np.int32))


def _part(progress: ReadingProgress | None, label: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda position, entries: progress(label, position, entries)


def _lines_by_feature(ini: MosesIni) -> dict[str, FeatureLine]:
    """The ini's feature lines by what they are to the decoder."""
    found: dict[str, FeatureLine] = {}
    for line in ini.features:
        if line.kind in BINARY:
            path = line.arguments.get("path", "")
            raise ini.error(
                f"{line.name} is a {BINARY[line.kind]} table ({path}), which only Moses reads; "
                "name the text table it was made from as PhraseDictionaryMemory",
                line.line,
            )
        if line.kind not in _KNOWN:
            known = ", ".join(_KNOWN)
            raise ini.error(f"the decoder does not know the feature {line.kind}; it knows {known}", line.line)
        feature = line.kind
        if line.kind == "PhraseDictionaryMemory":
            feature = "TranslationModel"
        elif line.kind in _LANGUAGE_MODELS:
            feature = "LM"
        if feature in found:
            raise ini.error(f"{line.name}: {found[feature].name} is there already; this decoder takes one", line.line)
        for key in ("factor", "input-factor", "output-factor"):
            if line.arguments.get(key, "0") != "0":
                raise ini.error(f"{line.name}: {key}={line.arguments[key]}: factors are not supported", line.line)
        found[feature] = line
    for feature, kind in (("TranslationModel", "PhraseDictionaryMemory"), ("LM", "KENLM")):
        if feature not in found:
            raise ini.error(f"there is no {kind} among the features")
    return found


def _number(ini: MosesIni, line: FeatureLine, key: str, default: int | None = None) -> int:
    value = line.arguments.get(key)
    if value is None and default is not None:
        return default
    if value is None or not _COUNT.fullmatch(value):
        raise ini.error(f"{line.name}: expected {key}=NUMBER, found {value!r}", line.line)
    return int(value)


def _path(ini: MosesIni, line: FeatureLine, *suffixes: str) -> str:
    """The file a feature reads; Moses adds .gz to the name of a reordering table itself."""
    named = line.arguments.get("path")
    if not named:
        raise ini.error(f"{line.name}: expected path=FILE", line.line)
    path = ini.resolve(named)
    for suffix in suffixes:
        if not os.path.exists(path) and os.path.exists(ini.resolve(named + suffix)):
            return ini.resolve(named + suffix)
    return path


def _reordering_model(ini: MosesIni, line: FeatureLine) -> ReorderingModel:
    if "default-scores" in line.arguments:
        raise ini.error(f"{line.name}: default-scores are not supported", line.line)
    try:
        model = ReorderingModel.parse(line.arguments.get("type", ""))
    except ValueError as error:
        raise ini.error(f"{line.name}: {error}", line.line) from error
    expected = _number(ini, line, "num-features", model.weights)
    if expected != model.weights:
        raise ini.error(f"{line.name}: its type has {model.weights} features, not {expected}", line.line)
    return model


def _unknown_weight(ini: MosesIni, line: FeatureLine | None) -> float:
    return _line_weights(ini, line, 1)[0] if line and line.name in ini.weights else float(line is not None)


def _line_weights(ini: MosesIni, line: FeatureLine, size: int) -> list[float]:
    values = ini.weights.get(line.name)
    if values is None:
        raise ini.error(f"[weight] has no line {line.name}=", line.line)
    if len(values) != size:
        raise ini.error(f"{line.name} has {size} features but {len(values)} weights", ini.weight_lines[line.name])
    return values


def _weights(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> Vector:
    # An ini may claim any number of features: looked at before there is an array for them.
    found = {
        feature: _line_weights(ini, lines[feature], part.stop - part.start)
        for feature, part in features.slices.items()
        if feature in lines
    }
    weights = np.zeros(len(features))
    for feature, values in found.items():
        weights[features.slices[feature]] = values
    return weights


def _search_options(ini: MosesIni, table: FeatureLine) -> SearchOptions:
    for section in _UNSUPPORTED:
        values = ini.sections.get(section)
        if values is not None and (not values or values[0] not in _HARMLESS):
            raise ini.error(f"[{section}] is not supported by this decoder")
    algorithm = ini.number("search-algorithm", 0)
    if algorithm not in (0, 1):
        raise ini.error(f"[search-algorithm] {algorithm} is not supported; expected 0 (stacks) or 1 (cube pruning)")
    beam = ini.sections.get("beam-threshold", ["1e-5"])
    try:
        return SearchOptions(
            algorithm="cube" if algorithm else "stack",
            stack_size=ini.number("stack", 200),
            pop_limit=ini.number("cube-pruning-pop-limit", 1000),
            beam_threshold=float(beam[0]) if beam else 1e-5,
            distortion_limit=ini.number("distortion-limit", -1),
            table_limit=_number(ini, table, "table-limit", 20),
        )
    except ValueError as error:
        raise ini.error(f"[stack], [cube-pruning-pop-limit] or [beam-threshold]: {error}") from error


def _tuneable(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> npt.NDArray[np.bool_]:
    tuneable = np.zeros(len(features), np.bool_)
    for feature, part in features.slices.items():
        if feature not in lines:
            continue
        line = lines[feature]
        size = part.stop - part.start
        components = line.arguments.get("tuneable-components")
        flags = components.split(",") if components else ["true"] * size
        if len(flags) != size:
            raise ini.error(f"{line.name}: {size} features but {len(flags)} tuneable-components", line.line)
        allowed = line.arguments.get("tuneable", "true") != "false"
        tuneable[part] = [allowed and flag == "true" for flag in flags]
    return tuneable


def check_sides(sentences: int, references: int, source_name: str, reference_name: str) -> None:
    """Refuse a text and a reference of different length.

    Raises:
        DataError: they differ.
    """
    if sentences != references:
        raise DataError(reference_name, f"has {references:,} lines, but {source_name} has {sentences:,}")
