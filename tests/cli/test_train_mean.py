"""`train --architecture mean`: external word vectors as an ordinary model."""

import json

import numpy as np
import pytest

from phrasetool.phrase_encoder.model import BilingualModel
from tests.commands import read, run_inside, write
from tests.text_encoder_folders import MEANINGS, WORDS, table_lines

DIMENSION = ("--dimension", "8")


def vector_file(path, words, vectors):
    lines = [f"{word} {' '.join(f'{x:.6f}' for x in vector)}" for word, vector in zip(words, vectors, strict=True)]
    path.write_text(f"{len(words)} {vectors.shape[1]}\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def files(tmp_path):
    """Files of source and target word vectors in one space."""
    return [vector_file(tmp_path / f"{side}.vec", WORDS[side::2], MEANINGS) for side in range(2)]


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.gz", table_lines(1500))


def train(table, folder, files, *options):
    vectors = ("--source-vectors", files[0], "--target-vectors", files[1])
    return run_inside("train", table, "--architecture", "mean", *DIMENSION, *vectors, "-o", folder, *options)


def test_vectors_of_one_space_need_no_training(table, files, tmp_path):
    outcome = train(table, tmp_path / "m", files, "--transformation", "identity", "--json", tmp_path / "j")
    assert outcome.code == 0, outcome.err
    document = json.loads((tmp_path / "j").read_text())
    assert document["log"] == []
    assert document["training"]["iterations_done"] == 0
    model = BilingualModel.load(tmp_path / "m")
    assert model.columns == ("mean_st", "mean_ts")
    assert not (tmp_path / "m" / "checkpoint.safetensors").exists()
    outcome = run_inside("evaluate-model", table, "-m", tmp_path / "m", "--json")
    assert json.loads(outcome.out)["auc_other_targets"] > 0.8
    outcome = run_inside("annotate", table, "-m", tmp_path / "m", "-o", tmp_path / "a.gz")
    assert outcome.code == 0, outcome.err
    for line in read(tmp_path / "a.gz").splitlines()[:50]:
        source, target, scores = line.split(b" ||| ")[:3]
        both = [phrase.decode().split() for phrase in (source, target)]
        same = [WORDS.index(word) // 2 for word in both[0]] == [WORDS.index(word) // 2 for word in both[1]]
        st, ts = map(float, scores.split()[-2:])
        assert st == ts
        assert not same or st > 0.999


def test_cosines_are_calibrated_on_the_pairs(tmp_path):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(400, 8))
    sides = [vectors + 0.3 * rng.normal(size=vectors.shape) for _ in range(2)]
    files = [
        vector_file(tmp_path / f"{side}.vec", [f"{side}{i}" for i in range(400)], rows)
        for side, rows in zip("st", sides, strict=True)
    ]
    lines = [f"s{i} ||| t{i}\ns{i} s{i + 1} ||| t{i} t{i + 1}\n" for i in range(399)]
    table = write(tmp_path / "table", "".join(lines).encode())
    calibrations = {}
    for option in ("pairs", "none"):
        outcome = train(
            table, tmp_path / option, files, "--transformation", "identity", "--calibration", option, "-q"
        )  # fmt: skip
        assert outcome.code == 0, outcome.err
        calibrations[option] = BilingualModel.load(tmp_path / option).calibration
    assert calibrations["none"] is None
    # The cosines of random pairs are about 0.
    assert calibrations["pairs"].random == pytest.approx(0, abs=0.1)
    assert 0.3 < calibrations["pairs"].pair < 0.9


def test_a_transformation_is_learnt(table, files, tmp_path):
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0].astype(np.float32)
    files[1] = vector_file(tmp_path / "turned.vec", WORDS[1::2], MEANINGS @ rotation)
    outcome = train(table, tmp_path / "m", files, "--epochs", "20", "--learning-rate", "0.02")
    assert outcome.code == 0, outcome.err
    outcome = run_inside("evaluate-model", table, "-m", tmp_path / "m", "--json")
    assert json.loads(outcome.out)["auc_other_targets"] > 0.75


def test_vectors_of_two_spaces_are_refused(tmp_path):
    rng = np.random.default_rng(4)
    pairs = sorted({tuple(rng.integers(0, 60, rng.integers(1, 5))) for _ in range(1000)})
    lines = [f"{' '.join(f's{i}' for i in pair)} ||| {' '.join(f't{i}' for i in pair)}\n" for pair in pairs]
    table = write(tmp_path / "pairs", "".join(lines).encode())
    files = [vector_file(tmp_path / f"{side}.vec", [f"{side}{i}" for i in range(60)], rng.normal(size=(60, 8)))
             for side in "st"]  # fmt: skip
    outcome = train(table, tmp_path / "m", files, "--transformation", "identity", "-q")
    assert outcome.code == 1
    assert "are not in one space: they rank true pairs no better than chance (AUC 0." in outcome.message
    assert not (tmp_path / "m" / "config.json").exists()


def test_words_without_a_vector_have_no_score(table, files, tmp_path):
    assert train(table, tmp_path / "m", files, "--transformation", "identity", "-q").code == 0
    more = write(tmp_path / "more.gz", table_lines(300) + b"zzz ||| dog ||| 0.5 0.5 0.5 0.5\n")
    outcome = run_inside("annotate", more, "-m", tmp_path / "m", "-o", tmp_path / "a.gz")
    assert "annotated 301 entries; 1 have only unknown words on a side" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--architecture", "mean", "--transformation", "identity"), "identity is for word vectors of one space"),
        (("--architecture", "mean", "--transformation", "none"), "transformation is 'none', expected one of"),
        (("--architecture", "mean", "--alpha", "0.5"), "the encoder mean does not reconstruct"),
        (("--architecture", "mean", "--lambda-rec", "0.5"), "the layers of the encoder mean are not trained"),
        *(
            ((*identity, *more), f"{more[0]} is for training; with --transformation identity, nothing is trained")
            for identity in [
                (
                    "--architecture",
                    "mean",
                    "--transformation",
                    "identity",
                    "--source-vectors",
                    "v",
                    "--target-vectors",
                    "v",
                )
            ]
            for more in [
                ("--epochs", 99),
                ("--loss", "max-margin"),
                ("--learning-rate", 3),
                ("--batch-size", 7),
                ("--temperature", 0.2),
            ]
        ),
        (("--architecture", "mean", "--freeze-encoders"), "freeze_encoders is True, expected False: the encoder mean"),
    ],
)
def test_invalid_usage(options, message, table):
    outcome = run_inside("train", table, *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_the_dimension_is_that_of_the_file(table, files, tmp_path):
    vectors = ("--source-vectors", files[0], "--target-vectors", files[1])
    outcome = run_inside("train", table, "--architecture", "mean", *vectors, "-o", tmp_path / "m", "-q")
    assert outcome.code == 1
    assert "the vectors have dimension 8, but dimension 300 was requested" in outcome.message
