"""Slow reference implementation of every kernel: plain, unoptimised Python, one item at a time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


def rae(phrase, parameters):
    """Return the vector, E_rec and the merges (position at each step) of one phrase, in float64."""
    p = {name: array.astype(np.float64) for name, array in parameters.arrays().items()}
    n = parameters.dimension
    items = [p["word_vectors"][word] for word in phrase]
    if not items:
        return np.zeros(n), 0.0, []
    total, merges = 0.0, []
    while len(items) > 1:
        best = None
        for j in range(len(items) - 1):
            children = np.concatenate([items[j], items[j + 1]])
            parent = np.tanh(p["compose"] @ children + p["compose_bias"])
            again = np.tanh(p["reconstruct"] @ parent + p["reconstruct_bias"])
            error = 0.5 * float(((children - again) ** 2).sum())
            if best is None or error < best[0]:
                best = (error, j, parent)
        error, j, parent = best
        items[j : j + 2] = [parent]
        merges.append(j)
        total += error
    return items[0], total, merges


def layer_norm(vector, gain, bias):
    """Return one vector after layer normalisation."""
    mean = vector.mean()
    return gain * (vector - mean) / math.sqrt(((vector - mean) ** 2).mean() + 1e-5) + bias


def with_position(vector, t):
    """Add the sinusoidal encoding of position t to a word vector."""
    w = len(vector)
    return vector + np.array([(math.sin, math.cos)[k % 2](t / 10000 ** ((k - k % 2) / w)) for k in range(w)])


def attention_block(inputs, p, heads, causal=False):
    """Return the hidden vectors of one text: self-attention, layer norm, feed-forward with residual, layer norm."""
    m = len(p["query"])
    size = m // heads
    hidden = []
    for t, x in enumerate(inputs):
        visible = inputs[: t + 1] if causal else inputs
        attended = []
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            scores = [(p["query"][rows] @ x) @ (p["key"][rows] @ other) / math.sqrt(size) for other in visible]
            weights = [math.exp(score - max(scores)) for score in scores]
            values = [p["value"][rows] @ other for other in visible]
            attended.append(sum(a * v for a, v in zip(weights, values, strict=True)) / sum(weights))
        b = layer_norm(np.concatenate(attended), p["attention_gain"], p["attention_bias"])
        f = p["narrow"] @ np.maximum(p["widen"] @ b + p["widen_bias"], 0) + p["narrow_bias"]
        hidden.append(layer_norm(f + b, p["hidden_gain"], p["hidden_bias"]))
    return hidden


def mean_max_phrase(words, parameters, heads):
    """Return the vector [z_max; z_mean] of one phrase, in float64."""
    p = {name: array.astype(np.float64) for name, array in parameters.arrays().items()}
    if not len(words):
        return np.zeros(2 * len(p["query"]))
    vectors = [*(p["word_vectors"][word] for word in words), p["end"]]
    hidden = attention_block([with_position(vector, t) for t, vector in enumerate(vectors, 1)], p, heads)
    return np.concatenate([np.max(hidden, axis=0), np.mean(hidden, axis=0)])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(inputs, p, suffix, output, cell):
    """Return all outputs and the last cell of an LSTM (Hochreiter and Schmidhuber 1997, with forget gates)."""
    outputs = []
    for x in inputs:
        gates = p[f"weight_ih_{suffix}"] @ x + p[f"bias_ih_{suffix}"]
        gates = gates + p[f"weight_hh_{suffix}"] @ output + p[f"bias_hh_{suffix}"]
        let_in, keep, new, let_out = np.split(gates, 4)
        cell = sigmoid(keep) * cell + sigmoid(let_in) * np.tanh(new)
        output = sigmoid(let_out) * np.tanh(cell)
        outputs.append(output)
    return outputs, cell


class TextAutoencoder:
    """A text autoencoder, one text and one step at a time, in float64 (Eq. 1-23 of the gated mean-max paper)."""

    def __init__(self, architecture, arrays):
        self.a = architecture
        self.p = {name: array.astype(np.float64) for name, array in arrays.items()}
        self.end = len(self.p["output"]) - 1

    def part(self, prefix):
        return {n.removeprefix(prefix).removeprefix("attention."): v for n, v in self.p.items() if n.startswith(prefix)}

    def encode(self, words):
        vectors = [self.p["words"][word] for word in [*words, self.end]]
        p, m = self.part("encoder."), self.a.hidden
        start = []
        if self.a.recurrent:
            zero = np.zeros(m // 2)
            forward, first_cell = lstm(vectors, p, "l0", zero, zero)
            backward, second_cell = lstm(vectors[::-1], p, "l0_reverse", zero, zero)
            hidden = [np.concatenate(pair) for pair in zip(forward, backward[::-1], strict=True)]
            start = [forward[-1], backward[-1], first_cell, second_cell]
        else:
            inputs = [with_position(vector, t) for t, vector in enumerate(vectors, 1)]
            hidden = attention_block(inputs, p, self.a.heads)
        pools = {"max": np.max, "mean": np.mean}
        return np.concatenate([*(pools[name](hidden, axis=0) for name in self.a.pooled), *start])

    def scores(self, before, z):
        """Return scores of all words and of the end symbol, given the previous words and the vector z of the text."""
        m, p = self.a.hidden, self.part("decoder.")
        inputs = [self.p["words"][-1], *(self.p["words"][word] for word in before)]
        if self.a.recurrent:
            hidden = lstm(inputs, p, "l0", z[-2 * m : -m], z[-m:])[0][-1]
        else:
            inputs = [vector if not t else with_position(vector, t) for t, vector in enumerate(inputs)]
            hidden = attention_block(inputs, p, self.a.heads, causal=True)[-1]
        total = hidden
        for i, name in enumerate(self.a.pooled):
            pooled, gate = z[i * m : (i + 1) * m], self.part(f"gates.{name}.")
            total = total + pooled * sigmoid(gate["pooled"] @ pooled + gate["hidden"] @ hidden + gate["bias"])
        if self.a.pooled:
            total = layer_norm(total, self.p["gated_gain"], self.p["gated_bias"])
        return self.p["output"] @ total + self.p["output_bias"]

    def loss(self, words):
        z, total = self.encode(words), 0.0
        for t, word in enumerate([*words, self.end]):
            scores = self.scores(words[:t], z)
            total += math.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[word]
        return total

    def reconstruct(self, words, most):
        z, written = self.encode(words), []
        while len(written) < most and (word := int(np.argmax(self.scores(written, z)))) != self.end:
            written.append(word)
        return written


def transform(vector, parameters):
    """Transform a phrase vector into the other language's space."""
    return np.tanh(parameters.transform.astype(np.float64) @ vector + parameters.transform_bias.astype(np.float64))


