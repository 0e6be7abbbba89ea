"""Which neighbours in a phrase become one, step by step: a batch of phrases at once, in torch operations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Parents, reconstructions and errors of pairs of nodes.
_Computed = tuple[Tensor, Tensor, Tensor]


class GreedySearch:
    """The merges of B phrases of up to m words, at each step that of the smallest error (section 3.3.2 of the paper).

    Nodes live in one buffer: leaf j of phrase b is node j * B + b, its merge at step s is node (m + s) * B + b.

    Args:
        leaves: vectors of words, shape (m, B, n), longest phrases first.
        weights: W1 (n, 2n), b1 (n,), W2 (2n, n) and b2 (2n,).
        active: how many phrases have more than 0, 1, .. m - 1 words.

    Attributes:
        nodes: shape ((2 m - 1) B, n).
        children: the two nodes that each step made one, int64, shape (2, m - 1, B).
        reconstructions: of them, shape (m - 1, B, 2 n).
        errors: of all steps of a phrase together, shape (B,).
    """

    def __init__(self, leaves: Tensor, weights: tuple[Tensor, Tensor, Tensor, Tensor], active: list[int]) -> None:
        m, batch, n = leaves.shape
        w1, b1, w2, b2 = weights
        self._words, self._batch, self._steps, self._active = m, batch, m - 1, [*active, 0]
        self.nodes = leaves.new_zeros((m + self._steps) * batch, n)
        self.nodes[: m * batch] = leaves.reshape(m * batch, n)
        self.children = torch.zeros((2, self._steps, batch), dtype=torch.int64, device=leaves.device)
        self.reconstructions = leaves.new_zeros(self._steps, batch, 2 * n)
        self.errors = leaves.new_zeros(batch)
        # [W1_left c ; W1_right c] of every node, so that a parent is a sum of two gathered rows.
        self._split = torch.cat([w1[:, :n], w1[:, n:]])
        self._products = leaves.new_zeros((m + self._steps) * batch, 2 * n)
        torch.mm(self.nodes[: m * batch], self._split.T, out=self._products[: m * batch])
        self._candidates = _Candidates(self.nodes, self._products, b1, w2, b2)
        self._rows = torch.arange(batch, device=leaves.device)
        self._items = torch.arange(m, device=leaves.device)[:, None] * batch + self._rows
        self._all_neighbours()

    def _all_neighbours(self) -> None:
        """What each two neighbours would become: candidate k of a phrase is the pair of its items k and k + 1."""
        counts, device = self._active[1 : self._words], self._items.device
        left = torch.cat([self._items[k, :a] for k, a in enumerate(counts)])
        right = torch.cat([self._items[k + 1, :a] for k, a in enumerate(counts)])
        computed = self._candidates.compute(left, right)
        self._scores = self.nodes.new_full((self._steps, self._batch), torch.inf)
        self._places = torch.zeros((self._steps, self._batch), dtype=torch.int64, device=device)
        offset = 0
        for k, a in enumerate(counts):
            self._scores[k, :a] = computed[2][offset : offset + a]
            self._places[k, :a] = torch.arange(offset, offset + a, device=device)
            offset += a
        self._stores, self._bases = [computed], [0]

    def run(self) -> None:
        """All steps."""
        for step in range(self._steps):
            if not (count := self._active[step + 1]):
                break
            best = self._merge(step, count)
            if still := self._active[step + 2]:
                self._close_gap(step, best[:still])

    def _merge(self, step: int, count: int) -> Tensor:
        """Make the best neighbours of the first phrases one; which candidates they were."""
        best = self._scores[: self._steps - step, :count].argmin(0)
        rows = self._rows[:count]
        self.children[0, step, :count] = self._items[best, rows]
        self.children[1, step, :count] = self._items[best + 1, rows]
        parents, rebuilt, errors = _gather(self._stores, self._bases, self._places[best, rows])
        first = (self._words + step) * self._batch
        self.nodes[first : first + count] = parents
        self.reconstructions[step, :count] = rebuilt
        self.errors[:count] += errors
        return best

    def _close_gap(self, step: int, best: Tensor) -> None:
        """Item `best` of phrases becomes the parent, later items and candidates move down by one."""
        still, width, device = len(best), self._steps - step, best.device
        rows, first = self._rows[:still], (self._words + step) * self._batch
        made = slice(first, first + still)
        torch.mm(self.nodes[made], self._split.T, out=self._products[made])
        where = torch.arange(width, device=device)[:, None]
        items = self._items[: width + 1, :still].gather(0, where + (where > best).long())
        items[best, rows] = first + rows
        self._items = items
        moved = where[: width - 1] + (where[: width - 1] >= best).long()
        self._scores = self._scores[:width, :still].gather(0, moved)
        self._places = self._places[:width, :still].gather(0, moved)
        # The pairs around the parent are new: (best - 1, best) and (best, best + 1).
        before = (best > 0).nonzero(as_tuple=True)[0]
        after = (best < _pairs_left(self._active, step + 2, still, device)).nonzero(as_tuple=True)[0]
        column = torch.cat([before, after])
        row = torch.cat([best[before] - 1, best[after]])
        fresh = self._candidates.compute(items[row, column], items[row + 1, column])
        base = self._bases[-1] + len(self._stores[-1][2])
        self._scores[row, column] = fresh[2]
        self._places[row, column] = torch.arange(base, base + len(row), device=device)
        self._stores.append(fresh)
        self._bases.append(base)

    def roots(self) -> Tensor:
        """The last merge of each phrase, or its one word, shape (B, n)."""
        roots = self.nodes[: self._batch].clone()
        for step in range(self._steps):
            # Phrases of exactly step + 2 words end with this merge.
            low, high = self._active[step + 2], self._active[step + 1]
            first = (self._words + step) * self._batch
            roots[low:high] = self.nodes[first + low : first + high]
        return roots


@dataclass(frozen=True)
class _Candidates:
    """Computes what a pair of nodes would become."""

    nodes: Tensor
    products: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor

    def compute(self, left: Tensor, right: Tensor) -> _Computed:
        """Parents (K, n), reconstructions (K, 2n) and errors (K,) of K pairs of nodes (Eq. 2-4)."""
        n = self.nodes.shape[1]
        parents = self.products[:, :n].index_select(0, left)
        parents += self.products[:, n:].index_select(0, right)
        parents.add_(self.b1).tanh_()
        rebuilt = torch.addmm(self.b2, parents, self.w2.T).tanh_()
        errors = (self.nodes.index_select(0, left) - rebuilt[:, :n]).square_().sum(1)
        errors += (self.nodes.index_select(0, right) - rebuilt[:, n:]).square_().sum(1)
        return parents, rebuilt, errors.mul_(0.5)


def _gather(stores: list[_Computed], bases: list[int], place: Tensor) -> _Computed:
    """Rows `place` of the stores laid end to end."""
    if len(stores) == 1:
        return tuple(part.index_select(0, place) for part in stores[0])  # type: ignore[return-value]
    outs = [part.new_empty((len(place), *part.shape[1:])) for part in stores[0]]
    for store, base in zip(stores, bases, strict=True):
        here = ((place >= base) & (place < base + len(store[2]))).nonzero(as_tuple=True)[0]
        for out, part in zip(outs, store, strict=True):
            out[here] = part.index_select(0, place[here] - base)
    return tuple(outs)  # type: ignore[return-value]


def _pairs_left(active: list[int], merges: int, count: int, device: torch.device) -> Tensor:
    """How many adjacent pairs the first `count` phrases have when `merges` - 1 merges are done."""
    left = torch.zeros(count, dtype=torch.int64, device=device)
    for a in active[merges:]:
        left[:a] += 1
    return left
