"""The commands of docs/guides/moses/ do what the pages say: on a small model, and on a real run of Moses."""

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
    """The lines of a page that can be run, those before the heading `until` only."""
    text = (PAGES / page).read_text("utf-8").partition(f"\n## {until}\n")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run_page(page, more=None, until=None):
    """Run them in this folder; `more` says what to append to which command."""
    for line in commands(page, until):
        program, name, *arguments = shlex.split(line)
        if program == "sed":
            subprocess.run([program, name, *arguments], check=True, timeout=20)
        else:
            assert program == "phrasetool"
            done = run_inside(name, *arguments, *(more or {}).get(name, ()))
            assert done.code == 0, (line, done.err)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Somebody's model folder, small, in which everything of the first page was done."""
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


def test_every_command_there_is_ours_and_they_are_many():
    lines = [line for page in ["index.md", *OTHERS] for line in commands(page)]
    assert len(lines) > 20
    assert {shlex.split(line)[1] for line in lines if line.startswith("phrasetool ")} <= set(COMMANDS)
    assert len(OTHERS) == 4


def test_no_page_has_a_command_that_is_not_run():
    for page in ["index.md", *OTHERS]:
        text = (PAGES / page).read_text("utf-8")
        found = re.findall(r"^(?:\$ )?(phrasetool .*)$", text, re.MULTILINE)
        # A word in a sentence may begin a line; a command has an option or a file.
        assert [line for line in found if line not in commands(page) and " model/" in line] == []


def test_the_whole_way(folder):
    full, small, annotated = (
        MosesModel.read(str(folder / "model" / name)) for name in ("moses.ini", "moses.small.ini", "moses.sim.ini")
    )
    assert Path(small.table).name == "phrase-table.small.gz"
    assert Path(annotated.table).name == "phrase-table.sim.gz"
    assert Path(small.reordering).name == "reordering-table.small.wbe-msd-bidirectional-fe.gz"
    assert annotated.reordering == small.reordering
    assert annotated.features.sizes["TranslationModel"] == full.features.sizes["TranslationModel"] + 2
    # Pruned in step.
    tables = [read(Path(path)).splitlines() for path in (small.table, small.reordering, full.table)]
    pairs = [[line.split(b" ||| ")[:2] for line in lines] for lines in tables]
    assert pairs[0] == pairs[1]
    assert 0.14 * len(pairs[2]) < len(pairs[0]) <= 0.15 * len(pairs[2])
    # With weights of 0, annotating changes no translation.
    assert (folder / "test.sim.out").read_bytes() == (folder / "test.small.out").read_bytes()
    assert (folder / "model/phrase-table.sim.minphr").stat().st_size > 0
    assert (folder / "model/reordering-table.small.wbe-msd-bidirectional-fe.minlexr").stat().st_size > 0


@pytest.mark.parametrize("page", OTHERS)
def test_the_other_pages(folder, page):
    run_page(page, {"tune": ["--iterations", "2"]})
    if page == "binary.md":
        assert "num_scores\t6\n" in (folder / "model/phrase-table.sim.probing/config").read_text()
        assert "NumScores 6\n" in (folder / "model/phrase-table.sim.ondisk/Misc.dat").read_text()
    if page == "ems.md":
        rule = ("-m", "brae", "--method", "count+semantic", "--target-size", "0.15")
        assert run_inside("prune", "model/phrase-table.gz", *rule, "-o", "direct.gz").code == 0
        assert read(folder / "model/phrase-table-pruned.gz") == read(Path("direct.gz")) != b""
    if page == "train-model.md":
        ini = read_moses_ini(str(folder / "model/moses.sim.ini"))
        assert ini.weights["TranslationModel0"][4:] == [0, 0]


@pytest.mark.requires_reference
@pytest.mark.slow
def test_the_whole_way_on_a_real_run(reference, tmp_path, monkeypatch):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "model").mkdir()
    for path in reference.iterdir():
        (tmp_path / "model" / path.name).symlink_to(path)
    corpora = {"train": ("train.{}.gz", 300), "test": ("test_2016_flickr.{}", 50)}
    for name, (pattern, lines) in corpora.items():
        for language in ("de", "en"):
            data = (reference.parent / pattern.format(language)).read_bytes()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            write(tmp_path / f"corpus/{name}.{language}", b"\n".join(data.split(b"\n")[:lines]) + b"\n")
    monkeypatch.chdir(tmp_path)
    run_page("index.md", {"train": ["--epochs", "2", "-q"]}, until="Tune")
    outputs = [(tmp_path / f"test.{name}.out").read_bytes().split(b"\n") for name in ("full", "small", "sim")]
    moses = (reference / "test_2016_flickr.moses.en").read_bytes().split(b"\n")
    assert [line.split() for line in outputs[0][:50]] == [line.split() for line in moses[:50]]
    assert outputs[1] == outputs[2]
