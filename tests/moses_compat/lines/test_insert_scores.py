import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moses_compat.lines.insert_scores import (
    SCALES,
    annotated_lines,
    lines_with_fields,
    scale_similarities,
    selected_lines,
    unscale_scores,
)
from moses_compat.tables.parser import TableParser
from tests import naive
from tests.tables import MALFORMED, MALFORMED_LINES, TABLES

SIMILARITIES = arrays(np.float32, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(-1, 1, width=32))


def parse(data, scores=-1):
    return TableParser(scores=scores)(0, np.frombuffer(data, np.uint8))[0]


@given(SIMILARITIES)
def test_scales_can_be_undone(similarities):
    for scale in SCALES:
        again = unscale_scores(scale_similarities(similarities, scale), scale)
        assert again.dtype == np.float32
        np.testing.assert_allclose(again, similarities, rtol=0, atol=2.1e-6 if scale == "probability" else 1e-6)


@given(SIMILARITIES)
def test_moses_can_take_logarithms_of_all_scales(similarities):
    # The decoder takes the logarithm: s - 1 for exp, and never -infinity.
    exp = scale_similarities(similarities, "exp")
    np.testing.assert_allclose(np.log(exp), similarities.astype(np.float64) - 1, atol=1e-12)
    assert exp.min() >= np.exp(-2.0)
    assert exp.max() <= 1.0
    probability = scale_similarities(similarities, "probability")
    assert probability.min() >= 1e-6
    assert probability.max() <= 1.0


def test_unknown_scale():
    for function in (scale_similarities, unscale_scores):
        with pytest.raises(ValueError, match="unknown scale"):
            function(np.zeros((1, 2), np.float32), "log")


def test_scores_that_no_similarity_gives():
    assert unscale_scores(np.array([0.0, -1.0, np.inf, 5.0]), "exp").tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert unscale_scores(np.array([-3.0, np.inf]), "probability").tolist() == [-1.0, 1.0]


def naive_number(value):
    text = b"%.6f" % (int(np.floor(abs(value) * 1e6 + 0.5)) / 1e6)
    text = text.rstrip(b"0").rstrip(b".")
    return (b"-" if value < 0 and text != b"0" else b"") + text


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(-9.9, 9.9)))
def test_number_format(values):
    data = b"a ||| b ||| 1\n" * len(values)
    lines = annotated_lines(parse(data), values[:, None], np.ones(len(values), np.bool_)).tobytes()
    for value, line in zip(values, lines.splitlines(), strict=True):
        written = line.split()[-1]
        assert written == naive_number(value)
        assert float(written) == pytest.approx(value, abs=5.1e-7)


@given(arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=st.floats(1e-300, 9.9)))
def test_significant_digits(values):
    data = b"a ||| b ||| 1 ||| 0-0\n" * len(values)
    everything = np.ones(len(values), np.bool_)
    lines = annotated_lines(parse(data), values, everything, np.array([False, True, True])).tobytes().splitlines()
    for row, line in zip(values, lines, strict=True):
        assert line == b"a ||| b ||| 1 %b %g %g ||| 0-0" % (naive_number(row[0]), row[1], row[2])
    with pytest.raises(ValueError, match="2 scores cannot be written in one way or the other, but 3"):
        annotated_lines(parse(data), values, everything, np.ones(2, np.bool_))


def test_columns_are_appended_to_the_scores():
    text = {
        b"a ||| b ||| 0.5 1": b"a ||| b ||| 0.5 1 0.25 1",
        b"a ||| b ||| 0.5 1 ": b"a ||| b ||| 0.5 1 0.25 1 ",
        b"a ||| b ||| 0.5 1\r\n": b"a ||| b ||| 0.5 1 0.25 1\r\n",
        b"a ||| b ||| 0.5  1  ||| 0-0\n": b"a ||| b ||| 0.5  1 0.25 1  ||| 0-0\n",
        b"a|||b|||1|||\n": b"a|||b|||1 0.25 1|||\n",
        b"a\t|||\tb\t|||\t1\t|||\n": b"a\t|||\tb\t|||\t1 0.25 1\t|||\n",
        b"a |||  ||| 1 ||| ||| 2 1 1 ||| |||\n": b"a |||  ||| 1 0.25 1 ||| ||| 2 1 1 ||| |||\n",
    }
    for line, expected in text.items():
        out = annotated_lines(parse(line), np.array([[0.25, 1.0]]), np.ones(1, np.bool_)).tobytes()
        assert out == expected
        assert naive.cut_columns(out, 2) == line


