"""Training speed of every model family on CPU and GPU: pairs or sentences per second.

Each model is trained for one epoch and for a few more, with the sizes of its paper if there is a preset for them; the
difference between the times is that of the additional epochs, without reading, word vectors and process start-up.
Without a GPU, only the CPU is measured, and `gpu` is null in the results.  `--small` only checks that everything works;
its results are meaningless.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measuring import COMMAND, DATA, WORK, compile_kernels, reference, report

FOLDER = WORK / "training-devices"
DEVICES = ("cpu", "cuda")
# Options of an autoencoder with the dimensions of the paper.
LARGE = ("--word-units", "300", "--hidden", "2048", "--dropout", "0.2")
SMALL_EXAMPLES, SMALL_PASSES = 64, 1


@dataclass(frozen=True)
class Family:
    """A model to train.

    Attributes:
        arguments: function from the number of examples to arguments of `phrasetool train`.
        unit: name of the examples.
        examples: number of examples for the CPU and for a GPU, about ten seconds of work each.
        passes: number of epochs after the first.
    """

    arguments: Callable[[int], Sequence[str]]
    unit: str
    examples: tuple[int, int]
    passes: int = 2


def head(path: Path, lines: int, name: str) -> str:
    """Write the first lines of a text to a file; return its path."""
    target = FOLDER / f"{lines}-{name}"
    if not target.exists():
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
            target.write_bytes(b"".join(itertools.islice(file, lines)))
    return str(target)


def bitext(lines: int) -> tuple[str, str]:
    """Return the files of both sides of the first pairs."""
    source, target = (head(DATA / "multi30k-de-en" / f"train.{side}.gz", lines, side) for side in ("de", "en"))
    return source, target


def dev() -> list[str]:
    """Return the option for a development set that is too small to affect the time."""
    return ["--dev", *(head(DATA / "multi30k-de-en" / f"dev.{side}", 64, f"dev.{side}") for side in ("de", "en"))]


def treebank(sentences: int) -> str:
    """Return a file with the first sentences of the English treebank."""
    target = FOLDER / f"{sentences}.conllu"
    if not target.exists():
        blocks = gzip.decompress((DATA / "ud" / "en-train.conllu.gz").read_bytes()).split(b"\n\n")
        target.write_bytes(b"".join(block + b"\n\n" for block in blocks[:sentences]))
    return str(target)


def tagger() -> str:
    """Return the folder of a tagger, trained once, for the targets of the syntax encoder."""
    folder = FOLDER / "tagger"
    if not (folder / "config.json").is_file():
        arguments = ("tagger", "--treebank", "en", treebank(2000), "-o", str(folder), "--epochs", "1", "-q")
        subprocess.run([COMMAND, "train", *arguments], check=True)
    return str(folder)


def phrases(*options: str) -> Callable[[int], Sequence[str]]:
    """Return arguments for phrase pairs, with random vectors because word2vec is not part of an epoch."""
    fixed = ("--vectors", "random", "--held-out", "0", *options)
    return lambda lines: ["phrases", head(reference() / "forced-pairs.gz", lines, "pairs"), *fixed]


FAMILIES = {
    "phrases, n = 50, batches of 512": Family(phrases(), "pairs", (50_000, 50_000), 8),
    "phrases, n = 200, batches of 8,192": Family(
        phrases("--dimension", "200", "--batch-size", "8192"), "pairs", (50_000, 50_000)
    ),
    "translator, preset lstm": Family(
        lambda n: ["translator", *bitext(n), *dev(), "--preset", "lstm"], "sentence pairs", (640, 12_800)
    ),
    "translator, preset lstm, bfloat16": Family(
        lambda n: ["translator", *bitext(n), *dev(), "--preset", "lstm", "--precision", "bfloat16"], "sentence pairs",
        (640, 12_800),
    ),
    "classifier, preset small": Family(
        lambda n: ["classifier", *bitext(n), *dev(), "--search-units", "0"], "sentence pairs", (2_560, 12_800)
    ),
    "classifier, preset paper": Family(
        lambda n: ["classifier", *bitext(n), *dev(), "--preset", "paper"], "sentence pairs", (2_560, 6_400)
    ),
    "tagger": Family(lambda n: ["tagger", "--treebank", "en", treebank(n)], "sentences", (2_000, 8_000)),
    "syntax, preset paper": Family(
        lambda n: [
            "syntax", "--language-bitext", "de", bitext(n)[0], "en", bitext(n)[1], "--tagger", tagger(), "--preset",
            "paper",
        ],
        "sentence pairs", (2_560, 12_800),
    ),
    "autoencoder, mean-max, 2,048 units": Family(
        lambda n: ["autoencoder", bitext(n)[1], *LARGE, "--heads", "8"], "sentences", (640, 12_800)
    ),
    "autoencoder, lstm-mean-max, 2,048 units": Family(
        lambda n: ["autoencoder", bitext(n)[1], *LARGE, "--architecture", "lstm-mean-max"], "sentences", (640, 12_800)
    ),
    "bert, preset small": Family(lambda n: ["bert", bitext(n)[1], "--preset", "small"], "sentences", (2_560, 12_800)),
}  # fmt: skip


def seconds(arguments: Sequence[str], device: str, passes: int) -> float:
    """Return the seconds of a whole training run."""
    folder = FOLDER / "model"
    shutil.rmtree(folder, ignore_errors=True)
    begin = time.perf_counter()
    # --force: after so little training, a model may be no better than chance.
    options = ["-o", str(folder), "--device", device, "--epochs", str(passes), "--force", "-q"]
    subprocess.run([COMMAND, "train", *arguments, *options], check=True)
    return time.perf_counter() - begin


def measure(family: Family, device: str, small: bool) -> dict[str, Any]:
    """Return the examples per second of the epochs after the first."""
    examples = SMALL_EXAMPLES if small else family.examples[DEVICES.index(device)]
    arguments = list(family.arguments(examples))
    more = SMALL_PASSES if small else family.passes
    first, whole = (seconds(arguments, device, passes) for passes in (1, 1 + more))
    rate = round(examples * more / (whole - first), 1) if whole > first else None
    return {"examples": examples, "passes": more, "seconds": round(whole - first, 2), "per second": rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a few examples, for a trial; nothing is kept")
    parser.add_argument("--only", default="", help="families whose names begin like this")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    compile_kernels()
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    devices = DEVICES if gpu else DEVICES[:1]
    measured: dict[str, Any] = {}
    for name, family in FAMILIES.items():
        if name.startswith(options.only):
            measured[name] = {"unit": family.unit}
            for device in devices:
                measured[name][device] = measure(family, device, options.small)
                print(name, device, measured[name][device], flush=True)
    if not options.small and not options.only:
        report("training_devices", {"gpu": gpu, "processors": os.cpu_count(), "families": measured})


if __name__ == "__main__":
    main()
