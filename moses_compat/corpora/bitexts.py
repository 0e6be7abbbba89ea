"""Bitexts in files: one sentence per line, words separated by spaces; lines of the same number are translations.

The aligner and the extractor read words as they are written (`read_sentence_pairs`, `read_bitext`); models read words
without Moses' escapes (`read_parallel_texts`, `read_phrase_texts`) or whole lines (`read_line_pairs`).

Word alignments have Pharaoh format, one sentence pair per line: `0-0 1-2 2-1`, source position first, both from 0.
Priors for eflomal have the text format that `eflomal-makepriors` writes: fields separated by tabs, a weight last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np

from moses_compat.corpora.texts import line_blocks, read_line_texts, read_texts, unescaped_words
from moses_compat.corpora.training_pairs import read_training_pairs
from moses_compat.files.paths import STANDARD, display_name, same_file
from moses_compat.files.streams import Input, Output
from moses_compat.lines.counts import LARGEST_COUNT
from moses_compat.lines.fields import shown, table_error, text_error
from moses_compat.lines.numbers import MAX_POSITION, point_error, read_position, write_integer
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.kernels.bytes import CR, LF, MINUS, SPACE, is_blank
from phrasetool.kernels.jit import exact_kernel
from phrasetool.phrases import ByteArray, Int32Array, Int64Array, Phrases
from phrasetool.smt.aligning.alignments import Alignments, Bitext
from phrasetool.smt.aligning.eflomal import Priors, PriorUse
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.text_splitting import single_spaced, split_lines
from phrasetool.training.data import TextPairs
from phrasetool.vocabulary import has_escapes
from phrasetool.watch import Watch

# Seven corpora of 8,000 to 65,000 sentence pairs have no pair of two equal sentences, and 6 to 25 % of their pairs are
# equally long.  Between an English text and its normalised form, 63 % of the pairs are equal.
_MANY_COPIES = 0.9


@exact_kernel
def _parse(
    text: ByteArray, offsets: Int64Array, source: Int32Array, target: Int32Array, fault: Int64Array
) -> tuple[int, int]:
    """Fill the arrays; return the numbers of lines and points.

    The kernel sets `fault` to the start and end of the first malformed token, or to -1.
    """
    fault[0] = fault[1] = -1
    lines, points = 0, 0
    i = 0
    while i < len(text):
        while i < len(text) and text[i] != LF:
            if is_blank(text[i]) or (text[i] == CR and (i + 1 == len(text) or text[i + 1] == LF)):
                i += 1
                continue
            first = i
            while i < len(text) and text[i] != LF and text[i] != CR and not is_blank(text[i]):
                i += 1
            s, k = read_position(text, first, i)
            t, k = read_position(text, k + 1, i) if k < i and text[k] == MINUS else (-1, k)
            if s < 0 or t < 0 or k < i or max(s, t) > MAX_POSITION:
                fault[0], fault[1] = first, max(i, first + 1)
                return lines, points
            source[points], target[points] = s, t
            points += 1
        i += 1
        lines += 1
        offsets[lines] = points
    return lines, points


def parse_alignments(text: bytes, name: str) -> Alignments:
    """Read alignments from text; the order of points is free, and repeated points count once.

    Args:
        text: one sentence pair per line; an empty line is a pair without points.
        name: the name of the text in messages.

    Raises:
        DataError: a token is not `source-target`, or a position is beyond `MAX_POSITION`.
    """
    array = np.frombuffer(text, np.uint8)
    lines = int(np.count_nonzero(array == LF)) + 1
    limit = int(np.count_nonzero(array == MINUS)) + 1
    offsets = np.zeros(lines + 1, np.int64)
    source, target = np.empty(limit, np.int32), np.empty(limit, np.int32)
    fault = np.empty(2, np.int64)
    lines, points = _parse(array, offsets, source, target, fault)
    if fault[0] >= 0:
        raise DataError(name, point_error(text[fault[0] : fault[1]]), lines + 1)
    return Alignments.from_points(offsets[: lines + 1], source[:points], target[:points])


def read_alignments(
    path: str, source_lengths: Int64Array | None = None, target_lengths: Int64Array | None = None
) -> Alignments:
    """Read a file of alignments, and check it against the bitext if its sentence lengths are given.

    Args:
        path: the file, compressed or not; `-` for standard input.
        source_lengths, target_lengths: int64, shape (N,), words per sentence.

    Raises:
        DataError: a token is malformed, the numbers of lines and sentence pairs differ, or a point is outside its
            sentence pair.
    """
    with Input(path) as file:
        alignments = parse_alignments(file.read_all(), file.name)
        name = file.name
    if source_lengths is None or target_lengths is None:
        return alignments
    if len(alignments) != len(source_lengths):
        raise DataError(name, f"{len(alignments)} lines for a bitext of {len(source_lengths)} sentence pairs")
    outside = alignments.first_outside(source_lengths, target_lengths)
    if outside >= 0:
        lengths = int(source_lengths[outside]), int(target_lengths[outside])
        point = next(p for p in alignments[outside] if p[0] >= lengths[0] or p[1] >= lengths[1])
        raise DataError(
            name,
            f"the point {point[0]}-{point[1]} is outside its sentence pair of {lengths[0]} and {lengths[1]} words",
            outside + 1,
        )
    return alignments


@exact_kernel
def _format(offsets: Int64Array, source: Int32Array, target: Int32Array, out: ByteArray) -> int:
    position = 0
    for pair in range(len(offsets) - 1):
        for p in range(offsets[pair], offsets[pair + 1]):
            if p > offsets[pair]:
                out[position] = SPACE
                position += 1
            position = write_integer(out, position, source[p])
            out[position] = MINUS
            position = write_integer(out, position + 1, target[p])
        out[position] = LF
        position += 1
    return position


def format_alignments(alignments: Alignments) -> bytes:
    """Return the text of alignments, one line per sentence pair, points sorted by source, then target position."""
    # A point takes two numbers of at most ten digits, a minus and a space.
    out = np.empty(22 * len(alignments.source) + len(alignments), np.uint8)
    size = _format(alignments.offsets, alignments.source, alignments.target, out)
    return out[:size].tobytes()


def write_alignments(files: Sequence[tuple[str, Alignments]]) -> None:
    """Write each alignment to its file; all texts are written before the files appear, in the given order.

    Raises:
        PhraseToolError: a file cannot be written.
    """
    with contextlib.ExitStack() as stack:
        outputs = [(stack.enter_context(Output(path)), alignments) for path, alignments in reversed(files)]
        for output, alignments in outputs:
            output.write_text(format_alignments(alignments))


class _TooLargeError(Exception):
    """A weight exceeds `LARGEST_COUNT`, more words than any corpus has."""


# Kind of line -> number of fields.
_FIELDS = {"LEX": 4, "FERF": 4, "FERR": 4, "HMMF": 3, "HMMR": 3}


def read_priors(path: str) -> Priors:
    """Read a file of priors.

    Raises:
        DataError: a line is of none of the five kinds or has an invalid number, or the file has no priors.
    """
    priors = Priors()
    with Input(path) as file:
        lines = file.read_all().decode("utf-8", "surrogateescape").split("\n")
        name = file.name
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""] and number == len(lines):
            break
        try:
            _enter(priors, fields)
        except _TooLargeError:
            message = f"the weight {fields[-1]} is more than {LARGEST_COUNT:g}, with which eflomal may never end"
            raise DataError(name, f"{message}; expected a count", number) from None
        except ValueError:
            expected = "LEX, FERF or FERR with two words or a word and a number, or HMMF or HMMR with a jump"
            raise DataError(name, f"not a prior: expected {expected}, and a weight", number) from None
    if not len(priors):
        raise DataError(name, "the file has no priors; expected counts as eflomal-makepriors writes them")
    return priors


def check_use(use: PriorUse, path: str, source: str, target: str) -> str:
    """Return a message with the number of priors that are used.

    Args:
        use: numbers of priors that an alignment uses.
        path: the file of the priors.
        source, target: the files of the bitext.

    Raises:
        DataError: no prior is used, or more word pairs match the bitext if its sides are swapped.
    """
    sides = f"{display_name(source)} and {display_name(target)}"
    if use.swapped > use.lexical:
        message = (
            f"{use.swapped:,} of its word pairs match {sides} if the sides are swapped, only {use.lexical:,} if not; "
            "expected priors from the source to the target language"
        )
        raise DataError(display_name(path), message)
    if use.of_words and not use.lexical and not use.fertilities:
        message = f"none of its {use.of_words:,} word pairs and fertilities matches words of {sides} and the model"
        raise DataError(display_name(path), message)
    if not use.used:
        raise DataError(display_name(path), f"the model uses none of its {use.total:,} priors, which are jumps")
    return (
        f"{use.used:,} of {use.total:,} priors are used: {use.lexical:,} word pairs, {use.fertilities:,} fertilities, "
        f"{use.jumps:,} jumps"
    )


def _enter(priors: Priors, fields: list[str]) -> None:
    """Add a line to the priors; raise ValueError if it is malformed."""
    kind, weight = fields[0], float(fields[-1])
    if len(fields) != _FIELDS.get(kind) or not weight >= 0:
        raise ValueError
    if weight > LARGEST_COUNT:
        raise _TooLargeError
    if kind == "LEX":
        priors.lexical.append((fields[1], fields[2], weight))
    elif kind.startswith("FER"):
        if int(fields[2]) < 0:
            raise ValueError
        priors.fertilities[kind == "FERR"].append((fields[1], int(fields[2]), weight))
    else:
        priors.jumps[kind == "HMMR"][int(fields[1])] = weight


def read_bitext_side(path: str, symbols: Symbols) -> Phrases:
    """Read the sentences of one language; new words are added to the symbols.

    Args:
        path: the file, compressed or not; `-` for standard input.
        symbols: words as ids.

    Raises:
        DataError: a line is empty, or a word cannot be in a table, see `text_error`.
    """
    with Input(path) as file:
        sentences = Phrases.concatenate([symbols.read_lines(text) for text in file.whole_lines()])
        name = file.name
    lengths = sentences.lengths
    if not lengths.all():
        raise DataError(name, "the sentence is empty; leave out pairs with an empty side", int(np.argmin(lengths)) + 1)
    malformed = [number for number, word in enumerate(symbols.words) if text_error(word)]
    if malformed and len(positions := np.flatnonzero(np.isin(sentences.words, malformed))):
        line = int(np.searchsorted(sentences.offsets, positions[0], "right"))
        word = symbols.words[sentences.words[positions[0]]]
        raise DataError(name, f"the word {shown(word)} {text_error(word)}", line)
    return sentences


def warn_of_labels(names: tuple[str, str], bitext: tuple[Phrases, Phrases, Symbols, Symbols], watch: Watch) -> None:
    """Warn of words that Moses cannot read in a table, although phrasetool can; see `table_error`.

    Args:
        names: the files of the bitext.
        bitext: a result of `read_sentence_pairs`.
        watch: receives the warnings.
    """
    for name, sentences, symbols in zip(names, bitext[:2], bitext[2:], strict=True):
        malformed = [number for number, word in enumerate(symbols.words) if table_error(word)]
        if malformed and len(positions := np.flatnonzero(np.isin(sentences.words, malformed))):
            line = int(np.searchsorted(sentences.offsets, positions[0], "right"))
            word = symbols.words[sentences.words[positions[0]]]
            watch.warn(f"{display_name(name)}:{line}: the word {shown(word)} {table_error(word)}")


def check_two_sides(source: str, target: str) -> None:
    """Check that the two sides of a bitext are not the same file and not both standard input.

    Raises:
        PhraseToolError: they are the same file, or both standard input.
    """
    if source == target == STANDARD:
        raise PhraseToolError("standard input: cannot be both sides of a bitext")
    if same_file(source, target):
        raise PhraseToolError(f"{target}: is also the source file; expected its translation")


def check_line_counts(first: str, first_lines: int, second: str, second_lines: int) -> None:
    """Check that two files have the same number of lines.

    Raises:
        DataError: the numbers differ; the error names the line after the end of the shorter file.
    """
    if first_lines != second_lines:
        short, long = (first, second) if first_lines < second_lines else (second, first)
        fewer, more = sorted((first_lines, second_lines))
        raise DataError(short, f"the file ends after {fewer} lines, but {long} has {more}", fewer + 1)


def read_sentence_pairs(source: str, target: str) -> tuple[Phrases, Phrases, Symbols, Symbols]:
    """Read both sides of a bitext.

    Returns:
        Source sentences, target sentences, source words, target words.

    Raises:
        DataError: see `read_bitext_side`; or the files have no lines or different numbers of lines.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    source_symbols, target_symbols = Symbols(), Symbols()
    sources, targets = read_bitext_side(source, source_symbols), read_bitext_side(target, target_symbols)
    check_line_counts(source, len(sources), target, len(targets))
    if not len(sources):
        raise DataError(source, "the bitext has no sentence")
    return sources, targets, source_symbols, target_symbols


