"""Incompatible models are refused before anything is written; compatible models never are."""

import json
import shutil
from pathlib import Path

import pytest

import phrasetool
import phrasetool_cli.demo
from phrasetool.errors import DataError
from phrasetool.phrase_encoder.model import BilingualModel
from tests.commands import read, run_inside, write

DEMO = Path(phrasetool_cli.demo.__file__).parent
RIGHT = (
    "knows 99.1% of the source's words and 98.3% of the target's, and ranks true pairs above random ones with AUC 0.99"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The demo's table and model, and the table with its sides swapped."""
    folder = tmp_path_factory.mktemp("fit")
    for language in ("zh", "en"):
        lines = (DEMO / f"corpus.{language}").read_bytes().splitlines(keepends=True)
        write(folder / language, b"".join(line for i, line in enumerate(lines) if i % 10 not in (3, 7)))
    table = folder / "table.gz"
    outcome = run_inside("extract", folder / "zh", folder / "en", DEMO / "aligned.gz", "-o", table, "-q")
    assert outcome.code == 0, outcome.err
    lines = [line.split(b" ||| ") for line in read(table).splitlines(keepends=True)]
    swapped = sorted(b" ||| ".join([target, source, *rest]) for source, target, *rest in lines)
    write(folder / "swapped.gz", b"".join(swapped))
    shutil.copytree(DEMO / "model", folder / "model")
    return folder


def commands(folder, table):
    yield "annotate", table, "-m", folder / "model"
    yield "prune", table, "-m", folder / "model", "--threshold", "0.5"
    yield "prune", table, "-m", folder / "model", "--target-size", "1"
    yield "prune", table, "-m", folder / "model", "--method", "semantic+count", "--target-size", "0.5"


def test_a_compatible_model_is_reported_in_one_line(folder, tmp_path):
    plain = write(tmp_path / "plain", read(folder / "table.gz"))
    for command in commands(folder, folder / "table.gz"):
        outcome = run_inside(*command, "-o", tmp_path / "out")
        assert outcome.code == 0, outcome.err
        assert outcome.err.count(f"phrasetool: {folder / 'model'} {RIGHT}") == 1
        assert run_inside(*command, "-o", tmp_path / "quiet", "-q").err == ""
        assert read(tmp_path / "quiet") == read(tmp_path / "out")
    piped = run_inside("annotate", "-", "-m", folder / "model", stdin=plain.read_bytes())
    assert RIGHT in piped.err


def test_annotate_writes_the_fit_of_each_model_as_json(folder, tmp_path):
    models = "-m", folder / "model", "-m", folder / "model"
    outcome = run_inside("annotate", folder / "table.gz", *models, "-o", tmp_path / "out", "--json", "-q")
    assert outcome.code == 0, outcome.err
    fits = json.loads(outcome.out)["model_fits"]
    assert [round(fit["auc"], 2) for fit in fits] == [0.99, 0.99]
    assert round(fits[0]["source_known"], 3) == 0.991


def test_swapped_sides_are_refused_before_anything_is_written(folder, tmp_path):
    write(tmp_path / "out", b"old")
    for command in commands(folder, folder / "swapped.gz"):
        outcome = run_inside(*command, "-o", tmp_path / "out", "-q")
        assert outcome.code == 1
        assert (
            f"{folder / 'swapped.gz'}: the model {folder / 'model'} does not match: source and tar" in outcome.message
        )
        assert "source and target look swapped: it knows 0.0% of the source's words" in outcome.message
        assert outcome.message.endswith("; name another model, or continue with --force")
        assert read(tmp_path / "out") == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
    outcome = run_inside("annotate", "-", "-m", folder / "model", "-q", stdin=(folder / "swapped.gz").read_bytes())
    assert (outcome.code, outcome.out) == (1, b"")
    assert "standard input: the model" in outcome.message


def test_force_continues_with_a_warning(folder, tmp_path):
    for command in commands(folder, folder / "swapped.gz"):
        outcome = run_inside(*command, "-o", tmp_path / "out", "-q", "--force")
        assert outcome.code == 0
        assert outcome.message.startswith(f"phrasetool: warning: {folder / 'swapped.gz'}: the model")
        assert "--force" not in outcome.message
        assert read(tmp_path / "out")


def test_evaluate_model(folder, tmp_path):
    options = ("-m", folder / "model", "--candidates", "10")
    outcome = run_inside("evaluate-model", folder / "table.gz", *options, "--json")
    assert "ranks true pairs above random ones with AUC 0.99" in outcome.message
    assert json.loads(outcome.out)["model_fit"]["auc"] > 0.98
    outcome = run_inside("evaluate-model", folder / "swapped.gz", *options)
    assert outcome.code == 1
    assert "source and target look swapped" in outcome.message
    forced = run_inside("evaluate-model", folder / "swapped.gz", *options, "--force")
    assert forced.code == 0
    assert "warning" in forced.message
    piped = run_inside("evaluate-model", "-", *options, stdin=(folder / "swapped.gz").read_bytes())
    assert piped.code == 1
    assert "standard input: the model" in piped.message
    assert "source and target look swapped" in piped.message


def test_a_vocabulary_in_another_order_is_no_better_than_chance(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "m")
    first, *words = read(tmp_path / "m" / "source.vocab").splitlines(keepends=True)
    write(tmp_path / "m" / "source.vocab", b"".join([first, *sorted(words)]))
    outcome = run_inside("annotate", folder / "table.gz", "-m", tmp_path / "m", "-o", tmp_path / "out")
    assert outcome.code == 1
    assert "it ranks true pairs hardly better than chance (AUC 0.5" in outcome.message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("lines", "names"), [(1, ["table.gz", "swapped.gz"]), (20, ["table.gz"])])
