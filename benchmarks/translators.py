"""Comparison of translators that predict word vectors: tables 1 and 2 of Bhat, Kumar and Tsvetkov (2020).

The preset `gru` is trained on Multi30k German-English with several seeds per loss, on one thread; the epoch is the best
on the development set.  Target vectors are fastText vectors of the English side and of monolingual captions, the same
for all runs.  The margin of a loss is the one of 0.25, 0.5, 0.75 and 1 with the best BLEU on the development set after
a short training with one seed; the two regularisers of `vmf` are chosen likewise from nine pairs.

    equal epochs    every loss for the same number of epochs
    equal time      cross-entropy for the number of epochs that take the time of syn-projection
    random          syn-projection with random target vectors, which contain no knowledge about words
    plain-margin    the margins again, after a short training with vectors that are not centred
    paper           preset `lstm` for twenty epochs, with the paper's targets and step size, one seed per loss
    paper-third     the same with every third sentence pair, compared with the preset `gru` (`third`); `tuned`: with the
                    margin or the regularisers that are best in this setting, not with `gru`

`--only` selects runs; finished runs are stored in benchmarks/results/runs/, one record each, and not repeated.  They
contain BLEU statistics per sentence, so that losses can be compared by a paired bootstrap over sentences and seeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import DATA, ROOT, TESTS, WORK, machine
from stored import StoredStudy
from torch.nn import functional

from moses_compat.corpora.bitexts import read_sentence_pairs
from moses_compat.corpora.texts import read_text_lines, unescaped_sentences
from phrasetool.embeddings.training import train_fasttext
from phrasetool.phrases import FloatArray, Phrases
from phrasetool.smt.evaluation.bleu import sentence_statistics
from phrasetool.training.data import PhrasePairs, frequent_words, in_vocabulary
from phrasetool.training.run import CHECKPOINT, LOG, TrainingRun
from phrasetool.translator.decoding import remove_repetitions, replace_unknown_words, translate
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.network import padded_targets, target_table
from phrasetool.translator.settings import TranslatorSettings
from phrasetool.translator.training import TranslatorReport, train_translator

RUNS = StoredStudy("translators")


@dataclass(frozen=True)
class Corpus:
    """A bitext.

    Attributes:
        folder: name of its folder in the data.
        source, target: its languages.
        tests: its test sets.
        mono: monolingual texts of the target language, for the vectors.
        every: every how many sentence pairs one is used for training.
    """

    folder: str
    source: str
    target: str
    tests: tuple[str, ...]
    mono: tuple[str, ...] = ()
    every: int = 1


_MULTI30K = Corpus("multi30k-de-en", "de", "en", TESTS, ("mono/mono.en.gz",))
CORPORA = {
    "multi30k-de-en": _MULTI30K,
    "multi30k-de-en, a third": replace(_MULTI30K, every=3),
    "multi30k-cs-en": Corpus("multi30k-cs-en", "cs", "en", ("test_2016_flickr", "test_2018_flickr")),
    "tatoeba-zh-en": Corpus("tatoeba-zh-en", "zh", "en", ("test",)),
}
EPOCHS, SHORT = 8, 3
SEEDS = (1, 2, 3, 4)
MARGINS = (0.25, 0.5, 0.75, 1.0)
LOSSES: dict[str, dict[str, Any]] = {
    "syn-projection": {}, "syn-difference": {}, "vmf": {}, "sampled": {}, "most-informative": {"pool_size": 0},
    "cosine": {}, "cross-entropy": {}, "cross-entropy-tied": {},
}  # fmt: skip
_OF_SETTINGS = ("centring", "learning_rate", "schedule", "units", "preset", "precision")
# The size of the paper, trained like the preset `gru`.
PAPER_SIZE = {"preset": "lstm", "centring": "centred", "learning_rate": 0.001, "schedule": "linear"}
PAPER_SIZE_EPOCHS = 4
# The paper's targets, step size and epochs.  Products in bfloat16 halve the time.
PAPER = {
    "preset": "lstm", "centring": "plain", "learning_rate": 0.0005, "schedule": "constant", "precision": "bfloat16",
}  # fmt: skip
PAPER_EPOCHS, PAPER_SHORT = 20, 4
PAPER_LOSSES = ("syn-projection", "vmf", "cross-entropy", "syn-difference")
# Weights of the length and of the product with the target vector; those of the preceding paper are 0.02 and 0.1.
LENGTH_WEIGHTS, ALIGNMENT_WEIGHTS = (0.0, 0.02, 0.1), (0.1, 0.5, 1.0)
PAPER_MARGINAL = ("syn-projection", "syn-difference")
# The three pairs that are best with the preset `gru`, and the pair of the preceding paper.
PAPER_WEIGHTS = ((0.0, 0.5), (0.02, 0.5), (0.1, 0.5), (0.02, 0.1))
_MARGINAL = ("syn-projection", "syn-difference", "sampled", "most-informative")


@cache
def texts(corpus: str) -> tuple[PhrasePairs, PhrasePairs, dict[bytes, FloatArray]]:
    """Return training pairs, development pairs, and vectors of target words."""
    kind = CORPORA[corpus]
    folder, languages = DATA / kind.folder, (kind.source, kind.target)
    train = [str(folder / f"train.{side}.gz") for side in languages]
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(*train)
    rows = np.arange(0, len(sources), kind.every)
    sources, targets = sources.select(rows), targets.select(rows)
    settings = TranslatorSettings()
    vocabularies = [
        frequent_words(side, symbols.words, settings.min_count, settings.vocabulary_size)
        for side, symbols in ((sources, source_symbols), (targets, target_symbols))
    ]
    pairs = PhrasePairs(
        in_vocabulary(sources, source_symbols.words, vocabularies[0]),
        in_vocabulary(targets, target_symbols.words, vocabularies[1]),
        np.ones(len(sources), np.int64), *vocabularies,
    )  # fmt: skip
    short = np.flatnonzero(np.maximum(pairs.sources.lengths, pairs.targets.lengths) <= settings.max_length)
    pairs = PhrasePairs(
        pairs.sources.select(short), pairs.targets.select(short), pairs.counts[short], *vocabularies
    )  # fmt: skip
    dev_pairs = read_sentence_pairs(*(str(folder / f"dev.{side}") for side in languages))
    development = PhrasePairs(
        in_vocabulary(dev_pairs[0], dev_pairs[2].words, vocabularies[0]),
        in_vocabulary(dev_pairs[1], dev_pairs[3].words, vocabularies[1]),
        np.ones(len(dev_pairs[0]), np.int64), *vocabularies,
    )  # fmt: skip
    vectors_path = WORK / "translators" / f"{kind.folder}.npz"
    if vectors_path.is_file():
        stored = np.load(vectors_path)
        known = dict(zip(stored["words"].tolist(), stored["vectors"], strict=True))
    else:
        lines = unescaped_sentences([train[1], *(str(folder / name) for name in kind.mono)])
        known = train_fasttext(lines, settings.dimension, 1)
        vectors_path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(vectors_path, words=np.array([*known], dtype="S"), vectors=np.stack([*known.values()]))
    return pairs, development, known


def target_vectors(corpus: str, centring: str) -> FloatArray:
    """Return the vectors of target words that translators predict."""
    pairs, _, known = texts(corpus)
    vocabulary = pairs.target_vocabulary
    return target_table(vocabulary, _unescaped(vocabulary.words, known), centring, "mean", 1)


def run(name: str, corpus: str, loss: str, options: dict[str, Any], epochs: int, seed: int, sets: bool = True) -> None:
    """Train and translate, unless the run is stored."""
    if RUNS.record(name) is not None:
        return
    pairs, development, _ = texts(corpus)
    general_options = {key: value for key, value in options.items() if key in _OF_SETTINGS}
    loss_options = {key: value for key, value in options.items() if key not in general_options}
    settings = TranslatorSettings(loss=loss, loss_options=loss_options, epochs=epochs, seed=seed, **general_options)
    table = target_vectors(corpus, settings.centring)
    folder = WORK / "translators" / name
    interrupted = (folder / CHECKPOINT).exists()
    times = _Times(folder.with_name(f"{name}.times"), interrupted)
    model = train_translator(
        pairs,
        development,
        table,
        settings,
        TrainingRun(folder, resume=interrupted, overwrite=not interrupted, on_report=times.report),
    )
    log = [json.loads(line) for line in (folder / LOG).read_text("utf-8").splitlines()]
    shutil.rmtree(folder)
    figures: dict[str, Any] = {
        "corpus": corpus, "loss": loss, "loss_options": dict(settings.loss_options), "centring": settings.centring,
        "epochs": epochs, "seed": seed, "machine": machine(), "cpu_seconds": round(times.seconds),
        "development_losses": [round(report["development_loss"] or 0.0, 5) for report in log],
        "temperature": model.temperature,
    }  # fmt: skip
    statistics = {}
    for test in ("dev", *(CORPORA[corpus].tests if sets else ())):
        hypotheses, repeated = translated(model, corpus, test)
        statistics[test], figures[test] = (
            hypotheses.astype(np.int16),
            {"bleu": bleu(hypotheses), "without repetitions": repeated},
        )
    if sets:
        everything = np.concatenate([statistics[test] for test in CORPORA[corpus].tests])
        figures["ALL"] = {"bleu": bleu(everything)}
        figures["teacher-forced"] = teacher_forced(model, corpus)
        figures["free-running"] = free_running(model, corpus)
        RUNS.run(name).write(everything)
    RUNS.put(name, record=figures)
    times.forget()
    print(name, figures["dev"]["bleu"], figures.get("ALL"), figures["cpu_seconds"], flush=True)


class _Times:
    """CPU seconds of epochs, in a file because training may be interrupted.

    Args:
        path: the file, with a line per epoch.
        continued: whether an existing file belongs to the same training.
    """

    def __init__(self, path: Path, continued: bool) -> None:
        self._path, self._last = path, time.process_time()
        if not continued:
            self.forget()

    def report(self, report: TranslatorReport) -> None:
        now = time.process_time()
        with self._path.open("a") as file:
            file.write(f"{now - self._last}\n")
        self._last = now
        print(report, flush=True)

    @property
    def seconds(self) -> float:
        return sum(map(float, self._path.read_text().split()))

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)


def _unescaped(words: list[bytes], known: dict[bytes, FloatArray]) -> dict[bytes, FloatArray]:
    """Return the vectors with additional keys: words in the escaped form of the corpus."""
    from phrasetool.vocabulary import unescape

    return {**known, **{word: known[unescape(word)] for word in words[1:]}}


def bleu(statistics: Any) -> float:
    """Return BLEU from statistics of sentences."""
    from phrasetool.smt.evaluation.bleu import bleu_of_sums

    return round(float(bleu_of_sums(statistics.astype(np.int64).sum(0)[None])[0]), 2)


def sentences(corpus: str, test: str) -> tuple[list[list[bytes]], list[str]]:
    """Return source sentences as words, and references."""
    kind = CORPORA[corpus]
    lines = [line.encode("utf-8", "surrogateescape").split() for line in _lines(corpus, test, kind.source)]
    return lines, _lines(corpus, test, kind.target)


def _lines(corpus: str, test: str, side: str) -> list[str]:
    return read_text_lines(str(DATA / CORPORA[corpus].folder / f"{test}.{side}"))


def ids(corpus: str, test: str) -> tuple[PhrasePairs, list[list[bytes]], list[str]]:
    """Return a test set as word ids, its source sentences and its references."""
    pairs = texts(corpus)[0]
    sources, references = sentences(corpus, test)
    sides = []
    for lines, vocabulary in (
        (sources, pairs.source_vocabulary), ([line.encode().split() for line in references], pairs.target_vocabulary),
    ):  # fmt: skip
        number = {word: i for i, word in enumerate(vocabulary.words)}
        sides.append(Phrases.from_lists([[number.get(word, 0) for word in line] or [0] for line in lines]))
    vocabularies = pairs.source_vocabulary, pairs.target_vocabulary
    return PhrasePairs(*sides, np.ones(len(sources), np.int64), *vocabularies), sources, references


def translated(model: TranslatorModel, corpus: str, test: str) -> tuple[Any, float]:
    """Return BLEU statistics of greedy translations, and BLEU without immediately repeated words."""
    pairs, sources, references = ids(corpus, test)
    hypotheses = translate(model.network, pairs.sources, model.temperature)
    lines = [
        replace_unknown_words(translation, model.target_vocabulary.words, source, {})
        for translation, source in zip(hypotheses, sources, strict=True)
    ]
    texts_ = [b" ".join(words).decode("utf-8", "replace") for words in lines]
    fewer = [b" ".join(remove_repetitions(words)).decode("utf-8", "replace") for words in lines]
    return sentence_statistics(texts_, references), bleu(sentence_statistics(fewer, references))


def forced_predictions(model: TranslatorModel, corpus: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield predictions for the first test set, given the preceding reference words, and the correct words."""
    pairs, _, _ = ids(corpus, CORPORA[corpus].tests[0])
    with torch.no_grad():
        for first in range(0, len(pairs), 64):
            batch = np.arange(first, min(first + 64, len(pairs)))
            targets = padded_targets(pairs.targets.select(batch), model.network.end)
            predicted = model.network.predict(model.network.encode(pairs.sources.select(batch)), targets)
            yield predicted, targets[targets >= 0]


