"""Give a table entries for words of texts that it has none for."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.streams import Input, Output
from moses_compat.jobs.annotate_tables import IniEdit
from moses_compat.jobs.augmenting.augmented_table import write_augmented
from moses_compat.jobs.augmenting.word_table import read_word_entries, unknown_words
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.plausible import check_plausible
from phrasetool.augment.augmenter import Augmenter, NewEntry
from phrasetool.augment.scripts import has_letter
from phrasetool.augment.sources_of_evidence import EVIDENCE, learn_augmenter
from phrasetool.errors import DataError
from phrasetool.watch import NOBODY, Watch

Sentence = tuple[list[str], set[str]]


@dataclass(frozen=True)
class AugmentRequest:
    """What is wanted.

    Attributes:
        table: a sorted phrase table with the four scores of Moses' training; a file, as it is read twice.
        output: where the table with more entries goes.
        texts: whose words are to have entries; tokenised as the table.
        references: of the texts, where there are some, to say how good the new entries are.
        evidence: sources of it, of `EVIDENCE`.
        edit: what happens to a moses.ini, if anything.
        scan: how the table is read.
        seed: of the words that are learnt from.
    """

    table: str
    output: str
    texts: Sequence[str]
    references: Sequence[str] = ()
    evidence: Sequence[str] = EVIDENCE
    edit: IniEdit | None = None
    scan: TableScan = field(default_factory=TableScan)
    seed: int = 1


@dataclass(frozen=True)
class SourceReport:
    """What a source of evidence gave.

    Attributes:
        words, tokens: unknown ones that it proposed something for.
        right: tokens for which one of its proposals stands in the reference; None without references.
        trust: share of its first proposals that were right, for known words taken for unknown.
    """

    words: int
    tokens: int
    right: int | None
    trust: float


@dataclass(frozen=True)
class AugmentReport:
    """What was done.

    Attributes:
        lines: of the table before.
        words, tokens: unknown ones of the texts.
        entries: new ones.
        sources: name -> what each source of evidence gave.
        right: tokens for which some new entry stands in the reference, and those for which the first does; None without
            references.
    """

    lines: int
    words: int
    tokens: int
    entries: int
    sources: Mapping[str, SourceReport]
    right: tuple[int, int] | None


def augment(request: AugmentRequest, watch: Watch = NOBODY) -> AugmentReport:
    """Write the table with entries for unknown words, and the ini if one is wanted.

    Raises:
        DataError: a file is damaged, the table is not sorted or has too few scores, or a reference has other lines than
            its text.
        PhraseToolError: a file cannot be written.
        ValueError: an unknown source of evidence, or as many references as there are not texts.
    """
    if request.references and len(request.references) != len(request.texts):
        raise ValueError(f"{len(request.texts)} texts, but {len(request.references)} references")
    sentences = [_sentences(*both) for both in zip(request.texts, request.references, strict=False)]
    scan = replace(request.scan, warn=watch.warn)
    with Input(request.table) as source, watch.file("words", source.size()) as progress:
        check_plausible(source, scan)
        entries = read_word_entries(source, replace(scan, progress=progress))
    unknown = {word: count for word, count in unknown_words(request.texts, entries).items() if has_letter(word)}
    augmenter = learn_augmenter(entries, request.evidence, seed=request.seed)
    new: dict[str, Sequence[NewEntry]] = {}
    with watch.items("translate", len(unknown), "unknown word") as tick:
        for word in sorted(unknown):
            if found := augmenter.entries(word):
                new[word] = found
            tick(1)
    columns = len(augmenter.evidence)
    with contextlib.ExitStack() as outputs:
        if request.edit:
            request.edit.write_to(outputs.enter_context(Output(request.edit.output)), columns)
        with (
            Input(request.table) as source, Output(request.output) as output,
            watch.file("augment", source.size()) as progress,
        ):  # fmt: skip
            lines = write_augmented(source, output, new, columns, replace(scan, progress=progress))
    return _report(sentences, lines, unknown, new, augmenter)


def _report(
    sentences: Sequence[Sequence[Sentence]], lines: int, unknown: Mapping[str, int],
    new: Mapping[str, Sequence[NewEntry]], augmenter: Augmenter,
) -> AugmentReport:  # fmt: skip
    first = some = 0
    right: Counter[int] = Counter()
    tokens = ((word, reference) for text in sentences for words, reference in text for word in words)
    for word, reference in tokens:
        if word not in unknown:
            continue
        good = [set(entry.target.split()) <= reference for entry in new.get(word, ())]
        first += good[:1] == [True]
        some += any(good)
        right.update({
            number for entry, there in zip(new.get(word, ()), good, strict=True) if there for number in entry.sources
        })  # fmt: skip
    sources = {}
    for number, source in enumerate(augmenter.evidence):
        words = [word for word, found in new.items() if any(number in entry.sources for entry in found)]
        sources[source.name] = SourceReport(
            len(words), sum(unknown[word] for word in words), right[number] if sentences else None,
            augmenter.trusts[source.name].first,
        )  # fmt: skip
    return AugmentReport(
        lines, len(unknown), sum(unknown.values()), sum(map(len, new.values())), sources,
        (some, first) if sentences else None,
    )  # fmt: skip


def _sentences(text: str, reference: str) -> list[Sentence]:
    """The words of each sentence, and those of its reference."""
    sides = read_text_lines(text), read_text_lines(reference)
    if len(sides[0]) != len(sides[1]):
        raise DataError(reference, f"{len(sides[1]):,} lines, but {text} has {len(sides[0]):,}")
    return [(line.split(), set(other.split())) for line, other in zip(*sides, strict=True)]
