"""The page of a report about a table: modules, each with its verdict, on one self-contained HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moses_compat.files.paths import display_name
from moses_compat.pages.drawing import printable
from moses_compat.pages.html import as_markup, page_template
from moses_compat.table_report.entry_modules import (
    count_module,
    group_module,
    length_module,
    line_module,
    memory_module,
    sample_module,
    size_module,
)
from moses_compat.table_report.input_modules import (
    bitext_module,
    compare_module,
    coverage_module,
    ini_module,
    removed_rows,
    similarity_module,
    suspicious_module,
    suspicious_rows,
    threshold_module,
)
from moses_compat.table_report.measuring import MeasuredReport, ReportRequest, draw_rows, lines_at, measure_report
from moses_compat.table_report.modules import (
    CHECK,
    GOOD,
    NOT_MEASURED,
    PROBLEM,
    SAMPLE,
    SAMPLE_TABLE,
    SHOWN_ENTRIES,
    Module,
    ShownLines,
)
from phrasetool.watch import SILENT, Watch

# Verdict -> its mark, which is readable without colour.
MARKS = {GOOD: "✓", CHECK: "!", PROBLEM: "✗", NOT_MEASURED: "–"}
# Verdict -> its words after a number of modules: `3 to check`.
_COUNTED = {GOOD: "good", CHECK: "to check", PROBLEM: "with a problem", NOT_MEASURED: "not measured"}


@dataclass(frozen=True)
class TableReport:
    """A finished report.

    Attributes:
        html: the page.
        modules: its modules.
        entries: entries of the table.
    """

    html: str
    modules: tuple[Module, ...]
    entries: int

    @property
    def summary(self) -> str:
        """The number of modules with each verdict, as text."""
        return summary_of(self.modules)

    def as_dict(self) -> dict[str, Any]:
        """Return the report's values for `--json`."""
        return {"entries": self.entries, "modules": {module.name: module.as_dict() for module in self.modules}}


def summary_of(modules: Sequence[Module]) -> str:
    """Return the number of modules with each verdict as text, worst first."""
    counts = Counter(module.verdict for module in modules)
    return ", ".join(
        f"{counts[verdict]} {_COUNTED[verdict]}" for verdict in (PROBLEM, CHECK, GOOD, NOT_MEASURED) if counts[verdict]
    )


def report_table(request: ReportRequest, watch: Watch = SILENT) -> TableReport:
    """Measure a table and create its report; the same files and request give the same bytes.

    Raises:
        DataError: a file cannot be read or is of another kind, or texts have different numbers of lines.
        ModelError: the model is not a model of phrase pairs.
    """
    measured = measure_report(request, watch)
    sample = draw_rows(measured.entries.good, SAMPLE, request.seed).tolist()
    examples = [suspicious_rows(measured)[:SHOWN_ENTRIES], removed_rows(measured)[:SHOWN_ENTRIES]]
    rows = {*sample, *(row for part in examples for row in part.tolist())}
    shown = ShownLines(lines_at(request.table, request.scan(watch), rows, watch))
    modules = modules_of(measured, shown, sample)
    return TableReport(_html(request, modules), modules, int(measured.entries.good.sum()))


def modules_of(measured: MeasuredReport, shown: ShownLines, sample: Sequence[int]) -> tuple[Module, ...]:
    """Return the modules of a report, in the order of the page."""
    return (
        size_module(measured), line_module(measured), group_module(measured), count_module(measured),
        length_module(measured), similarity_module(measured), threshold_module(measured),
        suspicious_module(measured, shown), coverage_module(measured), ini_module(measured), bitext_module(measured),
        compare_module(measured, shown), memory_module(measured, shown, sample), sample_module(measured, shown, sample),
    )  # fmt: skip


def _html(request: ReportRequest, modules: Sequence[Module]) -> str:
    def drawings(module: Module) -> list[tuple[str, str, tuple[str, ...]]]:
        return [
            (drawing.caption, as_markup(drawing.draw(f"{module.name}-{number}")), drawing.legend)
            for number, drawing in enumerate(module.drawings)
        ]

    template = page_template("moses_compat.table_report", "table_report.html.j2")
    inputs = [
        ("table", request.table), ("model", request.model_folder), ("moses.ini", request.ini),
        ("bitext", request.bitext), ("development set", request.development), ("compared with", request.small),
        ("seed", str(request.seed)),
    ]  # fmt: skip
    shown = [
        (name, printable(value if isinstance(value, str) else ", ".join(value))) for name, value in inputs if value
    ]
    return template.render(
        title=f"Report on {printable(display_name(request.table))}", summary=summary_of(modules), modules=modules,
        marks=MARKS, drawings=drawings, inputs=shown, sample=SAMPLE_TABLE,
    )  # fmt: skip