def cosine(a, b):
    """Return the cosine of two vectors, 0 if one of them is zero."""
    norm = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(a @ b) / norm if norm > 0 else 0.0


def fnv(text, bits):
    """Return the FNV-1a hash of 32 or 64 bits."""
    h, prime = {32: (2166136261, 16777619), 64: (0xCBF29CE484222325, 0x100000001B3)}[bits]
    for byte in text:
        h = (h ^ byte) * prime % (1 << bits)
    return h


ESCAPES = {
    b"&amp;": b"&", b"&#124;": b"|", b"&lt;": b"<", b"&gt;": b">", b"&apos;": b"'", b"&quot;": b'"',
    b"&#91;": b"[", b"&#93;": b"]", b"&bar;": b"|", b"&bra;": b"[", b"&ket;": b"]",
}  # fmt: skip


def unescape(text):
    """Undo Moses' escapes in a single pass from left to right."""
    return re.sub(b"|".join(re.escape(e) for e in ESCAPES), lambda match: ESCAPES[match[0]], text)


def tokens(field):
    return [token for token in re.split(rb"[ \t]+", field) if token]


def is_label(token):
    return len(token) > 2 and token.startswith(b"[") and token.endswith(b"]")


def word_id(token, words):
    """Return the id of a whole token, else of its first factor, else 0; a token may begin with a literal pipe."""
    whole = unescape(token)
    if whole in words:
        return words.index(whole)
    pipe = token.find(b"|", 1)
    first = unescape(token[:pipe]) if pipe > 0 else None
    return words.index(first) if first in words else 0


def word_ids(field, words):
    return [word_id(token, words) for token in tokens(field) if not is_label(token)]


_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(rb"[+-]?inf", re.IGNORECASE)
_NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)


def number_fault(token):
    if _NAN.fullmatch(token):
        return "nan"
    return "ok" if _NUMBER.fullmatch(token) or _INFINITE.fullmatch(token) else "not a number"


@dataclass
class Line:
    """One parsed line of a table."""

    start: int
    end: int
    source: bytes | None
    target: bytes | None
    fault: str
    found: int
    score_end: int
    values: list
    pair: bytes | None


def parse_line(data, start, end, expected):
    content = data[start:end].removesuffix(b"\n").removesuffix(b"\r")
    fields = content.split(b"|||")
    if len(fields) < 3:
        source = fields[0] if len(fields) == 2 else None
        return Line(start, end, source, None, "few fields", len(fields), start + len(content), [], None)
    pair = fields[0] + b"|||" + fields[1]
    scores = list(re.finditer(rb"[^ \t]+", fields[2]))
    faults = [fault for fault in (number_fault(score[0]) for score in scores) if fault != "ok"]
    fault = faults[0] if faults else "ok"
    if fault == "ok" and (not scores or (expected >= 0 and len(scores) != expected)):
        fault = "wrong count"
    values = [float(score[0]) if number_fault(score[0]) == "ok" else None for score in scores]
    score_end = start + len(pair) + 3 + (scores[-1].end() if scores else 0)
    return Line(start, end, fields[0], fields[1], fault, len(scores), score_end, values, pair)


def parse_table(data, expected=-1):
    """Return the lines of a table, and the offsets of its source groups, followed by the number of lines."""
    lines, position = [], 0
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        lines.append(parse_line(data, position, end, expected))
        position = end
    groups, key = [], None
    for i, line in enumerate(lines):
        if i == 0:
            groups.append(i)
        if line.source is None:
            continue
        if key is not None and tokens(line.source) != key:
            groups.append(i)
        key = tokens(line.source)
    return lines, [*groups, len(lines)]


