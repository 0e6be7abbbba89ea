"""Batches with a frozen side, and seeded random vectors."""

import numpy as np
import torch
from hypothesis import strategies as st

from phrasetool.phrase_encoder.losses import FrozenBatch, unit_vectors
from tests.phrasetool.phrase_encoder import naive_objectives as naive

SEEDS = st.integers(0, 2**32 - 1)
DIMENSIONS = st.integers(2, 40)


def frozen(positive, pool=None, seed=0):
    positive = torch.as_tensor(positive)
    pool = unit_vectors(positive) if pool is None else torch.as_tensor(pool, dtype=positive.dtype)
    return FrozenBatch(positive, None, pool, np.random.default_rng(seed))


def tensors(seed, dimension, count=7, pool=30):
    """Return predictions, true vectors, and a pool of unit vectors that contains those of the true ones."""
    rng = np.random.default_rng(seed)
    predicted, positive = np.tanh(rng.normal(size=(2, count, dimension)))
    others = rng.normal(size=(pool, dimension))
    pool = np.array([naive.unit(vector) for vector in (*others, *positive)])
    return torch.tensor(predicted), torch.tensor(positive), torch.tensor(pool)
