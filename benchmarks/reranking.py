"""Gain from reranking n-best lists with neural models or a larger language model: BLEU on all test sets.

For each language pair, 100-best lists of the development set and the test sets are decoded with a phrase-based model
(the reference run's, or one built and tuned here), and reranked as by `phrasetool rerank` with neural models of both
directions after different numbers of epochs.  With --language-model, a 5-gram model of the monolingual English captions
of Multi30k is used in place of neural models; they are five for each training image, of which the bitext has one.
Existing files in the work folder are not computed again; other results in benchmarks/results/reranking.json are kept.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import CORPORA, SEARCH, Corpus, command, decoder
from measuring import DATA, ROOT, WORK, bleu, report

from moses_compat.corpora.texts import read_texts
from moses_compat.engine.n_best import read_n_best
from moses_compat.jobs.rerank import FeaturedList, SourceText, chosen_lines, read_references, tune_weights
from phrasetool.smt.evaluation.bleu import Bootstrap, bleu_statistics, corpus_bleu
from phrasetool.smt.tuning.reranking import first_lines, oracle
from phrasetool.training.data import PhrasePairs, frequent_words, in_vocabulary
from phrasetool.training.loop import CHECKPOINT
from phrasetool.training.run import TrainingRun
from phrasetool.translator.decoding import translate
from phrasetool.translator.model import TranslatorModel
from phrasetool.translator.network import target_table
from phrasetool.translator.settings import TranslatorSettings
from phrasetool.translator.training import train_translator

N_BEST = 100
DIRECTIONS = ("forward", "backward")
SETTINGS = {"dropout": 0.2, "learning_rate": 0.002, "schedule": "linear"}


def n_best(corpus: Corpus, work: Path, threads: str) -> dict[str, Path]:
    """Return the n-best lists of the development set and the test sets, decoded if missing."""
    ini, _ = decoder(corpus, work, threads)
    lists = {part: work / f"{part}.nbest.gz" for part in ("dev", *corpus.tests)}
    for part, path in lists.items():
        if not path.exists():
            command(
                "decode", "--moses-ini", ini, *SEARCH, corpus.text(part, corpus.source), "-o", work / f"{part}.1best",
                "--n-best-list", path, N_BEST, "--threads", threads,
            )  # fmt: skip
    return lists


def pairs_of(texts: Sequence[str], vocabularies: Sequence[Any] | None, settings: TranslatorSettings) -> PhrasePairs:
    """Read a bitext in the form that the trainer requires."""
    read = [read_texts(path) for path in texts]
    known = vocabularies or [
        frequent_words(phrases, symbols.words, settings.min_count, settings.vocabulary_size)
        for phrases, symbols in read
    ]
    source, target = (
        in_vocabulary(phrases, symbols.words, words) for (phrases, symbols), words in zip(read, known, strict=True)
    )
    return PhrasePairs(source, target, np.ones(len(source), np.int64), known[0], known[1])


def model(
    corpus: Corpus, work: Path, direction: str, epochs: int, loss: str, seed: int
) -> tuple[Path, TranslatorModel]:
    """Return the folder of a model and the model, trained if it is missing."""
    folder = work / "models" / f"{loss}-{epochs}-{direction}-{seed}"
    if not (folder / "config.json").exists():
        settings = TranslatorSettings.from_options({**SETTINGS, "epochs": epochs}, loss=loss, seed=seed)
        languages = (corpus.source, corpus.target)[:: 1 if direction == "forward" else -1]
        train = pairs_of([corpus.text("train", language) for language in languages], None, settings)
        words = train.source_vocabulary, train.target_vocabulary
        dev = pairs_of([corpus.text("dev", language) for language in languages], words, settings)
        # Output vectors of a softmax are trained, so they start at random.
        rng = np.random.default_rng(seed)
        known = {word: rng.normal(size=settings.dimension).astype(np.float32) for word in words[1].words[1:]}
        table = target_table(words[1], known, "random", "mean", seed)
        began = time.process_time()
        interrupted = (folder / CHECKPOINT).exists()
        train_translator(
            train, dev, table, settings, TrainingRun(folder, resume=interrupted, overwrite=not interrupted)
        )
        (folder / "seconds.json").write_text(json.dumps(round(time.process_time() - began)))
    return folder, TranslatorModel.load(folder)


def own_bleu(corpus: Corpus, made: TranslatorModel, part: str) -> float:
    """Return BLEU of the model's greedy translations."""
    texts, symbols = read_texts(corpus.text(part, corpus.source))
    sources = in_vocabulary(texts, symbols.words, made.source_vocabulary)
    hypotheses = translate(made.network, sources, made.temperature)
    lines = [made.target_vocabulary.phrase(sentence.words).decode() for sentence in hypotheses]
    return bleu(lines, Path(corpus.text(part, corpus.target)).read_text().splitlines())


def rescored(corpus: Corpus, work: Path, lists: dict[str, Path], folders: list[Path], threads: str) -> dict[str, Path]:
    """Return the lists with a column for each model, appended one after the other."""
    (work / "scored").mkdir(exist_ok=True)
    latest = lists
    for folder in folders:
        rescored_lists = {part: work / "scored" / f"{folder.name}.{part}.gz" for part in lists}
        for part, path in rescored_lists.items():
            if not path.exists():
                source = corpus.text(part, corpus.source)
                command("rescore", latest[part], "--source", source, "-m", folder, "-o", path, "--threads", threads)
        latest = rescored_lists
    return latest


