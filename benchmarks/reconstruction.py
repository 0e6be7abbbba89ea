"""Comparison of the five text autoencoders: reconstruction of held-out captions, by length, and training speed.

The texts are the monolingual captions next to the reference run (145,000 of Multi30k, English by default).  Every 145th
line is held out, 1,000 in total; equal lines are removed from the training text.  All architectures have the same
dimensions, settings and epochs: the defaults of `phrasetool train autoencoder` except for options given here (unknown
options such as `--hidden 1024` are passed to that command).

Existing models with the same options are not trained again; interrupted training is resumed.

With `--join 2`, a text is two captions.  With `--corpus documentation`, it is a line of the Python documentation,
English or Chinese; with `--least-words 50`, it is consecutive lines with at least 50 words together.  Results for other
texts, dimensions or epochs are stored under `--name`; their figure is in the folder of models, except for `SHOWN`.

Speed is measured for whole epochs over 6,400 captions (`--timed`), with all architectures in turn, as medians; words
include the end of each caption, which is also predicted.  The two gated mean-max autoencoders are also measured with
the paper's dimensions, over a tenth as many captions, unless all architectures have these dimensions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import torch
from figures import DOCS, STYLE
from measuring import COMMAND, DATA, ROOT, WORK, reference, report, turns

from moses_compat.corpora.texts import read_texts
from phrasetool.autoencoder.inference import quality_by_length
from phrasetool.autoencoder.settings import ARCHITECTURES, AutoencoderSettings
from phrasetool.autoencoder.training import AutoencoderTrainer
from phrasetool.nn.device import choose_device
from phrasetool.phrases import Int64Array, Phrases
from phrasetool.smt.evaluation.metrics import evaluate
from phrasetool.training.data import frequent_words, in_vocabulary
from phrasetool.training.run import CHECKPOINT
from phrasetool.vocabulary import Vocabulary

mpl.use("svg")
import matplotlib.pyplot as plt

EVERY = 145
CORPORA: dict[str, Callable[[str], Path]] = {
    "captions": lambda language: reference().parent / "mono" / f"mono.{language}.gz",
    "documentation": lambda language: DATA / "pydocs-zh-en" / f"train.{language}.gz",
}
# The paper's dimensions, section 4.1.
PAPER = {"word_units": 512, "hidden": 1024, "heads": 8}
# Number of texts whose nearest neighbours are shown.
EXAMPLES = 3
# Groups with fewer texts are not plotted.
DRAWN = 10
# Longest text of each group of paragraphs except the last; the groups of `reconstruct --by-length` are too wide.
PARAGRAPHS = (49, 54, 59, 64, 69, 74, 79)
# Comparisons of the paper: the architecture that should be better, and its baseline.
COMPARED = {
    "gate above the LSTM": ("mean-max", "lstm"), "gated LSTMs above the LSTM": ("lstm-mean-max", "lstm"),
    "gated LSTMs above attention": ("lstm-mean-max", "mean-max"),
    "both poolings above the maximum": ("mean-max", "max"), "both poolings above the mean": ("mean-max", "mean"),
}  # fmt: skip
# Results with a figure in the documentation.
SHOWN = (
    "reconstruction", "reconstruction-paragraphs", "reconstruction-paper", "reconstruction-chinese-paragraphs",
)  # fmt: skip
COLOURS = {
    "mean-max": ("#0072b2", "-", "o"),
    "mean": ("#009e73", "--", "s"),
    "max": ("#e69f00", "--", "^"),
    "lstm-mean-max": ("#cc79a7", "-", "D"),
    "lstm": ("#616468", ":", "v"),
}


def split(folder: Path, corpus: Path, limit: int | None, join: int, least_words: int) -> tuple[Path, Path]:
    """Write training and held-out texts, each of `join` lines or of lines with `least_words` words; return paths."""
    with gzip.open(corpus) as file:
        lines = file.readlines()[:limit]
    held_out = lines[EVERY - 1 :: EVERY] if not least_words else lines[: len(lines) // 20]
    held_out_lines = set(held_out)
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "train.txt", folder / "held-out.txt"
    for path, part in zip(paths, ([line for line in lines if line not in held_out_lines], held_out), strict=True):
        texts = joined(part, join, least_words)
        path.write_bytes(b"".join(text + b"\n" for text in texts))
    return paths


def joined(lines: list[bytes], join: int, least_words: int) -> Iterator[bytes]:
    """Yield texts of consecutive lines."""
    text: list[bytes] = []
    count = 0
    for line in lines:
        text += line.split()
        count += 1
        if (len(text) >= least_words) if least_words else (count == join):
            yield b" ".join(text)
            text, count = [], 0
    if text and not least_words:
        yield b" ".join(text)


def train(text: Path, model: Path, flags: list[str]) -> None:
    """Train a model, unless it exists; `how.json` in its folder records the flags and the seconds."""
    info_path = model / "how.json"
    info = json.loads(info_path.read_text()) if info_path.is_file() else {}
    if info.get("flags") == flags and (model / "config.json").is_file():
        return
    resume = info.get("flags") == flags and (model / CHECKPOINT).is_file()
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").unlink(missing_ok=True)
    info_path.write_text(json.dumps({"flags": flags}))
    command = [COMMAND, "train", "autoencoder", str(text), "-o", str(model), *flags]
    began = time.perf_counter()
    subprocess.run([*command, *(["--resume"] if resume else [])], check=True)
    # The duration of interrupted training is unknown.
    seconds = None if resume else round(time.perf_counter() - began, 1)
    info_path.write_text(json.dumps({"flags": flags, "seconds": seconds}))


def reconstructed(held_out: Path, model: Path, threads: int) -> dict[str, Any]:
    """Reconstruct the held-out texts; return quality, cross-entropy and training time."""
    process = subprocess.run(
        [COMMAND, "reconstruct", str(held_out), "-m", str(model), "-o", str(model / "held-out.back"), "--by-length",
         "--threads", str(threads), "--json", "-q"], check=True, capture_output=True,
    )  # fmt: skip
    quality = json.loads(process.stdout)
    seconds = json.loads((model / "how.json").read_text()).get("seconds")
    log = [json.loads(line) for line in (model / "training.jsonl").read_text().splitlines()]
    del quality["schema_version"]
    return {**quality, "cross_entropy": round(log[-1]["cross_entropy"], 4), "training_seconds": seconds}


def paragraphs_by_length(held_out: Path, model: Path) -> list[dict[str, Any]]:
    """Return BLEU of the held-out paragraphs by length."""
    back, texts = (path.read_text("utf-8").splitlines() for path in (model / "held-out.back", held_out))
    groups = quality_by_length(back, texts, PARAGRAPHS)
    return [
        {"from": first, "to": last, "texts": quality.texts, "bleu": round(quality.bleu, 4)}
        for (first, last), quality in groups.items()
    ]


def examples(text: Path, held_out: Path, models: dict[str, Path]) -> dict[str, Any]:
    """Return examples as in tables 3 and 4 of the paper.

    These are the first held-out text with its reconstructions, and for the first `EXAMPLES` texts the nearest training
    text by the first model.
    """
    texts = held_out.read_text("utf-8").splitlines()
    back = {name: (model / "held-out.back").read_text("utf-8").splitlines()[0] for name, model in models.items()}
    nearest = {}
    for query in texts[:EXAMPLES]:
        process = subprocess.run(
            [COMMAND, "neighbours", query, "-m", str(next(iter(models.values()))), "--sentences", str(text),
             "-k", "1", "--json", "-q"], check=True, capture_output=True,
        )  # fmt: skip
        nearest[query] = json.loads(process.stdout)["nearest"][0]["sentence"]
    return {"text": texts[0], "reconstructions": back, "nearest": nearest}


def words_per_second(
    texts: Phrases, vocabulary: Vocabulary, ways: dict[str, AutoencoderSettings], rounds: int, device: torch.device
) -> dict[str, dict[str, Any]]:
    """Return training words per second, architectures in turn, after a warm-up epoch of each."""
    running = {
        name: AutoencoderTrainer(texts, len(vocabulary), replace(settings, epochs=rounds + 1), device)
        for name, settings in ways.items()
    }
    seconds = turns({name: trainer.run() for name, trainer in running.items()}, rounds)
    words = len(texts.words) + len(texts)
    return {
        name: {
            "words_per_second": round(words / statistics.median(values)),
            "rounds": [round(words / value) for value in values],
        }
        for name, values in seconds.items()
    }


def like_batches(lengths: Int64Array, batch: int, count: int) -> Int64Array:
    """Return rows of a sample of texts, in batches of about equal length as in an epoch over all texts.

    Batches of a small random sample would mix texts of different lengths.
    """
    order = np.random.default_rng(1).permutation(len(lengths))
    order = order[np.argsort(lengths[order], kind="stable")]
    firsts = np.linspace(0, len(order) - batch, max(count // batch, 1)).astype(np.int64)
    return np.unique(order[(firsts[:, None] + np.arange(batch)).ravel()])


def timed(
    text: Path, ways: dict[str, AutoencoderSettings], texts: int, rounds: int, device: torch.device
) -> dict[str, dict[str, Any]]:
    """Return training speed on a sample of the texts, with the vocabulary of all."""
    if not ways:
        return {}
    everything, symbols = read_texts(str(text))
    settings = next(iter(ways.values()))
    vocabulary = frequent_words(everything, symbols.words, settings.min_count, settings.vocabulary_size)
    sample = everything.select(like_batches(everything.lengths, settings.batch_size, texts))
    return words_per_second(in_vocabulary(sample, symbols.words, vocabulary), vocabulary, ways, rounds, device)


def trained_with(model: Path) -> AutoencoderSettings:
    """Return the training settings of a model."""
    training = json.loads((model / "config.json").read_text())["training"]
    return AutoencoderSettings(**{field.name: training[field.name] for field in fields(AutoencoderSettings)})


def differences(held_out: Path, models: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return differences in BLEU between architectures, with 95 % interval and p of a paired bootstrap over texts."""
    texts, *back = (
        path.read_text("utf-8").splitlines()
        for path in (held_out, *(model / "held-out.back" for model in models.values()))
    )
    lines = dict(zip(models, back, strict=True))
    compared = {}
    for system_name, baseline in COMPARED.values():
        if system_name in lines and baseline in lines:
            (bleu,) = evaluate([lines[baseline], lines[system_name]], [texts], metrics=["bleu"])
            system = bleu.systems[1]
            compared[f"{system_name} - {baseline}"] = {
                "difference": round(cast(float, system.difference), 2), "p": round(cast(float, system.p_value), 4),
                "interval": [round(cast(float, end), 2) for end in (system.difference_low, system.difference_high)],
            }  # fmt: skip
    return compared


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Plot BLEU by length of the texts."""
    plt.rcParams.update(STYLE)
    figure, axes = plt.subplots()
    groups: dict[tuple[int, int], int] = {}
    for row in found.values():
        groups.update({(g["from"], g["to"]): g["texts"] for g in row["by_length"] if g["texts"] >= DRAWN})
    positions = {group: position for position, group in enumerate(sorted(groups))}
    for name, row in found.items():
        colour, line, marker = COLOURS[name]
        points = [
            (positions[g["from"], g["to"]], g["bleu"]) for g in row["by_length"] if (g["from"], g["to"]) in positions
        ]
        label = f"{name}: {row['bleu']:.1f} of all"
        axes.plot(*zip(*points, strict=True), line, color=colour, marker=marker, ms=4, label=label)
    axes.set_xticks(range(len(positions)), [f"{first}–{last}\n{groups[first, last]}" for first, last in positions])
    axes.set_xlabel("words of a text, and how many texts")
    axes.set_ylabel("BLEU of the reconstructions")
    highest = max(group["bleu"] for row in found.values() for group in row["by_length"] if group["texts"] >= DRAWN)
    axes.set_ylim(0, min(100, 1.3 * highest))
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def markdown(found: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table with a row for every architecture."""
    lines = ["| architecture | n | BLEU | ROUGE-1 | ROUGE-2 | word for word | training, words/s |", "|---" * 7 + "|"]
    for name, row in found.items():
        lines.append(
            f"| {name} | {row['dimension']} | {row['bleu']:.1f} | {row['rouge_1']:.1f} | {row['rouge_2']:.1f} | "
            f"{row['exact']:.1f} % | {row.get('words_per_second', '')} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", default=list(ARCHITECTURES), choices=ARCHITECTURES)
    parser.add_argument("--epochs", type=int, default=AutoencoderSettings().epochs)
    parser.add_argument("--corpus", default="captions", choices=CORPORA)
    parser.add_argument("--language", default="en", choices=("en", "de", "zh"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--rounds", type=int, default=5, help="epochs timed of each architecture; 0: earlier speeds stay"
    )
    parser.add_argument("--timed", type=int, default=6400, help="captions of a timed epoch")
    parser.add_argument("--limit", type=int, help="captions, for a trial; then no results are kept")
    parser.add_argument("--heads", type=int, help="heads of the architectures with self-attention")
    parser.add_argument("--join", type=int, default=1, help="lines of a text")
    parser.add_argument("--least-words", type=int, default=0, help="words of a text, in place of lines")
    parser.add_argument("--name", default="reconstruction", help="of the results and the folder of models")
    options, more = parser.parse_known_args()
    device = choose_device(options.device)
    torch.set_num_threads(options.threads)
    work = WORK / (options.name + (f"-{options.limit}" if options.limit else ""))
    corpus = CORPORA[options.corpus](options.language)
    text, held_out = split(work, corpus, options.limit, options.join, options.least_words)
    flags = ["--epochs", str(options.epochs), "--device", str(device), "--threads", str(options.threads), *more]
    models = {name: work / name for name in options.architectures}
    kept = ROOT / "benchmarks" / "results" / f"{options.name}.json"
    # Earlier results are kept unless repeated.
    before = json.loads(kept.read_text()) if kept.is_file() and not options.limit else {}
    architectures: dict[str, dict[str, Any]] = before.get("architectures", {})
    large = before.get("paper_dimensions", {})
    for name, model in models.items():
        attention = options.heads is not None and not AutoencoderSettings(architecture=name).shape.recurrent
        heads = ["--heads", str(options.heads)] if attention else []
        train(text, model, ["--architecture", name, *flags, *heads])
        architectures[name] = {**architectures.get(name, {}), **reconstructed(held_out, model, options.threads)}
        if options.least_words:
            architectures[name]["by_length"] = paragraphs_by_length(held_out, model)
    lengths = [len(line.split()) for line in text.read_bytes().splitlines()]
    # Fewer long texts, so that an epoch takes about the same time.
    lines_per_text = max(options.join, options.least_words // 15)
    settings_by_name = {name: trained_with(model) for name, model in models.items() if options.rounds}
    for name, speed in timed(text, settings_by_name, options.timed // lines_per_text, options.rounds, device).items():
        architectures[name].update(speed)
    narrow = any(
        getattr(settings, name) != size for settings in settings_by_name.values() for name, size in PAPER.items()
    )
    if narrow and settings_by_name.keys() >= {"mean-max", "lstm-mean-max"}:
        wide = {name: replace(settings_by_name[name], **PAPER) for name in ("mean-max", "lstm-mean-max")}
        speeds = timed(text, wide, options.timed // 10 // lines_per_text, options.rounds, device)
        ratio = speeds["mean-max"]["words_per_second"] / speeds["lstm-mean-max"]["words_per_second"]
        large = {**PAPER, "speeds": speeds, "times_as_fast_as_lstm_mean_max": round(ratio, 2)}
    architectures = {name: architectures[name] for name in ARCHITECTURES if name in architectures}
    figures = {
        "language": options.language, "device": str(device), "threads": options.threads, "flags": flags,
        "heads": options.heads,
        "corpus": options.corpus, "lines_of_a_text": options.join, "least_words": options.least_words,
        "training_texts": len(lengths), "words_of_a_text": round(statistics.mean(lengths), 1),
        "architectures": architectures, "differences": differences(held_out, models),
        "paper_dimensions": large,
    }  # fmt: skip
    if options.least_words:
        figures["examples"] = examples(text, held_out, models)
    if options.limit:
        print(json.dumps(figures, indent=2))
    else:
        report(options.name, figures)
    shown = options.name in SHOWN and not options.limit
    draw(architectures, (DOCS if shown else work) / f"{options.name}.svg")
    print(markdown(architectures))


if __name__ == "__main__":
    main()
