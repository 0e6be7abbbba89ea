"""Few combinations of many options: every value of one meets every value of each other at least once."""

from itertools import combinations, product


def pairwise(*factors):
    """Rows of values, one of each factor, in which each two values of two factors stand together at least once.

    The same factors give the same rows.  Most defects need one value, or two together; three factors of 54, 6 and 3
    values have 972 combinations, and 324 rows.

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
    # Of the two largest factors every pair is a row of its own.
    by_size = sorted(range(len(sizes)), key=lambda f: (-sizes[f], f))
    rows = []

    def add(row):
        """Complete a row, factor -> place of its value: the values that make most new pairs, the least used ones."""
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
    """Rows (item, values): each item with the next `count` of the values, so that all of them are used.

    For items that are many, where it is enough that each meets some of the values.
    """
    values = list(values)
    return [(item, [values[(count * i + k) % len(values)] for k in range(count)]) for i, item in enumerate(items)]
