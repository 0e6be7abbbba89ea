import numpy as np

from phrasetool.encoders.autoencoders.autoencoder import most_words
from phrasetool.phrases import Phrases
from phrasetool.reconstruction import autoencoder_module, encode_texts, reconstruct_texts
from phrasetool.train.run import TrainingRun
from phrasetool.training.autoencoder.autoencoder_trainer import train_autoencoder
from tests.phrasetool.training.autoencoder.random_texts import VOCABULARY, random_texts, settings


def test_vectors_and_texts_do_not_depend_on_how_texts_are_batched(tmp_path, monkeypatch):
    texts = random_texts()
    model = train_autoencoder(texts, VOCABULARY, settings(epochs=30, learning_rate=0.02), TrainingRun(tmp_path))
    vectors, written = encode_texts(model, texts), reconstruct_texts(model, texts)
    module = autoencoder_module(model)
    monkeypatch.setattr("phrasetool.reconstruction._WORDS_AT_ONCE", 11)
    ticks = []
    np.testing.assert_allclose(encode_texts(model, texts, tick=ticks.append), vectors, atol=1e-5)
    assert sum(ticks) == len(texts)
    again = reconstruct_texts(model, texts)
    for i, text in enumerate(texts):
        one = Phrases.from_lists([text.tolist()])
        np.testing.assert_allclose(module.encode(one)[0].detach().numpy(), vectors[i], atol=1e-5)
        alone = module.reconstruct(module.encode(one).detach(), most_words(one.lengths))[0]
        assert written[i].tolist() == again[i].tolist() == alone.tolist()
    assert encode_texts(model, texts.part(0, 0)).shape == (0, 32)
    assert len(reconstruct_texts(model, texts.part(0, 0))) == 0
