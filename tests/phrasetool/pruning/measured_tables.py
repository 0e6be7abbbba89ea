"""A table with all measures, random tables, and a naive version of protection."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from phrasetool.pruning.measures import PART, MeasuredTable, Measures
from tests.measures import measures_of

# Two sources of one and two words, with three and two entries, the last one malformed.
MEASURES = measures_of(
    group_offsets=np.array([0, 3, 5]),
    source_lengths=np.array([1, 2]),
    malformed=np.array([False, False, False, False, True]),
    probabilities=np.array([0.5, 0.25, 0.25, 1.0, 0.0], np.float32),
    counts=np.array([2, 1, 1, 4, 0], np.float32),
    model_scores=np.array([-1, -3, -2, -1, 0], np.float32),
    similarities=np.array([[0.5, 0.7], [-0.4, 0.2], [0.9, 0.9], [0.1, 0.3], [0, 0]], np.float32),
    scored=np.array([True, True, False, True, False]),
    syntax=np.array([[0.2, 0.2], [0.4, 0.4], [0.9, 0.9], [0.01, 0.01], [0, 0]], np.float32),
    syntax_scored=np.array([True, True, True, True, False]),
    parallel=np.array([[0.6, 0.6], [0.3, 0.3], [0, 0], [0.8, 0.8], [0, 0]], np.float32),
    parallel_scored=np.array([True, True, False, True, False]),
    significance=np.array([30, 5, 0, 12, 0], np.float32),
    losses=np.array([0.5, np.inf, -2.0, 7.0, 0.0], np.float32),
    uses=np.array([5, 0, 1, 0, 0], np.float32),
)
MALFORMED = np.inf
SCORES = {
    "semantic": [0.7, 0.2, np.inf, 0.3, MALFORMED],
    "parallel": [0.6, 0.3, np.inf, 0.8, MALFORMED],
    "syntax": [0.2, 0.4, 0.9, 0.01, MALFORMED],
    "significance": [30, 5, 0, 12, MALFORMED],
    "composition": [1, 30, -2, 28, MALFORMED],
    "usage": [5, 0, 1, 0, MALFORMED],
    "probability": [0.5, 0.25, 0.25, 1, MALFORMED],
    "count": [2, 1, 1, 4, MALFORMED],
    "top": [0, -2, -1, 0, MALFORMED],
}
FACTORS = {
    "semantic": [0.6, 0.02, 1, 0.2],
    "parallel": [0.6, 0.3, 1, 0.8],
    "syntax": [0.2, 0.4, 0.9, 0.02],
    "significance": [2, 0.5, 0.02, 1.2],
    "composition": [1, 1, 0.3, 4],
    # Six uses of eight extracted pairs: 0.75 uses per pair.
    "usage": [5.75 / 3, 0.75 / 2, 1.75 / 2, 0.75 / 5],
    "probability": [0.5, 0.25, 0.25, 1],
    "count": [2, 1, 1, 4],
    "top": [1, 1 / 3, 1 / 2, 1],
}


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 5), max_size=6))
    count = sum(sizes)
    scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0, np.inf]), min_size=count, max_size=count))
    malformed = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    lengths = draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes)))
    scores = np.where(malformed, np.inf, scores).astype(np.float32)
    measures = measures_of(np.append(0, np.cumsum(sizes)), lengths, np.array(malformed, bool), counts=scores)
    return measures, scores


def naive_protection(measures, scores, k, protect):
    """Return the k best entries of every protected source, and malformed lines."""
    protected = set(np.flatnonzero(measures.malformed).tolist())
    for group, length in enumerate(measures.source_lengths):
        if protect == "none" or (protect == "words" and length != 1):
            continue
        first, last = measures.group_offsets[group : group + 2]
        good = [i for i in range(first, last) if not measures.malformed[i]]
        if last - first <= k:
            protected.update(good)
        protected.update(sorted(good, key=lambda i: (-scores[i], i))[:k])
    return protected


def cut_into(count, cuts):
    """Return slices that cut `count` entries at `cuts`."""
    borders = sorted({0, count, *cuts})
    return [slice(first, last) for first, last in pairwise(borders)]


def on_disk(measures, part=PART, cuts=()):
    """Return the same table on disk, appended in blocks that end at `cuts`, even in the middle of a source."""
    table = MeasuredTable(measures.columns, part=part)
    table.alpha = measures.alpha
    heads = measures.group_offsets[:-1]
    for rows in cut_into(len(measures), cuts):
        groups = np.flatnonzero((heads < rows.stop) & (measures.group_offsets[1:] > rows.start))
        offsets = np.append(np.maximum(heads[groups], rows.start), rows.stop) - rows.start
        columns = {measure: values[rows] for measure, values in measures.columns.items()}
        block = Measures(offsets, measures.source_lengths[groups], measures.malformed[rows], columns)
        table.append(block, bool(heads[groups[0]] < rows.start))
    return table
