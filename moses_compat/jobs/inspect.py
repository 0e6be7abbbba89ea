"""Reports of `inspect` as text and JSON: on a table, a moses.ini, and entries with tags that no sentence pair has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.ini.moses_ini import MosesIni, number_text
from moses_compat.lines.hashes import side_keys
from moses_compat.lines.numbers import MOSES_SCORES
from moses_compat.tables.blocks import RawBlock, TableScan
from moses_compat.tables.inspect import GROUP_SIZES, ColumnSummary, LoaderVerdict, Objection, TableSummary
from moses_compat.tables.parser import TableParser
from phrasetool.kernels.lstm_states import one_blas_thread
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.pipeline import run
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import number_distinct
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    from phrasetool.tagger.model import TaggerModel
    from phrasetool.text_encoders.vector_store import StoredPhrases

SCHEMA_VERSION = 1
_BARS = " ▁▂▃▄▅▆▇█"
# Oddities that the summary names, with their descriptions in the plural.
_ODDITIES = {
    "source not contiguous": "sources occur again after other sources",
    "duplicate pair": "pairs occur twice",
    "empty target": "empty targets (Moses deletes the source)",
    "empty source": "empty sources",
    "not UTF-8": "lines that are not UTF-8 (bytes are kept as they are)",
    "carriage return": "lines that end in a carriage return",
    "tab": "lines with a tab",
    "double space": "lines with a double space",
    "no space next to |||": "lines without a space on a side of |||",
    "non-terminals differ": "lines whose alignment does not pair each non-terminal with one of the other side",
    "bracket inside": "lines with a token in brackets that is not a non-terminal",
    "bad alignment": "lines with a malformed alignment",
    "alignment beyond the phrase": "lines with an alignment point beyond the phrase",
    "bad counts": "lines with invalid counts",
    "sparse scores": "lines with sparse scores",
    "properties": "lines with properties",
    "more than 7 fields": "lines with more than 7 fields",
    "blank line": "blank lines",
}
# Numbers of texts that are tagged, and of sentence pairs that are read, at a time.
_TEXTS, _SENTENCES = 512, 8192
# Number of entries in the random comparison.
_DRAWN = 100_000
# Number of unsupported pairs of tag sequences that are shown.
SHOWN = 10


def table_lines(name: str, summary: TableSummary) -> Iterator[str]:
    """Yield the lines of a readable report on a table.

    Args:
        name: name of the table in the report.
        summary: summary of the table.
    """
    if summary.entries == summary.faults:
        # Without any entry, only the kind of file is reported.
        yield f"{name}: {summary.kind}, {summary.entries:,} lines, {summary.bytes:,} bytes of text"
        for fault in summary.first_faults[:1]:
            yield f"  as an entry of a phrase table, line {fault.entry + 1}: {fault.message}"
        return
    yield (f"{name}: {summary.kind}, {summary.entries:,} entries, {summary.sources:,} sources, "
               f"{summary.bytes:,} bytes of text")  # fmt: skip
    fields = ", ".join(f"{count:,} with {number}" for number, count in sorted(summary.fields.items()))
    yield f"  fields per line      {fields}"
    sizes = ", ".join(
        f"{label}: {count:,}" for label, count in zip(GROUP_SIZES, summary.group_sizes.tolist(), strict=True) if count
    )
    yield f"  entries per source   {sizes}"
    order = "sorted (LC_ALL=C)"
    if "out of order" in summary.oddities:
        order = f"not sorted: line {summary.oddities['out of order'].first:,} is below the one before it"
    yield f"  order                {order}"
    if summary.factors != (1, 1):
        yield f"  factors per token    {summary.factors[0]} in the source, {summary.factors[1]} in the target"
    yield f"  counts               {_counts(summary)}"
    yield f"  scores per entry     {max(summary.scores, 0)}"
    for number, column in enumerate(summary.columns, 1):
        meaning = f"  {MOSES_SCORES[number - 1]}" if summary.scores in (4, 5, 6) and number <= 4 else ""
        if "reordering" in summary.kind:
            meaning = ""
        yield f"    {number}  {_describe(column, summary.entries - summary.faults)}{meaning}"
    for oddity, meaning in _ODDITIES.items():
        if oddity in summary.oddities:
            occurrences = summary.oddities[oddity]
            yield f"  {occurrences.lines:,} {meaning}, from line {occurrences.first:,}"
    if summary.faults:
        yield f"  {summary.faults:,} malformed lines"
    for fault in summary.first_faults:
        yield f"    line {fault.entry + 1}: {fault.message}"


_COUNTS = {
    "joint": "c(t) c(s) c(s,t)",
    "sides": "no joint count, but c(t) or c(s)",
    "none": "no counts",
}


def _counts(summary: TableSummary) -> str:
    """Describe which counts the entries have."""
    kinds = [(kind, summary.counts[kind]) for kind in _COUNTS if summary.counts[kind]]
    if len(kinds) == 1:
        return _COUNTS[kinds[0][0]]
    return ", ".join(f"{count:,} with {_COUNTS[kind]}" for kind, count in kinds) or "no counts"


def loader_lines(loaders: Sequence[LoaderVerdict]) -> Iterator[str]:
    """Yield, for each Moses program, a line on whether it accepts the table, and lines with further objections."""
    if not loaders:
        return
    yield "  compatible programs of Moses"
    for verdict in loaders:
        objections = verdict.objections
        if not objections:
            yield f"    {verdict.loader:<22} yes       {verdict.options}"
            continue
        yield f"    {verdict.loader:<22} {verdict.answer:<9} {_objection(objections[0])}"
        for objection in objections[1:]:
            yield f"    {'':<22} {'':<9} {_objection(objection)}"
        if verdict.answer != "no":
            yield f"    {'':<22} {'':<9} with {verdict.options}"


def _objection(objection: Objection) -> str:
    lines = f" ({objection.lines:,} in all)" if objection.lines > 1 else ""
    return f"line {objection.first:,}: {objection.reason}{lines}"


def _describe(column: ColumnSummary, entries: int) -> str:
    if not entries:
        return "no values"
    highest = max(int(column.histogram.max()), 1)
    bars = "".join(_BARS[-(-int(count) * (len(_BARS) - 1) // highest)] for count in column.histogram)
    text = f"[{bars}]  {column.smallest:.4g} .. {column.largest:.4g}, mean {column.total / entries:.4g}"
    if column.zeros:
        text += f", {column.zeros:,} zeros (Moses reads them as exp(-100))"
    if column.negatives:
        text += f", {column.negatives:,} negative (Moses cannot use them)"
    return text


def table_document(name: str, summary: TableSummary, loaders: Sequence[LoaderVerdict]) -> dict[str, Any]:
    """Return the contents of `table_lines` and `loader_lines` as JSON values."""
    verdicts = {
        verdict.loader: {
            "answer": verdict.answer,
            "options": verdict.options,
            "objections": [objection.__dict__ for objection in verdict.objections],
        }
        for verdict in loaders
    }
    return {"schema_version": SCHEMA_VERSION, "file": name, **summary.as_dict(), "loaders": verdicts}


def ini_lines(ini: MosesIni) -> Iterator[str]:
    """Yield the lines of a description of a moses.ini: each feature with its file and its weights."""
    yield f"{ini.path}: a moses.ini of version {ini.version}, {len(ini.features)} features"
    for entry in _features(ini):
        weights = " ".join(map(number_text, entry["weights"])) or "none"
        yield f"  {entry['name']:<22} {entry['kind']}, weights: {weights}"
        if entry["path"] is not None:
            scores = f"{entry['scores']} scores, " if entry["scores"] else ""
            missing = "" if entry["exists"] else " (no such file)"
            yield f"  {'':<22} {scores}{entry['path']}{missing}"
    yield "  `phrasetool inspect FILE` describes a table; `phrasetool moses-ini` edits an ini"


def ini_document(ini: MosesIni) -> dict[str, Any]:
    """Return the contents of `ini_lines` as JSON values."""
    return {"file": ini.path, "kind": "moses.ini", "version": ini.version, "features": list(_features(ini))}


def _features(ini: MosesIni) -> Iterator[dict[str, Any]]:
    for feature in ini.features:
        path = feature.arguments.get("path")
        resolved = ini.resolve(path) if path else None
        scores = feature.arguments.get("num-features")
        yield {
            "name": feature.name,
            "kind": feature.kind,
            "scores": int(scores) if scores and scores.isdigit() else None,
            "path": resolved,
            "exists": resolved is not None and os.path.exists(resolved),
            "weights": list(ini.weights.get(feature.name, ())),
        }


@dataclass(frozen=True)
class UnsupportedTags:
    """A pair of tag sequences that occurs in no sentence pair.

    Attributes:
        source, target: the tags.
        entries: number of entries of the table with these tags.
        example: the words of the first such entry, source and target.
    """

    source: str
    target: str
    entries: int
    example: tuple[str, str]


@dataclass(frozen=True)
class SupportReport:
    """Numbers of entries whose tag sequences occur in a sentence pair.

    Attributes:
        entries: entries with words on both sides.
        supported: entries whose tag sequences occur in some sentence pair.
        chance: share of supported entries after targets were exchanged at random among entries with targets of the
            same length, i.e. the share that unrelated sequences reach.
        sentences: number of sentence pairs.
        unsupported: the most frequent pairs of sequences without support, at most `SHOWN`.
    """

    entries: int
    supported: int
    chance: float
    sentences: int
    unsupported: tuple[UnsupportedTags, ...]


@dataclass(frozen=True)
class _Tagged:
    """The distinct phrases of a side, the index of the tag sequence of each (-1 for none), and the sequences."""

    keys: np.typing.NDArray[np.uint64]
    rows: Int64Array
    numbers: Int64Array
    sequences: Phrases

    def of(self, keys: np.typing.NDArray[np.uint64]) -> tuple[Int64Array, Int64Array]:
        """Return the rows of the texts and the indices of the sequences of phrases; -1 for missing ones."""
        rows = self.rows[np.searchsorted(self.keys, keys)]
        return rows, np.where(rows < 0, -1, self.numbers[np.maximum(rows, 0)]) if len(self.numbers) else rows


def tag_support(
    table: str, scan: TableScan, tagger: TaggerModel, languages: tuple[str, str], bitext: tuple[str, str],
    watch: Watch = SILENT,
) -> SupportReport:  # fmt: skip
    """Search a bitext for the tag sequences of each entry: consecutive tags in a source, and in its target.

    Phrases are tagged without context.  The table is read twice; memory holds about 200 bytes per distinct phrase, and
    40 per pair of tag sequences.

    Args:
        table: the file; not standard input.
        scan: settings for reading the table.
        tagger: the part-of-speech tagger.
        languages: languages of the sources and of the targets.
        bitext: the files of the sources and of the targets, tokenised like the table.
        watch: progress listener.

    Raises:
        DataError: the table or the bitext is damaged, or its sides have different numbers of lines.
        ValueError: the tagger does not support a language.
    """
    for language in languages:
        tagger.check_language(language)
    # Imported here: other inspections start faster without them.
    from moses_compat.corpora.bitexts import read_parallel_texts
    from moses_compat.measures.encoded import collect_phrases
    from phrasetool.tagger.tag_support import TagSupport

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
        source_tags, target_tags = (
            _names(tagger, side, number) for side, number in zip(sides, pairs[row].tolist(), strict=True)
        )
        example = phrases.texts[0][examples[row, 0]], phrases.texts[1][examples[row, 1]]
        return UnsupportedTags(source_tags, target_tags, int(counts[row]), example)

    chance = float(by_chance.mean()) if len(by_chance) else 0.0
    shares = int(counts.sum()), int(counts[supported].sum()), chance
    return SupportReport(*shares, len(texts), tuple(named(row) for row in shown.tolist()))


def _tagged(tagger: TaggerModel, language: str, phrases: StoredPhrases, side: int, threads: int) -> _Tagged:
    texts = phrases.texts[side]

    def work(first: int) -> list[list[int]]:
        sentences = [split_words(text) for text in texts[first : first + _TEXTS]]
        return _numbered(tagger, tagger.tag(sentences, language))

    tags = Phrases.from_lists(
        [sequence for part in run(iter(range(0, len(texts), _TEXTS)), work, threads) for sequence in part]
    )
    numbers, firsts = number_distinct(tags)
    return _Tagged(phrases.keys[side], phrases.rows[side], numbers, tags.select(firsts))


def _numbered(tagger: TaggerModel, tags: Sequence[Sequence[str]]) -> list[list[int]]:
    known = {tag: number for number, tag in enumerate(tagger.tags)}
    return [[known[tag] for tag in line] for line in tags]


def _sentence_tags(tagger: TaggerModel, language: str, sentences: Phrases, words: Sequence[bytes]) -> Phrases:
    plain = [[words[word].decode("utf-8", "replace") for word in line.tolist()] for line in sentences]
    tags = [
        sequence
        for first in range(0, len(plain), _TEXTS)
        for sequence in _numbered(tagger, tagger.tag(plain[first : first + _TEXTS], language))
    ]
    return Phrases.from_lists(tags)


def _entry_pairs(
    table: str, scan: TableScan, sides: Sequence[_Tagged], watch: Watch
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the distinct pairs of sequences, shape (K, 2), their entry counts, and the text rows of first entries."""
    width = max(1, len(sides[1].sequences))
    merged = np.zeros((4, 0), np.int64)
    waiting: list[Int64Array] = []
    with Input(table) as source, watch.file("pairs of tags", source.size()) as progress:
        scan = replace(scan, progress=progress)

        def work(raw: RawBlock) -> tuple[RawBlock, Int64Array]:
            block, _ = TableParser(scores=raw.scores)(raw.first_entry, raw.text, raw.line_offsets)
            keys = side_keys(block.text, block.line_offsets, np.flatnonzero(~block.malformed))
            (rows, left), (others, right) = (side.of(own) for side, own in zip(sides, keys, strict=True))
            good = np.flatnonzero((left >= 0) & (right >= 0))
            rows_by_key = np.stack(
                [left[good] * width + right[good], np.ones(len(good), np.int64), rows[good], others[good]]
            )
            return raw, _merged(rows_by_key)

        for raw, rows_by_key in run(scan.raw_blocks(source), work, scan.threads):
            waiting.append(rows_by_key)
            if sum(part.shape[1] for part in waiting) > merged.shape[1]:
                merged, waiting = _merged(np.concatenate([merged, *waiting], axis=1)), []
            scan.progress(raw.position, raw.first_entry + raw.lines)
    merged = _merged(np.concatenate([merged, *waiting], axis=1))
    return np.stack(np.divmod(merged[0], width), axis=1), merged[1], merged[2:].T


