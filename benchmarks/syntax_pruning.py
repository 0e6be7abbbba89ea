"""Gain from a syntax encoder for pruning: tables of four sizes, with and without it, with one set of weights.

Each language pair has a phrase-based model (the reference run's, or one built and tuned here), and semantic
similarities from a model trained on leave-one-out forced decoding.  With `count+syntax*0.01`, syntax only decides among
entries of equal counts; the controls have a random or a semantic criterion in its place.  BLEU statistics of all test
sentences are stored for finished tables in benchmarks/results/syntax_pruning/, and differences are tested by a paired
bootstrap.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
from pathlib import Path
from typing import Any

from engines import CORPORA, command, decoder
from measuring import WORK, report
from neural_columns import Materials, compared, keep_statistics
from stored import StoredRun, StoredStudy

from moses_compat.experiments.compared_tables import TableDecisions
from moses_compat.experiments.settings import AFFORDABLE, PruningSystem
from moses_compat.jobs.prune_ranking import measured_table
from moses_compat.jobs.prune_request import PruneRequest
from moses_compat.tables.blocks import TableScan
from phrasetool.pruning.measures import Measures
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap
from phrasetool.watch import SILENT

RUNS = StoredStudy("syntax_pruning")
PAIRS = ("multi30k-de-en", "tatoeba-zh-en", "pydocs-es-en")
SIZES = ("28%", "15%", "10%", "5%")
# Method with syntax -> methods that it is compared with.
AGAINST = {
    "syntax": ("random", "semantic"),
    "composition+syntax": ("composition", "composition+semantic"),
    "composition+count+syntax": ("composition+count", "composition+count+semantic"),
    "composition+count+semantic+syntax": ("composition+count+semantic",),
    "count+syntax*0.01": ("count", "count+random*0.01", "count+semantic*0.01"),
}
# Requires the measures of all other methods.
WIDEST = "composition+count+semantic+syntax"
METHODS = tuple(dict.fromkeys(one for method, others in AGAINST.items() for one in (*others, method)))


def stored_run(pair: str, method: str, size: str) -> StoredRun:
    """Return the stored run of a table."""
    return RUNS.run(f"{pair}/{method.replace('*', 'x')}-{size.rstrip('%')}")


def decode(ini: Path, table: Path, made: Materials, run: StoredRun) -> None:
    """Decode with a table, and store BLEU statistics of all test sentences."""
    table_ini = table.with_suffix(".ini")
    command("moses-ini", ini, "--table", table, "-o", table_ini)
    keep_statistics(table_ini, made.corpus, table, made.threads, run)


def measured(made: Materials, plain: Path) -> Measures:
    """Return the measures of all methods, so that entries are encoded only once."""
    request = PruneRequest(
        str(plain), ini=str(made.ini), method=WIDEST, model_folder=str(made.trained("brae", made.pairs())),
        more_models=(str(made.syntax),), target_size=1.0, scan=TableScan(threads=int(made.threads), force=True),
    )  # fmt: skip
    return measured_table(request, SILENT)[0].whole()


def measure(made: Materials, plain: Path) -> None:
    """Prune and decode missing tables, which are equal to those of `phrasetool prune`."""
    folder, pair = made.work / "pruned", made.corpus.name
    folder.mkdir(exist_ok=True)
    missing = [(method, size) for method in METHODS for size in SIZES if not stored_run(pair, method, size).exists()]
    if not stored_run(pair, "full", "100%").exists():
        decode(made.ini, _copied(plain, folder), made, stored_run(pair, "full", "100%"))
    if not missing:
        return
    lines = gzip.decompress(plain.read_bytes()).splitlines(keepends=True)
    decisions = TableDecisions(measured(made, plain))
    print(pair, "measured", flush=True)
    for method, size in missing:
        run = stored_run(pair, method, size)
        share, table = float(size.rstrip("%")) / 100, folder / f"{run.name.rpartition('/')[2]}.gz"
        system = PruningSystem(method, "", "size", share, "words", AFFORDABLE, seed=1)
        kept = decisions.keep(decisions.with_keep_top(system))
        table.write_bytes(gzip.compress(b"".join(itertools.compress(lines, kept)), 1))
        decode(made.ini, table, made, run)
        print(pair, method, size, flush=True)


def _copied(plain: Path, folder: Path) -> Path:
    """Link the whole table into the folder of the pruned ones; return the link."""
    link = folder / "full.gz"
    if not link.exists():
        link.symlink_to(plain.resolve())
    return link


def figures_of(pair: str) -> dict[str, Any] | None:
    """Return BLEU of the tables of a pair, and differences between methods with and without syntax."""
    if not stored_run(pair, "full", "100%").exists():
        return None
    test: Bootstrap | None = None
    samples: dict[tuple[str, str], BleuSamples] = {}
    for method, size in (("full", "100%"), *((method, size) for method in METHODS for size in SIZES)):
        if (run := stored_run(pair, method, size)).exists():
            statistics = run.read()
            test = test or Bootstrap(len(statistics))
            samples[method, size] = test(statistics)
    differences = {
        size: {
            f"{method} - {baseline}": compared([samples[baseline, size]], [samples[method, size]])
            for method, others in AGAINST.items() for baseline in others
            if (method, size) in samples and (baseline, size) in samples
        }
        for size in SIZES
    }  # fmt: skip
    results = {
        method: {size: round(samples[method, size].bleu, 2) for size in SIZES if (method, size) in samples}
        for method in METHODS
    }
    return {"full": round(samples["full", "100%"].bleu, 2), "BLEU": results, "differences": differences}


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
        results = {name: figures for name in PAIRS if (figures := figures_of(name)) is not None}
        report("syntax_pruning", {"pairs": results})


if __name__ == "__main__":
    main()
