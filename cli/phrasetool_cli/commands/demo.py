"""`phrasetool demo`: the whole workflow on a small corpus, in some minutes.

Runs the commands that a user would type and explains their output, from 1,020 Chinese-English sentence pairs, written
for this project, to a phrase table, a model, a pruned and an annotated table, translations and BLEU.  If a package is
missing (`eflomal` for the alignment, `torch` for the model), its result is copied from the files of phrasetool.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click

from phrasetool.errors import PhraseToolError
from phrasetool.text_splitting import lines_with_ends, split_lines, split_words
from phrasetool_cli.command import SectionedCommand, sections
from phrasetool_cli.options import STANDARD, json_document, json_option, quiet_option

# The corpus, its alignment and a model.
FILES = Path(__file__).parents[1] / "demo"
WORD = "经济"
SIZE = 0.9
# Time that a command has to end after Ctrl-C.
_SECONDS_TO_END = 1
README = "README.txt"
# First line of the README, which identifies a folder of the demo; such a folder may be overwritten.
MARK = "Made by `phrasetool demo`; everything here may be deleted."

_CONTENTS = f"""\
{MARK}

corpus.zh, corpus.en   1,020 Chinese-English sentence pairs, written for phrasetool; CC0 1.0
engine/                files of a translator: the corpus in three parts (train, dev, test), the alignment of the
                       training part (aligned.gz), the phrase table made from it, a reordering table, a language model
                       and moses.ini
model/                 encoders of phrases of both languages, trained on pairs that forced decoding used
"""
_MADE = """\
pairs.gz               phrase pairs that forced decoding of the training part used
train.txt, held-out.txt  nine tenths of them to learn from, and one to judge the model on
small.gz               the phrase table, pruned; rejected.gz holds the removed entries, stats.json their number
annotated.gz           the phrase table with four more scores, and annotated.ini with their weights
scores.parquet         both similarities of every entry, kept for pruning again
full.en, pruned.en, annotated.en   test.zh in English, by each of the tables
"""
_NEXT = """\
Next steps:
  phrasetool prune {0}/engine/phrase-table.gz --method count --target-size 60% --protect words -o {0}/smaller.gz
  phrasetool annotate {0}/engine/phrase-table.gz -o - | head -3
  phrasetool show {0}/engine/phrase-table.gz "不 同意" -m {0}/model