def _merged(columns: Int64Array) -> Int64Array:
    """Merge columns with the same key: counts are added, other values are those of the first."""
    _, firsts, numbers = np.unique(columns[0], return_index=True, return_inverse=True)
    result = columns[:, firsts]
    result[1] = np.bincount(numbers, weights=columns[1], minlength=len(firsts))
    return result


def _drawn(pairs: Int64Array, counts: Int64Array, lengths: Int64Array) -> Int64Array:
    """Draw pairs of entries with a fixed seed, and exchange targets among those of the same length."""
    if not len(pairs):
        return pairs
    rng = np.random.default_rng(1)
    drawn = pairs[rng.choice(len(pairs), min(_DRAWN, int(counts.sum())), p=counts / counts.sum())]
    for length in np.unique(lengths[drawn[:, 1]]).tolist():
        rows = np.flatnonzero(lengths[drawn[:, 1]] == length)
        drawn[rows, 1] = rng.permutation(drawn[rows, 1])
    return drawn


def _names(tagger: TaggerModel, side: _Tagged, number: int) -> str:
    return " ".join(tagger.tags[tag] for tag in side.sequences[number].tolist())


def support_lines(report: SupportReport | None) -> list[str]:
    """Return the lines of a readable report; no lines for None."""
    if report is None:
        return []
    share = report.supported / max(1, report.entries)
    lines = [
        f"  parts of speech      {share:.1%} of {report.entries:,} entries have those of one of {report.sentences:,} "
        f"sentence pairs; {report.chance:.1%} would with the target of another entry"
    ]
    if report.unsupported:
        lines.append("    most frequent combinations that occur in no sentence pair")
    for tags in report.unsupported:
        lines.append(f"      {f'{tags.source} ||| {tags.target}':<38} {tags.entries:>9,}  {' ||| '.join(tags.example)}")
    return lines


def support_document(report: SupportReport | None) -> dict[str, Any]:
    """Return the report as a part of a JSON document."""
    return {} if report is None else {"parts_of_speech": asdict(report)}
