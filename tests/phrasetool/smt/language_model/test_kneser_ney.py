import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.language_model.kneser_ney import (
    discounts_from,
    estimate_language_model,
    estimate_on_disk,
    pruning_thresholds,
)
from phrasetool.smt.language_model.ngram_counts import MARKERS, DiskText
from tests.conftest import ROOT
from tests.phrasetool.smt.language_model.naive import kneser_ney, logarithm
from tests.scored_words import score_words

CORPORA = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=12)


def estimate(text, *arguments, **options):
    symbols = Symbols(MARKERS)
    sentences = symbols.read_lines(text)
    return estimate_language_model(symbols.words, sentences, *arguments, **options)


def named(model):
    return {
        tuple(model.words[i].decode() for i in words): (float(p), float(b))
        for table in model.tables
        for words, p, b in zip(table.words, table.log_probabilities, table.backoffs, strict=True)
    }


@given(CORPORA, st.integers(1, 4), st.lists(st.integers(0, 2), max_size=4).map(sorted))
def test_the_formulas(corpus, order, prune):
    text = "".join(" ".join(sentence) + "\n" for sentence in corpus).encode()
    result = estimate(text, order, prune[:order])
    thresholds = pruning_thresholds(prune[:order], order)
    expected = kneser_ney(corpus, order, thresholds, [discounts.amounts for discounts in result.discounts])
    ngrams = named(result.model)
    assert set(ngrams) == set(expected)
    for ngram, (p, b) in expected.items():
        assert ngrams[ngram] == pytest.approx((logarithm(p), logarithm(b)), abs=1e-5), ngram


@given(CORPORA, st.integers(1, 4), st.lists(st.integers(0, 2), max_size=4).map(sorted))
def test_probabilities_add_up_to_one(corpus, order, prune):
    from phrasetool.smt.language_model.automaton import LanguageModel

    text = "".join(" ".join(sentence) + "\n" for sentence in corpus).encode()
    model = LanguageModel(estimate(text, order, prune[:order]).model)
    words = np.array([i for i, word in enumerate(model.words) if word != b"<s>"], np.int32)
    states = {0, model.begin_state}
    for sentence in corpus:
        state = model.begin_state
        for word in sentence:
            _, state = score_words(model, model.ids([word.encode()]), state)
            states.add(state)
    for state in states:
        total = sum(10 ** float(score_words(model, words[i : i + 1], state)[0][0]) for i in range(len(words)))
        assert total == pytest.approx(1, abs=1e-5)


# Written by lmplz of kenlm (commit 4cb443e) with `-o 3 --prune 0 1 1 --discount_fallback`.  The last new word occurs
# twice after the same word, so that the discounts show that lmplz uses the raw count there.
CORPUS = b"""\
the cat sat on the mat .
a dog sat on the mat .
the cat saw a dog .

a dog saw the cat .
the cat sat .
the dog sat on a mat .
the cat ran .
a cat ran .
"""
LMPLZ = """\
-1.1592568	<unk>	0
0	<s>	-0.10914446
-1.145164	</s>	0
-1.1592568	the	-0.08543021
-1.145164	cat	-0.06694682
-1.145164	sat	-0.043465663
-0.9721005	on	-0.10473536
-1.145164	mat	-0.06694678
-0.8259356	.	-0.22184873
-1.1592568	a	-0.032184668
-1.145164	dog	-0.032184668
-1.145164	saw	0
-0.9721005	ran	-0.24303809
-0.35364294	. </s>	0
-0.5588967	<s> the	-0.4725736
-0.5706726	on the	-0.049904294
-0.88528085	the cat	-0.019279199
-0.8324616	cat sat	0
-0.86042786	dog sat	-0.049904294
-0.7173386	sat on	-0.032624487
-0.7800313	the mat	-0.049904294
-0.5673034	mat .	-0.6419315
-0.28913268	ran .	-0.049904294
-1.2684013	<s> a	-0.032624487
-0.86042786	a dog	0
-0.82814425	cat ran	-0.049904294
-0.05900864	mat . </s>	0
-0.29806837	ran . </s>	0
-0.49260655	sat on the	0
-0.15056483	<s> the cat	0
-0.73492324	the cat sat	0
-0.5536827	dog sat on	0
-0.5909374	on the mat	0
-0.45595276	the mat .	0
-0.24668089	cat ran .	0
-0.69833827	<s> a dog	0
"""


