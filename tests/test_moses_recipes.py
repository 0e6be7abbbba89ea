"""The commands of docs/guides/moses/ have the documented effects on a small model and on a real Moses run."""

import gzip
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from moses_compat.engine.model import MosesModel
from moses_compat.ini.reading import read_moses_ini
from phrasetool_cli.main import COMMANDS
from tests.commands import read, run_inside, write
from tests.fake_moses import install

PAGES = Path(__file__).parent.parent / "docs/guides/moses"
GOLDEN = Path(__file__).parent / "golden/extraction"
REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"
OTHERS = sorted(path.name for path in PAGES.glob("*.md") if path.name != "index.md")


def commands(page, until=None):
    """Return the commands of a page, only those before the heading `until` if it is given."""
    text = (PAGES / page).read_text("utf-8").partition(f"\n## {until}\n")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run_page(page, more=None, until=None):
    """Run the commands of a page here; `more` has additional arguments by command."""
    for line in commands(page, until):
        program, name, *arguments = shlex.split(line)
        if program == "sed":
            subprocess.run([program, name, *arguments], check=True, timeout=20)
        else:
            assert program == "phrasetool"
            outcome = run_inside(name, *arguments, *(more or {}).get(name, ()))
            assert outcome.code == 0, (line, outcome.err)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small model folder in which all commands of the first page have been run."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "corpus").mkdir()
    (folder / "model").mkdir()
    for name in ("train", "dev", "test"):
        for side, language in (("source", "de"), ("target", "en")):
            shutil.copy(GOLDEN / f"bitext.{side}", folder / f"corpus/{name}.{language}")
    shutil.copy(GOLDEN / "table.7.gz", folder / "model/phrase-table.gz")
    shutil.copy(GOLDEN / "reordering.gz", folder / "model" / REORDERING)
    programs = install(folder / "moses")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        assert run_inside("lm", "corpus/train.en", "--order", "2", "-o", "model/lm.arpa").code == 0
        tables = ["--table", "model/phrase-table.gz", "--reordering-table", f"model/{REORDERING}"]
        assert run_inside("moses-ini", *tables, "--lm", "model/lm.arpa", "-o", "model/moses.ini").code == 0
        run_page("index.md", {"train": ["--epochs", "3", "-q"], "tune": ["--iterations", "2"]})
        yield folder


def test_all_commands_of_the_pages_exist():
    lines = [line for page in ["index.md", *OTHERS] for line in commands(page)]
    assert len(lines) > 20
    assert {shlex.split(line)[1] for line in lines if line.startswith("phrasetool ")} <= set(COMMANDS)
    assert len(OTHERS) == 4


def test_every_command_of_the_pages_is_run():
    for page in ["index.md", *OTHERS]:
        text = (PAGES / page).read_text("utf-8")
        command_lines = re.findall(r"^(?:\$ )?(phrasetool .*)$", text, re.MULTILINE)
        # A line of text may begin with the word phrasetool; a command contains a file of the model.
        assert [line for line in command_lines if line not in commands(page) and " model/" in line] == []


def test_the_walkthrough(folder):
    full, annotated, tuned, small = (
        MosesModel.read(str(folder / f"model/moses{name}.ini")) for name in ("", ".annotated", ".tuned", ".small")
    )
    assert Path(annotated.table).name == Path(tuned.table).name == "phrase-table.annotated.gz"
    assert Path(small.table).name == "phrase-table.small.gz"
    assert Path(small.reordering).name == "reordering-table.small.wbe-msd-bidirectional-fe.gz"
    sizes = [model.features.sizes["TranslationModel"] for model in (full, annotated, tuned, small)]
    assert sizes == [4, 8, 8, 8]
    # The whole table is annotated first, then pruned together with its reordering table.
    tables = [read(Path(path)).splitlines() for path in (full.table, annotated.table, small.table, small.reordering)]
    pairs = [[line.split(b" ||| ")[:2] for line in lines] for lines in tables]
    assert pairs[0] == pairs[1]
    assert pairs[2] == pairs[3]
    assert 0.14 * len(pairs[0]) < len(pairs[2]) <= 0.15 * len(pairs[0])
    assert set(tables[2]) < set(tables[1])
    # New columns change no translation before the weights are tuned; pruning keeps the tuned weights.
    assert (folder / "test.annotated.out").read_bytes() == (folder / "test.full.out").read_bytes()
    weights = [read_moses_ini(str(folder / f"model/moses.{name}.ini")).weights for name in ("tuned", "small")]
    assert weights[0] == weights[1]
    assert any(weights[0]["TranslationModel0"][4:])
    assert (folder / "model/phrase-table.small.minphr").stat().st_size > 0
    assert (folder / "model/reordering-table.small.wbe-msd-bidirectional-fe.minlexr").stat().st_size > 0


@pytest.mark.parametrize("page", OTHERS)
def test_the_other_pages(folder, page):
    if page == "ems.md":
        # EMS refers to tables without their ending.
        text = (folder / "model/moses.ini").read_text("utf-8")
        assert text.count(".gz ") + text.count(".gz\n") == 2
        (folder / "model/moses.ini.1").write_text(re.sub(r"\.gz(?=\s)", "", text), "utf-8")
    run_page(page, {"tune": ["--iterations", "2"]})
    if page == "binary.md":
        assert "num_scores\t8\n" in (folder / "model/phrase-table.small.probing/config").read_text()
        assert "NumScores 8\n" in (folder / "model/phrase-table.small.ondisk/Misc.dat").read_text()
    if page == "ems.md":
        rule = ("--method", "count", "--target-size", "0.15")
        assert run_inside("prune", "model/phrase-table.gz", *rule, "-o", "direct.gz").code == 0
        assert read(folder / "model/phrase-table-pruned.gz") == read(Path("direct.gz")) != b""
        ini = read_moses_ini(str(folder / "model/moses.annotated.ini"))
        assert ini.weights["TranslationModel0"][4:] == [0, 0, 0, 0]
    if page == "train-model.md":
        untuned, pruned = (
            read_moses_ini(str(folder / f"model/moses.{name}.ini")).weights["TranslationModel0"]
            for name in ("smoothed", "count")
        )
        assert untuned[4:] == [0, 0]
        assert len(pruned) == 6
        assert any(pruned[4:])


@pytest.mark.requires_reference
@pytest.mark.slow
def test_the_walkthrough_on_a_real_run(reference, tmp_path, monkeypatch):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "model").mkdir()
    for path in reference.iterdir():
        (tmp_path / "model" / path.name).symlink_to(path)
    corpora = {"train": ("train.{}.gz", 300), "dev": ("dev.{}", 50), "test": ("test_2016_flickr.{}", 50)}
    for name, (pattern, lines) in corpora.items():
        for language in ("de", "en"):
            data = (reference.parent / pattern.format(language)).read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            write(tmp_path / f"corpus/{name}.{language}", b"\n".join(data.split(b"\n")[:lines]) + b"\n")
    monkeypatch.chdir(tmp_path)
    run_page(
        "index.md", {"train": ["--epochs", "2", "-q"], "tune": ["--iterations", "1"]}, until="Build a binary table"
    )
    full, annotated = ((tmp_path / f"test.{name}.out").read_bytes().split(b"\n") for name in ("full", "annotated"))
    moses = (reference / "test_2016_flickr.moses.en").read_bytes().split(b"\n")
    assert [line.split() for line in full[:50]] == [line.split() for line in moses[:50]]
    assert annotated == full
    assert (tmp_path / "test.small.out").read_bytes().count(b"\n") == 50
