"""Summaries of finished and pruned tables, and of sweeps of thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from phrasetool_cli.messages import hint, write
from phrasetool_cli.progress import say

if TYPE_CHECKING:
    from moses_compat.jobs.prune import PruneResult, Swept
    from moses_compat.jobs.remove_orphans import OrphanCounts
    from phrasetool.pruning.protection import KeepBest
    from phrasetool.pruning.statistics import CountedEntry, OccurrenceCounts
    from phrasetool_cli.progress import TerminalWatch

# Share of sentences in which forced decoding needs longer jumps than the distortion limit allows, above which a larger
# limit is recommended.  In training bitexts it is 2 % for Tatoeba Chinese-English, 5 % for Multi30k German-English,
# and 20 % for Small Tanaka Japanese-English; `benchmarks/distortion_limits.py` measures the gains.
_MANY_JUMPS = 0.1


def say_kept(kept: int, total: int, things: str, notes: Iterable[tuple[int, str]], behind: str = "") -> None:
    """Print how many things were kept, and a line for each note whose count is not 0."""
    say(f"kept {kept:,} of {total:,} {things} ({kept / total if total else 1.0:.1%}){behind}")
    for count, meaning in notes:
        if count:
            say(f"  {count:,} {meaning}")


def tell_parts(manifest: dict[str, Any], folder: str) -> None:
    """Print the summary of a table in part files."""
    parts, read, entries = len(manifest["parts"]), manifest["read"], manifest["entries"]
    kept = f"{entries:,} of {read:,}" if entries != read else f"{entries:,}"
    say(f"{folder}: {parts:,} {'part' if parts == 1 else 'parts'}, {kept} entries")


def tell_orphans(counts: OrphanCounts) -> None:
    """Print the summary of a reordering table."""
    notes = [
        (counts.orphans, "were left out because the phrase table lacks their pair"),
        (counts.malformed_kept, "malformed lines were passed through"),
        (counts.malformed_skipped, "malformed lines were left out"),
    ]
    say_kept(counts.kept, counts.lines, "reordering lines", notes)
    if counts.newline_added:
        say("  the last line had no line feed, so Moses did not load it; it has one now")
    if counts.pairs_without_line:
        write(
            f"{counts.pairs_without_line:,} of {counts.pairs:,} pairs of the phrase table have no reordering line; "
            "Moses scores them 0, better than any pair that has one",
            "warning",
        )


def tell_derivations(outcomes: Counter[int], distortion_limit: int) -> None:
    """Print how many sentences forced decoding derived, and the reasons why others failed."""
    from phrasetool.smt.decoder.forced import DISTORTION, REACHED, REASONS

    say(f"{outcomes[REACHED]:,} of {outcomes.total():,} sentences decoded to their translation")
    for outcome, count in outcomes.most_common():
        if outcome != REACHED:
            say(f"  {count:,} failed: {REASONS[outcome]}")
    if (share := outcomes[DISTORTION] / max(outcomes.total(), 1)) > _MANY_JUMPS:
        hint(
            f"in {share:.0%} of the sentences, words move farther than the distortion limit of {distortion_limit}: a "
            "model with a larger one (`moses-ini --distortion-limit`) may translate better"
        )


def tell_pruned(result: PruneResult) -> None:
    """Print the summary of a pruned table."""
    counts = result.statistics
    removed = sorted(counts.removed_by.items()) if len(result.criteria) > 1 else []
    below = counts.protected + sum(counts.removed.values())
    best = counts.protected - counts.protected_frequent
    notes = [
        *((count, f"removed by {_by(label)}") for label, count in removed),
        (
            counts.settled,
            f"kept unscored: their sources have no more than {result.best.k if result.best else 0} entries",
        ),
        (best, f"of {below:,} below the threshold were kept as one of the best of their source"),
        (
            counts.protected_frequent,
            f"of {below:,} below the threshold were kept as frequent mutual translations (--protect-frequent)",
        ),
        (counts.unscored, "kept because a side has only unknown words"),
        (counts.malformed_kept, "malformed lines were passed through"),
        (counts.malformed_skipped, "malformed lines were left out"),
    ]
    say_kept(counts.kept, counts.entries, "entries", notes, f" of {counts.sources:,} sources")
    if result.best is not None and 2 * counts.settled > counts.entries:
        left = f"leaves {counts.entries - counts.settled:,} of {counts.entries:,} entries to the threshold"
        say(f"  protection ({result.best.words}) {left}; {_less(result.best)}")
    elif result.best is not None:
        _tell_protection(best, below, result.best)
    tell_occurrences(counts.occurrences, counts.entries, result.best.frequent if result.best else None)
    if result.orphans:
        tell_orphans(result.orphans)
    say(f"signature {result.signature}")


def tell_occurrences(occurrences: OccurrenceCounts, entries: int, frequent: int | None) -> None:
    """Print the share of the occurrences that was removed, and the most frequent removed entries.

    Args:
        occurrences: counts of the table.
        entries: number of entries of the table.
        frequent: count above which mutual translations are protected; None if none are.
    """
    if not occurrences.complete:
        which = "the table has no joint counts"
        if occurrences.missing < entries:
            which = f"{occurrences.missing:,} of {entries:,} entries have no joint count"
        protection = ", and --protect-frequent cannot protect entries without one" if frequent is not None else ""
        say(f"  {which}: occurrences are not reported{protection}")
        return
    if occurrences.derived:
        say(f"  joint counts of {occurrences.derived:,} entries were derived as phi(f|e) * c(t)")
    total, removed = occurrences.millionths_as_numbers()
    share = f"{occurrences.removed_share:.1%}"
    say(f"  removed {share} of the occurrences ({_count(removed)} of {_count(total)})")
    # If all entries were seen only once, none is more frequent than others.
    if any(entry.occurrences > 1 for entry in occurrences.frequent):
        say(f"  most frequent removed entries: {_listed(occurrences.frequent)}")


def warn_of_frequent(occurrences: OccurrenceCounts, watch: TerminalWatch) -> None:
    """Warn of removed mutual translations that were seen often."""
    if occurrences.mutual:
        entries = "1 mutual translation" if occurrences.mutual == 1 else f"{occurrences.mutual:,} mutual translations"
        watch.warn(
            f"removed {entries} seen more than {occurrences.limit:,} times: {_listed(occurrences.frequent_mutual)}"
            f"{', ...' if occurrences.mutual > len(occurrences.frequent_mutual) else ''}; "
            f"--protect-frequent {occurrences.limit} keeps such entries"
        )


def _listed(entries: Sequence[CountedEntry]) -> str:
    """Return entries with their counts, in one line; control characters are shown as `?`."""
    texts = (f"{entry.source} ||| {entry.target} ({_count(entry.occurrences)})" for entry in entries)
    return "".join(letter if letter.isprintable() else "?" for letter in ", ".join(texts))


def _count(number: float) -> str:
    """Return a count, with at most six decimals."""
    return f"{number:,.0f}" if number == int(number) else f"{number:,.6f}".rstrip("0")


def _tell_protection(kept: int, below: int, best: KeepBest) -> None:
    """Print a note if protection kept more than half of the entries below the threshold."""
    if 2 * kept <= below:
        return
    say(f"  protection ({best.words}) kept {kept / below:.1%} of the entries below the threshold; {_less(best)}")


def _less(best: KeepBest) -> str:
    """Return advice on how to protect fewer entries."""
    if best.protect == "all":
        return "--protect words protects those of one-word sources only"
    return "a smaller --keep-top protects fewer"


def sweep_document(rows: Sequence[Swept]) -> dict[str, Any]:
    """Return a sweep as a document for `--json`."""
    swept = [
        {"threshold": row.threshold, "kept": row.kept, "below_threshold": row.failing, "protected": row.protected}
        for row in rows
    ]
    return {"entries": rows[0].entries, "thresholds": swept}


def tell_sweep(rows: Sequence[Swept], best: KeepBest, *, table: bool, summary: bool) -> None:
    """Print the sizes on standard output if they are requested; the summary is about the highest threshold."""
    if table:
        click.echo("threshold\tentries\tshare")
        for row in rows:
            click.echo(f"{row.threshold:g}\t{row.kept}\t{row.kept / max(row.entries, 1):.4f}")
    last = rows[-1]
    if summary and last.protected:
        say(
            f"of {last.failing:,} entries below {last.threshold:g}, {last.protected:,} are kept as one of the best of "
            f"their source{_frequent(best)}"
        )
        _tell_protection(last.protected, last.failing, best)


def _frequent(best: KeepBest) -> str:
    """Return the protection of frequent entries in words, to append to that of the best ones."""
    return "" if best.frequent is None else f", or as mutual translations seen more than {best.frequent:,} times"


def _by(label: str) -> str:
    """Return the criteria of a label from `Reasons.labels` in words."""
    from phrasetool.pruning.decision import TOGETHER

    names = label.split("+")
    if label == TOGETHER:
        return "all criteria together, by none of them alone"
    if len(names) == 1:
        return f"{label} alone"
    return f"each of {', '.join(names[:-1])} and {names[-1]}"
