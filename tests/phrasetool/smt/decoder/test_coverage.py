"""Which tokens a table translates: those inside a source phrase of it, looked for one by one here."""

import random

import pytest

from phrasetool.smt.decoder.coverage import covered_tokens, offered_words
from tests.decoder_models import random_model, random_sentence, table_of


def naive(sentence, sources):
    found = [False] * len(sentence)
    for start in range(len(sentence)):
        for end in range(start + 1, len(sentence) + 1):
            if tuple(sentence[start:end]) in sources:
                found[start:end] = [True] * (end - start)
    return found


def test_tokens_inside_of_phrases_that_occur():
    seen = set()
    for seed in range(40):
        rng = random.Random(seed)
        sentences = [random_sentence(rng, rng.randint(0, 7)) for _ in range(4)]
        model = random_model(rng, sentences[0])
        model.entries[:] = [entry for entry in model.entries if len(entry.source) > 1 or rng.random() < 0.5]
        table, texts = table_of(model, sentences)
        sources = {entry.source for entry in model.entries}
        expected = [token for sentence in sentences for token in naive(sentence, sources)]
        assert covered_tokens(table, texts).tolist() == expected
        seen.update(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("best", [1, 2, 100])
def test_words_of_the_best_entries_that_occur(best):
    sizes = set()
    for seed in range(20):
        rng = random.Random(seed)
        sentences = [random_sentence(rng, rng.randint(0, 7)) for _ in range(4)]
        table, texts = table_of(random_model(rng, sentences[0]), sentences)
        words = table.source_symbols.words
        expected = []
        for sentence in sentences:
            line = set()
            for source in range(len(table.first) - 1):
                offsets = table.index.offsets
                phrase = [words[w] for w in table.index.words[offsets[source] : offsets[source + 1]]]
                places = range(len(sentence) - len(phrase) + 1)
                if any(sentence[i : i + len(phrase)] == phrase for i in places):
                    entries = range(table.first[source], table.first[source + 1])
                    ranked = sorted(entries, key=lambda entry: -table.scores[entry].sum())[:best]
                    line.update(w for entry in ranked if not table.copies[entry] for w in table.targets[entry])
            expected.append(sorted(line))
        assert [line.tolist() for line in offered_words(table, texts, best)] == expected
        sizes.update(map(len, expected))
    assert {0, 1, 2} <= sizes


def test_a_copy_is_no_translation():
    model = random_model(random.Random(1), [b"a"])
    model.entries.clear()
    table, texts = table_of(model, [[b"a", b"b"], []])
    assert table.copies.all()
    assert covered_tokens(table, texts).tolist() == [False, False]
    assert offered_words(table, texts, 3).lengths.tolist() == [0, 0]
