"""What columns of translators are worth to a decoder: tables with them tuned again, beside the six columns there are.

For each language pair a phrase-based model (the reference run's, or one built and tuned here), a model of similarities,
and a translator a direction, trained on the distinct pairs of leave-one-out forced decoding, each once.  Then the same
table with

    six             similarities both ways, smoothed probabilities, probabilities of forced decoding
    translators     p(target | source) and p(source | target) of the translators
    six, translators
    six, softmax    similarities as probabilities among the candidates of a source, in place of those of `six`

tuned from the weights of the ini with three seeds each.  What is in the work folder already is not made again.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import CORPORA, SEARCH, Corpus, command, decoder
from measuring import WORK, report

from moses_compat.corpora.texts import read_text_lines
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap, sentence_statistics

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


def tuned(name: str, ini: Path, corpus: Corpus, work: Path, seed: int, threads: str) -> dict[str, Any]:
    """BLEU statistics of all test sentences, and the weights, of a system tuned with a seed."""
    folder = work / "tuned" / f"{name.replace(', ', '-')}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    best, kept = folder / "moses.ini", folder / "statistics.npz"
    if not best.exists():
        command(
            "tune", "--moses-ini", ini, "--source", corpus.text("dev", corpus.source), "-r",
            corpus.text("dev", corpus.target), *SEARCH, "--iterations", str(ITERATIONS), "--seed", str(seed),
            "--threads", threads, "-o", best,
        )  # fmt: skip
    if not kept.exists():
        parts = []
        for part in corpus.tests:
            output = folder / f"{part}.txt"
            source = corpus.text(part, corpus.source)
            command("decode", "--moses-ini", best, *SEARCH, source, "-o", output, "--threads", threads)
            truth = read_text_lines(corpus.text(part, corpus.target))
            parts.append(sentence_statistics(read_text_lines(str(output)), truth))
        np.savez_compressed(kept, ALL=np.concatenate(parts).astype(np.int16))
    return {"statistics": np.load(kept)["ALL"].astype(np.int64)}


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
    parser.add_argument("--pairs", nargs="+", default=["multi30k-de-en", "multi30k-cs-en", "tatoeba-zh-en"])
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for pair in options.pairs:
        corpus, work = CORPORA[pair], options.work / pair
        work.mkdir(parents=True, exist_ok=True)
        ini, plain = decoder(corpus, work, options.threads)
        made = models(corpus, work, ini, options.threads)
        samples: dict[str, list[BleuSamples]] = {}
        test: Bootstrap | None = None
        for name in SYSTEMS:
            _, written = table(name, plain, work, made, ini, options.threads)
            for seed in SEEDS:
                statistics = tuned(name, written, corpus, work, seed, options.threads)["statistics"]
                test = test or Bootstrap(len(statistics))
                samples.setdefault(name, []).append(test(statistics))
                print(pair, name, seed, round(samples[name][-1].bleu, 2), flush=True)
        figures[pair] = {
            "BLEU": {name: [round(sample.bleu, 2) for sample in found] for name, found in samples.items()},
            "differences": {f"{b} - {a}": compared(samples[a], samples[b]) for a, b in COMPARED},
        }
        (options.work / "neural_columns.json").write_text(json.dumps(figures, indent=2))
    report("neural_columns", {"seeds": len(SEEDS), "iterations": ITERATIONS, "pairs": figures})


if __name__ == "__main__":
    main()
