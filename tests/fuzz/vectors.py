"""Targets: word vectors in the forms of word2vec, GloVe and fastText."""

from __future__ import annotations

import numpy as np

from phrasetool.embeddings.files import load_vectors
from tests.fuzz.target import Target, Wrong, written

_WANTED = [b"das", b"haus", b"gr\xc3\xbcn", b"a b", b"x"]
_TEXT = b"das 1 2 3 4\nhaus 0 1 0 -1e-5\na b .5 .5 .5 .5\ngr\xc3\xbcn 1 1 1 1\n"
_ROWS = np.arange(12, dtype="<f4").reshape(3, 4)
_BINARY = b"3 4\n" + b"".join(
    word + b" " + row.tobytes() + b"\n" for word, row in zip((b"das", b"haus", b"x"), _ROWS, strict=True)
)


def _run(data: bytes) -> None:
    result = load_vectors(written("vectors", data), _WANTED)
    if len({vector.shape for vector in result.values()}) > 1 or any(v.ndim != 1 for v in result.values()):
        raise Wrong("vectors of different lengths")
    if any(vector.dtype != np.float32 for vector in result.values()):
        raise Wrong("vectors of another type")


TARGETS = (
    Target("word vectors", [_TEXT, b"4 4\n" + _TEXT], _run, (b"3 4\n", b"1e39", b"nan", b" ")),
    Target("binary word vectors", [_BINARY], _run, (b"3 4\n", b"\xba\x16\x4f\x2f", b"9" * 19 + b" 4\n")),
)
