"""Lists of candidates: the vocabulary map of CTranslate2, the shortlist of Marian, and how much of a text they cover.

The table is read once.  The candidates of every source phrase are stored on disk.  After the last entry, the most
frequent target words and the candidates of single words are known, and the list is written.

The lexical shortlist of Marian, and of the translator in Firefox, which is made of it, has two forms.  Text
(marian-dev, src/data/shortlist.h, `LexicalShortlistGenerator::load`) has lines `target source probability`.  Binary
(`BinaryShortlistGenerator`) is, with numbers of eight bytes, the smallest byte first:

    magic  checksum  first  best  S + 1  N      the first units of the target vocabulary that are always candidates, the
                                                most candidates of a unit, S source units, N candidates
    where the candidates of each source unit begin, and the end
    the candidates: numbers of target units in four bytes, ascending for each source unit

The checksum is over all whole eight bytes behind it, as `util::hashMem` does it.  Marian refuses a file in which the
last source unit has no candidate; it gets the first target unit, which ends a sentence.
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
from moses_compat.lines.fields import parts_lines, phrase_text
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
    """The entries of a block whose sources are short enough: N of G sources.

    Attributes:
        raw: the block.
        text: of the block.
        source_starts, source_ends: int64, shape (G,), where the sources stand in the text.
        weights: float64, shape (G,), how often each was seen; 1 where the table does not say.
        group_offsets: int64, shape (G + 1,).
        target_starts, target_ends: int64, shape (N,).
        values: float64, shape (N,), what each adds to the probabilities of its words.
        counts: float64, shape (N,), how often each was extracted; p(e|f) where the table does not say.
        tally: of the counts of all entries of the block.
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
    """Reads a table once, and takes the entries of short sources.

    Args:
        source: the table, at its beginning.
        scan: how it is read.
        longest: words of a source.
        similarities: weigh the entries, if there are some.
    """

    def __init__(self, source: Input, scan: TableScan, longest: int, similarities: SimilaritySource | None) -> None:
        self._name, self._scan, self._longest = source.name, scan, longest
        self._reader = EntryReader(source, scan, similarities, columns=self._columns)
        self._order = SourceOrder(source, scan)

    def _columns(self, scores: int) -> tuple[int, ...]:
        require_trained_scores(self._name, scores, 1)
        return (DIRECT_COLUMN,) if scores > DIRECT_COLUMN else ()

    def blocks(self) -> Iterator[SourceEntries]:
        """The entries, block by block.

        Raises:
            DataError: the table is damaged, has a faulty line and the scan says `fail`, has fewer than four scores, or
                a source comes back after others.
        """
        entries = 0
        for found in self._order.follow(run(self._reader.items(), self._work, self._scan.threads)):
            yield found
            entries += found.raw.lines
            self._scan.progress(found.raw.position, entries)
        self._reader.finish(entries)

    def _work(self, item: Item) -> tuple[SourceLook | None, SourceEntries]:
        read = self._reader(item)
        block = read.block
        sizes = np.diff(block.group_offsets)
        short = (block.source_lengths > 0) & (block.source_lengths <= self._longest)
        rows = np.flatnonzero(np.repeat(short, sizes) & ~block.faulty)
        owners = np.repeat(np.arange(len(sizes)), sizes)[rows]
        _, first = np.unique(owners, return_index=True)
        offsets = np.append(first, len(rows)).astype(np.int64)
        values, weights, counts = _values(read, rows, first, offsets)
        if read.scores:
            # Where the model has no opinion, the entry counts as it is.
            mean = read.scores.similarities[rows].mean(axis=1, dtype=np.float64)
            values *= np.where(read.scores.opinion[rows], np.exp(mean - 1), 1.0)
        heads = rows[first]
        return self._order.look(read.raw, block), SourceEntries(
            read.raw, block.text, block.line_offsets[heads], block.source_ends[heads], weights, offsets,
            block.source_ends[rows] + 3, block.target_ends[rows], values, counts,
            CountTally.of(read.counts, ~block.faulty),
        )  # fmt: skip


