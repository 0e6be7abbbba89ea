"""The probabilistic dictionaries of Bicleaner: gzipped lines `target source p(target|source)`, of single words.

See the README of bitextor/bicleaner, "Parameters" of `bicleaner-train`, and its prob_dict.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from moses_compat.files.streams import Output
from moses_compat.jobs.export_entries import PairEntry, PairFilter, read_pairs
from moses_compat.lines.words import holds_white_space
from moses_compat.tables.blocks import TableScan
from moses_compat.tables.opening import open_table
from phrasetool.watch import SILENT, Watch

_Line = Callable[[PairEntry], tuple[str, str, float]]


@dataclass(frozen=True)
class DictionaryRequest:
    """Dictionaries that are wanted.

    Attributes:
        table: a phrase table, in any order; `-` for standard input.
        output: where the dictionary from source to target goes.
        reverse: where the other one goes, if anywhere.
        least: pairs that are less probable are left out.
        scan: how the table is read.
    """

    table: str
    output: str
    reverse: str | None = None
    least: float = 0.01
    scan: TableScan = field(default_factory=TableScan)


@dataclass
class DictionaryReport:
    """What was written.

    Attributes:
        entries: lines of the table.
        pairs: of the dictionary.
        reverse_pairs: of the other one.
        unreadable: pairs left out because a word holds white space, at which Bicleaner splits lines.
    """

    entries: int = 0
    pairs: int = 0
    reverse_pairs: int = 0
    unreadable: int = 0

    def as_dict(self) -> dict[str, int]:
        """As JSON values."""
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
            report.pairs += _write(output, pairs, lambda pair: (pair.target, pair.source, pair.direct), request.least)
            if reverse:
                report.reverse_pairs += _write(
                    reverse, pairs, lambda pair: (pair.source, pair.target, pair.inverse), request.least
                )
    return report


def _write(output: Output, pairs: list[PairEntry], line: _Line, least: float) -> int:
    lines = [f"{to} {of} {p:.6g}\n" for to, of, p in map(line, pairs) if p >= least and p > 0]
    output.write_text("".join(lines).encode("utf-8", "surrogateescape"))
    return len(lines)
