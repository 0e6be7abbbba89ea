"""Translations as Moses prints them, and n-best lists: `id ||| words ||| features ||| total [||| more fields]`.

Translations are printed with marks around unknown words and with the word alignment, as a moses.ini asks.  In a list,
every word is followed by a space, so two stand before the bars; features are `Name= values`, six significant digits;
the segmentation lists `source=target` spans, inclusive, in target order; the alignment lists `source-target` words.

A list that is read may have more fields after the total, which are left alone.  All lines of a list name the same
features, each with as many values; but sparse ones, which Moses names `Feature_key=` and which have one value, stand
only on lines where they are not 0.
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

# Values of sparse features, with those that are 0, that are held in memory: 2 GiB.
_MOST_SPARSE = 1 << 28

# Names of features and how many values each has, in the order of the lines.
FeatureNames = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Printing:
    """How to print translations; see moses/Manager.cpp (`OutputSurface`).

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
        """The words of a derivation, with marks, single spaces between them."""
        if not self.prefix and not self.suffix:
            return translator.text(translation, derivation)
        table, steps = translator.table, translation.steps
        first, last = steps.offsets[derivation : derivation + 2]
        found = []
        for entry in steps.entries[first:last].tolist():
            text = table.target_symbols.join(table.targets[entry])
            found.append(self.prefix + text + self.suffix if table.copies[entry] else text)
        return b" ".join(text for text in found if text)

    def line(self, translator: Translator, translation: Translation) -> bytes:
        """The line of the best derivation, with its line feed."""
        words = self.words(translator, translation)
        if not self.aligned:
            return words + b"\n"
        return (words + b" " if words else b"") + b"||| " + word_alignment(translator, translation, 0).encode() + b"\n"


PLAIN = Printing()


def phrases_of(
    translator: Translator, translation: Translation, derivation: int
) -> Iterator[tuple[int, int, int, int]]:
    """The phrases of a derivation, in target order: entry, first and last source word, first target word."""
    steps, at = translation.steps, 0
    for p in range(steps.offsets[derivation], steps.offsets[derivation + 1]):
        yield steps.entries[p], steps.starts[p], steps.ends[p], at
        at += len(translator.table.targets[steps.entries[p]])


def word_alignment(translator: Translator, translation: Translation, derivation: int) -> str:
    """`0-0 1-2`: which source word gave which target word, by phrase, then in order of the source."""
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
    return f"{start}" if start == end else f"{start}-{end}"


def segmentation(translator: Translator, translation: Translation, derivation: int) -> str:
    """`0=0 1-2=1`: the source and target spans of the phrases, in target order."""
    return " ".join(
        f"{_span(start, end)}={_span(at, at + len(translator.table.targets[entry]) - 1)}"
        for entry, start, end, at in phrases_of(translator, translation, derivation)
    )


def n_best_lines(
    translator: Translator,
    number: int,
    translation: Translation,
    listed: Sequence[str],
    segmented: bool = False,
    aligned: bool = False,
    printing: Printing = PLAIN,
) -> bytes:
    """The lines of one sentence.

    Args:
        translator: that made the translation.
        number: of the sentence, from 0.
        translation: its derivations.
        listed: the feature functions to name, as `FeatureSet` knows them.
        segmented, aligned: whether to append these fields.
        printing: how words are printed.
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
            tail += f" ||| {segmentation(translator, translation, d)}"
        if aligned:
            tail += f" ||| {word_alignment(translator, translation, d)} "
        text, total = printing.words(translator, translation, d), translation.steps.scores[d]
        lines.append(n_best_line(number, text, named, total, tail))
    return b"".join(lines)


def n_best_line(number: int, text: bytes, named: str, total: float, tail: str = "") -> bytes:
    """One line of a list.

    Args:
        number: of the sentence, from 0.
        text: its translation, words between spaces.
        named: its features, `Name= values`.
        total: what the list is sorted by.
        tail: further fields, each after its bars.

    Raises:
        PhraseToolError: the translation holds bars.
    """
    check_listed(number, text)
    fields = f" ||| {named} ||| {total:.6g}{tail}\n"
    return b"%d ||| %s%s" % (number, text + b" " if text else b"", fields.encode())


@dataclass(frozen=True)
class NBestList:
    """N hypotheses of some sentences.

    Attributes:
        name: of the file, for messages.
        lines: as read, each with its line feed.
        sentences: of each line, int64, shape (N,), ascending.
        words: of each line, in ids of the symbols.
        symbols: the words, as written.
        names: of the features, the sparse ones last.
        features: float64, shape (N, F), F being all values of all features.
        totals: the scores that the list is said to be sorted by, float64, shape (N,).
        sparse: how many of the names are of sparse features.
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
        """How many features are not sparse, and how many values they have."""
        return len(self.names) - self.sparse, self.features.shape[1] - self.sparse

    @property
    def sparse_names(self) -> list[str]:
        """The names of its sparse features."""
        return [name for name, _ in self.names[self.dense[0] :]]

    def with_sparse(self, wanted: Sequence[str]) -> NBestList:
        """The list with these sparse features, 0 where it does not have them, and no others."""
        dense, width = self.dense
        columns = {name: width + i for i, name in enumerate(self.sparse_names)}
        features = np.zeros((len(self), width + len(wanted)))
        features[:, :width] = self.features[:, :width]
        for i, name in enumerate(wanted, width):
            if name in columns:
                features[:, i] = self.features[:, columns[name]]
        names = (*self.names[:dense], *((name, 1) for name in wanted))
        return replace(self, names=names, features=features, sparse=len(wanted))

    @classmethod
    def of_text(cls, name: str, text: bytes) -> NBestList:
        """A list with one hypothesis a sentence and no features: the lines of a text."""
        symbols = Symbols()
        words = symbols.read_lines(text)
        count = len(words)
        lines = [line + b"\n" for line in text.split(b"\n")[:-1]]
        return cls(name, lines, np.arange(count), words, symbols, (), np.zeros((count, 0)), np.zeros(count))

    def __len__(self) -> int:
        return len(self.lines)

    def text(self, line: int) -> bytes:
        """The words of a hypothesis, with one space between."""
        return self.symbols.join(self.words[line])


