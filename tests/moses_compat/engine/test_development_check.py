"""Checks of a development set; those of coverage are tested with `phrasetool tune`."""

import numpy as np
import pytest

from moses_compat.engine.development_check import DevelopmentCheck, DevelopmentFit, check_correspondence
from phrasetool.errors import DataError, PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bleu import bleu_statistics
from phrasetool.watch import SILENT
from tests.moses_compat.experiments.watching import RecordingWatch

SENTENCES = 60


def check(force=False, watch=SILENT):
    return DevelopmentCheck(None, "dev.x", ["dev.y"], force, watch)


def captions(seed=1):
    """Return sentences with the same beginning, so that any two of them share words."""
    rng = np.random.default_rng(seed)
    return Phrases.from_lists([[1, 2, 3, 4, *rng.integers(5, 5000, 60).tolist()] for _ in range(SENTENCES)])


def ask(found, truth, **given):
    def measure(references):
        return bleu_statistics(np.arange(len(found)), found, references)

    check(**given).bleu(measure, [truth], DevelopmentFit(0.9, 0.0))


def test_right_translations_pass():
    truth = captions()
    ask(truth, truth)
    # Poor ones, too: 12 of 64 words are right.
    rows = [[*row[:12], *range(6000, 6052)] for row in truth]
    ask(Phrases.from_lists(rows), truth)


def test_lines_of_other_sentences():
    truth = captions()
    for lines, message in (
        (
            np.roll(np.arange(SENTENCES), 1),
            "dev.y: fits dev.x much better if it is moved up by 1 line; expected its tr",
        ),
        (np.roll(np.arange(SENTENCES), -3), "dev.y: fits dev.x much better if it is moved down by 3 lines"),
        (np.random.default_rng(1).permutation(SENTENCES), "dev.y: its lines share no more words with what table has"),
    ):
        with pytest.raises(PhraseToolError, match=message):
            check_correspondence(truth, truth.select(lines), "dev.x", "dev.y", "table", SILENT)
        watch = RecordingWatch()
        check_correspondence(truth, truth.select(lines), "dev.x", "dev.y", "table", watch, force=True)
        assert len(watch.warned) == 1
    assert check_correspondence(truth, truth, "dev.x", "dev.y", "table", SILENT) > 0.9


def test_weights_that_are_still_to_be_tuned_may_be_bad():
    truth = captions()
    unrelated = Phrases.from_lists([[9000 + i] * 64 for i in range(SENTENCES)])

    def measure(references):
        return bleu_statistics(np.arange(SENTENCES), unrelated, references)

    watch = RecordingWatch()
    check(watch=watch).bleu(measure, [truth], DevelopmentFit(0.9, 0.3), tuned=False)
    assert "reaches BLEU 0.00, expected at least 1" in watch.warned[0]
    for fit, tuned in ((DevelopmentFit(0.9, 0.05), False), (DevelopmentFit(0.9, 0.3), True)):
        with pytest.raises(PhraseToolError, match="expected at least 1"):
            check().bleu(measure, [truth], fit, tuned=tuned)


def test_nothing_in_common():
    unrelated = Phrases.from_lists([[9000 + i] * 64 for i in range(SENTENCES)])
    with pytest.raises(
        PhraseToolError, match=r"dev\.y: .* dev\.x .* 90\.0 % .* reaches BLEU 0\.00, expected at least 1"
    ):
        ask(unrelated, captions())
    watch = RecordingWatch()
    ask(unrelated, captions(), force=True, watch=watch)
    assert len(watch.warned) == 1


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
