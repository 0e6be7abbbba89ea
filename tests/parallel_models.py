"""Small sentence-pair classifiers, and their toy languages: word i of one translates word i of the other."""

import json

import numpy as np
import pytest

from phrasetool.pair_classifier.inputs import WordSides, known_parts, random_vectors
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.pair_classifier.network import PairClassifier, SiameseNetwork
from phrasetool.pair_classifier.settings import PairClassifierArchitecture
from phrasetool.phrases import Phrases
from phrasetool.training.data import TextPairs
from phrasetool.training.run import TrainingRun
from phrasetool.vocabulary import Vocabulary

WORDS = [[f"{side}{letter}{letter}".encode() for letter in "abcdefghijklmnopqrst"] for side in "st"]
SMALL = {
    "inputs": "words", "layer": "static", "tuned": False, "characters": 3, "cell": "bilstm", "word_units": 8,
    "units": 6, "hidden": 5, "length": "concat", "length_units": 4, "longest": 9,
}  # fmt: skip
# Settings that learn the toy language in seconds.
FAST = {
    "word_units": 24, "units": 24, "hidden": 16, "length_units": 4, "batch_size": 16, "epochs": 3,
    "learning_rate": 0.01, "min_count": 1, "search_units": 16, "search_epochs": 2,
}  # fmt: skip


def toy_pairs(count, seed=1, longest=7):
    """Return sentence pairs of 1 to `longest` words."""
    rng = np.random.default_rng(seed)
    texts = Phrases.from_lists([rng.integers(0, 20, rng.integers(1, longest + 1)).tolist() for _ in range(count)])
    return TextPairs(texts, texts, *WORDS)


def toy_lines(count, seed=1):
    """Return `toy_pairs` as source lines and target lines of bytes."""
    pairs = toy_pairs(count, seed)
    return [[b" ".join(words[i] for i in text) for text in pairs.sources] for words in WORDS]


def random_classifier(seed=1, **changes):
    """Return an untrained classifier of the toy language, with parameters large enough for scores to differ."""
    architecture = PairClassifierArchitecture(**{**SMALL, **changes})
    vocabularies = [Vocabulary([b"<unk>", *words[:16]]) for words in WORDS]
    parts = [known_parts(words, architecture.characters, 1000) for words in WORDS]
    rng = np.random.default_rng(seed)
    names = ("source.words", "target.words", "source.parts", "target.parts")
    arrays = {
        name: 5 * random_vectors(rng, len(known), architecture.word_units)
        for name, known in zip(names, [*vocabularies, *parts], strict=True)
    }
    inputs = WordSides(tuple(vocabularies), tuple(parts), architecture.characters, arrays)
    classifier = PairClassifier(inputs, SiameseNetwork(architecture, seed)).eval()
    return classifier, [*vocabularies, *parts]


def random_parallel_model(seed=1, **changes):
    """Return `random_classifier` as a model."""
    classifier, vocabularies = random_classifier(seed, **changes)
    thresholds = {"half": 0.5, "best": 0.4}
    return PairClassifierModel(
        vocabularies, classifier.network.architecture, classifier.arrays(), 1.5, thresholds, {"a": 1}
    )


def bert_folder(folder, **changes):
    """Write a one-layer BERT with random weights; each word of the toy language is one subword unit."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `encoders` is not installed")
    transformers = pytest.importorskip("transformers", reason="the extra `encoders` is not installed")
    import torch

    from phrasetool.text_encoders.folder_safety import quieten

    quieten()
    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(word.decode() for side in WORDS for word in side)]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = {"vocab_size": len(words), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 32, "max_position_embeddings": 32, **changes}  # fmt: skip
    transformers.BertModel(transformers.BertConfig(**config)).eval().save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]",
                "cls_token": "[CLS]", "sep_token": "[SEP]", "model_max_length": 32}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def trained_folder(folder):
    """Train a classifier of the toy language in seconds; return its folder."""
    from phrasetool.pair_classifier.settings import PairClassifierSettings
    from phrasetool.pair_classifier.training import train_pair_classifier

    settings = PairClassifierSettings.from_options({**FAST, "epochs": 6, "max_length": 20})
    train_pair_classifier(toy_pairs(800), toy_pairs(100, 2), settings, TrainingRun(folder))
    return folder