def language_model(work: Path) -> tuple[Path, int]:
    """Return a language model of all monolingual English captions outside the test sets, and their number."""
    arpa, text = work / "captions.arpa", work / "captions.en"
    if not arpa.exists():
        folder = DATA / "multi30k-de-en"
        held_out = {line for path in folder.glob("*.en") for line in path.read_bytes().splitlines()}
        captions = gzip.decompress((folder / "mono" / "mono.en.gz").read_bytes()).splitlines()
        text.write_bytes(b"".join(line + b"\n" for line in captions if line not in held_out))
        command("lm", text, "-o", arpa, "--order", 5)
    return arpa, text.read_bytes().count(b"\n")


def with_language_model(corpus: Corpus, work: Path, lists: dict[str, Path]) -> dict[str, Any]:
    """Measure the gain from reranking the lists with the language model."""
    model, sentences = language_model(work.parent)
    scored = {}
    for part, path in lists.items():
        scored[part] = work / f"{part}.lm.nbest.gz"
        command("rescore", path, "--source", corpus.text(part, corpus.source), "--lm", model, "-o", scored[part])
    return {
        "sentences": sentences,
        "language model": {"new": gain(corpus, scored, False), "all": gain(corpus, scored, True)},
    }


def gain(corpus: Corpus, lists: dict[str, Path], together: bool) -> dict[str, Any]:
    """Return BLEU before and after reranking and oracle BLEU, on each test set and on all together."""
    featured = {}
    for part, path in lists.items():
        n_best = read_n_best(str(path))
        text = SourceText.read(corpus.text(part, corpus.source))
        truth = read_references([corpus.text(part, corpus.target)], len(text.sentences), n_best)
        featured[part] = FeaturedList(n_best, n_best.names, n_best.features), truth
    weights = tune_weights(*featured["dev"], {}, 1, together)
    kinds: dict[str, list[Any]] = {"before": [], "after": [], "oracle": []}
    figures: dict[str, Any] = {"dev": weights.origin["development_bleu"]}
    for part in corpus.tests:
        lines, truth = featured[part]
        n_best = lines.n_best
        chosen = {
            "before": first_lines(n_best.sentences),
            "after": chosen_lines(lines, weights.weights),
            "oracle": oracle(n_best.words, n_best.sentences, truth),
        }
        for kind, rows in chosen.items():
            kinds[kind].append(bleu_statistics(n_best.sentences[rows], n_best.words.select(rows), truth))
        figures[part] = {kind: round(corpus_bleu(parts[-1]), 2) for kind, parts in kinds.items()}
    whole = {kind: np.concatenate(parts) for kind, parts in kinds.items()}
    test = Bootstrap(len(whole["before"]))
    samples = {kind: test(rows) for kind, rows in whole.items()}
    figures["ALL"] = {
        **{kind: round(sample.bleu, 2) for kind, sample in samples.items()},
        "difference": round(samples["after"].bleu - samples["before"].bleu, 2),
        "interval": [round(end, 2) for end in samples["after"].difference_interval(samples["before"])],
        "p": round(samples["after"].p_value(samples["before"]), 4),
    }
    figures["weights"] = weights.named()
    return figures


def main() -> None:
    """Measure the requested models, and print and store the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=WORK / "reranking")
    parser.add_argument("--pairs", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--epochs", nargs="+", type=int, default=[1, 2, 4, 8])
    parser.add_argument("--directions", nargs="+", choices=DIRECTIONS, default=list(DIRECTIONS))
    parser.add_argument("--loss", default="cross-entropy")
    parser.add_argument("--language-model", action="store_true", help="in place of neural models")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(int(options.threads))
    kept = ROOT / "benchmarks" / "results" / "reranking.json"
    figures: dict[str, Any] = json.loads(kept.read_text())["pairs"] if kept.exists() else {}
    for name in options.pairs:
        corpus, work = CORPORA[name], options.work / name
        work.mkdir(parents=True, exist_ok=True)
        lists = n_best(corpus, work, options.threads)
        if options.language_model:
            figures.setdefault(name, {})["language model, five captions"] = with_language_model(corpus, work, lists)
            report("reranking", {"n_best": N_BEST, "settings": SETTINGS, "pairs": figures})
            continue
        for epochs in options.epochs:
            folders = []
            row: dict[str, Any] = {}
            for direction in options.directions:
                folder, translator = model(corpus, work, direction, epochs, options.loss, 1)
                folders.append(folder)
                if direction == "forward":
                    row["BLEU of the model"] = {corpus.tests[0]: own_bleu(corpus, translator, corpus.tests[0])}
                scored = rescored(corpus, work, lists, folders, options.threads)
                row[" and ".join(options.directions[: len(folders)])] = {
                    "new": gain(corpus, scored, False),
                    "all": gain(corpus, scored, True),
                }
            figures.setdefault(name, {})[f"{options.loss}, {epochs} epochs"] = row
            report("reranking", {"n_best": N_BEST, "settings": SETTINGS, "pairs": figures})


if __name__ == "__main__":
    main()
