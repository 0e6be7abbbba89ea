"""Sentences with parts of speech: treebanks in CoNLL-U, and texts as `tag` writes them.

CoNLL-U has one word per line, ten columns separated by tabs, and an empty line after each sentence.  The other format
has a line of tags for each line of words, or `word|TAG`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from moses_compat.corpora.bitexts import check_line_counts
from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.paths import display_name
from moses_compat.files.streams import Input
from phrasetool.errors import DataError
from phrasetool.tagger.data import JOINT, UPOS, TaggedSentence
from phrasetool.text_splitting import split_words

_COLUMNS = 10


def read_conllu(path: str) -> list[TaggedSentence]:
    """Read the sentences of a treebank.

    Empty nodes are skipped, spaces in forms become `_`, and the last sentence needs no empty line after it.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: a line does not have ten columns, is not UTF-8, or has an invalid number or part of speech; or the
            file has no sentences.
    """
    sentences: list[TaggedSentence] = []
    with Input(path) as file:
        sentence = _Sentence(file.name)
        for number, raw in enumerate(file.read_all().split(b"\n"), 1):
            try:
                line = raw.decode("utf-8").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise DataError(file.name, f"not UTF-8 ({error.reason} at byte {error.start + 1})", number) from error
            if not split_words(line):
                sentences.extend(sentence.finished(number))
                sentence = _Sentence(file.name)
            elif not line.startswith("#"):
                sentence.add(line, number)
        sentences.extend(sentence.finished(number))
        if not sentences:
            raise DataError(file.name, "the file contains no sentences; expected a treebank in CoNLL-U")
    return sentences


class _Sentence:
    """A sentence that is being read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._words: list[str] = []
        self._tags: list[str] = []
        self._tokens: list[tuple[str, int]] = []
        # Number of the last word of the latest multiword token; 0 before the first one.
        self._covered = 0

    def add(self, line: str, number: int) -> None:
        """Add a line that is not a comment.

        Raises:
            DataError: the line is not a word of the sentence in CoNLL-U.
        """
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            message = f"expected {_COLUMNS} columns separated by tabs, found {len(columns)}"
            raise DataError(self._name, message, number)
        word_id, form, tag = columns[0], "_".join(split_words(columns[1])) or "_", columns[3]
        following = len(self._words) + 1
        if re.fullmatch(r"[0-9]+\.[0-9]+", word_id):
            return
        if span := re.fullmatch(r"([0-9]+)-([0-9]+)", word_id):
            first, last = int(span[1]), int(span[2])
            if first != following or last < first or first <= self._covered:
                raise DataError(self._name, f"words {word_id}, expected words from {following} on", number)
            self._tokens.append((form, last - first + 1))
            self._covered = last
            return
        if word_id != str(following):
            raise DataError(self._name, f"the number of the word is {word_id!r}, expected {following}", number)
        if tag not in UPOS:
            raise DataError(self._name, f"unknown part of speech {tag!r}, expected one of {', '.join(UPOS)}", number)
        self._words.append(form)
        self._tags.append(tag)
        if following > self._covered:
            self._tokens.append((form, 1))

    def finished(self, number: int) -> list[TaggedSentence]:
        """Return the sentence as a list, empty if it has no words.

        Raises:
            DataError: a multiword token ends after the sentence.
        """
        if self._covered > len(self._words):
            message = f"the sentence ends after {len(self._words)} words, but a token ends at word {self._covered}"
            raise DataError(self._name, message, number)
        if not self._words:
            return []
        return [TaggedSentence(tuple(self._words), tuple(self._tags), tuple(self._tokens))]


def read_tagged_text(tagged: str, sentences: str | None = None) -> tuple[list[bytes], list[list[int]]]:
    """Read sentences, words separated by spaces, and the numbers of their parts of speech.

    A word that consists of several syntactic words has the numbers of all their parts of speech.

    Args:
        tagged: the file of tags, or of words with their tags, compressed or not; `-` for standard input.
        sentences: the file of words, if `tagged` only has tags.

    Raises:
        DataError: a file cannot be read, a line has no words, a word has no tag or an unknown one, or the files have
            different numbers of lines or words.
    """
    name = display_name(tagged)
    lines = read_text_lines(tagged)
    if sentences is None:
        rows = [_factored(name, line, number) for number, line in enumerate(lines, 1)]
    else:
        texts = read_text_lines(sentences)
        check_line_counts(display_name(sentences), len(texts), name, len(lines))
        rows = []
        for number, (text, line) in enumerate(zip(texts, lines, strict=True), 1):
            words, tags = split_words(text), split_words(line)
            if not words:
                raise DataError(display_name(sentences), "the line is empty; leave out lines without a word", number)
            if len(words) != len(tags):
                raise DataError(name, f"{len(tags)} tags for {len(words)} words", number)
            rows.append((words, tags))
    encoded = [" ".join(words).encode("utf-8", "surrogateescape") for words, _ in rows]
    return encoded, [list(_numbers(name, tags, number)) for number, (_, tags) in enumerate(rows, 1)]


def _factored(name: str, line: str, number: int) -> tuple[list[str], list[str]]:
    """Return the words and tags of a line of `word|TAG`."""
    parts = [token.rsplit("|", 1) for token in split_words(line)]
    if not parts:
        raise DataError(name, "the line is empty; leave out lines without a word", number)
    for part in parts:
        if len(part) < 2 or not part[0]:
            message = f"expected word|TAG, found {'|'.join(part)!r}"
            raise DataError(name, message, number, remedy="name the words")
    return [word for word, _ in parts], [tag for _, tag in parts]


def _numbers(name: str, tags: list[str], number: int) -> Iterator[int]:
    for tag in tags:
        for part in tag.split(JOINT):
            if part not in UPOS:
                message = f"unknown part of speech {tag!r}, expected one of {', '.join(UPOS)}"
                raise DataError(name, message, number)
            yield UPOS.index(part)
