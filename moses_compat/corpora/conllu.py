"""Treebanks in CoNLL-U: ten columns between tabs, a word a line, an empty line behind each sentence."""

from __future__ import annotations

import re

from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.tagger.data import UPOS, TaggedSentence
from phrasetool.text_splitting import split_words

_COLUMNS = 10


def read_conllu(path: str) -> list[TaggedSentence]:
    """The sentences of a treebank.

    Empty nodes are skipped, spaces in forms become `_`, and the last sentence needs no empty line behind it.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: a line has not ten columns, is not UTF-8, or has a number or a part of speech that makes no sense;
            or there is no sentence.
    """
    found: list[TaggedSentence] = []
    with Input(path) as file:
        sentence = _Sentence(file.name)
        for number, raw in enumerate(file.read_all().split(b"\n"), 1):
            try:
                line = raw.decode("utf-8").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise DataError(file.name, f"not UTF-8 ({error.reason} at byte {error.start + 1})", number) from error
            if not split_words(line):
                found.extend(sentence.finished(number))
                sentence = _Sentence(file.name)
            elif not line.startswith("#"):
                sentence.add(line, number)
        found.extend(sentence.finished(number))
        if not found:
            raise DataError(file.name, "there is no sentence in it; expected a treebank in CoNLL-U")
    return found


class _Sentence:
    """One that is being read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._words: list[str] = []
        self._tags: list[str] = []
        self._tokens: list[tuple[str, int]] = []
        # The last word of the token that is being read.
        self._covered = 0

    def add(self, line: str, number: int) -> None:
        """A line that is no comment."""
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise DataError(self._name, f"not {_COLUMNS} columns between tabs, but {len(columns)}", number)
        place, form, tag = columns[0], "_".join(split_words(columns[1])) or "_", columns[3]
        following = len(self._words) + 1
        if re.fullmatch(r"[0-9]+\.[0-9]+", place):
            return
        if span := re.fullmatch(r"([0-9]+)-([0-9]+)", place):
            first, last = int(span[1]), int(span[2])
            if first != following or last < first or first <= self._covered:
                raise DataError(self._name, f"words {place}, expected some that begin with {following}", number)
            self._tokens.append((form, last - first + 1))
            self._covered = last
            return
        if place != str(following):
            raise DataError(self._name, f"the number of the word is {place!r}, expected {following}", number)
        if tag not in UPOS:
            raise DataError(self._name, f"unknown part of speech {tag!r}, expected one of {', '.join(UPOS)}", number)
        self._words.append(form)
        self._tags.append(tag)
        if following > self._covered:
            self._tokens.append((form, 1))

    def finished(self, number: int) -> list[TaggedSentence]:
        """It, unless it has no word."""
        if self._covered > len(self._words):
            message = f"the sentence ends after {len(self._words)} words, but a token is of {self._covered}"
            raise DataError(self._name, message, number)
        if not self._words:
            return []
        return [TaggedSentence(tuple(self._words), tuple(self._tags), tuple(self._tokens))]
