"""Phrase and reordering tables read for a text, compared with a reader in plain Python."""

import gzip
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.engine.decoder_tables import InputPhrases, load_entries, load_reordering, used_pairs
from phrasetool.errors import DataError
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.table import build_table
from tests.commands import write
from tests.naive import tokens
from tests.tables import MALFORMED, TABLES
from tests.variants import for_each


def spans(text, longest=20):
    """Return all word sequences of a text with at most `longest` words."""
    collected = set()
    for line in text.replace(b"\r\n", b"\n").split(b"\n"):
        words = tokens(line)
        collected |= {
            tuple(words[i:j]) for i in range(len(words)) for j in range(i + 1, min(len(words), i + longest) + 1)
        }
    return collected


def log(score):
    return max(float(np.log(np.float32(score))), -100.0) if score > 0 else -100.0


def naive_entries(table, text):
    """Return (source, target, scores, alignment, counts) of the lines whose source occurs in the text."""
    phrases, result = spans(text), []
    for line in table.split(b"\n"):
        fields = line.removesuffix(b"\r").split(b"|||")
        if len(fields) < 3 or tuple(tokens(fields[0])) not in phrases:
            continue
        points = [tuple(map(int, point.split(b"-"))) for point in tokens(fields[3])] if len(fields) > 3 else []
        counts = [math.nan] * 3
        for i, token in enumerate(tokens(fields[4])[:3] if len(fields) > 4 else []):
            if re.fullmatch(rb"[0-9.]+(e[+-]?\d+)?", token):
                counts[i] = float(token)
        scores = [log(float(token)) for token in tokens(fields[2])]
        result.append((tuple(tokens(fields[0])), tuple(tokens(fields[1])), scores, points, counts))
    return result


def our_entries(path, text, columns, threads=1):
    source, targets = InputPhrases.of(text), Symbols()
    entries = load_entries(str(path), source, targets, columns, threads)
    words = source.symbols.words, targets.words
    return [
        (
            tuple(words[0][w] for w in entries.sources[i]),
            tuple(words[1][w] for w in entries.targets[i]),
            entries.scores[i].tolist(),
            [(a >> 8, a & 255) for a in entries.alignments[i].tolist()],
            entries.counts[i].tolist(),
        )
        for i in range(len(entries.sources))
    ]


def check(found, expected):
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[3] for row in found] == [row[3] for row in expected]
    for entry, naive in zip(found, expected, strict=True):
        assert entry[2] == pytest.approx(naive[2], rel=1e-5, abs=1e-5)
        assert entry[4] == pytest.approx(naive[4], rel=1e-5, nan_ok=True)


TEXT = b"das haus ist gr\xfcn !\n\nnicht das haus ist haus\tdas\r\n&apos;s &#124; das @num@ nie gesehen | a|b ||\n"


# Rejected for negative or infinite scores, or malformed alignments.
REFUSED = {"zero and negative", "numbers in other forms", "broken fields"}


# Rejected, because Moses would split words at a bar.
FACTORED = {"factored source", "factored target", "factored both", "pipes", "stray pipes", "twelve columns"}


@pytest.mark.parametrize("name", sorted(FACTORED))
def test_factored_tables_are_refused(tmp_path, name):
    table = TABLES[name]
    path = write(tmp_path / "table.gz", table)
    columns = len(tokens(table.split(b"|||")[2]))
    with pytest.raises(
        DataError, match=r"table.gz:\d+: the (source has a word with|target word .*\|.* has) a bar; factored"
    ):
        our_entries(path, TEXT, columns)


@for_each("name", sorted(set(TABLES) - REFUSED - FACTORED - {"empty"}))
def test_tables_with_all_oddities(tmp_path, name):
    table = TABLES[name]
    columns = len(tokens(table.split(b"|||")[2].split(b"\n")[0].removesuffix(b"\r")))
    path = write(tmp_path / "table.gz", table)
    expected = naive_entries(table, TEXT)
    check(our_entries(path, TEXT, columns), expected)
    check(our_entries(path, TEXT, columns, threads=2), expected)


