import gzip
import itertools
import random

import kenlm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.engine.arpa import load_language_model, read_arpa, write_arpa
from moses_compat.files.streams import Input, Output
from phrasetool.errors import DataError
from phrasetool.smt.language_model.ngrams import BackoffModel, NgramTable
from tests.commands import write
from tests.phrasetool.smt.language_model.naive import VOCABULARY, histories, models
from tests.scored_words import score_sentence, score_words

SMALL = b"""\
\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-2\t<unk>
0\t<s>\t-0.5
-1\t</s>
-1\ta\t-0.25
-1.5\tb\t-0.125

\\2-grams:
-0.5\t<s> a\t-0.75
-0.25\ta </s>
-0.75\ta b\t0.5

\\3-grams:
-0.0625\t<s> a b

\\end\\
"""


def quiet():
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    return config


def read(path):
    with Input(str(path)) as source:
        return read_arpa(source)


def save(model, path):
    with Output(str(path)) as output:
        write_arpa(model, output)


def arrays(model):
    return [(t.words.tolist(), t.log_probabilities.tolist(), t.backoffs.tolist()) for t in model.tables]


@pytest.mark.parametrize("name", ["small.arpa", "small.arpa.gz"])
def test_reading(tmp_path, name):
    model = read(write(tmp_path / name, SMALL))
    assert model.words == [b"<unk>", b"<s>", b"</s>", b"a", b"b"]
    assert arrays(model) == [
        ([[0], [1], [2], [3], [4]], [-2, 0, -1, -1, -1.5], [0, -0.5, 0, -0.25, -0.125]),
        ([[1, 3], [3, 2], [3, 4]], [-0.5, -0.25, -0.75], [-0.75, 0, 0.5]),
        ([[1, 3, 4]], [-0.0625], [0]),
    ]


VARIANTS = {
    "line ends of Windows": SMALL.replace(b"\n", b"\r\n"),
    "empty lines": b"\n\n" + SMALL.replace(b"\n\\", b"\n\n\n\\"),
    "no empty lines": SMALL.replace(b"\n\n", b"\n"),
    "spaces for tabs": SMALL.replace(b"\t", b" "),
    "blanks at the end": SMALL.replace(b"a b\n", b"a b \t\n"),
    "no line feed at the end": SMALL[:-1],
    "back-offs of 0": SMALL.replace(b"<s> a b", b"<s> a b\t0"),
    "exponents": SMALL.replace(b"-0.5\t<s> a", b"-5e-1\t<s> a"),
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS)
def test_forms_of_the_same(tmp_path, text):
    expected = read(write(tmp_path / "a", SMALL))
    result = read(write(tmp_path / "b", text))
    assert (result.words, arrays(result)) == (expected.words, arrays(expected))


FAULTS = {
    "empty": (b"", 1, "expected \\data\\"),
    "other": (b"hello\nworld\n", 1, "expected \\data\\"),
    "binary": (
        b"mmap lm http://kheafield.com/code format version 5\n\0",
        None,
        "a binary file of kenlm; expected the ARPA",
    ),
    "no counts": (b"\\data\\\n\n\\1-grams:\n", 3, "expected `ngram 1=COUNT`"),
    "wrong counts": (SMALL.replace(b"ngram 2=", b"ngram 3="), 3, "expected `ngram 2=COUNT`"),
    "absurd count": (SMALL.replace(b"2=3", b"2=3000000000"), 3, "3,000,000,000 2-grams cannot be in a file of"),
    "head only": (SMALL[: SMALL.index(b"\n\\1")], 5, "expected \\1-grams: (is the file truncated?)"),
    "too few": (SMALL.replace(b"1=5", b"1=6"), 13, "expected 6 1-grams as in \\data\\, found 5"),
    "too many": (SMALL.replace(b"1=5", b"1=4"), 11, "expected \\2-grams:"),
    "cut": (SMALL[: SMALL.index(b"-0.75\ta b")], 16, "expected 3 2-grams as in \\data\\, found 2 (is the file trunc"),
    "cut in a line": (SMALL[: SMALL.index(b" b\t0.5")], 16, "fewer words than a 2-gram has"),
    "no end": (SMALL[: SMALL.index(b"\\end")], 21, "expected \\end\\ (is the file truncated?)"),
    "no number": (SMALL.replace(b"-0.25\ta </s>", b"x\ta </s>"), 15, "the log10 probability is not a number"),
    "nan": (SMALL.replace(b"-0.25\ta </s>", b"nan\ta </s>"), 15, "the log10 probability is not a number"),
    "positive": (SMALL.replace(b"-0.25\ta </s>", b"0.25\ta </s>"), 15, "the log10 probability is above 0"),
    "bad back-off": (SMALL.replace(b"\t-0.125", b"\tx"), 11, "the log10 back-off is not a number"),
    "long": (SMALL.replace(b"\t-0.125", b"\t-0.125 3"), 11, "more fields than a 1-gram has"),
    "highest": (SMALL.replace(b"<s> a b", b"<s> a b\t-1"), 19, "a back-off in the highest order must be 0"),
    "strange word": (SMALL.replace(b"a </s>", b"zz </s>"), 15, "a word of this n-gram is not among the 1-grams"),
    "twice a word": (SMALL.replace(b"-1.5\tb", b"-1.5\ta"), 11, "the word a occurs twice"),
    "twice": (SMALL.replace(b"a </s>", b"<s> a"), 15, "this 2-gram occurs twice"),
    "no context": (
        SMALL.replace(b"<s> a b", b"b a b"),
        19,
        "the first 2 words of this 3-gram are not listed as a 2-gram",
    ),
    "no begin": (SMALL.replace(b"<s>", b"c"), None, "has no <s>"),
    "no end word": (SMALL.replace(b"</s>", b"c"), None, "has no </s>"),
}


