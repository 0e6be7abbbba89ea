"""Filtering of a reordering table by the pairs of a phrase table, in plain Python."""

from tests import naive


def pair(line):
    """Return the tokens of both phrases of a parsed line, or None."""
    return None if line.target is None else (tuple(naive.tokens(line.source)), tuple(naive.tokens(line.target)))


def pairs(table):
    """Return the pairs of a phrase table, including those of lines with malformed scores."""
    return {pair(line) for line in naive.parse_table(table)[0]} - {None}


def in_step(table, reordering, on_error="skip"):
    """Return the reordering lines of the pairs of `table`; malformed lines are left out or copied."""
    expected = pairs(table)
    out = b""
    for line in naive.parse_table(reordering, naive.first_score_count(reordering))[0]:
        if (line.fault == "ok" and pair(line) in expected) or (line.fault != "ok" and on_error == "keep"):
            out += reordering[line.start : line.end].removesuffix(b"\n") + b"\n"
    return out


def counts(table, reordering, on_error="skip"):
    """Return the counts that a run reports."""
    lines = naive.parse_table(reordering, naive.first_score_count(reordering))[0]
    expected = pairs(table)
    good = [line for line in lines if line.fault == "ok"]
    malformed = len(lines) - len(good)
    out = in_step(table, reordering, on_error)
    written = good if on_error != "keep" else lines
    kept = sum(pair(line) in expected for line in good) + malformed * (on_error == "keep")
    last_kept = bool(lines) and out.endswith(reordering[lines[-1].start : lines[-1].end] + b"\n")
    return {
        "lines": len(lines),
        "kept": kept,
        "orphans": sum(pair(line) not in expected for line in good),
        "malformed_kept": malformed * (on_error == "keep"),
        "malformed_skipped": malformed * (on_error != "keep"),
        "newline_added": int(last_kept and not reordering.endswith(b"\n")),
        "pairs": len(expected),
        "pairs_without_line": len(expected - {pair(line) for line in written}),
    }
