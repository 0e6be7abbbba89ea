"""A slow, obvious language model: dictionaries of n-grams, and the formulas as published."""

import math
from collections import Counter, defaultdict

import numpy as np
from hypothesis import strategies as st

from phrasetool.smt.language_model.ngrams import BackoffModel, NgramTable

VOCABULARY = [b"<unk>", b"<s>", b"</s>", b"a", b"b", b"c"]


def ngrams_of(model):
    """Return {n-gram of ids: (log10 probability, log10 back-off)}."""
    return {
        tuple(map(int, words)): (float(p), float(b))
        for table in model.tables
        for words, p, b in zip(table.words, table.log_probabilities, table.backoffs, strict=True)
    }


def score(ngrams, context, word):
    """Return log10 p(word | context) by the definition of a back-off model; the context is a tuple of any length."""
    if (*context, word) in ngrams:
        return ngrams[(*context, word)][0]
    if not context:
        raise KeyError(word)
    return ngrams.get(context, (0.0, 0.0))[1] + score(ngrams, context[1:], word)


def table(rows, order, highest):
    rows = sorted(rows.items())
    words = np.array([words for words, _ in rows], np.int32).reshape(len(rows), order)
    values = np.array([values for _, values in rows], np.float32).reshape(len(rows), 2)
    return NgramTable(words, values[:, 0].copy(), np.zeros(len(rows), np.float32) if highest else values[:, 1].copy())


NUMBERS = st.sampled_from([-0.5, -1.25, -2.75, -3.125])
BACKOFFS = st.sampled_from([0.0, 0.0, -0.5, -0.25, 0.125])


@st.composite
def models(draw, min_order=1, max_order=4, with_suffixes=False):
    """Draw a model in which the context of every n-gram is an n-gram, and on request its suffix, too."""
    order = draw(st.integers(min_order, max_order))
    ids = range(len(VOCABULARY))
    rows = {(w,): (draw(NUMBERS), draw(BACKOFFS)) for w in ids}
    tables = [table(rows, 1, order == 1)]
    for n in range(2, order + 1):
        contexts = sorted(rows)
        chosen = draw(st.sets(st.tuples(st.sampled_from(contexts), st.sampled_from(ids)), max_size=12)) if rows else ()
        rows = {
            (*context, word): (draw(NUMBERS), draw(BACKOFFS))
            for context, word in sorted(chosen)
            # No word follows </s>, and <s> follows no word.
            if 2 not in context and word != 1 and (not with_suffixes or (*context[1:], word) in rows)
        }
        tables.append(table(rows, n, n == order))
    return BackoffModel(VOCABULARY, tables)


def histories(n=8):
    """Draw ids of words that may follow <s>."""
    return st.lists(st.sampled_from([0, 3, 4, 5]), max_size=n)


def kneser_ney(sentences, order, thresholds, discounts):
    """Return {n-gram: (probability, back-off)} by the formulas in phrasetool/smt/language_model/kneser_ney.py."""
    raw, before = Counter(), defaultdict(set)
    for sentence in sentences:
        padded = ["<s>", *sentence, "</s>"]
        for end in range(2, len(padded) + 1):
            for n in range(1, min(order, end) + 1):
                raw[tuple(padded[end - n : end])] += 1
                if end > n:
                    before[tuple(padded[end - n : end])].add(padded[end - n - 1])
    adjusted = {g: c if len(g) == order or g[0] == "<s>" else len(before[g]) for g, c in raw.items()}
    specials = {("<unk>",), ("<s>",), ("</s>",)}
    kept = {g for g, c in raw.items() if c > thresholds[len(g) - 1]} | specials

    def discount(g):
        return discounts[len(g) - 1][min(adjusted[g], 3) - 1]

    following = defaultdict(list)
    for g in raw:
        following[g[:-1]].append(g)

    def backoff(h):
        if not following[h]:
            return 1.0
        freed = sum(discount(g) if g in kept else adjusted[g] for g in following[h])
        return freed / sum(adjusted[g] for g in following[h])

    uniform = 1 / (sum(len(g) == 1 for g in kept) - 1)

    def probability(g):
        if g == ("<s>",):
            return 1.0
        lower = probability(g[1:]) if len(g) > 1 else uniform
        if g not in adjusted:
            return backoff(g[:-1]) * lower
        total = sum(adjusted[ngram] for ngram in following[g[:-1]])
        return (adjusted[g] - discount(g)) / total + backoff(g[:-1]) * lower

    return {g: (probability(g), 1.0 if len(g) == order else backoff(g)) for g in kept}


def logarithm(value):
    return math.log10(value) if value else -99.0
