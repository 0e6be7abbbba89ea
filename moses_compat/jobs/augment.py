"""Add entries to a phrase table for out-of-vocabulary words of texts."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from moses_compat.corpora.texts import read_text_lines
from moses_compat.engine.development_check import FORM, LEAST_COVERAGE
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate import IniEdit
from moses_compat.jobs.augmented_tables import (
    TEXT,
    WordTable,
    phrase_lines,
    read_words,
    reordering_lines,
    word_orientations,
    words_of,
    write_augmented,
)
from moses_compat.lines.fields import table_error
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import REORDERING_TABLE, check_plausible, open_table
from phrasetool.augment.augmenter import Augmenter, NewEntry, learn_augmenter
from phrasetool.augment.evidence import EVIDENCE, has_letter
from phrasetool.errors import DataError
from phrasetool.phrases import FloatArray
from phrasetool.text_splitting import split_words
from phrasetool.watch import SILENT, Watch


@dataclass(frozen=True)
class SourceReport:
    """Results of a source of evidence.

    Attributes:
        words, tokens: numbers of unknown words for which the source proposed a translation, and of their tokens.
        right: tokens for which one of its proposals is in the reference; None without references.
        trust: share of correct first proposals for known words that were treated as unknown.
    """

    words: int
    tokens: int
    right: int | None
    trust: float


def report_sources(
    augmenter: Augmenter, new: Mapping[str, Sequence[NewEntry]], unknown: Mapping[str, int],
    sentences: Sequence[Sequence[tuple[Sequence[str], set[str]]]],
) -> tuple[dict[str, SourceReport], tuple[int, int] | None]:  # fmt: skip
    """Evaluate the sources of evidence.

    Args:
        augmenter: the augmenter that proposed the entries.
        new: word -> its entries.
        unknown: word -> its count in the texts.
        sentences: for each text with a reference, the words of each sentence and of its reference.

    Returns:
        Name of a source -> its results; and the numbers of tokens for which any new entry, and for which the first one,
        is in the reference, or None without references.
    """
    some = first = 0
    right: Counter[int] = Counter()
    for text in sentences:
        for words, reference in text:
            for word in unknown.keys() & set(words):
                count = words.count(word)
                entries = new.get(word, ())
                good = [entry for entry in entries if set(split_words(entry.target)) <= reference]
                some += count * bool(good)
                first += count * (bool(good) and good[0] is entries[0])
                for number in {number for entry in good for number in entry.sources}:
                    right[number] += count
    sources = {}
    for number, source in enumerate(augmenter.evidence):
        proposed = [word for word, entries in new.items() if any(number in entry.sources for entry in entries)]
        sources[source.name] = SourceReport(
            len(proposed), sum(unknown[word] for word in proposed), right[number] if sentences else None,
            augmenter.trusts[source.name].first,
        )  # fmt: skip
    return sources, (some, first) if sentences else None


_DIMENSION = 100
# Number of skipped words that a message lists.
_SHOWN = 3


@dataclass(frozen=True)
class AugmentRequest:
    """Settings of an augmentation run.

    Attributes:
        table: a phrase table with the four scores of Moses' training; a file, because it is read twice.
        output: the augmented table.
        texts: texts whose words need entries; tokenised like the table.
        references: references of the texts, if available, for the evaluation of new entries.
        evidence: sources of evidence, of `EVIDENCE`.
        reordering_table, reordering_out: a reordering table to which the same pairs are added, and its output file.
        monolingual: text of the source language, for distributional similarity of words.
        edit: the change of a moses.ini, if any.
        entries_out: file for a list of the new entries, if any.
        scan: settings for reading the tables.
        sort: whether the tables are sorted first.
        seed: random seed for the choice of training words and for word vectors.
        rare: words of the texts with at most this count in training get additional entries.
    """

    table: str
    output: str
    texts: Sequence[str]
    references: Sequence[str] = ()
    evidence: Sequence[str] = EVIDENCE
    reordering_table: str | None = None
    reordering_out: str | None = None
    monolingual: Sequence[str] = ()
    edit: IniEdit | None = None
    entries_out: str | None = None
    scan: TableScan = field(default_factory=TableScan)
    sort: bool = False
    seed: int = 1
    rare: int = 0

    def __post_init__(self) -> None:
        if self.references and len(self.references) != len(self.texts):
            raise ValueError(f"{len(self.texts)} texts, but {len(self.references)} references")
        if (self.reordering_table is None) != (self.reordering_out is None):
            raise ValueError("reordering_table and reordering_out must be given together")


@dataclass(frozen=True)
class RareWords:
    """Results for rare words, which already had entries.

    Attributes:
        words, tokens: numbers of rare words of the texts and of their tokens.
        translated: words with additional entries.
        entries: new entries.
        right: tokens for which a new entry is in the reference; None without references.
    """

    words: int
    tokens: int
    translated: int
    entries: int
    right: int | None


@dataclass(frozen=True)
class AugmentReport:
    """Results of an augmentation run.

    Attributes:
        lines: lines of the input table.
        words, tokens: numbers of unknown words of the texts and of their tokens.
        translated: unknown words that now have entries.
        entries: new entries of these words.
        columns: number of added score columns; 0 if the table already had indicator features.
        sources: name of each source of evidence -> its results.
        right: numbers of tokens for which any new entry, and for which the first one, is in the reference; None without
            references.
        rare: results for rare words; None if they were not requested.
    """

    lines: int
    words: int
    tokens: int
    translated: int
    entries: int
    columns: int
    sources: Mapping[str, SourceReport]
    right: tuple[int, int] | None
    rare: RareWords | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        document = asdict(self)
        some, first = document.pop("right") or (None, None)
        return {**document, "right": some, "best_right": first}


def augment(request: AugmentRequest, watch: Watch = SILENT) -> AugmentReport:
    """Write the table with entries for unknown words, and the ini if one is requested.

    Raises:
        DataError: a file is damaged, a table is not sorted or has too few scores, a reference and its text have
            different numbers of lines, or a text is in another language.
        PhraseToolError: a file cannot be written.
        ValueError: an unknown source of evidence.
    """
    scan = replace(request.scan, warn=watch.warn)
    sentences = [_sentences(*both) for both in zip(request.texts, request.references, strict=False)]
    with Input(request.table) as source, watch.file("words", source.size()) as progress:
        check_plausible(source, scan)
        table = read_words(source, len(request.evidence), replace(scan, progress=progress), request.rare)
    if table.uncounted:
        words = "1 word" if table.uncounted == 1 else f"{table.uncounted:,} words"
        watch.say(f"{request.table}: {words} of the table have no count c(s), and count as seen once")
    unknown, rare = _words_to_translate(request, table, scan, watch)
    vectors = _vectors(request, table, scan, watch)
    augmenter = learn_augmenter(table.entries, request.evidence, vectors, request.seed)
    new: dict[str, Sequence[NewEntry]] = {}
    # New entries have the format of the other lines, of which an empty table has none.
    words_to_translate = sorted([*unknown, *rare]) if table.lines else []
    with watch.items("translate", len(words_to_translate), "word") as tick:
        for word in words_to_translate:
            entries = augmenter.entries(word, table.rare.get(word, ()))
            if fitting := [entry for entry in entries if _fits(entry.target)]:
                new[word] = fitting
            tick(1)
    columns = 0 if table.augmented else len(request.evidence)
    lines = _write(request, table.known, new, columns, scan, watch)
    more = {word: new.pop(word) for word in rare if word in new}
    sources, right = report_sources(augmenter, new, unknown, sentences)
    report = AugmentReport(lines, len(unknown), unknown.total(), len(new), _count(new), columns, sources, right)
    if not request.rare:
        return report
    _, good = report_sources(augmenter, more, rare, sentences)
    return replace(report, rare=RareWords(
        len(rare), rare.total(), len(more), _count(more), good[0] if good else None
    ))  # fmt: skip


def _count(new: Mapping[str, Sequence[NewEntry]]) -> int:
    """Return the number of entries."""
    return sum(map(len, new.values()))


def _words_to_translate(
    request: AugmentRequest, table: WordTable, scan: TableScan, watch: Watch
) -> tuple[Counter[str], Counter[str]]:
    """Return the words of the texts without entries, and the rare words, with their counts."""
    without_entries: Counter[str] = Counter()
    seldom: Counter[str] = Counter()
    for path in request.texts:
        words, sentences = words_of(path)
        unknown = Counter({word: count for word, count in words.items() if word not in table.known})
        share = 1 - unknown.total() / max(1, words.total())
        # A list of words may consist of unknown words only.
        if sentences and share < LEAST_COVERAGE:
            known = f"only {100 * share:.0f}% of its {words.total():,} tokens have an entry in {request.table}"
            message = f"{known}; expected {FORM}"
            scan.refuse(DataError(display_name(path), message, remedy="go on"))
        without_entries += unknown
        seldom += Counter({word: count for word, count in words.items() if word in table.rare})
    translatable = [
        Counter({word: count for word, count in frequencies.items() if has_letter(word)})
        for frequencies in (without_entries, seldom)
    ]
    malformed = sorted({word for frequencies in translatable for word in frequencies if not _fits(word)})
    if malformed:
        shown = ", ".join(malformed[:_SHOWN]) + (", ..." if len(malformed) > _SHOWN else "")
        number = "1 word" if len(malformed) == 1 else f"{len(malformed):,} words"
        watch.say(f"{number} with | or in brackets cannot be in a table, and stay unknown: {shown}")
    for counts in translatable:
        for word in malformed:
            del counts[word]
    return translatable[0], translatable[1]


def _fits(phrase: str) -> bool:
    """Return whether a phrase can be a side of an entry; `|||` separates the fields of a table, and `|` factors."""
    return "|" not in phrase and not any(table_error(word) for word in phrase.encode(*TEXT).split(b" "))


def _vectors(request: AugmentRequest, table: WordTable, scan: TableScan, watch: Watch) -> dict[str, FloatArray] | None:
    """Return vectors of the words of the monolingual text and of the texts.

    Raises:
        DataError: no word of the monolingual text has an entry in the table.
    """
    if not request.monolingual:
        return None
    from phrasetool.embeddings.training import train_fasttext

    watch.say("learning word vectors")
    own, others = (
        [split_words(line.encode(*TEXT)) for path in paths for line in read_text_lines(path)]
        for paths in (request.monolingual, request.texts)
    )
    text = [*own, *others]
    if not any(word.decode(*TEXT) in table.known for words in own for word in words):
        message = f"none of its words has an entry in {request.table}; expected text of the table's source language"
        scan.refuse(DataError(", ".join(map(display_name, request.monolingual)), message, remedy="go on"))
    vectors = train_fasttext(text, _DIMENSION, request.seed)
    return {word.decode(*TEXT): vector for word, vector in vectors.items()}


def _write(
    request: AugmentRequest, known: Collection[str], new: Mapping[str, Sequence[NewEntry]], columns: int,
    scan: TableScan, watch: Watch,
) -> int:  # fmt: skip
    """Write all files; return the number of lines of the input table."""
    with contextlib.ExitStack() as outputs:
        if request.edit:
            request.edit.write_to(outputs.enter_context(Output(request.edit.output)), columns)
        if request.entries_out:
            _list_entries(outputs.enter_context(Output(request.entries_out)), new, request.evidence)
        if request.reordering_table and request.reordering_out:
            reordering = outputs.enter_context(Output(request.reordering_out))
            _write_reordering(request, request.reordering_table, reordering, known, new, scan, watch)
        table = open_table(request.table, request.output, scan, watch, "augment", sort=request.sort)
        with table as (source, followed), Output(request.output) as output:
            form = phrase_lines(new, len(request.evidence), columns > 0)
            return write_augmented(source, output, new, form, columns, followed)


def _write_reordering(
    request: AugmentRequest, path: str, output: Output, known: Collection[str],
    new: Mapping[str, Sequence[NewEntry]], scan: TableScan, watch: Watch,
) -> None:  # fmt: skip
    with Input(path) as source, watch.file("orientations", source.size()) as progress:
        check_plausible(source, scan, REORDERING_TABLE)
        orientations = word_orientations(source, known, request.table, replace(scan, progress=progress))
    table = open_table(path, output.path, scan, watch, "reordering", sort=request.sort, expected=REORDERING_TABLE)
    with table as (source, followed):
        write_augmented(source, output, new, reordering_lines(new, orientations), 0, followed)


def _list_entries(output: Output, new: Mapping[str, Sequence[NewEntry]], evidence: Sequence[str]) -> None:
    """Write one line per entry: word, translation, its probability, sources of evidence, and its origin."""
    for word in sorted(new):
        for entry in new[word]:
            names = ",".join(name for number, name in enumerate(evidence) if number in entry.sources)
            line = "\t".join([word, entry.target, f"{entry.scores[2]:.6g}", names, entry.origin]) + "\n"
            output.write(output.encode(line.encode(*TEXT)))


def _sentences(text: str, reference: str) -> list[tuple[list[str], set[str]]]:
    """Return the words of each sentence, and those of its reference."""
    sides = read_text_lines(text), read_text_lines(reference)
    if len(sides[0]) != len(sides[1]):
        raise DataError(reference, f"{len(sides[1]):,} lines, but {text} has {len(sides[0]):,}")
    return [(split_words(line), set(split_words(other))) for line, other in zip(*sides, strict=True)]