WORDS = st.sampled_from([b"a", b"b", b"c", b"\xc3\xa9"])
# An entry may have no target words; one without source words is never used.
PHRASE = st.lists(WORDS, min_size=0, max_size=3).map(b" ".join)
TARGET = st.lists(WORDS, max_size=3).map(b" ".join)
SCORES = st.lists(st.sampled_from([b"0.5", b"1e-3", b"0", b"2.718", b"1e-44", b"1"]), min_size=2, max_size=2)
POINTS = st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), max_size=4)
COUNTS = st.sampled_from([b"", b"3", b"5 3", b"8 5 3", b"8.5 1.5599e+06 0.25", b"8 5 3 2", b"x 5 1-"])


@st.composite
def table_lines(draw):
    fields = [draw(PHRASE), draw(TARGET), b" ".join(draw(SCORES))]
    if draw(st.booleans()):
        fields.append(b" ".join(b"%d-%d" % point for point in draw(POINTS)))
        if draw(st.booleans()):
            fields += [draw(COUNTS), *draw(st.sampled_from([[], [b""], [b"", b"{{x}}"]]))]
    return draw(st.sampled_from([b" ||| ", b" ||| ", b"|||", b"\t||| "])).join(fields)


@given(
    st.lists(table_lines(), max_size=12),
    st.lists(st.lists(WORDS, max_size=5).map(b" ".join), max_size=4),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
def test_random_tables(workspace, lines, sentences, end, closed):
    table = b"".join(line + end for line in lines)
    if lines and not closed:
        table = table[: -len(end)]
    text = b"\n".join(sentences)
    path = workspace / "random-table"
    path.write_bytes(table)
    check(our_entries(path, text, 2), naive_entries(table, text))


def test_phrases_longer_than_twenty_words_are_never_looked_up(tmp_path):
    words = [b"w%d" % i for i in range(25)]
    lines = [b"%s ||| x ||| 1\n" % b" ".join(words[:n]) for n in (1, 19, 20, 21, 25)]
    result = our_entries(write(tmp_path / "t", b"".join(lines)), b" ".join(words), 1)
    assert [len(row[0]) for row in result] == [1, 19, 20]


def test_an_empty_table(tmp_path):
    assert our_entries(write(tmp_path / "t", b""), b"das", 4) == []
    assert our_entries(write(tmp_path / "t", TABLES["one line"]), b"", 1) == []


def many_lines(bad=None, at=1500, lines=3000):
    """Return a table of several blocks; `bad` replaces line number `at`."""
    rows = [b"a ||| x%d ||| 0.5 0.5 ||| 0-0 ||| 3 2 1 ||| |||%s\n" % (i, b" " * 1000) for i in range(1, lines + 1)]
    rows[1::2] = [row.replace(b"a |||", b"b%d |||" % i) for i, row in enumerate(rows[1::2])]
    if bad is not None:
        rows[at - 1] = bad
    return b"".join(rows)


@for_each(
    ("bad", "message"),
    [
        (b"a ||| x ||| 0.5 -0.5\n", "a score is negative"),
        (b"a ||| x ||| 0.5 -1e-9 ||| 0-0\n", "a score is negative"),
        (b"a ||| x ||| 0.5 inf\n", "a score is infinite"),
        (b"a ||| x ||| 0.5 1e39\n", "a score is infinite"),
        (b"a ||| x ||| 0.5 0.5 ||| 0-0 1\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5 0.5 ||| 0-\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5 0.5 ||| a-b\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5 0.5 ||| 0-256\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5 0.5 ||| 18446744073709551616-0\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5 0.5 ||| 0-0-0\n", "the alignment is not a list"),
        (b"a ||| x ||| 0.5\n", "score"),
        (b"a ||| x ||| 0.5 0.5 0.5\n", "score"),
        (b"a ||| x ||| 0.5 nan\n", ""),
        (b"a ||| x ||| 0.5 x\n", ""),
        (b"a ||| x\n", ""),
        (b"\n", ""),
    ],
)
@for_each("threads", [1, 2])
def test_a_bad_line_is_named(workspace, bad, message, threads):
    path = workspace / "faults.gz"
    path.write_bytes(gzip.compress(many_lines(bad, 2501), 1))
    with pytest.raises(DataError, match=f"faults.gz:2501: .*{message}"):
        our_entries(path, b"a", 2, threads)


def test_the_first_bad_line_is_named(tmp_path):
    with pytest.raises(DataError, match="t:2: "):
        our_entries(write(tmp_path / "t", MALFORMED), b"das haus", 2)


def test_columns_that_the_model_does_not_have(tmp_path):
    with pytest.raises(DataError, match="t:1: the entries have 4 scores, but the model expects 5"):
        our_entries(write(tmp_path / "t", TABLES["seven fields"]), TEXT, 5)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.99])
