"""Export of dictionaries: lexicons of term pairs, with an estimate of their precision, and Bicleaner dictionaries.

Both consist of entries that are frequent and probable (`read_pairs`).  Lexicons are written as tab-separated or
comma-separated values (RFC 4180), or TBX (ISO 30042:2019), which tools for translators read.  Bicleaner reads gzipped
lines `target source p(target|source)` of single words; see the README of bitextor/bicleaner, "Parameters" of
`bicleaner-train`, and its prob_dict.py.

A lexicon is ordered by the scores of its term pairs:

    sqrt(p(e|f) p(f|e)) sqrt(shorter / longer) exp(s - 1)

with probabilities that are discounted by half a count, the lengths of both sides in words, and the similarity s, if
known.
"""

from __future__ import annotations

import contextlib
import csv
import heapq
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import OF_PAIR, OF_SOURCE, OF_TARGET, CountTally, CountUse
from moses_compat.lines.fields import has_separators, holds_white_space, phrase_text
from moses_compat.lines.numbers import DIRECT_COLUMN, INVERSE_COLUMN, require_trained_scores
from moses_compat.measures.entry_reader import EntryReader, Item
from moses_compat.measures.similarities import SimilaritySource
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.opening import open_table
from phrasetool.errors import DataError
from phrasetool.export.candidates import discounted_frequencies
from phrasetool.phrases import Mask
from phrasetool.pipeline import run
from phrasetool.text_splitting import single_spaced
from phrasetool.vocabulary import unescape
from phrasetool.watch import SILENT, Watch

FORMS = ("tsv", "csv", "tbx")
_LEXICON_COLUMNS = ("source", "target", "score", "p(target|source)", "p(source|target)", "count")
# Characters that XML 1.0 does not allow.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class TermPair:
    """A term and its translation.

    Attributes:
        source, target: words separated by a space.
        score: see the description of this module.
        direct, inverse: p(target|source) and p(source|target) as in the table.
        count: number of extractions of the pair; None if unknown.
        similarity: similarity of both sides; None if unknown.
    """

    source: str
    target: str
    score: float
    direct: float
    inverse: float
    count: float | None
    similarity: float | None = None


def is_term(words: Sequence[str], stop_words: Collection[str]) -> bool:
    """Return whether words may be a term.

    A term contains a letter, its first and last word contain a letter or digit, and if it has several words, neither of
    these two is a stop word.
    """
    if not any(letter.isalpha() for word in words for letter in word):
        return False
    ends = (words[0], words[-1])
    if not all(any(letter.isalnum() for letter in word) for word in ends):
        return False
    return len(words) == 1 or not any(word in stop_words for word in ends)


def ranked(pairs: Iterable[TermPair]) -> list[TermPair]:
    """Return the pairs from the best to the worst; pairs with equal scores are in the order of their texts."""
    return sorted(pairs, key=lambda pair: (-pair.score, pair.source, pair.target))


def best_terms(pairs: Iterable[TermPair], most: int) -> list[TermPair]:
    """Return the best pairs: at most `most` per source and per target, and none with wrong boundaries.

    A pair has wrong boundaries if it shares one side with a better pair, and its other side contains, or is contained
    in, the other side of that pair.

    Args:
        pairs: in any order.
        most: largest number of translations of a source, and of sources of a target.
    """
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    by_target: defaultdict[str, list[str]] = defaultdict(list)
    best = []
    for pair in ranked(pairs):
        targets, sources = by_source[pair.source], by_target[pair.target]
        if len(targets) >= most or len(sources) >= most:
            continue
        nested = any(_nested(pair.target, accepted) for accepted in targets)
        if nested or any(_nested(pair.source, accepted) for accepted in sources):
            continue
        targets.append(pair.target)
        sources.append(pair.source)
        best.append(pair)
    return best


def _nested(one: str, other: str) -> bool:
    """Return whether one text contains the words of the other."""
    one, other = f" {one} ", f" {other} "
    return one in other or other in one


def spread(pairs: Sequence[TermPair], count: int) -> list[TermPair]:
    """Return `count` pairs, evenly spaced from the first to the last."""
    if len(pairs) <= count:
        return list(pairs)
    if count == 1:
        return [pairs[0]]
    return [pairs[round(k * (len(pairs) - 1) / (count - 1))] for k in range(count)]


