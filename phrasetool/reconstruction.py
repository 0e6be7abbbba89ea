"""Texts -> vectors -> texts, with a trained text autoencoder.

Texts are worked on some at a time, those of like lengths together.  What comes out for a text depends on the others up
to rounding: a matrix product may add up in another order where more rows take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from phrasetool.encoders.autoencoders.autoencoder import Autoencoder, most_words
from phrasetool.models.autoencoder import AutoencoderModel
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.train.data import in_vocabulary
from phrasetool.vocabulary import UNKNOWN, unescape

# Words at a time, which bounds the memory.
_WORDS_AT_ONCE = 8192


def autoencoder_module(model: AutoencoderModel, device: torch.device | None = None) -> Autoencoder:
    """The model as a module, without dropout."""
    module = Autoencoder(model.architecture, model.arrays)
    return module.to(device or torch.device("cpu")).eval()


def encode_texts(
    model: AutoencoderModel,
    texts: Phrases,
    device: torch.device | None = None,
    tick: Callable[[int], None] = lambda texts: None,
) -> FloatArray:
    """Vectors of texts, float32, shape (N, n).

    Args:
        model: encodes them.
        texts: in ids of the model's vocabulary.
        device: where; CPU by default.
        tick: called with the number of texts just done.

    Raises:
        ValueError: a text has more than `phrasetool.phrase_encoder.parameters.LONGEST` words.
    """
    module = autoencoder_module(model, device)
    vectors = np.zeros((len(texts), model.dimension), np.float32)
    with torch.no_grad():
        for index in _parts(texts.lengths):
            vectors[index] = module.encode(texts.select(index)).cpu().numpy()
            tick(len(index))
    return vectors


def reconstruct_texts(
    model: AutoencoderModel,
    texts: Phrases,
    device: torch.device | None = None,
    tick: Callable[[int], None] = lambda texts: None,
) -> Phrases:
    """What the model makes of texts from their vectors alone, greedily, in at most 1.5 times their words.

    Args:
        model: encodes and decodes them.
        texts, device, tick: see `encode_texts`.

    Raises:
        ValueError: see `encode_texts`.
    """
    module = autoencoder_module(model, device)
    parts, order = [Phrases.from_lists([])], [np.zeros(0, np.int64)]
    with torch.no_grad():
        for index in _parts(texts.lengths):
            some = texts.select(index)
            parts.append(module.reconstruct(module.encode(some), most_words(some.lengths)))
            order.append(index)
            tick(len(index))
    return Phrases.concatenate(parts).select(np.argsort(np.concatenate(order)))


@dataclass(frozen=True)
class ReconstructedLines:
    """Texts as they came back.

    Attributes:
        lines: words with spaces between; a word as the text writes it where it first does, with Moses' escapes or not.
        known: how many words of the texts the model knows.
    """

    lines: list[bytes]
    known: int


def reconstruct_lines(
    model: AutoencoderModel,
    texts: Phrases,
    words: Sequence[bytes],
    device: torch.device | None = None,
    tick: Callable[[int], None] = lambda texts: None,
) -> ReconstructedLines:
    """Reconstruct texts that were read as they are written.

    Args:
        model, device, tick: see `reconstruct_texts`.
        texts: in ids of `words`.
        words: distinct, perhaps with Moses' escapes.

    Raises:
        ValueError: see `reconstruct_texts`.
    """
    plain = [unescape(word) for word in words]
    read = in_vocabulary(texts, plain, model.vocabulary)
    found = reconstruct_texts(model, read, device, tick)
    forms = dict(zip(reversed(plain), reversed(words), strict=True))
    written = [forms.get(word, word) for word in model.vocabulary.words]
    lines = [b" ".join(written[i] for i in one) for one in found]
    return ReconstructedLines(lines, int(np.count_nonzero(read.words != UNKNOWN)))


def _parts(lengths: Int64Array) -> Iterator[Int64Array]:
    """Every text once, like lengths together, some `_WORDS_AT_ONCE` words at a time."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order] + 1)
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + _WORDS_AT_ONCE, "right")), first + 1)
        yield order[first:last]
        first = last
