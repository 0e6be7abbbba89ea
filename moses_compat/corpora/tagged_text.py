"""Texts with parts of speech, as `tag` writes them: a line of tags beside a line of words, or `word|TAG`."""

from __future__ import annotations

from collections.abc import Iterator

from moses_compat.corpora.bitext import check_line_counts
from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.names import display_name
from phrasetool.errors import DataError
from phrasetool.tagger.data import JOINT, UPOS
from phrasetool.text_splitting import split_words


def read_tagged_text(tagged: str, sentences: str | None = None) -> tuple[list[bytes], list[list[int]]]:
    """Sentences, words between spaces, and their parts of speech in numbers; both of a word that stands for two.

    Args:
        tagged: tags alone, or words with their tags, compressed or not; `-` for standard input.
        sentences: the words, where there are tags alone.

    Raises:
        DataError: a file cannot be read, a line has no word, a word no tag or an unknown one; or the lines or words of
            one file are not as many as those of the other.
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
    found = [" ".join(words).encode("utf-8", "surrogateescape") for words, _ in rows]
    return found, [list(_numbers(name, tags, number)) for number, (_, tags) in enumerate(rows, 1)]


def _factored(name: str, line: str, number: int) -> tuple[list[str], list[str]]:
    """Words and tags of a line `word|TAG`."""
    parts = [token.rsplit("|", 1) for token in split_words(line)]
    if not parts:
        raise DataError(name, "the line is empty; leave out lines without a word", number)
    for part in parts:
        if len(part) < 2 or not part[0]:
            found = f"{'|'.join(part)!r} is no word with its tag, expected word|TAG"
            raise DataError(name, found, number, remedy="name the words")
    return [word for word, _ in parts], [tag for _, tag in parts]


def _numbers(name: str, tags: list[str], number: int) -> Iterator[int]:
    for tag in tags:
        for part in tag.split(JOINT):
            if part not in UPOS:
                message = f"unknown part of speech {tag!r}, expected one of {', '.join(UPOS)}"
                raise DataError(name, message, number)
            yield UPOS.index(part)
