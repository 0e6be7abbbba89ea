import os

import pytest

from tests.commands import read, run_inside, write
from tests.phrasetool.smt.aligning.test_alignments import GOLDEN, columns

SOURCE = b"das haus\ndas alte haus\nein haus\ndas haus ist alt\n" * 5
TARGET = b"the house\nthe old house\na house\nthe house is old\n" * 5


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "s.gz", SOURCE), write(tmp_path / "t", TARGET)


def test_all_three_files(files, tmp_path):
    outputs = [tmp_path / name for name in ("both.gz", "forward", "reverse.gz")]
    outcome = run_inside("align", *files, "-o", outputs[0], "--forward", outputs[1], "--reverse", outputs[2])
    assert outcome.code == 0, outcome.err
    assert "aligning 20 sentence pairs" in outcome.err
    texts = [read(path) for path in outputs]
    assert all(text.count(b"\n") == 20 for text in texts)
    # The saved alignments of both directions can be symmetrised again, also to standard output.
    for method in ("grow-diag-final-and", "union"):
        again = run_inside("align", *outputs[1:], "--only-symmetrise", "--symmetrise", method, "-q")
        assert (again.code, again.err) == (0, "")
        assert (again.out == texts[0]) or method == "union"
    repeated = run_inside("align", *files, "-q", "--seed", 1)
    assert repeated.out == texts[0]


@pytest.mark.parametrize("method", ["grow-diag-final-and", "grow-diag", "intersection"])
def test_only_symmetrise(tmp_path, method):
    rows = [line.split("\t") for line in GOLDEN.read_text().splitlines()[1:]]
    forward, reverse = (write(tmp_path / f"{i}.gz", "\n".join(row[i] for row in rows).encode() + b"\n") for i in (0, 1))
    outcome = run_inside(
        "align", forward, reverse, "--only-symmetrise", "--symmetrise", method, "-o", tmp_path / "o.gz"
    )
    assert outcome.code == 0
    assert f"after {method}" in outcome.message
    expected = [" ".join(f"{s}-{t}" for s, t in sorted(points)) for points in columns()[method]]
    assert read(tmp_path / "o.gz").decode().splitlines() == expected


def test_unseeded_with_settings(files, tmp_path):
    priors = write(tmp_path / "p", b"LEX\thaus\thouse\t3\n")
    outcome = run_inside(
        "align",
        *files,
        "--unseeded",
        "--threads",
        2,
        "--aligner-model",
        1,
        "--iteration-factor",
        0.1,
        "--priors",
        priors,
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.count(b"\n") == 20


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\nb\n", b"a\n", "t:2: the file ends after 1 lines, but {0}/s has 2"),
        (b"a\n\n", b"a\nb\n", "s:2: the sentence is empty"),
        (b"", b"", "s: the bitext has no sentence"),
    ],
)
def test_bad_bitext(tmp_path, source, target, message):
    paths = write(tmp_path / "s", source), write(tmp_path / "t", target)
    outcome = run_inside("align", *paths, "-o", tmp_path / "o.gz", "--forward", tmp_path / "f")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {tmp_path}/{message.format(tmp_path)}")
    assert sorted(os.listdir(tmp_path)) == ["s", "t"]


def test_bad_alignments(tmp_path):
    forward, reverse = write(tmp_path / "f", b"0-0\n1-1\n"), write(tmp_path / "r", b"0-0\n")
    outcome = run_inside("align", forward, reverse, "--only-symmetrise", "-o", tmp_path / "o")
    assert outcome.message == f"phrasetool: {reverse}:2: the file ends after 1 lines, but {forward} has 2"
    write(reverse, b"0-0\n0_0\n")
    outcome = run_inside("align", forward, reverse, "--only-symmetrise", "-o", tmp_path / "o")
    assert outcome.message == f"phrasetool: {reverse}:2: expected alignment points like 0-0 1-2, found '0_0'"
    assert sorted(os.listdir(tmp_path)) == ["f", "r"]


