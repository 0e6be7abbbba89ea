"""Valid inputs for `right_inputs.py`: tables with their models, moses.ini files and development sets."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from measuring import COMMAND, DATA, ROOT, reference

from moses_compat.files.streams import Input
from moses_compat.tables.blocks import raw_blocks

sys.path.insert(1, str(ROOT))
from tests.tables import STANDS_FOR, TABLES

# Sentence pairs from which tables are built: enough for informative samples.
SENTENCES = 5000
FORCED_SENTENCES = 1000
ITERATIONS = 8
# Lines of a table that is cut from another table.
CUT = 20
# Corpus -> its language other than English.
CORPORA = {
    "multi30k-de-en": "de", "multi30k-cs-en": "cs", "tatoeba-zh-en": "zh", "enja-small": "ja", "pydocs-es-en": "es",
    "pydocs-zh-en": "zh",
}  # fmt: skip
# Prefixes of the names of Moses' tables that are not phrase tables.
_OTHER_KINDS = ("reordering", "count table", "half table", "extract")
_RULES = ("target syntax",)


@dataclass(frozen=True)
class Case:
    """A valid input.

    Attributes:
        name: description of the input.
        folder: folder of the input and of outputs.
        table, model: phrase table and model, which every case has.
        pairs, ini, reordering, dev: forced-decoding pairs, moses.ini, reordering table, development set of two sides.
        words: whether entries are phrases, not rules.
        built: number of commands with checks that built the input.
        refused, warned: errors and warnings of these commands, by name.
    """

    name: str
    folder: Path
    table: Path
    model: Path
    pairs: Path | None = None
    ini: Path | None = None
    reordering: Path | None = None
    dev: tuple[Path, Path] | None = None
    words: bool = True
    built: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    warned: dict[str, list[str]] = field(default_factory=dict)

    @property
    def scores(self) -> int:
        """Number of scores of an entry."""
        with Input(str(self.table)) as source:
            return next(block.scores for block in raw_blocks(source, 1 << 16))

    def dev_lines(self, count: int) -> tuple[str, str]:
        """Write the first lines of the development set to files; return their paths."""
        assert self.dev
        copies = self.folder / "dev.source", self.folder / "dev.target"
        for path, copy in zip(self.dev, copies, strict=True):
            first_lines(path, copy, count)
        return str(copies[0]), str(copies[1])

    def cuts(self, count: int) -> Iterator[Case]:
        """Yield cases with lines from the beginning and the middle of the table; train a model on each."""
        with Input(str(self.table)) as source:
            lines = source.read_all().splitlines(keepends=True)
        for part, start in (("first", 0), ("middle", len(lines) // 2)):
            folder = self.folder / part
            folder.mkdir(exist_ok=True)
            table = folder / "table"
            table.write_bytes(b"".join(lines[start : start + count]))
            case = replace(
                self, name=f"{self.name}, {part} {count} lines", folder=folder, table=table, pairs=None, ini=None,
                reordering=None, dev=None, refused={}, warned={}, built=0,
            )  # fmt: skip
            yield checked(case, "train", ["train", str(table), "-o", str(folder / "own"), "--epochs", "1"])


def run(arguments: list[str]) -> tuple[int, str]:
    """Run a command; return its exit code and standard error."""
    process = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    return process.returncode, process.stderr


def warnings_in(stderr: str) -> list[str]:
    """Return the lines with warnings."""
    return [line for line in stderr.splitlines() if "warning: " in line]


def checked(case: Case, name: str, arguments: list[str]) -> Case:
    """Run a command that builds a part of a case, unless it was run before; return the case with its messages."""
    journal = case.folder / f"{name}.json"
    if not journal.exists():
        code, text = run(arguments)
        journal.write_text(json.dumps([code, text]))
    code, text = json.loads(journal.read_text())
    text = text.replace(f"{case.folder}/", "")
    warnings = warnings_in(text)
    return replace(
        case, built=case.built + 1,
        refused={**case.refused, **({name: text} if code else {})},
        warned={**case.warned, **({name: warnings} if warnings else {})},
    )  # fmt: skip


def first_lines(path: Path, place: Path, count: int) -> None:
    """Write the first lines of a text to `place`."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as source:
        place.write_bytes(b"".join(islice(source, count)))


def cases(work: Path, only: str) -> Iterator[Case]:
    """Yield all valid inputs.

    Args:
        work: folder of built files.
        only: part of the name of the requested cases: `forms`, `reference`, `demo` or a corpus.
    """
    if only in "forms":
        yield from forms(work / "forms")
    if only in "reference":
        yield from with_cuts(moses_run(work / "reference"))
    if only in "demo":
        yield from with_cuts(demo(work / "demo"))
    for corpus in CORPORA:
        if only in corpus:
            forward, backward = build(corpus, work / corpus)
            yield from with_cuts(forward)
            yield backward


