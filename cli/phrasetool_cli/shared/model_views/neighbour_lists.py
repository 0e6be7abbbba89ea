"""What `phrasetool neighbours` lists, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from phrasetool.errors import PhraseToolError

if TYPE_CHECKING:
    from phrasetool.models.neural import NeuralModel
    from phrasetool.neighbours import Neighbour

# What stands for the end of a sentence.
_END = b"</s>"


def predicted_words(model: NeuralModel, text: bytes, count: int) -> tuple[dict[str, Any], dict[str, list[Neighbour]]]:
    """Lists for programs and for people, one for each word of the greedy translation and its end.

    Args:
        model: a translator.
        text: a source sentence.
        count: words a list.

    Raises:
        PhraseToolError: the sentence has no word or too many, or the translator predicts no vectors.
    """
    from phrasetool.neighbours import Neighbour
    from phrasetool.neural.nearest_words import nearest_words
    from phrasetool.phrases import Phrases

    sentence = Phrases.from_lists([model.source_vocabulary.ids(text)])
    words = [*model.target_vocabulary.words, _END]
    try:
        found = nearest_words(model.network, sentence, model.temperature, count)
    except ValueError as error:
        raise PhraseToolError(str(error)) from error
    lists = [
        [Neighbour(words[i], float(cosine)) for i, cosine in zip(step.words, step.cosines, strict=True)]
        for step in found
    ]
    shown = {f"position {number}": near for number, near in enumerate(lists, 1)}
    document = {"sentence": shown_text(text), "predicted": [as_dicts(near, "word") for near in lists]}
    return document, shown


def shown_text(text: bytes) -> str:
    """Text for people, also where it is no UTF-8."""
    return text.decode("utf-8", "replace")


def as_dicts(neighbours: Iterable[Neighbour], name: str) -> list[dict[str, Any]]:
    """Neighbours for programs; `name` is what they are."""
    return [{name: shown_text(n.text), "similarity": round(n.similarity, 6)} for n in neighbours]