def test_small_tables_are_never_refused(folder, tmp_path, lines, names):
    for name in names:
        data = b"".join(read(folder / name).splitlines(keepends=True)[2000 : 2000 + lines])
        outcome = run_inside(
            "annotate", write(tmp_path / "t", data), "-m", folder / "model", "-o", tmp_path / "out", "-q"
        )
        assert (outcome.code, outcome.err) == (0, "")


def test_a_small_table_of_unknown_words(folder, tmp_path):
    """Nine pairs of unknown words may be names; ten pairs of two unknown words count as another language."""
    for lines, code in ((9, 0), (10, 1)):
        table = write(tmp_path / "t", b"".join(b"xy%d yz ||| ab%d bc ||| 0.5\n" % (i, i) for i in range(lines)))
        outcome = run_inside("annotate", table, "-m", folder / "model", "-o", tmp_path / f"out{lines}", "-q")
        assert outcome.code == code
        assert (tmp_path / f"out{lines}").exists() == (not code)
    assert "it knows none of the 20 running words of the source" in outcome.message


def test_the_beginning_of_a_sorted_table_is_accepted(folder, tmp_path):
    """A sorted table begins with punctuation and numbers, whose pairs are wrong more often than others."""
    lines = read(folder / "table.gz").splitlines(keepends=True)
    for count in (300, 600, 1200):
        table = write(tmp_path / "t", b"".join(lines[:count]))
        outcome = run_inside("annotate", table, "-m", folder / "model", "-o", tmp_path / "out", "-q")
        assert (outcome.code, outcome.err) == (0, "")
    marks = b"".join(b"%d ||| %d , ||| 0.5\n" % (i, i + 1) for i in range(3000))
    outcome = run_inside("annotate", write(tmp_path / "t", marks), "-m", folder / "model", "-o", tmp_path / "out", "-q")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_table_that_the_same_model_annotated(folder, tmp_path):
    once, twice = tmp_path / "once.gz", tmp_path / "twice.gz"
    options = ("-m", folder / "model", "-q")
    assert run_inside("annotate", folder / "table.gz", *options, "-o", once).code == 0
    outcome = run_inside("annotate", once, *options, "-o", twice)
    assert outcome.code == 1
    model = folder / "model"
    assert (
        f"{once}: columns 5 and 6 already hold the similarities of the model {model}; --force continues"
        in outcome.message
    )
    assert not twice.exists()
    # Pruning, and annotating with another model, are allowed.
    assert run_inside("prune", once, *options, "-t", "0.5", "-o", twice).code == 0
    outcome = run_inside("annotate", once, *options, "-o", twice, "--force")
    assert outcome.code == 0
    assert "warning" in outcome.message
    model = BilingualModel.load(folder / "model")
    arrays = model.source.arrays()
    side = model.kind.parameters({**arrays, "transform": 0.7 * arrays["transform"]})
    other_model = BilingualModel(model.source_vocabulary, model.target_vocabulary, side, model.target, model.kind)
    other_model.save(tmp_path / "other")
    assert run_inside("annotate", once, "-m", tmp_path / "other", "-q", "-o", twice).err == ""


