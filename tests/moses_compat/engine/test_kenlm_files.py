"""kenlm's binary files: scores are those of kenlm, and damaged files are rejected."""

import random
import struct
import subprocess
from pathlib import Path

import kenlm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.engine.arpa import write_arpa
from moses_compat.engine.kenlm_files import is_kenlm_binary
from moses_compat.engine.language_models import load_language_models, open_kenlm_model, order_of
from moses_compat.files.streams import Output
from phrasetool.errors import DataError
from phrasetool.smt.language_model.combination import LanguageModels
from tests.commands import write
from tests.phrasetool.smt.language_model.naive import VOCABULARY, histories, models
from tests.scored_words import score_jointly, score_sentence

GOLDEN = Path(__file__).parents[2] / "golden/kenlm"
KINDS = ["probing", "trie", "quantised"]
WORDS = [b"v", b"w", b"x", b"y", b"q", b"</s>", b"<s>", b"never-seen"]
TYPES = [["probing"], ["-p", "1.1", "probing"], ["trie"], ["-a", "3", "trie"], ["-q", "4", "trie"],
         ["-q", "6", "-b", "3", "-a", "22", "trie"]]  # fmt: skip
# Byte offsets in the header: the type, the version of its tables, the first count, and the vocabulary of `probing`.
TYPE_AT, VERSION_AT, COUNT_AT, VOCABULARY_AT = 96, 104, 108, 136


def quiet():
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    return config


def theirs(path, words):
    """Return kenlm's score of each word of a sentence without its end, and the state after each word."""
    model = path if isinstance(path, kenlm.Model) else kenlm.Model(str(path), quiet())
    states, scores = [kenlm.State()], []
    model.BeginSentenceWrite(states[0])
    for word in words:
        states.append(kenlm.State())
        scores.append(model.BaseScore(states[-2], word.decode(), states[-1]))
    return scores, states[1:]


def ours(path, sentences):
    """Return the scores of each sentence by phrasetool's reader of the file, also without the end."""
    words = {word for sentence in sentences for word in sentence}
    model = load_language_models([str(path)], words)
    if isinstance(model, LanguageModels):
        return [scores for scores, _ in score_jointly(model, sentences, [1.0])]
    return [score_sentence(model, sentence)[:-1] for sentence in sentences]


def random_sentences(count, words, longest=9):
    rng = random.Random(1)
    return [rng.choices(words, k=rng.randint(0, longest)) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_has_the_score_of_kenlm(kind):
    path = GOLDEN / f"model.{kind}"
    assert is_kenlm_binary(str(path))
    assert order_of(str(path)) == order_of(str(GOLDEN / "model.arpa")) == 3
    sentences = random_sentences(300, WORDS)
    model = kenlm.Model(str(path), quiet())
    for sentence, scores in zip(sentences, ours(path, sentences), strict=True):
        np.testing.assert_allclose(scores, theirs(model, sentence)[0], rtol=0, atol=1e-5)


def test_the_forms_of_a_model_say_the_same():
    sentences = random_sentences(300, WORDS)
    expected = ours(GOLDEN / "model.arpa", sentences)
    for kind in ("probing", "trie"):
        for scores, expected_scores in zip(ours(GOLDEN / f"model.{kind}", sentences), expected, strict=True):
            np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-5)


def test_states_are_equal_where_those_of_kenlm_are():
    sentences = random_sentences(200, WORDS[:5])
    model = load_language_models([str(GOLDEN / "model.probing")], WORDS)
    known, back = {}, {}
    kenlms = kenlm.Model(str(GOLDEN / "model.probing"), quiet())
    for sentence, (_, states) in zip(sentences, score_jointly(model, sentences, [1.0]), strict=True):
        for state, kenlm_state in zip(states, theirs(kenlms, sentence)[1], strict=True):
            assert known.setdefault(kenlm_state, state) == state
            assert back.setdefault(state, kenlm_state) == kenlm_state
    assert len(known) > 10


def build_binary(moses, options, arpa, binary):
    outcome = subprocess.run([moses("build_binary"), *options, arpa, binary], capture_output=True, check=False)
    assert outcome.returncode == 0, outcome.stderr.decode()


