"""Small tables to and from middle languages, drawn by a seed."""

import math
import random

from tests.naive_pivot import Leg

MIDDLE = ["the", "house", "the house", "is", "green", "| bar", "a é", "a ~", "a !"]


def phrases(rng, prefix):
    """Phrases that sort unlike their words do."""
    words = [f"{mark}{prefix}" for mark in ("", "1", "!", "~", "é")]
    return sorted({" ".join(rng.choice(words) for _ in range(rng.randint(1, 3))) for _ in range(9)})


def leg(rng, sources, targets, share=0.5):
    """Lines of a table, some of whose pairs are there."""
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
                lines.append(Leg(source, target, scores, points, counts, orientations))
    return with_margins(lines)


def with_margins(lines):
    """c(t) and c(s) are the same in all lines of a phrase, and not less than the pairs of all of them."""
    of_target, of_source = {}, {}
    for line in lines:
        target, source, joint = line.counts
        of_target[line.target] = of_target.get(line.target, target) + joint
        of_source[line.source] = of_source.get(line.source, source) + joint
    for line in lines:
        line.counts[:2] = of_target[line.target], of_source[line.source]
    return lines


def triangle(seed, middles=1):
    """For each middle language, the lines of the tables to it and from it; ends are the same, as far as they go."""
    rng = random.Random(seed)
    sources, targets = phrases(rng, "a"), phrases(rng, "c")
    return [
        (
            leg(rng, rng.sample(sources, max(1, len(sources) - k)), MIDDLE),
            leg(rng, rng.sample(MIDDLE, 7), rng.sample(targets, max(1, len(targets) - k))),
        )
        for k in range(middles)
    ]


def table_text(lines, scores=4):
    """A phrase table."""
    rows = [
        f"{line.source} ||| {line.target} ||| {' '.join(map(repr, line.scores[:scores]))} ||| "
        f"{' '.join(f'{s}-{t}' for s, t in line.points)} ||| {' '.join(map(str, line.counts))} ||| |||\n"
        for line in lines
    ]
    return "".join(sorted(rows, key=str.encode)).encode()


def reordering_text(lines):
    """The reordering table beside it."""
    rows = [f"{line.source} ||| {line.target} ||| {' '.join(map(repr, line.orientations))}\n" for line in lines]
    return "".join(sorted(rows, key=str.encode)).encode()
