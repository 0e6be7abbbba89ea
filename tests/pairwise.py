"""Pairwise testing: few combinations that contain every pair of values of any two options at least once."""

from itertools import combinations, product


def pairwise(*factors):
    """Return rows with one value per factor that contain each pair of values of two factors at least once.

    The same factors give the same rows.  Most defects are triggered by one value or a pair of values; three factors of
    54, 6 and 3 values have 972 combinations, and 324 rows.

    Args:
        factors: two or more sequences of values, which need not be hashable.
    """
    sizes = [len(factor) for factor in factors]
    open_pairs = {
        ((f, i), (g, k))
        for f, g in combinations(range(len(sizes)), 2)
        for i, k in product(range(sizes[f]), range(sizes[g]))
    }
    uses = [[0] * size for size in sizes]
    # Each pair of values of the two largest factors needs its own row, so these factors come first.
    by_size = sorted(range(len(sizes)), key=lambda f: (-sizes[f], f))
    rows = []

    def add(row):
        """Complete a row (factor -> index of its value) with values that add most new pairs, ties by least use."""
        for f in by_size:
            if f not in row:
                gains = [
                    (sum(tuple(sorted([(f, i), other])) in open_pairs for other in row.items()), -uses[f][i], -i)
                    for i in range(sizes[f])
                ]
                row[f] = -max(gains)[2]
        for pair in combinations(sorted(row.items()), 2):
            open_pairs.discard(pair)
        for f, i in row.items():
            uses[f][i] += 1
        rows.append(tuple(factor[row[f]] for f, factor in enumerate(factors)))

    for first in sorted(open_pairs, key=lambda pair: [by_size.index(f) for f, _ in pair] + [i for _, i in pair]):
        if first in open_pairs:
            add(dict(first))
    return rows


def in_turn(items, values, count):
    """Return rows (item, values) that assign the next `count` values to each item, in rotation.

    This suits many items, if each has to be combined only with some of the values.
    """
    values = list(values)
    return [(item, [values[(count * i + k) % len(values)] for k in range(count)]) for i, item in enumerate(items)]
