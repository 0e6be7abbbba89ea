"""Moses' model in plain Python, feature by feature, and slow decoders that enumerate all derivations."""

import math
from dataclasses import dataclass

LN10 = math.log(10)
ORIENTATIONS = {"msd": 3, "mslr": 4, "monotonicity": 2, "leftright": 2}


@dataclass(frozen=True)
class Entry:
    source: tuple
    target: tuple
    scores: tuple
    reordering: tuple = ()
    counts: tuple = (math.nan, math.nan, math.nan)
    copy: bool = False
    table: int = 0


@dataclass
class Model:
    """A phrase-based model; scores are natural logarithms, `weights` are by feature name.

    `language_model` is a model of kenlm or a list of several; the scores of an entry are those of its table.  The
    weights of a second language model are called LM1, those of a second table TranslationModel1.  `table_limit` is a
    number, or one number for each table.
    """

    entries: list
    weights: dict
    language_model: object = None
    kind: str = ""
    directions: tuple = ()
    collapsed: bool = False
    distortion_limit: int = 6
    table_limit: int = 20
    unknown_weight: float = 1.0

    def known(self, words):
        """Return all entries of a source; for a single word without entries, an entry that copies it."""
        entries = [entry for entry in self.entries if entry.source == words]
        if not entries and len(words) == 1:
            return [Entry(words, words, (0.0,) * len(self.weights["TranslationModel"]), copy=True)]
        return entries

    @property
    def language_models(self):
        """Pairs (name, model) of all language models."""
        models = self.language_model if isinstance(self.language_model, list) else [self.language_model]
        return [(numbered("LM", i), model) for i, model in enumerate(models) if model]

    @property
    def tables(self):
        """Numbers of scores per entry, by table."""
        return [len(values) for name, values in self.weights.items() if name.startswith("TranslationModel")]

    def options(self, words):
        """Return the entries of a source within the limit of each table."""
        collected = []
        for table in range(len(self.tables)):
            limit = self.table_limit if isinstance(self.table_limit, int) else self.table_limit[table]
            entries = [entry for entry in self.known(words) if entry.table == table]
            if limit and len(entries) > limit:
                entries = sorted(entries, key=self.isolated, reverse=True)[:limit]
            collected += entries
        return collected

    def static(self, entry):
        """Return the score of an entry that does not depend on its context."""
        return (
            sum(w * x for w, x in zip(self.weights[table_name(entry)], entry.scores, strict=True))
            - self.weights["WordPenalty"][0] * len(entry.target)
            + self.weights["PhrasePenalty"][0]
            + (-100 * self.unknown_weight if entry.copy else 0)
        )

    def isolated(self, entry):
        # A phrase that begins with <s> is scored as the beginning of a sentence.
        begin = entry.target[:1] == (b"<s>",)
        return self.static(entry) + sum(
            self.weights[name][0] * LN10 * log10(model, entry.target[begin:], begin=begin)
            for name, model in self.language_models
        )


def numbered(name, place):
    return f"{name}{place or ''}"


def table_name(entry):
    return numbered("TranslationModel", entry.table)


def log10(language_model, words, begin=True, end=False):
    """Return the log10 probability of words by kenlm, summed word by word."""
    import kenlm

    state, after = kenlm.State(), kenlm.State()
    (language_model.BeginSentenceWrite if begin else language_model.NullContextWrite)(state)
    total = 0.0
    for word in [*words, *([b"</s>"] if end else [])]:
        total += language_model.BaseScore(state, word.decode(), after)
        state, after = after, state
    return total


def orientation(kind, previous, span):
    """Return the orientation as LRState.cpp of Moses computes it; `previous` is None before the first phrase."""
    start, end = span
    if kind == "leftright":
        return 0 if previous is None or previous[1] < start else 1
    if start == (previous[1] + 1 if previous else 0):
        return 0
    if kind == "monotonicity":
        return 1
    if previous and previous[0] == end + 1:
        return 1
    if kind == "msd":
        return 2
    return 3 if previous is None or start > previous[1] else 2


def features(model, derivation, complete=True):
    """Return the feature values of a derivation, a list of (start, end, entry) in target order.

    If `complete`, the derivation covers the sentence, and the end of the sentence is scored as well.
    """
    result = {name: [0.0] * len(values) for name, values in model.weights.items()}
    words, previous = [], None
    for start, end, entry in derivation:
        at = previous[1] + 1 if previous else 0
        result["Distortion"][0] -= abs(at - start)
        result["PhrasePenalty"][0] += 1
        result["WordPenalty"][0] -= len(entry.target)
        for i, score in enumerate(entry.scores):
            result[table_name(entry)][i] += score
        if model.kind:
            o = orientation(model.kind, previous[:2] if previous else None, (start, end))
            for d, direction in enumerate(model.directions):
                scored = entry if direction == "backward" else previous and previous[2]
                if scored and scored.reordering:
                    column = d * ORIENTATIONS[model.kind] + o
                    weight = d if model.collapsed else column
                    result["LexicalReordering"][weight] += scored.reordering[column]
        words += entry.target
        previous = (start, end, entry)
    # The sentence end is not scored if the last phrase has no target words or the derivation is empty.
    ended = complete and bool(derivation) and bool(derivation[-1][2].target)
    for name, language_model in model.language_models:
        result[name][0] = LN10 * log10(language_model, words, end=ended)
    return result


def score(model, derivation, complete=True):
    result = features(model, derivation, complete)
    total = sum(w * x for name in result for w, x in zip(model.weights[name], result[name], strict=True))
    return total - 100 * model.unknown_weight * sum(entry.copy for *_, entry in derivation)


def target(derivation):
    return tuple(word for *_, entry in derivation for word in entry.target)


