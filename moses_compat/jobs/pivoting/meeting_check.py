"""Whether two tables meet in the middle: what makes no sense is found before anything is summed.

Measured by the probability of the first table's middle phrases that the second one has: German-English and
English-Czech learnt from the same sentences of Multi30k 0.89; Chinese-English and English-Spanish of Python's
documentation, which share no sentence, 0.24; documentation and captions of pictures 0.03; another middle language, or
both the wrong way round, 0.01 to 0.02.
"""

from __future__ import annotations

from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from phrasetool.pivot.batches import Middle
from phrasetool.pivot.links import Meeting
from phrasetool.pivot.mistaken_legs import CAPITALS, FIRST, ORDER, SECOND, mistake

# Of the probability that a first table gives to its middle phrases, the share of those that the second has.
LEAST_MASS, LOW_MASS = 0.025, 0.15


def check_meeting(names: tuple[str, str], middle: Middle, scan: TableScan) -> None:
    """Refuse tables that hardly meet, and warn of those that meet seldom.

    Args:
        names: of the tables.
        middle: them.
        scan: with `force`, what would be refused is warned of.

    Raises:
        DataError: they hardly meet.
    """
    first, second = names
    coverage = middle.links.coverage
    if coverage.mass >= LOW_MASS or not len(middle.first):
        return
    found = told(coverage, second)
    why = {
        FIRST: f"; it looks as if {first} were given the wrong way round",
        SECOND: f"; it looks as if {second} were given the wrong way round",
        ORDER: "; it looks as if both were given in the wrong order, or the wrong way round",
        CAPITALS: "; without capitals many more would be: both need one form of the middle language",
        None: "; expected tables whose middle language is tokenised and written alike",
    }[mistake(middle.first, middle.second, coverage.share)]
    if coverage.mass < LEAST_MASS:
        scan.refuse(DataError(first, f"{found}{why}", remedy="go on"))
    else:
        scan.warn(f"{first}: {found}{why}")


def told(coverage: Meeting, second: str) -> str:
    """How much was found, for people."""
    return (
        f"{100 * coverage.share:.0f}% of its {coverage.phrases:,} target phrases ({100 * coverage.share_of_words:.0f}% "
        f"of their tokens, {100 * coverage.mass:.0f}% of their probability) are sources of {second}"
    )