def group_sources(lines, groups):
    """Return the source field of each group, that of its first line with a source field."""
    result = pairwise(groups)
    return [next((line.source for line in lines[a:b] if line.source is not None), b"") for a, b in result]


def first_score_count(data):
    return next((line.found for line in parse_table(data)[0] if line.fault == "ok"), -1)


def cut_columns(data, count):
    """Remove the last `count` scores of every line of an annotated table."""
    out = []
    for line in data.split(b"\n"):
        fields = line.split(b"|||")
        if len(fields) > 2:
            fields[2] = re.sub(rb"( [^ \t\r]+){%d}([ \t\r]*)$" % count, rb"\2", fields[2])
        out.append(b"|||".join(fields))
    return b"\n".join(out)


def pruned_lines(lines, groups, similarities, scored, threshold, keep_top, protect):
    """Return the indices of the lines that the rule removes (design, section 4)."""
    removed = set()
    for first, last, source in zip(groups, groups[1:], group_sources(lines, groups), strict=False):
        good = [i for i in range(first, last) if lines[i].fault == "ok"]
        words = [token for token in tokens(source) if not is_label(token)]
        protected = protect == "all" or (protect == "words" and len(words) == 1)
        ranked = sorted(good, key=lambda i: -(float(similarities[i][0]) + float(similarities[i][1])) / 2)
        best = ranked[:keep_top] if protected else []
        for i in good:
            below = float(similarities[i][0]) < threshold and float(similarities[i][1]) < threshold
            if below and scored[i] and i not in best:
                removed.add(i)
    return removed


def encoded(phrase, parameters, kind):
    """Return the vector of a phrase, in float64."""
    if kind.name == "mean":
        known = [parameters.word_vectors[word].astype(np.float64) for word in phrase if word]
        return sum(known) / len(known) if known else np.zeros(parameters.word_vectors.shape[1])
    return rae(phrase, parameters)[0] if kind.name == "rae" else mean_max_phrase(phrase, parameters, kind.heads)


def carried(vector, parameters, kind):
    """Return a phrase vector in the other language's space."""
    if kind.name != "mean":
        return transform(vector, parameters)
    if not vector.any() or not kind.learns:
        return vector
    return parameters.transform.astype(np.float64) @ vector + parameters.transform_bias


def similarities(source, target, model):
    """Return both similarities of two phrases, given as word ids."""
    p_s, p_t = encoded(source, model.source, model.kind), encoded(target, model.target, model.kind)
    if not len(source) or not len(target):
        return 0.0, 0.0
    return (
        cosine(carried(p_s, model.source, model.kind), p_t),
        cosine(carried(p_t, model.target, model.kind), p_s),
    )


def split_lines(data):
    """Split into lines, keeping line feeds; no other character ends a line."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def is_ordered_subset(part, whole):
    rest = iter(whole)
    return all(line in rest for line in part)


def composition_losses(entries, jump):
    """Return the loss of each (source, target, score); sources and targets are tuples of words."""
    table = {}
    for source, target, score in entries:
        table[source, target] = max(score, table.get((source, target), -math.inf))

    def composed(source, target):
        result = [-math.inf]
        for i in range(1, len(source)):
            for k in range(1, len(target)):
                first, second = target[:k], target[k:]
                result.append(best(source[:i], first) + best(source[i:], second))
                result.append(best(source[:i], second) + best(source[i:], first) - 2 * jump * len(source))
        return max(result)

    def best(source, target):
        if (source, target) not in table:
            return -math.inf
        return max(table[source, target], composed(source, target))

    return [score - composed(source, target) for source, target, score in entries]


def impossible_joint_count(target, source, joint):
    """Return whether a joint count is 0, or exceeds that of a side by more than rounding to six digits explains."""
    return joint == 0 or any(joint * (1 - 1e-5) > side for side in (target, source))


def entry_counts(line, largest, fault="ok"):
    """Return c(t), c(s) and c(s,t) of a line with Moses' fields, and whether c(s,t) was derived."""
    fields = line.rstrip(b"\n").split(b"|||")
    row = [math.nan] * 3
    if fault != "ok" or len(fields) < 5:
        return row, False
    numbers = fields[4].replace(b"\r", b" ").split()
    for column, token in enumerate(numbers[:3]):
        if number_fault(token) == "ok" and 0 <= float(token) <= largest:
            row[column] = float(token)
    if impossible_joint_count(*row):
        row[2] = math.nan
    scores = fields[2].split()
    phi = float(scores[0])
    joint = phi * row[0]
    both_known = not any(map(math.isnan, row[:2]))
    possible = phi <= 1 and joint <= largest and not impossible_joint_count(row[0], row[1], joint)
    if len(numbers) == 2 and len(scores) >= 4 and both_known and possible:
        row[2] = float(round(joint)) if abs(joint - round(joint)) <= 1e-5 * joint else joint
        return row, True
    return row, False
