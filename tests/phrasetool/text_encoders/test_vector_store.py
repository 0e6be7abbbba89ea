import json
import os
import threading

import numpy as np
import pytest

from phrasetool.errors import ModelError, PhraseToolError
from phrasetool.text_encoders import vector_store
from phrasetool.text_encoders.margins import NORMALISATIONS, unit_rows
from phrasetool.text_encoders.vector_store import (
    BATCH,
    EncoderFit,
    StoredPhrases,
    StoreKind,
    VectorStore,
    header_problem,
    measure_encoder,
)
from tests.variants import for_each


def distances(source_rows, target_rows):
    """Return similarities, higher the nearer the rows are, and which pairs have both vectors; row 0 has none."""
    result = -np.abs(source_rows - target_rows).astype(np.float32) / 1000
    return result, (source_rows != 0) & (target_rows != 0)


ROWS = np.arange(1000)
ALL = np.ones(1000, np.bool_)


def test_a_good_encoder():
    fit = measure_encoder(distances, ROWS, ROWS, ALL)
    assert (fit.pairs, fit.auc) == (999, 1.0)
    assert not fit.by_chance
    assert fit.quantiles == (0, 0, 0, 0, 0)
    assert "AUC 1.00 (999 entries); similarities at 5% 0.000, " in fit.words
    assert fit.words.endswith("thresholds of other encoders and models do not apply")


def test_quantiles_are_of_all_pairs():
    shifted = np.concatenate([ROWS[1:], ROWS[1:] + 100])
    fit = measure_encoder(distances, np.concatenate([ROWS[1:], ROWS[1:]]), shifted, np.ones(1998, np.bool_))
    assert fit.quantiles == tuple(np.quantile([-0.1, 0], [0, 0, 0.5, 1, 1]).round(4))


def test_an_encoder_of_one_language_is_no_better_than_chance():
    targets = np.random.default_rng(1).permutation(1000)
    fit = measure_encoder(distances, ROWS, targets, ALL)
    assert fit.by_chance
    assert 0.45 < fit.auc < 0.55


def test_pairs_that_any_encoder_recognises_do_not_count():
    # Half of the pairs are names, which are the same on both sides.
    targets = np.where(ROWS % 2, ROWS, np.random.default_rng(1).permutation(1000))
    assert measure_encoder(distances, ROWS, targets, ALL).auc > 0.7
    assert measure_encoder(distances, ROWS, targets, ROWS % 2 == 0).by_chance


def test_too_few_pairs_for_a_judgement():
    fit = measure_encoder(distances, ROWS[:100], ROWS[:100], ALL[:100])
    assert (fit.pairs, fit.auc, fit.by_chance) == (99, None, False)
    empty = measure_encoder(distances, ROWS[:1], ROWS[:1], ALL[:1])
    assert empty == EncoderFit(0, (), None)
    assert empty.words == "no pair of the table has vectors on both sides"


def test_fit_round_trip():
    fit = measure_encoder(distances, ROWS, ROWS, ALL)
    assert EncoderFit.from_dict(fit.as_dict()) == fit


GOOD = {"encoders": ["a", "b"], "phrases": [3, 0], "dimension": 4, "over_long": 0, "made": ["source.centred"],
        "fits": {"cosine": {"pairs": 2, "quantiles": {"0.5": 0.1}, "auc": None}}}  # fmt: skip


def test_valid_headers():
    assert header_problem(GOOD) is None
    assert header_problem({"encoders": ["a", "a"], "phrases": [0, 0], "dimension": 1}) is None


@for_each(
    ("name", "value"),
    [
        ("encoders", ["a"]), ("encoders", "ab"),
        ("phrases", None), ("phrases", [1]), ("phrases", [1, -1]), ("phrases", [1, 1.0]), ("phrases", [True, 1]),
        ("dimension", 0), ("dimension", "4"), ("dimension", None), ("over_long", None), ("made", {}), ("fits", []),
        ("fits", {"x": 1}), ("fits", {"x": {"pairs": 1}}), ("fits", {"x": {"pairs": 1, "quantiles": [], "auc": 1}}),
    ],
)  # fmt: skip
def test_invalid_headers(name, value):
    """Each of these headers, which were found by fuzzing, used to cause a traceback."""
    assert f"`{name}` " in header_problem({**GOOD, name: value})


KIND = StoreKind(("one", "one"), "detokenise=none")
HOW = NORMALISATIONS["centred-margin"]


