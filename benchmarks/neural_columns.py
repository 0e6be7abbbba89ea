"""What columns of translators are worth to a decoder: tables with them tuned again, beside the six columns there are.

For each language pair a phrase-based model (the reference run's, or one built and tuned here), a model of similarities,
and a translator a direction, trained on the distinct pairs of leave-one-out forced decoding, each once.  Then the same
table with

    six             similarities both ways, smoothed probabilities, probabilities of forced decoding
    translators     p(target | source) and p(source | target) of the translators
    six, translators
    six, softmax    similarities as probabilities among the candidates of a source, in place of those of `six`

tuned from the weights of the ini with three seeds each.  What is in the work folder already is not made again, nor what
is finished: BLEU statistics of all test sentences, in benchmarks/results/neural_columns/.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import CORPORA, SEARCH, Corpus, command, decoder
from measuring import ROOT, WORK, report

from moses_compat.corpora.texts import read_text_lines
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap, sentence_statistics

KEPT = ROOT / "benchmarks" / "results" / "neural_columns"
PAIRS = ("multi30k-de-en", "multi30k-cs-en", "tatoeba-zh-en")
SEEDS = (1, 2, 3)
SYSTEMS = ("plain", "translators", "six", "six, translators", "six, softmax")
COMPARED = (("plain", "translators"), ("plain", "six"), ("six", "six, translators"), ("six", "six, softmax"))
ITERATIONS = 8


def models(corpus: Corpus, work: Path, ini: Path, threads: str) -> dict[str, Path]:
    """Pairs of forced decoding, a model of similarities and two translators."""
    pairs, turned = work / "forced.gz", work / "turned.gz"
    found = {name: work / name for name in ("brae", "forward", "backward")}
    if not pairs.exists():
        command("force-decode", "--moses-ini", ini, *corpus.train, "--leave-one-out", "-o", pairs, "--threads", threads)
    if not turned.exists():
        _turn(pairs, turned)
    if not found["brae"].exists():
        command("train", pairs, "-o", found["brae"], "--threads", threads)
    for name, file in (("forward", pairs), ("backward", turned)):
        if not (found[name] / "config.json").exists():
            command("train", "--model", "continuous", file, "-o", found[name], "--threads", threads)
    return {**found, "forced": pairs}


def _turn(pairs: Path, turned: Path) -> None:
    """The same pairs with source and target exchanged."""
    lines = []
    for line in read_text_lines(str(pairs)):
        source, target, *rest = line.split(" ||| ")
        lines.append(" ||| ".join([target, source, *rest]) + "\n")
    turned.write_bytes(gzip.compress("".join(lines).encode("utf-8", "surrogateescape")))


def table(name: str, plain: Path, work: Path, made: dict[str, Path], ini: Path, threads: str) -> tuple[Path, Path]:
    """The annotated table of a system, and an ini that names it."""
    if name == "plain":
        return plain, ini
    folder = work / "tables"
    folder.mkdir(exist_ok=True)
    stem = name.replace(", ", "-")
    path, written = folder / f"{stem}.gz", folder / f"{stem}.ini"
    if name == "six, translators":
        if not written.exists():
            _join(*(folder / f"{one}.gz" for one in ("six", "translators")), path, _scores(plain))
            command("moses-ini", ini, "--table", path, "-o", written)
        return path, written
    columns = ["--smoothing", "kneser-ney", "--forced-pairs", made["forced"], "-m", made["brae"]]
    translators = ["-m", made["forward"], "-m", made["backward"]]
    given: list[str | Path] = {
        "translators": translators,
        "six": columns,
        "six, softmax": [*columns, "--scale", "softmax"],
    }[name]
    if not written.exists():
        command(
            "annotate", plain, *given, "-o", path, "--moses-ini", ini, "--moses-ini-out", written, "--threads", threads
        )
    return path, written


def _scores(table: Path) -> int:
    """How many scores an entry has."""
    with gzip.open(table, "rb") as file:
        return len(file.readline().split(b"|||")[2].split())


def _join(first: Path, second: Path, output: Path, scores: int) -> None:
    """A table with the columns that both have behind the first scores: translators take long to say the same again."""
    with gzip.open(first, "rb") as one, gzip.open(second, "rb") as other, gzip.open(output, "wb", 1) as out:
        for line, more in zip(one, other, strict=True):
            fields, others = line.split(b" ||| "), more.split(b" ||| ")
            assert fields[:2] == others[:2]
            fields[2] += b" " + b" ".join(others[2].split()[scores:])
            out.write(b" ||| ".join(fields))


def tune(ini: Path, corpus: Corpus, folder: Path, seed: int, threads: str, kept: Path) -> None:
    """Keep BLEU statistics of all test sentences of a system tuned with a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    best = folder / "moses.ini"
    if not best.exists():
        command(
            "tune", "--moses-ini", ini, "--source", corpus.text("dev", corpus.source), "-r",
            corpus.text("dev", corpus.target), *SEARCH, "--iterations", str(ITERATIONS), "--seed", str(seed),
            "--threads", threads, "-o", best,
        )  # fmt: skip
    parts = []
    for part in corpus.tests:
        output = folder / f"{part}.txt"
        source = corpus.text(part, corpus.source)
        command("decode", "--moses-ini", best, *SEARCH, source, "-o", output, "--threads", threads)
        truth = read_text_lines(corpus.text(part, corpus.target))
        parts.append(sentence_statistics(read_text_lines(str(output)), truth))
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(kept, ALL=np.concatenate(parts).astype(np.int16))


