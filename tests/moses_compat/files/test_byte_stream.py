import bz2
import gzip
import lzma

import pytest

from moses_compat.files.byte_stream import BUFFER_BYTES, open_bytes
from phrasetool.embeddings.files import load_vectors
from phrasetool.errors import DataError

zstandard = pytest.importorskip("zstandard")
PACK = [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress]
LINES = b"".join(b"%d line\n" % number for number in range(20_000))


@pytest.mark.parametrize("pack", PACK)
def test_it_reads_as_any_file_does(tmp_path, pack):
    path = tmp_path / "f"
    path.write_bytes(pack(LINES))
    with open_bytes(str(path)) as file:
        assert file.peek(BUFFER_BYTES) == LINES[:BUFFER_BYTES]
        assert file.readline() == b"0 line\n"
        assert file.read(3) == b"1 l"
        assert b"".join(file) == LINES[10:]
    assert file.closed


def test_faults_are_those_of_all_texts(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(lzma.compress(LINES)[:-40])
    with open_bytes(str(path)) as file, pytest.raises(DataError, match="the xz data end too early"):
        file.read()
    with pytest.raises(DataError, match="No such file"):
        open_bytes(str(tmp_path / "none"))


@pytest.mark.parametrize("pack", PACK)
def test_word_vectors_in_every_packing(tmp_path, pack):
    from gensim.models.fasttext import FastText, save_facebook_model

    path = tmp_path / "vectors.gz"
    path.write_bytes(pack(b"2 3\nhaus 1 2 3\nhof 4 5 6\n"))
    assert load_vectors(str(path), [b"hof"], opened=open_bytes)[b"hof"].tolist() == [4, 5, 6]
    model = FastText(vector_size=4, min_count=1, bucket=50, workers=1, seed=1)
    model.build_vocab([["haus", "hof"]] * 5)
    model.train([["haus", "hof"]] * 5, total_examples=5, epochs=1)
    save_facebook_model(model, str(tmp_path / "plain"))
    # Its name says nothing true.
    path.write_bytes(pack((tmp_path / "plain").read_bytes()))
    found = load_vectors(str(path), [b"haus"], opened=open_bytes)
    assert found[b"haus"].tolist() == pytest.approx(model.wv["haus"].tolist(), rel=1e-5)
