"""Translations as Moses prints them, and n-best lists: `id ||| words ||| features ||| total [||| more fields]`.

Settings of a moses.ini add marks around unknown words and the word alignment to printed translations.  In a list, every
word is followed by a space, so that two spaces precede the bars; features are `Name= values`, six significant digits;
the segmentation lists `source=target` spans, inclusive, in target order; the alignment lists `source-target` words.

A list that is read may have further fields after the total, which are kept.  All lines of a list name the same
features, each with the same number of values.  Sparse features are the exception: Moses names them `Feature_key=`, they
have one value, and lines on which they are 0 omit them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moses_compat.files.streams import Input
from moses_compat.ini.moses_ini import MosesIni, boolean
from moses_compat.lines.fields import BARS, check_listed, is_number
from phrasetool.errors import DataError
from phrasetool.phrases import DoubleArray, Int64Array, Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.translator import Translation, Translator
from phrasetool.text_splitting import split_words

_ID = re.compile(rb" *\d{1,9} ")
_EXPECTED = "expected `id ||| words ||| Name= values ... ||| total`"

# Maximum number of values of sparse features, zeros included, that are held in memory: 2 GiB.
_MOST_SPARSE = 1 << 28

# Names of features and their numbers of values, in the order of the lines.
FeatureNames = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Printing:
    """Format of printed translations; see moses/Manager.cpp (`OutputSurface`).

    Attributes:
        prefix, suffix: written around each word that was copied because no entry translates it; empty for no marks.
        aligned: whether the word alignment follows a translation.
    """

    prefix: bytes = b""
    suffix: bytes = b""
    aligned: bool = False

    @classmethod
    def of(cls, ini: MosesIni) -> Printing:
        """Read `[mark-unknown]`, `[unknown-word-prefix]`, `[unknown-word-suffix]` and `[print-alignment-info]`.

        Raises:
            DataError: a value is not a truth value.
        """
        aligned = _switch(ini, "print-alignment-info")
        if not _switch(ini, "mark-unknown"):
            return cls(aligned=aligned)
        prefix, suffix = (
            (ini.sections.get(section) or [default])[0].encode("utf-8", "surrogateescape")
            for section, default in (("unknown-word-prefix", "UNK"), ("unknown-word-suffix", ""))
        )
        return cls(prefix, suffix, aligned)

    def words(self, translator: Translator, translation: Translation, derivation: int = 0) -> bytes:
        """Return the words of a derivation, with marks, separated by single spaces."""
        if not self.prefix and not self.suffix:
            return translator.text(translation, derivation)
        table, steps = translator.table, translation.steps
        first, last = steps.offsets[derivation : derivation + 2]
        words = []
        for entry in steps.entries[first:last].tolist():
            text = table.target_symbols.join(table.targets[entry])
            words.append(self.prefix + text + self.suffix if table.copies[entry] else text)
        return b" ".join(text for text in words if text)

    def line(self, translator: Translator, translation: Translation) -> bytes:
        """Return the line of the best derivation, with its line feed."""
        words = self.words(translator, translation)
        if not self.aligned:
            return words + b"\n"
        return (words + b" " if words else b"") + b"||| " + word_alignment(translator, translation, 0).encode() + b"\n"


PLAIN = Printing()


def phrases_of(
    translator: Translator, translation: Translation, derivation: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the phrases of a derivation, in target order: entry, first and last source word, first target word."""
    steps, at = translation.steps, 0
    for p in range(steps.offsets[derivation], steps.offsets[derivation + 1]):
        yield steps.entries[p], steps.starts[p], steps.ends[p], at
        at += len(translator.table.targets[steps.entries[p]])


def word_alignment(translator: Translator, translation: Translation, derivation: int) -> str:
    """Return the word alignment of a derivation, such as `0-0 1-2`, sorted by phrase, then by source word."""
    return " ".join(
        f"{start + (a >> 8)}-{at + (a & 255)}"
        for entry, start, _, at in phrases_of(translator, translation, derivation)
        # Moses keeps the points of a phrase as a set.
        for a in np.unique(translator.table.alignments[entry]).tolist()
    )


