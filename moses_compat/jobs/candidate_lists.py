"""Lists of candidates: the vocabulary map of CTranslate2, the shortlist of Marian, and their coverage of a text.

The table is read once.  The candidates of every source phrase are stored on disk.  After the last entry, the most
frequent target words and the candidates of single words are known, and the list is written.

The lexical shortlist of Marian, and of the translator in Firefox, which is based on it, has two formats.  The text
format (marian-dev, src/data/shortlist.h, `LexicalShortlistGenerator::load`) has lines `target source probability`.  The
binary format (`BinaryShortlistGenerator`) consists of little-endian integers of eight bytes:

    magic  checksum  first  best  S + 1  N      first: how many of the first target units are always candidates; best:
                                                most candidates of a unit; S source units; N candidates
    start of the candidates of each source unit, and the end
    the candidates: numbers of target units in four bytes, ascending for each source unit

The checksum covers all complete groups of eight bytes after it, as in `util::hashMem`.  Marian rejects a file in which
the last source unit has no candidate; such a unit gets the first target unit, which ends a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.paths import display_name, scratch_place
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE, CountTally
from moses_compat.lines.fields import has_separators, phrase_text
from moses_compat.lines.numbers import DIRECT_COLUMN, require_trained_scores
from moses_compat.measures.entry_reader import EntryReader, Item, ReadBlock
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.opening import open_table
from moses_compat.tables.source_order import SourceLook, SourceOrder
from phrasetool.errors import DataError
from phrasetool.export.candidates import (
    CandidateStore,
    Selector,
    TargetCandidates,
    as_phrases,
    discounted_frequencies,
    most_frequent,
    unit_candidates,
    word_probabilities,
)
from phrasetool.export.units import Texts, UnitTable, Words, joined, lines_of
from phrasetool.export.vocabularies import UnitVocabulary, read_vocabulary
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, DoubleArray, Int32Array, Int64Array, Phrases
from phrasetool.pipeline import run
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.text_splitting import lines_with_ends, split_lines, split_words
from phrasetool.vocabulary import unescape
from phrasetool.watch import SILENT, Watch

MAGIC = 0xF11A48D5013417F5
_GOLDEN, _LEFT, _RIGHT = np.uint64(0x9E3779B9), np.uint64(6), np.uint64(2)


@dataclass(frozen=True)
class SourceEntries:
    """The entries of a block whose sources are short enough: N entries of G sources.

    Attributes:
        raw: the block.
        text: text of the block.
        source_starts, source_ends: int64, shape (G,), offsets of the sources in the text.
        weights: float64, shape (G,), counts of the sources; 1 if the table has none.
        group_offsets: int64, shape (G + 1,).
        target_starts, target_ends: int64, shape (N,), offsets of the targets in the text.
        values: float64, shape (N,), contributions of the entries to the probabilities of their words.
        counts: float64, shape (N,), joint counts of the entries; p(e|f) if the table has none.
        tally: tally of the counts of all entries of the block.
    """

    raw: RawBlock
    text: ByteArray
    source_starts: Int64Array
    source_ends: Int64Array
    weights: DoubleArray
    group_offsets: Int64Array
    target_starts: Int64Array
    target_ends: Int64Array
    values: DoubleArray
    counts: DoubleArray
    tally: CountTally


class EntrySelector:
    """Reader that selects the entries of short sources in one pass.

    Args:
        source: the table, at its beginning.
        scan: settings for reading the table.
        longest: largest number of words of a source.
        similarities: similarities that weight the entries, if any.
    """

    def __init__(self, source: Input, scan: TableScan, longest: int, similarities: SimilaritySource | None) -> None:
        self._name, self._scan, self._longest = source.name, scan, longest
        self._reader = EntryReader(source, scan, similarities, columns=self._columns)
        self._order = SourceOrder(source, scan)

    def _columns(self, scores: int) -> tuple[int, ...]:
        require_trained_scores(self._name, scores, 1)
        return (DIRECT_COLUMN,) if scores > DIRECT_COLUMN else ()

    def blocks(self) -> Iterator[SourceEntries]:
        """Yield the entries, block by block.

        Raises:
            DataError: the table is damaged, has a malformed line while `scan.on_error` is `fail`, has fewer than four
                scores, or the entries of a source are not contiguous.
        """
        entries = 0
        for entries_of_block in self._order.follow(run(self._reader.items(), self._work, self._scan.threads)):
            yield entries_of_block
            entries += entries_of_block.raw.lines
            self._scan.progress(entries_of_block.raw.position, entries)
        self._reader.finish(entries)

    def _work(self, item: Item) -> tuple[SourceLook | None, SourceEntries]:
        read = self._reader(item)
        block = read.block
        sizes = np.diff(block.group_offsets)
        short = (block.source_lengths > 0) & (block.source_lengths <= self._longest)
        rows = np.flatnonzero(np.repeat(short, sizes) & ~block.malformed)
        owners = np.repeat(np.arange(len(sizes)), sizes)[rows]
        _, first = np.unique(owners, return_index=True)
        offsets = np.append(first, len(rows)).astype(np.int64)
        values, weights, counts = _values(read, rows, first)
        if read.scores:
            # An entry without a score of the model is not weighted.
            mean = read.scores.similarities[rows].mean(axis=1, dtype=np.float64)
            values *= np.where(read.scores.scored[rows], np.exp(mean - 1), 1.0)
        heads = rows[first]
        return self._order.look(read.raw, block), SourceEntries(
            read.raw, block.text, block.line_offsets[heads], block.source_ends[heads], weights, offsets,
            block.source_ends[rows] + 3, block.target_ends[rows], values, counts,
            CountTally.of(read.counts, ~block.malformed),
        )  # fmt: skip


def _values(read: ReadBlock, rows: Int64Array, first: Int64Array) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return the contributions of entries to the probabilities of words, and the counts of sources and entries."""
    counts, columns = read.counts.values[rows], read.columns
    direct = columns[rows, 0] if columns.shape[1] else np.zeros(len(rows))
    counted = np.isfinite(counts[:, [OF_SOURCE, OF_PAIR]]).all(axis=1) & (counts[:, OF_SOURCE] > 0)
    discounted = discounted_frequencies(counts[:, OF_PAIR], counts[:, OF_SOURCE])
    values = np.clip(np.where(counted, discounted, direct), 0, 1)
    weights = np.where(counted, counts[:, OF_SOURCE], 1.0)[first]
    return values, weights, np.where(counted, counts[:, OF_PAIR], direct)


