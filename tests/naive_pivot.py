"""Pivot tables in plain Python: the expected output of `phrasetool pivot`."""

import math
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class TableLine:
    """A line of a source-pivot or pivot-target table and of its reordering table."""

    source: str
    target: str
    scores: list
    points: list
    counts: list
    orientations: list = field(default_factory=list)

    def key(self):
        """Return the sort key of the line."""
        return f"{self.source} ||| {self.target} ||| ".encode()

    def similarity(self, way):
        """Return the similarity from the fifth or sixth score (`way` 0 or 1), scaled to [0, 1]."""
        return (1 + max(-1, min(1, math.log(self.scores[4 + way]) + 1))) / 2


@dataclass
class Made:
    """A line of the pivot table; `ways` are its paths through the pivot language."""

    ways: list
    scores: list
    counts: list
    points: list
    orientations: list


def composed(first, second):
    """Return monotone, swap, other of a path, relative to the previous phrase, then to the next."""
    collected = []
    for side, opposite in ((0, 3), (3, 0)):
        monotone, swap = second[side], second[side + 1]
        same = monotone * first[side] + swap * first[opposite + 1]
        turned = monotone * first[side + 1] + swap * first[opposite]
        collected += [same, turned, max(0, 1 - same - turned)]
    return collected


def smaller(a, b):
    """Return the smaller number; NaN if either is NaN."""
    return math.nan if math.isnan(a + b) else min(a, b)


def first_known(counts):
    """Return the first count that is not NaN; NaN if there is none."""
    return next((count for count in counts if not math.isnan(count)), math.nan)


def pivoted(pivots, keep=0, least=0.0, least_counts=False, columns=(), similarities=False, orientations=False):
    """Return `Made` by (source, target), in the order of the lines.

    Args:
        pivots: for each pivot language, the lines of its two tables.
    """
    paths_of = defaultdict(list)
    source_counts = defaultdict(dict)
    for number, (first, second) in enumerate(pivots):
        for near in sorted(first, key=TableLine.key):
            source_counts[near.source].setdefault(number, []).append(near.counts[1])
            for far in second:
                weight = near.scores[2] * far.scores[2]
                if near.target == far.source and min(near.scores[2], far.scores[2]) >= least and weight > 0:
                    paths_of[near.source, far.target].append((number, near, far))
    lines = {}
    for (source, target), paths in paths_of.items():
        weights = [near.scores[2] * far.scores[2] for _, near, far in paths]
        number, near, far = paths[weights.index(max(weights))]
        scores = [sum(a.scores[k] * b.scores[k] for _, a, b in paths) / len(pivots) for k in range(4)]
        if "paths" in columns:
            scores += [max(weights), len(paths)]
        if "agreement" in columns:
            scores += [len({number for number, _, _ in paths})]
        if similarities:
            for way in range(2):
                products = [a.similarity(way) * b.similarity(way) for _, a, b in paths]
                mean = sum(w * s for w, s in zip(weights, products, strict=True)) / sum(weights)
                scores.append(math.exp(2 * mean - 2))
            for way in range(2):
                scores.append(math.exp(2 * near.similarity(way) * far.similarity(way) - 2))
        if least_counts:
            joint = sum(smaller(a.counts[2], b.counts[2]) for _, a, b in paths)
        else:
            joint = sum(smaller(a.counts[2] * b.scores[2], a.scores[0] * b.counts[2]) for _, a, b in paths)
        of_target = {number: b.counts[0] for number, _, b in paths}
        of_source = map(first_known, source_counts[source].values())
        points = sorted({(t, s) for s, m in near.points for n, t in far.points if m == n})
        oriented = []
        if orientations:
            rows = [composed(a.orientations, b.orientations) for _, a, b in paths]
            oriented = [sum(w * row[k] for w, row in zip(weights, rows, strict=True)) / sum(weights) for k in range(6)]
        counts = [sum(of_target.values()), sum(of_source), joint]
        lines[source, target] = Made(paths, scores, counts, [(s, t) for t, s in points], oriented)
    order = sorted(lines, key=lambda pair: f"{pair[0]} ||| {pair[1]} ||| ".encode())
    if keep:
        chosen = defaultdict(list)
        for pair in order:
            chosen[pair[0]].append(pair)
        best = {pair for pairs in chosen.values() for pair in sorted(pairs, key=lambda p: -lines[p].scores[2])[:keep]}
        order = [pair for pair in order if pair in best]
    return {pair: lines[pair] for pair in order}
