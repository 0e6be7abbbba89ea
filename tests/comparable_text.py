"""A comparable corpus with known gold pairs; the vector of each word is close to that of its translation."""

import numpy as np

from tests.text_encoder_folders import static_folder

WORDS = 120


def encoder_folder(folder, seed=0):
    rng = np.random.default_rng(seed)
    meanings = rng.normal(size=(WORDS, 16))
    vectors = np.vstack([meanings, meanings + 0.05 * rng.normal(size=meanings.shape)])
    return static_folder(folder, [f"s{i}" for i in range(WORDS)] + [f"t{i}" for i in range(WORDS)], vectors)


def sentences(seed=1, pairs=60, others=80):
    """Return source lines, target lines and the gold pairs; both sides are shuffled."""
    rng = np.random.default_rng(seed)

    def some(count):
        return [rng.integers(0, WORDS, rng.integers(4, 8)) for _ in range(count)]

    def text(side, words):
        return " ".join(f"{side}{word}" for word in words)

    true = some(pairs)
    sources = [text("s", words) for words in true + some(others)]
    targets = [text("t", words) for words in true + some(others)]
    gold = list(zip(sources[:pairs], targets[:pairs], strict=True))
    rng.shuffle(sources)
    rng.shuffle(targets)
    return sources, targets, gold


def write_corpus(folder, seed=1):
    sources, targets, gold = sentences(seed)
    (folder / "s.txt").write_text("\n".join(sources) + "\n")
    (folder / "t.txt").write_text("\n".join(targets) + "\n")
    (folder / "gold.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in gold))
    return gold
