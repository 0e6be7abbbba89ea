"""Waiting times of users: start-up of the command, and the first run of each command after an installation.

    python benchmarks/startup.py                     builds a wheel, installs it in a fresh environment, measures
    python benchmarks/startup.py --only annotate     measures some of the commands

The first run after an installation is without cached files of numba or Python (a new folder for numba's cache, no
bytecode), but the system may have libraries in memory.  The wheel with compiled kernels is compared with the same
installation when numba compiles the kernels as they are called.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from measuring import ROOT, WORK, Usage, report, usage

EXTRAS = "train,tune,parquet"
FOLDER = WORK / "startup"
ROUNDS = 7
BARS = {"help": 0.15, "1,000 lines": 0.4, "first run": 1.3}


def environment() -> Path:
    """Install a wheel of this checkout in a new virtual environment; return its `phrasetool`."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", FOLDER, ROOT]
    subprocess.run(wheel, env={**os.environ, "PHRASETOOL_COMPILE": "1"}, check=True)
    shutil.rmtree(ROOT / "build")
    subprocess.run([sys.executable, "-m", "venv", FOLDER / "venv"], check=True)
    (result,) = FOLDER.glob("*.whl")
    pip, constraints = FOLDER / "venv/bin/pip", ROOT / "constraints.txt"
    subprocess.run([pip, "install", "-q", "-c", constraints, f"{result}[{EXTRAS}]"], check=True)
    return FOLDER / "venv/bin/phrasetool"


def commands() -> dict[str, list[str]]:
    """Return arguments by label, with small inputs from the demo."""
    table, k = "demo/engine/phrase-table.gz", "thousand.gz"
    engine = ["--moses-ini", "demo/engine/moses.ini"]
    size = ["--target-size", "60%", "--protect", "words", "-m", "demo/model", *engine]
    train = ["demo/engine/train.zh", "demo/engine/train.en"]
    return {
        "annotate, 1,000 lines": ["annotate", k, "-m", "demo/model", "-o", "out.gz", "-q"],
        "prune --threshold, 1,000 lines": ["prune", "-t", "0.7", k, "-m", "demo/model", "-o", "out.gz", "-q"],
        "prune --target-size, 1,000 lines": ["prune", *size, k, "-o", "out.gz", "-q"],
        "prune --method count, 1,000 lines": [
            "prune", "--method", "count", "--target-size", "60%", "--protect", "words", k, "-o", "out.gz", "-q",
        ],
        "inspect, 1,000 lines": ["inspect", k, "-q"],
        "prune --target-size": ["prune", *size, table, "-o", "out.gz", "-q"],
        "evaluate-model": ["evaluate-model", "thousand-pairs.txt", "-m", "demo/model", "-q"],
        "extract": ["extract", *train, "demo/engine/aligned.gz", "-o", "out.gz", "-q"],
        "lm": ["lm", train[1], "--order", "3", "-o", "out.gz", "-q"],
        "decode": ["decode", *engine, "demo/engine/test.zh", "-o", "out.txt", "-q"],
        "force-decode": ["force-decode", *engine, *train, "-o", "out.gz", "-q"],
        "tune": [
            "tune", *engine, "--dev", "demo/engine/dev.zh", "demo/engine/dev.en", "-o", "out.ini",
            "--epochs", "2", "-q",
        ],
        "train": ["train", "thousand-pairs.txt", "-o", "out-model", "--epochs", "5", "-q"],
    }  # fmt: skip


def once(command: Path, arguments: list[str], mode: str, cache: Path) -> Usage:
    """Run a command of the environment, with numba's cache in a folder."""
    shutil.rmtree("out-model", ignore_errors=True)
    os.environ |= {"NUMBA_CACHE_DIR": str(cache), "PHRASETOOL_KERNELS": mode}
    return usage([command, *arguments])


def measure(command: Path, label: str, arguments: list[str]) -> dict[str, float]:
    """Return wall seconds of the first run, and medians of warm runs, with compiled kernels and with numba's."""
    row: dict[str, float] = {}
    for name, mode, rounds in (("", "", ROUNDS), (" by numba", "numba", 3)):
        cache = FOLDER / "cache" / label / mode
        first = once(command, arguments, mode, cache)
        warm = [once(command, arguments, mode, cache) for _ in range(rounds)]
        row[f"first{name}"] = round(first.wall, 2)
        row[f"warm{name}"] = round(statistics.median(use.wall for use in warm), 2)
        row[f"CPU{name}"] = round(statistics.median(use.cpu for use in warm), 2)
    row["first / warm"] = round(row["first"] / row["warm"], 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure commands that contain this")
    parser.add_argument("--keep", action="store_true", help="use the environment of the last run")
    options = parser.parse_args()
    command = FOLDER / "venv/bin/phrasetool" if options.keep else environment()
    shutil.rmtree(FOLDER / "cache", ignore_errors=True)
    size = int(subprocess.run(["du", "-sm", FOLDER / "venv"], capture_output=True, check=True).stdout.split()[0])
    os.chdir(FOLDER)
    subprocess.run([command, "demo", "demo", "--files"], check=True, stdout=subprocess.DEVNULL)
    with gzip.open("demo/engine/phrase-table.gz", "rt") as table:
        lines = [next(table) for _ in range(1000)]
    with gzip.open("thousand.gz", "wt") as file:
        file.writelines(lines)
    Path("thousand-pairs.txt").write_text("".join(" ||| ".join(line.split(" ||| ")[:2]) + "\n" for line in lines))
    rows = {
        label: measure(command, label, arguments) for label, arguments in commands().items() if options.only in label
    }
    started = {name: [usage([command, name]).wall for _ in range(15)] for name in ("--help", "--version")}
    figures = {
        "megabytes with " + EXTRAS: size,
        "start, s": {name: round(statistics.median(values), 3) for name, values in started.items()},
        "commands, s": rows,
        "bars": BARS,
    }
    report("startup" if not options.only else "startup-some", figures)


if __name__ == "__main__":
    main()
