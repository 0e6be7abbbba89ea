"""Small syntax encoders, and a toy bitext in the languages of `toy_treebanks`."""

from collections import Counter

import numpy as np

from phrasetool.phrases import Phrases
from phrasetool.syntax.data import NamedBitext, PieceTable, learn_pieces
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.settings import SyntaxShape
from phrasetool.training.data import TextPairs
from tests.toy_treebanks import toy_sentences

# Settings that learn the toy bitext in seconds.
FAST = {
    "pieces": 330, "piece_units": 12, "units": 10, "layers": 2, "tag_units": 6, "language_units": 3,
    "decoder_units": 14, "batch_size": 8, "epochs": 3, "learning_rate": 0.01, "dropout": 0.1, "min_length": 1,
}  # fmt: skip


def toy_lines(count, seed=1):
    """Return English and German sentences; those with the same index are used as translations of each other."""
    sides = [toy_sentences(language, count, seed) for language in ("en", "de")]
    return [[" ".join(form for form, _ in sentence.tokens) for sentence in side] for side in sides]


def named(first, second, languages=("en", "de")):
    """Return lines of both sides as a `NamedBitext`."""
    sides = []
    for lines in (first, second):
        words = {}
        ids = [[words.setdefault(word.encode(), len(words)) for word in line.split()] for line in lines]
        sides.append((Phrases.from_lists(ids), list(words)))
    (sources, source_words), (targets, target_words) = sides
    return NamedBitext(languages, TextPairs(sources, targets, source_words, target_words))


def toy_bitext(count, seed=1):
    return named(*toy_lines(count, seed))


def toy_pieces(size=330):
    counts = Counter(word.encode() for side in toy_lines(60) for line in side for word in line.split())
    return PieceTable(learn_pieces(counts, size))


def random_syntax_model(seed=1, longest=40, **changes):
    """Return an untrained encoder of the toy languages."""
    pieces = toy_pieces()
    sizes = {"piece_units": 7, "units": 5, "layers": 2, "tag_units": 4, "language_units": 3, "decoder_units": 6}
    shape = SyntaxShape(pieces=len(pieces), languages=2, longest=longest, **{**sizes, **changes})
    known = np.array([not piece.startswith("<") for piece in pieces.pieces])
    return SyntaxModel(("en", "de"), ("en", "de"), pieces, known, shape, shape.initial_arrays(seed), {"seed": seed})
