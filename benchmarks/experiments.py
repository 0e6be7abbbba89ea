"""The pruning experiments on six language pairs: `phrasetool experiment` on benchmarks/experiments/*.toml.

Reports are written to benchmarks/work/experiments/PAIR/; the tables that the documents are made of are copied to
benchmarks/results/PAIR/.  Variants, in experiments/variants/, are run where they are named.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
from pathlib import Path

from measuring import COMMAND, ROOT

CONFIGS = ROOT / "benchmarks" / "experiments"
RESULTS = ROOT / "benchmarks" / "results"
PAIRS = {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}
KEPT = ("pruning.parquet", "contests.parquet", "annotation.parquet", "experiment.json")
VARIANTS = {path.stem: path for path in sorted(CONFIGS.glob("variants/*.toml"))}


def folder(name: str) -> Path:
    """Where an experiment works."""
    return ROOT / "benchmarks" / "work" / "experiments" / name


def keep(name: str) -> None:
    """Copy the tables that the documents are made of."""
    there = RESULTS / name
    there.mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        if (folder(name) / file).exists():
            shutil.copy(folder(name) / file, there)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="*", default=list(PAIRS), metavar="EXPERIMENT")
    options = parser.parse_args()
    configs = {**PAIRS, **VARIANTS}
    if unknown := [name for name in options.experiments if name not in configs]:
        parser.error(f"unknown: {', '.join(unknown)}; expected some of {', '.join(configs)}")
    for name in options.experiments:
        began = time.monotonic()
        subprocess.run([COMMAND, "experiment", str(configs[name])], check=True, cwd=ROOT)
        keep(name)
        print(f"{name}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