@pytest.mark.parametrize(("text", "line", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_are_named(tmp_path, text, line, message):
    path = write(tmp_path / "bad.arpa", text)
    with pytest.raises(DataError) as error:
        load_language_model(str(path))
    assert str(error.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert message in str(error.value)


def test_a_fault_keeps_its_line_in_a_restricted_model(tmp_path):
    text = SMALL.replace(b"-0.5\t<s> a", b"-0.5\tb b").replace(b"a </s>", b"b </s>")
    path = str(write(tmp_path / "bad.arpa", text))
    with pytest.raises(DataError, match=r"bad.arpa:19: the first 2 words of this 3-gram are not listed as a 2-gram"):
        load_language_model(path, [b"a", b"b"])
    # Without b in the vocabulary, the 3-gram is skipped.
    assert load_language_model(path, [b"a"]).words == [b"<unk>", b"<s>", b"</s>", b"a"]


@given(models())
def test_what_is_written_reads_back(workspace, model):
    path = workspace / "model.arpa.gz"
    save(model, path)
    result = read(path)
    assert (result.words, arrays(result)) == (model.words, arrays(model))


@given(st.lists(st.floats(-99, 0, width=32), min_size=1, max_size=50))
def test_numbers_read_back(workspace, values):
    numbers = np.array(values, np.float32)
    words = [b"<unk>", *(b"w%d" % i for i in range(1, len(numbers)))]
    table = NgramTable(np.arange(len(numbers), dtype=np.int32)[:, None], numbers, np.zeros(len(numbers), np.float32))
    path = workspace / "numbers.arpa"
    save(BackoffModel(words, [table]), path)
    result = read(path).tables[0].log_probabilities
    # Nine decimals are exact for magnitudes above 0.1, and close for smaller ones.
    np.testing.assert_array_equal(result[numbers < -0.1], numbers[numbers < -0.1])
    np.testing.assert_allclose(result, numbers, rtol=0, atol=1e-9)
    texts = [line.split(b"\t")[0] for line in path.read_bytes().split(b"\n") if b"\t" in line]
    assert all(len(text) <= 13 and not (b"." in text and text.endswith(b"0")) for text in texts)


def test_what_is_not_written(tmp_path):
    table = NgramTable(np.zeros((1, 1), np.int32), np.array([-np.inf], np.float32), np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="not finite"):
        save(BackoffModel([b"<unk>"], [table]), tmp_path / "x")
    assert not list(tmp_path.iterdir())


@given(models(min_order=2, with_suffixes=True), st.lists(histories(), min_size=1, max_size=5), st.booleans())
def test_scores_and_states_are_those_of_kenlm(workspace, model, sentences, with_unknown):
    path = workspace / "kenlm.arpa"
    save(model, path)
    if not with_unknown:
        # Rename <unk>, so that the model has no unknown word.
        path.write_bytes(path.read_bytes().replace(b"<unk>", b"d"))
    kenlm_model = kenlm.Model(str(path), quiet())
    loaded = load_language_model(str(path))
    states = {}
    for sentence in sentences:
        words = [VOCABULARY[i] if i else b"never-seen" for i in sentence]
        text = b" ".join(words).decode()
        result = score_sentence(loaded, words)
        assert result == pytest.approx([score for score, _, _ in kenlm_model.full_scores(text)], abs=1e-5)
        assert result.sum() == pytest.approx(kenlm_model.score(text), abs=1e-4)
        before, after, state = kenlm.State(), kenlm.State(), loaded.begin_state
        kenlm_model.BeginSentenceWrite(before)
        for word in words:
            kenlm_model.BaseScore(before, word.decode(), after)
            before, after = after, kenlm.State()
            _, state = score_words(loaded, loaded.ids([word]), state)
            # States are equal where kenlm's are, so that a decoder recombines the same hypotheses.
            assert states.setdefault(before, state) == state


@pytest.mark.parametrize("unknown", [b"<unk>", b"<UNK>", None])
def test_the_unknown_word(tmp_path, unknown):
    text = SMALL.replace(b"<unk>", unknown or b"dd")
    path = write(tmp_path / "small.arpa", text)
    model = load_language_model(str(path))
    kenlm_model = kenlm.Model(str(path), quiet())
    assert model.words[0] == b"<unk>"
    expected = [score for score, _, _ in kenlm_model.full_scores("zz a zz b")]
    assert score_sentence(model, [b"zz", b"a", b"zz", b"b"]) == pytest.approx(expected, abs=1e-6)
    assert score_sentence(model, [b"zz"])[0] == pytest.approx(-0.5 + (-2.0 if unknown else -100.0))


@pytest.mark.parametrize("vocabulary", [None, {b"a", b"<UNK>"}], ids=["all words", "some words"])
@pytest.mark.parametrize("lines", ["-2\t<unk>\n-3\t<UNK>\t-0.5", "-3\t<UNK>\t-0.5\n-2\t<unk>"])
@pytest.mark.parametrize("ngram", ["a <UNK>", "<UNK> a"])
def test_both_spellings_are_the_unknown_word(tmp_path, vocabulary, lines, ngram):
    text = SMALL.replace(b"ngram 1=5", b"ngram 1=6").replace(b"-2\t<unk>", lines.encode())
    text = text.replace(b"a b\t0.5", ngram.encode()).replace(b"<s> a b", b"<s> " + ngram.encode())
    if ngram == "<UNK> a":
        text = text.replace(b"<s> a\t", b"<s> <UNK>\t")
    path = write(tmp_path / "both.arpa", text)
    model, kenlm_model = load_language_model(str(path), vocabulary), kenlm.Model(str(path), quiet())
    assert b"<UNK>" not in model.words
    for sentence in ("zz a", "a zz", "a a", "<UNK> a", "a <unk> zz"):
        expected = [score for score, _, _ in kenlm_model.full_scores(sentence)]
        assert score_sentence(model, sentence.encode().split()) == pytest.approx(expected, abs=1e-6)


def test_ngrams_of_both_spellings_occur_twice(tmp_path):
    text = SMALL.replace(b"ngram 1=5", b"ngram 1=6").replace(b"-2\t<unk>", b"-2\t<unk>\n-3\t<UNK>")
    text = text.replace(b"a </s>", b"a <unk>").replace(b"a b\t0.5", b"a <UNK>").replace(b"<s> a b", b"<s> a <UNK>")
    path = write(tmp_path / "twice.arpa", text)
    with pytest.raises(DataError, match=r"twice\.arpa:17: this 2-gram occurs twice"):
        load_language_model(str(path))


@given(models(), histories())
def test_a_restricted_vocabulary_changes_no_score(workspace, model, history):
    path = workspace / "restricted.arpa"
    save(model, path)
    words = [VOCABULARY[i] for i in history]
    whole, part = load_language_model(str(path)), load_language_model(str(path), set(words))
    assert set(part.words) == {b"<unk>", b"<s>", b"</s>", *words}
    assert score_sentence(part, words).tolist() == score_sentence(whole, words).tolist()
    assert part.ids([b"c"]).tolist() == [part.words.index(b"c") if b"c" in words else 0]


@pytest.mark.requires_reference
@pytest.mark.parametrize("name", ["lm3.train.arpa.gz", "lm5.pruned.arpa.gz"])
def test_scores_of_the_reference(reference, name):
    path = reference / name
    kenlm_model, model = kenlm.Model(str(path), quiet()), load_language_model(str(path))
    lines = (reference / "test_2016_flickr.moses.en").read_bytes().split(b"\n")[:300]
    # German sentences: mostly unknown words.
    lines += gzip.decompress((reference.parent / "train.de.gz").read_bytes()).split(b"\n")[:100]
    for line in lines:
        words = line.split()
        expected = [score for score, _, _ in kenlm_model.full_scores(line.decode())]
        np.testing.assert_allclose(score_sentence(model, words), expected, rtol=0, atol=1e-5)


@pytest.mark.requires_reference
def test_the_reference_estimated_again(reference):
    from phrasetool.smt.corpus.symbols import Symbols
    from phrasetool.smt.language_model.kneser_ney import estimate_language_model
    from phrasetool.smt.language_model.ngram_counts import MARKERS

    symbols = Symbols(MARKERS)
    sentences = symbols.read_lines(gzip.decompress((reference.parent / "train.en.gz").read_bytes()))
    estimated = estimate_language_model(symbols.words, sentences, 3).model
    reference_model = read(reference / "lm3.train.arpa.gz")
    assert estimated.words == reference_model.words
    for table, expected in zip(estimated.tables, reference_model.tables, strict=True):
        np.testing.assert_array_equal(table.words, expected.words)
        np.testing.assert_allclose(table.log_probabilities, expected.log_probabilities, rtol=0, atol=1e-5)
        np.testing.assert_allclose(table.backoffs, expected.backoffs, rtol=0, atol=1e-5)


def pruned_arpa(rng):
    """Return a model of order 4 as pruned by SRILM: missing contexts are mostly suffixes of longer n-grams."""
    words = [b"<s>", b"</s>", b"a", b"b", b"c"]
    levels = [[(word,) for word in [b"<unk>", *words]]]
    for n, chance in ((2, 0.8), (3, 0.5), (4, 0.3)):
        grams = [g for g in itertools.product(words, repeat=n) if b"</s>" not in g[:-1] and b"<s>" not in g[1:]]
        kept = [gram for gram in grams if gram[:-1] in levels[-1] and rng.random() < chance]
        levels.append(rng.sample(kept, len(kept)))
    for n in (2, 3):
        endings = {gram[1:] for gram in levels[n]}
        removed = [gram for gram in levels[n - 1] if rng.random() < (0.15 if gram in endings else 0.005)][:1]
        levels[n - 1] = [gram for gram in levels[n - 1] if gram not in removed]
        if rng.random() < 0.8:
            # N-grams with a missing context come last, because an earlier n-gram must end with it.
            levels[n].sort(key=lambda gram: gram[:-1] in removed)
    lines = [b"\\data\\", *(b"ngram %d=%d" % (n, len(level)) for n, level in enumerate(levels, 1))]
    for n, level in enumerate(levels, 1):
        lines += [b"", b"\\%d-grams:" % n]
        for gram in level:
            backoff = [b"%.4f" % -rng.uniform(0, 1)] if n < 4 and rng.random() < 0.7 else []
            lines += [b"\t".join([b"%.4f" % -rng.uniform(0.1, 3), b" ".join(gram), *backoff])]
            lines += [b""] * (rng.random() < 0.1)
    return b"\n".join([*lines, b"", b"\\end\\", b""])


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_pruned_models_are_read_as_by_kenlm(workspace, seed):
    """Contexts that kenlm adds are added for any vocabulary; both readers reject models that lack other contexts."""
    rng = random.Random(seed)
    path = write(workspace / "pruned.arpa", pruned_arpa(rng))
    sentences = [rng.choices([b"a", b"b", b"c", b"d"], k=6) for _ in range(5)]
    kenlm_model, refusal = None, ""
    try:
        kenlm_model = kenlm.Model(str(path), quiet())
    except (RuntimeError, OSError) as error:
        refusal = str(error)
    # kenlm's hash tables have little room for added contexts.
    if "Avoid pruning" in refusal:
        return
    if kenlm_model is None:
        assert "The context of every" in refusal
        with pytest.raises(
            DataError, match=r"pruned\.arpa:\d+: the first \d words of this \d-gram are not listed as a \d-gram"
        ):
            load_language_model(str(path))
        return
    for vocabulary in (None, {b"a", b"b"}):
        model = load_language_model(str(path), vocabulary)
        for sentence in sentences:
            words = [word for word in sentence if vocabulary is None or word in vocabulary]
            expected = [score for score, _, _ in kenlm_model.full_scores(b" ".join(words).decode())]
            np.testing.assert_allclose(score_sentence(model, words), expected, rtol=1e-5, atol=1e-5)


def test_comments_and_formats_of_irstlm(tmp_path):
    path = write(tmp_path / "m.arpa", b"# a comment\n\n" + SMALL)
    assert arrays(read(path)) == arrays(read(write(tmp_path / "small.arpa", SMALL)))
    for head in (b"iARPA\n" + SMALL, b"blmt 3 1 2 3\n"):
        with pytest.raises(DataError, match=r"m.arpa:1: this is IRSTLM's own format.*compile-lm and its option text"):
            read(write(path, head))
