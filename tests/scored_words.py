"""What a language model says of words, one after another, by the kernel that decoders use."""

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
    """log10 of the probability of each word, float32, and the state after the last; words are ids of the model."""
    words = np.ascontiguousarray(words, np.int32)
    scores = np.empty(len(words), np.float32)
    return scores, int(_score_words(model.automaton, state, words, scores))


def score_sentence(model, words):
    """log10 of the probability of each word of a sentence, from `<s>` to `</s>`; words are bytes."""
    return score_words(model, np.append(model.ids(words), np.int32(model.end_word)), model.begin_state)[0]


@exact_kernel
def _score_jointly(models, state, words, scores, states):
    for i in range(len(words)):
        scores[i], state = score_phrase(models, words, i, i + 1, state)
        states[i] = state


def score_jointly(models, sentences, weights):
    """The weighted log10 of the words of sentences after `<s>`, and the states after them, of several models.

    Words are bytes; the states of all sentences are of one search.  Returns a pair of lists for each sentence.
    """
    searched = models.searched(np.array(weights, np.float64), sum(map(len, sentences)))
    collected = []
    for sentence in sentences:
        words = models.ids(sentence)
        scores, states = np.empty(len(words)), np.empty(len(words), np.int64)
        _score_jointly(searched.model, searched.begin_state, words, scores, states)
        collected.append((searched.weight * scores, states.tolist()))
    return collected
