import subprocess
import sys

import numpy as np

from phrasetool.embeddings.fasttext import train_fasttext
from tests.commands import clean_environment

TEXT = [[b"the", b"cat", b"sees", b"a", b"dog"], [b"the", b"caf\xe9", b"is", b"old"], []] * 30


def test_every_word_has_a_vector_and_a_seed_fixes_it():
    found = train_fasttext(TEXT, 8, 1)
    assert set(found) == {word for sentence in TEXT for word in sentence}
    assert all(vector.shape == (8,) and vector.dtype == np.float32 for vector in found.values())
    again, other = train_fasttext(iter(TEXT), 8, 1), train_fasttext(TEXT, 8, 2)
    assert all(np.array_equal(found[word], again[word]) for word in found)
    assert not np.array_equal(found[b"cat"], other[b"cat"])
    assert train_fasttext([], 8, 1) == {}


def test_another_process_makes_the_same():
    code = (
        "import sys; from tests.phrasetool.embeddings.test_fasttext import TEXT, train_fasttext; "
        "sys.stdout.write(train_fasttext(TEXT, 8, 1)[b'cat'].tobytes().hex())"
    )
    done = [
        subprocess.run([sys.executable, "-c", code], env=clean_environment(PYTHONHASHSEED=seed), capture_output=True,
                       text=True, check=True)
        for seed in ("1", "2")
    ]  # fmt: skip
    assert done[0].stdout == done[1].stdout == train_fasttext(TEXT, 8, 1)[b"cat"].tobytes().hex()
