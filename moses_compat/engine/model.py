"""From a moses.ini to a model that translates, with its table as a whole or with some of the entries.

`Laboratory` reads every entry that given texts can use, once.  A pruned table is then a mask: the decoder does with it
what it would do with the table written and read again, the reordering table left whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.texts import surface_words
from moses_compat.engine.decoder_tables import InputPhrases, load_entries, load_reordering
from moses_compat.engine.language_models import load_language_models
from moses_compat.engine.model_lines import (
    MAX_PHRASE_LENGTH,
    check_option_count,
    flag,
    limited_options,
    lines_by_feature,
    lines_of,
    max_phrase_length,
    number_of,
    path_of,
    reordering_model,
    search_options,
    tuneable_weights,
    unknown_weight,
    used_tables,
    weights_of,
)
from moses_compat.engine.n_best import PLAIN, Printing
from moses_compat.ini.moses_ini import FeatureLine, MosesIni
from moses_compat.ini.reading import check_sections, overwritten, read_moses_ini
from moses_compat.ini.tables import choose_table
from phrasetool.errors import DataError
from phrasetool.phrases import ByteArray, Int32Array, Mask, Phrases
from phrasetool.pipeline import Runner, run
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.features import FeatureSet, Vector, numbered
from phrasetool.smt.decoder.table import Entries, TranslationTable, build_table
from phrasetool.smt.decoder.translator import SearchOptions, Translator
from phrasetool.smt.language_model.ngrams import TargetModel
from phrasetool.watch import ReadingProgress, Watch


@dataclass(frozen=True)
class MosesModel:
    """What a moses.ini describes, before any table is read.

    Attributes:
        ini: the file.
        features: the feature functions, by the ini's names.
        weights: float64, shape (F,); 0 for a feature the ini does not have.
        listed: the feature functions the ini has and lets be tuned, in the order of a vector: those of n-best lists.
        tuneable: bool, shape (F,): what tuning may change.
        table_files, language_models: paths of all, in the ini's order.
        language_orders: what SRILM and IRSTLM limit their models to; None for KENLM, which passes over the argument.
        reordering: path, or None.
        search: the ini's limits.
        longest: words of the longest source phrases that are looked up.
        printing: how translations are printed.
        decoding: the places of the tables that are used, in the order of the ini's decoding paths.
        place: of the table that is meant where one is, such as the one to prune.
        table_name: what messages call that table, if not by its path.
    """

    ini: MosesIni
    features: FeatureSet
    weights: Vector
    listed: tuple[str, ...]
    tuneable: npt.NDArray[np.bool_]
    table_files: tuple[str, ...]
    language_models: tuple[str, ...]
    language_orders: tuple[int | None, ...]
    reordering: str | None
    search: SearchOptions
    longest: int = MAX_PHRASE_LENGTH
    printing: Printing = PLAIN
    decoding: tuple[int, ...] = (0,)
    place: int = 0
    table_name: str | None = None

    @classmethod
    def read(
        cls, path: str, table: str | None = None, reordering: str | None = None, *, printed: bool = False
    ) -> MosesModel:
        """Read a moses.ini.

        Args:
            path: the ini.
            table, reordering: use these files instead of those it names; of several tables, the table must be one of
                them.
            printed: whether sections that concern printed translations alone are supported, see `check_sections`.

        Raises:
            DataError: it cannot be read, or asks for what this decoder does not have; see `read_moses_ini`.
        """
        ini = read_moses_ini(path)
        check_sections(ini, printed)
        ini = overwritten(ini)
        lines = lines_by_feature(ini)
        ini.check_weights()
        table_lines, reordering_line = lines_of(lines, "TranslationModel"), lines.get("LexicalReordering")
        if reordering is not None and reordering_line is None:
            raise ini.error(f"there is no LexicalReordering among the features that could read {reordering}")
        language_lines = lines_of(lines, "LM")
        features = FeatureSet(
            tuple(number_of(ini, line, "num-features") for line in table_lines),
            reordering_model(ini, reordering_line) if reordering_line else None,
            {feature: line.name for feature, line in lines.items()},
            unknown_weight(ini, lines.get("UnknownWordPenalty")),
            len(language_lines),
            "Distortion" in lines,
        )
        weights = weights_of(ini, features, lines)
        decoding = used_tables(ini, len(table_lines))
        place = _place_of(ini, table_lines, decoding, table)
        files = [path_of(ini, line) for line in table_lines]
        files[place] = table or files[place]
        return cls(
            ini,
            features,
            weights,
            tuple(f for f in features.sizes if f in lines and flag(ini, lines[f], "tuneable", True)),
            tuneable_weights(ini, features, lines),
            tuple(files),
            tuple(path_of(ini, line) for line in language_lines),
            tuple(
                None if line.kind == "KENLM" or "order" not in line.arguments else number_of(ini, line, "order")
                for line in language_lines
            ),
            (reordering or path_of(ini, reordering_line, ".gz")) if reordering_line else None,
            search_options(ini, table_lines),
            max_phrase_length(ini),
            Printing.of(ini),
            decoding,
            place,
        )

    @property
    def table(self) -> str:
        """The table that is meant where one is."""
        return self.table_files[self.place]

    @property
    def used_tables(self) -> list[str]:
        """The tables that are used, in the order in which they are asked."""
        return [self.table_files[place] for place in self.decoding]

    @property
    def shown_tables(self) -> str:
        """What messages call the tables that are used."""
        return " and ".join(self._named(place) for place in self.decoding)

    def _named(self, place: int) -> str:
        return self.table_name if self.table_name and place == self.place else self.table_files[place]

    @property
    def paths(self) -> list[str]:
        """The files it reads."""
        return [*self.used_tables, *self.language_models, *([self.reordering] if self.reordering is not None else [])]

    @property
    def kept_paths(self) -> list[str]:
        """The files that no output may replace: those it reads, and those that its ini names, read or not."""
        return [self.ini.path, *self.paths, *self.ini.paths]

    @property
    def tables(self) -> dict[str, str]:
        """What is read of it, as progress calls it, and where it is."""
        tables = {self._label(place): self.table_files[place] for place in self.decoding}
        return {**tables, "reordering table": self.reordering or ""}

    def _label(self, place: int) -> str:
        name = self.features.name(numbered("TranslationModel", place))
        return "phrase table" if len(self.decoding) == 1 else f"phrase table {name}"

    def tell_paths(self, watch: Watch) -> None:
        """Say where the ini's paths start from if it is not as Moses reads them, or if it is doubtful."""
        base = self.ini.path_base
        if base.note:
            (watch.warn if base.doubtful else watch.say)(f"{self.ini.path}: {base.note}")

    def searching(self, **options: Any) -> MosesModel:
        """The model with other limits of the search than its ini's; fields of `SearchOptions`, None for the ini's."""
        given = {name: value for name, value in options.items() if value is not None}
        if isinstance(limit := given.get("table_limit"), int):
            given["table_limit"] = limited_options(self.ini, (limit,) * len(self.table_files))
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
        source, targets = InputPhrases.of(text, self.longest), Symbols()
        entries = self._phrase_entries(source, targets, threads, progress)
        # Unknown words are copied, so the language model is asked for those of the text, too.
        vocabulary = [*targets.words, *source.symbols.words]
        pool = ThreadPoolExecutor(1)
        try:
            reading = pool.submit(load_language_models, self.language_models, vocabulary, self.language_orders)
            if threads == 1:
                wait([reading])
            entries = self._with_reordering(entries, source, targets, threads, progress)
            model = reading.result()
        finally:
            # Who interrupts does not wait for a large language model.
            pool.shutdown(wait=False)
        table = self._table(entries, source, targets)
        return Translator(table, model, self.features, self.weights, self.search.table_limit), source

    def load_table(
        self, source: InputPhrases, targets: Symbols, threads: int = 1, progress: ReadingProgress | None = None
    ) -> TranslationTable:
        """Read the phrase and reordering table entries that a text can use; see `load`."""
        return self._table(self.load_entries(source, targets, threads, progress), source, targets)

    def load_entries(
        self, source: InputPhrases, targets: Symbols, threads: int = 1, progress: ReadingProgress | None = None
    ) -> Entries:
        """The same, as they stand in the table."""
        entries = self._phrase_entries(source, targets, threads, progress)
        return self._with_reordering(entries, source, targets, threads, progress)

    def _phrase_entries(
        self, source: InputPhrases, targets: Symbols, threads: int, progress: ReadingProgress | None
    ) -> Entries:
        found = []
        for place in self.decoding:
            columns = self.features.table_columns(place)
            entries = load_entries(
                self.table_files[place], source, targets, columns.stop - columns.start, threads,
                _part(progress, self._label(place)), self._named(place),
            )  # fmt: skip
            if len(self.features.tables) > 1:
                entries = entries.in_table(place, columns, sum(self.features.tables))
            found.append(entries)
        return Entries.concatenate(found)

    def _table(self, entries: Entries, source: InputPhrases, targets: Symbols) -> TranslationTable:
        words = np.unique(source.sentences.words).astype(np.int32)
        table = build_table(entries, source.symbols, targets, words)
        if "UnknownWordPenalty" not in self.features.names and table.copies.any():
            word = targets.words[table.targets.words[table.targets.offsets[table.copies.argmax()]]]
            raise self.ini.error(
                "there is no UnknownWordPenalty among the features, and Moses crashes at an unknown word: "
                f"the text holds {word.decode('utf-8', 'replace')}, which no entry translates alone",
                self.ini.features[0].line,
            )
        check_option_count(self.ini, table, self.search.table_limit)
        return table

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