class Hashed:
    """Encoder whose vector of a text does not depend on the other texts, and which records its calls."""

    identity = "hashed"
    parallel = True

    def __init__(self, dimension=6, fail_after=None, error=KeyboardInterrupt):
        self.dimension, self.asked, self.left, self.error = dimension, [], fail_after, error
        self._lock = threading.Lock()

    def encode(self, texts, side):
        with self._lock:
            self.asked.append((side, tuple(texts)))
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise self.error
        return np.array([np.random.default_rng(list(text.encode())).normal(size=self.dimension) for text in texts])

    def over_long(self, texts):
        return sum(len(text) > 5 for text in texts)


def phrases(count=BATCH * 2 + 10, more=0):
    texts = [f"w{i:04}" for i in range(count)]
    keys = np.arange(1, count + 1 + more, dtype=np.uint64)
    rows = np.append(np.arange(count), [-1] * more).astype(np.int64)
    targets = [f"v{i:04}" for i in range(count)] + ["long phrase"]
    sample = np.array([(i % count, i % count, 1) for i in range(1000)])
    return StoredPhrases(
        (keys, np.arange(1, count + 2, dtype=np.uint64)), (rows, np.arange(count + 1)), (texts, targets), sample
    )


def fill(folder, encoder, found=None, kind=KIND, **options):
    store = VectorStore(folder, kind)
    store.fill(found or phrases(), lambda: (encoder, encoder), "hashed", **options)
    return store


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_vectors_come_back_in_canonical_order(tmp_path):
    stored = phrases()
    store = fill(tmp_path / "s", encoder := Hashed(), stored)
    assert store.complete
    assert store.counts == (522, 523)
    assert store.over_long == 1
    expected = unit_rows(encoder.encode(stored.texts[0], "source")).astype(np.float16)
    np.testing.assert_array_equal(store.vectors("source"), expected)
    keys, rows = store.keys("target")
    np.testing.assert_array_equal(keys, stored.keys[1])
    np.testing.assert_array_equal(rows, stored.rows[1])
    assert [side for side, _ in encoder.asked] == ["source"] * 3 + ["target"] * 3 + ["source"]


def test_bytes_do_not_depend_on_threads(tmp_path):
    for threads in (1, 4):
        fill(tmp_path / str(threads), Hashed(), threads=threads).normalised(HOW, threads=threads)
    assert contents(tmp_path / "1") == contents(tmp_path / "4")


@pytest.mark.parametrize("batches", [0, 1, 2, 3, 5])
def test_an_interrupted_run_is_continued(batches, tmp_path):
    uninterrupted = fill(tmp_path / "whole", Hashed())
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "s", Hashed(fail_after=batches))
    assert not VectorStore(tmp_path / "s", KIND).complete
    encoder = Hashed()
    fill(tmp_path / "s", encoder)
    assert len(encoder.asked) == 6 - batches
    assert contents(tmp_path / "s") == contents(uninterrupted.folder)


@pytest.mark.parametrize(
    "left", [[".lock"], [".lock", ".source.keys.npy.part"], ["source.keys.npy", "source.rows.npy", ".store.json.part"]]
)
def test_killed_before_the_header_is_written(left, tmp_path):
    uninterrupted = fill(tmp_path / "whole", Hashed())
    (tmp_path / "s").mkdir()
    for name in left:
        (tmp_path / "s" / name).write_bytes(b"half")
    fill(tmp_path / "s", Hashed())
    assert contents(tmp_path / "s") == contents(uninterrupted.folder)


def test_a_partial_batch_is_encoded_again(tmp_path):
    uninterrupted = fill(tmp_path / "whole", Hashed())
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "s", Hashed(fail_after=2))
    with open(tmp_path / "s" / "source.vectors", "ab") as file:
        file.write(b"half of a batch")
    fill(tmp_path / "s", Hashed())
    assert contents(tmp_path / "s") == contents(uninterrupted.folder)


