"""BLEU by distortion limit, for language pairs with similar and with different word order.

    python benchmarks/distortion_limits.py

Each pair has one phrase table, reordering table and 5-gram model.  Weights are tuned for each limit from default
weights, with three seeds; intervals are from a paired bootstrap over seeds and over the sentences of all test sets.
Japanese-English is also measured with the score columns that `annotate` writes by default (smoothed probabilities and
those of forced decoding), to see whether their gain depends on the limit.

BLEU statistics of all test sentences are in benchmarks/results/runs/; finished work is not repeated.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import re
import subprocess
from pathlib import Path
from statistics import mean, median
from typing import Any

from engines import CORPORA, SEARCH, Corpus, command, extracted
from measuring import COMMAND, WORK, report
from neural_columns import compared, tune
from stored import StoredRun, StoredStudy

from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap

RUNS = StoredStudy("distortion_limits")
# Here Japanese is the source language; in `engines.CORPORA` it is the target language.
PAIRS = {
    "Small Tanaka Japanese-English": Corpus("enja-small", "ja", "en", ("test",)),
    "Tatoeba Chinese-English": CORPORA["tatoeba-zh-en"],
    "Multi30k German-English": CORPORA["multi30k-de-en"],
}
DEFAULT = 6
LIMITS = (DEFAULT, 12, -1)
SEEDS = (1, 2, 3)
# Pair -> limits for which the table with additional columns is also tuned.
WITH_COLUMNS = {"Small Tanaka Japanese-English": (DEFAULT, -1)}


def stored_run(corpus: Corpus, system: str, seed: int) -> StoredRun:
    """Return the stored run of a system: a limit, or a limit followed by `+columns`."""
    return RUNS.run(f"{corpus.name}-{corpus.source}/{system}-{seed}")


def start(corpus: Corpus, folder: Path, limit: int, threads: str) -> Path:
    """Return an ini with default weights and a distortion limit."""
    table, reordering = extracted(folder, corpus.train, threads)
    lm, ini = folder / "lm.arpa.gz", folder / f"start.{limit}.ini"
    if not lm.exists():
        command("lm", corpus.train[1], "--order", "5", "-o", lm)
    files = ("--table", table, "--reordering-table", reordering, "--lm", lm)
    command("moses-ini", *files, "--distortion-limit", str(limit), "-o", ini)
    assert re.search(rf"\[distortion-limit\]\n{limit}\n", ini.read_text("utf-8"))
    return ini


def annotated(corpus: Corpus, folder: Path, limit: int, threads: str) -> Path:
    """Return an ini with four additional scores of weight 0; forced decoding uses the same limit."""
    ini, table, pairs = (folder / f"{name}.{limit}.{end}" for name, end in (
        ("columns", "ini"), ("columns", "gz"), ("pairs", "gz")))  # fmt: skip
    if not ini.exists():
        plain = start(corpus, folder, limit, threads)
        command("force-decode", "--moses-ini", plain, *corpus.train, "--leave-one-out", "-o", pairs)
        command(
            "annotate", folder / "table.gz", "--forced-pairs", pairs, "-o", table, "--moses-ini", plain,
            "--moses-ini-out", ini,
        )  # fmt: skip
    return ini


def measure(pair: str, corpus: Corpus, folder: Path, threads: str) -> None:
    """Tune and translate with the missing systems of a pair."""
    inis = {str(limit): functools.partial(start, corpus, folder, limit, threads) for limit in LIMITS}
    for limit in WITH_COLUMNS.get(pair, ()):
        inis[f"{limit}+columns"] = functools.partial(annotated, corpus, folder, limit, threads)
    for seed, (system, ini) in itertools.product(SEEDS, inis.items()):
        run = stored_run(corpus, system, seed)
        if not run.exists():
            tune(ini(), corpus, folder / f"tuned-{system}-{seed}", seed, threads, run)
            print(pair, system, seed, flush=True)


def milliseconds(corpus: Corpus, folder: Path, limit: int) -> float:
    """Return the decoding time per sentence of the first test set on one thread, with the first seed's weights.

    The time is the one that `decode` reports, without loading; the result is the median of three runs.
    """
    ini, source = folder / f"tuned-{limit}-1" / "moses.ini", corpus.text(corpus.tests[0], corpus.source)
    line = [COMMAND, "decode", "--moses-ini", ini, *SEARCH, source, "-o", folder / "timed", "--threads", "1"]
    reports = [subprocess.run(line, check=True, capture_output=True, text=True).stderr for _ in range(3)]
    return median(float(re.findall(r"\(([\d.]+) ms a sentence", report)[0]) for report in reports)


def figures_of(pair: str, corpus: Corpus, folder: Path) -> dict[str, Any] | None:
    """Return BLEU by limit, and the gains over the default limit and of columns; None if a run is missing."""
    samples: dict[str, list[BleuSamples]] = {}
    test: Bootstrap | None = None
    limits = WITH_COLUMNS.get(pair, ())
    systems = [*map(str, LIMITS), *(f"{limit}+columns" for limit in limits)]
    for system, seed in itertools.product(systems, SEEDS):
        if not (run := stored_run(corpus, system, seed)).exists():
            return None
        statistics = run.read()
        test = test or Bootstrap(len(statistics))
        samples.setdefault(system, []).append(test(statistics))
    return {
        "BLEU": {
            name: round(mean(sample.bleu for sample in seed_samples), 2) for name, seed_samples in samples.items()
        },
        "gains": {str(limit): compared(samples[str(DEFAULT)], samples[str(limit)]) for limit in LIMITS[1:]},
        "columns": {str(limit): compared(samples[str(limit)], samples[f"{limit}+columns"]) for limit in limits},
        "milliseconds": {str(limit): milliseconds(corpus, folder, limit) for limit in LIMITS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=PAIRS)
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    figures = {}
    for pair, corpus in PAIRS.items():
        folder = WORK / "distortion" / f"{corpus.name}-{corpus.source}"
        if pair in options.pairs:
            measure(pair, corpus, folder, options.threads)
        if pair_figures := figures_of(pair, corpus, folder):
            figures[pair] = pair_figures
    report("distortion_limits", {"pairs": figures})


if __name__ == "__main__":
    main()
