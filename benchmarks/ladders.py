"""Cumulative ablation on six language pairs: gain of columns, new entries and reranking, for full and pruned tables.

For each pair, a translator for reranking is trained (cross-entropy, four epochs), and `phrasetool experiment` runs
benchmarks/experiments/ladders/PAIR.toml.  Where development and test set are small, the experiment is repeated with
both exchanged (turned/PAIR.toml), and the results on both test sets together are reported as `turned`.
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
# Steps whose tables have names other than `all`.
_TABLES = {"table": "table", "+ columns": "columns"}
TRAINING = (
    "--model", "continuous", "--loss", "cross-entropy", "--epochs", "4", "--dropout", "0.2", "--learning-rate", "0.002",
)  # fmt: skip


def train(config: Path, threads: int) -> None:
    """Train the translator that a configuration names, unless it exists."""
    settings = tomllib.loads(config.read_text())
    folder = config.parent / settings["ladder"]["rerank"]
    if not (folder / "config.json").exists():
        bitext = [str(config.parent / settings["data"]["bitext"][side]) for side in ("source", "target")]
        run("train", *TRAINING, *bitext, "-o", str(folder), "--overwrite", "--threads", str(threads))


def run(*arguments: str) -> None:
    """Run a phrasetool command."""
    subprocess.run([COMMAND, *arguments], check=True, cwd=ROOT)


def climb(config: Path, folder: Path, threads: int) -> None:
    """Run the unfinished steps of a ladder."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    train(config, threads)
    run("experiment", str(config), "--threads", str(threads))
    print(f"{folder.name}: {time.monotonic() - began:.0f} s", flush=True)


def steps_of(name: str, threads: int) -> dict[str, dict[str, Any]]:
    """Run the ladder of a pair, also with exchanged sets if configured; return the steps of each."""
    folder, turned = WORK / "ladders" / name, WORK / "ladders" / f"{name}-turned"
    climb(PAIRS[name], folder, threads)
    seconds = json.loads((folder / "experiment.json").read_text())["seconds"]
    results = {"pairs": {**summary(name, pd.read_parquet(folder / "ladder.parquet")), "seconds": seconds}}
    if name in TURNED:
        climb(TURNED[name], turned, threads)
        results["turned"] = summary(name, both_ways(folder, turned))
    return results


def both_ways(one: Path, other: Path) -> pd.DataFrame:
    """Return the ladder on two test sets together, each tuned on the other."""
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
    """Return the steps of a pair on all its test sets."""
    rows = frame[frame.text == "ALL"].drop(columns=["text"]).round(3)
    # The first step has no gain, so its NaN must become null.
    records: list[dict[str, Any]] = json.loads(rows.to_json(orient="records"))
    title = tomllib.loads(PAIRS[name].read_text())["name"]
    return {"name": title, "steps": {record.pop("step"): record for record in records}}


def means(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mean gain of each step over the pairs with that step."""
    steps = dict.fromkeys(step for ladder in pairs.values() for step in ladder["steps"])
    gains = {}
    for step in steps:
        totals = [ladder["steps"][step]["total"] for ladder in pairs.values() if step in ladder["steps"]]
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
            kind: {pair: stored[kind][pair] for pair in PAIRS if pair in stored[kind]} for kind in ("pairs", "turned")
        }
        report("ladders", {"pairs": ordered["pairs"], "mean": means(ordered["pairs"]), "turned": ordered["turned"]})


if __name__ == "__main__":
    main()
