"""The whole of mining in one process, against obvious Python on the vectors of its store."""

import numpy as np
import pytest

from moses_compat.jobs.mining import mine
from moses_compat.jobs.mining.mine import MiningSettings, kept_pairs, mine_texts, mined_lines, store_beside
from moses_compat.jobs.mining.mining_report import mining_statistics, mining_summary
from phrasetool.bitext.pair_encoder import find_pair_encoder
from phrasetool.text_encoders.margins import unit_rows
from tests import naive_mining
from tests.comparable_text import encoder_folder, write_corpus


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return find_pair_encoder(str(encoder_folder(tmp_path_factory.mktemp("encoder") / "static")))


def search(folder, encoder, **settings):
    made = MiningSettings(**settings)
    return mine_texts(str(folder / "s.txt"), str(folder / "t.txt"), encoder, lambda text, side: text, "", None, made)


@pytest.mark.parametrize("retrieval", ["max", "forward", "backward", "intersection"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_against_obvious_python(encoder, tmp_path, retrieval, margin):
    write_corpus(tmp_path)
    found = search(tmp_path, encoder, margin=margin, retrieval=retrieval, min_cosine=0.2, k=3)
    loaded = encoder.load()[0]
    vectors = [
        unit_rows(loaded.encode([text.plain(row) for row in range(len(text))], side)).astype(np.float16)
        for text, side in zip(found.sides, ("source", "target"), strict=True)
    ]
    expected = naive_mining.scored(*vectors, 3, margin, 0.2)
    pairs = list(zip(found.pairs.sources.tolist(), found.pairs.targets.tolist(), strict=True))
    assert set(pairs) == set(naive_mining.retrieved(expected, retrieval))
    np.testing.assert_allclose(found.pairs.scores, [expected[pair][0] for pair in pairs], atol=1e-5)


def test_many_sentences_are_searched_approximately(encoder, tmp_path, monkeypatch):
    pytest.importorskip("faiss", reason="the extra `mine` is not installed")
    write_corpus(tmp_path)
    assert search(tmp_path, encoder).agreement is None
    monkeypatch.setattr(mine, "EXACT_UP_TO", 100)
    assert search(tmp_path, encoder).agreement.share >= 0.98
    assert search(tmp_path, encoder, search="exact").agreement is None


def test_k_is_clamped_and_thresholds_cut(encoder, tmp_path):
    write_corpus(tmp_path)
    found = search(tmp_path, encoder, k=100_000)
    middle = float(np.median(found.pairs.scores))
    lines = list(mined_lines(found, MiningSettings(threshold=middle)))
    assert len(lines) == kept_pairs(found, middle) == int((found.pairs.scores >= middle).sum())
    assert 0 < len(lines) < len(found.pairs)
    statistics = mining_statistics(found, MiningSettings(threshold=middle), "e")
    assert statistics["written"] == len(lines)
    assert mining_summary(statistics)[-1] == (
        f"{len(lines):,} of {len(found.pairs):,} pairs that score at least {middle:.6g} written"
    )


def test_where_vectors_are_kept(encoder, tmp_path):
    assert store_beside("-", encoder) is None
    name = store_beside("a/mined.tsv.gz", encoder)
    assert name.startswith("a/mined.tsv.")
    assert name.endswith(".vectors")
