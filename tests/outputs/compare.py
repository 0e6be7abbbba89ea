"""Byte-for-byte comparison of two folders of outputs, and the list of permitted differences."""

from __future__ import annotations

import filecmp
import gzip
import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 16


@dataclass(frozen=True)
class Allowed:
    """A permitted difference.

    Attributes:
        files: pattern of the whole path of an output; `stderr.1` is standard error of the first command.
        pattern: pattern of the text that is removed before the comparison.
        reason: reason of the difference.
    """

    files: str
    pattern: bytes
    reason: str


_STDERR = r"stderr\.\d"
ALLOWED = (
    Allowed(_STDERR, rb"(?<=after )\d+(?= s\b)", "seconds that a command took"),
    Allowed(_STDERR, rb"(?<=done in )\d+(?= s\b)", "seconds that a step of an experiment took"),
    Allowed(_STDERR, rb"; about \d+ minutes left", "the time that improve still needs"),
    Allowed(_STDERR, rb"\([\d,]+ pairs/s(, [\d:]+ left)?\)", "the speed of training"),
    Allowed(_STDERR, rb"(?<=translated in )[\d.]+ s \([\d.]+ ms a sentence and thread\)", "the speed of the decoder"),
    Allowed(_STDERR, rb"(?m)^phrasetool: .*: [\d,]+ (entries|of [\d,]+ \w+)(, [\d,.]+ a second.*)?\n",
            "progress, told every 30 seconds"),
    Allowed(_STDERR, rb"(?m)^phrasetool: (\w+: )?(extract|write): [\d,]+ of [\d,]+ \(\d+%\)\n",
            "progress, told every 30 seconds"),
    Allowed(r".*/(experiment|commands)\.json|.*/runs/.*\.json", rb'"seconds": (\{[^}]*\}|[\d.]+)',
            "seconds that the parts of an experiment took"),
    Allowed(_STDERR, rb"(?<=\.)[a-z0-9_]{8}(?=\.part: )", "the name of the folder in which a program of Moses works"),
    Allowed(r"work/real.*", rb"(?s).*",
            "programs of Moses leave bytes of memory in their files; what they are given is compared by stand-ins"),
    Allowed(r".*/report\.html", rb"(?<=<dd>)[\d,.]+ s(?=</dd>)", "seconds that the parts of an experiment took"),
    Allowed(r".*/report\.md", rb"(?m)(?<=: )[\d,.\\]+ s$", "seconds that the parts of an experiment took"),
    Allowed(r"stdout\.1", rb"(?m)(?<=^Done in )\d+(?= s\. In demo-output/)", "seconds that the demo took"),
    Allowed(_STDERR, rb"(?m)^/\S+/score_columns\.py:\d+: RuntimeWarning: overflow encountered in multiply\n.*\n",
            "numpy warned of scores beyond all numbers, with a line of this program; it no longer does"),
    Allowed(_STDERR, rb"(?s)Traceback \(most recent call last\):\n.*?\n(?=\S)",
            "tracebacks of --debug name files and lines"),
)  # fmt: skip
# The output of igzip depends in rare cases, one in thousands, on previous memory contents; in a file of tiny members,
# several may be affected.  The text and the boundaries of members must be the same, and at most this share of the
# members, and one more, may differ in their compressed bytes.
RECOMPRESSED = "a gzip member that igzip compressed in another way, its text being the same"
_FEW_MEMBERS = 0.1

# Deliberately neither run nor compared.
LEFT_OUT = {
    "--help, -h and the overview": "texts for people, which may become better; their figures are not outputs",
    "--version": "may come to say more",
    "align --unseeded": "its result is chance",
    "--device cuda": "needs a GPU, and sums there are in no fixed order",
    "bars of progress": "are for terminals, and show times",
}


@dataclass
class Comparison:
    """Result of comparing the outputs of a case.

    Attributes:
        files: number of files and folders.
        differences: one line for each that differs.
        allowed: number of files with only permitted differences, by reason.
    """

    files: int
    differences: list[str]
    allowed: Counter[str]


