"""Measures of a table, built from columns given by name."""

import numpy as np

from phrasetool.pruning.measures import (
    COUNTS,
    FORCED,
    LOSSES,
    MODEL_SCORES,
    OCCURRENCES,
    PARALLEL,
    PARALLEL_SCORED,
    PROBABILITIES,
    SCORED,
    SIGNIFICANCE,
    SIMILARITIES,
    SMOOTHED,
    SYNTAX,
    SYNTAX_SCORED,
    USES,
    Measures,
)

NAMED = {
    "probabilities": PROBABILITIES,
    "counts": COUNTS,
    "occurrences": OCCURRENCES,
    "model_scores": MODEL_SCORES,
    "similarities": SIMILARITIES,
    "scored": SCORED,
    "syntax": SYNTAX,
    "syntax_scored": SYNTAX_SCORED,
    "parallel": PARALLEL,
    "parallel_scored": PARALLEL_SCORED,
    "significance": SIGNIFICANCE,
    "losses": LOSSES,
    "uses": USES,
    "forced": FORCED,
    "smoothed": SMOOTHED,
}


def measures_of(group_offsets, source_lengths, malformed, probabilities=None, counts=None, alpha=0.0, **columns):
    """Return `Measures` with all columns that are not None."""
    columns = {"probabilities": probabilities, "counts": counts, **columns}
    known = {
        NAMED[name]: np.asarray(values, NAMED[name].dtype) for name, values in columns.items() if values is not None
    }
    return Measures(np.asarray(group_offsets, np.int64), np.asarray(source_lengths, np.int64), malformed, known, alpha)