def _switch(ini: MosesIni, section: str) -> bool:
    if not (values := ini.values(section)):
        return False
    value, line = values[0]
    if (switched := boolean(value)) is None:
        raise ini.error(f"[{section}]: expected true or false, found {value!r}", line)
    return switched


def _span(start: int, end: int) -> str:
    # The span of an empty target ends before its start; Moses prints its start alone.
    return f"{start}-{end}" if start < end else f"{start}"


def segmentation(translator: Translator, translation: Translation, derivation: int) -> str:
    """Return the source and target spans of the phrases, such as `0=0 1-2=1`, in target order."""
    return " ".join(
        f"{_span(start, end)}={_span(at, at + len(translator.table.targets[entry]) - 1)}"
        for entry, start, end, at in phrases_of(translator, translation, derivation)
    )


def _field(text: str) -> str:
    """Return a field with bars; Moses prints a space before each item, none for a field without items."""
    return f" ||| {text}" if text else " |||"


def n_best_lines(
    translator: Translator,
    number: int,
    translation: Translation,
    listed: Sequence[str],
    segmented: bool = False,
    aligned: bool = False,
    printing: Printing = PLAIN,
) -> bytes:
    """Return the lines of one sentence.

    Args:
        translator: the translator that made the translation.
        number: the number of the sentence, from 0.
        translation: the derivations of the sentence.
        listed: the feature functions to name, by their names in `FeatureSet`.
        segmented, aligned: whether to append these fields.
        printing: format of the words.
    """
    features = translator.features
    lines = []
    for d in range(len(translation)):
        values = translation.features[d]
        # Adding 0 turns -0 into 0, as Moses prints it.
        numbers = {f: " ".join(format(value + 0.0, ".6g") for value in values[features.slices[f]]) for f in listed}
        named = " ".join(f"{features.name(f)}= {numbers[f]}" for f in listed)
        tail = ""
        if segmented:
            tail += _field(segmentation(translator, translation, d))
        if aligned:
            tail += _field(word_alignment(translator, translation, d)) + " "
        text, total = printing.words(translator, translation, d), translation.steps.scores[d]
        lines.append(n_best_line(number, text, named, total, tail))
    return b"".join(lines)


def n_best_line(number: int, text: bytes, named: str, total: float, tail: str = "") -> bytes:
    """Return one line of a list.

    Args:
        number: the number of the sentence, from 0.
        text: the translation, words separated by spaces.
        named: the features, `Name= values`.
        total: the score by which the list is sorted.
        tail: further fields, each preceded by bars.

    Raises:
        PhraseToolError: the translation contains bars.
    """
    check_listed(number, text)
    fields = f" ||| {named} ||| {total:.6g}{tail}\n"
    return b"%d ||| %s%s" % (number, text + b" " if text else b"", fields.encode())