def test_malformed_lines_are_not_annotated():
    block = parse(MALFORMED, 2)
    scores = np.full((len(block), 2), 0.5)
    annotated = annotated_lines(block, scores, np.ones(len(block), np.bool_)).tobytes().splitlines(True)
    for number, (line, before) in enumerate(zip(annotated, MALFORMED.splitlines(True), strict=True), 1):
        assert line == (before if number in MALFORMED_LINES else before.replace(b" 0.25", b" 0.25 0.5 0.5"))
    good = annotated_lines(block, scores, ~block.malformed).tobytes()
    assert good == annotated[0] + annotated[8]


def test_infinite_scores_are_refused():
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            annotated_lines(parse(b"a ||| b ||| 1\n"), np.array([[bad]]), np.ones(1, np.bool_))


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_selected_lines(name, data):
    block = parse(TABLES[name])
    lines = [TABLES[name][a:b] for a, b in zip(block.line_offsets, block.line_offsets[1:], strict=False)]
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines))), np.bool_)
    expected = b"".join(line for line, kept in zip(lines, keep, strict=True) if kept)
    assert selected_lines(block.text, block.line_offsets, keep).tobytes() == expected
    assert selected_lines(block.text, block.line_offsets, np.ones(len(lines), np.bool_)).tobytes() == TABLES[name]


def test_a_tiny_negative_similarity_is_zero_without_a_sign():
    text = np.frombuffer(b"a ||| b ||| 1\n", np.uint8)
    block, _ = TableParser()(0, text)
    out = annotated_lines(block, np.array([[-1e-9, -0.25]]), np.ones(1, np.bool_))
    assert out.tobytes() == b"a ||| b ||| 1 0 -0.25\n"


def with_fields(block, keep, counts, values):
    return lines_with_fields(block.text, block.line_offsets, block.malformed, keep, counts, values)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1e6)), min_size=1, max_size=5))
def test_numbers_are_written_as_printf_does(rows):
    data = b"a ||| b ||| 1\r\n" * (len(rows) - 1) + b"a ||| b ||| 1"
    block = parse(data)
    counts, values = (np.array([[row[k]] for row in rows]) for k in (0, 1))
    text = with_fields(block, np.ones(len(rows), bool), counts, values).tobytes()
    assert len(text.split(b"\r\n")) == len(rows)
    for line, (count, value) in zip(text.split(b"\r\n"), rows, strict=True):
        start, written = line.rsplit(b" ||| ", 1)
        assert start == b"a ||| b ||| 1 ||| %d" % count
        assert float(written) == pytest.approx(value, abs=5.1e-7)
        assert b"e" not in written
        assert not (b"." in written and written.endswith(b"0"))


@pytest.mark.parametrize(("counts", "values"), [(3, 1), (0, 2), (2, 0), (0, 0)])
def test_kept_lines_get_fields_before_their_ends(counts, values):
    """The output equals that of naive Python, with malformed lines, carriage returns and an unterminated last line."""
    rng = np.random.default_rng(counts * 9 + values)
    lines = [b"a ||| x ||| 1\r\n", b"no entry\r\n", b"a ||| y ||| 1 ||| 0-0 \n", b"b ||| ||| 1\n", b"c ||| z ||| 1"]
    block = parse(b"".join(lines), 1)
    numbers = rng.integers(0, 10**12, (len(lines), counts))
    scores = np.round(rng.uniform(0, 100, (len(lines), values)), 6)
    for keep in ([True] * 5, [False] * 5, [True, True, False, True, True]):
        expected = b""
        for i in np.flatnonzero(keep):
            content = lines[i].rstrip(b"\r\n") if i != 1 else lines[i]
            expected += content
            if i != 1:
                expected += b" ||| " + b" ".join(b"%d" % n for n in numbers[i]) if counts else b""
                expected += b"".join(b" ||| " + (b"%.6f" % v).rstrip(b"0").rstrip(b".") for v in scores[i])
            expected += lines[i][len(content) :]
        assert with_fields(block, np.array(keep), numbers, scores).tobytes() == expected