@dataclass(frozen=True)
class CandidateRequest:
    """Settings for the export of a list of candidates.

    Attributes:
        table: a phrase table; `-` for standard input.
        output: the file of the list.
        shortlist: whether the list is for single units, with probabilities (Marian), or for phrases (CTranslate2).
        binary: whether the shortlist is written in Marian's memory-mapped format; needs vocabularies with numbers.
        most: largest number of candidates of a source phrase.
        longest: largest number of words of a source phrase.
        always: number of the most frequent target units that are always candidates; part of a binary shortlist.
        least: smallest probability of a candidate of a phrase.
        source_vocabulary, target_vocabulary: files of the units, see `phrasetool.export.vocabularies`.
        evaluate: a text and its translation, on which coverage is measured.
        similarities: similarities s of both directions; the probability of an entry is multiplied by exp(mean(s) - 1).
        scan: settings for reading the table.
        sort: whether the table is sorted first.
    """

    table: str
    output: str
    shortlist: bool = False
    binary: bool = False
    most: int = 100
    longest: int = 3
    always: int = 100
    least: float = 0.01
    source_vocabulary: str | None = None
    target_vocabulary: str | None = None
    evaluate: Sequence[str] | None = None
    similarities: SimilaritySource | None = None
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False

    def __post_init__(self) -> None:
        if self.binary and not (self.shortlist and self.source_vocabulary and self.target_vocabulary):
            raise ValueError("a binary shortlist needs both vocabularies")


@dataclass
class CandidateReport:
    """Results of the export.

    Attributes:
        entries: lines of the table.
        sources: source phrases that are short enough.
        phrases: source phrases with candidates in the list.
        candidates: candidates of all these phrases.
        always: units that are always candidates.
        source_units, target_units: shares of the table's words, weighted by their counts, that consist of units of the
            vocabulary.
        coverage: coverage of the text for evaluation.
        counts: numbers of entries with missing and derived joint counts.
        unreadable: words that were skipped because a reader of the list would split them.
    """

    entries: int = 0
    sources: int = 0
    phrases: int = 0
    candidates: int = 0
    always: int = 0
    source_units: float = 1.0
    target_units: float = 1.0
    coverage: Coverage | None = None
    counts: CountTally = field(default_factory=CountTally)
    unreadable: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