@dataclass(frozen=True)
class NBestList:
    """N hypotheses of some sentences.

    Attributes:
        name: name of the file, for messages.
        lines: the lines of the file, each with its line feed.
        sentences: the sentence number of each line, int64, shape (N,), ascending.
        words: the words of each line, in ids of the symbols.
        symbols: the words, as written.
        names: names of the features, the sparse ones last.
        features: values of all features, float64, shape (N, F).
        totals: total scores of the lines, float64, shape (N,).
        sparse: number of sparse features among the names.
    """

    name: str
    lines: list[bytes]
    sentences: Int64Array
    words: Phrases
    symbols: Symbols
    names: FeatureNames
    features: DoubleArray
    totals: DoubleArray
    sparse: int = 0

    @property
    def dense(self) -> tuple[int, int]:
        """The number of features that are not sparse, and the number of their values."""
        return len(self.names) - self.sparse, self.features.shape[1] - self.sparse

    @property
    def sparse_names(self) -> list[str]:
        """The names of its sparse features."""
        return [name for name, _ in self.names[self.dense[0] :]]

    def with_sparse(self, sparse: Sequence[str]) -> NBestList:
        """Return the list with exactly these sparse features; those that it lacks are 0."""
        dense, width = self.dense
        columns = {name: width + i for i, name in enumerate(self.sparse_names)}
        features = np.zeros((len(self), width + len(sparse)))
        features[:, :width] = self.features[:, :width]
        for i, name in enumerate(sparse, width):
            if name in columns:
                features[:, i] = self.features[:, columns[name]]
        names = (*self.names[:dense], *((name, 1) for name in sparse))
        return replace(self, names=names, features=features, sparse=len(sparse))

    @classmethod
    def of_text(cls, name: str, text: bytes) -> NBestList:
        """Return a list with one hypothesis per sentence, the lines of a text, and no features."""
        symbols = Symbols()
        words = symbols.read_lines(text)
        count = len(words)
        lines = [line + b"\n" for line in text.split(b"\n")[:-1]]
        return cls(name, lines, np.arange(count), words, symbols, (), np.zeros((count, 0)), np.zeros(count))

    def __len__(self) -> int:
        return len(self.lines)

    def text(self, line: int) -> bytes:
        """Return the words of a hypothesis, separated by single spaces."""
        return self.symbols.join(self.words[line])


def read_n_best(path: str) -> NBestList:
    """Read a list.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: the list cannot be read, is empty, or has a malformed line, a line with other features than the
            first, or a line of an earlier sentence than the line before; the error has the number of that line.
    """
    with Input(path) as file:
        lines = [line + b"\n" for line in file.read_all().split(b"\n")]
        name = file.name
    if lines[-1] == b"\n":
        lines.pop()
    if not lines:
        raise DataError(name, "the list has no hypotheses")
    sentences = np.empty(len(lines), np.int64)
    texts: list[bytes] = []
    values: list[bytes] = []
    totals: list[bytes] = []
    heads: list[bytes] | None = None
    names: FeatureNames = ()
    sparse = _SparseValues(name)
    for i, line in enumerate(lines):
        fields = line.split(BARS)
        if len(fields) < 4 or not _ID.fullmatch(fields[0]):
            raise DataError(name, f"not a line of an n-best list; {_EXPECTED}", i + 1)
        sentences[i] = int(fields[0])
        if i and sentences[i] < sentences[i - 1]:
            message = f"sentence {sentences[i]} after sentence {sentences[i - 1]}; expected a sorted list"
            raise DataError(name, message, i + 1)
        tokens = split_words(fields[2])
        if b"_" in fields[2]:
            tokens = sparse.extract_sparse(tokens, i)
        line_heads = [token if token.endswith(b"=") else b"" for token in tokens]
        if heads is None:
            heads, names = line_heads, _names(name, tokens, 1, sparse.columns)
        elif line_heads != heads:
            raise DataError(name, _difference(names, _names(name, tokens, i + 1, sparse.columns)), i + 1)
        values.extend(token for token, head in zip(tokens, heads, strict=True) if not head)
        texts.append(fields[1])
        totals.append(fields[3])
    width = sum(count for _, count in names)
    features = _numbers(name, values, width, "feature value").reshape(len(lines), width)
    symbols = Symbols()
    words = symbols.read_lines(b"\n".join(texts) + b"\n")
    totalled = _numbers(name, totals, 1, "total")
    if sparse.columns:
        names = (*names, *((column.decode("utf-8", "replace"), 1) for column in sparse.columns))
        features = np.concatenate([features, sparse.matrix(len(lines))], axis=1)
    return NBestList(name, lines, sentences, words, symbols, names, features, totalled, len(sparse.columns))


