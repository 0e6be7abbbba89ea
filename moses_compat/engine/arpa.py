"""Reading and writing of language models as ARPA text, compressed or not.

A file has `\\data\\`, a line `ngram n=COUNT` per order, then a section `\\n-grams:` per order with lines
`log10-probability words [log10-backoff]`, then `\\end\\`.  Spaces are accepted in place of tabs, also after the
probability of a 1-gram, where kenlm expects a tab.  As in kenlm, a missing `<unk>` has the log10 probability -100
(lm/model.cc and lm/read_arpa.cc of kenlm).

Contexts that a pruned model lacks are added, as kenlm adds them.  SRILM may prune the 2-gram `b c` and keep the 3-grams
`a b c` and `b c d`.  When kenlm reads `a b c`, it adds `b c` with the probability that back-off gives it and a back-off
of 0 (lm/search_hashed.cc, `FindLower` and `AdjustLower`), so that `b c d` has a context.  A context that no earlier
n-gram ends with remains an error, because the file may be damaged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moses_compat.engine.kenlm_files import MAGIC
from moses_compat.files.streams import Input, Output
from moses_compat.lines.numbers import OK, check_number, read_number, write_digits, write_integer
from phrasetool.errors import DataError
from phrasetool.kernels.bytes import CR, LF, MINUS, POINT, SPACE, TAB, copy_bytes, is_blank, skip_blanks, token_end
from phrasetool.kernels.hashing import find_hashed_bytes, fnv_bytes
from phrasetool.kernels.jit import borrowing_kernel, exact_kernel
from phrasetool.phrases import ByteArray, FloatArray, Int32Array, Int64Array, Phrases, prefix_sums
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import PhraseIndex, find_phrases, index_phrases
from phrasetool.smt.language_model.automaton import LanguageModel, NgramError
from phrasetool.smt.language_model.kneser_ney import DiskModel, DiskNgramTable
from phrasetool.smt.language_model.ngrams import (
    BEGIN_WORD,
    END_WORD,
    UNKNOWN_LOG_PROBABILITY,
    UNKNOWN_WORD,
    BackoffModel,
    NgramTable,
)

_BACKSLASH = np.uint8(92)
# Errors of a line; OK means none.
SHORT, LONG, PROBABILITY, BACKOFF, POSITIVE, HIGHEST = range(1, 7)


class Known(NamedTuple):
    """The 1-grams of a model.

    Attributes:
        text, offsets, slots: of `Symbols.tables`.
        kept: bool, for each 1-gram; n-grams with a word that is not kept are skipped.  Empty if all n-grams are kept.
    """

    text: ByteArray
    offsets: Int64Array
    slots: Int32Array
    kept: npt.NDArray[np.bool_]


ALL = Known(np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_))


@borrowing_kernel
def _has_dropped_word(text: ByteArray, i: int, end: int, order: int, known: Known) -> bool:
    """Whether one of the next `order` tokens of text[i:end] is a word that is not kept."""
    for _ in range(order):
        first = skip_blanks(text, i, end)
        i = token_end(text, first, end)
        if i == first:
            break
        word = known.slots[
            find_hashed_bytes(text, first, i, fnv_bytes(text, first, i), known.text, known.offsets, known.slots)
        ]
        if word >= 0 and not known.kept[word]:
            return True
    return False


@exact_kernel
def scan_section(
    text: ByteArray,
    start: int,
    order: int,
    highest: bool,
    known: Known,
    starts: Int64Array,
    ends: Int64Array,
    scores: FloatArray,
    backoffs: FloatArray,
) -> tuple[int, int, int, int]:
    """Scan the lines of a section up to one that begins with a backslash, or the end; kenlm skips empty lines.

    The kernel writes the byte offsets at which the words of kept n-gram i begin and end to starts[i] and ends[i], and
    its numbers to scores[i] and backoffs[i].

    Returns:
        The number of n-grams that were kept, the number that were read (at most len(starts)), the offset after the last
        of them, and OK or the error at this offset.
    """
    count = scanned = 0
    line = start
    while line < len(text) and scanned < len(starts):
        end = line
        while end < len(text) and text[end] != LF:
            end += 1
        following = min(end + 1, len(text))
        if end > line and text[end - 1] == CR:
            end -= 1
        while end > line and is_blank(text[end - 1]):
            end -= 1
        i = skip_blanks(text, line, end)
        if i == end:
            line = following
            continue
        if text[i] == _BACKSLASH:
            break
        scanned += 1
        if len(known.kept) > 0 and _has_dropped_word(text, token_end(text, i, end), end, order, known):
            line = following
            continue
        begin = i
        i = token_end(text, i, end)
        if check_number(text, begin, i) != OK:
            return count, scanned, line, PROBABILITY
        score = read_number(text, begin, i)
        if score > 0:
            return count, scanned, line, POSITIVE
        for k in range(order):
            i = skip_blanks(text, i, end)
            if i == end:
                return count, scanned, line, SHORT
            if k == 0:
                starts[count] = i
            i = token_end(text, i, end)
        ends[count] = i
        scores[count] = score
        backoffs[count] = 0.0
        if i < end:
            begin = skip_blanks(text, i, end)
            i = token_end(text, begin, end)
            if i < end:
                return count, scanned, line, LONG
            if check_number(text, begin, i) != OK:
                return count, scanned, line, BACKOFF
            backoffs[count] = read_number(text, begin, i)
            if highest and backoffs[count] != 0.0:
                return count, scanned, line, HIGHEST
        count += 1
        line = following
    return count, scanned, line, OK


def with_implied_contexts(tables: Sequence[NgramTable]) -> list[NgramTable]:
    """Return the tables of a back-off model with all contexts that kenlm adds.

    Args:
        tables: as in `BackoffModel`, each in the order of the file.

    Raises:
        NgramError: an n-gram lacks its context, and neither it nor an earlier n-gram ends with this context.
    """
    completed = list(tables)
    # From long n-grams to short ones, because added n-grams also need contexts.
    for order in range(len(completed), 2, -1):
        table, shorter = completed[order - 1], completed[order - 2]
        contexts = _phrases(table.words[:, :-1])
        index = _index(shorter.words)
        rows = np.flatnonzero(find_phrases(index, contexts) < 0)
        if not len(rows):
            continue
        _check_implied(table.words[: len(tables[order - 1])], rows[rows < len(tables[order - 1])], order)
        missing = np.unique(table.words[rows, :-1], axis=0).astype(np.int32)
        zeros = np.zeros(len(missing), np.float32)
        # Probabilities are computed below, when all shorter n-grams exist.
        completed[order - 2] = NgramTable(
            np.concatenate([shorter.words, missing]), np.concatenate([shorter.log_probabilities, zeros]),
            np.concatenate([shorter.backoffs, zeros]),
        )  # fmt: skip
    for order in range(2, len(completed)):
        if len(completed[order - 1]) > len(tables[order - 1]):
            _score_added(completed, order, len(tables[order - 1]))
    return completed


def _phrases(words: Int32Array) -> Phrases:
    return Phrases(np.arange(len(words) + 1) * words.shape[1], np.ascontiguousarray(words, np.int32).reshape(-1))


def _index(words: Int32Array) -> PhraseIndex:
    return index_phrases(_phrases(words))[0]


def _check_implied(words: Int32Array, rows: Int64Array, order: int) -> None:
    """Raise NgramError for the first of these rows whose context ends no n-gram up to this row."""
    endings, first_rows = np.unique(words[:, 1:], axis=0, return_index=True)
    ending_rows = find_phrases(_index(endings), _phrases(words[rows, :-1]))
    late = (ending_rows < 0) | (first_rows[ending_rows] > rows)
    if late.any():
        message = f"the first {order - 1} words of this {order}-gram are not listed as a {order - 1}-gram"
        raise NgramError(order, int(rows[late][0]), message, lacks_context=True)


def _score_added(tables: list[NgramTable], order: int, first: int) -> None:
    """Set the back-off probabilities of the n-grams of an order from row `first` on, in single precision as kenlm."""
    table = tables[order - 1]
    indexes = [_index(shorter.words) for shorter in tables[: order - 1]]

    def row(words: Int32Array) -> int:
        return int(find_phrases(indexes[len(words) - 1], _phrases(words[None]))[0])

    for added in range(first, len(table)):
        words = table.words[added]
        # The longest suffix that is an n-gram; a single word always is one.
        start = next(start for start in range(1, order) if row(words[start:]) >= 0)
        score = np.float32(tables[order - start - 1].log_probabilities[row(words[start:])])
        for begin in range(start - 1, -1, -1):
            context = row(words[begin:-1])
            if context >= 0:
                score = np.float32(score + tables[order - begin - 2].backoffs[context])
        table.log_probabilities[added] = score


# The longest number: a sign, three digits, a point, nine decimals.
_DECIMALS = 9
_WIDTH = 5 + _DECIMALS
_BLOCK_ROWS = 1 << 17
# kenlm reads this as `<unk>`, too (lm/vocab.cc).
_OTHER_UNKNOWN_WORD = b"<UNK>"
_COUNT = re.compile(rb"ngram[ \t]+(\d+)[ \t]*=[ \t]*(\d+)")

_COMPLAINTS = {
    SHORT: "fewer words than a {n}-gram has",
    LONG: "more fields than a {n}-gram has",
    PROBABILITY: "the log10 probability is not a number",
    BACKOFF: "the log10 back-off is not a number",
    POSITIVE: "the log10 probability is above 0",
    HIGHEST: "a back-off in the highest order must be 0",
}


class _Section(NamedTuple):
    """The N n-grams of one order: byte offsets at which the words of each begin and end, and its float32 numbers."""

    starts: Int64Array
    ends: Int64Array
    scores: FloatArray
    backoffs: FloatArray


class _Reader:
    """Sequential reader of the lines of an ARPA file."""

    def __init__(self, source: Input) -> None:
        self.name = source.name
        self.data = source.read_all()
        self.text = np.frombuffer(self.data, np.uint8)
        self.at = 0

    def fault(self, message: str, at: int) -> DataError:
        """Return an error for the line that contains byte `at`."""
        return DataError(self.name, message, self.data.count(b"\n", 0, at) + 1)

    def line(self) -> bytes:
        """Consume and return the next non-empty line, without its line end; b"" at the end of the file."""
        while self.at < len(self.data):
            end = self.data.find(b"\n", self.at)
            end = len(self.data) if end < 0 else end
            line = self.data[self.at : end].strip(b" \t\r")
            self.start, self.at = self.at, min(end + 1, len(self.data))
            if line:
                return line
        self.start = len(self.data)
        return b""

    def counts(self) -> list[int]:
        """Read the header and return the number of n-grams of each order."""
        if self.data.startswith(MAGIC):
            raise DataError(self.name, "this is a binary file of kenlm; expected the ARPA text that it was made from")
        while (line := self.line()).startswith(b"#"):
            pass
        if line == b"iARPA" or line.startswith(b"blmt"):
            message = "this is IRSTLM's own format, which kenlm does not read either; make ARPA text of it with "
            raise self.fault(message + "IRSTLM's compile-lm and its option text", self.start)
        if line != b"\\data\\":
            raise self.fault("not an ARPA file: expected \\data\\", self.start)
        counts: list[int] = []
        while (line := self.line()).startswith(b"ngram"):
            match = _COUNT.fullmatch(line)
            if not match or int(match[1]) != len(counts) + 1:
                raise self.fault(f"expected `ngram {len(counts) + 1}=COUNT`", self.start)
            # A line has 4 bytes or more; a larger count is a damaged file and not a reason to allocate memory.
            counts.append(int(match[2]))
            if counts[-1] > len(self.data):
                ngrams = f"{counts[-1]:,} {len(counts)}-grams"
                raise self.fault(f"{ngrams} cannot be in a file of {len(self.data):,} bytes", self.start)
        if not counts:
            raise self.fault("expected `ngram 1=COUNT`", self.start)
        self.at = self.start
        return counts

    def section(self, order: int, count: int, highest: bool, known: Known = ALL) -> _Section:
        """Read the n-grams of an order; given `known`, only those whose words are all kept."""
        if self.line() != rb"\%d-grams:" % order:
            raise self.fault(rf"expected \{order}-grams: (is the file truncated?)", self.start)
        offsets, numbers = np.empty((2, count), np.int64), np.empty((2, count), np.float32)
        section = _Section(offsets[0], offsets[1], numbers[0], numbers[1])
        read, scanned, self.at, wrong = scan_section(self.text, self.at, order, highest, known, *section)
        if wrong != OK:
            raise self.fault(_COMPLAINTS[wrong].format(n=order), self.at)
        if scanned < count:
            raise self.fault(
                f"expected {count:,} {order}-grams as in \\data\\, found {scanned:,} (is the file truncated?)",
                self.at,
            )
        return _Section(section.starts[:read], section.ends[:read], section.scores[:read], section.backoffs[:read])

    def finish(self) -> None:
        """Read the end."""
        if self.line() != b"\\end\\":
            raise self.fault("expected \\end\\ (is the file truncated?)", self.start)


def _read_words(reader: _Reader, section: _Section) -> tuple[Symbols, NgramTable]:
    """Return the words and the 1-grams.

    Word 0 is `<unk>`, which kenlm also reads `<UNK>` as: the last line of either has its numbers.
    """
    symbols = Symbols([UNKNOWN_WORD])
    ids = symbols.read_fields(reader.text, section.starts, section.ends).words
    _, first = np.unique(ids, return_index=True)
    if len(first) < len(ids):
        row = np.setdiff1d(np.arange(len(ids)), first)[0]
        word = symbols.join([ids[row]]).decode(errors="replace")
        raise reader.fault(f"the word {word} occurs twice", int(section.starts[row]))
    scores = np.full(len(symbols), UNKNOWN_LOG_PROBABILITY, np.float32)
    backoffs = np.zeros(len(symbols), np.float32)
    # `ids` has no duplicates other than 0 now; numpy keeps the last of them.
    ids = np.where(ids == symbols.id(_OTHER_UNKNOWN_WORD), 0, ids)
    scores[ids], backoffs[ids] = section.scores, section.backoffs
    return symbols, NgramTable(np.arange(len(symbols), dtype=np.int32)[:, None], scores, backoffs)


def _read(reader: _Reader, vocabulary: Collection[bytes] | None) -> tuple[BackoffModel, list[Int64Array]]:
    """Return the model, and the byte offsets of the n-grams of each order in the text."""
    counts = reader.counts()
    section = reader.section(1, counts[0], len(counts) == 1)
    ngram_offsets = [section.starts]
    symbols, table = _read_words(reader, section)
    words, tables, known = symbols.words, [table], ALL
    renumbered = np.arange(len(words), dtype=np.int32)
    other = symbols.id(_OTHER_UNKNOWN_WORD)
    if vocabulary is not None or other >= 0:
        kept_words = {UNKNOWN_WORD, BEGIN_WORD, END_WORD}.union(words if vocabulary is None else vocabulary)
        kept_words.discard(_OTHER_UNKNOWN_WORD)
        kept = np.array([i for i, word in enumerate(words) if word in kept_words])
        words = [words[i] for i in kept]
        renumbered = np.full(len(symbols), -2, np.int32)
        renumbered[kept] = np.arange(len(kept), dtype=np.int32)
        tables = [NgramTable(renumbered[kept, None], table.log_probabilities[kept], table.backoffs[kept])]
        if other >= 0:
            renumbered[other] = 0
        if vocabulary is not None:
            known = Known(*symbols.tables, renumbered >= 0)
    for n, count in enumerate(counts[1:], 2):
        section = reader.section(n, count, n == len(counts), known)
        # -1 stands for a word that is not a 1-gram.
        ids = symbols.read_fields(reader.text, section.starts, section.ends, add=False).words.reshape(-1, n)
        absent = np.flatnonzero(ids.min(axis=1, initial=0) < 0)
        if len(absent):
            raise reader.fault("a word of this n-gram is not among the 1-grams", int(section.starts[absent[0]]))
        tables.append(NgramTable(renumbered[ids], section.scores, section.backoffs))
        ngram_offsets.append(section.starts)
    reader.finish()
    return BackoffModel(words, tables), ngram_offsets


def read_arpa(source: Input) -> BackoffModel:
    """Read an ARPA file.

    Raises:
        DataError: the file is not ARPA text, is truncated, or has a line that is not an n-gram.
    """
    return _read(_Reader(source), None)[0]


def load_language_model(path: str, vocabulary: Collection[bytes] | None = None) -> LanguageModel:
    """Read an ARPA file for decoding.

    Args:
        path: the file, compressed or not.
        vocabulary: the only words that are loaded; all others become unknown.  By default all words are loaded.

    Raises:
        DataError: see `read_arpa`; or an n-gram lacks its context and kenlm does not add it (see
            `with_implied_contexts`), an n-gram occurs twice, or `<s>` or `</s>` is missing.  Lines with a word that is
            not in the vocabulary are not checked.
    """
    with Input(path) as source:
        reader = _Reader(source)
    model, ngram_offsets = _read(reader, vocabulary)
    try:
        try:
            return LanguageModel(model)
        except NgramError as error:
            if not error.lacks_context:
                raise
        # A line with a word that is not in the vocabulary may imply the context.
        reader.at = 0
        model, ngram_offsets = _read(reader, None)
        return LanguageModel(BackoffModel(model.words, with_implied_contexts(model.tables)))
    except NgramError as error:
        raise reader.fault(str(error), int(ngram_offsets[error.order - 1][error.row])) from error
    except ValueError as error:
        raise DataError(reader.name, str(error)) from error


def read_order(source: Input) -> int:
    """Return the order of the model in an ARPA file.

    Raises:
        DataError: the file is not ARPA text.
    """
    return len(_Reader(source).counts())


@exact_kernel
def _write_number(out: ByteArray, place: int, value: float) -> int:
    """Write a float32, |value| < 1000, with the fewest decimals, at most _DECIMALS, that read back as the same."""
    size = abs(np.float64(value))
    decimals = 0
    power = 1
    digits = np.int64(size + 0.5)
    while decimals < _DECIMALS and np.float32(digits / power) != np.float32(size):
        decimals += 1
        power *= 10
        digits = np.int64(size * power + 0.5)
    while decimals > 0 and digits % 10 == 0:
        decimals -= 1
        power //= 10
        digits //= 10
    if value < 0 and digits > 0:
        out[place] = MINUS
        place += 1
    place = write_integer(out, place, digits // power)
    if decimals > 0:
        out[place] = POINT
        write_digits(out, place + 1, digits, decimals)
        place += 1 + decimals
    return place


@exact_kernel
def _write_ngrams(
    words: Int32Array,
    scores: FloatArray,
    backoffs: FloatArray,
    with_backoffs: bool,
    text: ByteArray,
    offsets: Int64Array,
    out: ByteArray,
) -> int:
    position = 0
    for row in range(len(words)):
        position = _write_number(out, position, scores[row])
        for k in range(words.shape[1]):
            out[position] = SPACE if k else TAB
            position += 1
            position = copy_bytes(text, offsets[words[row, k]], offsets[words[row, k] + 1], out, position)
        if with_backoffs:
            out[position] = TAB
            position = _write_number(out, position + 1, backoffs[row])
        out[position] = LF
        position += 1
    return position


def _ngram_lines(table: NgramTable, with_backoffs: bool, text: ByteArray, offsets: Int64Array) -> bytes:
    words = np.ascontiguousarray(table.words, np.int32)
    size = int(np.diff(offsets)[words].sum()) + len(table) * (words.shape[1] + 2 * _WIDTH + 2)
    out = np.empty(size, np.uint8)
    scores = np.ascontiguousarray(table.log_probabilities, np.float32)
    backoffs = np.ascontiguousarray(table.backoffs, np.float32)
    return out[: _write_ngrams(words, scores, backoffs, with_backoffs, text, offsets, out)].tobytes()


def _flat(words: Sequence[bytes]) -> tuple[ByteArray, Int64Array]:
    return np.frombuffer(b"".join(words), np.uint8), prefix_sums([len(word) for word in words])


def write_arpa(model: BackoffModel | DiskModel, output: Output) -> None:
    """Write a model as ARPA text, compressed according to the output's name.

    Numbers have the fewest decimals that read back as the same float32, at most nine.

    Raises:
        ValueError: a number is not finite or is 1000 or more in size.
        PhraseToolError: see `Output.write`.
    """
    tables: Sequence[NgramTable | DiskNgramTable] = model.tables
    counts = "".join(f"ngram {n}={len(table)}\n" for n, table in enumerate(tables, 1))
    output.write_text(f"\\data\\\n{counts}".encode())
    text, offsets = _flat(model.words)
    for n, table in enumerate(tables, 1):
        output.write_text(f"\n\\{n}-grams:\n".encode())
        for first in range(0, len(table), _BLOCK_ROWS):
            block = table.part(first, first + _BLOCK_ROWS)
            for values in (block.log_probabilities, block.backoffs):
                if not (np.abs(values) < 1000).all():
                    raise ValueError("a log10 probability or back-off is not finite or is 1000 or more in size")
            output.write_text(_ngram_lines(block, n < model.order, text, offsets))
    output.write_text(b"\n\\end\\\n")
