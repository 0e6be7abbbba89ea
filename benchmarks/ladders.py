"""The ladder on six language pairs: what columns, new entries and reranking add to a table, and a tenth with all of it.

For each pair a translator is trained that reranks (cross-entropy, four epochs), then `phrasetool experiment` does what
benchmarks/experiments/ladders/PAIR.toml asks.  Kept for each pair in benchmarks/results/ladders/: the frame, and how
long everything took; and the mean over the pairs in benchmarks/results/ladders.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import COMMAND, ROOT, WORK, report

CONFIGS = ROOT / "benchmarks" / "experiments" / "ladders"
KEPT = ROOT / "benchmarks" / "results" / "ladders"
PAIRS = {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}
TRAINING = (
    "--model", "continuous", "--loss", "cross-entropy", "--epochs", "4", "--dropout", "0.2", "--learning-rate", "0.002",
)  # fmt: skip


def train(config: Path, threads: int) -> None:
    """Train the translator that a configuration names, if it is not there."""
    settings = tomllib.loads(config.read_text())
    folder = config.parent / settings["ladder"]["rerank"]
    if not (folder / "config.json").exists():
        bitext = [str(config.parent / settings["data"]["bitext"][side]) for side in ("source", "target")]
        run("train", *TRAINING, *bitext, "-o", str(folder), "--overwrite", "--threads", str(threads))


def run(*arguments: str) -> None:
    """Run a command of phrasetool."""
    subprocess.run([COMMAND, *arguments], check=True, cwd=ROOT)


def climb(name: str, threads: int) -> None:
    """Do what is not done yet of a pair, and keep what was found."""
    began = time.monotonic()
    folder = WORK / "ladders" / name
    folder.mkdir(parents=True, exist_ok=True)
    train(PAIRS[name], threads)
    run("experiment", str(PAIRS[name]), "--threads", str(threads))
    KEPT.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "ladder.parquet", KEPT / f"{name}.parquet")
    facts = json.loads((folder / "experiment.json").read_text())
    (KEPT / f"{name}.json").write_text(json.dumps({key: facts[key] for key in ("machine", "seconds")}, indent=1) + "\n")
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def summary(name: str) -> dict[str, Any]:
    """The steps of a pair on all its test sets."""
    frame = pd.read_parquet(KEPT / f"{name}.parquet")
    rows = frame[frame.text == "ALL"].drop(columns=["text"]).round(3)
    # No number stands where there is no step below.
    records: list[dict[str, Any]] = json.loads(rows.to_json(orient="records"))
    title = tomllib.loads(PAIRS[name].read_text())["name"]
    return {"name": title, "steps": {record.pop("step"): record for record in records}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=list(PAIRS), metavar="PAIR")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-run", action="store_true", help="only summarise what was kept")
    options = parser.parse_args()
    if unknown := [name for name in options.pairs if name not in PAIRS]:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {', '.join(PAIRS)}")
    for name in options.pairs if not options.no_run else ():
        climb(name, options.threads)
    pairs = {name: summary(name) for name in PAIRS if (KEPT / f"{name}.parquet").exists()}
    steps = dict.fromkeys(step for found in pairs.values() for step in found["steps"])
    means = {}
    for step in steps:
        totals = [found["steps"][step]["total"] for found in pairs.values() if step in found["steps"]]
        if None not in totals:
            means[step] = {"pairs": len(totals), "total": round(sum(totals) / len(totals), 3)}
    report("ladders", {"pairs": pairs, "mean": means})


if __name__ == "__main__":
    main()