# Shares of known tokens below which a text is rejected, and below which there is a warning.  Third: the gain from lower
# case, or the share of subword units, above which the message suggests this as the reason.
_LEAST, _DOUBTFUL, _GAIN = 0.1, 0.7, 0.1
_JOINER, _SPACE_MARK = b"@@", "\u2581".encode()
Line = Callable[[str], list[bytes]]


@dataclass(frozen=True)
class Coverage:
    """Coverage of a translation by candidates.

    Attributes:
        sentences, tokens: numbers of sentences and tokens of the translation.
        covered: tokens that are candidates of their sentences.
        whole: sentences with all tokens covered.
        reachable: tokens that are candidates of any phrase.
        known: share of the source's tokens that occur in the table.
        mean, median, percentile_95: number of candidates per sentence.
    """

    sentences: int
    tokens: int
    covered: int
    whole: int
    reachable: int
    known: float
    mean: float
    median: float
    percentile_95: float


class CoverageMeter:
    """Meter of the coverage of a translation by the lines of a list.

    Args:
        texts: a text, and its translation.
        source_line, target_line: functions that split a line into units.

    Raises:
        DataError: a text cannot be read, is empty, or the texts have different numbers of lines.
    """

    def __init__(self, texts: Sequence[str], source_line: Line, target_line: Line) -> None:
        self._name = display_name(texts[0])
        sources, targets = read_text_lines(texts[0]), read_text_lines(texts[1])
        if len(sources) != len(targets):
            raise DataError(texts[1], f"{len(targets):,} lines, but {texts[0]} has {len(sources):,}")
        self._sources = [source_line(line) for line in sources]
        self._targets = [target_line(line) for line in targets]
        if not any(self._sources) or not any(self._targets):
            raise DataError(texts[0], "there is no word in the text or its translation")
        self._units = {unit for line in self._sources for unit in line}
        self._lists: dict[bytes, set[bytes]] = {}
        self._reachable: set[bytes] = set()

    def see(self, key: bytes, candidates: Sequence[bytes]) -> None:
        """Add a line of the list; further candidates of a known key are added to it."""
        self._reachable.update(candidates)
        units = key.split(b" ") if key else []
        if self._units.issuperset(units):
            self._lists.setdefault(key, set()).update(candidates)

    def see_map(self, text: bytes) -> None:
        """Add lines of a vocabulary map."""
        for line in split_lines(text):
            key, _, candidates = line.partition(b"\t")
            self.see(key, candidates.split(b" "))

    def coverage(self, known: Callable[[bytes], bool]) -> Coverage:
        """Return the coverage by all lines so far.

        Args:
            known: function that returns whether the table has a source unit.
        """
        longest = max((key.count(b" ") + 1 for key in self._lists if key), default=0)
        always = self._lists.get(b"", set())
        sizes, covered, whole = [], 0, 0
        for source, target in zip(self._sources, self._targets, strict=True):
            candidates = always.union(*(self._lists.get(key, ()) for key in _parts(source, longest)))
            hits = sum(unit in candidates for unit in target)
            covered, whole = covered + hits, whole + (hits == len(target))
            sizes.append(len(candidates))
        tokens = sum(map(len, self._targets))
        return Coverage(
            len(sizes), tokens, covered, whole, sum(unit in self._reachable for line in self._targets for unit in line),
            _share(self._tokens, known), float(np.mean(sizes)), float(np.median(sizes)),
            float(np.percentile(sizes, 95)),
        )  # fmt: skip

    @property
    def _tokens(self) -> list[bytes]:
        return [unit for line in self._sources for unit in line]

    def check(self, coverage: Coverage, known: Callable[[bytes], bool], scan: TableScan) -> None:
        """Reject a text that does not match the table, or warn about it.

        Raises:
            DataError: almost no token of the text is known, and `scan.force` is not set.
        """
        if coverage.known >= _DOUBTFUL:
            return
        lowered = _share([unit.decode("utf-8", "replace").lower().encode() for unit in self._tokens], known)
        pieces = _share(self._tokens, lambda unit: unit.endswith(_JOINER) or unit.startswith(_SPACE_MARK))
        message = f"only {100 * coverage.known:.0f}% of its {len(self._tokens):,} tokens are in the table"
        if lowered > coverage.known + _GAIN:
            message += f"; in lower case, {100 * lowered:.0f}% would be: the table is lowercased"
        elif pieces > _GAIN:
            message += "; they are subword units, and a table of words needs the model that splits them"
        else:
            message += "; expected text of the table's source language, with its tokens and its capitals"
        error = DataError(self._name, message, remedy="go on")
        if coverage.known < _LEAST:
            scan.refuse(error)
        else:
            scan.warn(str(error))


