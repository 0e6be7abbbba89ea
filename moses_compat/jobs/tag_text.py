"""Part-of-speech tagging of a text in a stream, with a line of tags for each line of words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError
from phrasetool.kernels.lstm_states import one_blas_thread
from phrasetool.pipeline import run
from phrasetool.tagger.data import JOINT
from phrasetool.text_splitting import split_lines, split_words
from phrasetool.vocabulary import unescape
from phrasetool.watch import SILENT, Watch

if TYPE_CHECKING:
    from phrasetool.tagger.model import TaggerModel

FORMATS = ("tags", "factored", "conllu")
# Lines per block.  The last bits of a score depend on the block of the word, so this is not an option.
_LINES = 512


@dataclass
class TagReport:
    """Counts of a tagging run.

    Attributes:
        sentences, words: numbers of sentences and words.
        joined: number of words with a joined tag.
    """

    sentences: int = 0
    words: int = 0
    joined: int = 0


def tag_text(
    model: TaggerModel, language: str, text: str, output: str, form: str = "tags", threads: int = 1,
    allow_empty: bool = False, watch: Watch = SILENT,
) -> TagReport:  # fmt: skip
    """Write the tags of a text.

    Args:
        model: the tagger.
        language: language of the text.
        text: file with one tokenised sentence per line, with or without Moses' escapes; `-` for standard input.
        output: the output file.
        form: one of `FORMATS`.
        threads: number of blocks that are processed in parallel.
        allow_empty: whether the text may be empty.
        watch: progress listener.

    Raises:
        DataError: the text cannot be read, has a line without a word, or no line.
        PhraseToolError: the output cannot be written.
        ValueError: the tagger does not support the language.
    """
    model.check_language(language)
    report = TagReport()
    with one_blas_thread(), Input(text) as source, Output(output) as out:

        def work(block: list[list[bytes]]) -> tuple[bytes, int, int, int]:
            plain = [[_text(unescape(word) if b"&" in word else word) for word in words] for words in block]
            tags = model.tag(plain, language)
            lines = [_line(form, *sentence) for sentence in zip(block, plain, tags, strict=True)]
            joined = sum(JOINT in tag for line in tags for tag in line)
            return (
                out.encode("".join(lines).encode("utf-8", "surrogateescape")),
                len(block),
                sum(map(len, tags)),
                joined,
            )

        with watch.file("tag", source.size()) as progress:
            for packed, sentences, words, joined in run(_blocks(source), work, threads):
                out.write(packed)
                report.sentences, report.words = report.sentences + sentences, report.words + words
                report.joined += joined
                progress(source.position(), report.sentences)
        if not report.sentences and not allow_empty:
            raise DataError(source.name, "the file contains no text", remedy="allow an empty input")
    return report


def _blocks(source: Input) -> Iterator[list[list[bytes]]]:
    """Yield the words of `_LINES` lines at a time."""
    lines = _lines(source)
    while block := list(itertools.islice(lines, _LINES)):
        yield block


def _lines(source: Input) -> Iterator[list[bytes]]:
    number = 0
    for block in source.whole_lines():
        for line in split_lines(block):
            number += 1
            words = split_words(line)
            if not words:
                raise DataError(source.name, "the line is empty; leave out lines without a word", number)
            yield words


def _text(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


def _line(form: str, written: list[bytes], plain: list[str], tags: list[str]) -> str:
    """Return the output of a sentence."""
    if form == "tags":
        return " ".join(tags) + "\n"
    if form == "factored":
        # Moses splits factors at bars; a bar within a word must be escaped.
        words = [_text(word).replace("|", "&#124;") for word in written]
        return " ".join(f"{word}|{tag}" for word, tag in zip(words, tags, strict=True)) + "\n"
    lines, number = [], 0
    for word, tag in zip(plain, tags, strict=True):
        parts = tag.split(JOINT)
        if len(parts) > 1:
            lines.append(_row(f"{number + 1}-{number + len(parts)}", word, "_"))
        for part in parts:
            number += 1
            lines.append(_row(str(number), word if len(parts) == 1 else "_", part))
    return "".join(lines) + "\n"


def _row(number: str, form: str, tag: str) -> str:
    return "\t".join([number, form, "_", tag, *["_"] * 6]) + "\n"
