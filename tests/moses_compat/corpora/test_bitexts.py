"""Readers of bitexts, word alignments and alignment priors, and the errors that they raise."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.bitexts import (
    format_alignments,
    parse_alignments,
    read_alignments,
    read_bitext,
    read_bitext_side,
    read_directions,
    read_parallel_texts,
    read_phrase_texts,
    read_priors,
    read_sentence_pairs,
    shared_pairs,
    unescaped_words,
    warn_of_copies,
    write_alignments,
)
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from tests.commands import write
from tests.listed_alignments import alignments_of
from tests.moses_compat.experiments.watching import RecordingWatch
from tests.variants import for_each

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
        f"file:2: the point {token} has a position beyond 32,767, the largest supported: "
        "sentences have at most 32,768 words"
    )


def test_fits_the_bitext(tmp_path):
    path = tmp_path / "aligned.gz"
    path.write_bytes(gzip.compress(b"0-0\n1-0 0-1\n"))
    lengths = np.array([1, 2])
    assert len(read_alignments(str(path), lengths, lengths)) == 2
    with pytest.raises(DataError, match=r"aligned.gz: 2 lines for a bitext of 3 sentence pairs"):
        read_alignments(str(path), np.array([1, 2, 3]), np.array([1, 2, 3]))
    with pytest.raises(DataError, match=r"aligned.gz:2: the point 0-1 is outside its sentence pair of 2 and 1 words"):
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


@for_each(
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


def test_reads_both_sides(tmp_path):
    source = write(tmp_path / "s.gz", b"das haus\r\nhaus  das\t&quot; \n")
    target = write(tmp_path / "t", b'the house\nhouse " the')
    sources, targets, source_symbols, target_symbols = read_sentence_pairs(str(source), str(target))
    assert [source_symbols.join(sentence) for sentence in sources] == [b"das haus", b"haus das &quot;"]
    assert [target_symbols.join(sentence) for sentence in targets] == [b"the house", b'house " the']
    bitext = read_bitext(str(source), str(target), str(write(tmp_path / "a", b"0-0 1-1\n2-1\n")))
    assert bitext.alignments[1] == [(2, 1)]


def test_chunks(tmp_path, monkeypatch):
    text = b"".join(b"w%d b\n" % i for i in range(50))
    path = write(tmp_path / "s", text[:-1])
    monkeypatch.setattr("moses_compat.files.streams.BYTES_PER_BLOCK", 9)
    symbols = Symbols()
    sentences = read_bitext_side(str(path), symbols)
    assert b"".join(symbols.join(sentence) + b"\n" for sentence in sentences) == text


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a\n\nb\n", b"a\nb\nc\n", "s:2: the sentence is empty"),
        (b"a\n", b" \t\n", "t:1: the sentence is empty"),
        (b"a\nb\nc\n", b"a\nb\n", "t:3: the file ends after 2 lines, but {0}/s has 3"),
        (b"a\n", b"a\nb\n", "s:2: the file ends after 1 lines, but {0}/t has 2"),
        (b"", b"", "s: the bitext has no sentence"),
        (b"a\nb ||| c\n", b"a\nb\n", "s:2: the word ||| separates the fields of a table"),
    ],
)
def test_bad_bitexts(tmp_path, source, target, message):
    paths = [str(write(tmp_path / name, data)) for name, data in (("s", source), ("t", target))]
    with pytest.raises(DataError) as caught:
        read_sentence_pairs(*paths)
    assert str(caught.value).startswith(f"{tmp_path}/{message.format(tmp_path)}")


def test_bad_alignment(tmp_path):
    source, target = (str(write(tmp_path / name, b"a b\nc\n")) for name in "st")
    aligned = write(tmp_path / "a.gz", b"0-0\n0-1\n")
    with pytest.raises(DataError, match=r"a.gz:2: the point 0-1 is outside"):
        read_bitext(source, target, str(aligned))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"0-0\n0-0\n")[:-10])
    with pytest.raises(DataError, match=r"cut.gz: the gzip data"):
        read_bitext(source, target, str(tmp_path / "cut.gz"))


def test_one_standard_input():
    with pytest.raises(PhraseToolError, match="cannot be both sides"):
        read_sentence_pairs("-", "-")
    with pytest.raises(PhraseToolError, match="and its alignment"):
        read_bitext("-", "x", "-")


def test_both_directions(tmp_path):
    forward, reverse = write(tmp_path / "f.gz", b"0-0\n\n"), write(tmp_path / "r", b"0-0 1-0\n2-2\n")
    first, second = read_directions(str(forward), str(reverse))
    assert (first[0], second[1]) == ([(0, 0)], [(2, 2)])
    with pytest.raises(DataError, match=r"s:2: the file ends after 1 lines, but .*r has 2"):
        read_directions(str(write(tmp_path / "s", b"0-0\n")), str(reverse))
    with pytest.raises(PhraseToolError, match="standard input: cannot be both directions"):
        read_directions("-", "-")


def test_lines_without_words_are_no_shared_sentences(tmp_path):
    (tmp_path / "t.src").write_bytes(b"\na\n \n")
    (tmp_path / "t.trg").write_bytes(b"\nx\ny\n")
    texts = {"one": (b"\na\nb\n", b"\nx\nx"), "two": (b"\n", b" \n"), "three": (b"\n", b"y\n")}
    bitext = str(tmp_path / "t.src"), str(tmp_path / "t.trg")
    assert shared_pairs(bitext, texts) == {"one": (1, 2), "three": (1, 1)}


def test_one_file_is_no_bitext(tmp_path):
    path = write(tmp_path / "s", b"a b\n")
    with pytest.raises(PhraseToolError, match="s: is also the source file; expected its translation"):
        read_sentence_pairs(str(path), f"{tmp_path}/./s")


@pytest.mark.parametrize(("copied", "told"), [(0, False), (9, False), (10, True)])
def test_sides_that_are_alike(tmp_path, copied, told):
    """Ten equal sentences of ten cause a warning; nine do not, nor do equal lengths and shared words."""
    source = b"".join(b"x%d y z\n" % i for i in range(10))
    lines = source.splitlines(keepends=True)
    target = b"".join([*lines[:copied], *(line.replace(b"y", b"x%d" % i) for i, line in enumerate(lines[copied:]))])
    paths = tuple(str(write(tmp_path / name, text)) for name, text in (("s", source), ("t", target)))
    watch = RecordingWatch()
    warn_of_copies(paths, read_sentence_pairs(*paths), watch)
    expected = f"10 of 10 sentences of {tmp_path}/t are the same as in {tmp_path}/s; expected their translations"
    assert watch.warned == ([expected] if told else [])


def test_an_alignment_without_points(tmp_path):
    source, target = (str(write(tmp_path / name, b"a b\nc\n")) for name in "st")
    with pytest.raises(DataError, match="a: aligns no word of the bitext"):
        read_bitext(source, target, str(write(tmp_path / "a", b"\n\n")))


def lines(phrases, words):
    return [b" ".join(words[i] for i in phrase) for phrase in phrases]


def test_both_sides_without_their_escapes(tmp_path):
    source = write(tmp_path / "s.gz", b"das ist &apos;s\ndas ist 's\n")
    target = write(tmp_path / "t", b"that &amp; is\nit\n")
    pairs = read_parallel_texts(str(source), str(target))
    assert lines(pairs.sources, pairs.source_words) == [b"das ist 's"] * 2
    assert lines(pairs.targets, pairs.target_words) == [b"that & is", b"it"]
    assert len(set(pairs.source_words)) == len(pairs.source_words) == 3
    assert pairs.escaped
    assert not read_parallel_texts(str(source), str(write(tmp_path / "u", b"it 's\nit\n"))).escaped


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (b"a\n", "t:2: the file ends after 1 lines, but"),
        (b"a\n\n", "t:2: the line is empty; leave out lines without a word"),
        (b"", "t: the file contains no text"),
    ],
)
def test_sides_that_are_no_bitext(tmp_path, target, message):
    source = write(tmp_path / "s", b"x\ny\n")
    with pytest.raises(DataError, match=re.escape(message)):
        read_parallel_texts(str(source), str(write(tmp_path / "t", target)))


def test_one_file_twice(tmp_path):
    path = str(write(tmp_path / "s", b"x\n"))
    with pytest.raises(PhraseToolError, match="is also the source file"):
        read_parallel_texts(path, path)
    with pytest.raises(PhraseToolError, match="standard input"):
        read_parallel_texts("-", "-")


def test_distinct_phrase_pairs_and_no_counts(tmp_path):
    data = b"das ||| the &amp; ||| 5\ndas ||| the &amp; ||| 1\nhaus ||| house ||| 1\ndas haus ||| a b c ||| 9\n"
    pairs = read_phrase_texts(str(write(tmp_path / "p.gz", data)), 2, 0)
    sides = lines(pairs.sources, pairs.source_words), lines(pairs.targets, pairs.target_words)
    assert sorted(zip(*sides, strict=True)) == [(b"das", b"the &"), (b"haus", b"house")]
    assert pairs.escaped
    assert len(read_phrase_texts(str(tmp_path / "p.gz"), 3, 5)) == 2


def test_words_that_are_one_without_escapes():
    texts, words = unescaped_words(Phrases.from_lists([[0, 1], [2]]), [b"'s", b"&apos;s", b"x"])
    assert words == [b"'s", b"x"]
    assert [text.tolist() for text in texts] == [[0, 0], [1]]
    assert unescaped_words(Phrases.from_lists([[]]), [])[1] == []
