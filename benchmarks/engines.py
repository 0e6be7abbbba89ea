"""Phrase-based models of language pairs for benchmarks: the reference run's, or models built and tuned here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measuring import COMMAND, DATA, TESTS, run

SEARCH = ("--search", "cube", "--pop-limit", "400", "--stack", "400")


@dataclass(frozen=True)
class Corpus:
    """A language pair: its folder, its languages and its test sets."""

    name: str
    source: str
    target: str
    tests: tuple[str, ...]

    def text(self, part: str, language: str) -> str:
        """Return the path of a text, compressed or not."""
        path = DATA / self.name / f"{part}.{language}"
        return str(path if path.exists() else f"{path}.gz")

    @property
    def train(self) -> list[str]:
        """Source and target file of the bitext."""
        return [self.text("train", language) for language in (self.source, self.target)]


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("multi30k-de-en", "de", "en", TESTS),
        Corpus("multi30k-cs-en", "cs", "en", ("test_2016_flickr", "test_2018_flickr")),
        Corpus("tatoeba-zh-en", "zh", "en", ("test",)),
        Corpus("enja-small", "en", "ja", ("test",)),
        Corpus("pydocs-es-en", "es", "en", ("test",)),
    )
}


def command(*arguments: str | Path) -> None:
    """Run a phrasetool command."""
    run([COMMAND, *map(str, arguments), "-q"])


def extracted(folder: Path, bitext: Sequence[str], threads: str) -> tuple[Path, Path]:
    """Align and extract a bitext; return its phrase table and reordering table."""
    folder.mkdir(parents=True, exist_ok=True)
    aligned, table, reordering = (folder / name for name in ("aligned.gz", "table.gz", "reordering.gz"))
    if not aligned.exists():
        command("align", *bitext, "-o", aligned)
    if not table.exists():
        command("extract", *bitext, aligned, "-o", table, "--reordering-out", reordering, "--threads", threads)
    return table, reordering


def built(folder: Path, bitext: Sequence[str], dev: Sequence[str], threads: str) -> tuple[Path, Path]:
    """Build a model of a bitext and tune it on a development set; return its moses.ini and phrase table."""
    table, reordering = extracted(folder, bitext, threads)
    lm, start, ini = (folder / name for name in ("lm.arpa.gz", "start.ini", "moses.ini"))
    if not lm.exists():
        command("lm", bitext[1], "--order", "5", "-o", lm)
    if not start.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", start)
    if not ini.exists():
        command(
            "tune", "--moses-ini", start, "--dev", dev[0], dev[1], *SEARCH, "--iterations", "8",
            "--threads", threads, "-o", ini,
        )  # fmt: skip
    return ini, table


def decoder(corpus: Corpus, work: Path, threads: str) -> tuple[Path, Path]:
    """Return the moses.ini and the phrase table of a tuned model, built in a work folder if there is no Moses run."""
    moses = DATA / corpus.name / "moses"
    if (moses / "moses.ini").exists():
        return moses / "moses.ini", moses / "phrase-table.gz"
    dev = [corpus.text("dev", language) for language in (corpus.source, corpus.target)]
    return built(work / "engine", corpus.train, dev, threads)
