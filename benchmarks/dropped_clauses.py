"""Does a sentence-pair classifier detect a kind of containment that is not in its training data: a dropped clause?

The training data contain targets cut to one contiguous run of their words, or joined with another target.  Here words
in the middle are missing, and the beginning and the end are present.

    .venv/bin/python benchmarks/dropped_clauses.py --model parallel --source test.de --target test.en
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

import numpy as np

from moses_compat.corpora.bitexts import read_parallel_texts
from phrasetool.pair_classifier.model import PairClassifierModel
from phrasetool.pair_classifier.quality import measure_pair_classifier
from phrasetool.phrases import Phrases


def dropped_clauses(targets, pairs, known, rng):
    """Return targets without 35 to 65 % of their words, in the middle, for targets of at least four words.

    Args:
        targets: word ids of the targets of all pairs.
        pairs: indices of the pairs to use.
        known: known translations, which are never returned.
        rng: random number generator.

    Returns:
        The wrong targets, and the index of the pair of each.
    """
    shortened, of = [], []
    for pair in pairs.tolist():
        words = targets[pair].tolist()
        least, most = int(np.ceil(0.35 * len(words))), min(int(0.65 * len(words)), len(words) - 2)
        if least > most:
            continue
        size = int(rng.integers(least, most + 1))
        first = int(rng.integers(1, len(words) - size))
        remaining = words[:first] + words[first + size :]
        if not known.has(pair, np.array(remaining, np.int32)):
            shortened.append(remaining)
            of.append(pair)
    return Phrases.from_lists(shortened), np.array(of, np.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a classifier")
    parser.add_argument("--source", required=True, help="held-out sentences")
    parser.add_argument("--target", required=True, help="their translations")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    model = PairClassifierModel.load(options.model)
    texts = read_parallel_texts(options.source, options.target)
    quality = measure_pair_classifier(model, texts, options.seed, dropped_clauses)
    print(json.dumps({"signature": model.signature, **asdict(quality)}, indent=1))


if __name__ == "__main__":
    main()
