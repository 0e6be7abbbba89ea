"""What a development set must be; the findings about coverage are tested with `phrasetool tune`."""

import numpy as np
import pytest

from moses_compat.engine.development_check import DevelopmentCheck
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.watch import NOBODY
from tests.moses_compat.experiments.watching import Told

SENTENCES = 60


def check(force=False, watch=NOBODY):
    return DevelopmentCheck(None, "dev.x", ["dev.y"], force, watch)


def captions(seed=1):
    """Sentences that begin alike: other ones of them share many words."""
    rng = np.random.default_rng(seed)
    return Phrases.from_lists([[1, 2, 3, 4, *rng.integers(5, 5000, 60).tolist()] for _ in range(SENTENCES)])


def ask(found, truth, **given):
    def measure(references):
        return bleu_statistics(np.arange(len(found)), found, references)

    check(**given).bleu(measure, [truth], 0.9)


def test_right_translations_pass():
    truth = captions()
    ask(truth, truth)
    # Poor ones, too: a tenth of the words is right.
    rows = [[*row[:12], *range(6000, 6052)] for row in truth]
    ask(Phrases.from_lists(rows), truth)


def test_lines_of_other_sentences():
    truth = captions()
    moved = truth.select(np.roll(np.arange(SENTENCES), 1))
    with pytest.raises(PhraseToolError, match=r"reaches BLEU \d\.\d\d, and \d\.\d\d with the lines of other sentences"):
        ask(moved, truth)
    # Few sentences may be so by chance.
    few = np.arange(20)
    ask(moved.select(few), truth.select(few))


def test_nothing_in_common():
    other = Phrases.from_lists([[9000 + i] * 64 for i in range(SENTENCES)])
    with pytest.raises(PhraseToolError, match=r"dev\.y: .* 90\.0 % .* dev\.x reaches BLEU 0\.00, expected at least 1"):
        ask(other, captions())
    told = Told()
    ask(other, captions(), force=True, watch=told)
    assert len(told.warned) == 1


def test_texts():
    check().texts(b"a b\nc\n" * 5, [b"a b\nd\n" * 5])
    with pytest.raises(PhraseToolError, match=r"dev\.y: is the same text as dev\.x"):
        check().texts(b"a  b\nc\n", [b"a b\nc"])
    # Lines without words do not count.
    with pytest.raises(PhraseToolError, match=r"dev\.x: has 2 sentences with words; BLEU of so few means nothing"):
        check().texts(b"a b\nc\n" + b"\n" * 20, [b"a b\nd\n" + b"\n" * 20])
    for source, reference, name in ((b"\n", b"a\n", "dev.x"), (b"a\n", b" \n", "dev.y")):
        with pytest.raises(DataError, match=f"{name}: has no words"):
            check(force=True).texts(source, [reference])
