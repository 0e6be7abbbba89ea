"""Round trips of packed values, and the rejection of malformed bytes and of objects outside phrasetool."""

import json
import math
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from phrasetool.disk.packed_values import packed, unpacked
from phrasetool.phrase_encoder.scoring import Scores
from phrasetool.pruning.measures import SIMILARITIES, Measures
from phrasetool.pruning.statistics import PruneStatistics
from tests.variants import for_each

NUMBERS = st.sampled_from([np.int32, np.int64, np.uint8, np.float32, np.float64, np.bool_])
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    NUMBERS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))),
    NUMBERS.map(lambda kind: kind(1)), NUMBERS,
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(), st.integers(), st.booleans()), inner, max_size=4),
    ),
    max_leaves=20,
)


def same(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.generic):
        assert one.tobytes() == other.tobytes()
    else:
        assert one == other


@given(VALUES)
def test_round_trip(value):
    same(value, unpacked(packed(value)))


def test_objects_of_phrasetool():
    measures = Measures(
        np.array([0, 2]), np.array([1]), np.zeros(2, np.bool_), {SIMILARITIES: np.ones((2, 2), np.float32)}, 0.5
    )
    result = unpacked(packed((measures, Scores(np.ones((2, 2), np.float32), np.ones(2, np.bool_)), PruneStatistics(3))))
    assert isinstance(result[0], Measures)
    assert (result[0][SIMILARITIES] == 1).all()
    assert result[0].alpha == 0.5
    assert isinstance(result[1], Scores)
    assert result[2].entries == 3
    # Unpacked arrays are writable.
    result[1].similarities[0] = 2


@dataclass
class Foreign:
    a: int = 1


@pytest.mark.parametrize("value", [Foreign(), object(), {1, 2}, np.array(["a"]), np.array([None])])
def test_unsupported_values_cannot_be_packed(value):
    with pytest.raises(TypeError, match="cannot pack a "):
        packed([value])


def forged(tree, blobs=b""):
    header = json.dumps(tree).encode()
    return struct.pack("<Q", len(header)) + header + blobs


@for_each(
    "data",
    [
        b"", b"\1", struct.pack("<Q", 9) + b"[", forged([])[:-1],
        forged({"bytes": 3}, b"ab"), forged({"bytes": -3}, b"abc"),
        forged({"array": "<f4", "shape": [1 << 40], "scalar": False}),
        forged({"array": "|O", "shape": [1], "scalar": False}, b"12345678"),
        forged({"array": "<f4", "shape": [-1], "scalar": False}),
        forged({"array": "<f4", "shape": [math.inf], "scalar": False}),
        forged({"array": "<f4", "shape": [True], "scalar": False}, b"1234"),
        forged({"array": "a4", "shape": [1], "scalar": False}, b"1234"),
        forged({"array": "f4, (", "shape": [1], "scalar": False}, b"1234"),
        forged({"type": 3}),
        forged({"object": "os:system", "parts": ["touch sentinel"]}),
        forged({"object": "phrasetool.errors:first_line", "parts": [1]}),
        forged({"object": "phrasetool.errors:DataError", "parts": [1, 2]}),
        forged({"object": "phrasetool.none:Nothing", "parts": []}),
        forged({"object": "phrasetool.phrase_encoder.scoring:Scores", "parts": []}),
        forged({"set": [1]}), forged({}),
        struct.pack("<Q", 100_000) + b"[" * 100_000,
    ],
)  # fmt: skip
def test_malformed_bytes_are_refused(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"invalid packed|cut short|not an allowed|not a number type|invalid shape|Expecting|Extra|empty",
    ):
        unpacked(data)
    assert not list(tmp_path.iterdir())
