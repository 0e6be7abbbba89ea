"""Scores of word sequences by a language model, from the kernel that decoders use."""

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.smt.language_model.automaton import score_word
from phrasetool.smt.language_model.combination import score_phrase


@exact_kernel
def _score_words(automaton, state, words, scores):
    for i in range(len(words)):
        scores[i], state = score_word(automaton, state, words[i])
    return state


def score_words(model, words, state):
    """Return log10 probabilities of words (ids of the model) in float32, and the state after the last word."""
    words = np.ascontiguousarray(words, np.int32)
    scores = np.empty(len(words), np.float32)
    return scores, int(_score_words(model.automaton, state, words, scores))


def score_sentence(model, words):
    """Return log10 probabilities of the words (bytes) of a sentence and of `</s>`, starting after `<s>`."""
    return score_words(model, np.append(model.ids(words), np.int32(model.end_word)), model.begin_state)[0]


@exact_kernel
def _score_jointly(models, state, words, scores, states):
    for i in range(len(words)):
        scores[i], state = score_phrase(models, words, i, i + 1, state)
        states[i] = state


def score_jointly(models, sentences, weights):
    """Return weighted log10 scores of words by several models, and the states after them, as two lists per sentence.

    Words are bytes; each sentence starts after `<s>`.  The states of all sentences belong to one search.
    """
    searched = models.searched(np.array(weights, np.float64), sum(map(len, sentences)))
    collected = []
    for sentence in sentences:
        words = models.ids(sentence)
        scores, states = np.empty(len(words)), np.empty(len(words), np.int64)
        _score_jointly(searched.model, searched.begin_state, words, scores, states)
        collected.append((searched.weight * scores, states.tolist()))
    return collected
