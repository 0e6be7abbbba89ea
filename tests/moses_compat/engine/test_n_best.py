"""n-best lists as Moses writes them."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_compat.engine.n_best import n_best_line, n_best_lines, segmentation, word_alignment
from phrasetool.errors import PhraseToolError
from phrasetool.phrases import Phrases
from phrasetool.smt.decoder.table import TranslationTable
from tests import naive_decoder as naive
from tests.decoder_models import (
    LanguageModels,
    naive_steps,
    random_model,
    random_sentence,
    search_options,
    translator_of,
)
from tests.n_best_lists import read_n_best

MOSES = (
    b"0 ||| a man with an orange hat anstarrt something .  ||| LexicalReordering0= -0.770952 -0.510826 -0.865493 "
    b"-0.541167 0 -1.40853 Distortion0= -8 LM0= -35.3485 WordPenalty0= -9 PhrasePenalty0= 8 TranslationModel0= "
    b"-9.74812 -9.40097 -3.75488 -4.4221 ||| -102.208 ||| 0=0 1=1 2=2 3-4=3-4 5=5 9=6 6-8=7 10=8 ||| "
    b"0-0 1-1 2-2 3-3 4-4 5-5 9-6 8-7 10-8 \n"
)


@pytest.fixture(scope="module")
def language_models(tmp_path_factory):
    return LanguageModels(tmp_path_factory.mktemp("language-models"), 2)


def test_a_line_of_moses(tmp_path):
    path = tmp_path / "list"
    path.write_bytes(MOSES)
    (result,) = read_n_best(str(path))
    assert result.sentence == 0
    assert result.words == b"a man with an orange hat anstarrt something .".split()
    assert list(result.features) == [
        "LexicalReordering0", "Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0", "TranslationModel0",
    ]  # fmt: skip
    assert result.features["TranslationModel0"] == [-9.74812, -9.40097, -3.75488, -4.4221]
    assert result.total == -102.208
    assert result.spans[3:] == [(3, 4, 3, 4), (5, 5, 5, 5), (9, 9, 6, 6), (6, 8, 7, 7), (10, 10, 8, 8)]


def with_alignments(rng, table):
    """Return the table with random alignments of its entries, some of them crossing, and their points."""
    points = []
    for source, target in zip(table.entry_sources, table.targets, strict=True):
        size = int(np.diff(table.index.offsets)[source])
        every = [(i, j) for i in range(size) for j in range(len(target))]
        # In any order, some of them twice.
        points.append(rng.choices(every, k=rng.randint(0, 5)) if every else [])
    arrays = {name: getattr(table, name) for name in TranslationTable.__dataclass_fields__}
    ids = Phrases.from_lists([[256 * i + j for i, j in row] for row in points])
    return TranslationTable(**{**arrays, "alignments": ids}), points


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_lines_say_what_the_derivations_are(language_models, workspace, seed, segmented, aligned):
    rng = random.Random(seed)
    sentence = random_sentence(rng, rng.randint(1, 5))
    model = random_model(rng, sentence, language_models.kenlm[0], empty=0.2)
    translator, texts = translator_of(model, [sentence], language_models.ours[0])
    translator.table, points = with_alignments(rng, translator.table)
    result = translator.translate(texts[0], search_options(model), 8, distinct=False)
    listed = tuple(name for name in translator.features.sizes if name != "Distortion")
    text = n_best_lines(translator, 12, result, listed, segmented, aligned)
    path = workspace / "n-best"
    path.write_bytes(text)
    read = list(read_n_best(str(path)))
    assert len(read) == len(result)
    for d, (line, candidate) in enumerate(zip(text.split(b"\n"), read, strict=False)):
        steps = naive_steps(model, translator, sentence, result, d)
        values = naive.features(model, steps)
        fields = line.split(b"|||")
        assert (fields[0], fields[1]) == (b"12 ", b" %s " % b"".join(w + b" " for w in naive.target(steps)))
        assert candidate.sentence == 12
        assert candidate.words == list(naive.target(steps))
        assert list(candidate.features) == [f"{name}0" for name in listed]
        for name in listed:
            assert candidate.features[f"{name}0"] == pytest.approx(values[name], rel=1e-5, abs=1e-4)
        assert candidate.total == pytest.approx(naive.score(model, steps), rel=1e-5, abs=1e-4)
        at, spans, links = 0, [], []
        entries = result.steps.entries[slice(*result.steps.offsets[d : d + 2])].tolist()
        for number, (start, end, entry) in zip(entries, steps, strict=True):
            # Moses prints only the start of an empty target.
            spans.append((start, end, at, at + max(len(entry.target) - 1, 0)))
            links += [f"{start + i}-{at + j}" for i, j in sorted(set(points[number]))]
            at += len(entry.target)
        assert candidate.spans == (spans if segmented else [])
        assert word_alignment(translator, result, d) == " ".join(links)
        if aligned:
            assert fields[-1] == "".join(f" {link}" for link in links).encode() + b" "
        if segmented:
            assert fields[4].strip() == segmentation(translator, result, d).encode()
        assert len(fields) == 4 + segmented + aligned


def test_six_digits_and_no_negative_zero(language_models):
    entries = [naive.Entry((b"a",), (b"v",), (-0.123456789,)), naive.Entry((b"b",), (b"w",), (-1234567.0,))]
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")}
    model = naive.Model(entries, weights, language_models.kenlm[0])
    translator, texts = translator_of(model, [[b"a"], [b"b"], []], language_models.ours[0])
    lines = [
        n_best_lines(translator, i, translation, ("Distortion", "WordPenalty", "TranslationModel"), True, True)
        for i, translation in enumerate(translator.translate_all(texts, search_options(model)))
    ]
    assert lines == [
        b"0 ||| v  ||| Distortion0= 0 WordPenalty0= -1 TranslationModel0= -0.123457 ||| 0 ||| 0=0 ||| \n",
        b"1 ||| w  ||| Distortion0= 0 WordPenalty0= -1 TranslationModel0= -1.23457e+06 ||| 0 ||| 0=0 ||| \n",
        b"2 |||  ||| Distortion0= 0 WordPenalty0= 0 TranslationModel0= 0 ||| 0 ||| ||| \n",
    ]


def test_bars_are_no_part_of_a_line():
    assert n_best_line(0, b"a | || b", "F= 1", 1.0) == b"0 ||| a | || b  ||| F= 1 ||| 1\n"
    for text in (b"a ||| b", b"a|||b"):
        with pytest.raises(PhraseToolError, match="the translation of sentence 3 holds"):
            n_best_line(2, text, "F= 1", 1.0)
