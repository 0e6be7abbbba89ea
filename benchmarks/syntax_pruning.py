"""What an encoder of syntax is worth to pruning: tables of four sizes, with and without it, one set of weights.

For each language pair a phrase-based model (the reference run's, or one built and tuned here); similarities of meaning
from a model trained on leave-one-out forced decoding.  `count+syntax*0.01` lets syntax decide among entries of equal
counts alone; chance and meaning in its place stand beside it.  Finished tables are kept as BLEU statistics of all test
sentences in benchmarks/results/syntax_pruning/, and differences are tested by a paired bootstrap.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from engines import CORPORA, command, decoder
from measuring import ROOT, WORK, report
from neural_columns import Materials, compared, keep_statistics

from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap

KEPT = ROOT / "benchmarks" / "results" / "syntax_pruning"
PAIRS = ("multi30k-de-en", "tatoeba-zh-en", "pydocs-es-en")
SIZES = ("28%", "15%", "10%", "5%")
# With syntax -> what it is compared with.
AGAINST = {
    "syntax": ("random", "semantic"),
    "composition+syntax": ("composition", "composition+semantic"),
    "composition+count+syntax": ("composition+count", "composition+count+semantic"),
    "composition+count+semantic+syntax": ("composition+count+semantic",),
    "count+syntax*0.01": ("count", "count+random*0.01", "count+semantic*0.01"),
}
METHODS = tuple(dict.fromkeys(one for method, others in AGAINST.items() for one in (*others, method)))


def kept_of(pair: str, method: str, size: str) -> Path:
    """The file of a table."""
    return KEPT / pair / f"{method.replace('*', 'x')}-{size.rstrip('%')}.npz"


def decode(ini: Path, table: Path, made: Materials, kept: Path) -> None:
    """Keep BLEU statistics of all test sentences."""
    written = table.with_suffix(".ini")
    command("moses-ini", ini, "--table", table, "-o", written)
    keep_statistics(written, made.corpus, table, made.threads, kept)


def measure(made: Materials, plain: Path) -> None:
    """Prune and decode what is missing."""
    folder = made.work / "pruned"
    folder.mkdir(exist_ok=True)
    for size in ("100%", *SIZES):
        for method in METHODS if size in SIZES else ("full",):
            kept = kept_of(made.corpus.name, method, size)
            if kept.exists():
                continue
            table = plain
            if method != "full":
                table = folder / f"{kept.stem}.gz"
                models = ["-m", made.trained("brae", made.pairs())] if "semantic" in method else []
                models += ["-m", made.syntax] if "syntax" in method else []
                command(
                    "prune", plain, *models, "--method", method, "--target-size", size, "--moses-ini", made.ini,
                    "--threads", made.threads, "-o", table,
                )  # fmt: skip
            decode(made.ini, table if method != "full" else _copied(plain, folder), made, kept)
            print(made.corpus.name, method, size, flush=True)


def _copied(plain: Path, folder: Path) -> Path:
    """A name of the whole table beside the pruned ones."""
    there = folder / "full.gz"
    if not there.exists():
        there.symlink_to(plain.resolve())
    return there


def figures_of(pair: str) -> dict[str, Any] | None:
    """BLEU of the tables of a pair, and differences with and without syntax."""
    if not kept_of(pair, "full", "100%").exists():
        return None
    test: Bootstrap | None = None
    samples: dict[tuple[str, str], BleuSamples] = {}
    for method, size in (("full", "100%"), *((method, size) for method in METHODS for size in SIZES)):
        if (path := kept_of(pair, method, size)).exists():
            statistics = np.load(path)["ALL"].astype(np.int64)
            test = test or Bootstrap(len(statistics))
            samples[method, size] = test(statistics)
    differences = {
        size: {
            f"{method} - {other}": compared([samples[other, size]], [samples[method, size]])
            for method, others in AGAINST.items() for other in others
            if (method, size) in samples and (other, size) in samples
        }
        for size in SIZES
    }  # fmt: skip
    found = {
        method: {size: round(samples[method, size].bleu, 2) for size in SIZES if (method, size) in samples}
        for method in METHODS
    }
    return {"full": round(samples["full", "100%"].bleu, 2), "BLEU": found, "differences": differences}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "reranking")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=PAIRS)
    parser.add_argument("--syntax", type=Path, default=WORK / "syntax" / "default-1")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    for pair in options.pairs:
        corpus, work = CORPORA[pair], options.work / pair
        work.mkdir(parents=True, exist_ok=True)
        ini, plain = decoder(corpus, work, options.threads)
        measure(Materials(corpus, work, ini, options.threads, options.syntax, Path()), plain)
        found = {name: figures for name in PAIRS if (figures := figures_of(name)) is not None}
        report("syntax_pruning", {"pairs": found})


if __name__ == "__main__":
    main()
