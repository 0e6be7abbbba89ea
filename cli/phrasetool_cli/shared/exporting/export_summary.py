"""What `phrasetool export` says when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moses_compat.jobs.bicleaner_dictionaries import DictionaryReport
    from moses_compat.jobs.candidate_lists import CandidateReport
    from moses_compat.jobs.term_lexicon import LexiconReport


def candidate_summary(report: CandidateReport) -> Iterator[str]:
    """Lines for people, about a list of candidates."""
    mean = report.candidates / max(1, report.phrases)
    yield (
        f"{report.phrases:,} phrases with {report.candidates:,} candidates ({mean:.1f} of a phrase), "
        f"{report.always:,} units are always candidates"
    )
    if report.unreadable:
        yield f"{report.unreadable:,} words were left out: they hold a tab or a character that ends lines"
    yield from report.counts.sentences("their probabilities are taken as they are, and stand for their frequencies")
    if found := report.coverage:
        yield (
            f"{_percent(found.covered, found.tokens)} of the {found.tokens:,} reference tokens are candidates of their "
            f"sentence, {_percent(found.reachable, found.tokens)} of any; in "
            f"{_percent(found.whole, found.sentences)} of the {found.sentences:,} sentences all are"
        )
        yield (
            f"candidates of a sentence: mean {found.mean:.1f}, median {found.median:.0f}, 95th percentile "
            f"{found.percentile_95:.0f}"
        )


def lexicon_summary(report: LexiconReport) -> Iterator[str]:
    """Lines for people, about a lexicon."""
    yield (
        f"{report.pairs:,} term pairs, of {report.considered:,} entries that are frequent and probable enough; "
        f"{report.written:,} written"
    )
    if report.unreadable:
        yield f"{report.unreadable:,} pairs were left out: a side holds a tab or a character that ends lines"
    yield from report.counts.sentences("the minimum count and stop words leave them aside, and no count is written")
    if found := report.rightness:
        yield (
            f"{found.pairs:,} of them have their source in the text; of {_percent(found.right, found.pairs)} the "
            f"target is in a translation, in {_percent(found.right_places, found.places)} of the {found.places:,} "
            "sentences"
        )


def dictionary_summary(report: DictionaryReport) -> Iterator[str]:
    """Lines for people, about dictionaries."""
    other = f"; {report.reverse_pairs:,} in the other direction" if report.reverse_pairs else ""
    yield f"{report.pairs:,} pairs of words{other}"
    if report.unreadable:
        yield f"{report.unreadable:,} pairs were left out: a word holds white space, at which Bicleaner splits lines"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.1f}%"