def kept_of(pair: str, name: str, seed: int) -> Path:
    """The file of a system tuned with a seed."""
    return KEPT / pair / f"{name.replace(', ', '-')}-{seed}.npz"


def measure(pair: str, work: Path, seeds: Sequence[int], threads: str) -> None:
    """Tune and keep what is missing of a language pair."""
    todo = [(name, seed) for seed in seeds for name in SYSTEMS if not kept_of(pair, name, seed).exists()]
    if not todo:
        return
    corpus = CORPORA[pair]
    work.mkdir(parents=True, exist_ok=True)
    ini, plain = decoder(corpus, work, threads)
    made = models(corpus, work, ini, threads)
    for name, seed in todo:
        _, written = table(name, plain, work, made, ini, threads)
        folder = work / "tuned" / f"{name.replace(', ', '-')}-{seed}"
        tune(written, corpus, folder, seed, threads, kept_of(pair, name, seed))
        print(pair, name, seed, flush=True)


def figures_of(pair: str) -> dict[str, Any] | None:
    """BLEU and differences of the systems of a pair, of the seeds that all of them have."""
    seeds = [seed for seed in SEEDS if all(kept_of(pair, name, seed).exists() for name in SYSTEMS)]
    if not seeds:
        return None
    statistics = {
        name: [np.load(kept_of(pair, name, seed))["ALL"].astype(np.int64) for seed in seeds] for name in SYSTEMS
    }
    test = Bootstrap(len(statistics["plain"][0]))
    samples = {name: [test(found) for found in runs] for name, runs in statistics.items()}
    return {
        "seeds": len(seeds),
        "BLEU": {name: [round(sample.bleu, 2) for sample in found] for name, found in samples.items()},
        "differences": {f"{b} - {a}": compared(samples[a], samples[b]) for a, b in COMPARED},
    }


def compared(one: Sequence[BleuSamples], other: Sequence[BleuSamples]) -> dict[str, Any]:
    """Mean BLEU over seeds of one less that of the other: with 95 % interval and p of a paired bootstrap."""
    mean = [
        BleuSamples(float(np.mean([run.bleu for run in runs])), np.mean([run.samples for run in runs], 0))
        for runs in (one, other)
    ]
    difference = BleuSamples(mean[1].bleu - mean[0].bleu, mean[1].samples - mean[0].samples)
    low, high = difference.interval
    return {
        "difference": round(difference.bleu, 2), "interval": [round(low, 2), round(high, 2)],
        "p": round(mean[1].p_value(mean[0]), 4),
    }  # fmt: skip


def main() -> None:
    """Make what is missing, measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "reranking")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=PAIRS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), choices=SEEDS)
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    for pair in options.pairs:
        measure(pair, options.work / pair, options.seeds, options.threads)
        figures = {name: found for name in PAIRS if (found := figures_of(name)) is not None}
        report("neural_columns", {"iterations": ITERATIONS, "pairs": figures})


if __name__ == "__main__":
    main()
