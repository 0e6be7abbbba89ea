"""What a translator says of phrase pairs: log p(target | source), after Cho et al. (2014), section 3.1.

    score(e, f) = sum over the words of e and its end of log p(e_t | e_<t, f)

`normalised`: p is the distribution over all target words of `beam.log_probabilities`.
`density`: p(e_t) is the density of a von Mises-Fisher distribution around the prediction, relative to that at its
middle, with one over the temperature as its concentration: (cos(prediction, e_t) - 1) / temperature.  No other word's
vector is looked at.  It differs from the density relative to the uniform one by a number a word, which is what a
decoder's word penalty is for, and it is never above zero.

Targets of one source that begin alike are one way in a tree, so that every beginning is read once: the targets of
Moses' tables have three times as many words as their tree has nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phrasetool.phrases import DoubleArray, Int64Array, Mask, Phrases
from phrasetool.translator.network import NOTHING, NeuralTranslator

# Predictions that are compared with all target vectors at once: so many cosines stay in the cache.
_ROWS = 256
# exp of it, and of minus it, is a float32 that is neither infinite nor zero, and so are sums of thousands.
_LARGEST_EXPONENT = 60.0


@dataclass(frozen=True)
class _Depth:
    """The nodes of a tree that so many words lead to.

    Attributes:
        rows: the targets that have as many words or more, int64, shape (R,).
        node: of each, int64, shape (R,).
        parents: of each node, at the depth before, int64, shape (K,).
        words: that lead to each node, int64, shape (K,); NOTHING at the beginning.
        sources: of each node, int64, shape (K,).
        wanted: the next word of each of the rows, or the end, int64, shape (R,).
    """

    rows: Int64Array
    node: Int64Array
    parents: Int64Array
    words: Int64Array
    sources: Int64Array
    wanted: Int64Array


def _tree(targets: Phrases, sources: Int64Array, end: int) -> Iterator[_Depth]:
    """The depths of the tree of some targets.

    Args:
        targets: P phrases, sorted by source, then by their words in order.
        sources: int64, shape (P,), ascending.
        end: the id that follows the last word.
    """
    lengths = targets.lengths
    longest = int(lengths.max())
    # Targets may all be without words.
    matrix = targets.padded(max(longest, 1)).astype(np.int64)
    rows = np.arange(len(targets))
    new: Mask = np.concatenate([[True], sources[1:] != sources[:-1]])
    before: Int64Array = np.cumsum(new) - 1
    for depth in range(longest + 1):
        if depth:
            kept = lengths[rows] >= depth
            # A row that drops out takes nothing along: the next one that stays begins a node if any between did.
            groups = np.cumsum(kept) - 1
            begins = np.zeros(int(kept.sum()), np.bool_)
            begins[groups[np.flatnonzero(new & kept)]] = True
            carried = np.flatnonzero(new & ~kept)
            following = groups[carried] + 1
            begins[following[following < len(begins)]] = True
            rows, parent_rows, new = rows[kept], before[kept], begins
            words = matrix[rows, depth - 1]
            new[1:] |= (words[1:] != words[:-1]) | (parent_rows[1:] != parent_rows[:-1])
        else:
            words, parent_rows = np.full(len(rows), NOTHING, np.int64), before
        node: Int64Array = np.cumsum(new) - 1
        wanted = np.where(lengths[rows] > depth, matrix[rows, min(depth, matrix.shape[1] - 1)], end)
        yield _Depth(rows, node, parent_rows[new], words[new], sources[rows[new]], wanted)
        before = node


@torch.no_grad()
def pair_scores(
    module: NeuralTranslator,
    sources: Phrases,
    targets: Phrases,
    source_of: Int64Array,
    reading: str,
    temperature: float,
) -> DoubleArray:
    """Scores of phrase pairs, float64, shape (P,).

    The last bits of a score depend on which pairs are asked for together.

    Args:
        module: not in training.
        sources: distinct source phrases, none without words.
        targets: P phrases, sorted by source, then by their words in order (as `pair_order` does).
        source_of: the source of each target, int64, shape (P,), ascending.
        reading: one of `architecture.READINGS`.
        temperature: of the translator.

    Raises:
        LengthError: a source is too long.
        ValueError: a source has no word, or a softmax is asked for densities.
    """
    if reading == "density" and not module.architecture.continuous:
        raise ValueError("a softmax has no densities; ask for `normalised`")
    if not len(targets):
        return np.zeros(0)
    encoded = module.encode(sources)
    state = module.begin(encoded, int(targets.lengths.max()) + 1)
    total = torch.zeros(len(targets), dtype=torch.float64)
    # A product of few rows is as slow as one of twice as many: those of several depths are compared together.
    waiting: list[tuple[_Depth, Tensor]] = []
    for depth in _tree(targets, source_of, module.end):
        here = torch.from_numpy(depth.sources)
        state = state.select(here if depth.words[0] == NOTHING else torch.from_numpy(depth.parents))
        predicted, _ = module.step(encoded.select(here), state, torch.from_numpy(depth.words))
        waiting.append((depth, predicted))
        if sum(len(rows) for _, rows in waiting) >= _ROWS:
            _add(module, waiting, reading, temperature, total)
            waiting = []
    if waiting:
        _add(module, waiting, reading, temperature, total)
    scores: DoubleArray = total.numpy()
    return scores


def _add(
    module: NeuralTranslator, depths: list[tuple[_Depth, Tensor]], reading: str, temperature: float, total: Tensor
) -> None:
    """Add what some depths say of their rows to the totals, shape (P,)."""
    predicted = torch.cat([rows for _, rows in depths])
    starts = np.cumsum([0, *(len(rows) for _, rows in depths)])
    node = np.concatenate([depth.node + start for (depth, _), start in zip(depths, starts[:-1], strict=True)])
    wanted = np.concatenate([depth.wanted for depth, _ in depths])
    logs = _logs(module, predicted, torch.from_numpy(node), torch.from_numpy(wanted), reading, temperature).double()
    parts = torch.split(logs, [len(depth.rows) for depth, _ in depths])
    for (depth, _), part in zip(depths, parts, strict=True):
        total[torch.from_numpy(depth.rows)] += part


def _logs(
    module: NeuralTranslator, predicted: Tensor, node: Tensor, wanted: Tensor, reading: str, temperature: float
) -> Tensor:
    """log p of the wanted words, shape (R,), where predictions of shape (K, d) belong to nodes."""
    if module.architecture.continuous:
        predicted = functional.normalize(predicted, dim=1)
    right = (predicted[node] * module.targets[wanted]).sum(1)
    if reading == "density":
        return (right - 1) / temperature
    bias: Tensor | None = module.bias
    if bias is not None:
        right = right + bias[wanted]
    # Cosines are at most one: so large a temperature needs no maximum to be taken off before the exponential.
    bounded = module.architecture.continuous and temperature > 1 / _LARGEST_EXPONENT
    predicted = predicted / temperature
    if bias is not None:
        bias = bias / temperature
    sums = predicted.new_empty(len(predicted))
    for first in range(0, len(predicted), _ROWS):
        logits = functional.linear(predicted[first : first + _ROWS], module.targets, bias)
        sums[first : first + _ROWS] = logits.exp_().sum(1).log_() if bounded else logits.logsumexp(1)
    return right / temperature - sums[node]


def pair_order(sources: Int64Array, targets: Phrases) -> Int64Array:
    """Where each pair stands when they are sorted by source, then by the words of the target in order; shape (P,).

    Args:
        sources: numbers, of source phrases or of anything else that comes first, shape (P,).
        targets: P phrases.
    """
    matrix = targets.padded(int(targets.lengths.max(initial=0)), NOTHING)
    return np.lexsort((*matrix.T[::-1], sources))
