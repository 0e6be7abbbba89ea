"""What `phrasetool annotate` says when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_compat.jobs.annotate import AnnotateCounts, AnnotateRequest


def annotate_summary(counts: AnnotateCounts, request: AnnotateRequest) -> Iterator[str]:
    """Lines for people.

    Args:
        counts: what was done.
        request: what was wanted.
    """
    columns, edit = request.columns, request.edit
    silent = f"; {counts.without_opinion:,} have only unknown words on a side" if counts.without_opinion else ""
    silent += f"; {counts.too_long:,} are longer than a model reads" if counts.too_long else ""
    faulty = f"; {counts.faulty:,} faulty lines" if counts.faulty else ""
    yield f"annotated {counts.entries:,} entries{silent}{faulty}"
    if request.forced_pairs:
        yield f"forced decoding used {counts.used:,} of them"
    if edit:
        yield (
            f"{edit.output} names {edit.table} as {edit.feature.name}, with {edit.scores + columns} scores instead of "
            f"{edit.scores}; the new weights are {edit.weight:g}"
        )
    elif counts.scores >= 0:
        yield (
            f"entries now have {counts.scores + columns} scores instead of {counts.scores}: set "
            f"num-features={counts.scores + columns} in moses.ini and give the weight line {columns} more numbers"
        )
