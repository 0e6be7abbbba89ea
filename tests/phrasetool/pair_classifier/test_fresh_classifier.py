import numpy as np
import pytest

from phrasetool.embeddings.word2vec import train_word2vec
from phrasetool.pair_classifier.fresh_classifier import fresh_classifier
from phrasetool.pair_classifier.settings import ParallelSettings
from tests.parallel_models import FAST, WORDS, bert_folder, toy_pairs

PAIRS = toy_pairs(120)


def test_words_and_their_parts():
    made = fresh_classifier(PAIRS, ParallelSettings.from_options(FAST))
    assert set(made.vocabularies[1].words[1:]) == set(WORDS[1])
    # Of `saa` and its like, what words begin with is shared by all.
    assert set(made.vocabularies[2].words) >= {b"s", b"\x02s"}
    inputs = made.classifier.inputs
    assert [len(known) for known in made.vocabularies] == [
        len(rows) for rows in (inputs.source.words, inputs.target.words, inputs.source.parts, inputs.target.parts)
    ]
    assert made.architecture.word_units == 24
    assert made.encoder is None


def test_rare_words_are_unknown():
    some = PAIRS.select(np.arange(8))
    counts = np.bincount(some.sources.words, minlength=20)
    made = fresh_classifier(some, ParallelSettings.from_options({**FAST, "min_count": 2}))
    assert len(made.vocabularies[0]) == 1 + (counts >= 2).sum() < 1 + (counts >= 1).sum()


def test_the_seed_fixes_everything():
    arrays = [
        fresh_classifier(PAIRS, ParallelSettings.from_options(FAST, seed=seed)).classifier.arrays()
        for seed in (1, 1, 2)
    ]
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
    assert not any(np.array_equal(arrays[0][name], arrays[2][name]) for name in arrays[0])


@pytest.mark.parametrize("which", [0, 1])
def test_vectors_of_word2vec_centred_and_scaled(which):
    made = fresh_classifier(PAIRS, ParallelSettings.from_options(FAST, encoder="word2vec"))
    sentences = [[WORDS[which][i] for i in text] for text in PAIRS.sources]
    known = train_word2vec(sentences, 24, 1)
    words = made.vocabularies[which].words[1:]
    wanted = np.array([known[word] for word in words])
    wanted -= wanted.mean(0)
    wanted *= 0.1 / np.sqrt(np.mean(wanted**2))
    inputs = (made.classifier.inputs.source, made.classifier.inputs.target)[which]
    assert np.allclose(inputs.words.detach().numpy()[1:], wanted, atol=1e-5)


def test_an_encoder(tmp_path):
    folder = bert_folder(tmp_path / "bert")
    made = fresh_classifier(PAIRS, ParallelSettings.from_options(FAST, encoder=f"hf:{folder}"))
    assert made.vocabularies == []
    assert made.encoder is made.classifier.inputs
    assert made.architecture.word_units == 16
    assert not any(value.requires_grad for value in made.encoder.parameters())