def test_statistics_hold_the_model_fit(folder, tmp_path):
    table, model = str(folder / "table.gz"), str(folder / "model")
    for options in (("-t", "0.5"), ("--method", "semantic+count", "--target-size", "0.5")):
        outcome = run_inside(
            "prune", table, "-m", model, *options, "-o", tmp_path / "o", "--stats", tmp_path / "s", "-q"
        )
        assert outcome.code == 0, outcome.err
        fit = json.loads((tmp_path / "s").read_text())["model_fit"]
        assert (fit["source_known"], fit["target_known"]) == (0.9908, 0.9831)
        assert fit["auc"] > 0.98
    pruned = phrasetool.prune(table, str(tmp_path / "p"), model=model, threshold=0.5)
    assert pruned.statistics.model_fit == fit
    assert phrasetool.annotate(table, str(tmp_path / "a"), [model]).fits[0].as_dict() == fit


def test_the_library_refuses_too(folder, tmp_path):
    table, model = str(folder / "swapped.gz"), str(folder / "model")
    with pytest.raises(DataError, match="look swapped"):
        phrasetool.annotate(table, str(tmp_path / "a"), [model])
    with pytest.raises(DataError, match="look swapped"):
        phrasetool.prune(table, str(tmp_path / "a"), model=model, threshold=0.5)
    assert not list(tmp_path.iterdir())
    assert phrasetool.annotate(table, str(tmp_path / "a"), [model], force=True).entries > 20000
    assert phrasetool.prune(table, str(tmp_path / "a"), model=model, threshold=0.5, force=True).statistics.entries


def test_training_texts_of_another_language(folder, tmp_path):
    pairs = write(tmp_path / "pairs", b"".join(read(folder / "table.gz").splitlines(keepends=True)[::16]))
    options = ("-o", tmp_path / "m", "--iterations", "1", "--dimension", "10", "--overwrite", "-q")
    outcome = run_inside("train", pairs, *options, "--source-text", folder / "en")
    assert outcome.code == 1
    assert (
        f"{folder / 'en'}: knows 0.0% of the running words of the source and 100.0% of those of the" in outcome.message
    )
    assert "source and target look swapped; --force continues anyway" in outcome.message
    assert not (tmp_path / "m").exists()
    german = write(tmp_path / "none", b"eins zwei drei vier\n" * 50)
    outcome = run_inside("train", pairs, *options, "--target-text", german)
    assert "none: knows 0.0% of the running words of the target: it is in another language" in outcome.message
    outcome = run_inside("train", pairs, *options, "--target-text", german, "--force")
    assert outcome.code == 0
    assert "warning" in outcome.message
    assert (
        run_inside("train", pairs, *options, "--source-text", folder / "zh", "--target-text", folder / "en").err == ""
    )
