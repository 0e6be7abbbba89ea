"""Forced decoding, compared with all derivations of the reference."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phrasetool.phrases import Phrases
from phrasetool.smt.decoder.forced import (
    DISTORTION,
    EMPTY,
    NO_COMBINATION,
    REACHED,
    REASONS,
    UNCOVERED_SOURCE,
    UNPRODUCED_TARGET,
    ForcedDecoder,
    ForcedOptions,
    count_pairs,
)
from tests import naive_decoder as naive
from tests.decoder_models import (
    TARGET,
    UNKNOWN,
    entries_in_order,
    feature_set,
    random_model,
    random_sentence,
    table_of,
    weight_vector,
)
from tests.naive_decoder import Entry, numbered
from tests.variants import for_each

SEEDS = st.integers(0, 2**32 - 1)


def random_pair(rng, longest):
    """Return a model, a sentence, and a reference that the model can often produce."""
    sentence = random_sentence(rng, rng.randint(1, longest))
    model = random_model(rng, sentence, empty=0.1, tables=rng.choice([1, 1, 2]))
    for table, columns in enumerate(model.tables):
        if columns < 3:
            model.weights[numbered("TranslationModel", table)] = [0.2] * 4
            model.entries = [replace(e, scores=(*e.scores * 4,)[:4]) if e.table == table else e for e in model.entries]
    derivation, covered = [], set()
    while len(covered) < len(sentence):
        starts = [i for i in range(len(sentence)) if i not in covered]
        start = rng.choice(starts[: rng.choice([1, 1, 3])])
        end = start
        while end + 1 < len(sentence) and end + 1 not in covered and rng.random() < 0.4:
            end += 1
        options = model.known(tuple(sentence[start : end + 1]))
        if not options:
            end = start
            options = model.known((sentence[start],))
        derivation.append((start, end, rng.choice(options)))
        covered |= set(range(start, end + 1))
    reference = list(naive.target(derivation))
    if reference and rng.random() < 0.3:
        reference[rng.randrange(len(reference))] = rng.choice([*TARGET, UNKNOWN, b"not in the table"])
    return model, sentence, reference[:7]


def decode(model, sentence, reference, **options):
    table, texts = table_of(model, [sentence])
    decoder = ForcedDecoder(
        table, feature_set(model), weight_vector(model),
        ForcedOptions(**{"distortion_limit": model.distortion_limit, "stack_size": 5000, **options}),
    )  # fmt: skip
    ids = np.array([table.target_symbols.id(word) for word in reference], np.int32)
    return decoder.decode(texts[0], ids), table


def naive_outcome(model, sentence, reference):
    if not sentence or not reference:
        return EMPTY
    placed = naive.placements(model, sentence, reference)
    if any(True for _ in naive.forced_derivations(model, sentence, reference, placed)):
        return REACHED
    if set(range(len(sentence))) - {i for start, end, *_ in placed for i in range(start, end + 1)}:
        return UNCOVERED_SOURCE
    if set(range(len(reference))) - {
        i for *_, position, e in placed for i in range(position, position + len(e.target))
    }:
        return UNPRODUCED_TARGET
    anywhere = replace(model, distortion_limit=-1)
    if any(True for _ in naive.forced_derivations(anywhere, sentence, reference, placed)):
        return DISTORTION
    return NO_COMBINATION


def check_derivation(model, sentence, reference, table, found, placed, leave_one_out=False):
    """Check that the derivation produces the reference within the distortion limit, with the naive score."""
    entries = entries_in_order(model)
    steps = []
    for number, start, end, position in zip(found.entries, found.starts, found.ends, found.places, strict=True):
        words = tuple(sentence[start : end + 1])
        entry = entries[number] if number < len(entries) else model.known(words)[0]
        assert entry.copy == table.copies[number]
        assert entry.source == words
        assert entry.target == tuple(reference[position : position + len(entry.target)])
        steps.append((int(start), int(end), int(position), entry))
    naive.jumps(steps, len(sentence))
    assert [word for *_, entry in steps for word in entry.target] == reference
    assert naive.is_within_limit(steps, model.distortion_limit)
    assert found.score == pytest.approx(naive.forced_score(model, steps, placed, leave_one_out), rel=1e-5, abs=1e-4)


@settings(max_examples=200)
@given(SEEDS, st.booleans())
def test_agrees_with_naive(seed, leave_one_out):
    model, sentence, reference = random_pair(random.Random(seed), 5)
    result, table = decode(model, sentence, reference, leave_one_out=leave_one_out)
    assert result.outcome == naive_outcome(model, sentence, reference)
    if result.outcome != REACHED:
        assert math.isnan(result.score)
        assert len(result.entries) == 0
        return
    placed = naive.placements(model, sentence, reference)
    every = naive.forced_derivations(model, sentence, reference, placed)
    best = max(naive.forced_score(model, d, placed, leave_one_out) for d in every)
    assert result.score == pytest.approx(best, rel=1e-5, abs=1e-4)
    check_derivation(model, sentence, reference, table, result, placed, leave_one_out)


@settings(max_examples=60)
@given(SEEDS)
def test_partial_cover_agrees_with_naive(seed):
    model, sentence, reference = random_pair(random.Random(seed), 3)
    reference = reference[:4]
    result, table = decode(model, sentence, reference, partial=True)
    assert result.outcome == naive_outcome(model, sentence, reference)
    if result.outcome in (REACHED, EMPTY):
        return
    placed = naive.with_gaps(sentence, reference, naive.placements(model, sentence, reference))
    scores = [
        naive.forced_score(model, d, placed) for d in naive.forced_derivations(model, sentence, reference, placed)
    ]
    if not scores:
        assert math.isnan(result.score)
        return
    assert result.score == pytest.approx(max(scores), rel=1e-6, abs=1e-3)
    # The listed entries match the sentence and the reference.
    for number, start, end, position in zip(result.entries, result.starts, result.ends, result.places, strict=True):
        words = [table.target_symbols.words[w] for w in table.targets[number]]
        assert words == reference[position : position + len(words)]
        assert end - start + 1 == np.diff(table.index.offsets)[table.sources_of(np.array([number]))[0]]


def phrase_model(pairs, **changes):
    """Return a model with these entries, in which every feature has a small weight."""
    entries = [Entry(tuple(s.split()), tuple(t.split()), (-1.0, -1.0, -1.0, -1.0)) for s, t in pairs]
    weights = {name: [0.1] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty")}
    return naive.Model(entries, {**weights, "TranslationModel": [0.25] * 4}, **changes)


@for_each(
    ("pairs", "sentence", "reference", "limit", "outcome"),
    [
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"v w", 6, REACHED),
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"w v", 6, REACHED),
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"w v", 0, DISTORTION),
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"v x", 6, UNCOVERED_SOURCE),
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"v w x", 6, UNPRODUCED_TARGET),
        ([(b"a", b"v"), (b"b", b"w")], b"a b", b"v w v", 6, NO_COMBINATION),
        ([(b"a", b"v"), (b"a b", b"v w")], b"a b", b"v w", 6, REACHED),
        # Every choice of entries leaves a source word or a reference word uncovered.
        ([(b"a", b"v w"), (b"b", b"w")], b"a b", b"v w", 6, NO_COMBINATION),
        # Words without an entry of their own are copied.
        ([(b"a", b"v")], b"a 1984", b"v 1984", 6, REACHED),
        ([(b"a", b"v"), (b"1984", b"w")], b"a 1984", b"v 1984", 6, UNCOVERED_SOURCE),
        # An entry without target words is not used.
        ([(b"a", b"v"), (b"b", b"")], b"a b", b"v", 6, UNCOVERED_SOURCE),
        ([(b"a", b"v")], b"", b"v", 6, EMPTY),
        ([(b"a", b"v")], b"a", b"", 6, EMPTY),
        ([(b"a", b"v")], b"", b"", 6, EMPTY),
    ],
)
def test_outcomes(pairs, sentence, reference, limit, outcome):
    model = phrase_model(pairs, distortion_limit=limit)
    result, _ = decode(model, sentence.split(), reference.split())
    assert REASONS[result.outcome] == REASONS[outcome]
    assert naive_outcome(model, sentence.split(), reference.split()) == outcome


def test_the_table_limit_does_not_apply():
    model = phrase_model([(b"a", b"v%d" % i) for i in range(50)], table_limit=1)
    assert decode(model, [b"a"], [b"v49"])[0].outcome == REACHED


def test_a_partial_cover_uses_what_it_can():
    model = phrase_model([(b"a", b"v"), (b"b", b"w"), (b"c", b"x"), (b"c d", b"x y")])
    result, table = decode(model, b"a b c d".split(), b"v w z x y".split(), partial=True)
    assert result.outcome == UNPRODUCED_TARGET
    # One gap must take a source word for `z`; the long phrase saves more than `a` or `b`.
    pairs = [(table.target_symbols.join(table.targets[e]), int(s)) for e, s in
             zip(result.entries, result.starts, strict=True)]  # fmt: skip
    assert (b"x y", 2) in pairs
    assert len(pairs) == 2
    # In target order.
    assert result.places.tolist() == sorted(result.places.tolist())
    assert result.score < -1000
    # No entry can be used.
    result, _ = decode(phrase_model([(b"a", b"v")]), [b"a"], [b"w"], partial=True)
    assert (result.outcome, len(result.entries)) == (UNCOVERED_SOURCE, 0)


def counted(counts, scores=(0.5, 0.25, 0.125, 0.0625)):
    logs = tuple(math.log(s) for s in scores)
    return Entry((b"a",), (b"v",), tuple(float(np.float32(x)) for x in logs), counts=counts)


@pytest.mark.parametrize(
    ("counts", "sentence", "reference", "inverse", "direct"),
    [
        # c(t), c(s), c(s,t): one of three occurrences is in this sentence.
        ((8, 5, 3), b"a", b"v", 2 / 7, 2 / 4),
        ((3, 3, 3), b"a", b"v", 1, 1),
        # Two source words and two target words: two of five occurrences, although there are four placements.
        ((20, 10, 5), b"a a", b"v v", 3 / 18, 3 / 8),
        # Not seen elsewhere: exp(-5) per word.
        ((8, 5, 1), b"a", b"v", math.exp(-10), math.exp(-10)),
    ],
)
def test_leave_one_out_by_hand(counts, sentence, reference, inverse, direct):
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty")}
    model = naive.Model([counted(counts)], {**weights, "TranslationModel": [1.0, 10.0, 100.0, 1000.0]})
    kept = 10 * math.log(0.25) + 1000 * math.log(0.0625)
    expected = kept + math.log(inverse) + 100 * math.log(direct)
    result, _ = decode(model, sentence.split(), reference.split(), leave_one_out=True)
    assert result.score == pytest.approx(len(sentence.split()) * expected, rel=1e-5)
    result, _ = decode(model, sentence.split(), reference.split())
    expected = kept + math.log(0.5) + 100 * math.log(0.125)
    assert result.score == pytest.approx(len(sentence.split()) * expected, rel=1e-5)


def test_leave_one_out_subtracts_at_most_one_occurrence_for_each_target_position():
    entries = [counted((20, 10, 5)), Entry((b"a", b"a"), (b"v",), (0.0,) * 4, counts=(20, 20, 20))]
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty")}
    model = naive.Model(entries, {**weights, "TranslationModel": [1.0, 0.0, 0.0, 0.0]})
    # Three source words `a` and two words `v`: two of the five occurrences of `a ||| v`, and two of the other entry.
    result, _ = decode(model, [b"a"] * 3, [b"v"] * 2, leave_one_out=True)
    assert result.score == pytest.approx(math.log(3 / 18) + math.log(18 / 18), rel=1e-5)


def test_leave_one_out_prefers_entries_seen_elsewhere():
    certain, even_odds = (0.0,) * 4, (math.log(0.5),) * 4
    entries = [
        Entry((b"a", b"b"), (b"v", b"w"), certain, counts=(1, 1, 1)),
        Entry((b"a",), (b"v",), even_odds, counts=(8, 8, 4)),
        Entry((b"b",), (b"w",), even_odds, counts=(8, 8, 4)),
    ]
    weights = {name: [0.0] for name in ("Distortion", "LM", "WordPenalty", "PhrasePenalty")}
    model = naive.Model(entries, {**weights, "TranslationModel": [0.2] * 4})
    assert decode(model, [b"a", b"b"], [b"v", b"w"])[0].entries.tolist() == [0]
    assert decode(model, [b"a", b"b"], [b"v", b"w"], leave_one_out=True)[0].entries.tolist() == [1, 2]


def test_leave_one_out_needs_counts_and_scores():
    model = phrase_model([(b"a", b"v")])
    with pytest.raises(ValueError, match="leave-one-out needs"):
        decode(model, [b"a"], [b"v"], leave_one_out=True)
    few = naive.Model([Entry((b"a",), (b"v",), (0.0, 0.0), counts=(1, 1, 1))], {
        **model.weights, "TranslationModel": [1.0, 1.0]
    })  # fmt: skip
    with pytest.raises(ValueError, match="leave-one-out needs"):
        decode(few, [b"a"], [b"v"], leave_one_out=True)
    # Copies have no counts and need none.
    counted_model = replace(model, entries=[replace(model.entries[0], counts=(4, 4, 2))])
    assert decode(counted_model, [b"a", b"new"], [b"v", b"new"], leave_one_out=True)[0].outcome == REACHED


def test_many_pairs_on_threads_and_their_counts():
    rng = random.Random(4)
    model = phrase_model([(b"a", b"v"), (b"b", b"w"), (b"a b", b"v w"), (b"b", b"v")])
    sentences = [rng.choices([b"a", b"b", b"new"], k=rng.randint(0, 4)) for _ in range(50)]
    table, texts = table_of(model, sentences)
    words = {b"a": b"v", b"b": b"w", b"new": b"new"}
    references = [[table.target_symbols.id(words[w]) for w in sentence] for sentence in sentences]
    decoder = ForcedDecoder(table, feature_set(model), weight_vector(model), ForcedOptions())
    alone = list(decoder.decode_all(texts, Phrases.from_lists(references)))
    shared = list(decoder.decode_all(texts, Phrases.from_lists(references), threads=2))
    assert len(alone) == 50
    for single, threaded in zip(alone, shared, strict=True):
        assert single.outcome == threaded.outcome == (REACHED if len(single.entries) else EMPTY)
        assert single.entries.tolist() == threaded.entries.tolist()
    uses = count_pairs(alone, table)
    expected = np.zeros(len(table), int)
    for derivation in alone:
        for entry in derivation.entries:
            expected[entry] += not table.copies[entry]
    assert uses.tolist() == expected.tolist()
    assert uses.sum() > 30
    with pytest.raises(ValueError, match="50 sentences but 1 references"):
        list(decoder.decode_all(texts, Phrases.from_lists([[0]])))
    with pytest.raises(ValueError, match="positive"):
        ForcedOptions(stack_size=0)
