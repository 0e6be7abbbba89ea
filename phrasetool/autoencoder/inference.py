"""A trained text autoencoder applied to texts: their vectors, reconstructions and similar texts.

Texts are processed in batches of similar lengths.  The other texts affect the result for a text only by rounding: a
matrix product with more rows may add up in a different order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.autoencoder.network import Autoencoder, max_output_lengths
from phrasetool.errors import PhraseToolError
from phrasetool.nn.positions import LONGEST
from phrasetool.phrases import FloatArray, Int64Array, Phrases
from phrasetool.smt.evaluation.metrics import evaluate, rouge_n
from phrasetool.text_splitting import split_words
from phrasetool.training.data import in_vocabulary
from phrasetool.vocabulary import UNKNOWN, unescape

# Number of words per batch, which bounds the memory.
_WORDS_PER_BATCH = 8192


def autoencoder_module(model: AutoencoderModel, device: torch.device | None = None) -> Autoencoder:
    """Return the model as a torch module without dropout."""
    module = Autoencoder(model.architecture, model.arrays)
    return module.to(device or torch.device("cpu")).eval()


def encode_texts(
    model: AutoencoderModel,
    texts: Phrases,
    device: torch.device | None = None,
    tick: Callable[[int], None] = lambda texts: None,
) -> FloatArray:
    """Encode texts; return their vectors, float32, shape (N, n).

    Args:
        model: the autoencoder.
        texts: texts as ids of the model's vocabulary.
        device: device to compute on; CPU by default.
        tick: called with the number of texts just encoded.

    Raises:
        ValueError: a text has more than `LONGEST` words.
    """
    module = autoencoder_module(model, device)
    vectors = np.zeros((len(texts), model.dimension), np.float32)
    with torch.no_grad():
        for index in _batches(texts.lengths):
            vectors[index] = module.encode(texts.select(index)).cpu().numpy()
            tick(len(index))
    return vectors


def reconstruct_texts(
    model: AutoencoderModel,
    texts: Phrases,
    device: torch.device | None = None,
    tick: Callable[[int], None] = lambda texts: None,
) -> Phrases:
    """Reconstruct texts from their vectors by greedy decoding, with at most 1.5 times their number of words.

    Args:
        model: the autoencoder.
        texts, device, tick: see `encode_texts`.

    Raises:
        ValueError: see `encode_texts`.
    """
    module = autoencoder_module(model, device)
    parts, order = [Phrases.from_lists([])], [np.zeros(0, np.int64)]
    with torch.no_grad():
        for index in _batches(texts.lengths):
            batch = texts.select(index)
            parts.append(module.reconstruct(module.encode(batch), max_output_lengths(batch.lengths)))
            order.append(index)
            tick(len(index))
    return Phrases.concatenate(parts).select(np.argsort(np.concatenate(order)))


@dataclass(frozen=True)
class ReconstructedLines:
    """Reconstructed texts.

    Attributes:
        lines: words separated by spaces; each word has the form of its first occurrence in the texts, with or without
            Moses' escapes.
        known: number of words of the texts that are in the model's vocabulary.
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
    """Reconstruct texts whose words may have Moses' escapes.

    Args:
        model, device, tick: see `reconstruct_texts`.
        texts: texts as ids of `words`.
        words: distinct words, with or without Moses' escapes.

    Raises:
        ValueError: see `reconstruct_texts`.
    """
    unescaped = [unescape(word) for word in words]
    ids = in_vocabulary(texts, unescaped, model.vocabulary)
    reconstructions = reconstruct_texts(model, ids, device, tick)
    forms = dict(zip(reversed(unescaped), reversed(words), strict=True))
    vocabulary_forms = [forms.get(word, word) for word in model.vocabulary.words]
    lines = [b" ".join(vocabulary_forms[i] for i in reconstruction) for reconstruction in reconstructions]
    return ReconstructedLines(lines, int(np.count_nonzero(ids.words != UNKNOWN)))