On your own Moses model, all steps in one command, with a development set of some hundred sentences:
  phrasetool improve --moses-ini moses.ini --train train.de train.en --dev dev.de dev.en --size 10% -o better"""


def prepare(out: Path) -> None:
    """Write the corpus and its three parts to a new folder, or to one that the demo made before.

    Raises:
        PhraseToolError: the folder is not empty, and not one of the demo.
    """
    if out.exists() and not _is_ours(out):
        raise PhraseToolError(f"{out}: exists and is not a folder that the demo made; name another one")
    shutil.rmtree(out, ignore_errors=True)
    (out / "engine").mkdir(parents=True)
    for language in ("zh", "en"):
        text = (FILES / f"corpus.{language}").read_text(encoding="utf-8")
        (out / f"corpus.{language}").write_text(text, encoding="utf-8")
        lines = lines_with_ends(text)
        for name, digits in (("test", {3}), ("dev", {7}), ("train", {0, 1, 2, 4, 5, 6, 8, 9})):
            part = "".join(line for i, line in enumerate(lines) if i % 10 in digits)
            (out / "engine" / f"{name}.{language}").write_text(part, encoding="utf-8")
    (out / README).write_text(_CONTENTS, encoding="utf-8")


def _is_ours(out: Path) -> bool:
    if not out.is_dir():
        return False
    readme = out / README
    return not any(out.iterdir()) or (readme.is_file() and readme.read_text(encoding="utf-8").startswith(MARK))


def has(*packages: str) -> bool:
    """Whether packages are installed."""
    return all(importlib.util.find_spec(package) is not None for package in packages)


class Demo:
    """The steps of the demo, in order.

    Args:
        out: output folder.
        silent: whether the output of commands is hidden.

    Attributes:
        commands: commands that were run, as lists of words.
    """

    def __init__(self, out: Path, silent: bool = False) -> None:
        self.out, self.engine, self.silent, self.quiet = out, out / "engine", silent, silent
        self.commands: list[list[str]] = []
        self.model, self.table, self.ini = out / "model", self.engine / "phrase-table.gz", self.engine / "moses.ini"
        self.small, self.rejected, self.annotated = (out / f"{n}.gz" for n in ("small", "rejected", "annotated"))

    def say(self, text: str) -> None:
        """Print an explanation."""
        print(f"\n{text}", flush=True)

    def run(self, *arguments: str | Path) -> None:
        """Print and run a phrasetool command, and show its output."""
        words = [str(argument) for argument in arguments]
        self.commands.append(["phrasetool", *words])
        if self.quiet:
            words.append("-q")
        else:
            print("\n$ phrasetool " + " ".join(f'"{word}"' if " " in word else word for word in words), flush=True)
        # A configuration file in the current folder must not change what the commands do.
        code = f"import sys; from phrasetool_cli.main import main; main(['--config', {os.devnull!r}, *sys.argv[1:]])"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], env={**os.environ, "COLUMNS": "120"},
            stdout=subprocess.DEVNULL if self.silent else None,
        )  # fmt: skip
        try:
            status = process.wait()
        except BaseException as error:
            # The command must end its own subprocess, such as eflomal, so it is not killed.  Ctrl-C reaches it, too.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END if isinstance(error, KeyboardInterrupt) else 0)
            process.terminate()
            process.wait()
            raise
        if status:
            raise subprocess.CalledProcessError(status, self.commands[-1])

    def files(self) -> None:
        """Write the corpus, a table, an engine and the model, without the slow steps."""
        prepare(self.out)
        shutil.copytree(FILES / "model", self.model)
        shutil.copy(FILES / "aligned.gz", self.engine)
        self.quiet = True
        self._extract(align=False)
        print(f"{self.out}/ holds a corpus, a phrase table, an engine and a model: see {self.out / README}.")

    def whole(self) -> None:
        """Run all steps, from text to BLEU."""
        began = time.monotonic()
        prepare(self.out)
        self._build()
        pairs = self._learn()
        self._prune()
        self._annotate()
        self._neighbours(pairs)
        self._translate()
        with open(self.out / README, "a", encoding="utf-8") as file:
            file.write(_MADE)
        self.say(f"Done in {time.monotonic() - began:.0f} s. {self.out / README} describes each file.")
        self.say(_NEXT.format(self.out))

    def _build(self) -> None:
        self.say(
            "1. FROM TEXT TO A PHRASE TABLE: align the words of 816 sentence pairs, extract and count all phrase pairs."
        )
        self._extract(align=True)
        self.say("2. THE PROBLEM. A phrase table extracted from word-aligned text holds far more than translations:")
        self.run("inspect", self.table, "-q")

    def _extract(self, align: bool) -> None:
        train = [self.engine / f"train.{language}" for language in ("zh", "en")]
        aligned, reordering, lm = (self.engine / name for name in ("aligned.gz", "reordering.gz", "lm.arpa.gz"))
        if align and has("eflomal"):
            self.run("align", *train, "-o", aligned)
        elif align:
            print("(eflomal is not installed: the included alignment is used.)")
            shutil.copy(FILES / "aligned.gz", aligned)
        self.run("extract", *train, aligned, "-o", self.table, "--reordering-out", reordering)
        self.run("lm", train[1], "--order", "3", "-o", lm)
        self.run("moses-ini", "--table", self.table, "--reordering-table", reordering, "--lm", lm, "-o", self.ini)

    def _learn(self) -> Path:
        """Run forced decoding, and train and evaluate the model; return the file of the training pairs."""
        self.say("3. PHRASE PAIRS THAT ARE REALLY USED: decode every training sentence to its own translation.")
        train = [self.engine / f"train.{language}" for language in ("zh", "en")]
        pairs = self.out / "pairs.gz"
        self.run("force-decode", "--moses-ini", self.ini, *train, "--leave-one-out", "-o", pairs)
        learnt, held_out = self._split(pairs)
        self.say("4. TRAIN encoders of the phrases of both languages on these pairs.")
        if has("torch", "gensim"):
            print("(So few pairs need softer targets than the defaults, which suit real tables.)")
            self.run(
                "train", learnt, "-o", self.model, "--temperature", "0.2", "--vector-scale", "0.1", "--quiet",
            )  # fmt: skip
        else:
            print("(torch or gensim is not installed: the included model is used.)")
            shutil.copytree(FILES / "model", self.model)
        self.say(
            "5. EVALUATE the model on held-out pairs. (Two thousand pairs are very few; real tables give far more.)"
        )
        self.run("evaluate-model", held_out, "-m", self.model, "--candidates", "200")
        return learnt

    def _split(self, pairs: Path) -> tuple[Path, Path]:
        """Hold out every tenth pair, so that the model is evaluated on unseen pairs."""
        with gzip.open(pairs, "rt", encoding="utf-8") as file:
            lines = file.readlines()
        train, held_out = self.out / "train.txt", self.out / "held-out.txt"
        train.write_text("".join(line for i, line in enumerate(lines) if i % 10), encoding="utf-8")
        held_out.write_text("".join(lines[::10]), encoding="utf-8")
        return train, held_out

    def _prune(self) -> None:
        self.say(
            "6. HOW SMALL does the table get? One pass, many thresholds; one-word sources keep their ten best entries."
        )
        scores = self.out / "scores.parquet"
        keep: list[str | Path] = ["--similarities", scores] if has("pyarrow") else []
        words = ["--protect", "words"]
        self.run("prune", self.table, "-m", self.model, *keep, "--sweep", "-0.2:0.8:0.2", *words, "-q")
        if keep:
            self.say(f"7. PRUNE to {SIZE:.0%}. The similarities kept in step 6 are used again, so this takes no model.")
        else:
            self.say(f"7. PRUNE to {SIZE:.0%}.")
        self.run(
            "prune", self.table, *(keep or ["-m", self.model]), "--target-size", str(SIZE), *words, "-o", self.small,
            "--rejected", self.rejected, "--stats", self.out / "stats.json",
        )  # fmt: skip

    def _annotate(self) -> None:
        self.say("8. ANNOTATE: smoothed probabilities and those of forced decoding, for the decoder to weigh.")
        self.run("annotate", self.table, "--forced-pairs", self.out / "pairs.gz", "-o", self.annotated)
        raw = {name: self.out / f"{name}.raw.gz" for name in ("small", "rejected")}
        for name, path in raw.items():
            self.run("annotate", self.out / f"{name}.gz", "-m", self.model, "-o", path, "--scale", "raw", "-q")
        print("\nOne line before and after:")
        before, after = read_table(self.table), read_table(self.annotated)
        example = next(i for i, fields in enumerate(before) if fields[0] == WORD and fields[1] == "the economy")
        print("  " + " ||| ".join(before[example]))
        print("  " + " ||| ".join(after[example]))
        print("\nBy mean similarity, the best entries that were kept and the worst that were pruned:")
        kept, pruned = similarities(raw["small"]), similarities(raw["rejected"])
        for verdict, entries in (("kept", kept[:-7:-1]), ("pruned", pruned[:8][::-1])):
            for similarity, source, target in entries:
                print(f"  {similarity:+.2f}  {verdict:<6}  {source} ||| {target}")
        for path in raw.values():
            path.unlink()

    def _neighbours(self, pairs: Path) -> None:
        self.say("9. NEIGHBOURS. Phrases near in meaning are near in space, in both languages.")
        for phrase in ("do not agree", "在 会议 上"):
            self.run("neighbours", phrase, "-m", self.model, "--pairs", pairs, "-k", "4")

    def _translate(self) -> None:
        """Show BLEU of the full, the pruned and the annotated table on held-out sentences."""
        self.say("10. TRANSLATE 102 held-out sentences with the full, pruned and annotated table.")
        test, annotated_ini = self.engine / "test.zh", self.out / "annotated.ini"
        full, pruned, richer = (self.out / f"{name}.en" for name in ("full", "pruned", "annotated"))
        self.run("decode", "--moses-ini", self.ini, test, "-o", full)
        self.run("decode", "--moses-ini", self.ini, "--table", self.small, test, "-o", pruned, "-q")
        self.run("moses-ini", self.ini, "--table", self.annotated, "--weight", "0.2", "-o", annotated_ini)
        self.run("decode", "--moses-ini", annotated_ini, test, "-o", richer, "-q")
        print(f"\nThe first sentences, the translation of each by {self.table.name}, and what a person wrote:")
        texts = [split_lines(path.read_text(encoding="utf-8")) for path in (test, full, self.engine / "test.en")]
        for source, machine, right in list(zip(*texts, strict=True))[:4]:
            print(f"  {source}\n    {machine}\n    {right}", flush=True)
        if not has("sacrebleu"):
            print("\n(sacrebleu is not installed, so BLEU is not computed.)")
            return
        self.run("evaluate", full, pruned, richer, "--reference", self.engine / "test.en", "--metrics", "bleu")
        print(
            "\n(± is half a 95 % interval: with 102 sentences only large differences mean anything. The weights are\n"
            "the default ones; `phrasetool tune` finds better ones on a real development set.)"
        )


def read_table(path: Path) -> list[list[str]]:
    """Return the fields of every line."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split(" ||| ") for line in file]


