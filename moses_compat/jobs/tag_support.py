"""Entries of a table whose parts of speech no sentence pair of a bitext has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from moses_compat.corpora.bitexts import read_parallel_texts
from moses_compat.files.streams import Input
from moses_compat.lines.phrase_totals import side_keys
from moses_compat.measures.table_phrases import collect_phrases
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.parser import TableParser
from phrasetool.kernels.blas_threads import one_blas_thread
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.pipeline import run
from phrasetool.tagger.tag_support import TagSupport
from phrasetool.text_encoders.vector_store import StoredPhrases
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import number_distinct
from phrasetool.watch import NOBODY, Watch

if TYPE_CHECKING:
    from phrasetool.tagger.model import TaggerModel

# Texts that are tagged together, and sentence pairs that are looked at together.
_TEXTS, _SENTENCES = 512, 8192
# Entries that are drawn for comparison.
_DRAWN = 100_000
# Unsupported pairs of sequences that are shown.
SHOWN = 10


@dataclass(frozen=True)
class UnsupportedTags:
    """A pair of tag sequences that no sentence pair has.

    Attributes:
        source, target: the tags.
        entries: of the table that have them.
        example: the words of one of these, source and target: the first in the table.
    """

    source: str
    target: str
    entries: int
    example: tuple[str, str]


@dataclass(frozen=True)
class SupportReport:
    """How many entries have tag sequences of a sentence pair.

    Attributes:
        entries: with words on both sides.
        supported: of these, whose tag sequences some sentence pair has.
        chance: the share of supported ones where each source stands with the target of another entry, among those
            whose target has as many words: what sequences that know nothing of each other reach.
        sentences: pairs that were looked at.
        unsupported: the most frequent pairs of sequences without support, at most `SHOWN`.
    """

    entries: int
    supported: int
    chance: float
    sentences: int
    unsupported: tuple[UnsupportedTags, ...]


@dataclass(frozen=True)
class _Tagged:
    """The different phrases of a side: the number of each one's tag sequence, -1 for none; and the sequences."""

    keys: np.typing.NDArray[np.uint64]
    rows: Int64Array
    numbers: Int64Array
    sequences: Phrases

    def of(self, keys: np.typing.NDArray[np.uint64]) -> tuple[Int64Array, Int64Array]:
        """Rows of texts and numbers of sequences of phrases of the table; -1 where there are none."""
        rows = self.rows[np.searchsorted(self.keys, keys)]
        return rows, np.where(rows < 0, -1, self.numbers[np.maximum(rows, 0)]) if len(self.numbers) else rows


def tag_support(
    table: str, scan: TableScan, tagger: TaggerModel, languages: tuple[str, str], bitext: tuple[str, str],
    watch: Watch = NOBODY,
) -> SupportReport:  # fmt: skip
    """Look for the parts of speech of each entry in a bitext: as neighbours in a source, and in its target.

    Phrases are tagged as they stand in the table, without the words around them.  The table is read twice; some 200
    bytes a distinct phrase, and 40 a pair of tag sequences, are held.

    Args:
        table: the file; not standard input.
        scan: how it is read.
        tagger: tells the parts of speech.
        languages: of the sources and of the targets.
        bitext: the files of the sources and of the targets, tokenised as the table.
        watch: follows the work.

    Raises:
        DataError: the table or the bitext is damaged, or the sides of the bitext differ in lines.
        ValueError: the tagger does not know a language.
    """
    for language in languages:
        tagger.check_language(language)
    texts = read_parallel_texts(*bitext)
    with Input(table) as source:
        phrases = collect_phrases(source, scan, lambda text, side: text, watch)
    with one_blas_thread():
        sides = tuple(_tagged(tagger, language, phrases, side, scan.threads) for side, language in enumerate(languages))
    pairs, counts, examples = _entry_pairs(table, scan, sides, watch)
    drawn = _drawn(pairs, counts, sides[1].sequences.lengths)
    support = TagSupport(sides[0].sequences, sides[1].sequences, np.concatenate([pairs, drawn]))
    with one_blas_thread(), watch.items("tags", len(texts), "sentence pair") as tick:
        words = texts.source_words, texts.target_words
        for first in range(0, len(texts), _SENTENCES):
            rows = np.arange(first, min(first + _SENTENCES, len(texts)))
            support.add(*(
                _sentence_tags(tagger, language, text.select(rows), known)
                for text, known, language in zip((texts.sources, texts.targets), words, languages, strict=True)
            ))  # fmt: skip
            tick(len(rows))
    supported, by_chance = support.supported[: len(pairs)], support.supported[len(pairs) :]
    missing = np.flatnonzero(~supported)
    shown = missing[np.argsort(-counts[missing], kind="stable")[:SHOWN]]

    def named(row: int) -> UnsupportedTags:
        one, other = (_names(tagger, side, number) for side, number in zip(sides, pairs[row].tolist(), strict=True))
        example = phrases.texts[0][examples[row, 0]], phrases.texts[1][examples[row, 1]]
        return UnsupportedTags(one, other, int(counts[row]), example)

    chance = float(by_chance.mean()) if len(by_chance) else 0.0
    shares = int(counts.sum()), int(counts[supported].sum()), chance
    return SupportReport(*shares, len(texts), tuple(named(row) for row in shown.tolist()))


