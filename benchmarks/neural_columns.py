"""Gain in BLEU from columns of neural models, alone and in addition to the six existing columns.

For each language pair, a phrase-based model (the reference run's, or one built and tuned here) is tuned with tables
with the columns

    six             similarities in both directions, smoothed probabilities, probabilities of forced decoding
    six, softmax    the same, with similarities as probabilities among the candidates of a source
    translators     p(target | source) and p(source | target) of translators, trained on the distinct pairs of
                    leave-one-out forced decoding, each once
    syntax          similarity of the syntax of both sides, and the probability of the tags of each given the other
    parallel        probability that both sides are translations, by a classifier trained on the bitext

and with some combinations, from the weights of the ini, with three seeds each.  BLEU statistics of all test sentences
are stored in benchmarks/results/runs/.  Files in the work folder and stored results are not computed again.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from engines import CORPORA, SEARCH, Corpus, command, decoder
from measuring import WORK, report
from stored import StoredRun, StoredStudy

from moses_compat.corpora.texts import read_text_lines
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap, sentence_statistics

RUNS = StoredStudy("neural_columns")
PAIRS = ("multi30k-de-en", "multi30k-cs-en", "tatoeba-zh-en", "pydocs-es-en")
SEEDS = (1, 2, 3)
# System -> the tables whose columns it combines.
SYSTEMS: dict[str, tuple[str, ...]] = {
    "plain": (), "translators": ("translators",), "six": ("six",), "six, translators": ("six", "translators"),
    "six, softmax": ("softmax",), "syntax": ("syntax",), "six, syntax": ("six", "syntax"), "parallel": ("parallel",),
    "six, parallel": ("six", "parallel"),
}  # fmt: skip
COMPARED = (
    ("plain", "translators"), ("plain", "six"), ("plain", "syntax"), ("plain", "parallel"), ("six", "six, translators"),
    ("six", "six, softmax"), ("six", "six, syntax"), ("six", "six, parallel"),
)  # fmt: skip
ITERATIONS = 8


@dataclass(frozen=True)
class Materials:
    """Models and files for the columns of a language pair, created once.

    Attributes:
        corpus: the language pair.
        work: folder of models and files.
        ini: ini of the phrase-based model.
        threads: number of threads of every command.
        syntax: folder of a syntax encoder.
        tagger: folder of a tagger.
    """

    corpus: Corpus
    work: Path
    ini: Path
    threads: str
    syntax: Path
    tagger: Path

    def arguments(self, columns: str) -> list[str | Path]:
        """Return the options of `annotate` for some columns; train missing models."""
        if columns == "syntax":
            languages = f"{self.corpus.source},{self.corpus.target}"
            return ["-m", self.syntax, "--syntax-columns", "all", "--tagger", self.tagger, "--languages", languages]
        if columns == "parallel":
            return ["-m", self.trained("parallel", "--model", "parallel", *self.corpus.train)]
        pairs = self.pairs()
        if columns == "translators":
            turned = self.work / "turned.gz"
            if not turned.exists():
                _turn(pairs, turned)
            trained_on = (("forward", pairs), ("backward", turned))
            return [
                part for name, file in trained_on for part in ("-m", self.trained(name, "--model", "continuous", file))
            ]
        arguments = ["--smoothing", "kneser-ney", "--forced-pairs", pairs, "-m", self.trained("brae", pairs)]
        return [*arguments, "--scale", "softmax"] if columns == "softmax" else arguments

    def pairs(self) -> Path:
        """Return the file of pairs of leave-one-out forced decoding, written if missing."""
        pairs = self.work / "forced.gz"
        if not pairs.exists():
            command(
                "force-decode", "--moses-ini", self.ini, *self.corpus.train, "--leave-one-out", "-o", pairs,
                "--threads", self.threads,
            )  # fmt: skip
        return pairs

    def trained(self, name: str, *arguments: str | Path) -> Path:
        """Return the folder of a model, trained if it is missing."""
        folder = self.work / name
        if not (folder / "config.json").exists():
            command("train", *arguments, "-o", folder, "--threads", self.threads)
        return folder


def _turn(pairs: Path, turned: Path) -> None:
    """Write the pairs with source and target exchanged."""
    lines = []
    for line in read_text_lines(str(pairs)):
        source, target, *rest = line.split(" ||| ")
        lines.append(" ||| ".join([target, source, *rest]) + "\n")
    turned.write_bytes(gzip.compress("".join(lines).encode("utf-8", "surrogateescape")))


def table(name: str, plain: Path, made: Materials) -> Path:
    """Return the ini of a system with its annotated table."""
    if not SYSTEMS[name]:
        return made.ini
    folder = made.work / "tables"
    folder.mkdir(exist_ok=True)
    parts = []
    for columns in SYSTEMS[name]:
        path, output_ini = folder / f"{columns}.gz", folder / f"{columns}.ini"
        if not output_ini.exists():
            column_arguments = made.arguments(columns)
            inis = ["--moses-ini", made.ini, "--moses-ini-out", output_ini]
            command("annotate", plain, *column_arguments, "-o", path, *inis, "--threads", made.threads)
        parts.append(path)
    if len(parts) == 1:
        return output_ini
    path, output_ini = (folder / f"{'-'.join(SYSTEMS[name])}.{end}" for end in ("gz", "ini"))
    if not output_ini.exists():
        _join(parts[0], parts[1], path, _scores(plain))
        command("moses-ini", made.ini, "--table", path, "-o", output_ini)
    return output_ini


def _scores(table: Path) -> int:
    """Return the number of scores of an entry."""
    with gzip.open(table, "rb") as file:
        return len(file.readline().split(b"|||")[2].split())


def _join(first: Path, second: Path, output: Path, scores: int) -> None:
    """Write the first table with the second's columns after the first scores; scoring them again would take long."""
    with (
        gzip.open(first, "rb") as first_lines,
        gzip.open(second, "rb") as second_lines,
        gzip.open(output, "wb", 1) as out,
    ):
        for line, second_line in zip(first_lines, second_lines, strict=True):
            fields, second_fields = line.split(b" ||| "), second_line.split(b" ||| ")
            assert fields[:2] == second_fields[:2]
            fields[2] += b" " + b" ".join(second_fields[2].split()[scores:])
            out.write(b" ||| ".join(fields))


