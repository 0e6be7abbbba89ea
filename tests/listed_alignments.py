"""Word alignments built from lists of points."""

import numpy as np

from phrasetool.smt.aligning.alignments import Alignments


def alignments_of(lists):
    """Build alignments from one list of (source, target) points per sentence pair, in any order."""
    offsets = np.cumsum([0, *map(len, lists)])
    flat = np.array([point for points in lists for point in points], np.int32).reshape(-1, 2)
    return Alignments.from_points(offsets, flat[:, 0], flat[:, 1])