def similarities(path: Path) -> list[tuple[float, str, str]]:
    """Return mean similarity, source and target of entries with raw similarities, the least similar first."""
    rows = []
    for fields in read_table(path):
        st, ts = (float(score) for score in split_words(fields[2])[-2:])
        rows.append(((st + ts) / 2, fields[0], fields[1]))
    return sorted(rows)


_EXAMPLE = """\b
Example:
  phrasetool demo demo-output
  phrasetool demo --files try && phrasetool annotate try/engine/phrase-table.gz -o - | head -3
"""


@click.command(cls=SectionedCommand, epilog=_EXAMPLE)
@click.argument("folder", default="demo-output", type=click.Path())
@sections(
    None,
    click.option("--files", is_flag=True, help="Only write a table, an engine and a model (seconds)."),
    json_option,
    quiet_option,
)
def command(folder: str, files: bool, json_file: str | None, quiet: bool) -> None:
    """Run the whole workflow on a small corpus.

    Runs some twenty commands and explains their output.  All files are written to FOLDER, by default demo-output, which
    must be new or empty, or made by an earlier demo.  The demo takes a minute or two.
    """
    document = json_document(json_file)
    # The document replaces all text on standard output.
    silent = quiet or json_file == STANDARD
    demo = Demo(Path(folder), silent)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere if silent else sys.stdout):
        demo.files() if files else demo.whole()
    paths = sorted(str(path.relative_to(demo.out)) for path in demo.out.rglob("*") if path.is_file())
    document({"folder": str(demo.out), "files": paths, "commands": demo.commands})
