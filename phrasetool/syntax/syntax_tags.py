"""How probable an encoder of syntax finds the parts of speech of translations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.phrases import FloatArray, Phrases
from phrasetool.sentences import read_words
from phrasetool.syntax.model import SyntaxModel
from phrasetool.tagger.data import JOINT, UPOS
from phrasetool.tagger.model import TaggerModel
from phrasetool.unique_phrases import number_distinct


def check_languages(model: SyntaxModel, tagger: TaggerModel, language: str) -> None:
    """Refuse a language that one of them does not know.

    Raises:
        ValueError: the known ones are named.
    """
    if language not in model.targets:
        known = ", ".join(model.targets)
        raise ValueError(f"unknown language {language!r}; the encoder predicts the parts of speech of {known}")
    tagger.check_language(language)


def tag_log_probabilities(
    model: SyntaxModel, tagger: TaggerModel, texts: Sequence[bytes], translations: Sequence[bytes], language: str
) -> FloatArray:
    """The mean logarithm of the probabilities of the parts of speech of N translations and their ends.

    Args:
        model: predicts them from the texts.
        tagger: tells them.
        texts: N of them, words between spaces.
        translations: of each.
        language: of the translations.

    Returns:
        float32, shape (N,); NaN where nothing is known of a text, or a translation has no word.

    Raises:
        ValueError: the language is unknown.
    """
    check_languages(model, tagger, language)
    pieces = model.in_pieces(*read_words(texts))
    numbers, tags = _tags(tagger, translations, language)
    good = np.flatnonzero(model.has_opinion(pieces) & (tags.lengths[numbers] > 0))
    found = np.full(len(texts), np.nan, np.float32)
    said = model.likelihood(pieces.select(good), tags.select(numbers[good]), model.targets.index(language))
    # Rounding must not make anything more than certain.
    found[good] = np.minimum(said, 0)
    return found


def _tags(tagger: TaggerModel, texts: Sequence[bytes], language: str) -> tuple[np.typing.NDArray[np.int64], Phrases]:
    """Which distinct text each is, and the tags of each of these."""
    phrases, words = read_words(texts)
    numbers, firsts = number_distinct(phrases)
    plain = [word.decode("utf-8", "surrogateescape") for word in words]
    lines = [[plain[word] for word in text.tolist()] for text in phrases.select(firsts)]
    parts = {tag: [UPOS.index(part) for part in tag.split(JOINT)] for tag in tagger.tags}
    found = [[number for tag in tags for number in parts[tag]] for tags in tagger.tag(lines, language)]
    return numbers, Phrases.from_lists(found)
