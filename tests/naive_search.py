"""Moses' searches in plain Python, step by step: a decoder with the same limits must keep the same hypotheses."""

import heapq
import itertools
import math
from dataclasses import dataclass, field

from tests import naive_decoder as naive


@dataclass
class Hypothesis:
    steps: list
    covered: frozenset
    score: float
    total: float
    state: tuple
    back: "Hypothesis | None" = None
    arcs: list = field(default_factory=list)

    @property
    def end(self):
        return self.steps[-1][1] if self.steps else -1


class Stack:
    """Hypotheses by recombination state, as in moses/HypothesisStackNormal.cpp and ...CubePruning.cpp."""

    def __init__(self, size, beam, cube):
        self.size, self.beam, self.cube = size, beam, cube
        self.by_state, self.best, self.worst = {}, -math.inf, -math.inf

    def add(self, new):
        if new.total < self.worst:
            return
        old = self.by_state.get(new.state)
        if old and old.total >= new.total:
            old.arcs.append(new)
            return
        if old:
            new.arcs = [*old.arcs, old]
            old.arcs = []
        self.by_state[new.state] = new
        self.best = max(self.best, new.total)
        self.worst = max(self.worst, self.best + self.beam)
        if len(self.by_state) > 2 * self.size - 1:
            self.prune()

    def prune(self):
        if len(self.by_state) <= self.size:
            return
        above = sorted((h for h in self.by_state.values() if h.total > self.best + self.beam), key=by_total)
        kept = above[: self.size]
        if self.cube:
            self.worst = kept[-1].total
            kept = [h for h in above if h.total >= self.worst]
        elif len(kept) == self.size:
            self.worst = kept[-1].total
        self.by_state = {h.state: h for h in kept}

    def __iter__(self):
        return iter(sorted(self.by_state.values(), key=by_total))


def by_total(hypothesis):
    return -hypothesis.total


class Search:
    """Search over one sentence with one language model."""

    def __init__(self, model, sentence, size, beam=0.0, cube=False):
        self.model, self.sentence = model, sentence
        self.beam = math.log(beam) if beam else -math.inf
        self.future = {
            (i, j): naive.future_cost(model, sentence, i, j)
            for i in range(len(sentence))
            for j in range(i + 1, len(sentence) + 1)
        }
        self.stacks = [Stack(size, self.beam, cube) for _ in range(len(sentence) + 1)]
        self.stacks[0].add(Hypothesis([], frozenset(), 0.0, self.estimate(frozenset()), ()))

    def estimate(self, covered):
        """Return the summed future cost of all gaps."""
        uncovered = [i for i in range(len(self.sentence)) if i not in covered]
        total, start = 0.0, 0
        for k in range(1, len(uncovered) + 1):
            if k == len(uncovered) or uncovered[k] != uncovered[k - 1] + 1:
                total += self.future[uncovered[start], uncovered[k - 1] + 1]
                start = k
        return total

    def options(self, start, end):
        entries = self.model.options(tuple(self.sentence[start : end + 1]))
        return sorted(entries, key=self.model.isolated, reverse=True)

    def extend(self, hypothesis, start, end, entry):
        steps = [*hypothesis.steps, (start, end, entry)]
        covered = hypothesis.covered | set(range(start, end + 1))
        complete = len(covered) == len(self.sentence)
        score = naive.score(self.model, steps, complete)
        span = (start, end) if self.model.kind else end
        forward = entry.reordering[-naive.ORIENTATIONS[self.model.kind] :] if "forward" in self.model.directions else ()
        words = naive.target(steps) + ((b"</s>",) if complete and entry.target else ())
        state = covered, language_state(self.model.language_model, words), span, forward
        return Hypothesis(steps, covered, score, score + self.estimate(covered), state, hypothesis)

    def spans(self, covered, jumps_from=None):
        """Yield the spans that may be translated next; `jumps_from` also limits the length of the jump."""
        limit = self.model.distortion_limit
        for start in range(len(self.sentence)):
            for end in range(start, len(self.sentence)):
                if set(range(start, end + 1)) & covered:
                    break
                at = start if jumps_from is None else jumps_from
                if naive.may_follow(limit, covered, at, start, end) and self.options(start, end):
                    yield start, end

    def by_stacks(self):
        for stack in self.stacks:
            stack.prune()
            for hypothesis in stack:
                for start, end in self.spans(hypothesis.covered, hypothesis.end + 1):
                    for entry in self.options(start, end):
                        new = self.extend(hypothesis, start, end, entry)
                        self.stacks[len(new.covered)].add(new)
        return self

    def by_cubes(self, pop_limit):
        edges = [[] for _ in self.stacks]
        for number, stack in enumerate(self.stacks):
            self._pop(stack, edges[number], pop_limit)
            stack.prune()
            for covered in dict.fromkeys(h.covered for h in stack):
                for start, end in self.spans(covered):
                    rows = self.rows([h for h in stack if h.covered == covered], start)
                    if rows:
                        edges[number + end - start + 1].append((rows, start, end, self.options(start, end)))
        return self

    def rows(self, hypotheses, start):
        """Return hypotheses (all of one coverage) from which the jump to `start` is allowed, best first."""
        weight, limit = self.model.weights["Distortion"][0], self.model.distortion_limit
        if limit < 0:
            return hypotheses
        near = [h for h in hypotheses if abs(h.end + 1 - start) <= limit]
        return sorted(near, key=lambda h: weight * abs(h.end + 1 - start) - h.total)

    def _pop(self, stack, edges, pop_limit):
        heap, order, pushed = [], itertools.count(), set()

        def push(edge, row, column):
            rows, start, end, options = edges[edge]
            if row < len(rows) and column < len(options) and (edge, row, column) not in pushed:
                pushed.add((edge, row, column))
                new = self.extend(rows[row], start, end, options[column])
                heapq.heappush(heap, (-new.total, next(order), edge, row, column, new))

        for edge in range(len(edges)):
            push(edge, 0, 0)
        for _ in range(pop_limit):
            if not heap:
                break
            *_, edge, row, column, new = heapq.heappop(heap)
            stack.add(new)
            push(edge, row, column + 1)
            push(edge, row + 1, column)

    def scores(self):
        """Return the scores of all complete derivations that the search keeps, best first."""
        self.stacks[-1].prune()
        complete = [d for h in self.stacks[-1] for d in derivations(h)]
        return sorted((naive.score(self.model, d) for d in complete), reverse=True)


def derivations(hypothesis):
    """Return all derivations that end in a hypothesis or in one that was recombined into it."""
    if hypothesis.back is None:
        return [[]]
    return [[*prefix, last.steps[-1]] for last in [hypothesis, *hypothesis.arcs] for prefix in derivations(last.back)]


def language_state(language_model, words):
    """Return kenlm's state after `<s>` and the words."""
    import kenlm

    state, after = kenlm.State(), kenlm.State()
    language_model.BeginSentenceWrite(state)
    for word in words:
        language_model.BaseScore(state, word.decode(), after)
        state, after = after, state
    return state
