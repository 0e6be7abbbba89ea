"""What is said of a table when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from phrasetool_cli.progress import say

if TYPE_CHECKING:
    from moses_compat.tables.orphans import OrphanCounts


def say_kept(kept: int, total: int, things: str, notes: Iterable[tuple[int, str]], behind: str = "") -> None:
    """Tell the user how many things were kept, and in a line each what became of how many others, if of any."""
    say(f"kept {kept:,} of {total:,} {things} ({kept / total if total else 1.0:.1%}){behind}")
    for count, meaning in notes:
        if count:
            say(f"  {count:,} {meaning}")


def tell_parts(manifest: dict[str, Any], folder: str) -> None:
    """The summary of a table in part files."""
    parts, read, entries = len(manifest["parts"]), manifest["read"], manifest["entries"]
    kept = f"{entries:,} of {read:,}" if entries != read else f"{entries:,}"
    say(f"{folder}: {parts:,} {'part' if parts == 1 else 'parts'}, {kept} entries")


def tell_orphans(counts: OrphanCounts) -> None:
    """The summary of a reordering table."""
    notes = [
        (counts.orphans, "were left out because the phrase table lacks their pair"),
        (counts.faulty_kept, "faulty lines were passed through"),
        (counts.faulty_skipped, "faulty lines were left out"),
    ]
    say_kept(counts.kept, counts.lines, "reordering lines", notes)
    if counts.newline_added:
        say("  the last line had no line feed, so Moses did not load it; it has one now")
    if counts.pairs_without_line:
        say(
            f"warning: {counts.pairs_without_line:,} of {counts.pairs:,} pairs of the phrase table have no reordering "
            "line; Moses scores them 0, better than any pair that has one"
        )


def tell_derivations(outcomes: Counter[int]) -> None:
    """Tell the user of how many sentences forced decoding has a derivation, and why of others not."""
    from phrasetool.smt.decoder.forced import REACHED, REASONS

    say(f"{outcomes[REACHED]:,} of {outcomes.total():,} sentences decoded to their translation")
    for outcome, count in outcomes.most_common():
        if outcome != REACHED:
            say(f"  {count:,} not: {REASONS[outcome]}")
