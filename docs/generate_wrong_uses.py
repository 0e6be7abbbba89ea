"""Write docs/wrong-uses.md: wrong uses of the tool, with the messages that they actually print.

The uses are in `tests/wrong_uses/*.txt`: a title after `#`, shell lines that prepare files after `$`, and one command
after `>`.  Each runs in a separate folder with a table, a model and texts of the demo.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import forked_commands

from phrasetool.kernels.jit import MODE, QUIET
from phrasetool.training.run import CHECKPOINT

# Suppresses the message about the first compilation of kernels.
KERNELS = {MODE: QUIET}
PAGE = Path(__file__).parent / "wrong-uses.md"
# Training commands of models for the uses; the models have no other purpose.
TRAININGS = (
    "parallel train.zh train.en --word-units 16 --units 16 --parts 1000 --epochs 2 --batch-size 32 "
    "--search-units 16 --search-epochs 1 -o parallel --force",
    "masked-lm train.zh train.en --preset tiny --epochs 1 -o bert",
    "tagger --treebank en a.conllu -o tagger --epochs 1",
    "syntax --bitext zh train.zh en train.en --tagger tagger -o syntax --epochs 1 --units 4 "
    "--decoder-units 4 --pieces 2000",
)
# Models that take long to copy.
LARGE = frozenset(("parallel", "tagger"))
# A training run that is terminated at its first checkpoint.
UNFINISHED = "phrasetool train pairs.txt -o part --dimension 10 --epochs 500 --vectors random --quiet --threads 1"
USES = Path(__file__).parents[1] / "tests" / "wrong_uses"
# File with wrong uses -> heading of its section, in the order of the page.
TOPICS = {
    "tables": "Tables",
    "bytes": "Bytes",
    "model_fit": "Models that do not fit the table",
    "augmenting": "New entries",
    "exporting": "Export for other systems",
    "pivoting": "Pivot tables",
    "dev_set": "Development sets and texts",
    "training": "Training",
    "mining": "Mining and filtering",
    "reranking": "n-best lists",
    "usage": "Arguments",
    "encoders": "Pretrained encoders",
}


@dataclass(frozen=True)
class Use:
    """A wrong use: its section, title, preparation and command."""

    topic: str
    title: str
    preparation: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Answer:
    """The lines that a command wrote to standard error, its exit code, and the files that it created."""

    lines: list[str]
    code: int
    made: list[str]


def uses() -> list[Use]:
    """Return all wrong uses, in the order of the page."""
    wrong_uses = []
    for topic in TOPICS:
        for block in re.split(r"\n\s*\n", (USES / f"{topic}.txt").read_text(encoding="utf-8").strip()):
            lines = block.splitlines()
            marked = [(line[:2], line[2:]) for line in lines]
            (title,) = (text for mark, text in marked if mark == "# ")
            (command,) = (text for mark, text in marked if mark == "> ")
            preparation = tuple(text for mark, text in marked if mark == "$ ")
            if len(preparation) + 2 != len(lines):
                raise SystemExit(f"{topic}.txt: a line that begins with none of #, $ and > in: {title}")
            wrong_uses.append(Use(topic, title, preparation, command))
    return wrong_uses


def prepare(folder: Path) -> None:
    """Create the files that uses work on: those of the demo, and a small model of each kind."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    forked_commands.import_all()

    def run(command: str) -> None:
        code, errors = forked_commands.run(command, folder, environment)
        if code != 0:
            raise SystemExit(f"{command}: {errors}")

    run("phrasetool demo --files demo")
    engine = folder / "demo" / "engine"
    for path in engine.iterdir():
        path.rename(folder / path.name)
    (folder / "phrase-table.gz").rename(folder / "table.gz")
    (folder / "demo" / "model").rename(folder / "model")
    ini = (folder / "moses.ini").read_text(encoding="utf-8")
    ini = re.sub(r"path=\S*/", "path=", ini).replace("phrase-table.gz", "table.gz")
    (folder / "moses.ini").write_text(ini, encoding="utf-8")
    shutil.rmtree(folder / "demo")
    with open(folder / "pairs.txt", "wb") as pairs:
        extracted = subprocess.run(["zcat", "table.gz"], cwd=folder, check=True, capture_output=True).stdout
        for line in extracted.splitlines(keepends=True)[:20_000:7]:
            pairs.write(b" ||| ".join(line.split(b" ||| ")[:2]) + b"\n")
    lines = "".join("1\tHouse\t_\tNOUN" + "\t_" * 6 + "\n\n" for _ in range(4))
    (folder / "a.conllu").write_text(lines, encoding="utf-8")
    for training in TRAININGS:
        run(f"phrasetool train --model {training} --threads 1 --quiet")
    with subprocess.Popen(UNFINISHED.split(), cwd=folder, env=environment, stderr=subprocess.DEVNULL) as unfinished:
        while not (folder / "part" / CHECKPOINT).exists() and unfinished.poll() is None:
            time.sleep(0.1)
        unfinished.terminate()


