"""Annotating the reference table on a GPU, compared with two CPU threads: seconds, and differences in similarity.

Models are BRAE with 50 and 200 dimensions and mean-max with 512; the larger models are trained briefly, from random
word vectors.  The benchmark requires a GPU that torch can use, and exits with an error without one.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import COMMAND, WORK, alternate, compile_kernels, model, reference, report, summary

BAR = 1e-5
TRAINING = ("--vectors", "random", "--epochs", "3", "-q")
# Models that are trained here, in addition to the model with 50 dimensions.
LARGER = {"rae, n = 200": ("--dimension", "200"), "mean-max, n = 512": ("--architecture", "mean-max")}
DEVICES = ("cpu", "cuda")


def similarities(path: str) -> np.ndarray:
    """Return the last two scores of all entries, float64, shape (N, 2)."""
    with gzip.open(path, "rb") as file:
        return np.array([line.split(b" ||| ")[2].split()[-2:] for line in file], np.float64)


def models() -> dict[str, str]:
    """Return the folders of the models, which are trained once."""
    folders = {"rae, n = 50": model()}
    for name, options in LARGER.items():
        folders[name] = str(WORK / name.replace(", n = ", "-"))
        if not (Path(folders[name]) / "config.json").is_file():
            pairs = str(reference() / "forced-pairs.gz")
            subprocess.run([COMMAND, "train", pairs, *options, *TRAINING, "-o", folders[name]], check=True)
    return folders


def measure(folder: str, table: str, rounds: int) -> dict[str, Any]:
    """Return the seconds of both devices, and the differences between their similarities."""
    outputs = {device: str(WORK / f"scored-{device}.gz") for device in DEVICES}
    options = ["-m", folder, "--scale", "raw", "--threads", "2", "-q"]
    times = alternate({
        device: [COMMAND, "annotate", table, *options, "--device", device, "-o", output]
        for device, output in outputs.items()
    }, rounds)  # fmt: skip
    columns = [similarities(output) for output in outputs.values()]
    differences = np.abs(columns[0] - columns[1]).max(1)
    return {
        "entries": len(differences),
        "seconds": {device: summary(times[device]) for device in DEVICES},
        "within the bar": float((differences <= BAR).mean()),
        "largest difference": float(differences.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU that torch can use: nothing was measured")
    compile_kernels()
    table = str(reference() / "phrase-table.gz")
    results = {name: measure(folder, table, options.rounds) for name, folder in models().items()}
    report("scoring_device", {
        "gpu": torch.cuda.get_device_name(), "rounds": options.rounds, "bar": BAR, "models": results,
    })  # fmt: skip


if __name__ == "__main__":
    main()