def test_bad_priors(files, tmp_path):
    priors = write(tmp_path / "p", b"LEX\thaus\thouse\t3\nLEX\n")
    outcome = run_inside("align", *files, "--priors", priors, "-o", tmp_path / "o")
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {priors}:2: not a prior")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("line", [b"LEX\thaus\thouse\t%s", b"HMMF\t1\t%s", b"FERF\thaus\t1\t%s"])
def test_too_large_priors(files, tmp_path, line):
    """Weights above 1e11 are rejected: with fertilities of 1e14, eflomal would not finish."""
    for weight in (b"100000000001", b"1e14", b"inf"):
        priors = write(tmp_path / "p", b"LEX\tdas\tthe\t3\n" + line % weight + b"\n")
        outcome = run_inside("align", *files, "--priors", priors, "-o", tmp_path / "o")
        assert outcome.code == 1
        assert outcome.message.startswith(
            f"phrasetool: {priors}:2: the weight {weight.decode()} is more than 1e+11, with"
        )
        assert not (tmp_path / "o").exists()
    priors = write(tmp_path / "p", line % b"1e11" + b"\n")
    assert run_inside("align", *files, "--priors", priors, "-o", tmp_path / "o").code == 0


def test_used_priors_are_counted(files, tmp_path):
    text = b"LEX\tHAUS\thouse\t3\nLEX\t<NULL>\tthe\t1\nLEX\thaus\tdog\t1\nLEX\thouse\thaus\t1\n"
    priors = write(tmp_path / "p", text + b"FERF\tdas\t1\t2\nFERR\tdas\t1\t2\nHMMF\t1\t4\nHMMR\t2\t4\n")
    settings = ("--iteration-factor", 0.01, "--priors", priors, "-o", "/dev/null")
    for model, used in ((1, "2 of 8 priors are used: 2 word pairs, 0 fertilities, 0 jumps"),
                        (2, "4 of 8 priors are used: 2 word pairs, 0 fertilities, 2 jumps"),
                        (3, "5 of 8 priors are used: 2 word pairs, 1 fertilities, 2 jumps")):  # fmt: skip
        outcome = run_inside("align", *files, "--aligner-model", model, *settings)
        assert outcome.code == 0, outcome.err
        assert f"phrasetool: {used}\n" in outcome.err


@pytest.mark.parametrize(
    ("priors", "options", "message"),
    [
        (b"", (), "the file has no priors"),
        (b"LEX\tfoo\tbar\t3\nHMMF\t1\t4\n", (), "none of its 1 word pairs and fertilities matches words of"),
        (
            b"HMMF\t1\t3\nFERF\tdas\t1\t2\n",
            ("--aligner-model", 1),
            "none of its 1 word pairs and fertilities matches words of",
        ),
        (b"HMMF\t1\t3\n", ("--aligner-model", 1), "the model uses none of its 1 priors, which are jumps"),
        (b"LEX\thouse\thaus\t3\nLEX\tthe\tdas\t9\nLEX\tdas\tthe\t1\n", (), "2 of its word pairs match"),
    ],
)
def test_mismatched_priors(files, tmp_path, priors, options, message):
    path = write(tmp_path / "p", priors)
    outcome = run_inside("align", *files, "--priors", path, "-o", tmp_path / "o", "--forward", tmp_path / "f", *options)
    assert outcome.code == 1
    assert outcome.message.startswith(f"phrasetool: {path}: {message}")
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "f").exists()


def test_bad_usage(files, tmp_path):
    for options in (
        ("--only-symmetrise", "--forward", tmp_path / "f"),
        ("--unseeded", "--seed", 3),
        ("--aligner-model", 4),
    ):
        assert run_inside("align", *files, *options).code == 2
    outcome = run_inside("align", *files, "-o", files[1])
    assert "the output is the input" in outcome.message
    assert read(files[1]) == TARGET
    outcome = run_inside("align", *files, "-o", tmp_path / "o", "--forward", tmp_path / "o")
    assert "two outputs go to one file" in outcome.message


def test_cannot_be_seeded(files, monkeypatch):
    monkeypatch.setattr("phrasetool.smt.aligning.eflomal._seedable_copy", lambda program, folder: None)
    outcome = run_inside("align", *files, "--seed", 1)
    assert "eflomal cannot be seeded on this system; leave out --seed" in outcome.message
    outcome = run_inside("align", *files, "-q", "--iteration-factor", 0.1)
    assert outcome.code == 0
    assert "will differ a little from run to run" in outcome.message
