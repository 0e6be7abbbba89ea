"""LSTM inference with NumPy, batched over texts of different lengths (Hochreiter & Schmidhuber 1997).

Multithreaded callers limit NumPy's matrix products to one thread (`one_blas_thread`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phrasetool.phrases import FloatArray, Int64Array, Phrases


@dataclass(frozen=True)
class LstmWeights:
    """Weights of one direction of a layer with U units and inputs of size n; gates in PyTorch's order.

    Attributes:
        inputs: float32, shape (n, 4 U).
        recurrent: float32, shape (U, 4 U).
        bias: float32, shape (4 U,).
    """

    inputs: FloatArray
    recurrent: FloatArray
    bias: FloatArray

    @classmethod
    def of(cls, arrays: Mapping[str, FloatArray], pattern: str) -> LstmWeights:
        """Return the weights of a `torch.nn.LSTM`; `{}` in the pattern stands for `weight_ih` and the like."""
        inputs, recurrent = (np.ascontiguousarray(arrays[pattern.format(f"weight_{kind}")].T) for kind in ("ih", "hh"))
        return cls(inputs, recurrent, arrays[pattern.format("bias_ih")] + arrays[pattern.format("bias_hh")])

    def products(self, vectors: FloatArray) -> FloatArray:
        """Return the contribution of N vectors to the gates, shape (N, 4 U); call it once for all distinct vectors."""
        products: FloatArray = vectors @ self.inputs + self.bias
        return products


def lstm_states(
    products: FloatArray, numbers: npt.NDArray[np.integer], recurrent: FloatArray, texts: Phrases, back: bool,
    cells: FloatArray | None = None,
) -> FloatArray:  # fmt: skip
    """Return the states of one direction of a layer: float32, shape (words, U).

    Args:
        products: see `LstmWeights.products`.
        numbers: index of each word's row in `products`, shape (words,).
        recurrent: see `LstmWeights`.
        texts: the texts; only their lengths are used, and a text may be empty.
        back: whether to read from the last word to the first.
        cells: output, float32, shape (N, U): receives the last cell of each text that is not empty.
    """
    units = len(recurrent)
    lengths = texts.lengths
    order = np.argsort(-lengths, kind="stable")
    sizes = lengths[order]
    firsts = texts.offsets[:-1][order]
    states = np.zeros((len(numbers), units), np.float32)
    state, cell = (np.zeros((len(order), units), np.float32) for _ in range(2))
    for time in range(int(sizes[0]) if len(sizes) else 0):
        active = int(np.searchsorted(-sizes, -time, "left"))
        rows: Int64Array = firsts[:active] + (sizes[:active] - 1 - time if back else time)
        gates = products[numbers[rows]] + state[:active] @ recurrent
        state, cell = lstm_step(gates, cell[:active])
        states[rows] = state
        if cells is not None:
            cells[order[:active]] = cell
    return states


def lstm_step(gates: FloatArray, cell: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the next state and cell of N texts, shape (N, U) each.

    Args:
        gates: preactivations, shape (N, 4 U): input, forget, cell, output, in PyTorch's order.
        cell: current cells, shape (N, U).
    """
    units = cell.shape[1]
    half = 0.5 * np.tanh(0.5 * gates[:, : 2 * units]) + 0.5
    last = 0.5 * np.tanh(0.5 * gates[:, 3 * units :]) + 0.5
    cell = half[:, units:] * cell + half[:, :units] * np.tanh(gates[:, 2 * units : 3 * units])
    return last * np.tanh(cell), cell


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy computes matrix products on one thread.

    More threads than those that process blocks would only wait for each other.  Without threadpoolctl, NumPy uses its
    own threads anyway; the results are bit-identical.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits
