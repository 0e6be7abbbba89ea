"""The texts whose syntax is nearest to that of a text: by the cosine of their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phrasetool.errors import PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.syntax.model import SyntaxModel
from phrasetool.syntax.tag_groups import unit_vectors
from phrasetool.text_splitting import split_words
from phrasetool.unique_phrases import distinct_phrases
from phrasetool.vocabulary import unescape


def nearest_by_syntax(
    model: SyntaxModel, text: bytes, texts: Phrases, words: Sequence[bytes], count: int
) -> tuple[list[tuple[bytes, float]], int]:
    """The nearest of some texts with their cosines, and how many different ones were searched.

    Args:
        model: any.
        text: words between spaces, with Moses' escapes or without; it is not listed itself.
        texts: in numbers of words.
        words: distinct, unescaped.
        count: how many at most; equally near ones come in their order.

    Raises:
        PhraseToolError: nothing is known of the text, or it is too long.
    """
    wanted = split_words(unescape(text))
    vector = unit_vectors(model.encode_texts(Phrases.from_lists([range(len(wanted))]), wanted))[0]
    if not vector.any():
        raise PhraseToolError("the encoder knows nothing of the sentence, or it is longer than what it reads")
    distinct = distinct_phrases(texts)[1]
    cosines = np.clip(unit_vectors(model.encode_texts(distinct, words)) @ vector, -1, 1)
    found: list[tuple[bytes, float]] = []
    for number in np.argsort(-cosines, kind="stable")[: count + 1].tolist():
        line = [words[word] for word in distinct[number].tolist()]
        if line != wanted and len(found) < count:
            found.append((b" ".join(line), float(cosines[number])))
    return found, len(distinct)