def _values(
    read: ReadBlock, rows: Int64Array, first: Int64Array, offsets: Int64Array
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """What entries add to the probabilities of their words; how often each source was seen, and each entry."""
    counts, columns = read.counts.values[rows], read.columns
    direct = columns[rows, 0] if columns.shape[1] else np.zeros(len(rows))
    counted = np.isfinite(counts[:, [OF_SOURCE, OF_PAIR]]).all(axis=1) & (counts[:, OF_SOURCE] > 0)
    discounted = discounted_frequencies(counts[:, OF_PAIR], counts[:, OF_SOURCE])
    values = np.clip(np.where(counted, discounted, direct), 0, 1)
    weights = np.where(counted, counts[:, OF_SOURCE], 1.0)[first]
    return values, weights, np.where(counted, counts[:, OF_PAIR], direct)


@dataclass(frozen=True)
class CandidateRequest:
    """A list of candidates that is wanted.

    Attributes:
        table: a phrase table; `-` for standard input.
        output: where the list goes.
        shortlist: whether for single units, with probabilities (Marian), else for phrases (CTranslate2).
        binary: whether the shortlist is written as Marian maps it into memory; needs vocabularies with numbers.
        most: candidates of a source phrase.
        longest: words of a source phrase.
        always: how many of the most frequent target units are always candidates; of a shortlist, Marian is told.
        least: candidates of a phrase that are less probable are left out.
        source_vocabulary, target_vocabulary: files of the units, see `phrasetool.export.vocabularies`.
        evaluate: a text and its translation, to say how many words of the translation are candidates.
        similarities: what says how similar the sides of entries are; the probability of an entry is multiplied by
            exp(s - 1), of the mean s of both directions.
        scan: how the table is read.
        sort: whether it is sorted first.
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
    """What was written.

    Attributes:
        entries: lines of the table.
        sources: source phrases that are short enough.
        phrases: those that have candidates in the list.
        candidates: of them all.
        always: units that are always candidates.
        source_units, target_units: shares of the table's words, weighted by how often they were seen, that can be
            written in units of the vocabulary.
        coverage: of the text it was evaluated with.
        counts: how many entries have joint counts.
        unreadable: words left out because they hold a tab or a line end.
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
        """As JSON values."""
        return asdict(self)


# Below the first almost nothing fits, and it is refused; below the second another form may be meant, and one that is
# known so much better is named.
_LEAST, _DOUBTFUL, _GAIN = 0.1, 0.7, 0.1
_JOINER, _SPACE_MARK = b"@@", "\u2581".encode()
Line = Callable[[str], list[bytes]]


@dataclass(frozen=True)
class Coverage:
    """How much of a translation is covered.

    Attributes:
        sentences, tokens: of the translation.
        covered: tokens that are candidates of their sentences.
        whole: sentences of which all tokens are.
        reachable: tokens that are a candidate of anything.
        known: share of the source's tokens that the table knows.
        mean, median, percentile_95: candidates of a sentence.
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
    """Sees the lines of a list, and then says how much they cover.

    Args:
        texts: a text, and its translation.
        source_line, target_line: make units of a line.

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
        """A line of the list; more candidates of a key that was there before are added to it."""
        self._reachable.update(candidates)
        units = key.split(b" ") if key else []
        if self._units.issuperset(units):
            self._lists.setdefault(key, set()).update(candidates)

    def see_map(self, text: bytes) -> None:
        """Lines of a vocabulary map."""
        for line in split_lines(text):
            key, _, candidates = line.partition(b"\t")
            self.see(key, candidates.split(b" "))

    def coverage(self, known: Callable[[bytes], bool]) -> Coverage:
        """What all lines so far cover.

        Args:
            known: whether the table has a source unit.
        """
        longest = max((key.count(b" ") + 1 for key in self._lists if key), default=0)
        always = self._lists.get(b"", set())
        sizes, covered, whole = [], 0, 0
        for source, target in zip(self._sources, self._targets, strict=True):
            found = always.union(*(self._lists.get(key, ()) for key in _parts(source, longest)))
            hits = sum(unit in found for unit in target)
            covered, whole = covered + hits, whole + (hits == len(target))
            sizes.append(len(found))
        tokens = sum(map(len, self._targets))
        return Coverage(
            len(sizes), tokens, covered, whole, sum(unit in self._reachable for line in self._targets for unit in line),
            _share(self._tokens, known), float(np.mean(sizes)), float(np.median(sizes)),
            float(np.percentile(sizes, 95)),
        )  # fmt: skip

    @property
    def _tokens(self) -> list[bytes]:
        return [unit for line in self._sources for unit in line]

    def check(self, found: Coverage, known: Callable[[bytes], bool], scan: TableScan) -> None:
        """Refuse a text that does not fit the table, or warn of it.

        Raises:
            DataError: almost nothing of the text is known, and the scan does not say `force`.
        """
        if found.known >= _DOUBTFUL:
            return
        lowered = _share([unit.decode("utf-8", "replace").lower().encode() for unit in self._tokens], known)
        pieces = _share(self._tokens, lambda unit: unit.endswith(_JOINER) or unit.startswith(_SPACE_MARK))
        message = f"only {100 * found.known:.0f}% of its {len(self._tokens):,} tokens are in the table"
        if lowered > found.known + _GAIN:
            message += f"; in small letters, {100 * lowered:.0f}% would be: the table has no capitals"
        elif pieces > _GAIN:
            message += "; they are pieces of words, and a table of words needs the model that splits them"
        else:
            message += "; expected text of the table's source language, with its tokens and its capitals"
        error = DataError(self._name, message, remedy="go on")
        if found.known < _LEAST:
            scan.refuse(error)
        else:
            scan.warn(str(error))


def _share(units: Sequence[bytes], has: Callable[[bytes], bool]) -> float:
    return sum(map(has, units)) / max(1, len(units))


def _parts(units: Sequence[bytes], longest: int) -> Iterator[bytes]:
    """All runs of up to `longest` units, as keys."""
    for first in range(len(units)):
        for last in range(first + 1, min(first + longest, len(units)) + 1):
            yield b" ".join(units[first:last])


# A vocabulary that knows less of a table is another one; one that knows less than the second may be.
_LEAST_UNITS, _FEW_UNITS = 0.1, 0.7


class ListWriter(Protocol):
    """Writes a list of candidates."""

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """Write it, and let the meter see its lines."""


class Collected:
    """All candidates of a table.

    Args:
        request: what is wanted.

    Attributes:
        sources, targets: the units of the table's words.
        store: the candidates, in the order of the table.
        frequencies: float64, shape (V,), how often each target unit was seen in translations of single words.
    """

    def __init__(self, request: CandidateRequest) -> None:
        self.request = request
        self.source_vocabulary, self.target_vocabulary = (
            read_vocabulary(path) if path else UnitVocabulary(Words())
            for path in (request.source_vocabulary, request.target_vocabulary)
        )
        self._source_words, self._target_words = Symbols(), Symbols()
        # A map is looked up by what is written, also of words that the system does not know.
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
        """How many words were left out because a reader of the list would part them."""
        return len(self._unreadable)

    def _word(self, token: bytes) -> str:
        word = phrase_text(token)
        if parts_lines(word):
            self._unreadable.add(token)
            return ""
        return word

    def add(self, found: SourceEntries) -> None:
        """The entries of the next block."""
        self.entries += found.raw.lines
        self.counts += found.tally
        sources = self._source_words.read_fields(found.text, found.source_starts, found.source_ends)
        words = self._target_words.read_fields(found.text, found.target_starts, found.target_ends)
        targets = self.targets.expand(words)
        single = np.repeat(sources.lengths == 1, np.diff(found.group_offsets))
        self._count(targets, np.where(single, found.counts, 0))
        self._look_at_units(sources, found.weights, words, found.counts)
        self.store.append(
            word_probabilities(
                sources, found.weights, found.group_offsets, targets, found.values, len(self.targets.units),
                0.0 if self.request.shortlist else self.request.least,
            )
        )  # fmt: skip

    def _count(self, targets: Phrases, counts: DoubleArray) -> None:
        missing = len(self.targets.units) - len(self.frequencies)
        self.frequencies = np.concatenate([self.frequencies, np.zeros(missing)])
        np.add.at(self.frequencies, targets.words, np.repeat(counts, targets.lengths))

    def _look_at_units(self, sources: Phrases, weights: DoubleArray, targets: Phrases, counts: DoubleArray) -> None:
        """Which share of the words the vocabularies know."""
        sides = ((self.sources, sources, weights), (self.targets, targets, counts))
        for side, (units, phrases, times) in enumerate(sides):
            known = units.known(phrases.words)
            seen = np.repeat(times, phrases.lengths)
            self._seen[side] += seen[known].sum(), seen.sum()

    def check_units(self) -> tuple[float, float]:
        """Refuse a vocabulary that knows next to nothing of the table, or warn of one that knows little.

        Returns:
            The shares of the table's source and target words that the vocabularies know.

        Raises:
            DataError: it knows next to nothing, and the scan does not say `force`.
        """
        request = self.request
        shares = [float(known / seen) if seen else 1.0 for known, seen in self._seen]
        names = (request.source_vocabulary, request.target_vocabulary)
        for side, path, share in zip(("source", "target"), names, shares, strict=True):
            if path and share < _FEW_UNITS:
                message = (
                    f"knows {100 * share:.0f}% of the {side} words of {display_name(request.table)}; expected the "
                    "vocabulary of the same language, with the same tokens and capitals"
                )
                error = DataError(path, message, remedy="go on")
                if share < _LEAST_UNITS:
                    request.scan.refuse(error)
                else:
                    request.scan.warn(str(error))
        return shares[0], shares[1]

    def knows(self, unit: bytes) -> bool:
        """Whether a source unit occurs in the table."""
        return self.sources.units.id(unit) >= 0

    @property
    def always(self) -> Int32Array:
        """The units that are always candidates."""
        return most_frequent(self.frequencies, self.request.always)

    @property
    def target_texts(self) -> Texts:
        """The target units."""
        return Texts(*self.targets.units.text)


def _units_of_line(vocabulary: UnitVocabulary, units: UnitTable, line: str) -> list[bytes]:
    """The units of a line of text that is evaluated with: words are read as in the table."""
    if isinstance(vocabulary.segmenter, Words):
        return split_words(unescape(line.encode("utf-8", "surrogateescape")))
    return units.line(line)


def export_candidates(request: CandidateRequest, writer: ListWriter, watch: Watch = SILENT) -> CandidateReport:
    """Write a list of candidates.

    Raises:
        DataError: a file is damaged, the table is not sorted or has too few scores, or vocabularies or texts do not
            fit.
        PhraseToolError: a file cannot be written.
    """
    scan = request.scan
    collected = Collected(request)
    meter = None
    if request.evaluate:
        meter = CoverageMeter(
            request.evaluate,
            partial(_units_of_line, collected.source_vocabulary, collected.sources),
            partial(_units_of_line, collected.target_vocabulary, collected.targets),
        )
    opened = open_table(request.table, request.output, scan, watch, "read", sort=request.sort)
    with opened as (source, followed), Output(request.output) as output:
        for found in EntrySelector(source, followed, request.longest, request.similarities).blocks():
            collected.add(found)
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
    """Writes a vocabulary map as CTranslate2 reads it (src/vocabulary_map.cc).

    A line is a source phrase, a tab, and target units with a space between; the phrase is empty for units that are
    always candidates.  A phrase that had two lines would have the candidates of the second.
    """

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """See `ListWriter`."""
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
        # Only words that are put together in several ways can read alike.
        seen: set[bytes] | None = set() if collected.source_vocabulary.segmenter.glues else None
        for found in selector.select(store.pieces()):
            chosen = np.flatnonzero(np.diff(found.offsets))
            keys, rows = collected.sources.keys(found.sources.select(chosen))
            lines = lines_of(keys, joined(as_phrases(found), words), chosen[rows]).tobytes()
            if seen is not None:
                lines = _first_of_each(lines, seen)
            report.phrases += lines.count(b"\n")
            report.candidates += int(np.diff(found.offsets)[chosen[rows]].sum())
            yield lines


def _first_of_each(lines: bytes, seen: set[bytes]) -> bytes:
    """The lines whose keys were not there before."""
    kept = []
    for line in lines_with_ends(lines):
        key = line.partition(b"\t")[0]
        if key not in seen:
            seen.add(key)
            kept.append(line)
    return b"".join(kept)


class ShortlistWriter:
    """Writes a shortlist."""

    def write(self, output: Output, collected: Collected, meter: CoverageMeter | None) -> CandidateReport:
        """See `ListWriter`."""
        request, targets = collected.request, len(collected.targets.units)
        all_of_them = unit_candidates(collected.store.pieces(), collected.sources.expand, targets, request.least)
        selector = Selector(request.most, np.zeros(0, np.int32), targets)
        found = next(iter(selector.select([all_of_them])))
        sources, words = collected.sources.units.words, collected.targets.units.words
        if request.binary:
            output.write(output.encode(self._binary(collected, found)))
        else:
            units = found.sources.words[found.groups]
            rows = zip(found.words.tolist(), units.tolist(), found.scores.tolist(), strict=True)
            lines = (b"%s %s %.6g\n" % (words[target], sources[source], score) for target, source, score in rows)
            output.write_text(b"".join(lines))
        always = self._always(collected)
        if meter:
            meter.see(b"", always)
            for number, source in enumerate(found.sources.words.tolist()):
                listed = found.words[found.offsets[number] : found.offsets[number + 1]]
                meter.see(sources[source], [words[target] for target in listed.tolist()])
        phrases = int(np.count_nonzero(np.diff(found.offsets)))
        return CandidateReport(phrases=phrases, candidates=len(found.words), always=len(always))

    @staticmethod
    def _always(collected: Collected) -> list[bytes]:
        """What Marian always takes: the first units of its vocabulary; the most frequent where that is not known."""
        numbers, count = collected.target_vocabulary.numbers, collected.request.always
        if numbers is None:
            words = collected.targets.units.words
            return [words[unit] for unit in collected.always.tolist()]
        return [unit.encode() for unit, number in numbers.items() if number < count]

    @staticmethod
    def _binary(collected: Collected, found: TargetCandidates) -> bytes:
        request = collected.request
        numbers = []
        for side, path, vocabulary in (
            (collected.sources, request.source_vocabulary, collected.source_vocabulary),
            (collected.targets, request.target_vocabulary, collected.target_vocabulary),
        ):
            if vocabulary.numbers is None:
                raise DataError(path, "does not number its units, which a binary shortlist is made of")
            known = vocabulary.numbers
            found_here = [known[unit.decode("utf-8", "surrogateescape")] for unit in side.units.words]
            numbers.append((np.array(found_here, np.int64), max(known.values())))
        (source_numbers, last_source), (target_numbers, _) = numbers
        sources, targets = source_numbers[found.sources.words[found.groups]], target_numbers[found.words]
        if last_source not in sources:
            sources, targets = np.append(sources, last_source), np.append(targets, 0)
        order = np.lexsort((targets, sources))
        offsets = np.searchsorted(sources[order], np.arange(last_source + 2))
        return binary_shortlist(offsets, targets[order], request.always, request.most)


def binary_shortlist(offsets: npt.NDArray[np.int64], targets: npt.NDArray[np.int64], first: int, best: int) -> bytes:
    """A binary shortlist.

    Args:
        offsets: int64, shape (S + 1,), where the candidates of each source unit begin, and the end.
        targets: int64, shape (N,), numbers of target units.
        first, best: what Marian is told.
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
