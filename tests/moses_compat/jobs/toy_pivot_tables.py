"""Small random tables to and from pivot languages, which depend on a seed."""

import math
import random

from tests.naive_pivot import TableLine

PIVOT = ["the", "house", "the house", "is", "green", "| bar", "a é", "a ~", "a !"]


def phrases(rng, prefix):
    """Return phrases whose order differs from that of their words."""
    words = [f"{mark}{prefix}" for mark in ("", "1", "!", "~", "é")]
    return sorted({" ".join(rng.choice(words) for _ in range(rng.randint(1, 3))) for _ in range(9)})


def table_lines(rng, sources, targets, share=0.5):
    """Return the lines of a table with a random share of all pairs."""
    lines = []
    for source in sources:
        for target in targets:
            if rng.random() < share:
                scores = [float(f"{rng.random():.6g}") for _ in range(4)]
                # Equal probabilities are common in real tables.
                scores[2] = rng.choice([0.5, 0.25, scores[2]])
                scores += [float(f"{math.exp(rng.uniform(-2, 0)):.6g}") for _ in range(2)]
                sizes = len(source.split()), len(target.split())
                points = sorted({tuple(rng.randrange(size) for size in sizes) for _ in range(rng.randint(0, 3))})
                counts = [rng.randint(1, 9) for _ in range(3)]
                parts = [[rng.uniform(0.1, 1) for _ in range(3)] for _ in range(2)]
                orientations = [float(f"{value / sum(part):.6g}") for part in parts for value in part]
                lines.append(TableLine(source, target, scores, points, counts, orientations))
    return with_margins(lines)


def with_margins(lines):
    """Make c(t) and c(s) equal in all lines of a phrase, and at least the sum of their joint counts."""
    of_target, of_source = {}, {}
    for line in lines:
        target, source, joint = line.counts
        of_target[line.target] = of_target.get(line.target, target) + joint
        of_source[line.source] = of_source.get(line.source, source) + joint
    for line in lines:
        line.counts[:2] = of_target[line.target], of_source[line.source]
    return lines


def triangle(seed, pivots=1):
    """Return the lines of the tables to and from each pivot language, which share most source and target phrases."""
    rng = random.Random(seed)
    sources, targets = phrases(rng, "a"), phrases(rng, "c")
    return [
        (
            table_lines(rng, rng.sample(sources, max(1, len(sources) - k)), PIVOT),
            table_lines(rng, rng.sample(PIVOT, 7), rng.sample(targets, max(1, len(targets) - k))),
        )
        for k in range(pivots)
    ]


def table_text(lines, scores=4):
    """Return a phrase table; unknown counts (NaN) are left out."""
    rows = [
        f"{line.source} ||| {line.target} ||| {' '.join(map(repr, line.scores[:scores]))} ||| "
        f"{' '.join(f'{s}-{t}' for s, t in line.points)} ||| "
        f"{' '.join(str(count) for count in line.counts if not math.isnan(count))} ||| |||\n"
        for line in lines
    ]
    return "".join(sorted(rows, key=str.encode)).encode()


def reordering_text(lines):
    """Return the reordering table of the same pairs."""
    rows = [f"{line.source} ||| {line.target} ||| {' '.join(map(repr, line.orientations))}\n" for line in lines]
    return "".join(sorted(rows, key=str.encode)).encode()