def teacher_forced(model: TranslatorModel, corpus: str) -> dict[str, float]:
    """Return table 2 for the first test set, given the preceding words of the reference."""
    return _table_2(torch.cat([_compared(model, *both) for both in forced_predictions(model, corpus)]))


def free_running(model: TranslatorModel, corpus: str) -> dict[str, float]:
    """Return table 2 given the preceding words of the translation, by the reference word at the same position."""
    network = model.network
    pairs, _, _ = ids(corpus, CORPORA[corpus].tests[0])
    rows = []
    with torch.no_grad():
        for first in range(0, len(pairs), 64):
            batch = np.arange(first, min(first + 64, len(pairs)))
            targets = padded_targets(pairs.targets.select(batch), network.end)
            encoded = network.encode(pairs.sources.select(batch))
            state, words = network.begin(encoded, targets.shape[1]), torch.full((len(batch),), -1)
            for expected in targets.unbind(1):
                predicted, _ = network.step(encoded, state, words)
                words = (functional.normalize(predicted, dim=1) @ network.targets.T).argmax(1)
                rows.append(_compared(model, predicted[expected >= 0], expected[expected >= 0]))
    return _table_2(torch.cat(rows))


def _compared(model: TranslatorModel, predicted: Any, expected: Any) -> Any:
    """Return the scores of the nearest and of the correct word, and the number of nearer words; shape (T, 3)."""
    network = model.network
    if model.architecture.continuous:
        scores = functional.normalize(predicted, dim=1) @ network.targets.T
    else:
        scores = network.logits(predicted)
    right = scores.gather(1, expected[:, None])
    return torch.stack([scores.amax(1), right[:, 0], (scores > right).sum(1).to(scores.dtype)], 1)


