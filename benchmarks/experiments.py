"""The pruning experiments on six language pairs: `phrasetool experiment` on benchmarks/experiments/*.toml.

Each pair's tables and report are kept in benchmarks/results/PAIR/, and a summary of all of them in
benchmarks/results/experiments.json: the full table, the best table of each size with and without meaning (chosen on the
development set, compared on all test sets), and tables that were tuned again.  Variants, in experiments/variants/, are
run where they are named, and kept beside the others.
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
    """What the README says of a pair."""
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


def markdown() -> str:
    """The README's tables: sizes of the default method beside others; tables that were tuned again."""
    sizes, tuned = [], []
    for name in PAIRS:
        there = RESULTS / name
        if not (there / "pruning.parquet").exists():
            continue
        table = pd.read_parquet(there / "pruning.parquet")
        rows = table[(table.text == "ALL")].set_index(["method", "rule", "wanted", "protect"])
        title = json.loads((there / "experiment.json").read_text())["name"]
        full = rows.loc["full"].iloc[0]
        cells = [f"[{title}](benchmarks/results/{name}/report.md)", f"{full.entries:,}", f"{full.bleu:.2f}"]
        wanted = [("composition+semantic+usage", "size", size, "words") for size in (0.15, 0.1, 0.07, 0.05)]
        others = ("composition+semantic", "composition+usage", "count", "significance", "composition", "random")
        wanted += [(method, "size", 0.1, "words") for method in others]
        wanted += [("semantic", "threshold", 0.7, "all")]
        for key in wanted:
            row = rows.loc[key] if key in rows.index else None
            cells.append("" if row is None else f"{row.bleu:.2f}{mark(row.p)}")
        sizes.append(cells)
        if runs := summary(name).get("tuned"):
            tuned.append([title, *tuned_cells(runs)])
    return "\n".join("| " + " | ".join(row) + " |" for row in (*sizes, [], *tuned))


def encoders() -> str:
    """The README's table of pairs on which mean-max was tried, too: BLEU with the RAE, then with mean-max."""
    wanted = [("semantic", "size", size, "words") for size in (0.28, 0.1)]
    wanted += [("semantic", "threshold", 0.7, "words")]
    wanted += [("count+semantic", "size", 0.1, "words"), ("composition+semantic*2+usage", "size", 0.1, "words")]
    lines = []
    for name in PAIRS:
        there = [RESULTS / name / "pruning.parquet", RESULTS / f"{name}-mean-max" / "pruning.parquet"]
        if not all(path.exists() for path in there):
            continue
        tables = [pd.read_parquet(path) for path in there]
        both = [table[table.text == "ALL"].set_index(["method", "rule", "wanted", "protect"]) for table in tables]
        full = [rows.loc["full"].iloc[0] for rows in both]
        title = json.loads((RESULTS / name / "experiment.json").read_text())["name"]
        cells = [title, " / ".join(f"{row.bleu:.2f}" for row in full)]
        for key in wanted:
            rows = [rows.loc[key] for rows in both]
            shown = [f"{row.bleu:.2f}{mark(row.p)}" for row in rows]
            if key[1] == "threshold":
                shares = (row.entries / whole.entries for row, whole in zip(rows, full, strict=True))
                shown = [f"{bleu} ({share:.0%})" for bleu, share in zip(shown, shares, strict=True)]
            cells.append(" / ".join(shown))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tuned_cells(runs: list[dict[str, Any]]) -> list[str]:
    """The full table tuned, and what columns, pruning and both make of it: BLEU and the difference."""
    there = {(run["system"].endswith(" 10 %"), run["columns"]): run for run in runs}
    every = "kneser-ney+forced+semantic"
    wanted = [(False, columns) for columns in ("", "semantic", "kneser-ney", every)] + [(True, ""), (True, every)]
    cells = []
    for key in wanted:
        run = there.get(key)
        difference = f" ({run['difference']:+.2f}{mark(run['p'])})" if run and run["p"] == run["p"] else ""
        cells.append(f"{run['bleu']:.2f}{difference}" if run else "")
    return cells


def mark(p: float) -> str:
    """One star below 0.05, two below 0.01."""
    return "\\*\\*" if p < 0.01 else "\\*" if p < 0.05 else ""


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
    print(markdown(), encoders(), sep="\n\n")
    report("experiments", {"pairs": {name: summary(name) for name in there}})


if __name__ == "__main__":
    main()
