"""Nearest neighbours of new phrases for three models, as in Table 3 of Zhang et al. (2014).

The models are trained on the forced-decoding pairs of the reference run: the two autoencoders alone, before bilingual
training; BRAE with the values of its paper; and the default loss.  The phrases are from a test set; neighbours are
searched in the training pairs, which do not contain them.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

from measuring import COMMAND, WORK, compile_kernels, reference, report

FOLDER = WORK / "nearest-phrases"
PHRASES = ("two men", "walking down the street", "a large group of people", "in front of a truck")
MODELS = {
    "autoencoder alone": ("--loss", "max-margin", "--pretrain-epochs", "5", "--epochs", "0"),
    "`max-margin` (BRAE)": ("--loss", "max-margin"),
    "`in-batch`, the default": (),
}
COUNT = 3


def trained(name: str, options: tuple[str, ...], pairs: Path) -> Path:
    """Return the folder of a model, trained if it is missing."""
    folder = FOLDER / str(list(MODELS).index(name))
    if not (folder / "config.json").is_file():
        command = [COMMAND, "train", "phrases", str(pairs), *options, "--held-out", "0", "--force", "--overwrite", "-q"]
        subprocess.run([*command, "-o", str(folder)], check=True)
    return folder


def nearest(folder: Path, phrase: str, pairs: Path) -> list[str]:
    """Return the nearest phrases of the same language, nearest first."""
    command = [COMMAND, "neighbours", phrase, "-m", str(folder), "--pairs", str(pairs), "--side", "target"]
    command += ["-k", str(COUNT), "--json", "-", "-q"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [neighbour["phrase"] for neighbour in json.loads(answer)["target"]]


def main() -> None:
    compile_kernels()
    FOLDER.mkdir(parents=True, exist_ok=True)
    pairs = reference() / "forced-pairs.gz"
    with gzip.open(pairs, "rt", encoding="utf-8") as file:
        known = {line.split(" ||| ")[1] for line in file}
    if known_phrases := known.intersection(PHRASES):
        raise SystemExit(f"not new: {', '.join(known_phrases)}")
    folders = {name: trained(name, options, pairs) for name, options in MODELS.items()}
    neighbours = {
        phrase: {name: nearest(folder, phrase, pairs) for name, folder in folders.items()} for phrase in PHRASES
    }
    report("nearest_phrases", {"phrases of the pairs": len(known), "phrases": neighbours})


if __name__ == "__main__":
    main()