def test_damaged_gzip(tmp_path, cut):
    whole = gzip.compress(many_lines(), 1)
    path = tmp_path / "t.gz"
    path.write_bytes(whole[: int(cut * len(whole))])
    with pytest.raises(DataError, match="end too early"):
        our_entries(path, b"a", 2)
    path.write_bytes(whole[: len(whole) // 2] + b"x" * 100 + whole[len(whole) // 2 + 100 :])
    with pytest.raises(DataError, match=r"damaged|score|field|entry"):
        our_entries(path, b"a", 2)


def test_progress_is_told(tmp_path):
    path = write(tmp_path / "t", many_lines())
    recorded = []
    load_entries(str(path), InputPhrases.of(b"a"), Symbols(), 2, progress=lambda *where: recorded.append(where))
    assert len(recorded) > 1
    assert recorded[-1] == (path.stat().st_size, 3000)


# Reordering tables.


def reordering(tmp_path, table, lines, columns=2, text=b"a b\n", **options):
    source, targets = InputPhrases.of(text), Symbols()
    entries = load_entries(str(write(tmp_path / "pt", table)), source, targets, 1)
    return load_reordering(str(write(tmp_path / "ro.gz", lines)), entries, source, targets, columns, **options)


TABLE = b"".join(
    b"%s ||| %s ||| 1\n" % pair
    for pair in [(b"a", b"x"), (b"a", b"x y"), (b"a", b""), (b"b", b"x"), (b"a b", b"x"), (b"c", b"x"), (b"a", b"x")]
)


@pytest.mark.parametrize("threads", [1, 2])
def test_reordering_scores_find_their_entries(tmp_path, threads):
    lines = (
        b"a b ||| x ||| 0.5 0.25\n"
        # Lines may be in any order, and pairs that the phrase table lacks are ignored.
        b"a ||| x ||| 0.125 1 \nc ||| x ||| 0.1 0.1\na ||| z ||| 0.2 0.2\na ||| y x ||| 0.2 0.2\n"
        b"b ||| new ||| 0.3 0.3\n"
        b"a |||  ||| 0 2.718\n"
    )
    result = reordering(tmp_path, TABLE, lines, threads=threads)
    eighth, half = [-math.log(8), 0.0], [math.log(0.5), math.log(0.25)]
    # In the order of the phrase table; 0 without a line; a pair that occurs twice has its scores twice.
    expected = [eighth, [0, 0], [-100, 0.999896], [0, 0], half, eighth]
    assert result == pytest.approx(np.array(expected), abs=1e-6)


def test_the_last_line_of_a_pair_counts(tmp_path):
    lines = b"a ||| x ||| 0.5 0.5\n" + b"".join(b"b ||| x ||| 0.%d 0.5\n" % i for i in range(1, 10))
    result = reordering(tmp_path, TABLE, lines + b"a ||| x ||| 0.25 0.5\n")
    assert result[0] == pytest.approx([math.log(0.25), math.log(0.5)])
    assert result[3] == pytest.approx([math.log(0.9), math.log(0.5)])


def test_faults_of_reordering_tables(tmp_path):
    with pytest.raises(DataError, match=r"ro.gz:2: the last line has no line feed, so Moses ignores it"):
        reordering(tmp_path, TABLE, b"a ||| x ||| 0.5 0.5\nb ||| x ||| 0.5 0.5")
    # The line of another text makes no difference.
    reordering(tmp_path, TABLE, b"a ||| x ||| 0.5 0.5\nc ||| x ||| 0.5 0.5")
    with pytest.raises(DataError, match=r"ro.gz:1: the entries have 2 scores, but the model expects 6"):
        reordering(tmp_path, TABLE, b"a ||| x ||| 0.5 0.5\n", 6)
    with pytest.raises(DataError, match=r"ro.gz:2: a score is negative"):
        reordering(tmp_path, TABLE, b"a ||| x ||| 0.5 0.5\nb ||| x ||| 0.5 -1\n")
    with pytest.raises(DataError, match="source alone"):
        reordering(tmp_path, TABLE, b"a ||| 0.5 0.5\n", source_only=True)


@settings(max_examples=40)
@given(st.lists(st.tuples(PHRASE, TARGET, SCORES), max_size=15), st.lists(st.tuples(PHRASE, TARGET), max_size=10))
def test_random_reordering_tables(workspace, rows, pairs):
    table = b"".join(b"%s ||| %s ||| 1\n" % pair for pair in pairs)
    lines = b"".join(b"%s ||| %s ||| %s\n" % (s, t, b" ".join(scores)) for s, t, scores in rows)
    (workspace / "pt").write_bytes(table)
    (workspace / "ro").write_bytes(lines)
    source, targets = InputPhrases.of(b"a b c a \xc3\xa9"), Symbols()
    entries = load_entries(str(workspace / "pt"), source, targets, 1)
    result = load_reordering(str(workspace / "ro"), entries, source, targets, 2)
    last = {(s, t): [log(float(score)) for score in scores] for s, t, scores in rows}
    phrases = spans(b"a b c a \xc3\xa9")
    kept = [pair for pair in pairs if tuple(pair[0].split()) in phrases]
    assert result == pytest.approx(np.array([last.get(pair, [0, 0]) for pair in kept]).reshape(-1, 2), abs=1e-5)


def test_pairs_that_were_used(tmp_path):
    table = (
        b"a ||| x ||| 1\na ||| x a ||| 1\na ||| ! ||| 1\na &apos;s ||| x ||| 1\nb ||| x ||| 1\na ||| x ||| 0.5\n"
        b"b ||| \xe4 ||| 1\n"
    )
    source, targets = InputPhrases.of(b"a &apos;s b c\n"), Symbols()
    entries = load_entries(str(write(tmp_path / "t", table)), source, targets, 1)
    built = build_table(entries, source.symbols, targets, np.arange(len(source.symbols), dtype=np.int32))
    uses = np.arange(1, len(built) + 1)
    uses[list(built.targets.lengths).index(1)] = 10
    uses[[i for i in range(len(built)) if targets.join(built.targets[i]) == b"!"]] = 0
    rows = {}
    for entry, number in enumerate(uses.tolist()):
        if built.copies[entry] or not number:
            continue
        first, last = built.index.offsets[built.entry_sources[entry] :][:2]
        pair = source.symbols.join(built.index.words[first:last]), targets.join(built.targets[entry])
        rows[pair] = rows.get(pair, 0) + number
    # Both entries of a pair are counted together; copies and unused entries are not listed.
    assert len(rows) == 5
    assert used_pairs(built, uses) == b"".join(sorted(b"%s ||| %s ||| %d\n" % (*p, n) for p, n in rows.items()))
    assert used_pairs(built, np.zeros(len(built), np.int64)) == b""
