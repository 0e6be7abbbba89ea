"""Mining in plain Python: nearest neighbours, margins, one-to-one pairs, precision and recall."""

import numpy as np

SCALE = 4000


def products(sources, targets):
    """Return exact dot products of rounded vectors; None for zero vectors."""
    whole = [np.rint(np.asarray(m, np.float32) * np.float32(SCALE)).astype(np.int64) for m in (sources, targets)]
    return [
        [int(s @ t) if np.any(sources[i]) and np.any(targets[j]) else None for j, t in enumerate(whole[1])]
        for i, s in enumerate(whole[0])
    ]


def nearest(sources, targets, k):
    """Return the rows of the k nearest targets of each source, ties by row; -1 fills missing ones."""
    k = min(k, len(targets))
    collected = []
    for row in products(sources, targets):
        ranked = sorted((-value, j) for j, value in enumerate(row) if value is not None)[:k]
        collected.append([j for _, j in ranked] + [-1] * (k - len(ranked)))
    return collected


def cosine(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(min(max(a @ b, -1), 1)) if a.any() and b.any() else 0.0


def scored(sources, targets, k, how, min_cosine=-1.0):
    """Return (score, target is a neighbour of the source, source is a neighbour of the target) by row pair."""
    forward, backward = nearest(sources, targets, k), nearest(targets, sources, k)

    def reach(i, near, own, others):
        values = [cosine(own[i], others[j]) for j in near[i] if j >= 0]
        return sum(values) / len(values) if values else 0.0

    collected = {}
    for i in range(len(sources)):
        for j in range(len(targets)):
            neighbours = j in forward[i], i in backward[j]
            a = cosine(sources[i], targets[j])
            if any(neighbours) and a >= min_cosine:
                b = (reach(i, forward, sources, targets) + reach(j, backward, targets, sources)) / 2
                score = {"ratio": a / max(b, 0.05), "distance": a - b, "absolute": a}[how]
                collected[i, j] = (score, *neighbours)
    return collected


def retrieved(found, how):
    """Return the retrieved pairs, best first, ties by row."""

    def best(way, side):
        chosen = {}
        for pair in sorted(found):
            if found[pair][way]:
                old = chosen.get(pair[side])
                if old is None or found[pair][0] > found[old][0]:
                    chosen[pair[side]] = pair
        return set(chosen.values())

    forward, backward = best(1, 0), best(2, 1)
    ranked = {
        "forward": forward,
        "backward": backward,
        "intersection": forward & backward,
        "max": forward | backward,
    }[how]
    ordered = sorted(ranked, key=lambda pair: (-found[pair][0], pair))
    if how != "max":
        return ordered
    selected = []
    for pair in ordered:
        if all(pair[0] != earlier[0] and pair[1] != earlier[1] for earlier in selected):
            selected.append(pair)
    return selected


def f1_from(scores, pairs, gold, threshold):
    selected = {pair for score, pair in zip(scores, pairs, strict=True) if score >= threshold}
    correct = len(selected & gold)
    precision, recall = correct / len(selected) if selected else 0.0, correct / len(gold)
    return 2 * precision * recall / (precision + recall) if correct else 0.0
