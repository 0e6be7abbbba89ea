"""What a neural model adds to n-best lists: BLEU of reranked lists on all test sets.

For each language pair: a phrase-based model (the reference run's, or one built and tuned here), 100-best lists of the
development set and the test sets, neural models of both directions after some numbers of epochs, and what
`phrasetool rerank` makes of them.  What is in the work folder already is not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, ROOT, TESTS, WORK, bleu, run

from moses_compat.corpora.texts import read_texts
from phrasetool.models.neural import NeuralModel
from phrasetool.models.storage import load_neural_model
from phrasetool.neural.beam import translate
from phrasetool.neural.target_vectors import target_table
from phrasetool.training.neural.neural_settings import NeuralSettings
from phrasetool.training.neural.neural_trainer import train_neural
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.text_vocabulary import frequent_words, in_vocabulary

DATA = ROOT.parent / "shared" / "data"
N_BEST = 100
SEARCH = ("--search", "cube", "--pop-limit", "400", "--stack", "400")
DIRECTIONS = ("forward", "backward")
SETTINGS = {"dropout": 0.2, "learning_rate": 0.002, "schedule": "linear"}


@dataclass(frozen=True)
class Corpus:
    """A language pair: its folder, its languages and its test sets."""

    name: str
    source: str
    target: str
    tests: tuple[str, ...]

    def text(self, part: str, language: str) -> str:
        """A text of it."""
        path = DATA / self.name / f"{part}.{language}"
        return str(path if path.exists() else f"{path}.gz")


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("multi30k-de-en", "de", "en", TESTS),
        Corpus("multi30k-cs-en", "cs", "en", ("test_2016_flickr", "test_2018_flickr")),
        Corpus("tatoeba-zh-en", "zh", "en", ("test",)),
        Corpus("enja-small", "en", "ja", ("test",)),
    )
}


def command(*arguments: str | Path) -> None:
    """Run a command of phrasetool."""
    run([COMMAND, *map(str, arguments), "-q"])


def decoder(corpus: Corpus, work: Path, threads: str) -> Path:
    """The moses.ini of a tuned phrase-based model."""
    moses = DATA / corpus.name / "moses" / "moses.ini"
    if moses.exists():
        return moses
    folder = work / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    aligned, table, reordering, lm, start, ini = (
        folder / name for name in ("aligned.gz", "table.gz", "reordering.gz", "lm.arpa.gz", "start.ini", "moses.ini")
    )
    train = [corpus.text("train", language) for language in (corpus.source, corpus.target)]
    if not aligned.exists():
        command("align", *train, "-o", aligned)
    if not table.exists():
        command("extract", *train, aligned, "-o", table, "--reordering-table", reordering, "--threads", threads)
    if not lm.exists():
        command("lm", train[1], "--order", "5", "-o", lm)
    if not start.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", start)
    if not ini.exists():
        command(
            "tune", "--moses-ini", start, "--source", corpus.text("dev", corpus.source), "-r",
            corpus.text("dev", corpus.target), *SEARCH, "--iterations", "8", "--threads", threads, "-o", ini,
        )  # fmt: skip
    return ini


def n_best(corpus: Corpus, work: Path, threads: str) -> dict[str, Path]:
    """The lists of the development set and the test sets."""
    ini = decoder(corpus, work, threads)
    lists = {part: work / f"{part}.nbest.gz" for part in ("dev", *corpus.tests)}
    for part, path in lists.items():
        if not path.exists():
            command(
                "decode", "--moses-ini", ini, *SEARCH, corpus.text(part, corpus.source), "-o", work / f"{part}.1best",
                "--n-best-list", path, N_BEST, "--threads", threads,
            )  # fmt: skip
    return lists


def pairs_of(texts: Sequence[str], vocabularies: Sequence[Any] | None, settings: NeuralSettings) -> PhrasePairs:
    """A bitext as the trainer takes it."""
    read = [read_texts(path) for path in texts]
    known = vocabularies or [
        frequent_words(phrases, symbols.words, settings.min_count, settings.vocabulary_size)
        for phrases, symbols in read
    ]
    source, target = (
        in_vocabulary(phrases, symbols.words, words) for (phrases, symbols), words in zip(read, known, strict=True)
    )
    return PhrasePairs(source, target, np.ones(len(source), np.int64), known[0], known[1])


def model(corpus: Corpus, work: Path, direction: str, epochs: int, loss: str, seed: int) -> tuple[Path, NeuralModel]:
    """A trained model; its folder, and the model."""
    folder = work / "models" / f"{loss}-{epochs}-{direction}-{seed}"
    if not (folder / "config.json").exists():
        settings = NeuralSettings.from_options({**SETTINGS, "epochs": epochs}, loss, seed)
        languages = (corpus.source, corpus.target)[:: 1 if direction == "forward" else -1]
        train = pairs_of([corpus.text("train", language) for language in languages], None, settings)
        words = train.source_vocabulary, train.target_vocabulary
        dev = pairs_of([corpus.text("dev", language) for language in languages], words, settings)
        # A softmax learns its vectors: it starts from random ones.
        rng = np.random.default_rng(seed)
        known = {word: rng.normal(size=settings.dimension).astype(np.float32) for word in words[1].words[1:]}
        table = target_table(words[1], known, "random", "mean", seed)
        began = time.process_time()
        train_neural(train, dev, table, settings, folder, overwrite=True)
        (folder / "seconds.json").write_text(json.dumps(round(time.process_time() - began)))
    return folder, load_neural_model(folder)


def own_bleu(corpus: Corpus, made: NeuralModel, part: str) -> float:
    """BLEU of the model's own greedy translations."""
    texts, symbols = read_texts(corpus.text(part, corpus.source))
    sources = in_vocabulary(texts, symbols.words, made.source_vocabulary)
    found = translate(made.network, sources, made.temperature)
    lines = [made.target_vocabulary.phrase(sentence.words).decode() for sentence in found]
    return bleu(lines, Path(corpus.text(part, corpus.target)).read_text().splitlines())


def main() -> None:
    """Make what is missing, measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=WORK / "reranking")
    parser.add_argument("--pairs", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--epochs", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--loss", default="cross-entropy")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--prepare", action="store_true", help="make lists and models only")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(int(options.threads))
    for name in options.pairs:
        corpus, work = CORPORA[name], options.work / name
        work.mkdir(parents=True, exist_ok=True)
        for epochs in options.epochs:
            for direction in DIRECTIONS:
                began = time.time()
                folder, _ = model(corpus, work, direction, epochs, options.loss, 1)
                print(folder, round(time.time() - began), flush=True)
        began = time.time()
        n_best(corpus, work, options.threads)
        print(name, "lists", round(time.time() - began), flush=True)


if __name__ == "__main__":
    main()