def _tagged(tagger: TaggerModel, language: str, phrases: StoredPhrases, side: int, threads: int) -> _Tagged:
    texts = phrases.texts[side]

    def work(first: int) -> list[list[int]]:
        sentences = [split_words(text) for text in texts[first : first + _TEXTS]]
        return _numbered(tagger, tagger.tag(sentences, language))

    found = Phrases.from_lists([one for part in run(iter(range(0, len(texts), _TEXTS)), work, threads) for one in part])
    numbers, firsts = number_distinct(found)
    return _Tagged(phrases.keys[side], phrases.rows[side], numbers, found.select(firsts))


def _numbered(tagger: TaggerModel, tags: Sequence[Sequence[str]]) -> list[list[int]]:
    known = {tag: number for number, tag in enumerate(tagger.tags)}
    return [[known[tag] for tag in line] for line in tags]


def _sentence_tags(tagger: TaggerModel, language: str, sentences: Phrases, words: Sequence[bytes]) -> Phrases:
    plain = [[words[word].decode("utf-8", "replace") for word in line.tolist()] for line in sentences]
    tags = [
        found
        for first in range(0, len(plain), _TEXTS)
        for found in _numbered(tagger, tagger.tag(plain[first : first + _TEXTS], language))
    ]
    return Phrases.from_lists(tags)


def _entry_pairs(
    table: str, scan: TableScan, sides: Sequence[_Tagged], watch: Watch
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The different pairs of sequences, shape (K, 2); how many entries have each; rows of the texts of the first."""
    width = max(1, len(sides[1].sequences))
    merged = np.zeros((4, 0), np.int64)
    waiting: list[Int64Array] = []
    with Input(table) as source, watch.file("pairs of tags", source.size()) as progress:
        scan = replace(scan, progress=progress)

        def work(raw: RawBlock) -> tuple[RawBlock, Int64Array]:
            block, _ = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
            keys = side_keys(block.text, block.line_offsets, np.flatnonzero(~block.faulty))
            (rows, left), (others, right) = (side.of(own) for side, own in zip(sides, keys, strict=True))
            good = np.flatnonzero((left >= 0) & (right >= 0))
            found = np.stack([left[good] * width + right[good], np.ones(len(good), np.int64), rows[good], others[good]])
            return raw, _merged(found)

        for raw, found in run(scan.raw_blocks(source), work, scan.threads):
            waiting.append(found)
            if sum(part.shape[1] for part in waiting) > merged.shape[1]:
                merged, waiting = _merged(np.concatenate([merged, *waiting], axis=1)), []
            scan.progress(raw.position, raw.first_entry + raw.lines)
    merged = _merged(np.concatenate([merged, *waiting], axis=1))
    return np.stack(np.divmod(merged[0], width), axis=1), merged[1], merged[2:].T


def _merged(found: Int64Array) -> Int64Array:
    """Columns of one key as one: counts added, the rest of the first."""
    _, firsts, numbers = np.unique(found[0], return_index=True, return_inverse=True)
    result = found[:, firsts]
    result[1] = np.bincount(numbers, weights=found[1], minlength=len(firsts))
    return result


def _drawn(pairs: Int64Array, counts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Pairs of entries drawn with a fixed seed, targets exchanged among those of as many words."""
    if not len(pairs):
        return pairs
    rng = np.random.default_rng(1)
    found = pairs[rng.choice(len(pairs), min(_DRAWN, int(counts.sum())), p=counts / counts.sum())]
    for length in np.unique(lengths[found[:, 1]]).tolist():
        rows = np.flatnonzero(lengths[found[:, 1]] == length)
        found[rows, 1] = rng.permutation(found[rows, 1])
    return found


def _names(tagger: TaggerModel, side: _Tagged, number: int) -> str:
    return " ".join(tagger.tags[tag] for tag in side.sequences[number].tolist())


def support_lines(report: SupportReport | None) -> list[str]:
    """What was found, for people; nothing of None."""
    if report is None:
        return []
    share = report.supported / max(1, report.entries)
    lines = [
        f"  parts of speech      {share:.1%} of {report.entries:,} entries have those of one of {report.sentences:,} "
        f"sentence pairs; {report.chance:.1%} would with the target of another entry"
    ]
    if report.unsupported:
        lines.append("    of no sentence pair, the most frequent")
    for one in report.unsupported:
        lines.append(f"      {f'{one.source} ||| {one.target}':<38} {one.entries:>9,}  {' ||| '.join(one.example)}")
    return lines


def support_document(report: SupportReport | None) -> dict[str, Any]:
    """The same as a part of a document for programs."""
    return {} if report is None else {"parts_of_speech": asdict(report)}