def tune(ini: Path, corpus: Corpus, folder: Path, seed: int, threads: str, run: StoredRun) -> None:
    """Tune a system with a seed, and store BLEU statistics of all test sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    best = folder / "moses.ini"
    if not best.exists():
        command(
            "tune", "--moses-ini", ini, "--dev", corpus.text("dev", corpus.source),
            corpus.text("dev", corpus.target), *SEARCH, "--iterations", str(ITERATIONS), "--seed", str(seed),
            "--threads", threads, "-o", best,
        )  # fmt: skip
    keep_statistics(best, corpus, folder / "test", threads, run)


def keep_statistics(ini: Path, corpus: Corpus, output: Path, threads: str, run: StoredRun) -> None:
    """Decode all test sets to files named after `output` and the set, and store their BLEU statistics."""
    parts = []
    for part in corpus.tests:
        translation = output.with_suffix(f".{part}")
        source = corpus.text(part, corpus.source)
        command("decode", "--moses-ini", ini, *SEARCH, source, "-o", translation, "--threads", threads)
        truth = read_text_lines(corpus.text(part, corpus.target))
        parts.append(sentence_statistics(read_text_lines(str(translation)), truth))
    run.write(np.concatenate(parts))


def stored_run(pair: str, name: str, seed: int) -> StoredRun:
    """Return the stored run of a system tuned with a seed."""
    return RUNS.run(f"{pair}/{name.replace(', ', '-')}-{seed}")


def measure(made: Materials, plain: Path, systems: Sequence[str], seeds: Sequence[int]) -> None:
    """Tune and store the missing systems of a language pair."""
    for seed, name in itertools.product(seeds, systems):
        run = stored_run(made.corpus.name, name, seed)
        if not run.exists():
            folder = made.work / "tuned" / run.name.rpartition("/")[2]
            tune(table(name, plain, made), made.corpus, folder, seed, made.threads, run)
            print(made.corpus.name, name, seed, flush=True)


def figures_of(pair: str) -> dict[str, Any] | None:
    """Return BLEU of the systems of a pair, and differences between those tuned with the same seeds."""
    samples: dict[str, dict[int, BleuSamples]] = {}
    test: Bootstrap | None = None
    for name, seed in itertools.product(SYSTEMS, SEEDS):
        if (run := stored_run(pair, name, seed)).exists():
            statistics = run.read()
            test = test or Bootstrap(len(statistics))
            samples.setdefault(name, {})[seed] = test(statistics)
    differences = {}
    for baseline, system in COMPARED:
        if seeds := sorted(samples.get(baseline, {}).keys() & samples.get(system, {}).keys()):
            both = ([samples[name][seed] for seed in seeds] for name in (baseline, system))
            differences[f"{system} - {baseline}"] = {"seeds": len(seeds), **compared(*both)}
    bleu = {name: [round(by_seed[seed].bleu, 2) for seed in sorted(by_seed)] for name, by_seed in samples.items()}
    return {"BLEU": bleu, "differences": differences} if bleu else None


def compared(one: Sequence[BleuSamples], other: Sequence[BleuSamples]) -> dict[str, Any]:
    """Return mean BLEU over seeds of `other` minus that of `one`.

    The 95 % interval and p are from a paired bootstrap over sentences and seeds.
    """
    baseline, system = BleuSamples.mean_of(one), BleuSamples.mean_of(other)
    low, high = system.difference_interval(baseline)
    return {
        "difference": round(system.bleu - baseline.bleu, 2), "interval": [round(low, 2), round(high, 2)],
        "p": round(system.p_value(baseline), 4),
    }  # fmt: skip


def main() -> None:
    """Measure the missing systems, and print and store the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "reranking")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS[:3]), choices=PAIRS)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS)[:5], choices=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), choices=SEEDS)
    parser.add_argument("--syntax", type=Path, default=WORK / "syntax" / "default-1")
    parser.add_argument("--tagger", type=Path, default=WORK / "tagger" / "model")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    for pair in options.pairs:
        corpus, work = CORPORA[pair], options.work / pair
        work.mkdir(parents=True, exist_ok=True)
        ini, plain = decoder(corpus, work, options.threads)
        materials = Materials(corpus, work, ini, options.threads, options.syntax, options.tagger)
        measure(materials, plain, options.systems, options.seeds)
        figures = {name: pair_figures for name in PAIRS if (pair_figures := figures_of(name)) is not None}
        report("neural_columns", {"iterations": ITERATIONS, "pairs": figures})


if __name__ == "__main__":
    main()
