"""Accuracy on held-out pairs of the default objective and of the paper's, over several splits.

The pairs are the entries of the reference table with a joint count of at least 2.  2,000 of them are held out, and each
true target is ranked among 1,000 held-out targets by the mean of both similarities.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess

import numpy as np
from measuring import COMMAND, WORK, reference, report

HELD_OUT = 2000


def split(seed: int) -> tuple[str, str]:
    """Write the training and the held-out pairs of a split; return their paths."""
    with gzip.open(reference() / "phrase-table.gz", "rb") as file:
        fields = [line.split(b" ||| ") for line in file]
    lines = [b" ||| ".join([f[0], f[1], f[4].split()[2]]) + b"\n" for f in fields if float(f[4].split()[2]) >= 2]
    order = np.random.default_rng(seed).permutation(len(lines))
    paths = []
    for name, index in (("held-out", order[:HELD_OUT]), ("train", np.sort(order[HELD_OUT:]))):
        path = WORK / f"{name}.{seed}.txt"
        path.write_bytes(b"".join(lines[i] for i in index))
        paths.append(str(path))
    return paths[1], paths[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--losses", nargs="+", default=["in-batch"])
    parser.add_argument("--mono", action="store_true", help="word vectors from the monolingual text next to the run")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    texts = []
    if options.mono:
        mono = reference().parent / "mono"
        texts = ["--source-text", str(mono / "mono.de.gz"), "--target-text", str(mono / "mono.en.gz")]
    figures: dict = {"word_vectors": "monolingual text" if options.mono else "the pairs"}
    for loss in options.losses:
        scores_by_name: dict[str, list[float]] = {}
        for seed in range(options.splits):
            train, held_out = split(seed)
            folder = str(WORK / f"held-out-{loss}")
            subprocess.run(
                [COMMAND, "train", train, "-o", folder, "--overwrite", "--held-out", "0", "--loss", loss, "-q", *texts],
                check=True,
            )
            process = subprocess.run(
                [COMMAND, "evaluate-model", held_out, "-m", folder, "--json"], check=True, capture_output=True
            )
            for name, value in json.loads(process.stdout).items():
                if isinstance(value, float):
                    scores_by_name.setdefault(name, []).append(value)
        figures[loss] = {
            name: {"mean": round(statistics.mean(values), 4), "splits": [round(v, 4) for v in values]}
            for name, values in scores_by_name.items()
        }
    report("held_out" + ("_mono" if options.mono else ""), {**figures, "bars": {"in-batch accuracy_at_1": 0.8}})


if __name__ == "__main__":
    main()
