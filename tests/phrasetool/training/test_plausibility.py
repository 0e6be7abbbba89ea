import numpy as np
import pytest

from phrasetool.errors import PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.training.pairs import PhrasePairs
from phrasetool.training.plausibility import check_pairs, doubting
from phrasetool.vocabulary import Vocabulary
from phrasetool.watch import Watch


def vocabulary(words):
    return Vocabulary([b"<unk>", *words], [0] + [1] * len(words))


def pairs(total, equal):
    """Pairs of two words, so many of which have equal sides, with vocabularies in different orders."""
    words = [b"w%d" % i for i in range(total)]
    sources = [[1 + i, 1] for i in range(total)]
    targets = [[total - i, total if i < equal else total - 1] for i in range(total)]
    ones = np.ones(total, np.int64)
    return PhrasePairs(
        Phrases.from_lists(sources), Phrases.from_lists(targets), ones, vocabulary(words), vocabulary(words[::-1])
    )


def doubts(check, *arguments):
    found = []
    check(*arguments, found.append)
    return found


@pytest.mark.parametrize(("total", "equal"), [(15, 0), (20, 20), (99, 99), (100, 98), (2000, 1000)])
def test_pairs_that_can_be_learnt_from(total, equal):
    assert doubts(check_pairs, "p", pairs(total, equal)) == []


def test_few_pairs():
    assert doubts(check_pairs, "p", pairs(14, 0)) == [
        "p: 14 distinct phrase pairs to learn from, expected some 20 at least"
    ]


@pytest.mark.parametrize(("total", "equal"), [(100, 99), (2000, 1001)])
def test_equal_sides(total, equal):
    assert doubts(check_pairs, "p", pairs(total, equal)) == [
        f"p: {equal:,} of {total:,} pairs have the same phrase on both sides, expected phrases and their translations"
    ]


def test_a_doubt_stops_or_is_a_warning():
    class Listening(Watch):
        def warn(self, message):
            heard.append(message)

    heard = []
    with pytest.raises(PhraseToolError, match=r"^odd$") as caught:
        doubting(Listening(), force=False)("odd")
    assert caught.value.remedy == "go on"
    assert heard == []
    doubting(Listening(), force=True)("odd")
    assert heard == ["odd"]
