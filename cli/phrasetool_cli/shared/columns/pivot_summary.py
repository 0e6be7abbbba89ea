"""What `phrasetool pivot` says when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_compat.jobs.pivot import PivotReport, PivotRequest


def pivot_summary(report: PivotReport, request: PivotRequest) -> Iterator[str]:
    """Lines for people.

    Args:
        report: what was done.
        request: what was wanted.
    """
    from moses_compat.jobs.pivot import describe_overlap

    for (first, second), coverage in zip(request.tables, report.middles, strict=True):
        yield f"{first}: {describe_overlap(coverage, second)}"
    yield (
        f"{report.entries:,} entries of {report.sources:,} sources, {report.ways / max(1, report.entries):.1f} ways to "
        "each on average"
    )
    if report.without_alignment:
        yield f"{report.without_alignment:,} entries have no alignment point, as their best way has none"
    if report.columns:
        yield (
            f"scores 5 to {4 + len(report.columns)}: {'; '.join(report.columns)}.  `phrasetool moses-ini` counts them; "
            "tune their weights"
        )
