"""The syntactic encoder: trained on bitexts of five languages, how well its vectors tell syntax.

Goes on by files: what is in benchmarks/work/syntax/ is not made again.  Training one seed takes about an hour of a
core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from measuring import COMMAND
from syntax_texts import FOLDER, GROUPS, TAGGER, bitexts, test_files

# Name of a model -> what it is trained with.
KINDS = {"default": [], "own-language": ["--own-language"], "trial": ["--epochs", "2"]}
# Bitexts of the trial, whose figures were known before.
TRIAL = ("tatoeba", "captions")


def trained(kind: str, seed: int) -> Path:
    """The folder of a model; a training that was interrupted goes on."""
    folder = FOLDER / f"{kind}-{seed}"
    if not (folder / "config.json").is_file():
        going = ["--resume"] if (folder / "checkpoint.safetensors").is_file() else []
        options = [*KINDS[kind], "--tagger", str(TAGGER), "--seed", str(seed), "--threads", "1", "--device", "cpu"]
        texts = bitexts(TRIAL) if kind == "trial" else bitexts()
        command = [COMMAND, "train", "--model", "syntax", *texts, *options, *going, "-o", str(folder)]
        subprocess.run(command, check=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=list(KINDS), default="default")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    os.nice(10)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for language in GROUPS:
        test_files(language)
    trained(given.kind, given.seed)


if __name__ == "__main__":
    main()
