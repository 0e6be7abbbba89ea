"""The ladder on six language pairs: what columns, new entries and reranking add to a table, and a tenth with all of it.

For each pair a translator is trained that reranks (cross-entropy, four epochs), then `phrasetool experiment` does what
benchmarks/experiments/ladders/PAIR.toml asks.  Where development and test set are small, both are exchanged, too
(turned/PAIR.toml), and the results of both tests together are reported as `turned`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import COMMAND, ROOT, WORK, report

from moses_compat.corpora.texts import read_text_lines
from moses_compat.experiments.results import LadderRuns, Scoreboard, ladder_frame

CONFIGS = ROOT / "benchmarks" / "experiments" / "ladders"
PAIRS = {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}
TURNED = {path.stem: path for path in sorted(CONFIGS.glob("turned/*.toml"))}
# Steps whose tables are not called `all`.
_TABLES = {"table": "table", "+ columns": "columns"}
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


def climb(config: Path, folder: Path, threads: int) -> None:
    """Do what is not done yet of a ladder."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    train(config, threads)
    run("experiment", str(config), "--threads", str(threads))
    print(f"{folder.name}: {time.monotonic() - began:.0f} s", flush=True)


def steps_of(name: str, threads: int) -> dict[str, dict[str, Any]]:
    """Climb the ladder of a pair, turned, too, if it is to be: the steps of each."""
    folder, turned = WORK / "ladders" / name, WORK / "ladders" / f"{name}-turned"
    climb(PAIRS[name], folder, threads)
    seconds = json.loads((folder / "experiment.json").read_text())["seconds"]
    results = {"pairs": {**summary(name, pd.read_parquet(folder / "ladder.parquet")), "seconds": seconds}}
    if name in TURNED:
        climb(TURNED[name], turned, threads)
        results["turned"] = summary(name, both_ways(folder, turned))
    return results


def both_ways(one: Path, other: Path) -> pd.DataFrame:
    """The ladder on two test sets, each tuned on the other: half of all sentences each."""
    folders, runs = {"one": one / "build", "other": other / "build"}, []
    references = {text: read_text_lines(str(folder / "ladder.tests.target")) for text, folder in folders.items()}
    frame = pd.read_parquet(one / "ladder.parquet")
    for row in frame[frame.text == "ALL"].itertuples():
        table = _TABLES.get(row.step, "all") if row.share == 1 else f"pruned-{row.share:g}"
        end = "reranked" if row.step == "+ rerank" or row.step.startswith("all, ") else "tests"
        translations = [
            {text: read_text_lines(str(at / f"ladder-{table}-{seed}.{end}")) for text, at in folders.items()}
            for seed in range(1, row.tuning_seeds + 1)
        ]
        below = "+ augment" if "but rerank" in row.step else None
        runs.append(LadderRuns(row.step, row.entries, row.share, translations, below))
    return ladder_frame(runs, Scoreboard(references))


def summary(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """The steps of a pair on all its test sets."""
    rows = frame[frame.text == "ALL"].drop(columns=["text"]).round(3)
    # The lowest step has no number.
    records: list[dict[str, Any]] = json.loads(rows.to_json(orient="records"))
    title = tomllib.loads(PAIRS[name].read_text())["name"]
    return {"name": title, "steps": {record.pop("step"): record for record in records}}


def means(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Step -> the mean gain over the pairs that have it."""
    steps = dict.fromkeys(step for found in pairs.values() for step in found["steps"])
    gains = {}
    for step in steps:
        totals = [found["steps"][step]["total"] for found in pairs.values() if step in found["steps"]]
        if None not in totals:
            gains[step] = {"pairs": len(totals), "total": round(sum(totals) / len(totals), 3)}
    return gains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=list(PAIRS), metavar="PAIR")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if unknown := [name for name in options.pairs if name not in PAIRS]:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {', '.join(PAIRS)}")
    # Pairs that are not measured now keep their results.
    path = ROOT / "benchmarks" / "results" / "ladders.json"
    stored = json.loads(path.read_text()) if path.exists() else {"pairs": {}, "turned": {}}
    for name in options.pairs:
        for kind, steps in steps_of(name, options.threads).items():
            stored[kind][name] = steps
        ordered = {
            kind: {one: stored[kind][one] for one in PAIRS if one in stored[kind]} for kind in ("pairs", "turned")
        }
        report("ladders", {"pairs": ordered["pairs"], "mean": means(ordered["pairs"]), "turned": ordered["turned"]})


if __name__ == "__main__":
    main()