def _share(units: Sequence[bytes], has: Callable[[bytes], bool]) -> float:
    return sum(map(has, units)) / max(1, len(units))


def _parts(units: Sequence[bytes], longest: int) -> Iterator[bytes]:
    """Yield all sequences of up to `longest` consecutive units, as keys."""
    for first in range(len(units)):
        for last in range(first + 1, min(first + longest, len(units)) + 1):
            yield b" ".join(units[first:last])


# Shares of a table's words below which a vocabulary is rejected, and below which there is a warning.
_LEAST_UNITS, _FEW_UNITS = 0.1, 0.7


class ListWriter(Protocol):
    """Writer of a list of candidates.

    Attributes:
        breaks: characters at which the list's reader splits words, in addition to spaces, tabs and line ends.
    """

    breaks: str

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """Write the list, and pass its lines to the meter."""


class Collected:
    """All candidates of a table.

    Args:
        request: the settings.
        breaks: see `ListWriter`.

    Attributes:
        sources, targets: the units of the table's words.
        store: the candidates, in the order of the table.
        frequencies: float64, shape (V,), counts of the target units in translations of single words.
    """

    def __init__(self, request: CandidateRequest, breaks: str = "") -> None:
        self.request, self._breaks = request, breaks
        self.source_vocabulary, self.target_vocabulary = (
            read_vocabulary(path) if path else UnitVocabulary(Words())
            for path in (request.source_vocabulary, request.target_vocabulary)
        )
        self._source_words, self._target_words = Symbols(), Symbols()
        # A vocabulary map is looked up by text, and may contain words that are not in the vocabulary.
        known = self.source_vocabulary.numbers if request.shortlist else None
        source, target = self.source_vocabulary.segmenter, self.target_vocabulary.segmenter
        self._unreadable: set[bytes] = set()
        self.sources = UnitTable(self._source_words, self._word, source, known, request.shortlist)
        self.targets = UnitTable(self._target_words, self._word, target, self.target_vocabulary.numbers, both=True)
        self.store = CandidateStore(scratch_place(request.output))
        self.frequencies = np.zeros(0)
        self._seen = np.zeros((2, 2))
        self.entries = 0
        self.counts = CountTally()

    @property
    def unreadable(self) -> int:
        """The number of words that were skipped because a reader of the list would split them."""
        return len(self._unreadable)

    def _word(self, token: bytes) -> str:
        word = phrase_text(token)
        if has_separators(word) or any(character in word for character in self._breaks):
            self._unreadable.add(token)
            return ""
        return word

    def add(self, entries: SourceEntries) -> None:
        """Add the entries of the next block."""
        self.entries += entries.raw.lines
        self.counts += entries.tally
        sources = self._source_words.read_fields(entries.text, entries.source_starts, entries.source_ends)
        words = self._target_words.read_fields(entries.text, entries.target_starts, entries.target_ends)
        targets = self.targets.expand(words)
        single = np.repeat(sources.lengths == 1, np.diff(entries.group_offsets))
        self._count(targets, np.where(single, entries.counts, 0))
        self._look_at_units(sources, entries.weights, words, entries.counts)
        self.store.append(
            word_probabilities(
                sources, entries.weights, entries.group_offsets, targets, entries.values, len(self.targets.units),
                0.0 if self.request.shortlist else self.request.least,
            )
        )  # fmt: skip

    def _count(self, targets: Phrases, counts: DoubleArray) -> None:
        missing = len(self.targets.units) - len(self.frequencies)
        self.frequencies = np.concatenate([self.frequencies, np.zeros(missing)])
        np.add.at(self.frequencies, targets.words, np.repeat(counts, targets.lengths))

    def _look_at_units(self, sources: Phrases, weights: DoubleArray, targets: Phrases, counts: DoubleArray) -> None:
        """Update the shares of words that are in the vocabularies."""
        sides = ((self.sources, sources, weights), (self.targets, targets, counts))
        for side, (units, phrases, times) in enumerate(sides):
            known = units.known(phrases.words)
            occurrences = np.repeat(times, phrases.lengths)
            self._seen[side] += occurrences[known].sum(), occurrences.sum()

    def check_units(self) -> tuple[float, float]:
        """Reject a vocabulary that covers almost nothing of the table, or warn about one that covers little.

        Returns:
            The shares of the table's source and target words that are in the vocabularies.

        Raises:
            DataError: a vocabulary covers almost nothing, and `scan.force` is not set.
        """
        request = self.request
        shares = [float(known / total) if total else 1.0 for known, total in self._seen]
        names = (request.source_vocabulary, request.target_vocabulary)
        for side, path, share in zip(("source", "target"), names, shares, strict=True):
            if path and share < _FEW_UNITS:
                message = (
                    f"covers {100 * share:.0f}% of the {side} words of {display_name(request.table)}; expected the "
                    "vocabulary of the same language, with the same tokens and capitals"
                )
                error = DataError(path, message, remedy="go on")
                if share < _LEAST_UNITS:
                    request.scan.refuse(error)
                else:
                    request.scan.warn(str(error))
        return shares[0], shares[1]

    def knows(self, unit: bytes) -> bool:
        """Return whether a source unit occurs in the table."""
        return self.sources.units.id(unit) >= 0

    @property
    def always(self) -> Int32Array:
        """The units that are always candidates."""
        return most_frequent(self.frequencies, self.request.always)

    @property
    def target_texts(self) -> Texts:
        """The target units as texts."""
        return Texts(*self.targets.units.text)


