"""Detection of files that are not phrase tables in text form: binary tables, half tables, other formats.

A binary table cannot be read back into text, and half of a table has its fields in another order; both are refused
with advice.  Kinds are detected by the files of a folder (CreateProbingPT, CreateOnDiskPt), by the endings that Moses'
binarisers write, by the first bytes, and by the first lines.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from phrasetool.errors import DataError
from phrasetool.text_splitting import split_lines, split_words

# Numbers of bytes and of lines that are examined.
HEAD_BYTES = 1 << 14
_HEAD_LINES = 20
# Largest number of scores per entry of a half table.
_HALF_SCORES = 3
_USE_TEXT = "a binary table cannot be read; use the text table it was made from"


@dataclass(frozen=True)
class FileKind:
    """A kind of file other than a phrase table in text form.

    Attributes:
        name: description, such as `a binary phrase table (ProbingPT folder)`.
        advice: instruction to the user.
        remedy: key of a hint whose text the command line defines; see `PhraseToolError`.
    """

    name: str
    advice: str
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.name}; {self.advice}"


_COMPACT = FileKind("a binary phrase table (PhraseDictionaryCompact, .minphr)", _USE_TEXT)
_LEXICAL = "a binary reordering table"
_SUFFIX_ARRAY = FileKind("part of a suffix array (SALM)", "expected a phrase table in text form")
_BINARY = FileKind("binary data", "expected a phrase table in text form")
HALF = FileKind(
    "half of a phrase table, alignment before scores (output of Moses' `score`)",
    "use the whole table that Moses' `consolidate` makes of both halves",
)
EXTRACTED = FileKind("extracted phrase pairs (output of Moses' `extract`)", "score them first")
MEMSCORE = FileKind(
    "a table with alignments before the scores (memscore, promix, or a very old Moses)",
    "Moses cannot load it either; the third field must hold the scores",
)
INI = FileKind("a moses.ini", "expected a phrase table")
HIERO = FileKind(
    "a grammar in the format of Hiero (cdec, Joshua/Thrax, Moses)",
    "expected a phrase table, `source ||| target ||| scores`",
)
_ENDINGS = (
    (re.compile(r"\.minphr$"), _COMPACT),
    (re.compile(r"\.minlexr$"), FileKind(f"{_LEXICAL} (.minlexr)", _USE_TEXT)),
    (re.compile(r"\.binphr\.[a-z.]+$"), FileKind("part of a binary phrase table (PhraseDictionaryBinary)", _USE_TEXT)),
    (re.compile(r"\.binlexr\.[a-z.]+$"), FileKind(f"part of {_LEXICAL} (.binlexr)", _USE_TEXT)),
    (re.compile(r"\.(sa_corpus|sa_suffix|sa_offset|id_voc)$"), _SUFFIX_ARRAY),
)
PARQUET = FileKind("a Parquet file", "make it text with `phrasetool convert`")
_BZIP2 = FileKind("bzip2 inside other compressed data", "unpack it once")
_FIRST_BYTES = (
    (b"PAR1", PARQUET),
    (b"\x1f\x8b", FileKind("gzip inside other compressed data", "unpack it once")),
    (b"\xfd7zXZ\0", FileKind("xz inside other compressed data", "unpack it once")),
    *((b"BZh%d1AY&SY" % level, _BZIP2) for level in range(1, 10)),
    (b"\x28\xb5\x2f\xfd", FileKind("zstd inside other compressed data", "unpack it once")),
    (b"PK\x03\x04", FileKind("a zip archive", "unpack it")),
    (b"mmap lm http", FileKind("a binary language model (KenLM)", "expected a phrase table in text form")),
)
_FOLDERS = (
    ("probing_hash.dat", "a binary phrase table (ProbingPT folder)", "config", r"num_scores\s+(\d+)"),
    ("TargetColl.dat", "a binary phrase table (OnDisk folder)", "Misc.dat", r"NumScores\s+(\d+)"),
)
# Endings that Moses would try for a name that does not exist.
_ADDED_ENDINGS = (".gz", ".minphr", ".binphr.idx", ".minlexr", ".binlexr.idx")

# Largest share of zero bytes in text, which may contain stray ones.
_MOST_ZEROS = 0.1
_LABEL = re.compile(rb"\[[^][ \t]+\]")
_FEATURE = re.compile(rb"[^= \t]+=[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_POINT = re.compile(rb"\d+-\d+")
_MEMSCORE_POINT = re.compile(rb"\([\d,]*\)")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def folder_kind(path: str) -> FileKind | None:
    """Return the kind of binary table or model in a folder, or None if there is none."""
    for mark, name, description, pattern in _FOLDERS:
        if os.path.isfile(os.path.join(path, mark)):
            scores = _score_count(os.path.join(path, description), pattern)
            return FileKind(name + (f" with {scores} scores per entry" if scores else ""), _USE_TEXT)
    if os.path.isfile(os.path.join(path, "weights.safetensors")):
        return FileKind("the folder of a model of phrasetool", "expected a file", remedy="name the model")
    return None


def _score_count(path: str, pattern: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(1 << 16))
    except OSError:
        return ""
    return match[1] if match else ""


def name_kind(path: str) -> FileKind | None:
    """Return the kind of a file by the ending of its name, or None if the ending does not determine it."""
    return next((kind for ending, kind in _ENDINGS if ending.search(path)), None)


def why_not_a_file(path: str) -> str:
    """Return an error message for a path that is not a file: a folder, or a name that Moses would complete."""
    if os.path.isdir(path):
        return f"is a directory: {folder_kind(path) or 'expected a file'}"
    for ending in _ADDED_ENDINGS:
        if os.path.exists(path + ending):
            kind = name_kind(path + ending)
            return f"No such file, but there is {path + ending}" + (f": {kind}" if kind else "")
    return "No such file or directory"


def why_no_bytes(path: str, expected: str = "gzip") -> str:
    """Return an error message for an empty file that should be compressed, such as placeholders in Moses' tests."""
    reason = f"the file has 0 bytes; expected {expected} data"
    for stem in (path, path.removesuffix(".gz")):
        for ending in _ADDED_ENDINGS[1:]:
            if os.path.exists(stem + ending):
                return f"{reason} (it may be a placeholder for {stem + ending}, which is binary)"
    return reason


