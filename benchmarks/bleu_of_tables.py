"""What pruning and annotating do to BLEU: the reference table full, pruned by several methods, and annotated and tuned.

All four test sets, translated with the reference's weights (the annotated table, and the full one beside it, with
weights that `phrasetool tune` finds), cube pruning with a pop limit and stacks of 400.  ALL is the four sets as one;
p is that of a paired bootstrap against the full table.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from measuring import COMMAND, TESTS, WORK, bleu, model, reference, report, run

from phrasetool.smt.evaluation import evaluate

SEARCH = ["--search", "cube", "--pop-limit", "400", "--stack", "400", "-q"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    moses = reference()
    folder = WORK / "bleu"
    folder.mkdir(parents=True, exist_ok=True)
    table, scores = str(moses / "phrase-table.gz"), str(folder / "scores.parquet")
    run([COMMAND, "prune", table, "-m", model(), "--scores", scores, "--sweep", "0.7:0.7:0.1", "-q"])
    tables = {"full": table}
    weights = ["--moses-ini", str(moses / "moses.ini")]
    corpus = ["--corpus", str(moses.parent / "train.de.gz"), str(moses.parent / "train.en.gz")]
    kept: dict[str, int] = {}
    for name, rule in (
        ("threshold 0.7, 10 best of every source", ["--threshold", "0.7"]),
        ("90 %, 10 best of every word", ["--target-size", "0.9", "--protect", "words"]),
        ("50 %, 10 best of every word", ["--target-size", "0.5", "--protect", "words"]),
        ("28 %, 10 best of every word", ["--target-size", "0.28", "--protect", "words"]),
        ("28 %, random", ["--target-size", "0.28", "--protect", "words", "--method", "random"]),
        ("28 %, significance", ["--target-size", "0.28", "--protect", "words", "--method", "significance", *corpus]),
        ("10 %, significance", ["--target-size", "0.1", "--protect", "words", "--method", "significance", *corpus]),
        ("10 %, composition", ["--target-size", "0.1", "--protect", "words", "--method", "composition", *weights]),
        ("10 %, composition+significance",
         ["--target-size", "0.1", "--protect", "words", "--method", "composition+significance", *weights, *corpus]),
        ("28 %, composition+semantic", ["--target-size", "0.28", "--protect", "words", *weights]),
        ("10 %, composition+semantic", ["--target-size", "0.1", "--protect", "words", *weights]),
        ("5 %, composition+semantic, 3 best of every word",
         ["--target-size", "0.05", "--protect", "words", "--keep-top", "3", *weights]),
    ):  # fmt: skip
        tables[name] = str(folder / f"{len(tables)}.gz")
        run([COMMAND, "prune", table, "--scores", scores, *rule, "-o", tables[name], "-q"])
        kept[name] = lines_of(tables[name])
    outputs = {name: translate(folder, f"t{i}", ["--moses-ini", str(moses / "moses.ini"), "--table", path])
               for i, (name, path) in enumerate(tables.items())}  # fmt: skip
    annotated, ini = str(folder / "annotated.gz"), str(folder / "annotated.ini")
    run([COMMAND, "annotate", table, "-m", model(), "-o", annotated, "-q"])
    run([COMMAND, "moses-ini", str(moses / "moses.ini"), "--table", annotated, "-o", ini])
    for name, start in (("full, tuned here", str(moses / "moses.ini")), ("annotated, tuned here", ini)):
        tuned = str(folder / f"{len(outputs)}.tuned.ini")
        which = ["--table", annotated] if "annotated" in name else ["--table", table]
        run([
            COMMAND, "tune", "--moses-ini", start, *which, "--source", str(moses.parent / "dev.de"), "--reference",
            str(moses.parent / "dev.en"), "--seed", str(options.seed), *SEARCH, "-o", tuned,
        ])  # fmt: skip
        outputs[name] = translate(folder, f"t{len(outputs)}", ["--moses-ini", tuned, *which])
    references = {test: (moses.parent / f"{test}.en").read_text().splitlines() for test in TESTS}
    together = [line for test in TESTS for line in references[test]]
    names = list(outputs)
    systems = [[line for test in TESTS for line in outputs[name][test]] for name in names]
    baseline = {"annotated, tuned here": "full, tuned here"}
    figures = {}
    for name, system in zip(names, systems, strict=True):
        base = systems[names.index(baseline.get(name, "full"))]
        results = evaluate([base, system], [together], metrics=["bleu"], samples=1000)[0]
        figures[name] = {
            "entries": kept.get(name, lines_of(table)),
            **{test: bleu(outputs[name][test], references[test]) for test in TESTS},
            "ALL": round(results.systems[1].score, 2),
            "p": None if base is system else results.systems[1].p_value,
        }
    report("bleu_of_tables", {"systems": figures})


def translate(folder: Path, name: str, model_arguments: list[str]) -> dict[str, list[str]]:
    """The translations of all test sets."""
    found = {}
    for test in TESTS:
        output = folder / f"{name}.{test}.en"
        source = str(reference().parent / f"{test}.de")
        run([COMMAND, "decode", *model_arguments, source, "-o", str(output), *SEARCH])
        found[test] = output.read_text().splitlines()
    return found


def lines_of(table: str) -> int:
    with gzip.open(table) as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 24), b""))


if __name__ == "__main__":
    main()