def _units_of_line(vocabulary: UnitVocabulary, units: UnitTable, line: str) -> list[bytes]:
    """Return the units of a line of text for evaluation; words are read as in the table."""
    if isinstance(vocabulary.segmenter, Words):
        return split_words(unescape(line.encode("utf-8", "surrogateescape")))
    return units.line(line)


def export_candidates(request: CandidateRequest, writer: ListWriter, watch: Watch = SILENT) -> CandidateReport:
    """Write a list of candidates.

    Raises:
        DataError: a file is damaged, the table is not sorted or has too few scores, or vocabularies or texts do not
            match it.
        PhraseToolError: a file cannot be written.
    """
    scan = request.scan
    collected = Collected(request, "" if request.binary else writer.breaks)
    meter = None
    if request.evaluate:
        meter = CoverageMeter(
            request.evaluate,
            partial(_units_of_line, collected.source_vocabulary, collected.sources),
            partial(_units_of_line, collected.target_vocabulary, collected.targets),
        )
    opened = open_table(request.table, request.output, scan, watch, "read", sort=request.sort)
    with opened as (source, followed), Output(request.output) as output:
        for entries in EntrySelector(source, followed, request.longest, request.similarities).blocks():
            collected.add(entries)
        known = collected.check_units()
        report = writer.write(output, collected, meter)
        report.source_units, report.target_units = known
        report.entries, report.sources = collected.entries, len(collected.store)
        report.counts, report.unreadable = collected.counts, collected.unreadable
        limits = "candidate is probable enough (--min-probability)"
        scan.refuse_empty(source.name, report.entries, report.candidates + report.always, limits)
        if meter:
            report.coverage = meter.coverage(collected.knows)
            meter.check(report.coverage, collected.knows, scan)
    return report


class MapWriter:
    """Writer of a vocabulary map as CTranslate2 reads it (src/vocabulary_map.cc).

    A line is a source phrase, a tab, and target units separated by spaces; the phrase is empty for units that are
    always candidates.  If a phrase had two lines, CTranslate2 would use only the second.
    """

    breaks = ""

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """Write the map."""
        always = collected.always
        report = CandidateReport(always=len(always))
        for text in self._texts(collected, always, report):
            output.write_text(text)
            if meter:
                meter.see_map(text)
        return report

    @staticmethod
    def _texts(collected: Collected, always: Int32Array, report: CandidateReport) -> Iterator[bytes]:
        yield b"\t%s\n" % collected.targets.units.join(always)
        store, words = collected.store, collected.target_texts
        selector = Selector(collected.request.most, always, len(words.offsets) - 1)
        selector.learn(store.pieces(), collected.sources.words)
        # Two source phrases can have the same text only if units are joined to words.
        written_keys: set[bytes] | None = set() if collected.source_vocabulary.segmenter.glues else None
        for candidates in selector.select(store.pieces()):
            chosen = np.flatnonzero(np.diff(candidates.offsets))
            keys, rows = collected.sources.keys(candidates.sources.select(chosen))
            lines = lines_of(keys, joined(as_phrases(candidates), words), chosen[rows]).tobytes()
            if written_keys is not None:
                lines = _first_of_each(lines, written_keys)
            report.phrases += lines.count(b"\n")
            report.candidates += int(np.diff(candidates.offsets)[chosen[rows]].sum())
            yield lines


