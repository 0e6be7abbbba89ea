"""The tables of a report, without markup: cells with their texts, sort keys and marks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from moses_compat.experiments.report.figures import (
    as_good,
    curve_points,
    curves_of,
    main_text,
    protections,
)
from moses_compat.experiments.settings import ALL, DEV, FULL, RANDOM
from moses_compat.pages.drawing import number_text, p_text, percent_text, printable
from moses_compat.pages.html import Cell, Column, Row, Table, code, number_cell, share_cell, text_cell
from phrasetool.smt.evaluation.metrics import is_significant

_VERY_SIGNIFICANT = 0.01


def significance_mark(difference: float, p: float, low: float, high: float) -> str:
    """Return one triangle at p < 0.05, two at p < 0.01, up for better and down for worse.

    Empty if the interval of the difference, from `low` to `high`, contains 0, and for NaN.
    """
    if math.isnan(difference) or difference == 0 or not is_significant(p, low, high):
        return ""
    return ("▲" if difference > 0 else "▼") * (2 if p < _VERY_SIGNIFICANT else 1)


def _probability(p: float) -> Cell:
    return Cell(p_text(p), None if math.isnan(p) else float(p))


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the test sets in order of appearance, then `ALL`, without the development set."""
    texts = [text for text in dict.fromkeys(frame["text"]) if text not in (ALL, DEV)]
    return texts + ([ALL] if ALL in set(frame["text"]) else [])


def overview_tables(pruning: pd.DataFrame) -> Iterator[Table]:
    """Yield overviews of BLEU by method and size, one table per protection."""
    text = main_text(pruning)
    _, curves = curves_of(pruning)
    for protect in protections(pruning):
        all_points = curve_points(pruning, str(protect), text)
        points = {c: all_points[c.number].query("rule == 'size'") for c in curves if c.number in all_points}
        points = {curve: rows for curve, rows in points.items() if len(rows)}
        if not points:
            continue
        best = pd.concat(points.values()).groupby("wanted")["bleu"].max()
        sizes = best.index[::-1]
        rows = []
        for curve, curve_rows in sorted(points.items(), key=lambda item: -_mean_at_small_sizes(item[1])):
            cells = [text_cell(curve.label, "code")]
            for size in sizes:
                at = curve_rows[curve_rows["wanted"] == size]
                cells.append(_overview_cell(at.iloc[-1], best[size]) if len(at) else Cell(""))
            rows.append(Row(tuple(cells), curve.number))
        columns = [Column("method", "ranking method; best at small sizes first", False)]
        columns += [Column(percent_text(size), "share of the entries kept; BLEU below") for size in sizes]
        full = pruning[(pruning["method"] == FULL) & (pruning["text"] == text)]
        notes = [f"BLEU on {code(text)}." + "".join(f" Full table: {number_text(bleu)}." for bleu in full["bleu"][:1])]
        title = f"BLEU by size, --protect {protect}"
        yield Table(f"overview-{protect}", title, tuple(columns), tuple(rows), tuple(notes))


def _mean_at_small_sizes(rows: pd.DataFrame) -> float:
    small = rows[rows["wanted"] <= 0.15]
    return float((small if len(small) else rows)["bleu"].mean())


def _overview_cell(row: pd.Series, best: float) -> Cell:
    marked = {"best": row["bleu"] >= best, "within": as_good(row["worst"])}
    tones = tuple(tone for tone, applies in marked.items() if applies)
    mark = significance_mark(row["difference"], row["p"], row["worst"], row["best"])
    return number_cell(row["bleu"], mark=mark, tones=tones)


def _size_columns(texts: Sequence[str], main: str, dev: bool) -> list[Column]:
    meanings = {ALL: "BLEU on all test sets as one"}
    columns = [
        Column("method", "the criteria that ranked the entries, `full` for the full table", False),
        Column("rule", "the target share of the entries, or the threshold", False),
        Column("best k", "each protected source always keeps its k best entries"),
        Column("entries", "entries of the table"),
        Column("kept", "their share of the full table"),
        *(Column(printable(text), meanings.get(text, "BLEU on that test set")) for text in texts),
        Column("95 %", f"bootstrap interval of BLEU on {code(main)}"),
        Column("to full", f"difference: BLEU on {code(main)} less that of the full table"),
        Column("at worst", "lower end of the 95 % interval of that difference, by paired bootstrap"),
        Column("p", "chance of such a difference if there were none: paired bootstrap against the full table"),
    ]
    return columns + [Column("dev", "BLEU on the development set")] * dev