def warn_of_copies(names: tuple[str, str], bitext: tuple[Phrases, Phrases, Symbols, Symbols], watch: Watch) -> None:
    """Warn if nearly all sentence pairs of a bitext are two equal sentences.

    Args:
        names: the files of the bitext.
        bitext: a result of `read_sentence_pairs`.
        watch: receives the warning.
    """
    sources, targets, source_symbols, target_symbols = bitext
    alike = np.flatnonzero(sources.lengths == targets.lengths)
    # Few pairs of translations are equally long, so most bitexts need no comparison of words.
    if len(alike) <= _MANY_COPIES * len(sources):
        return
    ids = np.array([source_symbols.id(word) for word in target_symbols.words], np.int32)
    first, second = sources.select(alike), targets.select(alike)
    copies = int(np.logical_and.reduceat(first.words == ids[second.words], first.offsets[:-1]).sum())
    if copies > _MANY_COPIES * len(sources):
        watch.warn(
            f"{copies:,} of {len(sources):,} sentences of {display_name(names[1])} are the same as in "
            f"{display_name(names[0])}; expected their translations"
        )


def read_bitext(source: str, target: str, alignment: str) -> Bitext:
    """Read a bitext with its word alignment in Pharaoh form.

    Raises:
        DataError: see `read_sentence_pairs` and `read_alignments`; or no words are aligned.
        PhraseToolError: two of them are standard input.
    """
    if alignment == STANDARD and STANDARD in (source, target):
        raise PhraseToolError("standard input: cannot be both a side of the bitext and its alignment")
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(source, target)
    alignments = read_alignments(alignment, sources.lengths, targets.lengths)
    if not len(alignments.source):
        raise DataError(alignment, "aligns no word of the bitext; expected points such as 0-0 1-2")
    return Bitext(sources, targets, alignments, source_symbols, target_symbols)