@dataclass(frozen=True)
class PairEntry:
    """An entry of a dictionary.

    Attributes:
        source, target: plain text, words separated by spaces.
        direct, inverse: p(target|source) and p(source|target).
        discounted: both probabilities with a discount of half a count, if counts are known.
        count: joint count; None if the table has none.
        similarity: mean of both directions; None if the model has no score.
    """

    source: str
    target: str
    direct: float
    inverse: float
    discounted: tuple[float, float]
    count: float | None
    similarity: float | None


@dataclass(frozen=True)
class PairFilter:
    """Criteria for the selection of entries.

    Attributes:
        longest: largest number of words of a side.
        least: smallest probability in either direction.
        count: smallest joint count; entries without a count are selected, too.
        count_use: the feature that needs a joint count of each entry, if any.
        discounted: whether `least` applies to the probabilities with a discount of half a count.
    """

    longest: int
    least: float
    count: float = 0
    count_use: CountUse | None = None
    discounted: bool = True


def read_pairs(
    source: Input, scan: TableScan, chosen: PairFilter, similarities: SimilaritySource | None = None, both: bool = True
) -> Iterator[tuple[RawBlock, list[PairEntry], CountTally]]:
    """Yield the entries that a filter selects, block by block, with a tally of the counts of each block.

    Args:
        source: the table, at its beginning; in any order.
        scan: settings for reading the table.
        chosen: the filter.
        similarities: similarities of the entries, if any.
        both: whether both probabilities must be high enough, or only one of them.

    Raises:
        DataError: the table is damaged, has a malformed line while `scan.on_error` is `fail`, has fewer than four
            scores, or lacks a required count.
    """

    def columns(scores: int) -> tuple[int, ...]:
        require_trained_scores(source.name, scores, 1)
        return (INVERSE_COLUMN, DIRECT_COLUMN) if scores > DIRECT_COLUMN else ()

    reader = EntryReader(source, scan, similarities, columns=columns)

    def work(item: Item) -> tuple[RawBlock, list[PairEntry], CountTally]:
        read = reader(item)
        block = read.block
        tally = CountTally.of(read.counts, ~block.malformed)
        if chosen.count_use:
            read.check_counts(source.name, chosen.count_use)
        if not read.columns.shape[1]:
            return read.raw, [], tally
        sizes = np.diff(block.group_offsets)
        short = np.repeat((block.source_lengths > 0) & (block.source_lengths <= chosen.longest), sizes)
        counts = read.counts.values
        known: Mask = np.logical_and(np.isfinite(counts).all(axis=1), (counts[:, :OF_PAIR] > 0).all(axis=1))
        plain = np.clip(read.columns[:, ::-1], 0, 1)
        frequencies = discounted_frequencies(counts[:, [OF_PAIR]], counts[:, [OF_SOURCE, OF_TARGET]])
        discounted = np.where(known[:, None], np.clip(frequencies, 0, 1), plain)
        enough = (discounted if chosen.discounted else plain) >= chosen.least
        good = short & ~block.malformed & (enough.all(axis=1) if both else enough.any(axis=1))
        good &= ~known | (counts[:, OF_PAIR] >= chosen.count)
        pairs = []
        for row in np.flatnonzero(good).tolist():
            line, end = int(block.line_offsets[row]), int(block.source_ends[row])
            words = phrase_text(block.text[end + 3 : block.target_ends[row]].tobytes())
            if not words or words.count(" ") >= chosen.longest:
                continue
            similarity = None
            if read.scores and read.scores.scored[row]:
                similarity = float(read.scores.similarities[row].mean(dtype=np.float64))
            pairs.append(
                PairEntry(
                    phrase_text(block.text[line:end].tobytes()), words, float(plain[row, 0]), float(plain[row, 1]),
                    (float(discounted[row, 0]), float(discounted[row, 1])),
                    float(counts[row, OF_PAIR]) if known[row] else None, similarity,
                )
            )  # fmt: skip
        return read.raw, pairs, tally

    entries = 0
    for raw, pairs, tally in run(reader.items(), work, scan.threads):
        yield raw, pairs, tally
        entries += raw.lines
        scan.progress(raw.position, entries)
    reader.finish(entries)