def _place_of(ini: MosesIni, lines: Sequence[FeatureLine], decoding: Sequence[int], table: str | None) -> int:
    """Which of several phrase tables a file is, or takes the place of."""
    if table is None or len(lines) == 1:
        return decoding[0]
    place = lines.index(choose_table(ini, table))
    if place not in decoding:
        raise ini.error(f"[mapping] does not use {lines[place].name}, which {table} is", lines[place].line)
    return place


def _part(progress: ReadingProgress | None, label: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda position, entries: progress(label, position, entries)


def check_sides(sentences: int, references: int, source_name: str, reference_name: str) -> None:
    """Refuse a text and a reference of different length.

    Raises:
        DataError: they differ.
    """
    if sentences != references:
        raise DataError(reference_name, f"has {references:,} lines, but {source_name} has {sentences:,}")


@dataclass(frozen=True)
class Laboratory:
    """What `load` reads.

    Attributes:
        model: the ini.
        sentences: of each text by its name, in the ids of `source_symbols`.
        source_symbols, target_symbols: words.
        entries: of the tables, those that the texts can use.
        language_model: of the target language.
        threads: for translating.
        runner: has sentences translated; threads if None.
    """

    model: MosesModel
    sentences: Mapping[str, Phrases]
    source_symbols: Symbols
    target_symbols: Symbols
    entries: Entries
    language_model: TargetModel
    threads: int = 1
    runner: Runner | None = None

    @classmethod
    def load(
        cls, model: MosesModel, texts: Mapping[str, bytes], threads: int = 1, progress: ReadingProgress | None = None
    ) -> Laboratory:
        """Read a model for some texts.

        Args:
            model: which files, weights and limits.
            texts: one tokenised sentence a line each.
            threads: for reading, and for translating.
            progress: told how far reading is.

        Raises:
            DataError: see `MosesModel.load`.
        """
        symbols, sentences = Symbols(), {}
        for name, text in texts.items():
            sentences[name] = symbols.read_lines(surface_words(text, f"the text {name}"))
        source = InputPhrases.of_sentences(symbols, Phrases.concatenate(list(sentences.values())), model.longest)
        # Words may have to be copied, whatever is pruned, so the language model is asked for all of them.
        targets = Symbols(symbols.words)
        entries = model.load_entries(source, targets, threads, progress)
        language_model = load_language_models(model.language_models, targets.words, model.language_orders)
        return cls(model, sentences, symbols, targets, entries, language_model, threads)

    def translator(self, keep: Mask | None = None) -> Translator:
        """A decoder that has some of the entries.

        Args:
            keep: bool, shape (N,), which of the N entries of the whole table are there; all if None.  Those of
                other tables of the ini stay.
        """
        entries = self.entries
        if keep is not None:
            own = entries.tables == self.model.place
            entries = entries.select(~own | keep[np.where(own, entries.numbers, 0)])
        words = [phrases.words for phrases in self.sentences.values()]
        copied: Int32Array = np.unique(np.concatenate([np.zeros(0, np.int32), *words]))
        table = build_table(entries, self.source_symbols, self.target_symbols, copied)
        limit = self.model.search.table_limit
        return Translator(table, self.language_model, self.model.features, self.model.weights, limit)

    def translate(self, translator: Translator, tick: Callable[[], None] = lambda: None) -> dict[str, list[str]]:
        """The translations of all texts, by their names.

        Args:
            translator: of `translator`.
            tick: called after each sentence.
        """
        found: dict[str, list[str]] = {}
        for name, sentences in self.sentences.items():
            lines = found[name] = []
            for translation in translator.translate_all(
                sentences, self.model.search, threads=self.threads, runner=self.runner or run
            ):
                lines.append(translator.text(translation).decode(errors="replace"))
                tick()
        return found