def test_a_small_corpus_agrees_with_lmplz():
    rows = [line.split("\t") for line in LMPLZ.splitlines()]
    expected = {tuple(words.split()): (float(p), float(b)) for p, words, b in rows}
    result = estimate(CORPUS, 3, [0, 1, 1])
    assert list(named(result.model)) == list(expected)
    for ngram, values in named(result.model).items():
        assert values == pytest.approx(expected[ngram], abs=2e-6), ngram


def test_discounts_of_the_demo_agree_with_lmplz():
    # Printed by lmplz -o 5 --prune 0 0 1 on standard error.
    result = estimate((ROOT / "cli/phrasetool_cli/demo/corpus.en").read_bytes(), 5, [0, 0, 1])
    assert result.counted == [1110, 5205, 7845, 8361, 7949]
    assert [len(table) for table in result.model.tables] == [1110, 5205, 1226, 571, 204]
    expected = [
        (0.399103, 1.31646, 1.88355),
        (0.747357, 1.2263, 1.75335),
        (0.853425, 1.27952, 1.88242),
        (0.924915, 1.33647, 2.37538),
        (0.958658, 1.53502, 2.28988),
    ]
    for discounts, amounts in zip(result.discounts, expected, strict=True):
        assert discounts.estimated
        assert discounts.amounts == pytest.approx(amounts, abs=1e-5)


def test_discounts():
    # The closed form, and cases in which it fails.
    assert discounts_from([10, 5, 3, 2]) == pytest.approx((0.5, 2 - 1.5 * 3 / 5, 3 - 2 * 2 / 3))
    assert discounts_from([10, 0, 3, 2]) is None
    assert discounts_from([10, 5, 3, 0]) == pytest.approx((0.5, 1.1, 3.0))
    assert discounts_from([10, 1, 3, 2]) is None
    result = estimate(b"a b\n", 2)
    assert [discounts.estimated for discounts in result.discounts] == [False, False]
    assert result.discounts[0].amounts == (0.5, 1.0, 1.5)


def test_thresholds():
    assert pruning_thresholds([], 3) == [0, 0, 0]
    assert pruning_thresholds([0, 1], 4) == [0, 1, 1, 1]
    for wrong in ([1, 0], [-1], [0, 0, 0, 0]):
        with pytest.raises(ValueError):
            pruning_thresholds(wrong, 3)


def test_wrong_arguments():
    sentences = Phrases.from_lists([[3, 4]])
    words = [*MARKERS, b"a", b"b"]
    with pytest.raises(ValueError, match="first words"):
        estimate_language_model(words[1:], sentences)
    with pytest.raises(ValueError, match="no sentence"):
        estimate_language_model(words, Phrases.from_lists([]))
    with pytest.raises(ValueError, match=r"outside 3\.\.3"):
        estimate_language_model(words[:4], sentences)
    with pytest.raises(ValueError, match="the order is 0"):
        estimate_language_model(words, sentences, 0)


def test_a_sentence_without_words():
    model = named(estimate(b"\n", 3).model)
    assert set(model) == {("<unk>",), ("<s>",), ("</s>",), ("<s>", "</s>")}


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=40), st.integers(1, 4),
    st.lists(st.integers(0, 2), max_size=4).map(sorted), st.sampled_from([1, 3000, 1 << 30]),
    st.sampled_from([1, 7, 1000]),
)  # fmt: skip
def test_estimation_on_disk_gives_the_same_model(corpus, order, prune, memory, block):
    symbols = Symbols(MARKERS)
    sentences = symbols.read_lines("".join(" ".join(sentence) + "\n" for sentence in corpus).encode())
    expected = estimate_language_model(symbols.words, sentences, order, prune[:order])
    text = DiskText(None, memory)
    text.block = block
    half = len(sentences) // 2
    text.append(sentences.part(0, half))
    text.append(sentences.part(half, len(sentences)))
    result = estimate_on_disk(symbols.words, text, order, prune[:order])
    assert result.discounts == expected.discounts
    assert result.counted == expected.counted
    assert result.model.words == expected.model.words
    for disk_table, table in zip(result.model.tables, expected.model.tables, strict=True):
        whole = disk_table.part(0, len(disk_table))
        np.testing.assert_array_equal(whole.words, table.words)
        np.testing.assert_array_equal(whole.log_probabilities, table.log_probabilities)
        np.testing.assert_array_equal(whole.backoffs, table.backoffs)
