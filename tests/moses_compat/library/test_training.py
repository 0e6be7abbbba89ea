"""Training from Python: pairs in memory and pairs in a file give the same model as the command."""

import contextlib
import json

import numpy as np
import pytest

from moses_compat.library import train
from phrasetool.errors import DataError, DeviceError, ModelError, PhraseToolError
from phrasetool.models.saved_model import load_saved_model
from phrasetool.watch import Watch
from tests.commands import run_inside, write

PAIRS = [
    (f"{a}{i}", f"{a.upper()}{i}", 2.0) if i % 3 else (f"{a}{i} x", f"{a.upper()}{i}  y |")
    for a in "abcd" for i in range(9)
]  # fmt: skip
PAIRS += [*PAIRS[:5], ("a1 b1 c1", "C1 B1 A1", 7), ("&apos;s [", "&amp; ]")]
TEXT = "".join(" ||| ".join(map(str, pair)) + "\n" for pair in PAIRS).encode()
OPTIONS = {"dimension": 8, "iterations": 3, "seed": 5}
FLAGS = ("--dimension", "8", "--epochs", "3", "--seed", "5", "-q")


def files_of(folder):
    """Return a model's files as bytes, its configuration without the path of the pairs, and its log without times."""
    result = {path.name: path.read_bytes() for path in folder.iterdir()}
    config = json.loads(result.pop("config.json"))
    config["training"].pop("pairs_file", None)
    # Times differ between runs.
    log = [json.loads(line) for line in result.pop("training.jsonl").splitlines()]
    return result, config, [{k: v for k, v in line.items() if "second" not in k} for line in log]


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, ()),
        ({"loss": "syn-projection", "encoder": "mean-max"}, ("--loss", "syn-projection", "--architecture", "mean-max")),
        ({"max_length": 2, "min_count": 2, "vectors": "random", "batch_size": 7},
         ("--max-length", "2", "--min-pair-count", "2", "--vectors", "random", "--batch-size", "7")),
    ],
    ids=["default", "other loss and encoder", "some pairs"],
)  # fmt: skip
def test_a_list_a_file_and_the_command_make_one_model(tmp_path, options, flags):
    path = write(tmp_path / "pairs.gz", TEXT)
    outcome = run_inside("train", path, "-o", tmp_path / "command", *FLAGS, *flags)
    assert outcome.code == 0, outcome.err
    expected = files_of(tmp_path / "command")
    inputs = {"list": PAIRS, "file": path, "text": str(path), "generator": (list(pair) for pair in PAIRS)}
    for name, pairs in inputs.items():
        model = train(pairs, tmp_path / name, **OPTIONS, **options)
        assert files_of(tmp_path / name) == expected
        assert model.signature == load_saved_model(tmp_path / name).signature
    assert len(expected[0]) > 0


def test_the_model_is_the_one_that_was_saved(tmp_path):
    model = train(PAIRS, str(tmp_path / "m"), **OPTIONS)
    saved = load_saved_model(tmp_path / "m")
    for side, parameters in (("source", saved.source), ("target", saved.target)):
        held = getattr(model.model, side).arrays()
        for name, array in parameters.arrays().items():
            np.testing.assert_array_equal(held[name], array)
    assert saved.source_vocabulary.words == model.model.source_vocabulary.words
    assert b"'s" in saved.source_vocabulary.words
    assert b"|" in saved.target_vocabulary.words


def test_who_watches_is_told_of_every_pair(tmp_path):
    class Counting(Watch):
        def __init__(self):
            self.totals = {}

        def items(self, label, total, unit, finished=0):
            @contextlib.contextmanager
            def counted():
                reported = []
                yield reported.append
                self.totals[label, unit] = (total, sum(reported))

            return counted()

    watch = Counting()
    train(PAIRS, tmp_path / "m", watch=watch, **OPTIONS)
    total, reported = watch.totals["train", "pair"]
    distinct = len({pair[:2] for pair in PAIRS})
    assert total == reported
    assert reported >= 3 * distinct


def test_threads_of_the_program_stay_as_they_were(tmp_path):
    import torch

    torch.set_num_threads(2)
    train(PAIRS, tmp_path / "m", **OPTIONS)
    assert torch.get_num_threads() == 2
    with pytest.raises(DataError):
        train([], tmp_path / "n", **OPTIONS)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("pair"), [("a ||| b", "c"), ("a", "c\nd"), ("a", "b|||c"), ("\n", "c")])
def test_phrases_that_no_file_can_hold(tmp_path, pair):
    with pytest.raises(ValueError, match="a line feed or"):
        train([("a", "b"), pair], tmp_path / "m", **OPTIONS)
    assert not (tmp_path / "m").exists()


def test_what_is_refused(tmp_path):
    folder = tmp_path / "m"
    with pytest.raises(DataError, match="no phrase pair of 1 to 2 words a side with a count of at least 0"):
        train([("a b c", "d"), ("", "e")], folder, max_length=2)
    with pytest.raises(DataError, match="No such file"):
        train(tmp_path / "none", folder)
    with pytest.raises(ValueError, match="unknown setting dimensions"):
        train(PAIRS, folder, dimensions=8)
    with pytest.raises(DeviceError, match="expected cpu, cuda or auto"):
        train(PAIRS, folder, device="quantum", **OPTIONS)
    assert not folder.exists()


def test_a_finished_model_is_replaced_only_on_request(tmp_path):
    first = train(PAIRS, tmp_path / "m", **OPTIONS)
    with pytest.raises(ModelError, match="the folder already has a finished model"):
        train(PAIRS, tmp_path / "m", **{**OPTIONS, "seed": 6})
    assert load_saved_model(tmp_path / "m").signature == first.signature
    second = train(PAIRS, tmp_path / "m", overwrite=True, **{**OPTIONS, "seed": 6})
    assert load_saved_model(tmp_path / "m").signature == second.signature != first.signature


def test_pairs_that_make_no_sense(tmp_path):
    class Listening(Watch):
        def warn(self, message):
            warnings.append(message)

    warnings = []
    with pytest.raises(PhraseToolError, match=r"^the pairs: 3 distinct phrase pairs to learn from"):
        train(PAIRS[:3], tmp_path / "m", **OPTIONS)
    assert not (tmp_path / "m").exists()
    train(PAIRS[:3], tmp_path / "m", force=True, watch=Listening(), **OPTIONS)
    assert warnings == ["the pairs: 3 distinct phrase pairs to learn from, expected at least about 20"]


def test_a_finished_model_is_not_resumed(tmp_path):
    train(PAIRS, tmp_path / "m", **OPTIONS)
    with pytest.raises(Exception, match="the training is finished, there is nothing to resume"):
        train(PAIRS, tmp_path / "m", resume=True, **OPTIONS)
