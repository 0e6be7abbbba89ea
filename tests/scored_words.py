"""What a language model says of words, one after another, by the kernel that decoders use."""

import numpy as np

from phrasetool.kernels.jit import exact_kernel
from phrasetool.smt.language_model.automaton import score_word


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
