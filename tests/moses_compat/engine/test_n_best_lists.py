"""Reading of n-best lists, compared with the slow reader of the tests, and rejected lists."""

import gzip

import pytest

from moses_compat.engine.n_best import described, read_n_best, with_features
from phrasetool.errors import DataError
from tests.commands import write
from tests.n_best_lists import read_n_best as read_slowly
from tests.variants import for_each

LIST = """\
0 ||| a b  ||| LM0= -1.5 TM0= -1 2e-3 ||| -3.25 ||| 0=0 1=1
0 |||  ||| LM0= -2 TM0= -1 0 ||| -4
2 ||| b &#124; c ||| LM0= -1 TM0= 7 0 ||| -5.5
"""


def test_a_list_is_read(tmp_path):
    write(tmp_path / "list", LIST.encode())
    result = read_n_best(str(tmp_path / "list"))
    assert result.names == (("LM0", 1), ("TM0", 2))
    assert described(result.names) == "LM0, TM0 (2)"
    assert result.sentences.tolist() == [0, 0, 2]
    assert result.features.tolist() == [[-1.5, -1, 0.002], [-2, -1, 0], [-1, 7, 0]]
    assert result.totals.tolist() == [-3.25, -4, -5.5]
    assert [result.text(i) for i in range(3)] == [b"a b", b"", b"b &#124; c"]
    assert b"".join(result.lines) == LIST.encode()


@pytest.mark.requires_reference
def test_a_list_of_moses_is_read(reference):
    path = reference / "test_2016_flickr.first300.nbest50.gz"
    result = read_n_best(str(path))
    slow = list(read_slowly(str(path)))
    assert len(slow) == len(result)
    for i, candidate in enumerate(slow):
        assert candidate.sentence == result.sentences[i]
        assert b" ".join(candidate.words) == result.text(i)
        assert candidate.total == result.totals[i]
        assert [value for values in candidate.features.values() for value in values] == result.features[i].tolist()
    assert b"".join(result.lines) == gzip.decompress(path.read_bytes())


@for_each(
    ("line", "changed", "message"),
    [
        (2, b"0 ||| a ||| LM0= -2 TM0= -1 0\n", "not a line of an n-best list"),
        (2, b"x ||| a ||| LM0= -2 TM0= -1 0 ||| 1\n", "not a line of an n-best list"),
        (2, b"\n", "not a line of an n-best list"),
        (2, b"0 ||| a ||| LM0= -2 TM0= -1 ||| 1\n", r"features LM0, TM0, but the lines before have LM0, TM0 \(2\)"),
        (2, b"0 ||| a ||| LM1= -2 TM0= -1 0 ||| 1\n", "has the features LM1"),
        (2, b"0 ||| a ||| LM0= -2 TM0= -1 0 ||| one\n", "the total 'one' is not a finite number"),
        (2, b"0 ||| a ||| LM0= -2 TM0= -1 nan ||| 1\n", "the feature value 'nan' is not a finite number"),
        (3, b"2 ||| a ||| LM0= -2 TM0= -1 x ||| 1\n", "the feature value 'x' is not a finite number"),
        (1, b"0 ||| a ||| -2 ||| 1\n", "a value without the name"),
        (1, b"0 ||| a ||| LM0= 1 LM0= 2 ||| 1\n", "a feature that occurs twice"),
        (1, b"3 ||| a ||| LM0= -2 TM0= -1 0 ||| 1\n", "sentence 0 after sentence 3"),
    ],
)  # fmt: skip
def test_damaged_lines_are_refused_by_their_number(tmp_path, line, changed, message):
    lines = LIST.encode().splitlines(keepends=True)
    lines[line - 1] = changed
    write(tmp_path / "list", b"".join(lines))
    with pytest.raises(DataError, match=message) as error:
        read_n_best(str(tmp_path / "list"))
    # A decreasing sentence number is an error of the line after the changed one.
    assert error.value.line == line + ("after" in message)


def test_an_empty_list_is_refused(tmp_path):
    write(tmp_path / "list", b"")
    with pytest.raises(DataError, match="no hypotheses"):
        read_n_best(str(tmp_path / "list"))


def test_features_are_appended_and_nothing_else_changes():
    first, second, third = LIST.encode().splitlines(keepends=True)
    assert with_features(first, b"N0= -1") == first.replace(b"2e-3 |||", b"2e-3 N0= -1 |||")
    assert with_features(second, b"N0= -1", b"7") == b"0 |||  ||| LM0= -2 TM0= -1 0 N0= -1 ||| 7\n"
    assert with_features(first, b"", b"7") == first.replace(b"-3.25", b"7")
    assert with_features(third, b"") == third


SPARSE = b"""\
0 ||| a ||| LM0= -1 TM_a~b= 1 TM0= -1 2 ||| -1
0 ||| b ||| LM0= -2 TM0= -1 3 ||| -2
1 ||| c ||| TM_c= 0.5 LM0= -3 TM0= -1 4 TM_a~b= 2 ||| -3
"""


def test_sparse_features_are_0_where_they_are_not_named(tmp_path):
    result = read_n_best(str(write(tmp_path / "list", SPARSE)))
    assert result.names == (("LM0", 1), ("TM0", 2), ("TM_a~b", 1), ("TM_c", 1))
    assert (result.sparse, result.sparse_names, result.dense) == (2, ["TM_a~b", "TM_c"], (2, 3))
    assert result.features.tolist() == [[-1, -1, 2, 1, 0], [-2, -1, 3, 0, 0], [-3, -1, 4, 2, 0.5]]
    assert b"".join(result.lines) == SPARSE
    changed = result.with_sparse(["TM_x", "TM_c"])
    assert changed.names == (("LM0", 1), ("TM0", 2), ("TM_x", 1), ("TM_c", 1))
    assert changed.features.tolist() == [[-1, -1, 2, 0, 0], [-2, -1, 3, 0, 0], [-3, -1, 4, 0, 0.5]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"TM_c= 0.5", b"TM_a~b= 0.5", r"list:3: the feature TM_a~b occurs twice"),
        (b"TM_c= 0.5", b"TM_c= x", r"list:3: the feature value 'x' is not a finite number"),
        (b"TM0= -1 4", b"TM0= -1", r"list:3: has the features LM0, TM0, but the lines before have LM0, TM0 \(2\)"),
        (b"LM0= -2 TM0= -1 3", b"", r"list:2: has the features , but the lines before"),
    ],
)
def test_faults_of_lists_with_sparse_features(tmp_path, old, new, message):
    assert old in SPARSE
    with pytest.raises(DataError, match=message):
        read_n_best(str(write(tmp_path / "list", SPARSE.replace(old, new))))