def compare_folders(before: Path, after: Path) -> Comparison:
    """Compare all files of two folders."""
    entries_before, entries_after = (_tree(folder) for folder in (before, after))
    result = Comparison(len(entries_before), [], Counter())
    for name in sorted(entries_before.keys() | entries_after.keys()):
        kinds = entries_before.get(name), entries_after.get(name)
        if kinds[0] != kinds[1]:
            result.differences.append(f"{name}: {kinds[0] or 'missing'} before, {kinds[1] or 'missing'} after")
        elif os.path.isfile(before / name) and not filecmp.cmp(before / name, after / name, shallow=False):
            reasons = _why_allowed(name, (before / name).read_bytes(), (after / name).read_bytes())
            if reasons:
                result.allowed.update(reasons)
            else:
                result.differences.append(f"{name}: {_difference(before / name, after / name)}")
    return result


def _tree(folder: Path) -> dict[str, str]:
    """Return kind and permissions of everything below a folder, by relative path."""
    collected = {}
    for path in sorted(folder.rglob("*")):
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        collected[str(path.relative_to(folder))] = f"{kind} {path.lstat().st_mode & 0o777:o}"
    return collected


def _why_allowed(name: str, before: bytes, after: bytes) -> set[str]:
    """Return the reasons that permit the differences of two files; empty if they are not permitted."""
    if before[:2] == after[:2] == GZIP_MAGIC:
        return {RECOMPRESSED} if _few_members_differ(before, after) else set()
    reasons = set()
    for allowed in ALLOWED:
        if re.fullmatch(allowed.files, name):
            stripped = [re.sub(allowed.pattern, b"", data) for data in (before, after)]
            if stripped != [before, after]:
                reasons.add(allowed.reason)
            before, after = stripped
    return reasons if before == after else set()


def _few_members_differ(before: bytes, after: bytes) -> bool:
    """Return whether two gzip files have the same text in the same members, most of them with the same bytes."""
    try:
        members_before, members_after = (list(_members(data)) for data in (before, after))
    except zlib.error:
        return False
    if [text for text, _ in members_before] != [text for text, _ in members_after]:
        return False
    differing = sum(first != second for (_, first), (_, second) in zip(members_before, members_after, strict=True))
    return differing <= 1 + _FEW_MEMBERS * len(members_before)


def _members(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the SHA-256 of the text and the compressed bytes of each member of a gzip file."""
    start = at = 0
    while start < len(data):
        member, text = zlib.decompressobj(31), hashlib.sha256()
        while not member.eof:
            if at >= len(data):
                raise zlib.error("the last member is cut off")
            text.update(member.decompress(data[at : at + _PIECE]))
            at += _PIECE
        end = min(at, len(data)) - len(member.unused_data)
        yield text.digest(), data[start:end]
        start = at = end


def _difference(before: Path, after: Path) -> str:
    """Describe the first difference of two files."""
    data, other = before.read_bytes(), after.read_bytes()
    note = ""
    if data[:2] == other[:2] == GZIP_MAGIC:
        data, other = gzip.decompress(data), gzip.decompress(other)
        note = "decompressed, "
        if data == other:
            return "compressed in another way, in more than a few members; decompressed, the same"
    binary = b"\0" in data[:4096]
    if binary:
        at = next(_unequal(data, other))
        return f"{note}{len(data):,} and {len(other):,} bytes, from byte {at:,}"
    lines = data.split(b"\n"), other.split(b"\n")
    at = next(_unequal(*lines))
    texts = (repr(_excerpt(side, at))[1:] for side in lines)
    return f"{note}line {at + 1}: {' / '.join(texts)}"


def _unequal(first: bytes | list[bytes], second: bytes | list[bytes]) -> Iterator[int]:
    """Yield the positions at which two sequences differ, and the length of the shorter one."""
    shorter = min(len(first), len(second))
    yield from (i for i in range(shorter) if first[i] != second[i])
    yield shorter


def _excerpt(lines: list[bytes], at: int) -> bytes:
    line = lines[at] if at < len(lines) else b"(no line)"
    return line if len(line) <= 90 else line[:90] + b"..."
