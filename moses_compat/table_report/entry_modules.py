"""Modules that only need the entries of a table: size, lines, sources, counts, lengths, memory, and a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from moses_compat.jobs.show import ShownEntry
from moses_compat.pages.drawing import Series, draw_bars, number_text, percent_text
from moses_compat.pages.html import Cell, Column, Row, Table, number_cell, text_cell
from moses_compat.table_report.measuring import EQUAL, FEWER, UNKNOWN, MeasuredReport
from moses_compat.table_report.modules import (
    CHECK,
    GOOD,
    LENGTHS,
    NOT_MEASURED,
    PROBLEM,
    SAMPLE_TABLE,
    Drawing,
    Fact,
    Module,
    ShownLines,
    share_of,
    verdict_above,
)
from moses_compat.tables.inspect import GROUP_SIZES
from phrasetool.phrases import Int64Array

# Moses' default for the number of entries loaded per source.
TABLE_LIMIT = 20
# Shares above which the verdict is `check` and `problem`; see `verdict_above`.
BEYOND_LIMIT = (0.05, 0.4)
UNEQUAL_LENGTHS = (0.05, 0.2)
# The lengths of the sides are very different if one has more than this number of words per word of the other.
UNEQUAL = 3
# The share of entries seen once above which the verdict is `check`.
SINGLETONS = 0.5
# Ratios of the longer to the shorter side that bound the bars of the figure, on the left and on the right.
RATIOS = (1, 2, 3, 5, 8)

Numbers = npt.NDArray[Any]


def size_module(measured: MeasuredReport) -> Module:
    """Return the module about the size of the table."""
    summary, entries = measured.summary, measured.entries
    count = int(entries.good.sum())
    sources = _distinct(measured.sources.keys)
    targets = _distinct(entries.targets[entries.good])
    facts = (
        Fact.count("entries", count), Fact.count("sources", sources), Fact.count("targets", targets),
        Fact.count("scores per entry", max(summary.scores, 0)), Fact.count("bytes of the file", measured.file_bytes),
        Fact.count("bytes of text", summary.bytes),
        Fact.number("bytes of text per entry", share_of(summary.bytes, summary.entries), 1),
        Fact("kind", summary.kind, summary.kind),
    )  # fmt: skip
    if not count:
        return Module("size", "Size", PROBLEM, "The file has no entry: check the command that wrote it.", facts)
    if "phrase table" not in summary.kind:
        advice = f"The file looks like {_with_article(summary.kind)}: check that it is the phrase table you mean."
        return Module("size", "Size", CHECK, advice, facts)
    advice = f"The table has {count:,} entries for {sources:,} sources and {targets:,} targets; nothing to do."
    return Module("size", "Size", GOOD, advice, facts)


def _with_article(kind: str) -> str:
    return kind if kind.startswith(("no ", "phrase pairs", "a ", "an ")) else f"a {kind}"


def _distinct(keys: Numbers) -> int:
    return len(np.unique(keys[keys > 0]))


def group_module(measured: MeasuredReport) -> Module:
    """Return the module about the number of entries per source."""
    name, title = "entries-per-source", "Entries per source"
    sizes = group_sizes(measured)
    if not len(sizes):
        return Module(name, title, NOT_MEASURED, "not measured: needs a table with entries")
    total = int(sizes.sum())
    beyond = int(np.maximum(sizes - TABLE_LIMIT, 0).sum())
    groups = np.bincount(np.searchsorted([1, 5, 10, 20, 100], sizes), minlength=len(GROUP_SIZES))
    facts = (
        Fact.number("mean", total / len(sizes)), Fact.number("median", float(np.median(sizes)), 1),
        Fact.count("largest", sizes.max()), Fact.share("sources with one entry", int((sizes == 1).sum()), len(sizes)),
        Fact.count("entries beyond the first 20 of a source", beyond),
        Fact.share("share of entries beyond the first 20 of a source", beyond, total),
    )  # fmt: skip
    share = beyond / total
    verdict = verdict_above(share, BEYOND_LIMIT)
    if verdict == GOOD:
        advice = "Hardly any source has more entries than Moses loads by default (20); nothing to do."
    else:
        advice = (
            f"{percent_text(share)} of the entries are more than Moses loads by default (`table-limit=20`): "
            "`phrasetool prune --method top --moses-ini INI` removes entries that Moses would not load."
        )
    labels = [label.replace("-", "–") for label in GROUP_SIZES]
    series = [Series("sources", groups.tolist())]
    drawing = Drawing("Sources by their number of entries", lambda key: draw_bars(
        key, "sources by their number of entries", labels, series, "entries of a source"))  # fmt: skip
    return Module(name, title, verdict, advice, facts, (drawing,), explanation=(
        "Which entries are the best 20 depends on the weights of the model; here they are only counted."
    ))  # fmt: skip


def group_sizes(measured: MeasuredReport) -> Int64Array:
    """Return the number of entries of each source group with entries, int64."""
    good = np.concatenate([[0], np.cumsum(measured.entries.good)])
    sizes = np.diff(good[measured.sources.offsets]).astype(np.int64)
    return sizes[sizes > 0]


def count_module(measured: MeasuredReport) -> Module:
    """Return the module about joint counts."""
    name, title = "counts", "Counts of counts"
    entries = measured.entries
    joint = entries.joint[entries.good]
    known = joint[~np.isnan(joint)].astype(np.float64)
    states = np.bincount(measured.sources.complete, minlength=4)
    judged = int(states.sum() - states[UNKNOWN])
    bad = measured.summary.oddities.get("bad counts")
    ones = int((known <= 1).sum())
    facts = (
        Fact.count("entries with a joint count", len(known)),
        Fact.count("entries without a joint count", len(joint) - len(known)),
        Fact.count("joint counts derived from two counts", measured.derived),
        Fact.count("lines with invalid counts", bad.lines if bad else 0),
        Fact.number("occurrences in all", float(known.sum()), 0),
        Fact.share("entries seen once", ones, len(known)),
        Fact.share("sources whose joint counts add up to c(s)", int(states[EQUAL]), judged),
        Fact.share("sources whose joint counts add up to less", int(states[FEWER]), judged),
    )
    if not len(known):
        advice = (
            "The table has no joint counts, so neither significance nor composition can prune it: extract it again "
            "with Moses' `score`, which writes them, if you need these methods."
        )
        return Module(name, title, CHECK, advice, facts)
    edges = [*range(1, 9), 10, 100, 1000]
    values = np.bincount(np.searchsorted(edges, known - 1e-9), minlength=len(edges) + 1).tolist()
    labels = [*map(str, range(1, 9)), "–10", "–100", "–1k", "more"]
    series = [Series("entries", values)]
    drawing = Drawing("Entries by their joint count (logarithmic)", lambda key: draw_bars(
        key, "entries by their joint count", labels, series, "joint count", logarithmic=True))  # fmt: skip
    explanation = (
        "In a table as Moses writes it, the joint counts of the entries of a source add up to c(s); they add up to "
        "less where entries were removed."
    )
    share = ones / len(known)
    if bad and bad.lines:
        verdict, advice = PROBLEM, (
            f"{bad.lines:,} lines have invalid counts, from line {bad.first:,}: check what wrote them, as pruning "
            "refuses such entries where it needs counts."
        )  # fmt: skip
    elif share > SINGLETONS:
        verdict, advice = CHECK, (
            f"{percent_text(share)} of the entries were seen only once: `phrasetool prune --method composition` or "
            "`significance` finds those that the decoder does not need."
        )  # fmt: skip
    else:
        verdict, advice = GOOD, f"Only {percent_text(share)} of the entries were seen once; nothing to do."
    return Module(name, title, verdict, advice, facts, (drawing,), explanation=explanation)


def length_module(measured: MeasuredReport) -> Module:
    """Return the module about the lengths of phrases and their ratio."""
    name, title = "lengths", "Phrase lengths"
    lengths = _length_pairs(measured)
    total = int(lengths.sum())
    if not total:
        return Module(name, title, NOT_MEASURED, "not measured: needs a table with entries")
    by_source, by_target = lengths.sum(axis=1), lengths.sum(axis=0)
    words = np.arange(len(lengths))
    longer, shorter = np.maximum.outer(words, words), np.minimum.outer(words, words)
    unequal = int(lengths[longer > UNEQUAL * shorter].sum())
    facts = (
        Fact.number("mean words of a source", float(by_source @ words) / total),
        Fact.number("mean words of a target", float(by_target @ words) / total),
        Fact.count("longest source", np.flatnonzero(by_source)[-1]),
        Fact.count("longest target", np.flatnonzero(by_target)[-1]),
        Fact.share("entries with a one-word source", int(by_source[1]), total),
        Fact.count("entries with an empty target", by_target[0]),
        Fact.share(f"entries whose sides differ by more than {UNEQUAL} to 1", unequal, total),
    )
    share = unequal / total
    verdict = verdict_above(share, UNEQUAL_LENGTHS)
    if verdict == GOOD:
        advice = f"Only {percent_text(share)} of the entries have sides of very different length; nothing to do."
    else:
        advice = (
            f"{percent_text(share)} of the entries have a side more than {UNEQUAL} times as long as the other: check "
            "the word alignment and the sentence pairs (`phrasetool filter-bitext`)."
        )
    labels = [*map(str, range(LENGTHS + 1)), "more"]
    sides = [
        Series(side, [*counts[: LENGTHS + 1].tolist(), int(counts[LENGTHS + 1 :].sum())])
        for side, counts in (("sources", by_source), ("targets", by_target))
    ]
    # Ratios of 1:2, 1:3 and so on are to the left of 1:1, ratios of 2:1, 3:1 and so on to the right.
    step = np.searchsorted(RATIOS, longer[1:, 1:] / shorter[1:, 1:])
    bars = np.where(words[1:, None] > words[None, 1:], len(RATIOS) - step, len(RATIOS) + step)
    shares = np.bincount(bars.ravel(), lengths[1:, 1:].ravel(), minlength=2 * len(RATIOS) + 1).astype(np.int64)
    names = ["<1:8", "1:8", "1:5", "1:3", "1:2", "1:1", "2:1", "3:1", "5:1", "8:1", ">8:1"]
    ratios = [Series("entries", shares.tolist())]
    drawings = (
        Drawing("Entries by the words of each side", lambda key: draw_bars(
            key, "entries by the words of source and target", labels, sides, "words"), ("source", "target")),
        Drawing("Entries by the ratio of target to source words (logarithmic)", lambda key: draw_bars(
            key, "entries by length ratio", names, ratios, "target : source", logarithmic=True)),
    )  # fmt: skip
    return Module(name, title, verdict, advice, facts, drawings)


def _length_pairs(measured: MeasuredReport) -> Int64Array:
    """Return numbers of entries by the words of source and target, at most 255 each; int64, shape (256, 256)."""
    words = np.repeat(measured.sources.words, measured.sources.lines)[measured.entries.good].astype(np.uint16)
    both = (words << np.uint16(8)) | measured.entries.target_words[measured.entries.good]
    return np.bincount(both, minlength=1 << 16).reshape(256, 256)


def line_module(measured: MeasuredReport) -> Module:
    """Return the module about malformed lines, duplicates, and the programs that load the table."""
    name, title = "lines", "Duplicates and malformed lines"
    summary = measured.summary
    twice, back = (summary.oddities.get(key) for key in ("duplicate pair", "source not contiguous"))
    facts = [
        Fact.count("malformed lines", summary.faults),
        Fact.count("pairs that come twice within a source", twice.lines if twice else 0),
        Fact.count("sources that come back after others", back.lines if back else 0),
        Fact("sorted (LC_ALL=C)", "out of order" not in summary.oddities,
             "no" if "out of order" in summary.oddities else "yes"),
    ]  # fmt: skip
    faults = [
        Row((number_cell(fault.entry + 1, 0), text_cell(fault.message, "phrase"))) for fault in summary.first_faults
    ]
    odd = [
        Row((text_cell(kind), number_cell(oddity.lines, 0), number_cell(oddity.first, 0)))
        for kind, oddity in sorted(summary.oddities.items(), key=lambda item: (-item[1].lines, item[0]))
    ]
    loaders = [
        Row((
            text_cell(verdict.loader), text_cell(verdict.answer), text_cell(verdict.options, "code"),
            text_cell("; ".join(f"line {one.first:,}: {one.reason}" for one in verdict.objections), "phrase"),
        ))
        for verdict in measured.loaders
    ]  # fmt: skip
    tables = [
        Table(key, heading, tuple(columns), tuple(rows))
        for key, heading, columns, rows in (
            ("faults", "First malformed lines", [Column("line"), Column("what is wrong", "", False)], faults),
            ("loaders", "Programs of Moses", [
                Column(word, "", False) for word in ("program", "loads it", "options", "objections")
            ], loaders),
            ("oddities", "Unusual lines", [
                Column("what is unusual", "", False), Column("lines"), Column("first line"),
            ], odd),
        )
        if rows
    ]  # fmt: skip
    refused = [verdict.loader for verdict in measured.loaders if verdict.answer == "no"]
    if summary.faults:
        verdict, advice = PROBLEM, (
            f"{summary.faults:,} lines are malformed, the first is line {summary.first_faults[0].entry + 1:,}: Moses "
            "stops there, and `phrasetool prune --on-error skip` removes them."
        )  # fmt: skip
    elif "moses" in refused:
        reason = next(one for one in measured.loaders if one.loader == "moses").objections[0]
        verdict, advice = PROBLEM, f"Moses refuses the table: line {reason.first:,}, {reason.reason}."
    elif twice or back:
        verdict, advice = CHECK, (
            "Sort the table with `LC_ALL=C sort -u`: pairs occur twice, or sources are not contiguous, which binary "
            "tables do not support."
        )  # fmt: skip
    elif refused:
        verdict, advice = (
            CHECK,
            f"Moses loads the table, but {', '.join(refused)} would refuse it: see the table below.",
        )
    else:
        verdict, advice = GOOD, "All lines are entries that every program of Moses loads; nothing to do."
    if not measured.loaders and verdict == GOOD:
        verdict, advice = PROBLEM, "No line is an entry of a phrase table."
    return Module(name, title, verdict, advice, tuple(facts), tables=tuple(tables), explanation=(
        "These are the findings of `phrasetool inspect`, on which `phrasetool binarize` relies, too."
    ))  # fmt: skip


def memory_of(measured: MeasuredReport, points: float) -> list[tuple[str, int | None, str]]:
    """Return the forms of the table: name, bytes (None if unknown) and the origin of the number.

    Args:
        measured: the table.
        points: alignment points per entry, in the sample.
    """
    entries = int(measured.entries.good.sum())
    scores, words = max(measured.summary.scores, 0), measured.target_words
    sizes = group_sizes(measured)
    groups = len(sizes)
    lines = measured.entries.good
    kept = np.add.reduceat(lines, measured.sources.offsets[:-1]) > 0 if len(lines) else np.zeros(0, np.bool_)
    source_words = int(measured.sources.words[kept].sum(dtype=np.int64))
    # Layout observed in CreateProbingPT: a hash table with 1.2 slots per source; per source a number of entries; per
    # entry 16 bytes, its scores in single precision and its target words.
    probing = 16 * (groups * 12 // 10) + 8 * groups + entries * (16 + 4 * scores) + 4 * words
    # Arrays of `phrasetool.smt.decoder.table.TranslationTable`.
    slots = 1 << max((2 * groups - 1).bit_length(), 1) if groups else 2
    decoder = 8 * (2 * groups + 2) + 4 * source_words + 4 * slots
    decoder += entries * (8 + 4 * scores + 8 + 12 + 8 + 4) + 4 * words + round(4 * points * entries)
    return [
        ("text, as stored", measured.file_bytes, "size of the file"),
        ("text, not compressed", measured.summary.bytes, "bytes that were read"),
        ("ProbingPT, in memory or mapped", probing, "estimate: hash table and entries, without vocabularies"),
        ("phrasetool decode, whole table", decoder, "estimate: its arrays; it loads only what the text can use"),
        ("PhraseDictionaryCompact, PhraseDictionaryOnDisk", None, "known once `phrasetool binarize` has written it"),
    ]  # fmt: skip


def memory_module(measured: MeasuredReport, shown: ShownLines, sample: Sequence[int]) -> Module:
    """Return the module about the memory of the forms of the table."""
    name, title = "memory", "Memory of each form"
    points = [
        len(ShownEntry.of(shown.lines[row]).alignment.split(b" ")) for row in sample if _has_alignment(shown, row)
    ]
    forms = memory_of(measured, sum(points) / len(sample) if sample else 0.0)
    rows = [
        Row((
            text_cell(form), Cell("–") if size is None else Cell(_bytes_text(size), float(size)),
            text_cell(origin, "phrase"),
        ))
        for form, size, origin in forms
    ]  # fmt: skip
    columns = (Column("form", "", False), Column("bytes"), Column("how the number is known", "", False))
    table = Table("forms", "Bytes", columns, tuple(rows))
    facts = tuple(Fact.count(form, size) for form, size, _ in forms if size is not None)
    large = max(size for _, size, _ in forms if size is not None)
    verdict = CHECK if large > 1 << 33 else GOOD
    if verdict == GOOD:
        advice = "Every form of the table fits into the memory of a usual machine; nothing to do."
    else:
        advice = (
            "A form of the table takes more than 8 GiB: binarise it (`phrasetool binarize --to probing`) or prune it."
        )
    return Module(name, title, verdict, advice, facts, tables=(table,), facts_shown=False)


def _has_alignment(shown: ShownLines, row: int) -> bool:
    return bool(ShownEntry.of(shown.lines[row]).alignment)


def _bytes_text(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{number_text(size / unit, 1)} {name}"
    return f"{size} B"


def sample_module(measured: MeasuredReport, shown: ShownLines, sample: Sequence[int]) -> Module:
    """Return the module with entries drawn at random."""
    name, title = "sample", "Sample of entries"
    if not sample:
        return Module(name, title, NOT_MEASURED, "not measured: needs a table with entries")
    count = int(measured.entries.good.sum())
    table = shown.table(measured, SAMPLE_TABLE, "Entries", sample)
    advice = "Search for words that you know, and sort by a score: errors are as frequent here as in the whole table."
    facts = (Fact.count("entries shown", len(sample)), Fact.count("entries of the table", count))
    table = replace(table, notes=(f"Drawn with seed {measured.request.seed}, in table order.",))
    return Module(name, title, GOOD, advice, facts, tables=(table,))