def test_a_full_disk_keeps_the_encoded_vectors(tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")
    with pytest.raises(PhraseToolError) as error:
        fill(tmp_path / "s", Hashed(fail_after=2, error=full))
    message = "cannot write: the disk is full; encoded vectors are kept; run the same command to continue"
    assert str(error.value) == f"{tmp_path / 's'}: {message}"
    encoder = Hashed()
    fill(tmp_path / "s", encoder)
    assert len(encoder.asked) == 4


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_while_vectors_are_written(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "s", Hashed(fail_after=0))
    (tmp_path / "s" / "source.vectors").unlink()
    (tmp_path / "s" / "source.vectors").symlink_to("/dev/full")
    with pytest.raises(PhraseToolError, match="cannot write"):
        fill(tmp_path / "s", Hashed())


def test_missing_disk_space_is_reported_before_anything_is_encoded(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100})())
    with pytest.raises(PhraseToolError, match="are free on its disk"):
        fill(tmp_path / "s", encoder := Hashed())
    assert not encoder.asked


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (StoreKind(("two", "two"), KIND.texts), "holds vectors of another encoder, one"),
        (StoreKind(("one", "two"), KIND.texts), "holds vectors of another encoder, one"),
        (
            StoreKind(KIND.encoders, "detokenise=de"),
            "its phrases were preprocessed differently: detokenise=none; expected",
        ),
    ],
)
def test_a_store_of_another_encoder_is_refused(kind, message, tmp_path):
    fill(tmp_path / "s", Hashed())
    with pytest.raises(ModelError) as error:
        VectorStore(tmp_path / "s", kind)
    assert message in str(error.value)
    assert error.value.remedy == "name a store"


def test_a_store_of_another_table_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "s", Hashed(fail_after=1))
    with pytest.raises(ModelError, match="of the phrases of another table"):
        fill(tmp_path / "s", Hashed(), phrases(more=1))


def test_all_dimensions_must_be_equal(tmp_path):
    store = VectorStore(tmp_path / "s", KIND)
    with pytest.raises(ModelError, match="has dimension 6, but the target encoder has 5"):
        store.fill(phrases(), lambda: (Hashed(), Hashed(5)), "hashed")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "s", Hashed(fail_after=1))
    with pytest.raises(ModelError, match="has dimension 5, but the store has 6"):
        fill(tmp_path / "s", Hashed(5))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "store.json").write_text("{}"), "not the header of a store of vectors"),
        (lambda f: (f / "store.json").unlink(), "is not a store of vectors"),
        (lambda f: (f / "source.centred").write_bytes(b"short"), "damaged; expected 522 vectors of dimension 6"),
        (lambda f: (f / "source.keys.npy").write_bytes(b"short"), "cannot be read"),
        (lambda f: np.save(f / "source.rows.npy", np.full(522, 10**6)), "damaged"),
        (lambda f: np.save(f / "source.keys.npy", np.zeros(522)), "damaged"),
        (lambda f: (f / "target.centred").unlink(), "damaged"),
        (lambda f: np.save(f / "source.centred.nearness.npy", np.zeros(3, np.float32)), "nearness of its phrases"),
    ],
)
def test_damage_is_detected(damage, message, tmp_path):
    fill(tmp_path / "s", Hashed()).normalised(HOW)
    damage(tmp_path / "s")

    def read():
        store = VectorStore(tmp_path / "s", KIND)
        store.normalised(HOW)
        store.keys("source")

    with pytest.raises(ModelError) as error:
        read()
    assert message in str(error.value)


def test_a_newer_store_is_refused(tmp_path):
    fill(tmp_path / "s", Hashed())
    header = json.loads((tmp_path / "s" / "store.json").read_text())
    (tmp_path / "s" / "store.json").write_text(json.dumps({**header, "schema": 2}))
    with pytest.raises(ModelError, match="of version 2, expected 1"):
        VectorStore(tmp_path / "s", KIND)


def test_two_runs_do_not_write_at_once(tmp_path):
    pytest.importorskip("fcntl")
    (tmp_path / "s").mkdir()
    with vector_store._locked(tmp_path / "s"), pytest.raises(PhraseToolError, match="another run is writing to it"):
        fill(tmp_path / "s", Hashed())


@pytest.mark.parametrize("how", NORMALISATIONS.values(), ids=NORMALISATIONS)
def test_derived_files_are_made_once(how, tmp_path):
    fill(tmp_path / "s", Hashed())
    first = VectorStore(tmp_path / "s", KIND).normalised(how)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s").iterdir()}
    second = VectorStore(tmp_path / "s", KIND).normalised(how)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "s").iterdir()}
    for array, repeated in zip(first[0] + first[1], second[0] + second[1], strict=True):
        np.testing.assert_array_equal(array, repeated)
    assert first[2] == second[2]
    # Sources and targets are unrelated here.
    assert 0.4 < first[2].auc < 0.6


def test_an_empty_table(tmp_path):
    nothing = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    empty = StoredPhrases((nothing[0], nothing[0]), (nothing[1], nothing[1]), ([], []), np.zeros((0, 3), np.int64))
    store = fill(tmp_path / "s", Hashed(), empty)
    vectors, _, fit = store.normalised(HOW)
    assert [len(part) for part in vectors] == [0, 0]
    assert fit.pairs == 0
