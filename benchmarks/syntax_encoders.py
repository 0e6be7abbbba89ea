"""Do semantic encoders capture syntax?  The counterpart of Table 4 of Liu et al. (2019), with encoders trained here.

The paper compares its encoder with USE, BERT and LASER, pretrained models that are not part of the data.  They are
replaced by encoders of this toolkit, trained on every third English (Chinese) sentence of the bitexts of `syntax.py`:

    autoencoder     gated mean-max autoencoder, 512 components
    bert            BERT trained from scratch, preset `small`; mean of its last layer
    sentence        a folder of sentence-transformers: the BERT of `sentence_encoders.py`, trained contrastively on
                    translations of phrases (English only)

The test sentences are the held-out ones of `syntax.py`, whose encoder is trained on translations of the same text.  One
seed is used.  Existing models in benchmarks/work/syntax-encoders/ are not trained again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, WORK, report
from objectives import split
from sentence_encoders import FOLDER as SENTENCE_ENCODERS
from sentence_encoders import pairs, transformer_folders
from syntax_texts import BITEXTS, bitext, test_files
from syntax_texts import FOLDER as HELD_OUT

from moses_compat.corpora.treebanks import read_tagged_text
from phrasetool.autoencoder.inference import encode_texts
from phrasetool.autoencoder.model import AutoencoderModel
from phrasetool.phrases import FloatArray
from phrasetool.smt.corpus.symbols import read_words
from phrasetool.syntax.evaluation import (
    NO_GROUP,
    edit_distances,
    functional_dissimilarity,
    group_numbers,
    neighbour_accuracies,
)
from phrasetool.text_encoders.encoders import find_text_encoder
from phrasetool.training.data import in_vocabulary
from phrasetool.training.run import CHECKPOINT

FOLDER = WORK / "syntax-encoders"
LANGUAGES = ("en", "zh")
COMPARED = 1000
# Encoders are trained on every third sentence.
EVERY = 3
# Options of training, by encoder.
TRAINING = {
    "autoencoder": [
        "--epochs", "3", "--min-count", "5", "--learning-rate", "0.001", "--batch-size", "16", "--dropout", "0",
    ],
    "bert": ["--epochs", "3"],
}  # fmt: skip


def text(language: str) -> Path:
    """Return a file of every third distinct sentence of a language in the bitexts, written once."""
    path = FOLDER / f"text.{language}"
    if not path.is_file():
        lines: dict[str, None] = {}
        for name in BITEXTS:
            first, source, second, target = bitext(name)
            for side, file in ((first, source), (second, target)):
                if side == language:
                    lines.update(dict.fromkeys(Path(file).read_text("utf-8").split("\n")[:-1]))
        path.write_text("".join(line + "\n" for line in [*lines][::EVERY]), "utf-8")
    return path


def trained(kind: str, language: str, threads: int, precision: str) -> Path:
    """Return the folder of a model, trained if it is missing; interrupted training is resumed."""
    folder = FOLDER / f"{kind}-{language}"
    if not (folder / "config.json").is_file():
        resume = ["--resume"] if (folder / CHECKPOINT).is_file() else []
        options = [*TRAINING[kind], "--precision", precision, "--threads", str(threads), "--device", "cpu"]
        command = [COMMAND, "train", kind, str(text(language)), *options, *resume, "-o", str(folder)]
        subprocess.run(command, check=True)
    return folder


def by_autoencoder(folder: Path) -> Callable[[list[bytes]], FloatArray]:
    """Return a function that encodes sentences with an autoencoder."""
    model = AutoencoderModel.load(folder)

    def encode(sentences: list[bytes]) -> FloatArray:
        texts, words = read_words(sentences)
        return encode_texts(model, in_vocabulary(texts, words, model.vocabulary))

    return encode


def by_folder(folder: str) -> Callable[[list[bytes]], FloatArray]:
    """Return a function that encodes sentences with a folder of transformers or sentence-transformers."""
    encoder = find_text_encoder(folder).load()

    def encode(sentences: list[bytes]) -> FloatArray:
        lines = [sentence.decode() for sentence in sentences]
        return np.concatenate([encoder.encode(lines[i : i + 256], "source") for i in range(0, len(lines), 256)])

    return encode


def quality(encode: Callable[[list[bytes]], FloatArray], language: str) -> dict[str, float]:
    """Measure an encoder as `syntax_quality` measures a syntax encoder, on the same sentences."""
    texts, tags = test_files(language)
    lines, sequences = read_tagged_text(str(tags), str(texts))
    firsts = {line: number for number, line in reversed([*enumerate(lines)])}
    chosen = sorted(firsts.values())
    sentences, kept = [lines[number] for number in chosen], [tuple(sequences[number]) for number in chosen]
    groups = group_numbers(kept)
    inside = np.flatnonzero(groups != NO_GROUP)
    vectors = encode(sentences)
    nearest = neighbour_accuracies(vectors[inside], groups[inside])
    compared = np.sort(np.random.default_rng([1, 1]).permutation(len(sentences))[:COMPARED])
    edits = edit_distances([kept[number] for number in compared.tolist()])
    dissimilarity = functional_dissimilarity(vectors[compared], edits)
    return {
        "nearest_1": nearest[0], "nearest_5": nearest[1], "fd": dissimilarity.fd, "rho": dissimilarity.rho,
        "dimension": vectors.shape[1],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="bfloat16", help="of products in training")
    options = parser.parse_args()
    os.nice(10)
    for folder in FOLDER, HELD_OUT:
        folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for language in LANGUAGES:
        rows = results[language] = {}
        for kind in TRAINING:
            model = trained(kind, language, options.threads, options.precision)
            encode = by_autoencoder(model) if kind == "autoencoder" else by_folder(str(model))
            rows[kind] = quality(encode, language)
            print(language, kind, json.dumps(rows[kind]), flush=True)
        if language == "en":
            SENTENCE_ENCODERS.mkdir(parents=True, exist_ok=True)
            learnt, _ = split("multi30k-de-en")
            rows["sentence"] = quality(by_folder(transformer_folders(pairs(learnt))[1]), language)
            print(language, "sentence", json.dumps(rows["sentence"]), flush=True)
    sentences = {language: text(language).read_bytes().count(b"\n") for language in LANGUAGES}
    report("syntax_encoders", {"languages": results, "training": TRAINING, "sentences": sentences})


if __name__ == "__main__":
    main()