def with_cuts(case: Case) -> Iterator[Case]:
    """Yield a case, and cases with small tables cut from its table."""
    yield case
    yield from case.cuts(CUT)


def build(corpus: str, folder: Path) -> Iterator[Case]:
    """Build and yield the cases of a corpus in both directions."""
    data, foreign = DATA / corpus, CORPORA[corpus]
    folder.mkdir(parents=True, exist_ok=True)
    for language in (foreign, "en"):
        first_lines(data / f"train.{language}.gz", folder / f"train.{language}", SENTENCES)
    points, reversed_points = folder / "aligned", folder / "turned"
    if not reversed_points.exists():
        _make("align", folder / f"train.{foreign}", folder / "train.en", "-o", points)
        pairs = ([point.split("-") for point in line.split()] for line in points.read_text().splitlines())
        reversed_points.write_text("".join(" ".join(f"{t}-{s}" for s, t in line) + "\n" for line in pairs))
    for source, target, aligned in ((foreign, "en", points), ("en", foreign, reversed_points)):
        case_folder = folder / f"{source}-{target}"
        yield engine(f"{corpus}, {source} to {target}", case_folder, folder, (source, target), aligned, data)


def engine(name: str, there: Path, folder: Path, languages: tuple[str, str], aligned: Path, data: Path) -> Case:
    """Build a case from an aligned bitext: table, language model, weights, forced decoding, model."""
    there.mkdir(exist_ok=True)
    sides = [folder / f"train.{language}" for language in languages]
    few = [there / "few.source", there / "few.target"]
    table, reordering, arpa = there / "table.gz", there / "reordering.gz", there / "lm.arpa.gz"
    ini, pairs, model = there / "moses.ini", there / "pairs.gz", there / "model"
    if not ini.exists():
        for side, few_path in zip(sides, few, strict=True):
            first_lines(side, few_path, FORCED_SENTENCES)
        _make("extract", *sides, aligned, "-o", table, "--reordering-table", reordering)
        _make("lm", sides[1], "--order", "3", "-o", arpa)
        _make("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", arpa, "-o", ini)
    dev = data / f"dev.{languages[0]}", data / f"dev.{languages[1]}"
    case = Case(name, there, table, model, pairs, ini, reordering, dev)
    case = checked(case, "force-decode", [
        "force-decode", "--moses-ini", str(ini), *map(str, few), "--stack", "100", "-o", str(pairs)])  # fmt: skip
    return _trained(case)


def moses_run(folder: Path) -> Case:
    """Return the case of the reference run."""
    moses = reference()
    folder.mkdir(parents=True, exist_ok=True)
    reordering = moses / "reordering-table.wbe-msd-bidirectional-fe.gz"
    dev = moses.parent / "dev.de", moses.parent / "dev.en"
    return _trained(Case(
        "the reference run of Moses", folder, moses / "phrase-table.gz", folder / "model", moses / "forced-pairs.gz",
        moses / "moses.ini", reordering, dev,
    ))  # fmt: skip


def demo(folder: Path) -> Case:
    """Return the case of the files of `phrasetool demo --files`."""
    if not (folder / "model").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _make("demo", "--files", folder)
    engine_folder = folder / "engine"
    case = Case(
        "the demo", folder, engine_folder / "phrase-table.gz", folder / "model", None, engine_folder / "moses.ini",
        engine_folder / "reordering.gz", (engine_folder / "dev.zh", engine_folder / "dev.en"),
    )  # fmt: skip
    return case


def forms(folder: Path) -> Iterator[Case]:
    """Yield tables in the forms of Moses' regression tests, with a model trained on their phrases."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in sorted(set(STANDS_FOR.values()) & set(TABLES)) if not name.startswith(_OTHER_KINDS)]
    pairs, model = folder / "pairs", folder / "model"
    lines = {b" ||| ".join(line.split(b" ||| ")[:2]) for name in names for line in TABLES[name].splitlines()}
    pairs.write_bytes(b"".join(line + b"\n" for line in sorted(lines) if line.count(b"|||") == 1))
    if not model.exists():
        _make("train", pairs, "-o", model, "--dimension", "6", "--epochs", "3")
    for name in names:
        form_folder = folder / name.replace(" ", "-")
        form_folder.mkdir(exist_ok=True)
        (form_folder / "table").write_bytes(TABLES[name])
        yield Case(f"form of Moses: {name}", form_folder, form_folder / "table", model, words=name not in _RULES)


def _trained(case: Case) -> Case:
    settings = ["--epochs", str(ITERATIONS), "--threads", "1"]
    return checked(case, "train", ["train", str(case.pairs), "-o", str(case.model), *settings])


def _make(*arguments: str | Path) -> None:
    """Run a command without checks."""
    subprocess.run([COMMAND, *map(str, arguments), "-q"], check=True)