def read_n_best(path: str) -> NBestList:
    """Read a list.

    Args:
        path: the file, compressed or not; `-` for standard input.

    Raises:
        DataError: it cannot be read, is empty, or has a line that is none of a list, that names other features than
            the first line, or that goes back to an earlier sentence; with its number.
    """
    with Input(path) as file:
        lines = [line + b"\n" for line in file.read_all().split(b"\n")]
        name = file.name
    if lines[-1] == b"\n":
        lines.pop()
    if not lines:
        raise DataError(name, "there is no hypothesis in it")
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
            tokens = sparse.taken_from(tokens, i)
        found = [token if token.endswith(b"=") else b"" for token in tokens]
        if heads is None:
            heads, names = found, _names(name, tokens, 1, sparse.columns)
        elif found != heads:
            raise DataError(name, _difference(names, _names(name, tokens, i + 1, sparse.columns)), i + 1)
        values.extend(token for token, head in zip(tokens, heads, strict=True) if not head)
        texts.append(fields[1])
        totals.append(fields[3])
    width = sum(count for _, count in names)
    features = _numbers(name, values, width, "feature").reshape(len(lines), width)
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

    def taken_from(self, tokens: list[bytes], line: int) -> list[bytes]:
        """Take the sparse features out of the tokens of a line, and return the others.

        Raises:
            DataError: one is there twice.
        """
        others: list[bytes] = []
        seen = set()
        i = 0
        while i < len(tokens):
            token = tokens[i]
            alone = i + 2 >= len(tokens) or tokens[i + 2].endswith(b"=")
            if not (token.endswith(b"=") and b"_" in token and alone and i + 1 < len(tokens)):
                others.append(token)
                i += 1
                continue
            if token in seen:
                shown = token[:-1].decode("utf-8", "replace")
                raise DataError(self._file, f"the feature {shown} is there twice; {_EXPECTED}", line + 1)
            seen.add(token)
            self._places.append((line, self.columns.setdefault(token[:-1], len(self.columns))))
            self._values.append(tokens[i + 1])
            i += 2
        return others

    def matrix(self, lines: int) -> DoubleArray:
        """All values, float64, shape (N, S), 0 where a line does not name a feature.

        Raises:
            DataError: a value is no finite number, or they are too many.
        """
        if lines * len(self.columns) > _MOST_SPARSE:
            message = f"{len(self.columns):,} sparse features of {lines:,} lines are too many to weigh one by one"
            raise DataError(self._file, message)
        rows, columns = np.array(self._places).T
        found = np.zeros((lines, len(self.columns)))
        found[rows, columns] = _numbers(self._file, self._values, 1, "feature", rows)
        return found


def _names(file: str, tokens: list[bytes], line: int, sparse: Mapping[bytes, int]) -> FeatureNames:
    """The features of a line but sparse ones.

    Raises:
        DataError: there are none, one is there twice, or a value has no name.
    """
    found: list[tuple[str, int]] = []
    for token in tokens:
        if token.endswith(b"="):
            found.append((token[:-1].decode("utf-8", "replace"), 0))
        elif not found:
            raise DataError(file, f"a value without the name of a feature; {_EXPECTED}", line)
        else:
            found[-1] = found[-1][0], found[-1][1] + 1
    if not (found or sparse) or len({name for name, _ in found}) < len(found):
        raise DataError(file, f"no features, or one is there twice; {_EXPECTED}", line)
    return tuple(found)


def _difference(expected: FeatureNames, found: FeatureNames) -> str:
    return f"has the features {described(found)}, but the lines before have {described(expected)}"


def described(names: FeatureNames) -> str:
    """Features and how many values they have, for messages."""
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in names)


def _numbers(file: str, tokens: list[bytes], width: int, what: str, rows: Int64Array | None = None) -> DoubleArray:
    """Values as numbers, float64; `rows` are the lines they stand in, from 0, by default `width` a line.

    Raises:
        DataError: one is no finite number.
    """
    try:
        found = np.array(tokens, np.bytes_).astype(np.float64) if tokens else np.zeros(0)
        if np.isfinite(found).all():
            return found
        place = int(np.argmin(np.isfinite(found)))
    except ValueError:
        place = next(i for i, token in enumerate(tokens) if not is_number(token))
    row = place // width if rows is None else int(rows[place])
    token = tokens[place].strip(b" \t\r\n").decode("utf-8", "replace")
    raise DataError(file, f"{token!r} is no value of a {what}; expected a finite number", row + 1)


def with_features(line: bytes, appended: bytes, total: bytes | None = None) -> bytes:
    """A line with more features.

    Args:
        line: of a list.
        appended: `Name= values`, without spaces around it; may be empty.
        total: takes the place of the score; None leaves it.
    """
    fields = line.split(BARS)
    if appended:
        fields[2] = fields[2].rstrip(b" ") + b" " + appended + b" "
    if total is not None:
        fields[3] = b" " + total + (b" " if len(fields) > 4 else b"\n")
    return BARS.join(fields)
