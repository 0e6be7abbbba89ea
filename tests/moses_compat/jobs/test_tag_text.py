import gzip
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moses_compat.corpora.treebanks import read_conllu
from moses_compat.jobs import tag_text as module
from moses_compat.jobs.tag_text import FORMATS, tag_text
from phrasetool.errors import DataError
from phrasetool.tagger.data import UPOS
from phrasetool.tagger.model import TaggerModel
from phrasetool.tagger.settings import TaggerShape
from phrasetool.tagger.training import TaggerNetwork
from phrasetool.vocabulary import unescape

TAGS = (*UPOS, "ADP+DET", "VERB+PRON+PRON")
SHAPE = TaggerShape(997, 6, 5, 1, len(TAGS))


@pytest.fixture(scope="module")
def model():
    """A model that predicts arbitrary tags."""
    network = TaggerNetwork(SHAPE, 1)
    with torch.no_grad():
        network.features.weight[1:].normal_(std=3.0, generator=torch.Generator().manual_seed(1))
        network.output.weight.mul_(20)
        network.output.bias[len(UPOS) :] += 3
    return TaggerModel(["de"], TAGS, SHAPE, network.arrays())


def tagged(model, folder, text, form="tags", **options):
    source = folder / "text"
    source.write_bytes(text)
    report = tag_text(model, "de", str(source), str(folder / "out"), form, **options)
    return (folder / "out").read_bytes(), report


def test_tags_are_those_of_the_model_for_words_without_escapes(model, tmp_path):
    out, report = tagged(model, tmp_path, b"ein &quot; Haus &#124;\n  im\tHaus  \nzu &amp;")
    expected = model.tag([["ein", '"', "Haus", "|"], ["im", "Haus"], ["zu", "&"]], "de")
    assert out.decode() == "".join(" ".join(tags) + "\n" for tags in expected)
    assert (report.sentences, report.words) == (3, 8)
    assert report.joined == sum("+" in tag for tags in expected for tag in tags)


def test_factored_words_are_as_written_but_for_bars(model, tmp_path):
    tags, _ = tagged(model, tmp_path, b"a|b &#124; c&amp;d \xff\n")
    out, _ = tagged(model, tmp_path, b"a|b &#124; c&amp;d \xff\n", "factored")
    words = [b"a&#124;b", b"&#124;", b"c&amp;d", b"\xff"]
    assert out.split() == [word + b"|" + tag for word, tag in zip(words, tags.split(), strict=True)]


def test_conllu_reads_back(model, tmp_path):
    text = b"das ist ein Haus im Wald .\nich gebe es dir &amp; ihr\n" * 5
    tags, report = tagged(model, tmp_path, text)
    assert report.joined, "else nothing is tested of joined tags"
    tagged(model, tmp_path, text, "conllu")
    sentences = read_conllu(str(tmp_path / "out"))
    for sentence, line, tags_of_line in zip(sentences, text.splitlines(), tags.decode().splitlines(), strict=True):
        assert [form for form, _ in sentence.tokens] == unescape(line).decode().split()
        assert "+".join(sentence.tags) == tags_of_line.replace(" ", "+")


@pytest.mark.parametrize("form", FORMATS)
def test_threads_and_sizes_of_reading_change_nothing(model, tmp_path, form, monkeypatch):
    rng = np.random.default_rng(1)
    lines = [" ".join(f"w{i}" for i in rng.integers(0, 50, rng.integers(1, 12))) for _ in range(1200)]
    text = "\n".join(lines).encode()
    whole, _ = tagged(model, tmp_path, text, form)
    from moses_compat.files import streams

    monkeypatch.setattr(streams, "BYTES_PER_BLOCK", 100)
    assert tagged(model, tmp_path, text, form, threads=2)[0] == whole
    assert tagged(model, tmp_path, text, form)[0] == whole
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert tagged(model, tmp_path, text, form, threads=2)[0] == whole


word = st.text(st.characters(exclude_categories=("Z", "Cc", "Cs")), min_size=1, max_size=6)


@given(st.lists(st.lists(word, min_size=1, max_size=6), min_size=1, max_size=5))
def test_as_many_tags_as_words_and_lines_in_step(model, tmp_path_factory, sentences):
    folder = tmp_path_factory.mktemp("drawn")
    text = "".join(" ".join(words) + "\n" for words in sentences).encode()
    for form in ("tags", "factored"):
        out, _ = tagged(model, folder, text, form)
        lines = out.decode().removesuffix("\n").split("\n")
        assert [len(line.split(" ")) for line in lines] == [len(words) for words in sentences]
    assert all(factor.count("|") == 1 for line in lines for factor in line.split(" "))


def test_blocks_are_small_enough_to_stream(model, tmp_path, monkeypatch):
    block_sizes = []
    real = TaggerModel.tag
    monkeypatch.setattr(
        TaggerModel, "tag", lambda self, block, language: block_sizes.append(len(block)) or real(self, block, language)
    )
    tagged(model, tmp_path, b"a b\n" * (2 * module._LINES + 1))
    assert block_sizes == [module._LINES, module._LINES, 1]


def test_an_empty_line_is_an_error_with_its_number_and_nothing_is_left(model, tmp_path):
    with pytest.raises(DataError, match=r"text:2: the line is empty"):
        tagged(model, tmp_path, b"a\n \nb\n")
    assert not (tmp_path / "out").exists()


def test_an_empty_text(model, tmp_path):
    with pytest.raises(DataError, match="the file contains no text"):
        tagged(model, tmp_path, b"")
    assert not (tmp_path / "out").exists()
    assert tagged(model, tmp_path, b"", allow_empty=True)[0] == b""


def test_an_output_named_gz_is_compressed(model, tmp_path):
    (tmp_path / "text").write_bytes(b"ein Haus\n" * 3)
    tag_text(model, "de", str(tmp_path / "text"), str(tmp_path / "out.gz"))
    assert len(gzip.decompress((tmp_path / "out.gz").read_bytes()).splitlines()) == 3
