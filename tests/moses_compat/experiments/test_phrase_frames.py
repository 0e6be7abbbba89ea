import numpy as np
import pytest

from moses_compat.experiments.phrase_frames import (
    choose_phrases,
    histogram_frame,
    map_frame,
    neighbour_frame,
    ranks_of,
    surprise_frame,
    surprising_entries,
)
from phrasetool.phrases import Phrases
from phrasetool.pruning.measures import COUNTS, SCORED, SIMILARITIES
from phrasetool.training.data import PhrasePairs
from phrasetool.vocabulary import Vocabulary
from tests.measures import measures_of
from tests.small_experiment import small_model


@pytest.fixture(scope="module")
def pairs():
    """Return random pairs of phrases of one to three words, with repetitions and counts."""
    model = small_model()
    rng = np.random.default_rng(1)
    sides = [Phrases.from_lists([rng.integers(1, 6, rng.integers(1, 4)).tolist() for _ in range(80)]) for _ in range(2)]
    return PhrasePairs(*sides, rng.integers(1, 9, 80), model.source_vocabulary, model.target_vocabulary)


def measures(entries, seed=1):
    rng = np.random.default_rng(seed)
    return measures_of(
        group_offsets=np.arange(0, entries + 1, 2), source_lengths=np.ones(entries // 2, np.int64),
        malformed=np.zeros(entries, np.bool_), probabilities=rng.random(entries, np.float32),
        counts=rng.integers(1, 9, entries).astype(np.float32),
        similarities=rng.uniform(-1, 1, (entries, 2)).astype(np.float32), scored=rng.random(entries) < 0.8,
    )  # fmt: skip


def test_histograms():
    table = measures(60)
    masks = {"a": np.arange(60) % 3 == 0, "b": np.ones(60, np.bool_)}
    frame = histogram_frame(table, masks)
    for row in frame.itertuples():
        values = table[SIMILARITIES][:, int(row.direction == "target-to-source")]
        inside = table[SCORED] & (values >= row.low) & ((values < row.high) | (row.high == 1))
        assert row.kept == (inside & masks[row.system]).sum()
        assert row.removed == (inside & ~masks[row.system]).sum()
    assert frame.groupby(["system", "direction"])[["kept", "removed"]].sum().sum(axis=1).eq(table[SCORED].sum()).all()


def test_ranks():
    assert ranks_of(np.array([3, 1, 2, 2, np.inf], np.float32)).tolist() == [0.75, 0, 0.375, 0.375, 1]


def test_surprises():
    """Entries and their order are those of the definition, computed entry by entry."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 2)
    criterion_scores = {name: rng.integers(0, 12, 40).astype(np.float32) for name in "abc"}
    kept = {name: scores > 5 for name, scores in criterion_scores.items()}
    result = surprising_entries(criterion_scores, kept, groups, 4)
    assert set(result) == {(name, kind) for name in "abc" for kind in ("removed", "kept")}
    ranks = {name: [(np.sum(w < x) + (np.sum(w == x) - 1) / 2) / 39 for x in w] for name, w in criterion_scores.items()}
    for (name, kind), rows in result.items():
        others = np.mean([ranks[other_name] for other_name in criterion_scores if other_name != name], axis=0)
        surprise = (others - ranks[name]) * (1 if kind == "removed" else -1)
        expected, used_groups = [], set()
        for row in np.argsort(-surprise.round(12), kind="stable"):
            if kept[name][row] == (kind == "kept") and surprise[row] > 1e-12 and groups[row] not in used_groups:
                used_groups.add(groups[row])
                expected.append(surprise[row])
        assert surprise[rows] == pytest.approx(expected[:4])
        assert len(set(groups[rows])) == len(rows)
    assert surprising_entries({"a": criterion_scores["a"]}, kept, groups) == {}


def test_what_is_known_of_surprises():
    table = measures(10)
    frame = surprise_frame(
        table, {("count", "removed"): np.array([7, 2]), ("count", "kept"): np.array([2])},
        lambda rows: [(b"s%d" % row, "ü".encode("latin-1")) for row in rows],
    )  # fmt: skip
    assert frame.source.tolist() == ["s7", "s2", "s2"]
    assert frame.target.tolist() == ["\ufffd"] * 3
    assert frame["rank"].tolist() == [1, 2, 1]
    assert frame["count"].tolist() == [table[COUNTS][7], table[COUNTS][2], table[COUNTS][2]]
    assert frame.similarity[0] == pytest.approx(table[SIMILARITIES][7].mean())
    assert frame.loss.isna().all()


def test_a_map(pairs):
    model = small_model()
    frame = map_frame(model, pairs, count=12)
    assert frame.equals(map_frame(model, pairs, count=12))
    assert (frame.language == "source").sum() == 12
    assert frame.phrase[frame.language == "target"].is_unique
    totals = {}
    for source, count in zip(pairs.sources, pairs.counts, strict=True):
        text = pairs.source_vocabulary.phrase(source).decode()
        totals[text] = totals.get(text, 0) + int(count)
    sources = frame[frame.language == "source"]
    assert sources.frequency.tolist() == sorted(totals.values(), reverse=True)[:12]
    assert all(totals[row.phrase] == row.frequency for row in sources.itertuples())
    assert np.isfinite(frame[["x", "y"]].to_numpy()).all()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_map_of_few(pairs, count):
    assert (map_frame(small_model(), pairs, count=count).language == "source").sum() == count


def test_neighbours(pairs):
    models = {"RAE": (small_model(5), pairs), "BRAE": (small_model(), pairs)}
    frame = neighbour_frame(models, ["a b", "v w", "nothing known"], 3)
    assert frame[["phrase", "language"]].drop_duplicates().to_numpy().tolist() == [["a b", "source"], ["v w", "target"]]
    assert len(frame) == 2 * 2 * 3
    assert frame.groupby(["phrase", "model"])["rank"].apply(list).map(lambda ranks: ranks == [1, 2, 3]).all()
    assert (frame.phrase != frame.neighbour).all()
    row = frame[(frame.model == "BRAE") & (frame.phrase == "a b")].iloc[0]
    scorer = small_model().scorer()
    vectors = [scorer.encode_sources(Phrases.from_lists([pairs.source_vocabulary.ids(text.encode())]))[0][0]
               for text in (row.phrase, row.neighbour)]  # fmt: skip
    assert row.similarity == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)


def test_frequent_phrases_of_different_words_are_chosen():
    vocabulary = Vocabulary([b"<unk>", b"a", b"b", b",", b"c", b"d"])
    phrases = Phrases.from_lists([[1], [1, 2], [2, 1], [1, 3], [4, 5], [4, 0]])
    pairs = PhrasePairs(phrases, phrases, np.array([9, 5, 6, 8, 1, 7]), vocabulary, vocabulary)
    assert choose_phrases(pairs, False) == choose_phrases(pairs, True) == ["b a", "c d"]
