"""The n-best lists of the reference run, and other helpers for tests of tuning."""

import functools
import gzip

import numpy as np

from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.tuning.candidates import CandidatePool, NBest

SENTENCES = 300
# Weights of the run in the order of its lists: reordering, distortion, language model, word and phrase penalty, table.
SIGNS = np.array([1.0] * 8 + [-1.0] + [1.0] * 5)


@functools.cache
def read_lists(reference):
    """Return (n-best lists, references, total scores) of `id ||| words ||| features ||| total ||| ...`."""
    symbols = Symbols()
    truth = symbols.read_lines((reference.parent / "test_2016_flickr.en").read_bytes()).select(np.arange(SENTENCES))
    sentences, texts, features, totals = [], [], [], []
    with gzip.open(reference / "test_2016_flickr.first300.nbest50.gz") as lines:
        for line in lines:
            fields = line.split(b" ||| ")
            sentences.append(int(fields[0]))
            texts.append(fields[1])
            features.append([float(x) for x in fields[2].split() if not x.endswith(b"=")])
            totals.append(float(fields[3]))
    words = symbols.read_lines(b"\n".join(texts) + b"\n")
    lists = NBest(np.array(sentences, np.int32), np.array(features, np.float32), words)
    return lists, [truth], np.array(totals)


def reference_weights(reference):
    """Return the weights in moses.ini, in the order of the lists."""
    lines = (reference / "moses.ini").read_text().splitlines()
    named = dict(line.split("= ") for line in lines if "= " in line)
    names = ["LexicalReordering0", "Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0", "TranslationModel0"]
    return np.array([float(x) for name in names for x in named[name].split()])


def reference_pool(reference):
    lists, truth, _ = read_lists(reference)
    pool = CandidatePool(truth, lists.features.shape[1])
    pool.add(lists)
    return pool


def decoder_of(lists, size):
    """Return a decoder that returns the `size` best candidates of given lists."""
    groups = np.split(np.arange(len(lists.sentence)), np.flatnonzero(np.diff(lists.sentence)) + 1)

    def decode(weights):
        scores = lists.features @ weights
        result = np.concatenate([group[np.argsort(-scores[group], kind="stable")[:size]] for group in groups])
        return NBest(lists.sentence[result], lists.features[result], lists.words.select(result))

    return decode