def size_tables(pruning: pd.DataFrame) -> Iterator[Table]:
    """Yield Table 1: BLEU of each system per test set, one table per protection, each with the full table."""
    labels, curves = curves_of(pruning)
    numbers = {curve.label: curve.number for curve in curves}
    texts = texts_of(pruning)
    main = main_text(pruning)
    dev = DEV in set(pruning["text"])
    columns = _size_columns(texts, main, dev)
    for protect in protections(pruning):
        rows = []
        chosen = pruning[(pruning["protect"] == protect) | (pruning["method"] == FULL)]
        best = _best_of_groups(chosen, texts)
        for system, system_rows in chosen.groupby("system", sort=False):
            by_text = {row.text: row for row in system_rows.itertuples()}
            first: Any = next(iter(by_text.values()))
            label = labels[system_rows.index[0]]
            full = first.method == FULL
            rule = FULL if full else percent_text(first.wanted) if first.rule == "size" else f"≥ {first.wanted:g}"
            cells = [
                text_cell(label if first.method != RANDOM else f"{label}, seed {first.seed:g}", "code"),
                Cell(rule, float(first.wanted) + (10 if first.rule == "threshold" else 0)),
                number_cell(math.nan if full else first.keep_top, 0),
                number_cell(first.entries, 0),
                share_cell(first.share),
                *(_score_cell(by_text.get(text), (system, text) in best) for text in texts),
            ]
            cells += _comparison_cells(by_text.get(main))
            if dev:
                cells.append(_score_cell(by_text.get(DEV), False))
            rows.append(Row(tuple(cells), numbers.get(label)))
        rows.sort(key=lambda row: row.series is not None)
        title = f"Table 1: size against BLEU, --protect {protect}"
        yield Table(f"sizes-{protect}", title, tuple(columns), tuple(rows))


def _score_cell(row: Any, best: bool) -> Cell:
    if row is None:
        return Cell("")
    mark = significance_mark(row.difference, row.p, row.worst, row.best)
    return number_cell(row.bleu, mark=mark, tones=("best",) if best else ())


def _comparison_cells(row: Any) -> list[Cell]:
    if row is None:
        return [Cell("")] * 4
    interval = f"{number_text(row.low, 1)}–{number_text(row.high, 1)}" if not math.isnan(row.low + row.high) else ""
    difference = math.nan if row.method == FULL else row.difference
    worst = number_cell(row.worst, sign=True, tones=("within",) if as_good(row.worst) else ())
    return [
        Cell(interval, float(row.low) if interval else None), number_cell(difference, sign=True), worst,
        _probability(row.p),
    ]  # fmt: skip


def _best_of_groups(rows: pd.DataFrame, texts: Sequence[str]) -> set[tuple[str, str]]:
    """Return the pairs of system and text with the highest score among several systems of the same rule and size."""
    rows = rows[(rows["method"] != FULL) & rows["text"].isin(texts)]
    best = set()
    for (_, _, text), group in rows.groupby(["rule", "wanted", "text"], sort=False):
        if len(group) > 1 and group["bleu"].notna().any():
            best |= {(system, text) for system in group.loc[group["bleu"] == group["bleu"].max(), "system"]}
    return best


def contest_table(contests: pd.DataFrame) -> Table:
    """Compare the best method with semantics to the best without, both chosen on the development set."""
    columns = (
        Column("kept", "target share of the entries"),
        Column("protect", "which sources keep their best entries", False),
        Column("with semantics", "best on the development set among methods with a semantic criterion", False),
        Column("without", "best on the development set among the others, random left out", False),
        Column("BLEU with", "on all test sets"),
        Column("BLEU without", "on all test sets"),
        Column("difference", "with less without"),
        Column("p", "paired bootstrap of the two"),
        Column("winner", "at p < 0.05, if the 95 % interval of the difference does not contain 0", False),
        Column("dev with", "BLEU on the development set"),
        Column("dev without", "BLEU on the development set"),
    )
    rows = [
        Row((
            share_cell(row.wanted), text_cell(row.protect), text_cell(row.with_semantics, "code"),
            text_cell(row.without, "code"),
            number_cell(row.bleu_with), number_cell(row.bleu_without),
            number_cell(
                row.difference, sign=True, mark=significance_mark(row.difference, row.p, row.worst, row.best)
            ),
            _probability(row.p), text_cell(verdict(row)), number_cell(row.dev_with), number_cell(row.dev_without),
        ))
        for row in contests.itertuples()
    ]  # fmt: skip
    title = "The best method with semantic similarity against the best without"
    return Table("contests", title, columns, tuple(rows))


def verdict(row: Any) -> str:
    """Return the winner of a comparison: `semantics`, `others`, or `neither` without a significant difference."""
    mark = significance_mark(row.difference, row.p, row.worst, row.best)
    return "semantics" if "▲" in mark else "others" if "▼" in mark else "neither"


