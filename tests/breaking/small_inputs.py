"""Small inputs for all commands, made by helpers of the tests; untrained models suffice here."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tests.cli.small_translator import bitext, vector_file
from tests.comparable_text import encoder_folder, write_corpus
from tests.fake_moses import install
from tests.neural_models import random_model
from tests.parallel_models import random_parallel_model, toy_lines
from tests.reranking_lists import SOURCE, TARGET, _list
from tests.small_experiment import write_experiment, write_texts
from tests.syntax_models import random_syntax_model
from tests.toy_treebanks import toy_sentences, treebank_file

_EXPERIMENT = """\
[prune]
methods = ["count"]
sizes = [0.5]
"""


def make_inputs(folder: Path, tables_alone: bool = False) -> None:
    """Write all inputs into a new folder.

    Args:
        folder: the new folder.
        tables_alone: whether to write only tables, texts and the files of a phrase-based model.
    """
    folder.mkdir(parents=True)
    write_experiment(folder, _EXPERIMENT)
    rng = random.Random(2)
    write_texts(folder, "text", 400, rng)
    _write_tables(folder)
    if not tables_alone:
        _write_models(folder)


def _write_models(folder: Path) -> None:
    """Write models of all kinds, and texts for them."""
    _write_neural(folder)
    gold = write_corpus(folder)
    (folder / "mined.tsv").write_text("".join(f"{2 - i / 100:.2f}\t{s}\t{t}\n" for i, (s, t) in enumerate(gold)))
    encoder_folder(folder / "encoder")
    bitext(folder, "few", 60)
    vector_file(folder)
    random_parallel_model().save(folder / "classifier")
    random_syntax_model().save(folder / "syntax")
    for name, lines in zip("st", toy_lines(3000), strict=True):
        (folder / f"dirty.{name}").write_bytes(b"".join(line + b"\n" for line in lines))
    for language in ("en", "de"):
        treebank_file(folder / f"bank.{language}", language, 60, 1)
    (folder / "tagged.txt").write_text(
        "".join(" ".join(form for form, _ in sentence.tokens) + "\n" for sentence in toy_sentences("de", 300, 3))
    )
    install(folder / "programs")


def _write_tables(folder: Path) -> None:
    """Write tables of about a megabyte, their reordering tables, counted pairs and an alignment of the text."""
    from tests.commands import write

    rows = [(i, j) for i in range(3000) for j in range(4)]
    table = "".join(
        f"w{i:05} a ||| v{i:05} {j} ||| 0.5 0.{j}5 0.5 0.{9 - j}1 ||| 0-0 ||| 2 2 {1 + j % 2}\n" for i, j in rows
    )
    order = "".join(f"w{i:05} a ||| v{i:05} {j} ||| 0.6 0.2 0.2 0.3 0.4 0.3\n" for i, j in rows)
    pairs = "".join(f"w{i:05} a ||| v{i:05} {j} ||| {1 + j}\n" for i, j in rows[::7])
    # A pivot-target table for `pivot`, whose sources are the targets of the table.
    second_table = "".join(f"v{i:05} {j} ||| u{i:05} ||| 0.5 0.4 0.5 0.3 ||| 0-0 ||| 2 2 1\n" for i, j in rows)
    second_order = "".join(f"v{i:05} {j} ||| u{i:05} ||| 0.6 0.2 0.2 0.3 0.4 0.3\n" for i, j in rows)
    tables = {
        "large.gz": table,
        "order.gz": order,
        "pairs": pairs,
        "onwards.gz": second_table,
        "turned.gz": second_order,
    }
    for name, text in tables.items():
        write(folder / name, text.encode())
    for name, text in (("words.gz", table), ("turns.gz", order)):
        write(folder / name, text.replace(" a |||", " |||").encode())
    (folder / "unknown").write_text("".join(f"w{i:05}x\n" for i in range(0, 3000, 100)))
    sides = ((folder / f"text.{side}").read_bytes().splitlines() for side in ("src", "trg"))
    points = (min(len(side.split()) for side in pair) for pair in zip(*sides, strict=True))
    aligned = "".join(" ".join(f"{i}-{i}" for i in range(count)) + "\n" for count in points)
    (folder / "aligned").write_text(aligned)


def _write_neural(folder: Path) -> None:
    """Write translators and an n-best list for them."""
    random_model(SOURCE, TARGET).save(folder / "forward")
    random_model(TARGET, SOURCE, 2).save(folder / "backward")
    rng = np.random.default_rng(3)
    lines = [rng.integers(0, len(SOURCE), rng.integers(4, 7)) for _ in range(40)]
    for side, words in (("src", SOURCE), ("ref", TARGET)):
        (folder / f"list.{side}").write_bytes(b"".join(b" ".join(words[i] for i in line) + b"\n" for line in lines))
    (folder / "list.nbest").write_text("".join(_list(number, line, rng) for number, line in enumerate(lines)))
