"""Decisions, values and time of filter-pt on a real Moses run on Multi30k German-English.

For a sample of entries, the sentences that contain each side are found with a plain dictionary of n-grams, and the test
is computed by SciPy; decisions must be equal, and -ln p within 1e-6.  `zcat T | gzip -6` is measured together with the
whole command, because machines differ.  Growth of the index is measured on a larger corpus: copies of the small one
with a seventh of the words replaced at random.
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
from measuring import COMMAND, WORK, alternate, reference, report, run, summary
from scipy.stats import hypergeom

THRESHOLDS = ("a+e", "a-e", "20")
TOLERANCE = 1e-6
COPIES = 30
EXCHANGED = 1 / 7


def lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()


def holders(sentences: list[bytes], phrases: set[bytes]) -> dict[bytes, set[int]]:
    """Return the sentences that contain each phrase."""
    sentences_of: dict[bytes, set[int]] = {phrase: set() for phrase in phrases}
    longest = max(len(phrase.split()) for phrase in phrases)
    for number, sentence in enumerate(sentences):
        words = sentence.split()
        for first in range(len(words)):
            for last in range(first + 1, min(first + longest, len(words)) + 1):
                phrase = b" ".join(words[first:last])
                if phrase in sentences_of:
                    sentences_of[phrase].add(number)
    return sentences_of


def check(corpus: list[Path], tested: list[bytes], kept: dict[str, set[bytes]], size: int) -> dict[str, object]:
    """Compare a sample of lines with appended counts and values with a plain count and SciPy."""
    sample = [line.split(b" ||| ") for line in random.Random(1).sample(tested, size)]
    sides = [lines(path) for path in corpus]
    sentences = len(sides[0])
    sentences_by_side = [holders(side, {entry[k] for entry in sample}) for k, side in enumerate(sides)]
    counts = np.array(
        [
            (
                len(sentences_by_side[0][e[0]] & sentences_by_side[1][e[1]]),
                len(sentences_by_side[0][e[0]]),
                len(sentences_by_side[1][e[1]]),
            )
            for e in sample
        ]
    )
    appended_counts = np.array([entry[-2].split() for entry in sample], np.int64)
    exact = -hypergeom.logsf(counts[:, 0] - 1, sentences, counts[:, 1], counts[:, 2])
    values = np.array([float(entry[-1]) for entry in sample])
    # SciPy returns infinity where the sum of probabilities underflows.
    finite = np.isfinite(exact)
    alpha = math.log(sentences)
    limits = {"a+e": alpha + 0.001, "a-e": alpha - 0.001, "20": 20.0}
    decisions = {
        name: sum(
            (b" ||| ".join(entry[:2]) in kept[name]) == bool(value >= limits[name])
            for entry, value in zip(sample, exact, strict=True)
        )
        for name in THRESHOLDS
    }
    return {
        "sample": size,
        "equal_counts": int((counts == appended_counts).all(axis=1).sum()),
        "scipy_finite": int(finite.sum()),
        "largest_difference_of_-ln_p": float(np.abs(values - exact)[finite].max()),
        "within_1e-6": int((np.abs(values - exact)[finite] <= TOLERANCE).sum()),
        "same_decisions": decisions,
    }


def grow(corpus: Path) -> dict[str, object]:
    """Index the corpus and a larger one in this process; return sizes, times and memory."""
    from moses_compat.corpora.texts import read_corpus
    from phrasetool.phrases import Phrases
    from phrasetool.smt.corpus.sentence_index import SentenceIndex
    from phrasetool.smt.corpus.symbols import Symbols

    symbols = Symbols()
    small = read_corpus([str(corpus)], symbols)
    large = Phrases.concatenate([small] * COPIES)
    rng = np.random.default_rng(1)
    exchanged = np.flatnonzero(rng.random(len(large.words)) < EXCHANGED)
    large.words[exchanged] = large.words[rng.integers(0, len(large.words), len(exchanged))]
    times = {}
    for name, sentences in (("small", small), ("large", large)):
        start = time.perf_counter()
        index = SentenceIndex.build(sentences, len(symbols), 2)
        times[name] = {
            "sentences": len(sentences),
            "words": len(sentences.words),
            "seconds": round(time.perf_counter() - start, 3),
            "bytes_a_word": round((index.text.nbytes + index.suffixes.nbytes) / len(sentences.words), 2),
        }
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=10_000)
    options = parser.parse_args()
    folder = reference()
    WORK.mkdir(parents=True, exist_ok=True)
    table, corpus = folder / "phrase-table.gz", [folder.parent / f"train.{language}.gz" for language in ("de", "en")]
    command = [COMMAND, "filter-pt", "-q", "-f", str(corpus[0]), "-e", str(corpus[1]), str(table)]
    index, out = WORK / "sentence-index", WORK / "filtered.gz"
    shutil.rmtree(index, ignore_errors=True)
    run([*command, "-l", "a+e", "-o", str(out)])
    peak = run([*command, "-l", "a+e", "-o", str(out)])[1]
    times = alternate(
        {
            "filter-pt -l a+e": [*command, "-l", "a+e", "-o", str(out)],
            "filter-pt -l a+e, one thread": [*command, "-l", "a+e", "-t", "1", "-o", str(out)],
            "filter-pt -l a+e, index kept": [*command, "-l", "a+e", "--index", str(index), "-o", str(out)],
            "filter-pt -l a-e -c -p": [*command, "-l", "a-e", "-c", "-p", "-o", str(out)],
            "filter-pt -n 30": [COMMAND, "filter-pt", "-q", "-n", "30", str(table), "-o", str(out)],
            "zcat | gzip -6": f"zcat {table} | gzip -6 > /dev/null",
        },
        options.rounds,
    )
    outputs = {
        (threads, size): subprocess.run(
            [*command, "-l", "1", "-n", "30", "-c", "-p", "-t", threads, "--block-bytes", size],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for threads, size in (("1", "2097152"), ("2", "2097152"), ("2", "100000"))
    }
    subprocess.run([*command, "-c", "-p", "-o", str(out)], check=True)
    tested = lines(out)
    kept = {}
    for threshold in THRESHOLDS:
        subprocess.run([*command, "-l", threshold, "-o", str(out)], check=True)
        kept[threshold] = {b" ||| ".join(line.split(b" ||| ")[:2]) for line in lines(out)}
    best = subprocess.run(
        [COMMAND, "filter-pt", "-q", "-n", "30", str(table)], stdout=subprocess.PIPE, check=True
    ).stdout.count(b"\n")
    report(
        "filter_pt",
        {
            "seconds": {name: summary(seconds) for name, seconds in times.items()},
            "peak_mb": round(peak / 2**20),
            "entries": len(tested),
            "kept": {**{f"-l {name}": len(pairs) for name, pairs in kept.items()}, "-n 30": best},
            "same_bytes_whatever_threads_and_blocks": len(set(outputs.values())) == 1,
            "against_scipy": check(corpus, tested, kept, options.sample),
            "index": grow(corpus[0]),
        },
    )


if __name__ == "__main__":
    main()
