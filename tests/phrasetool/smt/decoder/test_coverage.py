"""Which tokens a table translates: those inside a source phrase of it, looked for one by one here."""

import random

from phrasetool.smt.decoder.coverage import covered_tokens
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


def test_a_copy_is_no_translation():
    model = random_model(random.Random(1), [b"a"])
    model.entries.clear()
    table, texts = table_of(model, [[b"a", b"b"], []])
    assert table.copies.all()
    assert covered_tokens(table, texts).tolist() == [False, False]
