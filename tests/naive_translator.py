"""Slow reference implementation of a translator: one sentence, step and vector at a time, in double precision."""

import itertools
import math

import numpy as np

EPSILON = 1e-5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def unit(vector):
    return vector / math.sqrt(vector @ vector)


class Weights:
    """Arrays of a translator in double precision, looked up under a prefix of their names."""

    def __init__(self, arrays, prefix=""):
        self.arrays, self.prefix = arrays, prefix

    def __getitem__(self, name):
        return np.asarray(self.arrays[self.prefix + name], np.float64)

    def at(self, prefix):
        return Weights(self.arrays, self.prefix + prefix)


def gru(w, suffix, x, h):
    inputs = w[f"weight_ih_{suffix}"] @ x + w[f"bias_ih_{suffix}"]
    kept = w[f"weight_hh_{suffix}"] @ h + w[f"bias_hh_{suffix}"]
    (ir, iz, i_new), (hr, hz, h_new) = np.split(inputs, 3), np.split(kept, 3)
    reset, update = sigmoid(ir + hr), sigmoid(iz + hz)
    return (1 - update) * np.tanh(i_new + reset * h_new) + update * h


def lstm(w, suffix, x, state):
    h, c = state
    gates = (
        w[f"weight_ih_{suffix}"] @ x + w[f"bias_ih_{suffix}"] + w[f"weight_hh_{suffix}"] @ h + w[f"bias_hh_{suffix}"]
    )
    put, forget, new, out = np.split(gates, 4)
    c = sigmoid(forget) * c + sigmoid(put) * np.tanh(new)
    return sigmoid(out) * np.tanh(c), c


def places(length, width):
    """Return position encodings (Vaswani et al. 2017), sines in even, cosines in odd components; positions from 1."""
    table = np.zeros((length, width))
    for position, i in itertools.product(range(length), range(width)):
        angle = (position + 1) / 10000 ** (2 * (i // 2) / width)
        table[position, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return table


def norm(x, gain, bias):
    return (x - x.mean()) / math.sqrt(x.var() + EPSILON) * gain + bias


def block(w, heads, query, rows):
    """Return the output of a block for one word: self-attention to all rows, then norm, feed-forward, norm."""
    parts = []
    for head in range(heads):
        q, k, v = (np.split(w[f"attention.{name}"], heads)[head] for name in ("query", "key", "value"))
        weights = softmax(np.array([(q @ query) @ (k @ row) for row in rows]) / math.sqrt(len(q)))
        parts.append(sum(weight * (v @ row) for weight, row in zip(weights, rows, strict=True)))
    normed = norm(np.concatenate(parts), w["attention_gain"], w["attention_bias"])
    narrow = w["narrow"] @ np.maximum(w["widen"] @ normed + w["widen_bias"], 0) + w["narrow_bias"]
    return norm(narrow + normed, w["hidden_gain"], w["hidden_bias"])


class NaiveTranslator:
    def __init__(self, architecture, arrays):
        self.a, self.w = architecture, Weights(arrays)
        self.end = len(arrays["targets"]) - 1

    def encode(self, source):
        """Return the states of the words and the initial decoder states: none, one, or output and cell."""
        rows = [self.w["words"][word] for word in source]
        w = self.w.at("encoder.")
        if not self.a.recurrent:
            rows = [row + position for row, position in zip(rows, places(len(rows), self.a.word_units), strict=True)]
            return [block(w.at("block."), self.a.heads, row, rows) for row in rows], ()
        half = np.zeros(self.a.units // 2)
        directions, lasts = [], []
        for suffix, order in (("l0", rows), ("l0_reverse", rows[::-1])):
            state, result = ((half, half) if self.a.cell == "lstm" else half), []
            for row in order:
                state = (lstm if self.a.cell == "lstm" else gru)(w.at("cells."), suffix, row, state)
                result.append(state[0] if self.a.cell == "lstm" else state)
            directions.append(result if suffix == "l0" else result[::-1])
            lasts.append(state if self.a.cell == "lstm" else (state,))
        states = [np.concatenate(pair) for pair in zip(*directions, strict=True)]
        return states, tuple(np.concatenate(pair) for pair in zip(*lasts, strict=True))

    def read(self, word):
        table = self.w["read_targets" if self.a.output == "softmax" else "targets"]
        vector = np.zeros(table.shape[1]) if word is None else table[word]
        return self.w["read.weight"] @ vector + self.w["read.bias"]

    def predict(self, source, before):
        """Return the prediction after some target words, and the attention weights."""
        states, start = self.encode(source)
        layers = [start if self.a.cell == "lstm" else start[0] for _ in range(self.a.layers)] if start else []
        fed, rows = np.zeros(self.a.units), []
        for word in [None, *before]:
            x = self.read(word)
            if self.a.recurrent:
                x = np.concatenate([x, fed]) if self.a.input_feeding else x
                for layer in range(self.a.layers):
                    cell = lstm if self.a.cell == "lstm" else gru
                    layers[layer] = cell(self.w.at("core.cells."), f"l{layer}", x, layers[layer])
                    x = layers[layer][0] if self.a.cell == "lstm" else layers[layer]
                hidden = x
            else:
                rows.append(x + places(len(rows) + 1, self.a.word_units)[-1])
                hidden = block(self.w.at("core.block."), self.a.heads, rows[-1], rows)
            weights = softmax(np.array([hidden @ (self.w["compare.weight"] @ state) for state in states]))
            context = sum(weight * state for weight, state in zip(weights, states, strict=True))
            fed = np.tanh(self.w["combine.weight"] @ np.concatenate([context, hidden]))
        return self.w["output.weight"] @ fed + self.w["output.bias"], weights

    def log_probabilities(self, source, before, temperature):
        predicted, _ = self.predict(source, before)
        if self.a.continuous:
            logits = self.w["targets"] @ unit(predicted)
        else:
            logits = self.w["targets"] @ predicted + self.w["bias"]
        return np.log(softmax(logits / temperature))

    def score(self, source, target, temperature):
        """Return the sum of log p over the words of a target and its end symbol."""
        words = [*target, self.end]
        return sum(self.log_probabilities(source, words[:i], temperature)[word] for i, word in enumerate(words))

    def best(self, source, temperature, most):
        """Return the translation of up to `most` words with the highest mean log p, by exhaustive search."""
        translations = itertools.chain.from_iterable(
            itertools.product(range(self.end), repeat=length) for length in range(most + 1)
        )
        return max(
            (self.score(source, translation, temperature) / (len(translation) + 1), translation)
            for translation in translations
        )
