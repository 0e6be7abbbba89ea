"""Folders of small encoders in the formats of other tools; tests are skipped if a required package is missing."""

import json

import numpy as np
import pytest

WORDS = ["haus", "house", "grün", "green", "und", "and", "nicht", "not", "ein", "a", "hund", "dog", "rot", "red"]
# Two consecutive words are translations and get similar vectors.
MEANINGS = np.random.default_rng(5).normal(size=(len(WORDS) // 2, 8)).astype(np.float32)


def static_folder(folder, words=WORDS, vectors=None, extra=None, config=None):
    """Write a static model with one vector per word, by default similar for translations."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `encoders` is not installed")
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[UNK]": 0, **{word: i for i, word in enumerate(words, 1)}}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    if vectors is None:
        vectors = np.repeat(MEANINGS, 2, axis=0) + np.random.default_rng(6).normal(0, 0.1, (len(words), 8))
    table = np.vstack([np.ones((1, vectors.shape[1])), vectors]).astype(np.float32)
    save_file({"embeddings": table, **(extra or {})}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config or {"model_type": "model2vec", "normalize": True}))
    return folder


def letters_tokenizer():
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `encoders` is not installed")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz"]
    words += ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def transformer_folder(folder):
    """Write a one-layer BERT with random weights."""
    transformers = pytest.importorskip("transformers", reason="the extra `encoders` is not installed")
    import torch

    from phrasetool.text_encoders.folder_safety import quieten

    quieten()
    torch.manual_seed(1)
    tokenizer = letters_tokenizer()
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    transformers.BertModel(config).eval().save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]",
                "cls_token": "[CLS]", "sep_token": "[SEP]", "model_max_length": 32}  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def sentence_folder(folder, plain):
    """Write the encoder `plain` for sentence-transformers, with pooling, a dense layer and normalisation."""
    pytest.importorskip("sentence_transformers", reason="the extra `encoders` is not installed")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    torch.manual_seed(2)
    parts = [modules.Transformer(str(plain)), modules.Pooling(16, "mean"), modules.Dense(16, 8), modules.Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(folder), create_model_card=False)
    return folder


def table_lines(pairs=400, seed=3):
    """Return a sorted table of the words above: three quarters translations, one quarter random pairs."""
    rng = np.random.default_rng(seed)
    lines = set()
    while len(lines) < pairs:
        meanings = rng.integers(0, len(MEANINGS), rng.integers(1, 5))
        target_meanings = meanings if len(lines) % 4 else rng.integers(0, len(MEANINGS), len(meanings))
        source, target = " ".join(WORDS[2 * m] for m in meanings), " ".join(WORDS[2 * m + 1] for m in target_meanings)
        lines.add(f"{source} ||| {target} ||| 0.5 0.5 0.5 0.5 ||| ||| 1 1 1\n".encode())
    return b"".join(sorted(lines))
