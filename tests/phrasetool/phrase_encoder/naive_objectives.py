"""The slow, obvious version of every objective: one pair at a time, in double precision."""

import math

import mpmath
import numpy as np


def unit(vector):
    """Return the vector scaled to length one; zero if it is shorter than 1e-6."""
    vector = np.asarray(vector, np.float64)
    length = math.sqrt(float(vector @ vector))
    return vector / length if length >= 1e-6 else np.zeros_like(vector)


def in_batch(similarities, temperature, smoothing=0.0, row_shares=None, column_shares=None):
    """Return cross-entropies of a softmax over candidates with the logits similarity / temperature - log(share)."""
    size = len(similarities)
    losses = []
    for i in range(size):
        loss = 0.0
        for scores, shares in ((similarities[i], column_shares), (similarities[:, i], row_shares)):
            logits = [scores[j] / temperature - (math.log(shares[j]) if shares is not None else 0) for j in range(size)]
            total = sum(math.exp(logit) for logit in logits)
            expected = (1 - smoothing) * logits[i] + smoothing * sum(logits) / size
            loss += math.log(total) - expected
        losses.append(loss)
    return losses


def margin_loss(predicted, positive, negative, margin):
    """Return the loss of Eq. 1 of the syn-margin paper."""
    return max(0.0, margin + negative @ predicted - positive @ predicted)


def sampled(predicted, positive, pool, draws, margin):
    p, u = unit(predicted), unit(positive)
    return sum(margin_loss(p, u, pool[draw], margin) for draw in draws) / len(draws)


def most_informative(predicted, positive, pool):
    """Return the index of the pool vector with the largest cosine to p - u, except u itself; None if none is left."""
    direction = unit(predicted) - unit(positive)
    best = None
    for i, vector in enumerate(pool):
        if vector @ unit(positive) >= 1 - 1e-6:
            continue
        if best is None or vector @ direction > pool[best] @ direction:
            best = i
    return best


def projection(predicted, positive):
    p, u = unit(predicted), unit(positive)
    return unit(p - (p @ u) * u)


def difference(predicted, positive):
    return unit(unit(predicted) - unit(positive))


def log_normaliser(kappa, dimension):
    """Return log C_d(k) and its derivative, computed with 40 digits; k may be 0."""
    with mpmath.workdps(40):
        d, k = mpmath.mpf(dimension), mpmath.mpf(float(kappa))
        if k == 0:
            return float(mpmath.loggamma(d / 2) - mpmath.log(2) - d / 2 * mpmath.log(mpmath.pi)), 0.0
        bessel = mpmath.besseli(d / 2 - 1, k)
        value = (d / 2 - 1) * mpmath.log(k) - d / 2 * mpmath.log(2 * mpmath.pi) - mpmath.log(bessel)
        return float(value), float(-mpmath.besseli(d / 2, k) / bessel)


def von_mises_fisher(predicted, positive, concentration):
    p = np.asarray(predicted, np.float64) * concentration * math.sqrt(len(predicted))
    return -log_normaliser(math.sqrt(float(p @ p)), len(p))[0] - float(p @ unit(positive))
