import subprocess
import sys

import numpy as np
import pytest

from moses_compat.measures import windowed_scores
from tests import naive
from tests.commands import full_disk_after, read, run_inside, write
from tests.table_translators import backward_translator, naive_score, translator
from tests.tables import TABLES

pytest.importorskip("torch")
TABLE = TABLES["latin-1"]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translators")
    translator().save(folder / "forward")
    backward_translator().save(folder / "backward")
    return folder / "forward", folder / "backward"


def numbers(line):
    return [float(score) for score in line.split(b" ||| ")[2].split()]


def test_a_column_for_each_direction_and_those_of_other_models(folders, model_folder, tmp_path):
    table, out = write(tmp_path / "t", TABLE), tmp_path / "o.gz"
    forward, backward = folders
    outcome = run_inside("annotate", table, "-m", forward, "-m", model_folder, "-m", backward, "-o", out)
    assert outcome.code == 0
    assert f"a column is p(target | source) by {forward}" in outcome.err
    assert f"a column is p(source | target) by {backward}" in outcome.err
    assert naive.cut_columns(read(out), 4) == TABLE
    alone = [
        run_inside("annotate", table, "-q", "-o", "-", "-m", folder).out.splitlines()
        for folder in (forward, model_folder, backward)
    ]
    for line, *parts in zip(read(out).splitlines(), *alone, strict=True):
        added = [number for part in parts for number in numbers(part)[5:]]
        assert numbers(line)[5:] == added
        assert all(1e-22 < added[i] <= 1 for i in (0, 3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.gz", "t"]


@pytest.mark.parametrize("reading", ["normalised", "density"])
def test_a_column_is_the_score_that_was_asked_for(folders, tmp_path, reading):
    table, model = write(tmp_path / "t", TABLE), translator()
    outcome = run_inside("annotate", table, "-m", folders[0], "--translator-score", reading, "-q", "-o", "-")
    assert outcome.code == 0, outcome.err
    for line in outcome.out.splitlines():
        source, target, *_ = (field.split() for field in line.split(b"|||"))
        pair = model.source_vocabulary.ids(b" ".join(source)), model.target_vocabulary.ids(b" ".join(target))
        if any(pair[0]) and any(pair[1]):
            expected = max(naive_score(model, *pair, reading), -50)
            assert np.log(numbers(line)[5]) == pytest.approx(expected, rel=1e-3, abs=1e-5)
    other_reading = "normalised" if reading == "density" else "density"
    assert (
        run_inside("annotate", table, "-m", folders[0], "--translator-score", other_reading, "-q", "-o", "-").out
        != outcome.out
    )


def test_threads_blocks_and_pipes_change_no_byte(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    table = write(tmp_path / "t.gz", TABLE)
    expected = run_inside("annotate", table, "-q", "-o", "-", "-m", folders[0]).out
    for options in (["--threads", 2], ["--block-bytes", 100, "--threads", 1]):
        assert run_inside("annotate", table, "-q", "-o", "-", "-m", folders[0], *options).out == expected
    assert run_inside("annotate", "-", "-q", "-m", folders[0], stdin=TABLE).out == expected


def test_parquet_must_be_converted_to_text(folders, tmp_path):
    """Parquet is rejected with a hint; after conversion to text, the output is the same as for the original table."""
    pytest.importorskip("pyarrow")
    text, parquet, again = write(tmp_path / "t", TABLE), tmp_path / "t.parquet", tmp_path / "again"
    for step in (("convert", text, "-o", parquet), ("convert", parquet, "-o", again)):
        assert run_inside(*step, "-q").code == 0
    for command in (("annotate",), ("prune", "--method", "semantic", "--target-size", "0.4"), ("prune", "-t", "0.3")):
        command = (*command, "-m", folders[0], "-q", "-o")
        refused = run_inside(*command, tmp_path / "o", parquet)
        assert (refused.code, "is a Parquet file; make it text with `phrasetool convert`" in refused.message) == (
            1,
            True,
        )
        assert not (tmp_path / "o").exists()
        expected = run_inside(*command, "-", text).out
        assert 0 < expected.count(b"\n") <= TABLE.count(b"\n")
        assert run_inside(*command, "-", again).out == expected
        # The output survives conversion to Parquet and back.
        written = write(tmp_path / "written", expected)
        assert run_inside("convert", written, "-o", tmp_path / "w.parquet", "-q").code == 0
        assert run_inside("convert", tmp_path / "w.parquet", "-o", tmp_path / "back", "-q").code == 0
        assert read(tmp_path / "back") == expected


def test_interrupted_work_is_resumed(folders, tmp_path, monkeypatch):
    monkeypatch.setattr(windowed_scores, "WINDOW", 40)
    table, out = write(tmp_path / "t", TABLE), tmp_path / "o"
    with full_disk_after(2):
        failed = run_inside("annotate", table, "-q", "--threads", 1, "-m", folders[0], "-o", out)
    assert failed.code == 1
    assert "the disk is full" in failed.message
    assert not out.exists()
    assert len(list((tmp_path / "o.scores-1").iterdir())) == 2
    mismatched = run_inside("annotate", table, "-q", "-m", folders[1], "-o", out)
    assert (mismatched.code, "holds scores of another model" in mismatched.message) == (1, True)
    assert run_inside("annotate", table, "-q", "-m", folders[0], "-o", out).code == 0
    assert out.read_bytes() == run_inside("annotate", table, "-q", "-o", "-", "-m", folders[0]).out
    assert not (tmp_path / "o.scores-1").exists()


@pytest.mark.parametrize("kind", ["similarities", "translator"])
def test_softmax_is_over_the_candidates_of_a_source(folders, model_folder, tmp_path, kind):
    table = write(tmp_path / "t", TABLE)
    folder, first = (model_folder, 5) if kind == "similarities" else (folders[0], 5)
    raw = run_inside("annotate", table, "-q", "-o", "-", "-m", folder, "--scale", "raw").out.splitlines()
    outcome = run_inside("annotate", table, "-q", "-o", "-", "-m", folder, "--scale", "softmax").out.splitlines()
    groups: dict[bytes, list[tuple[list[float], list[float]]]] = {}
    for before, after in zip(raw, outcome, strict=True):
        groups.setdefault(before.split(b" ||| ")[0], []).append((numbers(before)[first:], numbers(after)[first:]))
    assert max(map(len, groups.values())) > 3
    for entries in groups.values():
        values, result = (np.array(part) for part in zip(*entries, strict=True))
        # For a translator, probabilities are written on any scale, and 1 for an entry without a score.
        powers = np.exp(values) if kind == "similarities" else values
        if kind == "similarities" or (values < 1).all():
            assert result == pytest.approx(powers / powers.sum(0), rel=1e-4)


def test_softmax_requires_contiguous_sources(model_folder, tmp_path):
    lines = TABLE.splitlines(True)
    table = write(tmp_path / "t", b"".join(lines[1:] + lines[:1] + lines[-1:] + lines[:3]))
    outcome = run_inside("annotate", table, "-q", "-o", "-", "-m", model_folder, "--scale", "softmax")
    assert (outcome.code, "occurs again" in outcome.message) == (1, True)
    assert run_inside("annotate", table, "-q", "-o", "-", "-m", model_folder).code == 0


def test_pruning_by_one_or_two_translators(folders, model_folder, tmp_path):
    table, saved = write(tmp_path / "t", TABLE), tmp_path / "scores"
    models = ["-m", folders[1], "-m", folders[0]]
    size = ["--target-size", "0.5", "--protect", "none", "-q"]
    kept = run_inside("prune", table, *models, *size, "--similarities", saved, "-o", tmp_path / "o")
    assert kept.code == 0
    lines = read(tmp_path / "o").splitlines()
    assert 0 < len(lines) <= TABLE.count(b"\n") / 2
    again = run_inside("prune", table, *size, "--similarities", saved).out
    swapped = run_inside("prune", table, "-m", folders[0], "-m", folders[1], *size).out
    assert again == swapped == read(tmp_path / "o")
    unnormalised = run_inside(
        "prune",
        table,
        "-m",
        folders[0],
        *size,
        "--method",
        "semantic+probability",
        "--translator-score",
        "unnormalised",
    )
    assert (unnormalised.code, unnormalised.out != again) == (0, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o", "scores", "t"]
    for wrong, message in (
        (["-m", folders[0], "-m", model_folder], "not a translator"),
        (["-m", model_folder, "-m", model_folder], "only translators can be combined"),
        (["-m", folders[0], "-m", folders[0]], "both models compute p(target | source)"),
        (["-m", folders[0]] * 3, "not 3 models"),
    ):
        outcome = run_inside("prune", table, *wrong, *size)
        assert outcome.code in (1, 2)
        assert message in outcome.message


@pytest.mark.parametrize("arguments", [["annotate", "--help"], ["annotate", "T", "-m", "M", "-q", "-o", "-"]])
def test_other_models_import_no_torch(arguments, model_folder, tmp_path):
    table = write(tmp_path / "t", TABLE)
    arguments = [{"T": str(table), "M": str(model_folder)}.get(argument, argument) for argument in arguments]
    code = (
        "import sys\nfrom phrasetool_cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as done: assert not done.code\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