def annotation_table(annotation: pd.DataFrame) -> Table:
    """Return Table 2: BLEU of tables with additional columns, compared to the same table without them."""
    texts = texts_of(annotation)
    main = ALL if ALL in texts else texts[-1]
    columns = [
        Column("system", "the table that was tuned", False),
        Column("columns", "appended score columns", False),
        Column("n", "dimension of the phrase vectors"),
        Column("tunings", "number of tunings, each with another seed"),
        *(Column(printable(text), "mean of BLEU ± its deviation over the tunings") for text in texts),
        Column("difference", f"on {code(main)}, to the baseline"),
        Column("95 %", "interval of the difference, paired bootstrap over sentences and tunings"),
        Column("p", "paired bootstrap over sentences and tunings"),
        Column("dev", "BLEU on the development set, on which weights were tuned"),
    ]
    rows = []
    for system, system_rows in annotation.groupby("system", sort=False):
        by_text = {row.text: row for row in system_rows.itertuples()}
        first: Any = next(iter(by_text.values()))
        cells = [
            text_cell(system, "phrase"),
            text_cell("" if pd.isna(first.columns) else first.columns, "phrase"),
            number_cell(first.dimension if first.dimension else math.nan, 0),
            number_cell(first.tuning_seeds, 0),
            *(deviation_cell(by_text.get(text)) for text in texts),
        ]
        total = by_text.get(main)
        baseline = total is None or math.isnan(total.p)
        cells.append(number_cell(math.nan if total is None or baseline else total.difference, sign=True))
        cells.append(Cell("") if total is None else interval_cell(total.low, total.high))
        cells.append(_probability(math.nan if total is None else total.p))
        cells.append(number_cell(first.dev_bleu))
        rows.append(Row(tuple(cells)))
    return Table("annotation", "Table 2: baseline against annotated", tuple(columns), tuple(rows))


def deviation_cell(row: Any, columns: Sequence[str] = ("difference", "p", "low", "high")) -> Cell:
    """Return a cell with BLEU ± its deviation over tunings; `columns` names those of the arguments of the mark."""
    if row is None:
        return Cell("")
    cell = number_cell(row.bleu, mark=significance_mark(*(getattr(row, column) for column in columns)))
    spread = () if math.isnan(row.deviation) else (f"±{number_text(row.deviation)}",)
    return Cell(cell.text, cell.key, cell.mark, asides=spread)


def interval_cell(low: float, high: float) -> Cell:
    """Return a cell with an interval; an empty one for NaN."""
    if pd.isna(low + high):
        return Cell("")
    return Cell(f"{number_text(low, sign=True)} to {number_text(high, sign=True)}", low)


def neighbour_tables(neighbours: pd.DataFrame) -> Iterator[Table]:
    """Yield Table 3: the nearest phrases by each model, the unsupervised one first; one table per language."""
    models = sorted(dict.fromkeys(neighbours["model"]), key=lambda model: model != "RAE")
    meanings = {"RAE": "unsupervised: one language alone"}
    columns = [Column("phrase", "query phrase", False)]
    columns += [
        Column(printable(model), f"{meanings.get(model, 'bilingual')}; nearest first, cosine behind each", False)
        for model in models
    ]
    for language in dict.fromkeys(neighbours["language"]):
        rows = []
        for phrase, phrase_rows in neighbours[neighbours["language"] == language].groupby("phrase", sort=False):
            cells = [text_cell(phrase, "phrase")]
            for model in models:
                near = phrase_rows[phrase_rows["model"] == model].sort_values("rank", kind="stable")
                lines = [printable(neighbour) for neighbour in near["neighbour"]]
                asides = tuple(number_text(similarity) for similarity in near["similarity"])
                cells.append(
                    Cell("\n".join(lines), lines[0].lower() if lines else None, tones=("phrase",), asides=asides)
                )
            rows.append(Row(tuple(cells)))
        title = f"Table 3: nearest phrases, {printable(language)} language"
        yield Table(f"neighbours-{printable(language)}", title, tuple(columns), tuple(rows))


def surprise_tables(surprises: pd.DataFrame, series: Mapping[str, int]) -> Iterator[tuple[int | None, Table]]:
    """Yield the entries that a method ranks most differently from the other methods, one table per method."""
    columns = (
        Column("", "what the method does with the entry", False),
        Column("source", "", False),
        Column("target", "", False),
        Column("count", "joint count in the bitext"),
        Column("p(e|f)", "direct translation probability"),
        Column("similarity", "mean of both directions"),
        Column("significance", "−ln p of Fisher's exact test"),
        Column("loss", "of model score when composed of shorter entries; ∞ where it cannot be"),
    )
    for method, method_rows in surprises.groupby("method", sort=False):
        method_rows = method_rows.sort_values(["kind", "rank"], ascending=[False, True], kind="stable")
        rows = [
            Row((
                text_cell(row.kind), text_cell(row.source, "phrase"), text_cell(row.target, "phrase"),
                number_cell(row.count, 0), number_cell(row.probability, 3), number_cell(row.similarity),
                number_cell(row.significance, 1), number_cell(row.loss),
            ))
            for row in method_rows.astype({"count": float}).itertuples(index=False, name="Surprise")
        ]  # fmt: skip
        yield series.get(method), Table(f"surprises-{printable(method)}", printable(method), columns, tuple(rows))
