"""Small BERTs trained from scratch: a bitext of a tiny language in subword units, and settings for short training."""

from phrasetool.bert.data import TextLines, piece_texts, train_word_pieces
from phrasetool.bert.settings import MaskedLmSettings
from tests.cli.small_translator import sentences


def prepared(count=120, **options):
    """Return the arguments of `train_masked_lm`: texts, a development set, the tokenizer, and settings."""
    chosen = {"preset": "tiny", "epochs": 3, "batch_tokens": 256, "vocabulary_size": 120, "learning_rate": 0.01}
    settings = MaskedLmSettings(**{**chosen, **options})
    lines, development = (TextLines(*sentences(size, seed)) for size, seed in ((count, 1), (20, 2)))
    tokenizer = train_word_pieces(lines.all, settings)
    data, held = (piece_texts(part, tokenizer, settings.positions) for part in (lines, development))
    return data, held, tokenizer, settings
