"""Messages on standard error: labels, colours, remedies (commands and options), and missing packages."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

# Name of a remedy -> text that is appended to the message.
REMEDIES = {
    "another device": "; use --device cpu or auto",
    "train or name a model": " (train one with `phrasetool train`, or name it with -m)",
    "train a model of phrase pairs": " (`phrasetool train PAIRS`)",
    "train an autoencoder of one language": " (`phrasetool train autoencoder TEXT`)",
    "train a translator": " (`phrasetool train translator SOURCE TARGET`)",
    "train a classifier of sentence pairs": " (`phrasetool train classifier SOURCE TARGET`)",
    "train a tagger": " (`phrasetool train tagger --treebank LANG FILE`)",
    "train a syntactic encoder": " (`phrasetool train syntax --language-bitext LANG FILE LANG FILE --tagger FOLDER`)",
    "name the folder of Moses": "; name its folder with --moses-bin",
    "put the table into the ini": (
        "; to put another table into the place of one, use `phrasetool moses-ini INI --table FILE --name NAME`"
    ),
    "name a table of the ini": "; choose one with --name",
    "fit": "; name another model, or continue with --force",
    "go on": "; --force continues anyway",
    "show the sorted table": "; after `prune --sort`, show a sorted table (LC_ALL=C sort)",
    "leave out smoothing": "; --smoothing none leaves the smoothed columns out",
    "leave out smoothing or go on": "; --smoothing none leaves the smoothed columns out, --force continues anyway",
    "name the model": "; a model is given with -m, where a command has it",
    "name the encoder": "; `annotate` and `prune` take it with --encoder",
    "overwrite the model": "; name another folder with -o, or replace the model with --overwrite",
    "resume or replace a training": "; continue it with --resume, or start again with --overwrite",
    "replace the checkpoint": "; --overwrite replaces the checkpoint",
    "keep a poor model": "; --overwrite replaces the checkpoint, --resume --force saves the model anyway",
    "train again": "; to train again, use --overwrite instead of --resume",
    "train without a checkpoint": "; leave out --resume",
    "train an autoencoder on text": (
        "; pairs are `source ||| target`, and text of one language is for `phrasetool train autoencoder`"
    ),
    "name a store": "; name another folder with --encoder-store",
    "sort it first": "; --sort sorts it",
    "sort the table": "; --sort sorts it, --force continues anyway",
    "name the words": "; the words of a file of tags are named with --words",
    "start again": "; without --resume, everything is computed again",
    "name the sources of that run": "; give the earlier ones with --evidence",
    "use threads": "; use --engine threads",
    "longer lines": "; --max-line allows longer ones",
    "larger groups": "; --block-bytes allows more, where a command has it",
    "prune without counts": (
        "; semantic, parallel, syntax, significance, usage alone, probability, top and random are methods without "
        "counts, as in --method probability"
    ),
    "take pairs of any count": "; leave out --min-pair-count",
    "protect by no count": "; leave out --protect-frequent, or switch it off with --protect-frequent none",
    "build the index again": "; delete the file, and `phrasetool show` builds it again",
    "allow an empty input": "; --allow-empty continues anyway",
}

# Optional package -> the extra that installs it.
EXTRAS = {
    "pyarrow": "parquet",
    "kenlm": "tune",
    "sacrebleu": "tune",
    "sklearn": "tune",
    "threadpoolctl": "tune",
    "torch": "train",
    "gensim": "train",
    "eflomal": "align",
    "matplotlib": "report",
    "jinja2": "report",
    "pandas": "report",
    "zstandard": "zstd",
    "sentence_transformers": "encoders",
    "tokenizers": "encoders",
    "transformers": "encoders",
    "faiss": "mine",
    "ray": "ray",
}


def missing_package(module: str | None) -> str | None:
    """Return a message on how to install a missing module; None if it belongs to no extra."""
    package = (module or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return f"this needs {package}, which is not installed: pip install 'phrasetool[{EXTRAS[package]}]'"


def with_remedy(message: str, remedy: str | None) -> str:
    """Return a message of the library with its remedy, if it has one."""
    return message + REMEDIES[remedy] if remedy else message


# Label of a message -> its colour on a terminal.
_COLOURS = {"error": "1;31", "warning": "33", "hint": "36"}
# Unfinished progress bars on standard error.
bars: list[Any] = []


def write(message: str, label: str = "") -> None:
    """Print a line on standard error, above a progress bar if there is one.

    Args:
        message: the line.
        label: `error`, `warning` or `hint`; empty for information.
    """
    text = f"{_coloured(label)}: {message}" if label else message
    with _cleared():
        print(f"phrasetool: {text}", file=sys.stderr, flush=True)


def hint(message: str) -> None:
    """Print a suggestion on standard error."""
    write(message, "hint")


def _coloured(label: str) -> str:
    """Return a label, coloured unless $NO_COLOR (https://no-color.org) is set or the terminal has no colours."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return label
    return f"\x1b[{_COLOURS[label]}m{label}\x1b[0m"


@contextlib.contextmanager
def _cleared() -> Iterator[None]:
    """Clear progress bars while a line is printed."""
    if not bars:
        yield
        return
    for bar in bars:
        bar.clear()
    try:
        yield
    finally:
        for bar in bars:
            bar.refresh()
