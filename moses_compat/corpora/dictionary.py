"""Dictionaries of single words in files: `source ||| target`, two columns, or a lexical table."""

from __future__ import annotations

from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.text_splitting import single_spaced, split_lines, split_words
from phrasetool.vocabulary import unescape

_NONE = b"NULL"


def read_dictionary(path: str) -> dict[bytes, bytes]:
    """The target word of each source word, escapes undone.

    A line is `source ||| target`, `source target`, or `source target number` as in Moses' lex.e2f; of several targets
    of a word the one with the highest number is taken, else the first.

    Args:
        path: the file, compressed or not.

    Raises:
        DataError: the file cannot be read, holds nothing, or a line is of another form.
    """
    best: dict[bytes, tuple[float, bytes]] = {}
    with Input(path) as file:
        text = file.read_all()
        name = file.name
    for number, line in enumerate(split_lines(text), 1):
        fields = [single_spaced(field) for field in line.split(b"|||")] if b"|||" in line else split_words(line)
        if not fields:
            continue
        try:
            source, target, worth = fields[0], fields[1], float(fields[2]) if len(fields) > 2 else 0.0
        except (IndexError, ValueError) as error:
            raise DataError(name, "expected a source word, a target word, and perhaps a number", number) from error
        if not source or not target or len(split_words(source)) > 1:
            raise DataError(name, "expected one source word and its translation", number)
        if _NONE in (source, target):
            continue
        word = unescape(source)
        if word not in best or worth > best[word][0]:
            best[word] = worth, unescape(target)
    if not best:
        raise DataError(name, "there is no word in it")
    return {word: target for word, (_, target) in best.items()}