def content_kind(head: bytes) -> FileKind | None:
    """Return the kind of a file by its first bytes, or None if they may be those of a table in text form.

    Args:
        head: up to `HEAD_BYTES` bytes, unpacked.
    """
    first_line = head.split(b"\n", 1)[0]
    binary = b"\0" in first_line and b"|||" not in first_line
    binary = binary or head.count(b"\0") > _MOST_ZEROS * len(head)
    for mark, kind in _FIRST_BYTES:
        # A line of text may begin with `PAR1`, but it contains no zero bytes.
        if head.startswith(mark) and (mark != b"PAR1" or b"\0" in head[:64]):
            return kind
    if binary:
        return _BINARY
    lines = head.split(b"\n")
    # The last line of the head may be cut.
    rows = [line.split(b"|||") for line in (lines[:-1] or lines)[:_HEAD_LINES]]
    rows = [row for row in rows if len(row) > 3]
    if rows and all(map(_is_half_line, rows)):
        scores = min(len(split_words(row[3])) for row in rows)
        if scores > (_HALF_SCORES if len(rows[0]) > 4 else 1):
            return MEMSCORE
        return HALF if len(rows[0]) > 4 else EXTRACTED
    if rows and all(map(_is_hiero_line, rows)):
        return HIERO
    if rows and all(_is_memscore_line(row) for row in rows):
        return MEMSCORE
    return None