class _SparseValues:
    """The sparse features of the lines of a list: `Feature_key=` with one value."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.columns: dict[bytes, int] = {}
        self._places: list[tuple[int, int]] = []
        self._values: list[bytes] = []

    def extract_sparse(self, tokens: list[bytes], line: int) -> list[bytes]:
        """Collect the sparse features from the tokens of a line, and return the other tokens.

        Raises:
            DataError: a feature occurs twice.
        """
        others: list[bytes] = []
        names = set()
        i = 0
        while i < len(tokens):
            token = tokens[i]
            has_one_value = i + 2 >= len(tokens) or tokens[i + 2].endswith(b"=")
            if not (token.endswith(b"=") and b"_" in token and has_one_value and i + 1 < len(tokens)):
                others.append(token)
                i += 1
                continue
            if token in names:
                shown = token[:-1].decode("utf-8", "replace")
                raise DataError(self._file, f"the feature {shown} occurs twice; {_EXPECTED}", line + 1)
            names.add(token)
            self._places.append((line, self.columns.setdefault(token[:-1], len(self.columns))))
            self._values.append(tokens[i + 1])
            i += 2
        return others

    def matrix(self, lines: int) -> DoubleArray:
        """Return all values, float64, shape (N, S); 0 where a line omits a feature.

        Raises:
            DataError: a value is not a finite number, or there are too many values.
        """
        if lines * len(self.columns) > _MOST_SPARSE:
            message = f"{len(self.columns):,} sparse features of {lines:,} lines are too many to tune one by one"
            raise DataError(self._file, message)
        rows, columns = np.array(self._places).T
        matrix = np.zeros((lines, len(self.columns)))
        matrix[rows, columns] = _numbers(self._file, self._values, 1, "feature value", rows)
        return matrix


def _names(file: str, tokens: list[bytes], line: int, sparse: Mapping[bytes, int]) -> FeatureNames:
    """Return the features of a line, except sparse ones.

    Raises:
        DataError: the line has no features, a feature occurs twice, or a value has no name.
    """
    counts: list[tuple[str, int]] = []
    for token in tokens:
        if token.endswith(b"="):
            counts.append((token[:-1].decode("utf-8", "replace"), 0))
        elif not counts:
            raise DataError(file, f"a value without the name of a feature; {_EXPECTED}", line)
        else:
            counts[-1] = counts[-1][0], counts[-1][1] + 1
    if not (counts or sparse) or len({name for name, _ in counts}) < len(counts):
        raise DataError(file, f"no features, or a feature that occurs twice; {_EXPECTED}", line)
    return tuple(counts)


def _difference(expected: FeatureNames, names: FeatureNames) -> str:
    return f"has the features {described(names)}, but the lines before have {described(expected)}"


def described(names: FeatureNames) -> str:
    """Return features and their numbers of values, for messages."""
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in names)


def _numbers(file: str, tokens: list[bytes], width: int, kind: str, rows: Int64Array | None = None) -> DoubleArray:
    """Return values as float64 numbers; `rows` has the line of each, from 0; by default each line has `width` values.

    Raises:
        DataError: a value is not a finite number.
    """
    try:
        numbers = np.array(tokens, np.bytes_).astype(np.float64) if tokens else np.zeros(0)
        if np.isfinite(numbers).all():
            return numbers
        index = int(np.argmin(np.isfinite(numbers)))
    except ValueError:
        index = next(i for i, token in enumerate(tokens) if not is_number(token))
    row = index // width if rows is None else int(rows[index])
    token = tokens[index].strip(b" \t\r\n").decode("utf-8", "replace")
    raise DataError(file, f"the {kind} {token!r} is not a finite number", row + 1)


def with_features(line: bytes, appended: bytes, total: bytes | None = None) -> bytes:
    """Return a line with further features.

    Args:
        line: a line of a list.
        appended: `Name= values`, without spaces around it; may be empty.
        total: replaces the total score; None keeps it.
    """
    fields = line.split(BARS)
    if appended:
        fields[2] = fields[2].rstrip(b" ") + b" " + appended + b" "
    if total is not None:
        fields[3] = b" " + total + (b" " if len(fields) > 4 else b"\n")
    return BARS.join(fields)
