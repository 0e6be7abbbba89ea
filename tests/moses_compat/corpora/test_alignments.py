""""""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.alignments import (
    format_alignments,
    parse_alignments,
    read_alignments,
    read_priors,
    write_alignments,
)
from phrasetool.errors import DataError, PhraseToolError
from tests.commands import write
from tests.listed_alignments import alignments_of

position = st.one_of(st.integers(0, 12), st.sampled_from([99, 100, 32767]))
lists = st.lists(st.lists(st.tuples(position, position), max_size=6), max_size=5)
TEXT = "LEX\tHaus\thouse\t3\nLEX\t<NULL>\tthe\t0.5\nFERF\tHaus\t1\t2\nFERR\thouse\t2\t1\nHMMF\t-1\t4\nHMMR\t2\t1e2\n"


@given(lists)
def test_round_trip(alignments):
    text = b"".join(b" ".join(b"%d-%d" % point for point in sorted(set(points))) + b"\n" for points in alignments)
    assert format_alignments(alignments_of(alignments)) == text
    read = parse_alignments(text, "file")
    assert [read[i] for i in range(len(read))] == [sorted(set(points)) for points in alignments]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n", [[]]),
        (b"0-1", [[(0, 1)]]),
        (b"0-1\n\n", [[(0, 1)], []]),
        (b" 1-0\t0-0  1-0 \r\n2-2\r\n", [[(0, 0), (1, 0)], [(2, 2)]]),
        (b"007-1", [[(7, 1)]]),
    ],
)
def test_variants(text, expected):
    read = parse_alignments(text, "file")
    assert [read[i] for i in range(len(read))] == expected


@pytest.mark.parametrize(
    ("text", "line", "token"),
    [
        (b"0", 1, "0"),
        (b"0-0 1-\n", 1, "1-"),
        (b"0-0\n-1-2", 2, "-1-2"),
        (b"\n\n1-2-3", 3, "1-2-3"),
        (b"0-0 1-1x", 1, "1-1x"),
        (b"0:0", 1, "0:0"),
        (b"0-0\r1-1", 1, r"\r"),
        (b"\xff-1", 1, "\ufffd-1"),
    ],
)
def test_bad_tokens(text, line, token):
    with pytest.raises(DataError) as caught:
        parse_alignments(text, "file")
    assert str(caught.value) == f"file:{line}: expected alignment points like 0-0 1-2, found '{token}'"


@pytest.mark.parametrize("token", ["0-32768", "99999999999999999999-0"])
def test_positions_beyond_the_limit(token):
    assert list(parse_alignments(b"32767-32767\n", "file")[0]) == [(32767, 32767)]
    with pytest.raises(DataError) as caught:
        parse_alignments(f"0-0\n{token}\n".encode(), "file")
    assert str(caught.value) == (
        f"file:2: the point {token} has a position beyond 32,767, the largest that is read: "
        "sentences have at most 32,768 words"
    )


def test_fits_the_bitext(tmp_path):
    path = tmp_path / "aligned.gz"
    path.write_bytes(gzip.compress(b"0-0\n1-0 0-1\n"))
    lengths = np.array([1, 2])
    assert len(read_alignments(str(path), lengths, lengths)) == 2
    with pytest.raises(DataError, match=r"aligned.gz: 2 lines for a bitext of 3 sentence pairs"):
        read_alignments(str(path), np.array([1, 2, 3]), np.array([1, 2, 3]))
    with pytest.raises(
        DataError, match=r"aligned.gz:2: the point 0-1 is outside of its sentence pair of 2 and 1 words"
    ):
        read_alignments(str(path), lengths, np.array([1, 1]))


@pytest.mark.requires_reference
def test_reference_text(reference):
    path = reference / "aligned.grow-diag-final-and.gz"
    assert format_alignments(read_alignments(str(path))) == gzip.decompress(path.read_bytes())


def test_files_appear_together(tmp_path):
    forward, both = alignments_of([[(0, 1)], []]), alignments_of([[(0, 0)], [(1, 1)]])
    write_alignments([(str(tmp_path / "f"), forward), (str(tmp_path / "both.gz"), both)])
    assert (tmp_path / "f").read_bytes() == b"0-1\n\n"
    assert gzip.decompress((tmp_path / "both.gz").read_bytes()) == b"0-0\n1-1\n"
    with pytest.raises(PhraseToolError):
        write_alignments([(str(tmp_path / "new"), both), (str(tmp_path / "no folder" / "f"), both)])
    assert not (tmp_path / "new").exists()


def test_reads(tmp_path):
    priors = read_priors(str(write(tmp_path / "priors.gz", TEXT.encode())))
    assert priors.lexical == [("Haus", "house", 3), ("<NULL>", "the", 0.5)]
    assert priors.fertilities == ([("Haus", 1, 2)], [("house", 2, 1)])
    assert priors.jumps == ({-1: 4}, {2: 100})


@pytest.mark.parametrize(
    "line",
    [
        "",
        "LEX\ta\t1",
        "LEX\ta\tb\tx",
        "LEX\ta\tb\tnan",
        "LEX\ta\tb\t-1",
        "FERF\ta\tb\t1",
        "FERR\ta\t-1\t1",
        "HMMF\t1.5\t1",
        "X\t1\t2",
    ],
)  # fmt: skip
def test_bad_lines(tmp_path, line):
    path = write(tmp_path / "priors", f"{TEXT}{line}\nLEX\ta\tb\t1\n".encode())
    with pytest.raises(DataError, match=r"priors:7: not a prior: expected LEX"):
        read_priors(str(path))
