"""What was found in a table, as text for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from moses_compat.tables.inspect import GROUP_SIZES, ColumnSummary, TableSummary
from moses_compat.tables.moses_loaders import LoaderVerdict, Objection

SCHEMA_VERSION = 1
_BARS = " ▁▂▃▄▅▆▇█"
_MOSES_SCORES = ("phi(f|e)", "lex(f|e)", "phi(e|f)", "lex(e|f)")
# Oddities that the summary names: what they are called there, in the plural.
_ODDITIES = {
    "source comes back": "sources come back after other sources",
    "pair comes twice": "pairs come twice",
    "empty target": "empty targets (Moses deletes the source)",
    "empty source": "empty sources",
    "not UTF-8": "lines that are not UTF-8 (bytes are kept as they are)",
    "carriage return": "lines that end in a carriage return",
    "tab": "lines with a tab",
    "double space": "lines with a double space",
    "no space beside |||": "lines without a space on a side of |||",
    "non-terminals differ": "lines whose alignment does not pair each non-terminal with one of the other side",
    "bracket inside": "lines with a token in brackets that is no non-terminal",
    "bad alignment": "lines whose alignment is no list of points",
    "alignment beyond the phrase": "lines with an alignment point beyond the phrase",
    "bad counts": "lines whose counts are no numbers of at least 0",
    "sparse scores": "lines with sparse scores",
    "properties": "lines with properties",
    "more than 7 fields": "lines with more than 7 fields",
    "blank line": "blank lines",
}


def table_lines(name: str, summary: TableSummary) -> Iterator[str]:
    """What was found in a table, for people.

    Args:
        name: what to call the table.
        summary: what was found.
    """
    if summary.entries == summary.faults:
        # Nothing here is an entry, so there is little to say about entries.
        yield f"{name}: {summary.kind}, {summary.entries:,} lines, {summary.bytes:,} bytes of text"
        for fault in summary.first_faults[:1]:
            yield f"  as an entry of a phrase table, line {fault.entry + 1}: {fault.message}"
        return
    yield (f"{name}: {summary.kind}, {summary.entries:,} entries, {summary.sources:,} sources, "
               f"{summary.bytes:,} bytes of text")  # fmt: skip
    fields = ", ".join(f"{count:,} with {number}" for number, count in sorted(summary.fields.items()))
    yield f"  fields a line        {fields}"
    sizes = ", ".join(
        f"{label}: {count:,}" for label, count in zip(GROUP_SIZES, summary.group_sizes.tolist(), strict=True) if count
    )
    yield f"  entries a source     {sizes}"
    order = "sorted (LC_ALL=C)"
    if "out of order" in summary.oddities:
        order = f"not sorted: line {summary.oddities['out of order'].first:,} is below the one before it"
    yield f"  order                {order}"
    if summary.factors != (1, 1):
        yield f"  factors a token      {summary.factors[0]} in the source, {summary.factors[1]} in the target"
    yield f"  counts               {_counts(summary)}"
    yield f"  scores an entry      {max(summary.scores, 0)}"
    for number, column in enumerate(summary.columns, 1):
        meaning = f"  {_MOSES_SCORES[number - 1]}" if summary.scores in (4, 5, 6) and number <= 4 else ""
        if "reordering" in summary.kind:
            meaning = ""
        yield f"    {number}  {_describe(column, summary.entries - summary.faults)}{meaning}"
    for oddity, meaning in _ODDITIES.items():
        if oddity in summary.oddities:
            found = summary.oddities[oddity]
            yield f"  {found.lines:,} {meaning}, from line {found.first:,}"
    if summary.faults:
        yield f"  {summary.faults:,} faulty lines"
    for fault in summary.first_faults:
        yield f"    line {fault.entry + 1}: {fault.message}"


_COUNTS = {
    "joint": "c(t) c(s) c(s,t)",
    "sides": "no joint count, but c(t) or c(s)",
    "none": "no counts",
}


def _counts(summary: TableSummary) -> str:
    """Which counts the entries have."""
    kinds = [(kind, summary.counts[kind]) for kind in _COUNTS if summary.counts[kind]]
    if len(kinds) == 1:
        return _COUNTS[kinds[0][0]]
    return ", ".join(f"{count:,} with {_COUNTS[kind]}" for kind, count in kinds) or "no counts"


def loader_lines(loaders: Sequence[LoaderVerdict]) -> Iterator[str]:
    """Which programs of Moses take it: a line for each, and one more for each thing it minds beyond the first."""
    if not loaders:
        return
    yield "  programs of Moses that take it"
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
    """The same as a document for programs; see `table_lines` and `loader_lines`."""
    found = {
        verdict.loader: {
            "answer": verdict.answer,
            "options": verdict.options,
            "objections": [objection.__dict__ for objection in verdict.objections],
        }
        for verdict in loaders
    }
    return {"schema_version": SCHEMA_VERSION, "file": name, **summary.as_dict(), "loaders": found}