def read_directions(forward: str, reverse: str) -> tuple[Alignments, Alignments]:
    """Read the alignments of one bitext in both directions.

    Raises:
        DataError: see `read_alignments`; or the files have different numbers of lines.
        PhraseToolError: both are standard input.
    """
    if forward == reverse == STANDARD:
        raise PhraseToolError("standard input: cannot be both directions")
    first, second = read_alignments(forward), read_alignments(reverse)
    check_line_counts(forward, len(first), reverse, len(second))
    return first, second


def read_text_pair(source: str, target: str) -> tuple[bytes, bytes]:
    """Read a text and its translation into memory; the last line of each gets a line feed if it lacks one.

    Args:
        source, target: the files.

    Raises:
        DataError: a file is damaged, the source has no lines, or the files have different numbers of lines.
    """
    texts = []
    for path in (source, target):
        with Input(path) as stream:
            text = stream.read_all()
        texts.append(text if not text or text.endswith(b"\n") else text + b"\n")
    first, second = texts
    if not first:
        raise DataError(source, "the file has no lines")
    check_line_counts(source, first.count(b"\n"), target, second.count(b"\n"))
    return first, second


def shared_pairs(bitext: tuple[str, str], texts: Mapping[str, tuple[bytes, bytes]]) -> dict[str, tuple[int, int]]:
    """Return the numbers of shared and of all sentence pairs of each text that shares pairs with a bitext, by name.

    Sentences with the same words are equal; pairs of two sentences without words are ignored.

    Args:
        bitext: the files of the two sides.
        texts: name -> source and target.
    """
    pairs = {name: [pair for pair in zip(*map(_words, sides), strict=True) if any(pair)]
             for name, sides in texts.items()}  # fmt: skip
    all_pairs = {pair for text_pairs in pairs.values() for pair in text_pairs}
    sides = (chain.from_iterable(map(_words, line_blocks(path))) for path in bitext)
    matches = all_pairs.intersection(zip(*sides, strict=False))
    counts = {name: (sum(pair in matches for pair in of_text), len(of_text)) for name, of_text in pairs.items()}
    return {name: (shared, total) for name, (shared, total) in counts.items() if shared}


