"""The syntax encoder, trained on bitexts of five languages: how much syntax do its vectors capture?

Existing files in benchmarks/work/syntax/ are not computed again.  Training takes two hours per seed on a core without
AVX-512.  Three tests compare the encoder with vectors that do not represent syntax:

* groups: held-out sentences grouped by the tagger's sequence of tags; are the nearest neighbours of the same group?
* phrases: the same for phrases of four to six words without punctuation from treebanks, grouped by gold tags; phrases
  of the same sentence are not neighbours;
* distances: do distances of vectors correlate with edit distances of the tags of treebank sentences?  Measured for
  sentences of at least three words, and for those of any length, where many sentences of one or two words are far from
  all others and therefore easy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, machine
from stored import StoredStudy
from syntax_texts import (
    FOLDER,
    GROUPS,
    LEAST_WORDS,
    TAGGER,
    TREEBANK_PAIRS,
    bitexts,
    few_shot_bitexts,
    line,
    numbers,
    quarters,
    test_files,
    test_treebank,
    treebank,
    treebank_phrases,
)

from moses_compat.corpora.treebanks import read_tagged_text
from phrasetool.kernels.lstm_states import one_blas_thread
from phrasetool.syntax.evaluation import syntax_distances, syntax_quality
from phrasetool.syntax.model import SyntaxModel
from phrasetool.training.run import CHECKPOINT

RUNS = StoredStudy("syntax")
# Name of a model -> training options.
KINDS = {
    "default": [], "translations": ["--no-own-language"], "few-shot": ["--epochs", "10"],
    "trial": ["--epochs", "2", "--no-own-language"], "paper": ["--preset", "paper"],
    "paper-quarter": ["--preset", "paper"], "quarter": ["--no-own-language"],
}  # fmt: skip
# Model -> the model from which its training on the small bitexts starts.
STARTS = {"few-shot": "default"}
# Models trained on every fourth pair.
QUARTERS = ("paper-quarter", "quarter")
# Bitexts of the trial, for which earlier figures exist.
TRIAL = ("tatoeba", "captions")
# 1-NN and 5-NN of a first trial, and of the paper, on other data.
BARS = {"en": (75, 62), "zh": (62, 52), "de": (45, 35)}
PAPER = {"en": (97.3, 93.4), "de": (93.5, 86.8), "es": (93.8, 86.2), "zh": (71.3, 61.4)}
PAPER_FD = {"en": 0.153, "de": 0.159, "es": 0.159, "zh": 0.227, "ko": 0.253, "nl": 0.159}
LEAST_RHO = {"en": 0.58}
# Number of treebank sentences for the comparison of any length.
ANY_LENGTH = 1000
PHRASES = ("en", "de", "es", "zh", "ko", "fr", "nl", "cs", "pt", "id")
DISTANCES = {
    "en": "en-test", "nl": "nl-test", "ko": "ko-test", "zh": "pud/zh-pud-simp",
    **{language: f"pud/{language}-pud" for language in ("de", "es", "fr", "cs")},
}  # fmt: skip


def trained(kind: str, seed: int, threads: int) -> Path:
    """Return the folder of a model, trained if it is missing; interrupted training is resumed."""
    folder = FOLDER / f"{kind}-{seed}"
    if not (folder / "config.json").is_file():
        resume = ["--resume"] if (folder / CHECKPOINT).is_file() else []
        options = [
            *KINDS[kind],
            "--tagger",
            str(TAGGER),
            "--seed",
            str(seed),
            "--threads",
            str(threads),
            "--device",
            "cpu",
        ]
        if kind in STARTS:
            texts = [*few_shot_bitexts(), "--start", str(trained(STARTS[kind], seed, threads))]
        elif kind in QUARTERS:
            texts = quarters()
        else:
            texts = bitexts(TRIAL) if kind == "trial" else bitexts()
        command = [COMMAND, "train", "syntax", *texts, *options, *resume, "-o", str(folder)]
        subprocess.run(command, check=True)
    return folder


def groups(model: SyntaxModel, language: str, seed: int) -> dict[str, Any]:
    """Test held-out sentences."""
    texts, tags = test_files(language)
    quality = asdict(syntax_quality(model, *read_tagged_text(str(tags), str(texts)), seed))
    accuracies = 100 * quality["vectors"]["model"]["nearest_1"], 100 * quality["vectors"]["model"]["nearest_5"]
    if language in BARS:
        quality["bar"] = {"values": BARS[language], "holds": all(np.array(accuracies) >= BARS[language])}
    return {**quality, "paper": PAPER.get(language)}


def phrases(model: SyntaxModel, language: str, seed: int) -> dict[str, Any]:
    """Test phrases of a treebank, from a random sample of groups with enough phrases."""
    phrases = treebank_phrases(test_treebank(language))
    quality = asdict(syntax_quality(model, phrases.texts, phrases.tags, seed, origins=phrases.sentences))
    accuracies = quality["vectors"]
    beaten = all(
        accuracies["model"]["nearest_1"] > accuracies[baseline]["nearest_1"] for baseline in ("words", "untrained")
    )
    return {**quality, "all_groups": phrases.all_groups, "all_phrases": phrases.all_phrases, "holds": beaten}


def distances(model: SyntaxModel, language: str, seed: int) -> dict[str, Any]:
    """Test distances between treebank sentences, also by FD as the paper defines it."""
    sentences = [one for one in treebank(DISTANCES[language]) if LEAST_WORDS <= len(one.words) <= 60]
    texts_and_tags = [line(one.words) for one in sentences], [numbers(one.tags) for one in sentences]
    results: dict[str, Any] = {"sentences": len(sentences)}
    results["vectors"] = {name: asdict(one) for name, one in syntax_distances(model, *texts_and_tags, seed).items()}
    # The first sentences, as in a first trial.
    anything = treebank(DISTANCES[language])[:ANY_LENGTH]
    short = [line(one.words) for one in anything], [numbers(one.tags) for one in anything]
    for name, one in syntax_distances(model, *short, seed).items():
        results["vectors"][name]["rho_any_length"] = one.rho
    if language in LEAST_RHO:
        rho = results["vectors"]["model"]["rho_any_length"]
        results["rho_bar"] = {"value": LEAST_RHO[language], "holds": rho >= LEAST_RHO[language]}
    literal = syntax_distances(model, *texts_and_tags, seed, literal=True)
    results["literal_fd"] = {name: one.fd for name, one in literal.items()}
    return {**results, "paper_fd": PAPER_FD.get(language)}


def measured(kind: str, seed: int, threads: int) -> None:
    """Store the missing results of a model, language by language."""
    folder = trained(kind, seed, threads)
    name = f"{kind}-{seed}"
    model = SyntaxModel.load(folder)
    kept = RUNS.record(name) or {}
    if kept.get("signature") != model.signature:
        training = {name: value for name, value in model.training.items() if name not in ("bitexts", "tagger_folder")}
        log = [json.loads(row) for row in (folder / "training.jsonl").read_text("utf-8").splitlines()]
        kept = {
            "benchmark": "syntax",
            "machine": machine(),
            "signature": model.signature,
            "training": training,
            "log": log,
        }
    for test, languages in ((groups, GROUPS), (phrases, PHRASES), (distances, DISTANCES)):
        for language in languages:
            if test is distances and kind in STARTS and language in TREEBANK_PAIRS:
                # The model is trained on these sentences.
                continue
            of_test = kept.setdefault(test.__name__, {})
            if "vectors" not in of_test.get(language, {}):
                of_test[language] = test(model, language, seed)
                RUNS.put(name, record=kept)
                print(test.__name__, language, json.dumps(of_test[language]["vectors"]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=list(KINDS), default="default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="threads for training; the tests use one")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    os.nice(10)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for language in GROUPS:
        test_files(language)
    with one_blas_thread():
        measured(options.kind, options.seed, options.threads)


if __name__ == "__main__":
    main()
