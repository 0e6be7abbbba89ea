"""A reordering table in step with a phrase table, the slow obvious way."""

from tests import naive


def pair(line):
    """The tokens of a parsed line's two phrases, or nothing."""
    return None if line.target is None else (tuple(naive.tokens(line.source)), tuple(naive.tokens(line.target)))


def pairs(table):
    """The pairs of a phrase table, whatever else its lines hold."""
    return {pair(line) for line in naive.parse_table(table)[0]} - {None}


def in_step(table, reordering, on_error="skip"):
    """The reordering table of the pairs of `table`, with malformed lines left out or passed through."""
    expected = pairs(table)
    out = b""
    for line in naive.parse_table(reordering, naive.first_score_count(reordering))[0]:
        if (line.fault == "ok" and pair(line) in expected) or (line.fault != "ok" and on_error == "keep"):
            out += reordering[line.start : line.end].removesuffix(b"\n") + b"\n"
    return out


def counts(table, reordering, on_error="skip"):
    """What a run reports."""
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