def _is_half_line(fields: list[bytes]) -> bool:
    """Whether a line is `source ||| target ||| alignment ||| scores ||| counts`, alignment and scores being swapped.

    A line without counts is an extracted pair with a weight.
    """
    alignment, scores = split_words(fields[2]), split_words(fields[3])
    return bool(scores) and all(map(_POINT.fullmatch, alignment)) and all(map(_NUMBER.fullmatch, scores))


def _is_hiero_line(fields: list[bytes]) -> bool:
    """Whether a line is `[X] ||| source ||| target ||| features`: a label first, then numbers or NAME=NUMBER last."""
    label, features = fields[0].strip(b" \t"), split_words(fields[3])
    if not _LABEL.fullmatch(label) or not features or all(map(_POINT.fullmatch, features)):
        return False
    return all(_NUMBER.fullmatch(feature) or _FEATURE.fullmatch(feature) for feature in features)


def _is_memscore_line(fields: list[bytes]) -> bool:
    """Whether a line is `source ||| target ||| (0) (1,2) ||| (0) (1) ||| scores`."""
    points = [token for field in fields[2:4] for token in split_words(field)]
    return len(fields) > 4 and bool(points) and all(map(_MEMSCORE_POINT.fullmatch, points))


def kind_of(name: str, head: bytes) -> FileKind | None:
    """Return the kind of a file by its name and its first bytes, or None if it may be a table in text form.

    Args:
        name: name of the file, as in messages.
        head: its first bytes, unpacked.
    """
    # The name is more informative than binary data, but a file with the content of a table is one, whatever its name.
    binary = b"|||" not in head or content_kind(head) == _BINARY
    return (name_kind(name) if binary else None) or content_kind(head)


def refuse(name: str, head: bytes) -> None:
    """Refuse a file that is not a table in text form; see `kind_of`.

    Raises:
        DataError: by its name or its first bytes, the file is of another kind.
    """
    if (kind := kind_of(name, head)) is not None:
        raise DataError(name, f"is {kind}")


def guess(head: bytes) -> FileKind | None:
    """Guess the kind of a text whose first lines have no entry of a phrase table; None if unknown."""
    lines = [line.strip(b" \t") for line in split_lines(head)[:_HEAD_LINES] if split_words(line)]
    rows = [[split_words(field) for field in line.split(b"|||")] for line in lines]
    if not lines:
        return None
    if all(len(row) == 1 and line.count(b"\t") > 1 for row, line in zip(rows, lines, strict=True)):
        return FileKind("a table with tabs between fields", "expected ` ||| ` between them")
    if all(len(row) == 1 and b" || " in line for row, line in zip(rows, lines, strict=True)):
        return FileKind("a table with || between fields", "expected ` ||| ` between them")
    if all(len(row) == 1 and all(map(_POINT.fullmatch, row[0])) for row in rows):
        return FileKind("word alignments", "expected a phrase table")
    if all(len(row) in (3, 4) and row[2] and all(map(_POINT.fullmatch, row[2])) for row in rows):
        return EXTRACTED
    if all(len(row) >= 4 and row[0] and row[0][0].isdigit() and b"=" in b" ".join(row[2]) for row in rows):
        return FileKind("an n-best list", "expected a phrase table")
    if all(len(row) == 1 and len(row[0]) == 3 and _NUMBER.fullmatch(row[0][2]) for row in rows):
        return FileKind("a lexical translation table (lex.f2e or lex.e2f)", "expected a phrase table")
    if b"\\data\\" in lines[:2]:
        return FileKind("a language model in ARPA form", "expected a phrase table")
    if any(line in (b"[feature]", b"[mapping]", b"[input-factors]", b"[ttable-file]") for line in lines):
        return INI
    if all(len(row) == 2 or (len(row) == 3 and len(row[2]) == 1) for row in rows):
        return FileKind("phrase pairs", "`phrasetool train` takes them")
    if lines[0].startswith(b"{"):
        return FileKind("JSON", "expected a phrase table")
    if all(len(row) == 1 for row in rows):
        return FileKind("plain text without ||| between fields", "expected a phrase table")
    return None