@pytest.mark.requires_moses
@settings(max_examples=40)
@given(models(min_order=2), st.lists(histories(), min_size=1, max_size=5), st.booleans(), st.sampled_from(TYPES))
def test_models_of_all_types(workspace, moses, model, sentences, with_unknown, options):
    arpa, binary = workspace / "any.arpa", workspace / "any.binary"
    with Output(str(arpa)) as output:
        write_arpa(model, output)
    if not with_unknown:
        arpa.write_bytes(arpa.read_bytes().replace(b"<unk>", b"d"))
    outcome = subprocess.run([moses("build_binary"), *options, arpa, binary], capture_output=True, check=False)
    if outcome.returncode:
        # kenlm cannot convert every model: there may be too few numbers to quantise.
        return
    texts = [[VOCABULARY[i] if i else b"never-seen" for i in sentence] for sentence in sentences]
    kenlms = kenlm.Model(str(binary), quiet())
    for sentence, scores in zip(texts, ours(binary, texts), strict=True):
        np.testing.assert_allclose(scores, theirs(kenlms, sentence)[0], rtol=0, atol=1e-5)


@pytest.mark.requires_moses
@pytest.mark.requires_reference
@pytest.mark.parametrize("options", [["probing"], ["-q", "8", "-b", "8", "-a", "22", "trie"]], ids=["probing", "trie"])
def test_scores_of_the_reference(reference, moses, tmp_path, options):
    build_binary(moses, options, reference / "lm3.train.arpa.gz", tmp_path / "binary")
    lines = (reference / "test_2016_flickr.moses.en").read_bytes().split(b"\n")[:200]
    lines += (reference.parent / "test_2016_flickr.de").read_bytes().split(b"\n")[:50]
    sentences = [line.split() for line in lines]
    kenlms = kenlm.Model(str(tmp_path / "binary"), quiet())
    for sentence, scores in zip(sentences, ours(tmp_path / "binary", sentences), strict=True):
        np.testing.assert_allclose(scores, theirs(kenlms, sentence)[0], rtol=0, atol=1e-5)


def patched(data, place, form, value):
    data = bytearray(data)
    struct.pack_into(form, data, place, value)
    return bytes(data)


def version(data, number):
    return data.replace(b"format version 5\n", b"format version %d\n" % number)


FAULTS = {
    "old": (lambda d: version(d, 4), "format 4; expected format 5: make it again from the ARPA text"),
    "unfinished": (lambda d: b"mmap lm http://kheafield.com/code incomplete\n" + d[46:], "did not finish this file"),
    "other machine": (lambda d: patched(d, 60, "<f", 2.0), "from another kind of machine"),
    "rest costs": (lambda d: patched(d, TYPE_AT, "<I", 1), "with rest costs (build_binary -r) is not supported"),
    "unknown type": (lambda d: patched(d, TYPE_AT, "<I", 7), "of type 7 is not supported"),
    "its tables": (lambda d: patched(d, VERSION_AT, "<I", 9), "whose tables are of version 9"),
    "its words": (lambda d: patched(d, VOCABULARY_AT, "<I", 1), "whose vocabulary is of another version"),
    "absurd counts": (lambda d: patched(d, COUNT_AT, "<Q", 1 << 50), "is damaged"),
    "many words": (lambda d: patched(d, COUNT_AT, "<Q", 1 << 30), "truncated?"),
    "no words": (lambda d: patched(d, COUNT_AT, "<Q", 0), "is damaged"),
}


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_what_is_refused(tmp_path, change, message):
    path = write(tmp_path / "lm", change((GOLDEN / "model.probing").read_bytes()))
    with pytest.raises(DataError) as error:
        load_language_models([str(path)], WORDS)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_files(tmp_path, kind):
    data = (GOLDEN / f"model.{kind}").read_bytes()
    # The words follow as text, which no reader needs.
    end = data.rindex(b"<unk>\0")
    for size in range(len(b"mmap lm http"), end - 8, 7):
        path = write(tmp_path / "lm", data[:size])
        for load in (lambda name: load_language_models([name], WORDS), open_kenlm_model):
            with pytest.raises(DataError, match=r"truncated|damaged"):
                load(str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    """Any damaged file yields scores or a DataError."""
    data, rng = (GOLDEN / f"model.{kind}").read_bytes(), random.Random(3)
    sentences = random_sentences(20, WORDS)
    refused = 0
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            changed[rng.randrange(56, len(data))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        path = write(tmp_path / "lm", bytes(changed))
        try:
            assert len(ours(path, sentences)) == len(sentences)
        except DataError:
            refused += 1
            # Raised before kenlm maps the file, because kenlm would not detect the damage.
            with pytest.raises(DataError):
                open_kenlm_model(str(path), WORDS)
    assert refused > 0


def test_a_model_without_markers(tmp_path):
    slots = slice(VOCABULARY_AT + 8, VOCABULARY_AT + 8 + 12 * 12)
    data = bytearray((GOLDEN / "model.probing").read_bytes())
    data[slots] = bytes(12 * 12)
    path = write(tmp_path / "lm", bytes(data))
    with pytest.raises(DataError, match="the language model has no <s>"):
        load_language_models([str(path)], WORDS)
