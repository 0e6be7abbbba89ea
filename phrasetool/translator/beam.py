"""Translate: the nearest target vector at every step, greedily or with a beam.

A hypothesis is worth the mean of log p over its words and its end, with p of `log_probabilities`; greedily that is the
nearest neighbour by cosine.

A sentence's translation owes nothing to the others, not even in its last bit: a batch has sentences of one length, and
always the same number of rows, since a matrix product may add up in another order where there are more or fewer.  (Of
a row in another place torch rounds differently where sizes of states are no multiples of 8; a score's last digit may
differ then.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from phrasetool.nn.device import one_torch_thread
from phrasetool.nn.positions import LONGEST
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.translator.network import NOTHING, NeuralTranslator
from phrasetool.vocabulary import UNKNOWN

# Sentences that are translated together; fewer are filled up.
_AT_ONCE = 16


def most_words(lengths: Int64Array) -> Int64Array:
    """How many words a translation may have: twice those of the source and five more, at most `LONGEST`, for which
    self-attention has places."""
    limits: Int64Array = np.minimum(2 * lengths + 5, LONGEST)
    return limits


def log_probabilities(module: NeuralTranslator, predicted: Tensor, temperature: float) -> Tensor:
    """log p of every word and the end, shape (T, V + 1), of what was predicted, shape (T, d).

    Args:
        module: has the target vectors.
        predicted: by its `predict` or `step`.
        temperature: of the softmax over cosines; a softmax translator has 1.
    """
    if module.architecture.continuous:
        logits = functional.normalize(predicted, dim=1) @ module.targets.T
    else:
        logits = module.logits(predicted)
    return functional.log_softmax(logits / temperature, 1)


@dataclass(frozen=True)
class NeuralTranslation:
    """A translated sentence.

    Attributes:
        words: ids of target words, 0 where no word was near enough.
        attended: for each, the source position with most attention.
        score: mean log probability of the words and the end.
    """

    words: tuple[int, ...]
    attended: tuple[int, ...]
    score: float

    @property
    def log_probability(self) -> float:
        """Of the words and the end together."""
        return self.score * (len(self.words) + 1)


def translate(
    module: NeuralTranslator,
    sources: Phrases,
    temperature: float,
    beam: int = 1,
    candidates: Sequence[Int64Array] | None = None,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> list[NeuralTranslation]:
    """Translate N sentences; see `n_best_translations`, of which these are the best."""
    found = n_best_translations(module, sources, temperature, 1, beam, candidates, threads, tick)
    return [translations[0] for translations in found]


def n_best_translations(
    module: NeuralTranslator,
    sources: Phrases,
    temperature: float,
    most: int,
    beam: int,
    candidates: Sequence[Int64Array] | None = None,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> list[list[NeuralTranslation]]:
    """The best translations of N sentences that a beam finds, from the best on; for each sentence one at least.

    Args:
        module: not in training.
        sources: in ids of the source vocabulary, none without words.
        temperature: see `log_probabilities`.
        most: translations of a sentence; they differ in a word at least.
        beam: hypotheses that are kept at a time; 1 is greedy.
        candidates: for each sentence the ids of target words that it may use; all if None.
        threads: batches at a time; each computes on one thread.  They change no translation.
        tick: called with the number of sentences just done.

    Raises:
        LengthError: a sentence is too long.
    """
    found: list[list[NeuralTranslation]] = [[] for _ in range(len(sources))]

    def search(batch: Int64Array) -> list[list[NeuralTranslation]]:
        # The first sentence stands where there are no more.
        rows = np.concatenate([batch, np.full(_AT_ONCE - len(batch), batch[0])])
        allowed = None if candidates is None else _allowed(module, [candidates[i] for i in rows.tolist()])
        with one_torch_thread(), torch.no_grad():
            return _Search(module, sources.select(rows), temperature, beam, allowed).run(most)

    batches = list(_batches(sources.lengths))
    with one_torch_thread(), ThreadPoolExecutor(threads) as pool:
        for batch, done in zip(batches, pool.map(search, batches), strict=True):
            for sentence, translations in zip(batch.tolist(), done, strict=False):
                found[sentence] = translations
            tick(len(batch))
    return found


def _batches(lengths: Int64Array) -> Iterator[Int64Array]:
    """Every sentence once, some at a time, those of a batch equally long."""
    order = np.argsort(lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(order) else ():
        yield from (same[first : first + _AT_ONCE] for first in range(0, len(same), _AT_ONCE))


def _allowed(module: NeuralTranslator, candidates: Sequence[Int64Array]) -> Tensor:
    """Which words each of B sentences may use, and the end; bool, shape (B, V + 1)."""
    allowed = torch.zeros(len(candidates), module.end + 1, dtype=torch.bool, device=module.words.device)
    allowed[:, module.end] = True
    for row, ids in enumerate(candidates):
        allowed[row, torch.from_numpy(ids)] = True
    return allowed


class _Search:
    """The beams of B sentences; a beam's hypotheses stand in neighbouring rows."""

    def __init__(
        self, module: NeuralTranslator, sources: Phrases, temperature: float, beam: int, allowed: Tensor | None
    ) -> None:
        self.module, self.temperature, self.beam = module, temperature, beam
        self.limits = most_words(sources.lengths)
        self.count = len(sources)
        device = module.words.device
        rows = torch.arange(self.count, device=device).repeat_interleave(beam)
        self.encoded = module.encode(sources).select(rows)
        self.allowed = None if allowed is None else allowed[rows]
        self.state = module.begin(self.encoded, int(self.limits.max()) + 1)
        self.words = torch.full((len(rows),), NOTHING, device=device)
        # Only the first hypothesis of each beam is there at first.
        self.scores = torch.full((self.count, beam), -float("inf"), device=device)
        self.scores[:, 0] = 0
        self.history: list[tuple[Tensor, Tensor, Tensor]] = []
        self.finished: list[list[tuple[float, int, int]]] = [[] for _ in range(self.count)]

    def run(self, most: int) -> list[list[NeuralTranslation]]:
        """Search to the end; the best of each sentence, so many at most."""
        for step in range(int(self.limits.max()) + 1):
            if not self._advance(step):
                break
        return [self._best(sentence, most) for sentence in range(self.count)]

    def _advance(self, step: int) -> bool:
        """One more word for every hypothesis; False when all are finished."""
        beam, size = self.beam, self.module.end + 1
        predicted, weights = self.module.step(self.encoded, self.state, self.words)
        logs = log_probabilities(self.module, predicted, self.temperature)
        if self.allowed is not None:
            logs = logs.masked_fill(~self.allowed, -float("inf"))
        # At the longest, nothing but the end may come.
        over = torch.from_numpy(np.repeat(self.limits <= step, beam)).to(logs.device)
        logs[over, : size - 1] = -float("inf")
        total = (self.scores.view(-1, 1) + logs).view(self.count, -1)
        best, places = total.topk(beam, 1)
        parents = places // size + torch.arange(self.count, device=places.device)[:, None] * beam
        words = places % size
        attended = weights.argmax(1)[parents.flatten()]
        self.history.append((parents.flatten().cpu(), words.flatten().cpu(), attended.cpu()))
        ended = (words == self.module.end) & best.isfinite()
        for sentence, rank in ended.nonzero().tolist():
            score = float(best[sentence, rank]) / (step + 1)
            self.finished[sentence].append((score, step, sentence * beam + rank))
        self.scores = best.masked_fill(ended, -float("inf"))
        full = torch.tensor([len(found) >= beam for found in self.finished], device=best.device)
        self.scores = self.scores.masked_fill(full[:, None], -float("inf"))
        self.words = words.flatten()
        if beam > 1:
            self.state = self.state.select(parents.flatten())
        return bool(self.scores.isfinite().any())

    def _best(self, sentence: int, most: int) -> list[NeuralTranslation]:
        """The best finished hypotheses."""
        ranked = sorted(self.finished[sentence], key=lambda found: (-found[0], found[1], found[2]))
        return [self._read_back(*found) for found in ranked[:most]]

    def _read_back(self, score: float, step: int, row: int) -> NeuralTranslation:
        """A hypothesis, from its end to its beginning."""
        words, attended = [], []
        for parents, ids, places in reversed(self.history[: step + 1]):
            words.append(int(ids[row]))
            attended.append(int(places[row]))
            row = int(parents[row])
        return NeuralTranslation(tuple(words[:0:-1]), tuple(attended[:0:-1]), score)


def written(
    translation: NeuralTranslation,
    target_words: Sequence[bytes],
    source: Sequence[bytes],
    dictionary: dict[bytes, bytes],
) -> list[bytes]:
    """The words of a translation; an unknown one is what a dictionary has for the source word most attended to, or it.

    Args:
        translation: of the sentence.
        target_words: of the target vocabulary.
        source: the words of the source sentence as written.
        dictionary: source word -> target word.
    """
    found = []
    for word, place in zip(translation.words, translation.attended, strict=True):
        if word == UNKNOWN:
            found.append(dictionary.get(source[place], source[place]))
        else:
            found.append(target_words[word])
    return found


def without_repetitions(words: Sequence[bytes]) -> list[bytes]:
    """The words but those that repeat the one before, which Kumar and Tsvetkov (2019) delete before they score."""
    return [word for i, word in enumerate(words) if not i or words[i - 1] != word]
