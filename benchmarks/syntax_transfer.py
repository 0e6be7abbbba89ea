"""Transfer of the syntax encoder to a new language, before and after training on a few of its sentence pairs.

Czech: captions with their English and German, joined by the English sentence, in two sizes; measured on held-out
captions, grouped by the tagger.  French, Portuguese and Indonesian: the pairs of a small parallel treebank (the first
half for the latter two); measured on phrases of four to six words of other treebank sentences, with gold tags.

Requires the models of `syntax.py`.  Existing models are not trained again; the shares of each language and seed are
stored in benchmarks/results/syntax_transfer/ and then need no model.  The difference between two models, as a mean over
seeds, is tested by a paired bootstrap over sentences; p is the share of samples in which it is not above zero.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import COMMAND, report
from stored import StoredStudy
from syntax_texts import (
    FOLDER,
    TAGGER,
    TREEBANK_PAIRS,
    held_out,
    lines,
    test_files,
    test_treebank,
    treebank_pairs,
    treebank_phrases,
)

from moses_compat.corpora.treebanks import read_tagged_text
from phrasetool.kernels.lstm_states import one_blas_thread
from phrasetool.phrases import FloatArray, Int64Array
from phrasetool.syntax.evaluation import NO_GROUP, group_numbers, neighbour_shares
from phrasetool.syntax.model import SyntaxModel

SIZES = {"cs": (2000, 10000), **{language: (TREEBANK_PAIRS[language],) for language in ("fr", "pt", "id")}}
DRAWS = 10_000
RUNS = StoredStudy("syntax_transfer")


def czech(size: int) -> list[tuple[tuple[str, str], list[tuple[str, str]]]]:
    """Return languages and pairs: Czech with English, and with the German of the same English sentence."""
    held_out_texts = {text for text, _ in held_out("cs")}
    german = dict(zip(lines("multi30k-de-en/train.en.gz"), lines("multi30k-de-en/train.de.gz"), strict=True))
    english, texts = lines("multi30k-cs-en/train.en.gz"), lines("multi30k-cs-en/train.cs.gz")
    rows = [
        (text, english_text) for text, english_text in zip(texts, english, strict=True) if text not in held_out_texts
    ][:size]
    return [
        (("cs", "en"), rows),
        (("cs", "de"), [(text, german[english_text]) for text, english_text in rows if english_text in german]),
    ]


def tuned(language: str, size: int, seed: int) -> Path:
    """Return the folder of a seed's model after further training on `size` pairs."""
    start = FOLDER / f"default-{seed}"
    if not size:
        return start
    folder = FOLDER / "transfer" / f"{language}-{size}-{seed}"
    if not (folder / "config.json").is_file():
        folder.parent.mkdir(exist_ok=True)
        arguments: list[str] = []
        pairs = czech(size) if language == "cs" else [((language, "en"), treebank_pairs(language, size))]
        for languages, rows in pairs:
            arguments += ["--bitext"]
            for side, name in enumerate(languages):
                path = FOLDER / "transfer" / f"{'-'.join(languages)}.{size}.{name}"
                path.write_text("".join(row[side] + "\n" for row in rows), "utf-8")
                arguments += [name, str(path)]
        options = ["--tagger", str(TAGGER), "--seed", str(seed), "--epochs", "5", "--threads", "1", "--device", "cpu"]
        command = [COMMAND, "train", "syntax", "--start", str(start), *arguments, *options, "-o", str(folder)]
        subprocess.run([*command, "--overwrite", "-q"], check=True)
    return folder


def measured_texts(language: str) -> tuple[list[bytes], Int64Array, Int64Array | None]:
    """Return texts of groups, the group of each, and for phrases the sentence of each."""
    if language == "cs":
        texts, tags = test_files("cs")
        sentences, sequences = read_tagged_text(str(tags), str(texts))
        groups = group_numbers([tuple(sequence) for sequence in sequences])
        inside = np.flatnonzero(groups != NO_GROUP)
        return [sentences[row] for row in inside.tolist()], groups[inside], None
    phrases = treebank_phrases(test_treebank(language))
    return phrases.texts, group_numbers([tuple(tags) for tags in phrases.tags]), phrases.sentences


def shares(language: str, seed: int) -> dict[int, FloatArray]:
    """Return by number of pairs, for each text, the share of its nearest one and five neighbours in its group."""
    name, sizes = f"{language}-{seed}", (0, *SIZES[language])
    texts, groups, origins = measured_texts(language)
    of_texts = hashlib.sha256(b"\n".join(texts)).hexdigest()
    if not RUNS.arrays(name) or str(RUNS.arrays(name)["texts"]) != of_texts:
        models = {size: SyntaxModel.load(tuned(language, size, seed)) for size in sizes}
        results = {
            f"{size}": neighbour_shares(model.encode(texts), groups, (1, 5), origins, seed)
            for size, model in models.items()
        }
        RUNS.put(name, {"texts": np.array(of_texts), **results})
        print(language, seed, {name: results[name].mean(0).round(3).tolist() for name in results}, flush=True)
    arrays = RUNS.arrays(name)
    return {size: arrays[f"{size}"] for size in sizes}


def not_better(one: list[FloatArray], other: list[FloatArray]) -> float:
    """Return the share of samples in which `other`'s mean share of nearest neighbours is not above that of `one`."""
    difference = np.mean([b[:, 0] - a[:, 0] for a, b in zip(one, other, strict=True)], 0)
    rng = np.random.default_rng(1)
    drawn = [difference[rng.integers(0, len(difference), len(difference))].mean() for _ in range(DRAWS)]
    return float(np.mean(np.array(drawn) <= 0))


def rows(language: str, seeds: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the results for each number of pairs."""
    before: list[FloatArray] | None = None
    known = [shares(language, seed) for seed in seeds]
    for size in known[0]:
        values = [seed_figures[size] for seed_figures in known]
        mean = 100 * np.mean([seed_figures.mean(0) for seed_figures in values], 0)
        row = {"pairs": size, "nearest_1": round(float(mean[0]), 1), "nearest_5": round(float(mean[1]), 1)}
        if before is not None:
            row["p"] = round(not_better(before, values), 4)
        before = values
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    figures: dict[str, Any] = {}
    with one_blas_thread():
        for language in options.languages:
            all_rows = list(rows(language, options.seeds))
            texts, groups, _ = measured_texts(language)
            figures[language] = {"texts": len(texts), "groups": len(np.unique(groups)), "rows": all_rows}
            print(language, json.dumps(figures[language]), flush=True)
    report("syntax_transfer", {"seeds": len(options.seeds), "languages": figures})


if __name__ == "__main__":
    main()