def _table_2(rows: Any) -> dict[str, float]:
    nearest, right, above = rows.double().unbind(1)
    good = above == 0
    accuracies = {f"accuracy@{k}": float((above < k).double().mean()) for k in (1, 2, 5, 10)}
    accuracies["right: cosine with the nearest"] = float(nearest[good].mean())
    accuracies["wrong: cosine with the nearest"] = float(nearest[~good].mean())
    accuracies["wrong: cosine with the target"] = float(right[~good].mean())
    return {name: round(value, 4) for name, value in accuracies.items()}


def margin(loss: str, runs: str = "margin") -> dict[str, float]:
    """Return the margin with the best BLEU on the development set among finished runs.

    Args:
        loss: a loss with a margin.
        runs: prefix of the names of the runs.
    """
    tried = {}
    for value in MARGINS:
        if record := RUNS.record(f"{runs}-{loss}-{value}"):
            tried[value] = record["dev"]["bleu"]
    return {"margin": max(tried, key=lambda value: (tried[value], -value))} if tried else {}


def regularisers(runs: str = "regularisers") -> dict[str, float]:
    """Return the regularisers of `vmf` with the best BLEU on the development set among finished runs.

    Args:
        runs: prefix of the names of the runs.
    """
    tried = {}
    for length, alignment in itertools.product(LENGTH_WEIGHTS, ALIGNMENT_WEIGHTS):
        if record := RUNS.record(f"{runs}-{length}-{alignment}"):
            tried[length, alignment] = record["dev"]["bleu"]
    if not tried:
        return {}
    length, alignment = max(tried, key=lambda pair: tried[pair])
    return {"length_weight": length, "alignment_weight": alignment}


