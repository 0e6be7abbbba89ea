"""Use a trained translator: translate with a beam, and score given translations.

Both run the decoder of the network step by step.

* Search (`translate`, `n_best_translations`, `nearest_words`) takes the nearest target vectors at every step, greedily
  or with a beam.  The score of a hypothesis is the mean of log p over its words and its end, with p of
  `log_probabilities`; greedy search takes the nearest neighbour by cosine.
* Scoring (`pair_scores`, `scores_of_pairs`, `list_scores`) sums log p(e_t | e_<t, f) over the words of a given
  translation and its end, after Cho et al. (2014), section 3.1.

The last bits of a matrix product depend on its size.  So that neither threads nor the other sentences change a
translation or a score, batches depend on the sentences or pairs only: a batch to translate has sentences of one length
and always the same number of rows; pairs to score are sorted and divided into batches of one size; a hypothesis of an
n-best list is scored with the other hypotheses of its sentence.  (If the sizes of states are not multiples of 8, torch
rounds a row differently at another position in the batch, so the last digit of a score may differ.)
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
from phrasetool.phrases import DoubleArray, FloatArray, Int64Array, Mask, Phrases
from phrasetool.pipeline import run
from phrasetool.translator.network import NOTHING, TranslatorNetwork, padded_targets
from phrasetool.unique_phrases import distinct_phrases, number_distinct
from phrasetool.vocabulary import UNKNOWN

# Sentences that are translated together; a smaller batch is padded with copies.
_BATCH = 16


def max_output_lengths(lengths: Int64Array) -> Int64Array:
    """Return maximum lengths of translations: twice the source length plus five, at most `LONGEST` (self-attention)."""
    limits: Int64Array = np.minimum(2 * lengths + 5, LONGEST)
    return limits


def log_probabilities(module: TranslatorNetwork, predicted: Tensor, temperature: float) -> Tensor:
    """Return log p of every word and the end, shape (T, V + 1), for predictions of shape (T, d).

    Args:
        module: network with the target vectors.
        predicted: output of its `predict` or `step`.
        temperature: temperature of the softmax over cosines; 1 for a softmax translator.
    """
    if module.architecture.continuous:
        logits = functional.normalize(predicted, dim=1) @ module.targets.T
    else:
        logits = module.logits(predicted)
    return functional.log_softmax(logits / temperature, 1)


@dataclass(frozen=True)
class TranslatedSentence:
    """A translated sentence.

    Attributes:
        words: ids of target words; 0 (the unknown word) where its vector was the nearest.
        attended: for each word, the source position with most attention.
        score: mean log probability of the words and the end.
    """

    words: tuple[int, ...]
    attended: tuple[int, ...]
    score: float

    @property
    def log_probability(self) -> float:
        """Sum of the log probabilities of the words and the end."""
        return self.score * (len(self.words) + 1)


def translate(
    module: TranslatorNetwork,
    sources: Phrases,
    temperature: float,
    beam: int = 1,
    candidates: Sequence[Int64Array] | None = None,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> list[TranslatedSentence]:
    """Return the best translation of each of N sentences; see `n_best_translations` for the arguments."""
    best = n_best_translations(module, sources, temperature, 1, beam, candidates, threads, tick)
    return [translations[0] for translations in best]


def n_best_translations(
    module: TranslatorNetwork,
    sources: Phrases,
    temperature: float,
    max_translations: int,
    beam: int,
    candidates: Sequence[Int64Array] | None = None,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> list[list[TranslatedSentence]]:
    """Return the best translations of N sentences that a beam finds, best first; at least one for each sentence.

    Args:
        module: network in evaluation mode.
        sources: N sentences with at least one word, in ids of the source vocabulary.
        temperature: see `log_probabilities`.
        max_translations: maximum number of translations of a sentence; they differ in at least one word.
        beam: number of hypotheses that are kept at a time; 1 is greedy search.
        candidates: for each sentence, the ids of target words that it may use; None for all words.
        threads: number of batches at a time, with one thread each; translations do not depend on it.
        tick: called with the number of sentences just translated.

    Raises:
        LengthError: a sentence is too long.
    """
    translated: list[list[TranslatedSentence]] = [[] for _ in range(len(sources))]

    def search(batch: Int64Array) -> list[list[TranslatedSentence]]:
        # Copies of the first sentence fill the batch.
        rows = np.concatenate([batch, np.full(_BATCH - len(batch), batch[0])])
        allowed = None if candidates is None else _allowed(module, [candidates[i] for i in rows.tolist()])
        with one_torch_thread(), torch.no_grad():
            return _Search(module, sources.select(rows), temperature, beam, allowed).run(max_translations)

    batches = list(_length_batches(sources.lengths))
    with one_torch_thread(), ThreadPoolExecutor(threads) as pool:
        for batch, results in zip(batches, pool.map(search, batches), strict=True):
            for sentence, translations in zip(batch.tolist(), results, strict=False):
                translated[sentence] = translations
            tick(len(batch))
    return translated


def _length_batches(lengths: Int64Array) -> Iterator[Int64Array]:
    """Yield batches of sentences of one length, so that every sentence is in one batch."""
    order = np.argsort(lengths, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1) if len(order) else ():
        yield from (same[first : first + _BATCH] for first in range(0, len(same), _BATCH))


def _allowed(module: TranslatorNetwork, candidates: Sequence[Int64Array]) -> Tensor:
    """Return a mask of the words that each of B sentences may use, and the end; bool, shape (B, V + 1)."""
    allowed = torch.zeros(len(candidates), module.end + 1, dtype=torch.bool, device=module.words.device)
    allowed[:, module.end] = True
    for row, ids in enumerate(candidates):
        allowed[row, torch.from_numpy(ids)] = True
    return allowed


class _Search:
    """Beam search for B sentences; the hypotheses of a beam are neighbouring rows."""

    def __init__(
        self, module: TranslatorNetwork, sources: Phrases, temperature: float, beam: int, allowed: Tensor | None
    ) -> None:
        self.module, self.temperature, self.beam = module, temperature, beam
        self.limits = max_output_lengths(sources.lengths)
        self.count = len(sources)
        device = module.words.device
        rows = torch.arange(self.count, device=device).repeat_interleave(beam)
        self.encoded = module.encode(sources).select(rows)
        self.allowed = None if allowed is None else allowed[rows]
        self.state = module.begin(self.encoded, int(self.limits.max()) + 1)
        self.words = torch.full((len(rows),), NOTHING, device=device)
        # Each beam starts with one hypothesis.
        self.scores = torch.full((self.count, beam), -float("inf"), device=device)
        self.scores[:, 0] = 0
        self.history: list[tuple[Tensor, Tensor, Tensor]] = []
        self.finished: list[list[tuple[float, int, int]]] = [[] for _ in range(self.count)]

    def run(self, max_translations: int) -> list[list[TranslatedSentence]]:
        """Search until all hypotheses are finished; return at most this many translations of each sentence."""
        for step in range(int(self.limits.max()) + 1):
            if not self._advance(step):
                break
        return [self._best(sentence, max_translations) for sentence in range(self.count)]

    def _advance(self, step: int) -> bool:
        """Extend every hypothesis by one word; return False when all are finished."""
        beam, size = self.beam, self.module.end + 1
        predicted, weights = self.module.step(self.encoded, self.state, self.words)
        logs = log_probabilities(self.module, predicted, self.temperature)
        if self.allowed is not None:
            logs = logs.masked_fill(~self.allowed, -float("inf"))
        # At the maximum length, only the end is allowed.
        over = torch.from_numpy(np.repeat(self.limits <= step, beam)).to(logs.device)
        logs[over, : size - 1] = -float("inf")
        total = (self.scores.view(-1, 1) + logs).view(self.count, -1)
        best, indices = total.topk(beam, 1)
        parents = indices // size + torch.arange(self.count, device=indices.device)[:, None] * beam
        words = indices % size
        attended = weights.argmax(1)[parents.flatten()]
        self.history.append((parents.flatten().cpu(), words.flatten().cpu(), attended.cpu()))
        ended = (words == self.module.end) & best.isfinite()
        for sentence, rank in ended.nonzero().tolist():
            score = float(best[sentence, rank]) / (step + 1)
            self.finished[sentence].append((score, step, sentence * beam + rank))
        self.scores = best.masked_fill(ended, -float("inf"))
        full = torch.tensor([len(finished) >= beam for finished in self.finished], device=best.device)
        self.scores = self.scores.masked_fill(full[:, None], -float("inf"))
        self.words = words.flatten()
        if beam > 1:
            self.state = self.state.select(parents.flatten())
        return bool(self.scores.isfinite().any())

    def _best(self, sentence: int, max_translations: int) -> list[TranslatedSentence]:
        """Return the best finished hypotheses of a sentence."""
        ranked = sorted(self.finished[sentence], key=lambda hypothesis: (-hypothesis[0], *hypothesis[1:]))
        return [self._read_back(*hypothesis) for hypothesis in ranked[:max_translations]]

    def _read_back(self, score: float, step: int, row: int) -> TranslatedSentence:
        """Return the hypothesis that ends in a row of a step, by following its parents."""
        words, attended = [], []
        for parents, ids, positions in reversed(self.history[: step + 1]):
            words.append(int(ids[row]))
            attended.append(int(positions[row]))
            row = int(parents[row])
        return TranslatedSentence(tuple(words[:0:-1]), tuple(attended[:0:-1]), score)


def replace_unknown_words(
    translation: TranslatedSentence,
    target_words: Sequence[bytes],
    source: Sequence[bytes],
    dictionary: dict[bytes, bytes],
) -> list[bytes]:
    """Return the words of a translation.

    An unknown word is replaced by the dictionary's translation of the source word with most attention, or by that word.

    Args:
        translation: translation of the sentence.
        target_words: words of the target vocabulary.
        source: words of the source sentence as written.
        dictionary: source word -> target word.
    """
    words = []
    for word_id, position in zip(translation.words, translation.attended, strict=True):
        if word_id == UNKNOWN:
            words.append(dictionary.get(source[position], source[position]))
        else:
            words.append(target_words[word_id])
    return words


def remove_repetitions(words: Sequence[bytes]) -> list[bytes]:
    """Return the words without repetitions, which Kumar and Tsvetkov (2019) delete before they compute BLEU."""
    return [word for i, word in enumerate(words) if not i or words[i - 1] != word]


@dataclass(frozen=True)
class NearestWords:
    """Target words nearest to a predicted vector.

    Attributes:
        words: ids of target words, nearest first; V is the end of the sentence, int64, shape (K,).
        cosines: cosines with the prediction, float32, shape (K,).
    """

    words: Int64Array
    cosines: FloatArray


@torch.no_grad()
def nearest_words(module: TranslatorNetwork, sentence: Phrases, temperature: float, count: int) -> list[NearestWords]:
    """Return the nearest words at every step of the greedy translation of a sentence, including the end.

    Args:
        module: network that predicts vectors, in evaluation mode.
        sentence: one source sentence with at least one word.
        temperature: see `log_probabilities`.
        count: K, number of words for each step.

    Raises:
        ValueError: the translator predicts a distribution, not vectors.
        LengthError: the sentence is too long.
    """
    if not module.architecture.continuous:
        raise ValueError("this translator predicts a distribution; no vector has neighbours")
    (translation,) = translate(module, sentence, temperature)
    targets = padded_targets(Phrases.from_lists([translation.words]), module.end)
    predicted = module.predict(module.encode(sentence), targets.to(module.words.device))
    cosines = functional.normalize(predicted, dim=1) @ module.targets.T
    best, words = cosines.topk(min(count, module.end + 1), 1)
    pairs = zip(words.cpu().numpy(), best.cpu().numpy().astype(np.float32), strict=True)
    return [NearestWords(*pair) for pair in pairs]


# Number of predictions that are compared with all target vectors at once; their cosines fit the cache.
_LOGIT_BLOCK = 256
# exp of this number, and of its negative, is a float32 that is neither infinite nor zero; so are sums of thousands.
_LARGEST_EXPONENT = 60.0


@dataclass(frozen=True)
class _Depth:
    """Nodes of a prefix tree of targets at one depth.

    Attributes:
        rows: targets with at least this number of words, int64, shape (R,).
        node: node of each of these targets, int64, shape (R,).
        parents: parent of each node at the previous depth, int64, shape (K,).
        words: last word of each node, int64, shape (K,); NOTHING at the root.
        sources: source of each node, int64, shape (K,).
        next_words: next word of each of the rows, or the end, int64, shape (R,).
    """

    rows: Int64Array
    node: Int64Array
    parents: Int64Array
    words: Int64Array
    sources: Int64Array
    next_words: Int64Array


def _tree(targets: Phrases, sources: Int64Array, end: int) -> Iterator[_Depth]:
    """Yield the depths of the prefix tree of some targets, from the root on.

    Targets of one source with a common prefix share nodes, so that every prefix is read once: the targets of Moses'
    tables have three times as many words as their tree has nodes.

    Args:
        targets: P phrases, sorted by source, then by their words in order.
        sources: source of each target, int64, shape (P,), ascending.
        end: id that follows the last word.
    """
    lengths = targets.lengths
    longest = int(lengths.max())
    # All targets may be empty.
    matrix = targets.padded(max(longest, 1)).astype(np.int64)
    rows = np.arange(len(targets))
    new: Mask = np.concatenate([[True], sources[1:] != sources[:-1]])
    before: Int64Array = np.cumsum(new) - 1
    for depth in range(longest + 1):
        if depth:
            kept = lengths[rows] >= depth
            # If the first row of a node ends here, the next row that continues is the first of the node.
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
        next_words = np.where(lengths[rows] > depth, matrix[rows, min(depth, matrix.shape[1] - 1)], end)
        yield _Depth(rows, node, parent_rows[new], words[new], sources[rows[new]], next_words)
        before = node


@torch.no_grad()
def pair_scores(
    module: TranslatorNetwork,
    sources: Phrases,
    targets: Phrases,
    source_of: Int64Array,
    reading: str,
    temperature: float,
) -> DoubleArray:
    """Return the scores log p(target | source) of phrase pairs, float64, shape (P,).

    The last bits of a score depend on the pairs that are scored together.

    Args:
        module: network in evaluation mode.
        sources: distinct source phrases with at least one word.
        targets: P phrases, sorted by source, then by their words in order (as `pair_order` does).
        source_of: source of each target, int64, shape (P,), ascending.
        reading: one of `settings.READINGS`.  `normalised`: p is the distribution over all target words of
            `log_probabilities`.  `density`: p(e_t) is the density of a von Mises-Fisher distribution around the
            prediction, relative to that at its mode, with 1 / temperature as concentration:
            (cos(prediction, e_t) - 1) / temperature.  No other word's vector is used.  It differs from the density
            relative to the uniform one by a constant per word, which a decoder's word penalty covers, and it is never
            above zero.
        temperature: temperature of the translator.

    Raises:
        LengthError: a source is too long.
        ValueError: a source has no word, or the translator is a softmax and `density` was requested.
    """
    if reading == "density" and not module.architecture.continuous:
        raise ValueError("a softmax has no densities; ask for `normalised`")
    if not len(targets):
        return np.zeros(0)
    encoded = module.encode(sources)
    state = module.begin(encoded, int(targets.lengths.max()) + 1)
    total = torch.zeros(len(targets), dtype=torch.float64)
    # A product of few rows is as slow as one of twice as many, so the rows of several depths are compared together.
    waiting: list[tuple[_Depth, Tensor]] = []
    for depth in _tree(targets, source_of, module.end):
        here = torch.from_numpy(depth.sources)
        state = state.select(here if depth.words[0] == NOTHING else torch.from_numpy(depth.parents))
        predicted, _ = module.step(encoded.select(here), state, torch.from_numpy(depth.words))
        waiting.append((depth, predicted))
        if sum(len(rows) for _, rows in waiting) >= _LOGIT_BLOCK:
            _add(module, waiting, reading, temperature, total)
            waiting = []
    if waiting:
        _add(module, waiting, reading, temperature, total)
    scores: DoubleArray = total.numpy()
    return scores


def _add(
    module: TranslatorNetwork, depths: list[tuple[_Depth, Tensor]], reading: str, temperature: float, total: Tensor
) -> None:
    """Add the log probabilities of the next words at some depths to the totals, shape (P,)."""
    predicted = torch.cat([rows for _, rows in depths])
    starts = np.cumsum([0, *(len(rows) for _, rows in depths)])
    node = np.concatenate([depth.node + start for (depth, _), start in zip(depths, starts[:-1], strict=True)])
    words = np.concatenate([depth.next_words for depth, _ in depths])
    logs = _logs(module, predicted, torch.from_numpy(node), torch.from_numpy(words), reading, temperature).double()
    parts = torch.split(logs, [len(depth.rows) for depth, _ in depths])
    for (depth, _), part in zip(depths, parts, strict=True):
        total[torch.from_numpy(depth.rows)] += part


def _logs(
    module: TranslatorNetwork, predicted: Tensor, node: Tensor, words: Tensor, reading: str, temperature: float
) -> Tensor:
    """Return log p of words, shape (R,), from the predictions of their nodes, shape (K, d)."""
    if module.architecture.continuous:
        predicted = functional.normalize(predicted, dim=1)
    right = (predicted[node] * module.targets[words]).sum(1)
    if reading == "density":
        return (right - 1) / temperature
    bias: Tensor | None = module.bias
    if bias is not None:
        right = right + bias[words]
    # Cosines are at most one, so above this temperature no maximum has to be subtracted before the exponential.
    bounded = module.architecture.continuous and temperature > 1 / _LARGEST_EXPONENT
    predicted = predicted / temperature
    if bias is not None:
        bias = bias / temperature
    sums = predicted.new_empty(len(predicted))
    for first in range(0, len(predicted), _LOGIT_BLOCK):
        logits = functional.linear(predicted[first : first + _LOGIT_BLOCK], module.targets, bias)
        sums[first : first + _LOGIT_BLOCK] = logits.exp_().sum(1).log_() if bounded else logits.logsumexp(1)
    return right / temperature - sums[node]


def pair_order(sources: Int64Array, targets: Phrases) -> Int64Array:
    """Return the order of pairs sorted by source, then by the words of the target in order; shape (P,).

    Args:
        sources: first sort key: numbers of source phrases or other integers, shape (P,).
        targets: P phrases.
    """
    matrix = targets.padded(int(targets.lengths.max(initial=0)), NOTHING)
    return np.lexsort((*matrix.T[::-1], sources))


# Pairs per batch: larger batches do not fit the cache, and smaller ones have too much overhead between products.
_PAIRS_OF_A_BATCH = 1024


def is_too_long(sources: Phrases, targets: Phrases) -> Mask:
    """Return whether each of N pairs has more words on a side than a translator can read; bool, shape (N,)."""
    return np.asarray(np.maximum(sources.lengths, targets.lengths) > LONGEST)


def _can_be_scored(sources: Phrases, targets: Phrases) -> Mask:
    """Return whether each of N pairs has words on both sides, but not too many; bool, shape (N,)."""
    shortest = np.minimum(sources.lengths, targets.lengths)
    return np.asarray((shortest > 0) & ~is_too_long(sources, targets))


def scores_of_pairs(
    module: TranslatorNetwork, sources: Phrases, targets: Phrases, reading: str, temperature: float
) -> DoubleArray:
    """Return the scores of N pairs, float64, shape (N,); NaN where a pair cannot be scored.

    Pairs are sorted by the length of their source, then by its words, then by those of their target, and divided into
    batches of one size, so that scores depend on the pairs only.

    Args:
        module: network in evaluation mode.
        sources: N phrases, which may be equal.
        targets: N phrases.
        reading: see `pair_scores`.
        temperature: temperature of the translator.

    Raises:
        ValueError: the translator is a softmax and `density` was requested.
    """
    scores = np.full(len(sources), np.nan)
    scorable = np.flatnonzero(_can_be_scored(sources, targets))
    sources, targets = sources.select(scorable), targets.select(scorable)
    numbers, distinct = distinct_phrases(sources)
    order = pair_order(distinct.lengths, distinct)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    distinct, numbers = distinct.select(order), ranks[numbers]
    rows = pair_order(numbers, targets)
    for first in range(0, len(rows), _PAIRS_OF_A_BATCH):
        batch = rows[first : first + _PAIRS_OF_A_BATCH]
        which, source_of = np.unique(numbers[batch], return_inverse=True)
        scores[scorable[batch]] = pair_scores(
            module, distinct.select(which), targets.select(batch), source_of, reading, temperature
        )
    return scores


# Replacement of a source text without words: one unknown word.
_NO_WORDS = Phrases.from_lists([[UNKNOWN]])


def list_scores(
    module: TranslatorNetwork,
    temperature: float,
    sources: Phrases,
    hypotheses: Phrases,
    sentences: Int64Array,
    *,
    backward: bool,
    threads: int = 1,
    tick: Callable[[int], None] = lambda sentences: None,
) -> DoubleArray:
    """Score n-best lists: log p(hypothesis | source), or log p(source | hypothesis) if backward; float64, shape (N,).

    A batch is one sentence with its distinct hypotheses, sorted, so that a score depends only on the list of its
    sentence.  A text to translate from that has no words is read as one unknown word.

    Args:
        module: network in evaluation mode.
        temperature: temperature of the translator.
        sources: S sentences, in ids of the module's source words, or of its target words if backward.
        hypotheses: N hypotheses, in ids of the other side.
        sentences: sentence number of each hypothesis, int64, shape (N,), ascending.
        backward: whether the translator translates hypotheses to sources.
        threads: number of sentences at a time; each is scored by one thread.
        tick: called with the number of sentences just scored.

    Raises:
        LengthError: a text is too long.
        ValueError: sentence numbers do not ascend, or exceed the number of sources.
    """
    if len(sentences) and (np.diff(sentences).min(initial=0) < 0 or sentences[0] < 0 or sentences[-1] >= len(sources)):
        raise ValueError(f"expected ascending sentence numbers below {len(sources)}")
    scores = np.zeros(len(hypotheses))
    numbers, firsts = np.unique(sentences, return_index=True)
    ends = [*firsts[1:].tolist(), len(sentences)]

    def work(part: tuple[int, int, int]) -> tuple[int, int, DoubleArray]:
        sentence, first, last = part
        source = sources.part(sentence, sentence + 1)
        with one_torch_thread():
            sentence_scores = _sentence_scores(module, temperature, source, hypotheses.part(first, last), backward)
        return first, last, sentence_scores

    with one_torch_thread():
        parts = zip(numbers.tolist(), firsts.tolist(), ends, strict=True)
        for first, last, sentence_scores in run(parts, work, threads):
            scores[first:last] = sentence_scores
            tick(1)
    return scores


def _sentence_scores(
    module: TranslatorNetwork, temperature: float, source: Phrases, hypotheses: Phrases, backward: bool
) -> DoubleArray:
    """Return the scores of the hypotheses of one sentence, float64, shape (N,)."""
    numbers, firsts = number_distinct(hypotheses)
    distinct = hypotheses.select(firsts)
    order = pair_order(np.zeros(len(distinct), np.int64), distinct)
    ordered = distinct.select(order)
    zeros = np.zeros(len(ordered), np.int64)
    distinct_scores = np.empty(len(ordered))
    if backward:
        read = Phrases.concatenate([part if len(part.words) else _NO_WORDS for part in _singles(ordered)])
        targets = source.select(zeros)
        scores = pair_scores(module, read, targets, np.arange(len(read)), "normalised", temperature)
    else:
        read = source if len(source.words) else _NO_WORDS
        scores = pair_scores(module, read, ordered, zeros, "normalised", temperature)
    distinct_scores[order] = scores
    return distinct_scores[numbers]


def _singles(phrases: Phrases) -> Iterator[Phrases]:
    return (phrases.part(i, i + 1) for i in range(len(phrases)))