def _first_of_each(lines: bytes, seen: set[bytes]) -> bytes:
    """Return the lines whose keys are not in `seen`, and add these keys."""
    kept = []
    for line in lines_with_ends(lines):
        key = line.partition(b"\t")[0]
        if key not in seen:
            seen.add(key)
            kept.append(line)
    return b"".join(kept)


class ShortlistWriter:
    """Writer of a shortlist.

    Marian reads the words of a text shortlist with `>>`, which splits at C's white space; a binary one has numbers.
    """

    breaks = "\v\f"

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """Write the shortlist."""
        request, targets = collected.request, len(collected.targets.units)
        all_candidates = unit_candidates(collected.store.pieces(), collected.sources.expand, targets, request.least)
        selector = Selector(request.most, np.zeros(0, np.int32), targets)
        candidates = next(iter(selector.select([all_candidates])))
        sources, words = collected.sources.units.words, collected.targets.units.words
        if request.binary:
            output.write(output.encode(self._binary(collected, candidates)))
        else:
            units = candidates.sources.words[candidates.groups]
            rows = zip(candidates.words.tolist(), units.tolist(), candidates.scores.tolist(), strict=True)
            lines = (b"%s %s %.6g\n" % (words[target], sources[source], score) for target, source, score in rows)
            output.write_text(b"".join(lines))
        always = self._always(collected)
        if meter:
            meter.see(b"", always)
            for number, source in enumerate(candidates.sources.words.tolist()):
                listed = candidates.words[candidates.offsets[number] : candidates.offsets[number + 1]]
                meter.see(sources[source], [words[target] for target in listed.tolist()])
        phrases = int(np.count_nonzero(np.diff(candidates.offsets)))
        return CandidateReport(phrases=phrases, candidates=len(candidates.words), always=len(always))

    @staticmethod
    def _always(collected: Collected) -> list[bytes]:
        """Return the units that are always candidates: the first of a numbered vocabulary, else the most frequent."""
        numbers, count = collected.target_vocabulary.numbers, collected.request.always
        if numbers is None:
            words = collected.targets.units.words
            return [words[unit] for unit in collected.always.tolist()]
        return [unit.encode() for unit, number in numbers.items() if number < count]

    @staticmethod
    def _binary(collected: Collected, candidates: TargetCandidates) -> bytes:
        request = collected.request
        numbers = []
        for side, path, vocabulary in (
            (collected.sources, request.source_vocabulary, collected.source_vocabulary),
            (collected.targets, request.target_vocabulary, collected.target_vocabulary),
        ):
            if vocabulary.numbers is None:
                raise DataError(path, "does not number its units, which a binary shortlist needs")
            known = vocabulary.numbers
            numbers_of_side = [known[unit.decode("utf-8", "surrogateescape")] for unit in side.units.words]
            numbers.append((np.array(numbers_of_side, np.int64), max(known.values())))
        (source_numbers, last_source), (target_numbers, _) = numbers
        sources, targets = source_numbers[candidates.sources.words[candidates.groups]], target_numbers[candidates.words]
        if last_source not in sources:
            sources, targets = np.append(sources, last_source), np.append(targets, 0)
        order = np.lexsort((targets, sources))
        offsets = np.searchsorted(sources[order], np.arange(last_source + 2))
        return binary_shortlist(offsets, targets[order], request.always, request.most)


def binary_shortlist(offsets: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], first: int, best: int) -> bytes:
    """Return a binary shortlist.

    Args:
        offsets: int64, shape (S + 1,), start of the candidates of each source unit, and the end.
        targets: int64, shape (N,), numbers of target units.
        first, best: fields of the header, see the description of this module.
    """
    body = np.array([first, best, len(offsets), len(targets)], "<u8").tobytes()
    body += offsets.astype("<u8").tobytes() + targets.astype("<u4").tobytes()
    checksum = int(_checksum(np.frombuffer(body, "<u8", len(body) // 8).astype(np.uint64)))
    return np.array([MAGIC, checksum], "<u8").tobytes() + body


@exact_kernel
def _checksum(words: npt.NDArray[np.uint64]) -> np.uint64:
    seed = np.uint64(0)
    for word in words:
        seed ^= word + _GOLDEN + (seed << _LEFT) + (seed >> _RIGHT)
    return seed
