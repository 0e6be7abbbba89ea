"""Tables through a middle language in obvious Python: what `phrasetool pivot` must write."""

import math
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Leg:
    """A line of a table, and of its reordering table."""

    source: str
    target: str
    scores: list
    points: list
    counts: list
    orientations: list = field(default_factory=list)

    def key(self):
        """What decides where the line stands."""
        return f"{self.source} ||| {self.target} ||| ".encode()

    def similarity(self, way):
        """Of the fifth and sixth score, from 0 to 1."""
        return (1 + max(-1, min(1, math.log(self.scores[4 + way]) + 1))) / 2


@dataclass
class Made:
    """A line through the middle."""

    ways: list
    scores: list
    counts: list
    points: list
    orientations: list


def composed(first, second):
    """Monotone, swap, other of a way: towards the phrase before, then towards the next."""
    collected = []
    for here, there in ((0, 3), (3, 0)):
        monotone, swap = second[here], second[here + 1]
        same = monotone * first[here] + swap * first[there + 1]
        turned = monotone * first[here + 1] + swap * first[there]
        collected += [same, turned, max(0, 1 - same - turned)]
    return collected


def pivoted(middles, keep=0, least=0.0, least_counts=False, columns=(), similarities=False, orientations=False):
    """(source, target) -> Made, in the order of the lines.

    Args:
        middles: for each middle language, the lines of its two tables.
    """
    ways = defaultdict(list)
    seen = defaultdict(dict)
    for number, (first, second) in enumerate(middles):
        for one in sorted(first, key=Leg.key):
            seen[one.source][number] = one.counts[1]
            for other in second:
                weight = one.scores[2] * other.scores[2]
                if one.target == other.source and min(one.scores[2], other.scores[2]) >= least and weight > 0:
                    ways[one.source, other.target].append((number, one, other))
    made = {}
    for (source, target), found in ways.items():
        weights = [one.scores[2] * other.scores[2] for _, one, other in found]
        number, one, other = found[weights.index(max(weights))]
        scores = [sum(a.scores[k] * b.scores[k] for _, a, b in found) / len(middles) for k in range(4)]
        if "ways" in columns:
            scores += [max(weights), len(found)]
        if "agreement" in columns:
            scores += [len({number for number, _, _ in found})]
        if similarities:
            for way in range(2):
                alike = [a.similarity(way) * b.similarity(way) for _, a, b in found]
                mean = sum(w * s for w, s in zip(weights, alike, strict=True)) / sum(weights)
                scores.append(math.exp(2 * mean - 2))
            for way in range(2):
                scores.append(math.exp(2 * one.similarity(way) * other.similarity(way) - 2))
        if least_counts:
            joint = sum(min(a.counts[2], b.counts[2]) for _, a, b in found)
        else:
            joint = sum(min(a.counts[2] * b.scores[2], a.scores[0] * b.counts[2]) for _, a, b in found)
        of_target = {number: b.counts[0] for number, _, b in found}
        points = sorted({(t, s) for s, m in one.points for n, t in other.points if m == n})
        oriented = []
        if orientations:
            each = [composed(a.orientations, b.orientations) for _, a, b in found]
            oriented = [sum(w * row[k] for w, row in zip(weights, each, strict=True)) / sum(weights) for k in range(6)]
        counts = [sum(of_target.values()), sum(seen[source].values()), joint]
        made[source, target] = Made(found, scores, counts, [(s, t) for t, s in points], oriented)
    order = sorted(made, key=lambda pair: f"{pair[0]} ||| {pair[1]} ||| ".encode())
    if keep:
        chosen = defaultdict(list)
        for pair in order:
            chosen[pair[0]].append(pair)
        best = {pair for pairs in chosen.values() for pair in sorted(pairs, key=lambda p: -made[p].scores[2])[:keep]}
        order = [pair for pair in order if pair in best]
    return {pair: made[pair] for pair in order}