def write_terms(output: Output, pairs: Sequence[TermPair], form: str, languages: tuple[str, str]) -> None:
    """Write term pairs.

    Args:
        form: `tsv`, `csv` or `tbx`.
        languages: codes of both languages, for TBX.

    Raises:
        ValueError: the format is unknown.
    """
    if form not in FORMS:
        raise ValueError(f"unknown format {form!r}; expected one of {', '.join(FORMS)}")
    text = _tbx(pairs, languages) if form == "tbx" else _tsv(pairs) if form == "tsv" else _csv(pairs)
    output.write_text(text.encode("utf-8", "surrogateescape"))


def _rows(pairs: Sequence[TermPair]) -> list[list[str]]:
    similar = any(pair.similarity is not None for pair in pairs)
    rows = [[*_LEXICON_COLUMNS, *(["similarity"] if similar else [])]]
    for pair in pairs:
        numbers = [pair.score, pair.direct, pair.inverse, pair.count, *([pair.similarity] if similar else [])]
        written = ("" if number is None else f"{number:.6g}" for number in numbers)
        rows.append([pair.source, pair.target, *written])
    return rows


def _tsv(pairs: Sequence[TermPair]) -> str:
    # A term with a quotation mark is quoted: readers of tables interpret a quotation mark at the beginning of a field
    # as a quoted field, and read up to the next one, even across line ends.
    text = io.StringIO()
    csv.writer(text, csv.excel_tab, lineterminator="\n").writerows(_rows(pairs))
    return text.getvalue()


def _csv(pairs: Sequence[TermPair]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(_rows(pairs))
    return text.getvalue()


def _tbx(pairs: Sequence[TermPair], languages: tuple[str, str]) -> str:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<tbx type="TBX-Core" style="dca" xml:lang={quoteattr(languages[0])} xmlns="urn:iso:std:iso:30042:ed-2">',
        "<tbxHeader><fileDesc><sourceDesc><p>Term pairs of a phrase table.</p></sourceDesc></fileDesc></tbxHeader>",
        "<text><body>",
    ]
    for number, pair in enumerate(pairs, 1):
        sections = "".join(
            f"<langSec xml:lang={quoteattr(language)}><termSec><term>{escape(_NOT_XML.sub('', term))}</term></termSec>"
            "</langSec>"
            for language, term in zip(languages, (pair.source, pair.target), strict=True)
        )
        lines.append(f'<conceptEntry id="c{number}">{sections}</conceptEntry>')
    lines.append("</body></text></tbx>")
    return "\n".join(lines) + "\n"


# Stop words are counted in one-word entries of at least this probability, regardless of the criteria for pairs.
_LEAST_OF_WORDS = 0.1


@dataclass(frozen=True)
class LexiconRequest:
    """Settings for the export of a lexicon.

    Attributes:
        table: a phrase table, in any order; `-` for standard input.
        output: the file of the lexicon.
        form: `tsv`, `csv` or `tbx`.
        languages: codes of both languages, for `tbx`.
        most: largest number of translations of a source, and of sources of a target.
        longest: largest number of words of a term.
        least: smallest probability of a pair in either direction, with a discount of half a count.
        count: smallest joint count of a pair, if its count is known.
        count_use: the feature that needs a joint count of each entry, if any.
        stop_words: number of the most frequent words of a side that may not begin or end a term of several words.
        sample: number of pairs to write, evenly over all ranks; 0 for all.
        evaluate: a text and its translation, on which the precision of pairs is estimated.
        similarities: similarities of the entries, if any.
        scan: settings for reading the table.
    """

    table: str
    output: str
    form: str = "tsv"
    languages: tuple[str, str] = ("und", "und")
    most: int = 3
    longest: int = 4
    least: float = 0.1
    count: int = 2
    count_use: CountUse | None = None
    stop_words: int = 50
    sample: int = 0
    evaluate: Sequence[str] | None = None
    similarities: SimilaritySource | None = None
    scan: TableScan = field(default_factory=TableScan)


