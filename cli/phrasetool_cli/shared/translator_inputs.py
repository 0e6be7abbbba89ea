"""What `phrasetool translate` is given, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from phrasetool_cli.progress import TerminalWatch

if TYPE_CHECKING:
    from moses_compat.corpora.written_text import WrittenText
    from phrasetool.models.neural import NeuralModel
    from phrasetool.phrases import Phrases


def check_text(path: str, sentences: Phrases, watch: TerminalWatch) -> None:
    """Refuse sentences that are too long; warn of a text of which hardly a word is known.

    Raises:
        DataError: a sentence is too long.
    """
    import numpy as np

    from moses_compat.files.names import display_name
    from phrasetool.errors import DataError
    from phrasetool.models.fit import FEWEST, HARDLY_KNOWN
    from phrasetool.nn.positions import LONGEST
    from phrasetool.vocabulary import UNKNOWN

    if len(too_long := np.flatnonzero(sentences.lengths > LONGEST)):
        line = int(too_long[0])
        message = f"the sentence has {sentences.lengths[line]} words; a translator reads at most {LONGEST}"
        raise DataError(display_name(path), message, line + 1)
    size = len(sentences.words)
    known = float((sentences.words != UNKNOWN).mean()) if size else 1.0
    if known == 0 or (size >= FEWEST and known < HARDLY_KNOWN):
        watch.warn(f"{display_name(path)}: the model knows {known:.1%} of its {size:,} words; is it another language?")


def check_dictionary(
    path: str | None, dictionary: Mapping[bytes, bytes], text: str, read: WrittenText, watch: TerminalWatch
) -> None:
    """Report how many words of a text a dictionary has.

    Args:
        path: of the dictionary; None without one.
        dictionary: source word -> target word.
        text: path of the text.
        read: the text.
        watch: is told.

    Raises:
        DataError: the dictionary has none of them.
    """
    from moses_compat.files.names import display_name
    from phrasetool.errors import DataError

    size = len(read.symbols)
    if path is None or not size:
        return
    found = len(read.copies(dictionary, False))
    if not found:
        message = f"has none of the {size:,} different words of {display_name(text)}; expected words of its language"
        raise DataError(display_name(path), message)
    watch.say(f"{display_name(path)} has {found:,} of the {size:,} different words of {display_name(text)}")


def with_new_words(model: NeuralModel, words: str, vectors: str, watch: TerminalWatch) -> NeuralModel:
    """The model with more target words, whose vectors are of the space that it predicts in.

    Args:
        model: the translator.
        words: a file, a word a line.
        vectors: a file of vectors: the one that the training was given.
        watch: told how many were added.

    Raises:
        DataError: a file cannot be read, or the vectors are not those of the model.
    """
    from moses_compat.corpora.texts import read_texts
    from moses_compat.files.byte_stream import open_bytes
    from moses_compat.files.names import display_name
    from phrasetool.embeddings.files import load_vectors
    from phrasetool.errors import DataError
    from phrasetool.models.new_words import new_target_vectors

    listed = read_texts(words)[1].words
    known = load_vectors(vectors, [*model.target_vocabulary.words, *listed], model.dimension, open_bytes)
    try:
        added = new_target_vectors(model, listed, known)
        larger = model.with_words(added)
    except ValueError as error:
        raise DataError(display_name(vectors), str(error)) from error
    watch.say(f"{len(added):,} target words were added")
    return larger
