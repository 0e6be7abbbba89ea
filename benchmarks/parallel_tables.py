"""Comparison of sentence-pair classifiers: the tables of Mao et al. (2021), on Japanese and Chinese.

Each classifier is trained with several seeds on one thread.  Wrong targets of the test sets are five random ones per
pair, one by containment per pair, or one of a kind that is not in the training data: words in the middle are missing.
The results are precision, recall and F1 at 0.5 and at the best threshold on the development set.  Finished runs are
stored in benchmarks/results/runs/, one record each, with the outcome for each sentence, so that rows can be compared by
a paired bootstrap over sentences and seeds.  Interrupted training resumes after its last epoch, from
benchmarks/work/parallel/.

`--bert` names folders of models trained by `phrasetool train bert` ("own BERT", which is not mBERT).
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from dropped_clauses import dropped_clauses
from engines import command
from measuring import DATA, WORK, machine
from stored import StoredStudy

from moses_compat.corpora.bitexts import read_parallel_texts
from moses_compat.corpora.texts import read_text_lines
from phrasetool.embeddings.training import train_word2vec
from phrasetool.pair_classifier.labelled_pairs import LabelledPairs, contained_pairs, encoded_logits, random_pairs
from phrasetool.pair_classifier.model import PairClassifierModel, probabilities_of
from phrasetool.pair_classifier.quality import best_quality
from phrasetool.pair_classifier.settings import PairClassifierSettings
from phrasetool.pair_classifier.training import train_pair_classifier
from phrasetool.phrases import DoubleArray, Int64Array
from phrasetool.training.data import TextPairs
from phrasetool.training.run import CHECKPOINT, TrainingRun

RUNS = StoredStudy("parallel_tables")
CORPORA = {"tatoeba-zh-en": ("zh", "en"), "enja-small": ("ja", "en")}
SEEDS = (1, 2, 3)
NEGATIVES = 5
# The paper's network, with sizes and batches that train within minutes on one core.
_PAPER = {
    "characters": 0, "contrast": 0.0, "hidden_words": 0.0, "containment": 0, "length": "none", "batch_size": 128,
    "search_units": 0,
}  # fmt: skip
_BERT = {**_PAPER, "encoder": "bert"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "LSTM": {**_PAPER, "cell": "lstm"},
    "Bi-GRU": {**_PAPER, "cell": "gru"},
    "Bi-LSTM": _PAPER,
    "Bi-LSTM, length": {**_PAPER, "length": "concat"},
    "word2vec": {**_PAPER, "encoder": "word2vec"},
    "own BERT, static, frozen": {**_BERT, "layer": "static"},
    "own BERT, static, tuned": {**_BERT, "layer": "static", "tuned": True},
    "own BERT, contextual, frozen": _BERT,
    "own BERT, contextual, tuned": {**_BERT, "tuned": True},
    "full, frozen": {**_BERT, "length": "concat"},
    "full, tuned": {**_BERT, "length": "concat", "tuned": True},
    "full, static, tuned": {**_BERT, "layer": "static", "length": "concat", "tuned": True},
    "default": {},
    "default, 5 epochs": {"epochs": 5},
    "default, no length": {"length": "none"},
    "default, no containment": {"containment": 0},
    "default, no length, no containment": {"length": "none", "containment": 0},
    "default, no contrast": {"contrast": 0.0},
    # With the paper's sizes, learning rate and number of epochs.
    "preset paper": {"preset": "paper", "length": "none", "epochs": 15},
    "preset paper, length": {"preset": "paper", "epochs": 15},
    **{f"default, {n} negatives": {"epochs": 5, "negatives": n} for n in (1, 2, 10, 20)},
    **{f"default, {share} of the pairs": {"epochs": 5, "pairs": n} for share, n in (("quarter", 4), ("sixteenth", 16))},
}


def texts(corpus: str, part: str) -> TextPairs:
    """Read a part of a corpus."""
    paths = [DATA / corpus / f"{part}.{language}" for language in CORPORA[corpus]]
    return read_parallel_texts(*(str(path if path.exists() else f"{path}.gz") for path in paths))


@cache
def sets(corpus: str, part: str) -> dict[str, LabelledPairs]:
    """Return the labelled pairs of a development or test set, by kind of wrong pairs."""
    pairs = texts(corpus, part)
    return {
        "random": random_pairs(pairs, NEGATIVES, 1), "containment": contained_pairs(pairs, 1),
        "unseen": contained_pairs(pairs, 1, dropped_clauses),
    }  # fmt: skip


# Function from labelled pairs to probabilities, shape (K,).
Scorer = Callable[[LabelledPairs], DoubleArray]


def outcomes(probabilities: DoubleArray, pairs: LabelledPairs, threshold: float) -> Int64Array:
    """Count true positives, false positives and false negatives of each source; int64, shape (N, 3)."""
    predicted = probabilities >= threshold
    kinds = np.stack([predicted & pairs.parallel, predicted & ~pairs.parallel, ~predicted & pairs.parallel])
    counts = [np.bincount(pairs.rows, kind, len(pairs.texts)) for kind in kinds]
    return np.stack(counts, 1).astype(np.int64)


def quality(sums: Int64Array) -> dict[str, float]:
    """Return precision, recall and F1 of all outcomes, in per cent."""
    right, wrong, missed = sums.sum(0).tolist()
    precision, recall = right / max(right + wrong, 1), right / max(right + missed, 1)
    f1 = 2 * right / max(2 * right + wrong + missed, 1)
    return {name: round(100 * value, 2) for name, value in zip("PRF", (precision, recall, f1), strict=True)}


def keep(name: str, corpus: str, seed: int, scorer: Scorer, facts: Mapping[str, Any]) -> None:
    """Measure a classifier on all test sets, and store the results."""
    kept: dict[str, Any] = {}
    figures: dict[str, Any] = {"system": name, "corpus": corpus, "seed": seed, "machine": machine(), **facts}
    threshold = 0.5
    for kind, pairs in sets(corpus, "test").items():
        development = sets(corpus, "dev")[kind]
        # The threshold for random pairs is used for all sets, because users cannot know others.
        if kind == "random":
            threshold = best_quality(scorer(development), development.parallel).threshold
        probabilities = scorer(pairs)
        kept[kind], kept[f"{kind} half"] = (
            outcomes(probabilities, pairs, threshold),
            outcomes(probabilities, pairs, 0.5),
        )
        figures[kind] = {"at 0.5": quality(kept[f"{kind} half"]), "best": quality(kept[kind])}
        figures[kind]["mean p of wrong pairs"] = round(float(probabilities[~pairs.parallel].mean()), 3)
    run_name = _stem(name, corpus, seed)
    RUNS.put(run_name, {kind: sums.astype(np.int8) for kind, sums in kept.items()}, figures)
    print(run_name, *(figures[kind]["best"] for kind in sets(corpus, "test")), flush=True)


def done(name: str, corpus: str, seed: int) -> bool:
    """Return whether a run is stored."""
    return RUNS.record(_stem(name, corpus, seed)) is not None


def _stem(name: str, corpus: str, seed: int) -> str:
    """Return the name of the files of a run."""
    return f"{corpus}-{name.replace(', ', '-').replace(' ', '-')}-{seed}"


def run(name: str, corpus: str, seed: int, folder: str | None, epochs: int, precision: str) -> None:
    """Train and measure a classifier."""
    options = dict(SYSTEMS[name])
    encoder, tuned = options.pop("encoder", "words"), options.pop("tuned", False)
    every = options.pop("pairs", 1)
    if encoder == "bert":
        encoder = f"hf:{folder}"
    options.setdefault("epochs", epochs)
    if tuned and options.get("layer") != "static":
        options["precision"] = precision
    settings = PairClassifierSettings.from_options(options, encoder=encoder, tuned=tuned, seed=seed)
    train = texts(corpus, "train").up_to(settings.max_length)
    train = train.select(np.arange(0, len(train), every)) if every > 1 else train
    work = WORK / "parallel" / _stem(name, corpus, seed)
    work.mkdir(parents=True, exist_ok=True)
    spent = work / "cpu-seconds"
    began = time.process_time() - (float(spent.read_text()) if spent.is_file() else 0)

    def note(_: object) -> None:
        spent.write_text(str(time.process_time() - began))

    resume = (work / "model" / CHECKPOINT).is_file()
    model = train_pair_classifier(
        train,
        texts(corpus, "dev"),
        settings,
        TrainingRun(work / "model", resume=resume, overwrite=not resume, on_report=note),
    )
    log = [json.loads(row) for row in (work / "model" / "training.jsonl").read_text("utf-8").splitlines()]
    facts = {
        "settings": {**settings.as_dict(), "encoder": encoder.partition(":")[0]}, "log": log,
        "cpu_seconds": round(time.process_time() - began), "best_epoch": model.training["best_epoch"],
    }  # fmt: skip
    keep(name, corpus, seed, _scorer(model), facts)
    shutil.rmtree(work)


def _scorer(model: PairClassifierModel) -> Scorer:
    return lambda pairs: probabilities_of(encoded_logits(model.classifier, pairs)[0], model.temperature)


class Features:
    """Features of the linear classifiers: lengths, lexical coverage in both directions, products of mean word vectors.

    The paper does not describe its features.  Lexical probabilities are those of the aligned bitext; a word is covered
    if the other side contains a translation with a probability of at least `LEAST`.
    """

    LEAST = 0.05

    def __init__(self, corpus: str, seed: int) -> None:
        self.train = texts(corpus, "train")
        paths = [str(DATA / corpus / f"train.{language}.gz") for language in CORPORA[corpus]]
        with tempfile.TemporaryDirectory() as work:
            command("align", *paths, "-o", Path(work) / "aligned")
            points = read_text_lines(str(Path(work) / "aligned"))
        counts: list[dict[bytes, Counter[bytes]]] = [defaultdict(Counter), defaultdict(Counter)]
        for pair, line in enumerate(points):
            words = self.words(self.train, pair, self.train.targets[pair])
            for point in line.split():
                s, t = map(int, point.split("-"))
                counts[0][words[0][s]][words[1][t]] += 1
                counts[1][words[1][t]][words[0][s]] += 1
        self.lexicon = [
            {
                word: {
                    translation
                    for translation, n in translation_counts.items()
                    if n >= self.LEAST * translation_counts.total()
                }
                for word, translation_counts in side.items()
            }
            for side in counts
        ]
        self.vectors = []
        for side, known in (
            (self.train.sources, self.train.source_words),
            (self.train.targets, self.train.target_words),
        ):
            self.vectors.append(train_word2vec([[known[i] for i in text] for text in side], 50, seed))
        self.mean, self.deviation = 0.0, 1.0

    @staticmethod
    def words(pairs: TextPairs, source: int, target: Any) -> tuple[list[bytes], list[bytes]]:
        """Return a source and a target as words."""
        return [pairs.source_words[i] for i in pairs.sources[source]], [pairs.target_words[i] for i in target]

    def _vector(self, side: int, words: list[bytes]) -> Any:
        known = [self.vectors[side][word] for word in words if word in self.vectors[side]]
        return np.mean(known, 0) if known else np.zeros(50, np.float32)

    def of(self, pairs: LabelledPairs) -> Any:
        """Return the features of labelled pairs, shape (K, 104)."""
        rows = []
        for row, column in zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True):
            sides = self.words(pairs.texts, row, pairs.targets[column])
            m, n = map(len, sides)
            covered = [
                np.mean([not self.lexicon[s].get(word, set()).isdisjoint(sides[1 - s]) for word in sides[s]])
                for s in range(2)
            ]
            vectors = [self._vector(side, words) for side, words in enumerate(sides)]
            rows.append(
                [np.log(m / n), abs(m - n), *covered, *(vectors[0] * vectors[1]), *np.abs(vectors[0] - vectors[1])]
            )
        return np.array(rows)


def linear(corpus: str, seed: int) -> None:
    """Measure a linear SVM and logistic regression (the paper says linear), the latter also on lengths only."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    if done("SVM", corpus, seed) and done("LR", corpus, seed) and done("length only", corpus, seed):
        return
    features = Features(corpus, seed)
    training_pairs = random_pairs(features.train, NEGATIVES, seed)
    feature_rows = features.of(training_pairs)
    contained = contained_pairs(features.train, seed)
    kept: dict[int, Any] = {}

    def features_of(pairs: LabelledPairs) -> Any:
        return kept.setdefault(id(pairs), features.of(pairs))

    for name, estimator, columns, data, labels in (
        ("SVM", LinearSVC(random_state=seed), slice(None), feature_rows, training_pairs.parallel),
        ("LR", LogisticRegression(max_iter=1000), slice(None), feature_rows, training_pairs.parallel),
        ("length only", LogisticRegression(max_iter=1000), slice(2), features.of(contained)[:, :2], contained.parallel),
    ):
        began = time.process_time()
        fitted = make_pipeline(StandardScaler(), estimator).fit(data[:, columns], labels)

        def scorer(pairs: LabelledPairs, fitted: Any = fitted, columns: slice = columns) -> DoubleArray:
            return probabilities_of(fitted.decision_function(features_of(pairs)[:, columns]))

        keep(name, corpus, seed, scorer, {"cpu_seconds": round(time.process_time() - began)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--only", nargs="+", default=[*SYSTEMS, "linear"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--bert", nargs="+", default=[], help="folders of own BERTs, one for each of the corpora")
    parser.add_argument("--precision", default="float32", help="of the layers of own BERTs while they are tuned")
    parser.add_argument("--epochs", type=int, default=3, help="passes over the pairs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folders = dict(zip(options.corpora, options.bert, strict=False))
    for seed in options.seeds:
        for corpus in options.corpora:
            if "linear" in options.only:
                linear(corpus, seed)
            for name, system in SYSTEMS.items():
                missing = system.get("encoder") == "bert" and corpus not in folders
                if name in options.only and not missing and not done(name, corpus, seed):
                    run(name, corpus, seed, folders.get(corpus), options.epochs, options.precision)


if __name__ == "__main__":
    main()
