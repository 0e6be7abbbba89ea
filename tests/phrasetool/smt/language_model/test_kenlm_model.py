"""Sentence scores of language models, compared with those of kenlm."""

import math
import random

import kenlm
import pytest

from phrasetool.errors import DataError
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.kenlm_model import KenlmModel
from tests.commands import write
from tests.decoder_models import TARGET, random_arpa


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_kenlm(tmp_path, seed):
    rng = random.Random(seed)
    path = str(write(tmp_path / "lm.arpa", random_arpa(rng)))
    words = [*TARGET, b"<unk>", b"never-seen"]
    text = b"".join(b" ".join(rng.choices(words, k=rng.randint(0, 7))) + b"\n" for _ in range(100))
    symbols, ticks = Symbols(), []
    sentences = symbols.read_lines(text)
    model = KenlmModel.load(path)
    scores = model.log_probabilities(sentences, symbols.words, ticks.append)
    reference = kenlm.Model(path)
    assert sum(ticks) == 100
    for row, line in enumerate(text.decode("utf-8", "surrogateescape").splitlines()):
        assert scores[row] == reference.score(line) * math.log(10)


ODD_MODEL = b"""\\data\\
ngram 1=5
ngram 2=1

\\1-grams:
-1\t<unk>
-9\t<s>\t0
-1\t</s>
-0.5\ta\x0bb
-0.25\tc\t0

\\2-grams:
-3\tc c

\\end\\
"""


def test_words_are_not_split(tmp_path):
    """Words with vertical tabs or invalid UTF-8 are scored as one word, unlike with the kenlm package itself."""
    path = write(tmp_path / "lm.arpa", ODD_MODEL)
    model, symbols = KenlmModel.load(str(path)), Symbols()
    sentences = symbols.read_lines(b"a\x0bb\n\xff c\nc\0a\n")
    scores = model.log_probabilities(sentences, symbols.words)
    assert (scores / math.log(10)).tolist() == pytest.approx([-1.5, -2.25, -2])
    assert (b"c" in model, b"c\0a" in model) == (True, False)
    write(path, path.read_bytes().replace(b"a\x0bb", b"\xff"))
    with pytest.raises(DataError, match=r"lm.arpa: has the word b'\\xff', which is not UTF-8"):
        KenlmModel.load(str(path)).log_probabilities(sentences, symbols.words)


def test_kenlm_prints_nothing(tmp_path, capfd):
    """Nothing is printed for a model without `<unk>`, to which kenlm assigns a probability."""
    path = write(tmp_path / "lm.arpa", ODD_MODEL.replace(b"ngram 1=5", b"ngram 1=4").replace(b"-1\t<unk>\n", b""))
    assert b"x" not in KenlmModel.load(str(path))
    assert capfd.readouterr().err == ""


def test_files_that_are_not_models_are_refused(tmp_path):
    path = write(tmp_path / "text", b"hello\n")
    for name, message in (
        (tmp_path / "none", "none: No such file or directory"),
        (tmp_path, "is not a regular file"),
        (path, r'text: kenlm cannot read it as a language model: first non-empty line was "hello" not'),
    ):
        with pytest.raises(DataError, match=message):
            KenlmModel.load(str(name))
