"""What `phrasetool augment` says when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_compat.jobs.augment import AugmentReport, AugmentRequest


def augment_summary(report: AugmentReport, request: AugmentRequest) -> Iterator[str]:
    """Lines for people.

    Args:
        report: what was done.
        request: what was wanted.
    """
    if not report.words:
        yield "all words of the text have entries: none is new"
    else:
        yield (
            f"{report.words:,} words ({report.tokens:,} in the text) had no entry; {report.translated:,} have "
            f"{report.entries:,} now"
        )
        for name, found in report.sources.items():
            right = f"; {_share(found.right, found.tokens)} of these have one that is in the reference"
            yield (
                f"  {name}: {found.words:,} words ({found.tokens:,} in the text)"
                f"{right if found.right is not None else ''}; its best is right for {100 * found.trust:.0f}% of rare "
                "known words"
            )
        if report.right is not None:
            yield (
                f"in the reference: some translation of {_share(report.right[0], report.tokens)} of the unknown words, "
                f"the best one of {_share(report.right[1], report.tokens)}"
            )
    if rare := report.rare:
        right = f"; some new one of {_share(rare.right, rare.tokens)} of these is in the reference"
        yield (
            f"{rare.words:,} words ({rare.tokens:,} in the text) were rare; {rare.translated:,} have {rare.entries:,} "
            f"more entries now{right if rare.right is not None else ''}"
        )
    if edit := request.edit:
        yield (
            f"{edit.output} names {edit.table} as {edit.feature.name}, with {edit.scores + report.columns} scores "
            f"instead of {edit.scores}; the new weights are {edit.weight:g}: tune them"
        )
    elif report.columns:
        yield (
            f"entries have {report.columns} more scores: set num-features in moses.ini, and give the weight line "
            f"{report.columns} more numbers"
        )


def _share(part: int | None, whole: int) -> str:
    return f"{100 * (part or 0) / max(1, whole):.0f}%"
