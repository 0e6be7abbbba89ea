import numpy as np
import pytest

from moses_compat.files.streams import Input
from moses_compat.lines.fields import phrase_text
from moses_compat.measures.encoded import collect_phrases
from moses_compat.tables.blocks import TableScan
from phrasetool.errors import DataError
from tests.commands import write
from tests.text_encoder_folders import table_lines


def collect(path, ready=lambda text, side: f"{side}:{text}", **options):
    with Input(str(path)) as source:
        return collect_phrases(source, TableScan(**options), ready)


def naive(data):
    """Return the pairs of texts of all entries."""
    pairs = []
    for line in data.splitlines():
        source, target = line.split(b"|||")[:2]
        pairs.append(
            tuple(f"{side}:{phrase_text(p)}" if phrase_text(p) else "" for side, p in enumerate((source, target)))
        )
    return pairs


def test_each_text_once_in_canonical_order(tmp_path):
    data = table_lines(300)
    result = collect(write(tmp_path / "t.gz", data))
    pairs = naive(data)
    for side in range(2):
        texts = {pair[side] for pair in pairs}
        assert result.texts[side] == sorted(texts, key=lambda text: (len(text.encode()), text.encode()))
        assert len(result.keys[side]) == len(texts)
        assert (np.diff(result.keys[side].astype(object)) > 0).all()
        assert sorted(result.rows[side].tolist()) == list(range(len(texts)))
    sample = {(result.texts[0][s], result.texts[1][t]) for s, t, _ in result.sample}
    assert sample == set(pairs)
    assert len(result.sample) == len(pairs)


def test_nothing_depends_on_blocks_or_threads(tmp_path):
    table = write(tmp_path / "t.gz", table_lines(300))
    whole, in_blocks = collect(table), collect(table, block_bytes=100, threads=3)
    assert whole.texts == in_blocks.texts
    assert whole.fingerprint == in_blocks.fingerprint
    for a, b in zip(
        (*whole.keys, *whole.rows, whole.sample), (*in_blocks.keys, *in_blocks.rows, in_blocks.sample), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_phrases_that_read_alike_share_a_vector(tmp_path):
    data = b"[X] ||| a ||| 1\nhaus ||| a ||| 1\nhaus [X] ||| &apos;a ||| 1\nhaus|N ||| 'a ||| 1\n"
    result = collect(write(tmp_path / "t", data))
    assert result.texts == (["0:haus"], ["1:a", "1:'a"])
    assert sorted(result.rows[0].tolist()) == [-1, 0, 0, 0]
    assert sorted(result.rows[1].tolist()) == [0, 1, 1]


def test_pairs_that_any_encoder_recognises_are_marked(tmp_path):
    data = b"! ||| ! ||| 1\nberlin ist ||| Berlin is ||| 1\nein haus ||| a house ||| 1\n3 ||| drei ||| 1\n"
    result = collect(write(tmp_path / "t", data), lambda text, side: text)
    marks = {result.texts[0][s]: bool(t) for s, _, t in result.sample}
    assert marks == {"!": False, "berlin ist": False, "ein haus": True, "3": False}


def test_malformed_lines(tmp_path):
    table = write(tmp_path / "t", b"haus ||| house ||| 1\nno entry\n")
    with pytest.raises(DataError, match="t:2: expected at least 3 fields"):
        collect(table)
    assert collect(table, on_error="skip").texts == (["0:haus"], ["1:house"])


def test_an_empty_table(tmp_path):
    result = collect(write(tmp_path / "t", b""))
    assert result.texts == ([], [])
    assert result.sample.shape == (0, 3)