@dataclass(frozen=True)
class LexiconPrecision:
    """Precision of pairs in a text and its translation.

    Attributes:
        pairs: pairs whose source occurs in the text.
        right: pairs whose target is in the translation of such a sentence.
        places, right_places: occurrences of sources in sentences, and those with the target in the translation.
    """

    pairs: int
    right: int
    places: int
    right_places: int


@dataclass(frozen=True)
class LexiconReport:
    """Results of the export of a lexicon.

    Attributes:
        entries: lines of the table.
        considered: entries that are frequent and probable enough.
        terms: considered entries whose sides may be terms.
        pairs: pairs of the lexicon.
        written: pairs that were written.
        rightness: precision of all pairs of the lexicon.
        counts: numbers of entries with missing and derived joint counts.
        unreadable: entries that were skipped because a side contains a tab or a line end.
    """

    entries: int
    considered: int
    terms: int
    pairs: int
    written: int
    rightness: LexiconPrecision | None = None
    counts: CountTally = field(default_factory=CountTally)
    unreadable: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def export_lexicon(request: LexiconRequest, watch: Watch = SILENT) -> LexiconReport:
    """Write a lexicon.

    Raises:
        DataError: a file is damaged, the table has too few scores, texts have different numbers of lines, or no term is
            in the text.
        PhraseToolError: the lexicon cannot be written.
    """
    considered: list[PairEntry] = []
    frequencies: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    entries, unreadable, tally = 0, 0, CountTally()
    chosen = PairFilter(request.longest, min(request.least, _LEAST_OF_WORDS), request.count, request.count_use)
    opened = open_table(request.table, request.output, request.scan, watch, "read")
    with opened as (source, scan), Output(request.output) as output:
        for raw, pairs, counts in read_pairs(source, scan, chosen, request.similarities):
            entries += raw.lines
            tally += counts
            readable = [pair for pair in pairs if not (has_separators(pair.source) or has_separators(pair.target))]
            unreadable += len(pairs) - len(readable)
            pairs = readable
            considered += (pair for pair in pairs if min(pair.discounted) >= request.least)
            for pair in pairs:
                for side, text in enumerate((pair.source, pair.target)):
                    if " " not in text:
                        frequencies[side][text] += int(pair.count or 0)
        stops = [set(_most(counts, request.stop_words)) for counts in frequencies]
        terms = [
            _term(pair) for pair in considered
            if is_term(pair.source.split(" "), stops[0]) and is_term(pair.target.split(" "), stops[1])
        ]  # fmt: skip
        lexicon = best_terms(terms, request.most)
        limits = "pair of terms is frequent and probable enough (--min-pair-count, --min-probability)"
        scan.refuse_empty(source.name, entries, len(lexicon), limits)
        written = spread(lexicon, request.sample) if request.sample else lexicon
        write_terms(output, written, request.form, request.languages)
        right = rightness(lexicon, request.evaluate) if request.evaluate else None
        if right and request.evaluate and lexicon and not right.pairs:
            message = (
                f"none of the {len(lexicon):,} term pairs has its source in the text; expected its language and tokens"
            )
            request.scan.refuse(DataError(display_name(request.evaluate[0]), message, remedy="go on"))
    return LexiconReport(entries, len(considered), len(terms), len(lexicon), len(written), right, tally, unreadable)


def _most(counts: Counter[str], number: int) -> list[str]:
    """Return the most frequent words; none of a table without counts, whose words all have frequency 0."""
    seen = (word for word, count in counts.items() if count > 0)
    return heapq.nsmallest(number, seen, key=lambda word: (-counts[word], word))


def _term(pair: PairEntry) -> TermPair:
    lengths = pair.source.count(" ") + 1, pair.target.count(" ") + 1
    score = math.sqrt(pair.discounted[0] * pair.discounted[1] * min(lengths) / max(lengths))
    if pair.similarity is not None:
        score *= math.exp(pair.similarity - 1)
    return TermPair(pair.source, pair.target, score, pair.direct, pair.inverse, pair.count, pair.similarity)


