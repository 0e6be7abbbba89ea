"""Translation models that a moses.ini describes, with the whole phrase table or some of its entries.

`LoadedModel` reads every entry that given texts can use, once.  A pruned table is then a mask: the decoder behaves as
if the pruned table had been written and read again, with the complete reordering table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from moses_compat.files.streams import check_readable
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

# A label or a non-terminal (moses/Phrase.cpp, CreateFromString).
_BRACKETED = re.compile(rb"\[.*\]", re.DOTALL)


@dataclass(frozen=True)
class MosesModel:
    """The model that a moses.ini describes, before any table is read.

    Attributes:
        ini: the file.
        features: the feature functions, by the ini's names.
        weights: float64, shape (F,); 0 for a feature that the ini does not have.
        listed: the tuneable feature functions of the ini, in the order in which n-best lists of Moses name them.
        tuneable: bool, shape (F,): weights that tuning may change.
        table_files, language_models: paths of all tables and models, in the ini's order.
        language_orders: maximum orders of SRILM and IRSTLM models; None for KENLM, which ignores the argument.
        reordering: path of the reordering table, or None.
        search: limits of the search.
        longest: length in words of the longest source phrases that are looked up.
        printing: format of printed translations.
        decoding: indexes of the used tables, in the order of the ini's decoding paths.
        place: index of the one table that a command handles, such as the table to prune.
        table_name: the name of that table in messages; its path if None.
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
            table, reordering: files that replace those of the ini; if the ini has several tables, `table` must be one
                of them.
            printed: whether sections that only concern printed translations are supported, see `check_sections`.

        Raises:
            DataError: the ini cannot be read or uses unsupported features; see `read_moses_ini`.
        """
        ini = read_moses_ini(path)
        check_sections(ini, printed)
        ini = overwritten(ini)
        lines = lines_by_feature(ini)
        ini.check_weights()
        table_lines, reordering_line = lines_of(lines, "TranslationModel"), lines.get("LexicalReordering")
        if reordering is not None and reordering_line is None:
            raise ini.error(f"[feature] has no LexicalReordering, which must exist to read {reordering}")
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
        index = _table_index(ini, table_lines, decoding, table)
        files = [path_of(ini, line) for line in table_lines]
        files[index] = table or files[index]
        return cls(
            ini,
            features,
            weights,
            _listed(ini, features, lines),
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
            index,
        )

    @property
    def table(self) -> str:
        """The path of the table at `place`."""
        return self.table_files[self.place]

    @property
    def used_tables(self) -> list[str]:
        """The paths of the used tables, in the order of the decoding paths."""
        return [self.table_files[index] for index in self.decoding]

    @property
    def shown_tables(self) -> str:
        """The names of the used tables, for messages."""
        return " and ".join(self._named(index) for index in self.decoding)

    def _named(self, place: int) -> str:
        return self.table_name if self.table_name and place == self.place else self.table_files[place]

    @property
    def paths(self) -> list[str]:
        """The files that the model reads."""
        return [*self.used_tables, *self.language_models, *([self.reordering] if self.reordering is not None else [])]

    @property
    def kept_paths(self) -> list[str]:
        """The files that no output may replace: those the model reads, and all files that its ini names."""
        return list(dict.fromkeys([self.ini.path, *self.paths, *self.ini.paths]))

    @property
    def tables(self) -> dict[str, str]:
        """The tables to read: their labels in progress reports, and their paths."""
        tables = {self._label(index): self.table_files[index] for index in self.decoding}
        return {**tables, "reordering table": self.reordering or ""}

    def _label(self, place: int) -> str:
        name = self.features.name(numbered("TranslationModel", place))
        return "phrase table" if len(self.decoding) == 1 else f"phrase table {name}"

    def check_files(self, paths: Iterable[str] | None = None) -> None:
        """Refuse files that are missing or cannot be opened; pipes are not opened.

        Args:
            paths: some of the model's files; all by default.

        Raises:
            DataError: a file cannot be read; for a file that the ini names, the error is one of the ini, which may have
                been moved without its files.
        """
        for path in self.paths if paths is None else paths:
            try:
                check_readable(path)
            except DataError as error:
                if path not in self.ini.paths:
                    raise
                message = f"names a file that cannot be read: {error}"
                raise DataError(self.ini.path, message, remedy=error.remedy) from error

    def report_reading(self, targets: Phrases, symbols: Symbols, watch: Watch) -> None:
        """Report what Moses reads in another way.

        These are relative paths, if Moses uses another base folder or the choice is uncertain, and words in brackets.

        Args:
            targets: the target phrases of the entries that have been read.
            symbols: their words.
            watch: receives the messages.
        """
        base = self.ini.path_base
        if base.note:
            (watch.warn if base.doubtful else watch.say)(f"{self.ini.path}: {base.note}")
        if message := _describe_brackets(targets, symbols):
            watch.warn(f"{self.shown_tables}: {message}")

    def searching(self, **options: Any) -> MosesModel:
        """Return the model with other search limits: fields of `SearchOptions`; None keeps the ini's limit."""
        limits = {name: value for name, value in options.items() if value is not None}
        if isinstance(limit := limits.get("table_limit"), int):
            limits["table_limit"] = limited_options(self.ini, (limit,) * len(self.table_files))
        return replace(self, search=replace(self.search, **limits))

    def load(
        self, text: bytes | ByteArray, threads: int = 1, progress: ReadingProgress | None = None
    ) -> tuple[Translator, InputPhrases]:
        """Read everything that the translation of a text needs.

        Args:
            text: one tokenised sentence per line.
            threads: number of threads for reading.
            progress: called as reading proceeds.

        Returns:
            The translator, and the text in its ids.

        Raises:
            DataError: a file is damaged or inconsistent with the ini.
        """
        source, targets = InputPhrases.of(text, self.longest), Symbols()
        entries = self._phrase_entries(source, targets, threads, progress)
        # Unknown words are copied, so the language model must score the words of the text, too.
        vocabulary = [*targets.words, *source.symbols.words]
        pool = ThreadPoolExecutor(1)
        try:
            reading = pool.submit(load_language_models, self.language_models, vocabulary, self.language_orders)
            if threads == 1:
                wait([reading])
            entries = self._with_reordering(entries, source, targets, threads, progress)
            model = reading.result()
        finally:
            # After an interruption, do not wait until a large language model is read.
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
        """Read the phrase and reordering table entries that a text can use, in the form that `build_table` takes."""
        entries = self._phrase_entries(source, targets, threads, progress)
        return self._with_reordering(entries, source, targets, threads, progress)

    def _phrase_entries(
        self, source: InputPhrases, targets: Symbols, threads: int, progress: ReadingProgress | None
    ) -> Entries:
        parts = []
        for index in self.decoding:
            columns = self.features.table_columns(index)
            entries = load_entries(
                self.table_files[index], source, targets, columns.stop - columns.start, threads,
                _part(progress, self._label(index)), self._named(index),
            )  # fmt: skip
            if len(self.features.tables) > 1:
                entries = entries.in_table(index, columns, sum(self.features.tables))
            parts.append(entries)
        return Entries.concatenate(parts)

    def _table(self, entries: Entries, source: InputPhrases, targets: Symbols) -> TranslationTable:
        words = np.unique(source.sentences.words).astype(np.int32)
        table = build_table(entries, source.symbols, targets, words)
        if "UnknownWordPenalty" not in self.features.names and table.copies.any():
            word = targets.words[table.targets.words[table.targets.offsets[table.copies.argmax()]]]
            raise self.ini.error(
                "[feature] has no UnknownWordPenalty, without which Moses crashes at an unknown word: "
                f"the text contains {word.decode('utf-8', 'replace')}, which no entry translates alone",
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
        """Return the weights by the ini's feature names, for `MosesIni.with_weights`."""
        slices = self.features.slices
        return {self.features.name(feature): weights[slices[feature]].tolist() for feature in self.listed}


def _listed(ini: MosesIni, features: FeatureSet, lines: Mapping[str, FeatureLine]) -> tuple[str, ...]:
    """Return the tuneable features in the order of the ini, those with a state first, as in n-best lists of Moses."""
    listed = [f for f in lines if f in features.sizes and flag(ini, lines[f], "tuneable", True)]
    stateless = ("WordPenalty", "PhrasePenalty", "PhraseDictionaryMemory")
    return tuple(sorted(listed, key=lambda f: lines[f].kind in stateless))


def _describe_brackets(targets: Phrases, symbols: Symbols) -> str | None:
    """Return a message about target phrases with a word in brackets; None if there are none.

    Moses removes such a word at the end of a phrase, and takes it for a non-terminal elsewhere.  Tables extracted from
    a text in which brackets are not escaped contain such words, so these entries are not rejected.
    """
    used = np.unique(targets.words)
    bracketed = [word for word in used.tolist() if _BRACKETED.fullmatch(symbols.words[word])]
    positions = np.flatnonzero(np.isin(targets.words, bracketed))
    if not len(positions):
        return None
    count = len(np.unique(np.searchsorted(targets.offsets, positions, "right")))
    entries = "1 entry has" if count == 1 else f"{count:,} entries have"
    word = symbols.words[targets.words[positions[0]]].decode(errors="replace")
    return (
        f"{entries} a target word in brackets, such as {word}, which Moses reads as a label or a non-terminal, and not "
        "as a word; write the brackets as &#91; and &#93;"
    )


def _table_index(ini: MosesIni, lines: Sequence[FeatureLine], decoding: Sequence[int], table: str | None) -> int:
    """Return the index of the phrase table whose file is `table` or is replaced by it."""
    if table is None or len(lines) == 1:
        return decoding[0]
    index = lines.index(choose_table(ini, table))
    if index not in decoding:
        raise ini.error(f"[mapping] does not use {lines[index].name}, which {table} is", lines[index].line)
    return index


def _part(progress: ReadingProgress | None, label: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda position, entries: progress(label, position, entries)


def check_sides(sentences: int, references: int, source_name: str, reference_name: str) -> None:
    """Check that a text and a reference have the same number of lines.

    Raises:
        DataError: the numbers differ.
    """
    if sentences != references:
        raise DataError(reference_name, f"has {references:,} lines, but {source_name} has {sentences:,}")


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory that translates given texts with the whole phrase table or parts of it.

    Attributes:
        model: the model of a moses.ini.
        sentences: the sentences of each text by its name, in the ids of `source_symbols`.
        source_symbols, target_symbols: words.
        entries: the table entries that the texts can use.
        language_model: the language models of the target language.
        threads: number of threads for translating.
        runner: runs the translation of sentences; threads if None.
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
    ) -> LoadedModel:
        """Read a model for some texts.

        Args:
            model: names the files, weights and limits.
            texts: texts by their names, each with one tokenised sentence per line.
            threads: number of threads for reading and for translating.
            progress: called as reading proceeds.

        Raises:
            DataError: see `MosesModel.load`.
        """
        symbols, sentences = Symbols(), {}
        for name, text in texts.items():
            sentences[name] = symbols.read_lines(surface_words(text, f"the text {name}"))
        source = InputPhrases.of_sentences(symbols, Phrases.concatenate(list(sentences.values())), model.longest)
        # After pruning, any word may have to be copied, so the language model must score all of them.
        targets = Symbols(symbols.words)
        entries = model.load_entries(source, targets, threads, progress)
        language_model = load_language_models(model.language_models, targets.words, model.language_orders)
        return cls(model, sentences, symbols, targets, entries, language_model, threads)

    def translator(self, keep: Mask | None = None) -> Translator:
        """Return a decoder with some of the entries.

        Args:
            keep: bool, shape (N,), which of the N entries of the whole table are kept; all if None.  Entries of the
                ini's other tables are always kept.
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
        """Return the translations of all texts, by their names.

        Args:
            translator: a result of `translator`.
            tick: called after each sentence.
        """
        translations: dict[str, list[str]] = {}
        for name, sentences in self.sentences.items():
            lines = translations[name] = []
            for translation in translator.translate_all(
                sentences, self.model.search, threads=self.threads, runner=self.runner or run
            ):
                lines.append(translator.text(translation).decode(errors="replace"))
                tick()
        return translations
