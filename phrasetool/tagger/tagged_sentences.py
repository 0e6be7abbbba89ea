"""Sentences of a treebank: words with their parts of speech, and the tokens that they are written as."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# The universal parts of speech.
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
    "SYM", "VERB", "X",
)  # fmt: skip
# Between the tags of the words that one token is written for, as `im` is for `in dem`.
JOINT = "+"
_LETTER = r"[^\W\d_]"
# Languages in which Moses' tokeniser leaves an apostrophe at the word before it.
_ELIDING = {"fr", "it", "ga", "ca"}


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence of W words, written as T tokens.

    Attributes:
        words: W of them.
        tags: W universal parts of speech.
        tokens: T pairs: how a token is written, and of how many words it is; these add up to W.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    tokens: tuple[tuple[str, int], ...]

    def as_words(self) -> tuple[list[str], list[str]]:
        """Words and their tags, as treebanks are measured."""
        return list(self.words), list(self.tags)

    def as_moses(self, language: str) -> tuple[list[str], list[str]] | None:
        """Tokens as Moses' tokeniser parts them, and their tags; those of several words are joined.

        Args:
            language: decides about apostrophes: `isn 't` in English, `l' homme` in French, `geht ' s` elsewhere.

        Returns:
            None where pieces and words of a token do not match.
        """
        tokens: list[str] = []
        tags: list[str] = []
        first = 0
        for form, count in self.tokens:
            pieces, own = moses_pieces(form, language), self.tags[first : first + count]
            first += count
            if len(pieces) == 1:
                tags.append(JOINT.join(own))
            elif len(own) == 1:
                tags.extend(own * len(pieces))
            elif len(own) == len(pieces):
                tags.extend(own)
            else:
                return None
            tokens.extend(pieces)
        return tokens, tags


def moses_pieces(form: str, language: str) -> list[str]:
    """The pieces into which Moses' tokeniser parts a token at apostrophes between letters.

    Args:
        form: a token without spaces.
        language: two letters.
    """
    if language == "en":
        pattern, parted = rf"({_LETTER})'(?={_LETTER})", r"\1 '"
    elif language in _ELIDING:
        pattern, parted = rf"({_LETTER})'(?={_LETTER})", r"\1' "
    else:
        pattern, parted = rf"({_LETTER})'(?={_LETTER})", r"\1 ' "
    return re.sub(pattern, parted, form).split(" ")


def lower_cased(words: Sequence[str]) -> list[str]:
    """The same words without capitals."""
    return [word.lower() for word in words]
