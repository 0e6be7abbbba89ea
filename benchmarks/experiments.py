"""The pruning experiments on six language pairs: `phrasetool experiment` on benchmarks/experiments/*.toml.

Each pair's tables and report are kept in benchmarks/results/PAIR/, and a summary of all of them in
benchmarks/results/experiments.json: the full table, the best table of each size with and without meaning (chosen on the
development set, compared on all test sets), and tables that were tuned again.  Variants, in experiments/variants/, are
run where they are named, and kept beside the others.  `result_tables.py` puts all of it into the documents.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import COMMAND, ROOT, report

CONFIGS = ROOT / "benchmarks" / "experiments"
RESULTS = ROOT / "benchmarks" / "results"
PAIRS = {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}
VARIANTS = {path.stem: path for path in sorted(CONFIGS.glob("variants/*.toml"))}


def folder(name: str) -> Path:
    """Where an experiment works."""
    return ROOT / "benchmarks" / "work" / "experiments" / name


def built_model(name: str) -> tuple[str, str, str]:
    """The moses.ini, the phrase table and the saved similarities of an experiment that was run."""
    build = folder(name) / "build"
    ini, table = build / "moses.ini", build / "table.gz"
    if not table.exists():
        moses = ROOT.parent / "shared" / "data" / name / "moses"
        ini, table = moses / "moses.ini", moses / "phrase-table.gz"
    return str(ini), str(table), str(build / "scores-n50.parquet")


def keep(name: str) -> None:
    """Copy what an experiment found."""
    there = RESULTS / name
    there.mkdir(parents=True, exist_ok=True)
    for path in folder(name).iterdir():
        if path.suffix in (".parquet", ".md", ".html", ".svg", ".json"):
            shutil.copy(path, there)


def summary(name: str) -> dict[str, Any]:
    """The figures of a pair, in short."""
    there = RESULTS / name
    table = pd.read_parquet(there / "pruning.parquet")
    rows = table[table.text == "ALL"].set_index("system")
    dev = table[table.text == "dev"].set_index("system").bleu
    full = rows.loc["full"]
    sizes: dict[str, Any] = {}
    for wanted, group in rows[(rows["rule"] == "size") & (rows.protect == "words")].groupby("wanted"):
        best = group.loc[dev[group.index].idxmax()]
        sizes[f"{wanted:g}"] = {
            "method": best.method, "bleu": round(best.bleu, 2), "difference": round(best.difference, 2),
            "p": round(best.p, 3), "entries": int(best.entries), "keep_top": int(best.keep_top),
        }  # fmt: skip
    contests = pd.read_parquet(there / "contests.parquet")
    contests = contests[contests.protect == "words"].round(3).to_dict("records")
    facts = json.loads((there / "experiment.json").read_text())
    found = {
        "full": {"entries": int(full.entries), "bleu": round(full.bleu, 2),
                 "interval": [round(full.low, 2), round(full.high, 2)]},
        "best on the development set": sizes, "contests": contests, "seconds": facts["seconds"],
    }  # fmt: skip
    tuned = there / "annotation.parquet"
    if tuned.exists():
        frame = pd.read_parquet(tuned)
        columns = ["system", "columns", "tuning_seeds", "bleu", "deviation", "difference", "p", "dev_bleu"]
        found["tuned"] = frame[frame.text == "ALL"][columns].round(3).to_dict("records")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", default=list(PAIRS), metavar="EXPERIMENT")
    parser.add_argument("--no-run", action="store_true", help="only summarise benchmarks/results/")
    options = parser.parse_args()
    configs = {**PAIRS, **VARIANTS}
    if unknown := [name for name in options.experiments if name not in configs]:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {', '.join(configs)}")
    for name in options.experiments if not options.no_run else ():
        began = time.monotonic()
        subprocess.run([COMMAND, "experiment", str(configs[name])], check=True, cwd=ROOT)
        keep(name)
        print(f"{name}: {time.monotonic() - began:.0f} s")
    there = [name for name in PAIRS if (RESULTS / name / "pruning.parquet").exists()]
    report("experiments", {"pairs": {name: summary(name) for name in there}})


if __name__ == "__main__":
    main()