def _batches(lengths: Int64Array) -> Iterator[Int64Array]:
    """Yield the rows of batches of texts, sorted by length, of about `_WORDS_PER_BATCH` words each."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order] + 1)
    first = 0
    while first < len(order):
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + _WORDS_PER_BATCH, "right")), first + 1)
        yield order[first:last]
        first = last


# Maximum lengths of groups of texts whose quality is measured together: 1 to 5 words, 6 to 10 and so on.
LENGTH_BOUNDS = (5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, LONGEST)


@dataclass(frozen=True)
class ReconstructionQuality:
    """Agreement of reconstructions with their texts; scores range from 0 to 100.

    Attributes:
        texts: number of texts.
        bleu: corpus BLEU by sacrebleu, of words separated by spaces.
        bleu_signature: sacrebleu's signature of the score.
        rouge_1, rouge_2: mean F1 of words and of word bigrams; see `rouge_n`.
        exact: percentage of texts that are reconstructed word for word.
    """

    texts: int
    bleu: float
    bleu_signature: str
    rouge_1: float
    rouge_2: float
    exact: float


def reconstruction_quality(reconstructions: Sequence[str], texts: Sequence[str]) -> ReconstructionQuality:
    """Compare reconstructions with the texts.

    Args:
        reconstructions: words separated by spaces.
        texts: the text of each reconstruction.

    Raises:
        ValueError: no texts, or the numbers of texts and reconstructions differ.
    """
    # With a single bootstrap sample no interval is computed.
    bleu = evaluate([reconstructions], [texts], metrics=("bleu",), samples=1)[0]
    candidates, references = [split_words(line) for line in reconstructions], [split_words(line) for line in texts]
    rouge = [100 * float(rouge_n(candidates, references, order).mean()) for order in (1, 2)]
    exact = float(np.mean([a == b for a, b in zip(candidates, references, strict=True)]))
    return ReconstructionQuality(len(texts), bleu.systems[0].score, bleu.signature, rouge[0], rouge[1], 100 * exact)


def quality_by_length(
    reconstructions: Sequence[str], texts: Sequence[str], bounds: Sequence[int] = LENGTH_BOUNDS
) -> dict[tuple[int, int], ReconstructionQuality]:
    """Measure texts of similar lengths separately (figure 2 of Zhang, Wu, Li and Zhang).

    Args:
        reconstructions, texts: see `reconstruction_quality`.
        bounds: maximum length of each group but the last, ascending.

    Returns:
        Quality by the minimum and maximum length of a group; groups without texts are left out.
    """
    lengths = np.array([len(split_words(line)) for line in texts])
    groups = np.searchsorted(bounds, lengths)
    starts, ends = [1, *(bound + 1 for bound in bounds)], [*bounds, max(lengths.max(initial=0), bounds[-1] + 1)]
    quality = {}
    for group in np.unique(groups).tolist():
        members = np.flatnonzero(groups == group).tolist()
        quality[int(starts[group]), int(ends[group])] = reconstruction_quality(
            [reconstructions[i] for i in members], [texts[i] for i in members]
        )
    return quality


class NearestSentences:
    """Index of sentences by their vectors (section 5.4 of Zhang, Wu, Li and Zhang), of 4 n bytes each.

    Args:
        model: the autoencoder.
        sentences: sentences as ids of `words`; repeated sentences are kept.
        words: distinct words, unescaped.
        device: device to encode on; CPU by default.
        tick: called with the number of sentences just encoded.

    Raises:
        ValueError: a sentence has more than `LONGEST` words.
    """

    def __init__(
        self,
        model: AutoencoderModel,
        sentences: Phrases,
        words: Sequence[bytes],
        device: torch.device | None = None,
        tick: Callable[[int], None] = lambda sentences: None,
    ) -> None:
        self._model = model
        self._words = words
        self._device = device
        self._sentences = sentences
        self._vectors = self._encoded(sentences, words, tick)

    def nearest(self, sentence: Sequence[bytes], count: int) -> list[tuple[bytes, float]]:
        """Return the nearest sentences with their cosines, nearest first, without the sentence itself.

        Args:
            sentence: words of the sentence, unescaped.
            count: maximum number of sentences; equally similar sentences keep their order.

        Raises:
            ValueError: the sentence has more than `LONGEST` words.
        """
        query = list(sentence)
        vector = self._encoded(Phrases.from_lists([range(len(query))]), query)[0]
        cosines = np.clip(self._vectors @ vector, -1, 1)
        nearest: list[tuple[bytes, float]] = []
        for i in np.argsort(-cosines, kind="stable"):
            words = [self._words[word] for word in self._sentences[i]]
            if words != query:
                nearest.append((b" ".join(words), float(cosines[i])))
            if len(nearest) == count:
                break
        return nearest

    def _encoded(
        self, texts: Phrases, words: Sequence[bytes], tick: Callable[[int], None] = lambda texts: None
    ) -> FloatArray:
        """Encode texts; return vectors of length one (or zero)."""
        ids = in_vocabulary(texts, words, self._model.vocabulary)
        vectors = encode_texts(self._model, ids, self._device, tick)
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return vectors


def sentence_words(model: AutoencoderModel, text: bytes) -> list[bytes]:
    """Split a sentence into words that the model can encode, and undo Moses' escapes.

    Raises:
        PhraseToolError: none of the words is in the vocabulary, or there are too many.
    """
    words = split_words(unescape(text))
    if not set(words) & set(model.vocabulary.words[1:]):
        raise PhraseToolError(f"the model knows no word of {text.decode('utf-8', 'replace')!r}")
    if len(words) > LONGEST:
        raise PhraseToolError(f"the sentence has {len(words)} words; an autoencoder encodes at most {LONGEST}")
    return words