def may_follow(limit, covered, at, start, end):
    """Return whether Moses' distortion limit allows a span; `at` is the position after the previous phrase."""
    gap = next(i for i in range(len(covered) + 1) if i not in covered)
    if limit < 0:
        return True
    if abs(at - start) > limit:
        return False
    return start == gap or abs(end + 1 - gap) <= limit


def derivations(model, sentence, choose=None, covered=frozenset(), at=0):
    """Yield all derivations, as lists of (start, end, entry)."""
    choose = choose or model.options
    if len(covered) == len(sentence):
        yield []
        return
    for start in range(len(sentence)):
        for end in range(start, len(sentence)):
            span = set(range(start, end + 1))
            if span & covered or not may_follow(model.distortion_limit, covered, at, start, end):
                continue
            for entry in choose(tuple(sentence[start : end + 1])):
                for rest in derivations(model, sentence, choose, covered | span, end + 1):
                    yield [(start, end, entry), *rest]


def segmentations(start, end):
    """Yield all segmentations of start..end - 1 into spans with exclusive ends."""
    if start == end:
        yield []
    for cut in range(start + 1, end + 1):
        for rest in segmentations(cut, end):
            yield [(start, cut), *rest]


def future_cost(model, sentence, start, end):
    """Return the best isolated score of the words start..end - 1."""
    best = -math.inf
    for spans in segmentations(start, end):
        options = [model.options(tuple(sentence[i:j])) for i, j in spans]
        if all(options):
            best = max(best, sum(max(map(model.isolated, entries)) for entries in options))
    return best


# Forced decoding: derivations whose target words are the reference, scored without a language model.
LONGEST_GAP, GAP_SCORE, SINGLETON_SCORE = 7, -1000.0, -5.0


def placements(model, sentence, reference):
    """Return (start, end, target position, entry) for all matches of entries that have target words."""
    return [
        (start, end, position, entry)
        for start in range(len(sentence))
        for end in range(start, len(sentence))
        for entry in model.known(tuple(sentence[start : end + 1]))
        for position in range(len(reference))
        if entry.target and tuple(reference[position : position + len(entry.target)]) == entry.target
    ]


def with_gaps(sentence, reference, found):
    """Return the placements and one gap for every pair of a source and a target span of at most seven words."""
    gaps = [
        (
            start,
            end,
            position,
            Entry(tuple(sentence[start : end + 1]), tuple(reference[position : position + size]), ()),
        )
        for start in range(len(sentence))
        for end in range(start, min(len(sentence), start + LONGEST_GAP))
        for position in range(len(reference))
        for size in range(1, min(LONGEST_GAP, len(reference) - position) + 1)
    ]
    return [*found, *gaps]


def forced_derivations(model, sentence, reference, placed, covered=frozenset(), at=0, produced=0):
    """Yield all derivations of the reference from the placements, as lists of (start, end, position, entry)."""
    if len(covered) == len(sentence) and produced == len(reference):
        yield []
        return
    for start, end, position, entry in placed:
        span = set(range(start, end + 1))
        if position != produced or span & covered or not may_follow(model.distortion_limit, covered, at, start, end):
            continue
        after = (covered | span, end + 1, produced + len(entry.target))
        for rest in forced_derivations(model, sentence, reference, placed, *after):
            yield [(start, end, position, entry), *rest]


def left_out(model, placed, entry):
    """Return the change that leave-one-out makes to the score of an entry."""
    if entry.copy:
        return 0.0
    # Each occurrence in the sentence pair has a source span and a reference span of its own.
    starts = {start for start, _, _, other in placed if other is entry}
    positions = {position for _, _, position, other in placed if other is entry}
    uses = min(len(starts), len(positions))
    target_count, source_count, joint = entry.counts
    joint_left = max(joint - uses, 0)
    if joint_left > 0:
        inverse = math.log(joint_left / max(target_count - uses, joint_left))
        direct = math.log(joint_left / max(source_count - uses, joint_left))
    else:
        inverse = direct = SINGLETON_SCORE * (len(entry.source) + len(entry.target))
    weights = model.weights[table_name(entry)]
    return weights[0] * (inverse - entry.scores[0]) + weights[2] * (direct - entry.scores[2])


def forced_score(model, derivation, placed, leave_one_out=False):
    total, previous = 0.0, None
    for start, end, _, entry in derivation:
        at = previous[1] + 1 if previous else 0
        total -= model.weights["Distortion"][0] * abs(at - start)
        if not entry.scores:
            total += GAP_SCORE * (len(entry.source) + len(entry.target))
        else:
            total += model.static(entry) + (left_out(model, placed, entry) if leave_one_out else 0.0)
        if model.kind:
            o = orientation(model.kind, previous[:2] if previous else None, (start, end))
            for d, direction in enumerate(model.directions):
                scored = entry if direction == "backward" else previous and previous[2]
                if scored and scored.reordering:
                    column = d * ORIENTATIONS[model.kind] + o
                    weight = model.weights["LexicalReordering"][d if model.collapsed else column]
                    total += weight * scored.reordering[column]
        previous = (start, end, entry)
    return total


def jumps(derivation, length):
    """Return the spans of a derivation, after a check that they cover every word exactly once."""
    covered = [i for start, end, *_ in derivation for i in range(start, end + 1)]
    assert sorted(covered) == list(range(length))
    return [(start, end) for start, end, *_ in derivation]


def is_within_limit(derivation, limit):
    """Return whether Moses' distortion limit allows a derivation."""
    covered, at = set(), 0
    for start, end, *_ in derivation:
        if not may_follow(limit, covered, at, start, end):
            return False
        covered |= set(range(start, end + 1))
        at = end + 1
    return True