def answer(use: Use, files: Path, folder: Path) -> Answer:
    """Run a use in a new folder with copies of the files; large models are only copied if the use names them."""
    names = set(re.findall(r"\w+", " ".join([*use.preparation, use.command])))
    shutil.copytree(files, folder, ignore=lambda _, entries: LARGE.intersection(entries) - names)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PHRASETOOL", "XDG"))}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100", **KERNELS}
    if use.preparation:
        script = "\n".join(["set -e", *use.preparation])
        subprocess.run(["bash", "-c", script], cwd=folder, env=environment, check=True, capture_output=True)
    before = {path.relative_to(folder) for path in folder.rglob("*")}
    code, errors = forked_commands.run(use.command, folder, environment)
    created = sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.relative_to(folder) not in before
    )
    return Answer(errors.splitlines(), code, created)


def page(answers: dict[Use, Answer]) -> str:
    """Return the page."""
    parts = [
        "# Wrong uses",
        "<!-- Written by `make documents`. -->",
        "Errors are one line on standard error, and an exit code: 1 for bad data, 2 "
        "for bad usage. Nothing is written then, and existing files are unchanged. The commands were run in "
        "a folder with a table, a model and texts of the demo, a classifier of sentence pairs (`parallel`), a BERT "
        "trained with `train bert` (`bert`), a tagger that knows one word, a syntactic encoder, and an "
        "unfinished training (`part`); lines that prepare a file precede the command.",
    ]
    for topic, title in TOPICS.items():
        parts.append(f"## {title}")
        for use, reply in answers.items():
            if use.topic == topic:
                code = "\n".join([*use.preparation, use.command, *(f"# {line}" for line in reply.lines)])
                parts.append(f"**{use.title[0].upper()}{use.title[1:]}** (exit {reply.code})\n\n```sh\n{code}\n```")
    return "\n\n".join(parts) + "\n"


def answers() -> dict[Use, Answer]:
    """Run every use, and return its answer."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        files.mkdir()
        prepare(files)
        wrong_uses = uses()
        tasks = [(use, files, Path(folder) / str(number)) for number, use in enumerate(wrong_uses)]
        return dict(zip(wrong_uses, forked_commands.everywhere(_answer, tasks), strict=True))


def _answer(task: tuple[Use, Path, Path]) -> Answer:
    return answer(*task)


def main() -> None:
    """Write the page, or a JSON file with the page and the answers for the test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the page and the answers here instead, for the test")
    kept = parser.parse_args().json
    os.environ.update(KERNELS)
    answered = answers()
    if kept:
        records = [{"title": use.title, **vars(reply)} for use, reply in answered.items()]
        kept.write_text(json.dumps({"page": page(answered), "answers": records}), encoding="utf-8")
    else:
        PAGE.write_text(page(answered), encoding="utf-8")


if __name__ == "__main__":
    main()