def _plain(line: str) -> str:
    """Return a line of text as plain words, like the sides of pairs."""
    return single_spaced(unescape(line.encode("utf-8", "surrogateescape")).decode("utf-8", "replace"))


def rightness(pairs: Sequence[TermPair], texts: Sequence[str]) -> LexiconPrecision:
    """Measure the precision of pairs in a text, tokenised like the table, and its translation.

    Raises:
        DataError: a text cannot be read, or the texts have different numbers of lines.
    """
    sources, targets = ([_plain(line) for line in lines] for lines in map(read_text_lines, texts))
    if len(sources) != len(targets):
        raise DataError(texts[1], f"{len(targets):,} lines, but {texts[0]} has {len(sources):,}")
    longest = max((pair.source.count(" ") + 1 for pair in pairs), default=0)
    lines_by_phrase: defaultdict[str, set[int]] = defaultdict(set)
    for number, line in enumerate(sources):
        words = line.split(" ")
        for first in range(len(words)):
            for last in range(first + 1, min(first + longest, len(words)) + 1):
                lines_by_phrase[" ".join(words[first:last])].add(number)
    occurring = right = occurrences = right_places = 0
    for pair in pairs:
        if lines := lines_by_phrase.get(pair.source):
            hits = sum(f" {pair.target} " in f" {targets[number]} " for number in lines)
            occurring, right = occurring + 1, right + (hits > 0)
            occurrences, right_places = occurrences + len(lines), right_places + hits
    return LexiconPrecision(occurring, right, occurrences, right_places)


@dataclass(frozen=True)
class DictionaryRequest:
    """Settings for the export of Bicleaner dictionaries.

    Attributes:
        table: a phrase table, in any order; `-` for standard input.
        output: file of the dictionary from source to target.
        reverse: file of the dictionary from target to source, if any.
        least: smallest probability of a pair.
        scan: settings for reading the table.
    """

    table: str
    output: str
    reverse: str | None = None
    least: float = 0.01
    scan: TableScan = field(default_factory=TableScan)


@dataclass
class DictionaryReport:
    """Results of the export of dictionaries.

    Attributes:
        entries: lines of the table.
        pairs: pairs of the dictionary from source to target.
        reverse_pairs: pairs of the dictionary from target to source.
        unreadable: pairs that were skipped because a word contains white space, at which Bicleaner splits lines.
    """

    entries: int = 0
    pairs: int = 0
    reverse_pairs: int = 0
    unreadable: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the report as JSON values."""
        return asdict(self)


def export_dictionaries(request: DictionaryRequest, watch: Watch = SILENT) -> DictionaryReport:
    """Write the dictionaries.

    Raises:
        DataError: the table is damaged, or has too few scores.
        PhraseToolError: a dictionary cannot be written.
    """
    report = DictionaryReport()
    chosen = PairFilter(1, request.least, discounted=False)
    with contextlib.ExitStack() as stack:
        opened = open_table(request.table, request.output, request.scan, watch, "read")
        source, scan = stack.enter_context(opened)
        output = stack.enter_context(Output(request.output))
        reverse = stack.enter_context(Output(request.reverse)) if request.reverse else None
        for raw, pairs, _ in read_pairs(source, scan, chosen, both=False):
            report.entries += raw.lines
            readable = [pair for pair in pairs if not holds_white_space(pair.source + pair.target)]
            report.unreadable += len(pairs) - len(readable)
            pairs = readable
            report.pairs += _write_dictionary(
                output, pairs, lambda pair: (pair.target, pair.source, pair.direct), request.least
            )
            if reverse:
                report.reverse_pairs += _write_dictionary(
                    reverse, pairs, lambda pair: (pair.source, pair.target, pair.inverse), request.least
                )
        limits = "pair of single words is probable enough (--min-probability)"
        scan.refuse_empty(source.name, report.entries, report.pairs, limits)
    return report


def _write_dictionary(
    output: Output, pairs: list[PairEntry], line: Callable[[PairEntry], tuple[str, str, float]], least: float
) -> int:
    lines = [f"{to} {of} {p:.6g}\n" for to, of, p in map(line, pairs) if p >= least and p > 0]
    output.write_text("".join(lines).encode("utf-8", "surrogateescape"))
    return len(lines)