def _words(text: bytes) -> list[bytes]:
    return [single_spaced(line) for line in split_lines(text)]


_Progress = Callable[[int, int], None]


def read_parallel_texts(source: str, target: str, progress: _Progress = lambda position, texts: None) -> TextPairs:
    """Read both sides of a bitext, without Moses' escapes.

    Args:
        source, target: files, compressed or not; `-` for standard input.
        progress: called with the numbers of bytes and lines read so far, for each side.

    Raises:
        DataError: a file cannot be read or is empty, a line is empty, or one file has more lines than the other.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    (sources, source_symbols), (targets, target_symbols) = (
        read_texts(path, progress, as_written=True) for path in (source, target)
    )
    check_line_counts(display_name(source), len(sources), display_name(target), len(targets))
    escaped = any(has_escapes(word) for word in target_symbols.words)
    sides = unescaped_words(sources, source_symbols.words), unescaped_words(targets, target_symbols.words)
    return TextPairs(sides[0][0], sides[1][0], sides[0][1], sides[1][1], escaped)


def read_own_texts(path: str, progress: _Progress = lambda position, texts: None) -> TextPairs:
    """Read a text as both sides of a bitext, without Moses' escapes.

    Raises:
        DataError: the file cannot be read or is empty, or a line is empty.
    """
    texts, symbols = read_texts(path, progress, as_written=True)
    side, words = unescaped_words(texts, symbols.words)
    return TextPairs(side, side, words, words, any(has_escapes(word) for word in symbols.words))


def read_phrase_texts(
    path: str, max_length: int, min_count: float, progress: _Progress = lambda position, pairs: None
) -> TextPairs:
    """Read the distinct phrase pairs of a file, see `read_training_pairs`."""
    escaped = False

    def look_for_escapes(text: ByteArray) -> None:
        nonlocal escaped
        escaped = escaped or has_escapes(text.tobytes())

    with Input(path) as file:
        pairs = read_training_pairs(
            file, max_length=max_length, min_count=min_count, progress=progress, seen=look_for_escapes
        )
    words = pairs.source_vocabulary.words, pairs.target_vocabulary.words
    return TextPairs(pairs.sources, pairs.targets, *words, escaped)


def read_line_pairs(
    source: str, target: str, progress: _Progress = lambda position, lines: None
) -> tuple[list[str], list[str]]:
    """Read both sides of a bitext as lines, see `read_line_texts`.

    Raises:
        DataError: a file cannot be read or is empty, a line is empty, or one file has more lines than the other.
        PhraseToolError: both are one file, or standard input.
    """
    check_two_sides(source, target)
    sources, targets = read_line_texts(source, progress), read_line_texts(target, progress)
    check_line_counts(display_name(source), len(sources), display_name(target), len(targets))
    return sources, targets
