"""Symmetrisation, extraction and scoring as the papers define them, with sets and dictionaries, item by item."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np

NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1)]
DIAGONAL = [*NEIGHBOURS, (-1, -1), (-1, 1), (1, -1), (1, 1)]


def symmetrise(forward, reverse, method):
    """Return (source, target) points as symal does; its loop also visits points that it has just added."""
    forward, reverse = set(forward), set(reverse)
    union = forward | reverse
    if method == "union":
        return union
    chosen = forward & reverse
    if method == "intersection":
        return chosen

    def uncovered(point):
        return [all(point[side] != other[side] for other in chosen) for side in (0, 1)]

    steps = NEIGHBOURS if method == "grow" else DIAGONAL
    by_target = sorted(union, key=lambda point: point[::-1])
    while True:
        before = len(chosen)
        for point in by_target:
            if point in chosen:
                for target_step, source_step in steps:
                    new = point[0] + source_step, point[1] + target_step
                    if new in union - chosen and any(uncovered(new)):
                        chosen.add(new)
        if len(chosen) == before:
            break
    if "final" in method:
        quantifier = all if method.endswith("and") else any
        for remaining in (forward - reverse, reverse - forward):
            for point in sorted(remaining, key=lambda point: point[::-1]):
                if point not in chosen and quantifier(uncovered(point)):
                    chosen.add(point)
    return chosen


def spans(source_length, target_length, points, max_length):
    """Return all consistent (first source, last source, first target, last target) with at least one point."""
    collected = []
    for a, b, c, d in product(range(source_length), range(source_length), range(target_length), range(target_length)):
        if a <= b < a + max_length and c <= d < c + max_length:
            inside = [(a <= s <= b, c <= t <= d) for s, t in points]
            if any(s and t for s, t in inside) and all(s == t for s, t in inside):
                collected.append((a, b, c, d))
    return collected


def orientation(points, lengths, span):
    """Return orientations to the previous and the next phrase, each 0 monotone, 1 swap or 2 other."""
    corners = set(points) | {(-1, -1), lengths}
    a, b, c, d = span

    def judge(follows, precedes):
        return 2 if follows == precedes else 0 if follows else 1

    return (
        judge((a - 1, c - 1) in corners, (b + 1, c - 1) in corners),
        judge((b + 1, d + 1) in corners, (a - 1, d + 1) in corners),
    )


def lexical(sources, targets, alignments):
    """Return the probabilities w(t|s) and w(s|t) by (s, t), rounded by %.7f; None stands for NULL."""
    counts = Counter()
    for source, target, points in zip(sources, targets, alignments, strict=True):
        for s, t in points:
            counts[source[s], target[t]] += 1
        for s in set(range(len(source))) - {s for s, _ in points}:
            counts[source[s], None] += 1
        for t in set(range(len(target))) - {t for _, t in points}:
            counts[None, target[t]] += 1
    of_source, of_target = Counter(), Counter()
    for (s, t), count in counts.items():
        of_source[s] += count
        of_target[t] += count
    forward = {pair: float(f"{count / of_source[pair[0]]:.7f}") for pair, count in counts.items()}
    backward = {pair: float(f"{count / of_target[pair[1]]:.7f}") for pair, count in counts.items()}
    return forward, backward


def best_alignment(alignments, size, side):
    """Return the linked positions of each word of one side (1 target, 0 source).

    The alignment is the most frequent one, or the largest of several.
    """

    def as_vector(points):
        return [sorted(point[1 - side] for point in points if point[side] == i) for i in range(size)]

    return max((count, as_vector(points), points) for points, count in alignments.items())[1]


def weight(words, given, vector, probabilities, inverse):
    result = 1.0
    for word, partners in zip(words, vector, strict=True):
        linked = [given[k] for k in partners] or [None]
        values = [probabilities[(word, partner) if inverse else (partner, word)] for partner in linked]
        result *= sum(values) / len(values)
    return np.float32(result)


def discounts(method, joint):
    """Return Good-Turing factors by count, or Kneser-Ney discounts D by count."""
    number = Counter(joint.values())
    if method == "good-turing":
        factors = {0: 0.01}
        for c in range(1, 9):
            factors[c] = max(min((c + 1) / c * (number[c + 1] + 0.1) / (number[c] + 0.1), 1), factors[c - 1])
        return factors
    share = number[1] / max(number[1] + 2 * number[2], 1)
    caps = {1: 0.9, 2: 1.9, 3: 2.9}
    return {c: min(c - (c + 1) * share * number[c + 1] / number[c], caps[c]) if number[c] else caps[c] for c in caps}


def smoothed(method, joint, pair, total, distinct, partners):
    count = joint[pair]
    if method == "none":
        return count
    adjustments = discounts(method, joint)
    if method == "good-turing":
        return count * (adjustments[count] if count < 9 else 1)
    discount = adjustments[min(count, 3)]
    if discount > count:
        discount = count - 0.01
    return count - discount + total * (discount * distinct / total) * (partners / len(joint))


def extract(sources, targets, alignments, max_length, method="none"):
    """Return (scores, alignment by target word, (c(t), c(s), c(s,t)), orientation counts) by pair of word tuples."""
    forward, backward = lexical(sources, targets, alignments)
    alignment_counts, orientation_counts = defaultdict(Counter), defaultdict(lambda: [0] * 6)
    for source, target, points in zip(sources, targets, alignments, strict=True):
        for span in spans(len(source), len(target), points, max_length):
            a, b, c, d = span
            pair = tuple(source[a : b + 1]), tuple(target[c : d + 1])
            alignment_counts[pair][tuple((s - a, t - c) for s, t in points if a <= s <= b and c <= t <= d)] += 1
            previous, following = orientation(points, (len(source), len(target)), span)
            orientation_counts[pair][previous] += 1
            orientation_counts[pair][3 + following] += 1
    joint = {pair: sum(alignment.values()) for pair, alignment in alignment_counts.items()}
    totals, distinct = [Counter(), Counter()], [Counter(), Counter()]
    for pair, count in joint.items():
        for side in (0, 1):
            totals[side][pair[side]] += count
            distinct[side][pair[side]] += 1
    entries = {}
    for pair in joint:
        source, target = pair
        side_counts = [(totals[side][pair[side]], distinct[side][pair[side]]) for side in (0, 1)]
        direct = best_alignment(alignment_counts[pair], len(target), 1)
        inverse = best_alignment(alignment_counts[pair], len(source), 0)
        scores = (
            smoothed(method, joint, pair, *side_counts[1], side_counts[0][1]) / side_counts[1][0],
            weight(source, target, inverse, backward, inverse=True),
            smoothed(method, joint, pair, *side_counts[0], side_counts[1][1]) / side_counts[0][0],
            weight(target, source, direct, forward, inverse=False),
        )
        entries[pair] = scores, direct, (side_counts[1][0], side_counts[0][0], joint[pair]), orientation_counts[pair]
    return entries


def order(pair):
    """Return the sort key of a table line under LC_ALL=C."""
    return b" ".join(pair[0]) + b" ||| " + b" ".join(pair[1]) + b" ||| "
