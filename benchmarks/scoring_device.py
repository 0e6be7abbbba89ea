"""Annotating the reference table on a GPU beside two threads of a CPU: seconds, and how far similarities differ.

Needs a GPU that torch can use; without one it says so and measures nothing.
"""

from __future__ import annotations

import gzip
import sys

import numpy as np
import torch
from measuring import COMMAND, WORK, alternate, compile_kernels, model, reference, report, summary

ROUNDS = 3
BAR = 1e-5


def similarities(path: str) -> np.ndarray:
    """The last two scores of all entries, float64, shape (N, 2)."""
    with gzip.open(path, "rb") as file:
        return np.array([line.split(b" ||| ")[2].split()[-2:] for line in file], np.float64)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("no GPU that torch can use: nothing was measured")
    compile_kernels()
    table = str(reference() / "phrase-table.gz")
    outputs = {device: str(WORK / f"scored-{device}.gz") for device in ("cpu", "cuda")}
    times = alternate({
        device: [COMMAND, "annotate", table, "-m", model(), "--scale", "raw", "--device", device, "-o", output, "-q"]
        for device, output in outputs.items()
    }, ROUNDS)  # fmt: skip
    found = [similarities(output) for output in outputs.values()]
    differences = np.abs(found[0] - found[1]).max(1)
    quantiles = {f"{share:g}": float(np.quantile(differences, share)) for share in (0.5, 0.99, 0.9999, 1.0)}
    report("scoring_device", {
        "gpu": torch.cuda.get_device_name(), "entries": len(differences), "bar": BAR,
        "seconds": {device: summary(seconds) for device, seconds in times.items()},
        "cuda to cpu": summary([a / b for a, b in zip(times["cuda"], times["cpu"], strict=True)]),
        "within the bar": float((differences <= BAR).mean()), "differences": quantiles,
    })  # fmt: skip


if __name__ == "__main__":
    main()
