"""Texts for encoders that read characters: whole lines, Moses' escapes undone, one space between words."""

from __future__ import annotations

from collections.abc import Callable

from moses_compat.corpora.bitext import check_line_counts
from moses_compat.files.names import STANDARD, display_name, same_file
from moses_compat.files.streams import Input
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.text_splitting import single_spaced, split_lines
from phrasetool.vocabulary import unescape

_Progress = Callable[[int, int], None]


def read_line_texts(path: str, progress: _Progress = lambda position, lines: None, whole: bool = True) -> list[str]:
    """The lines of a file.

    Args:
        path: the file, compressed or not; `-` for standard input.
        progress: called with the bytes consumed and the lines read so far.
        whole: an empty line is an error; else such lines are left out.

    Raises:
        DataError: the file cannot be read or holds no word, or a line is empty or no UTF-8.
    """
    found: list[str] = []
    number = 0
    with Input(path) as file:
        for block in file.whole_lines():
            plain = unescape(block) if b"&" in block else block
            for line in split_lines(plain):
                number += 1
                try:
                    text = single_spaced(line.decode("utf-8"))
                except UnicodeDecodeError as error:
                    raise DataError(
                        file.name, f"not UTF-8 ({error.reason} at byte {error.start + 1})", number
                    ) from error
                if text:
                    found.append(text)
                elif whole:
                    raise DataError(file.name, "the line is empty; leave out lines without a word", number)
            progress(file.position(), number)
        if not found:
            raise DataError(file.name, "there is no text in it")
    return found


def read_line_pairs(
    source: str, target: str, progress: _Progress = lambda position, lines: None
) -> tuple[list[str], list[str]]:
    """Both sides of a bitext, see `read_line_texts`.

    Raises:
        DataError: a file cannot be read or holds nothing, a line is empty, or one file has more lines than the other.
        PhraseToolError: both are one file, or standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides of a bitext")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is the file of the source, too; expected its translation")
    sources, targets = read_line_texts(source, progress), read_line_texts(target, progress)
    check_line_counts(display_name(source), len(sources), display_name(target), len(targets))
    return sources, targets