def plan() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the name and the arguments of `run` for all runs."""
    for loss in _MARGINAL:
        for value in MARGINS:
            options = {**LOSSES[loss], "margin": value}
            yield f"margin-{loss}-{value}", ("multi30k-de-en", loss, options, SHORT, 1, False)
    for length, alignment in itertools.product(LENGTH_WEIGHTS, ALIGNMENT_WEIGHTS):
        options = {"length_weight": length, "alignment_weight": alignment}
        yield f"regularisers-{length}-{alignment}", ("multi30k-de-en", "vmf", options, SHORT, 1, False)
    # The slowest losses come last.
    for slow, seed in itertools.product((False, True), SEEDS):
        for loss, options in LOSSES.items():
            if slow == loss.startswith("cross-entropy"):
                yield f"{loss}-{seed}", ("multi30k-de-en", loss, {**options, **margin(loss)}, EPOCHS, seed)
        if not slow:
            random = {**margin("syn-projection"), "centring": "random"}
            yield f"random-{seed}", ("multi30k-de-en", "syn-projection", random, EPOCHS, seed)
            for loss in ("cross-entropy", "cross-entropy-tied"):
                yield f"equal-time-{loss}-{seed}", ("multi30k-de-en", loss, {}, _of_equal_time(loss), seed)
    for seed in SEEDS:
        yield f"vmf-tuned-{seed}", ("multi30k-de-en", "vmf", regularisers(), EPOCHS, seed)
    for corpus in ("multi30k-cs-en", "tatoeba-zh-en"):
        yield f"{corpus}-1", (corpus, "syn-projection", margin("syn-projection"), EPOCHS, 1)
    options = {**margin("syn-projection"), **PAPER_SIZE}
    yield "paper-size-1", ("multi30k-de-en", "syn-projection", options, PAPER_SIZE_EPOCHS, 1)
    yield "third-1", ("multi30k-de-en, a third", "syn-projection", margin("syn-projection"), EPOCHS, 1)
    for loss, value in itertools.product(PAPER_MARGINAL, MARGINS):
        options = {"margin": value, "centring": "plain"}
        yield f"plain-margin-{loss}-{value}", ("multi30k-de-en", loss, options, SHORT, 1, False)
    for loss, value in itertools.product(PAPER_MARGINAL, MARGINS):
        options = {"margin": value, **PAPER}
        yield f"paper-margin-{loss}-{value}", ("multi30k-de-en, a third", loss, options, PAPER_SHORT, 1, False)
    for length, alignment in PAPER_WEIGHTS:
        options = {"length_weight": length, "alignment_weight": alignment, **PAPER}
        name = f"paper-regularisers-{length}-{alignment}"
        yield name, ("multi30k-de-en, a third", "vmf", options, PAPER_SHORT, 1, False)
    for loss in PAPER_LOSSES:
        chosen = _chosen(loss, "paper-")
        # Otherwise the run is equal to one below.
        if chosen != _chosen(loss):
            options = {**chosen, **PAPER}
            yield f"paper-third-tuned-{loss}-1", ("multi30k-de-en, a third", loss, options, PAPER_EPOCHS, 1)
    for name, corpus in (("paper-third", "multi30k-de-en, a third"), ("paper", "multi30k-de-en")):
        for loss in PAPER_LOSSES:
            yield f"{name}-{loss}-1", (corpus, loss, {**_chosen(loss), **PAPER}, PAPER_EPOCHS, 1)


def _chosen(loss: str, prefix: str = "") -> dict[str, float]:
    """Return the options of a loss that are best on the development set in runs with a prefix."""
    if loss == "vmf":
        return regularisers(f"{prefix}regularisers")
    return margin(loss, f"{prefix}margin")


def _of_equal_time(loss: str) -> int:
    """Return the number of epochs with a loss that take the time of syn-projection's.

    Speeds are those of `translator_speed.py` at the vocabulary size nearest to that of the corpus.
    """
    sizes = json.loads((ROOT / "benchmarks" / "results" / "translator_speed.json").read_text())["sizes"]
    return max(1, round(EPOCHS / sizes["6000"][loss]["syn-projection is faster by"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="runs with this in their name")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no run after this many")
    options = parser.parse_args()
    torch.set_num_threads(1)
    end = time.monotonic() + 60 * options.minutes
    for name, arguments in plan():
        if options.only in name and time.monotonic() < end:
            run(name, *arguments)


if __name__ == "__main__":
    main()
