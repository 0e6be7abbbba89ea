import numpy as np
import pytest
import sacrebleu

from phrasetool.autoencoder.inference import (
    NearestSentences,
    autoencoder_module,
    encode_texts,
    quality_by_length,
    reconstruct_texts,
    reconstruction_quality,
    sentence_words,
)
from phrasetool.autoencoder.network import max_output_lengths
from phrasetool.autoencoder.training import train_autoencoder
from phrasetool.errors import PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.training.run import TrainingRun
from tests.phrasetool.autoencoder.small_autoencoders import VOCABULARY, random_texts, settings
from tests.phrasetool.autoencoder.test_model import make


def test_vectors_and_texts_do_not_depend_on_how_texts_are_batched(tmp_path, monkeypatch):
    texts = random_texts()
    model = train_autoencoder(texts, VOCABULARY, settings(epochs=30, learning_rate=0.02), TrainingRun(tmp_path))
    vectors, reconstructed = encode_texts(model, texts), reconstruct_texts(model, texts)
    module = autoencoder_module(model)
    monkeypatch.setattr("phrasetool.autoencoder.inference._WORDS_PER_BATCH", 11)
    ticks = []
    np.testing.assert_allclose(encode_texts(model, texts, tick=ticks.append), vectors, atol=1e-5)
    assert sum(ticks) == len(texts)
    rebatched = reconstruct_texts(model, texts)
    for i, text in enumerate(texts):
        single = Phrases.from_lists([text.tolist()])
        np.testing.assert_allclose(module.encode(single)[0].detach().numpy(), vectors[i], atol=1e-5)
        alone = module.reconstruct(module.encode(single).detach(), max_output_lengths(single.lengths))[0]
        assert reconstructed[i].tolist() == rebatched[i].tolist() == alone.tolist()
    assert encode_texts(model, texts.part(0, 0)).shape == (0, 32)
    assert len(reconstruct_texts(model, texts.part(0, 0))) == 0


TEXTS = ["a b c d e", "a b c d e f", "x", "a b a b a b a b", "one two three four five six seven"]
BACK = ["a b c d e", "a b c f e d", "y", "a b a b a b", "one two three five six seven"]


def test_quality_by_hand():
    result = reconstruction_quality(BACK, TEXTS)
    assert result.texts == 5
    assert result.bleu == sacrebleu.corpus_bleu(BACK, [TEXTS], tokenize="none", force=True).score
    assert "tok:none" in result.bleu_signature
    assert result.exact == 20
    # By hand: matching n-grams divided by the mean number of n-grams of both texts.
    assert result.rouge_1 == pytest.approx(100 * np.mean([1, 1, 0, 12 / 14, 12 / 13]))
    assert result.rouge_2 == pytest.approx(100 * np.mean([1, 4 / 10, 0, 10 / 12, 8 / 11]))


def test_spaces_make_no_difference():
    assert reconstruction_quality([" a  b c d "], ["a b c d"]).exact == 100


def test_groups_of_similar_lengths():
    result = quality_by_length(BACK, TEXTS, (1, 5, 6))
    assert list(result) == [(1, 1), (2, 5), (6, 6), (7, 8)]
    assert result[2, 5] == reconstruction_quality(BACK[:1], TEXTS[:1])
    assert result[7, 8] == reconstruction_quality(BACK[3:], TEXTS[3:])
    assert sum(quality.texts for quality in result.values()) == len(TEXTS)
    assert list(quality_by_length(BACK, TEXTS)) == [(1, 5), (6, 10)]


def test_no_texts():
    with pytest.raises(ValueError, match="at least 1"):
        reconstruction_quality([], [])


# The model knows a, b, c and 's; it maps all others to the unknown word.
WORDS = [b"new", b"a", b"b", b"c", b"'s", b"old"]
SENTENCES = [[1, 2], [3, 4], [0], [1, 2, 3], [2, 1], [1, 2], [5]]


def cosine_of(first, second):
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_the_nearest_by_cosine_without_the_sentence_itself():
    model, ticks = make(), []
    result = NearestSentences(model, Phrases.from_lists(SENTENCES), WORDS, tick=ticks.append).nearest([b"a", b"b"], 9)
    assert sum(ticks) == len(SENTENCES)
    known = {b"a": 1, b"b": 2, b"'s": 3, b"c": 4}
    ids = [[known.get(WORDS[word], 0) for word in sentence] for sentence in SENTENCES]
    vectors = encode_texts(model, Phrases.from_lists(ids)).astype(np.float64)
    others = [i for i, sentence in enumerate(SENTENCES) if sentence != [1, 2]]
    order = sorted(others, key=lambda i: -round(cosine_of(vectors[i], vectors[0]), 5))
    assert [text for text, _ in result] == [b" ".join(WORDS[word] for word in SENTENCES[i]) for i in order]
    expected = [cosine_of(vectors[i], vectors[0]) for i in order]
    np.testing.assert_allclose([cosine for _, cosine in result], expected, atol=1e-5)


def test_sentences_with_different_unknown_words_are_different():
    nearest = NearestSentences(make(), Phrases.from_lists(SENTENCES), WORDS)
    first = nearest.nearest([b"new"], 1)[0]
    assert first == (b"old", pytest.approx(1, abs=1e-6))
    assert len(nearest.nearest([b"new"], 2)) == 2
    assert nearest.nearest([b"new"], 2)[0] == first


def test_words_of_a_sentence():
    model = make()
    assert sentence_words(model, b"a &apos;s new") == [b"a", b"'s", b"new"]
    with pytest.raises(PhraseToolError, match=r"^the model knows no word of 'new <unk>'$"):
        sentence_words(model, b"new <unk>")
    assert len(sentence_words(model, b"a " * 511)) == 511
    with pytest.raises(PhraseToolError, match="the sentence has 512 words; an autoencoder encodes at most 511"):
        sentence_words(model, b"a " * 512)
