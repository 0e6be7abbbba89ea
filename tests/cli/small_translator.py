"""A bitext of a tiny language, and options for short training."""

import numpy as np

from tests.commands import write

WORDS = {
    "der": "the", "ein": "a", "hund": "dog", "mann": "man", "frau": "woman", "sieht": "sees", "ball": "ball",
    "rot": "red", "und": "and", "alt": "old", "haus": "house", "&apos;s": "&apos;s",
}  # fmt: skip
FAST = (
    "translator", "--units", 32, "--word-units", 16, "--dimension", 16, "--epochs", 2, "--batch-size", 16,
    "--min-count", 1, "--learning-rate", 0.02, "--threads", 1,
)  # fmt: skip


def sentences(count, seed=1):
    """Return source and target sentences with the same word order."""
    rng = np.random.default_rng(seed)
    names = list(WORDS)
    drawn = [[names[i] for i in rng.integers(0, len(names), rng.integers(2, 7))] for _ in range(count)]
    return [" ".join(words) for words in drawn], [" ".join(WORDS[w] for w in words) for words in drawn]


def bitext(folder, name, count, seed=1):
    """Write a bitext; return its two files."""
    folder.mkdir(exist_ok=True)
    sides = sentences(count, seed)
    return [
        write(folder / f"{name}.{side}", "".join(line + "\n" for line in lines).encode())
        for side, lines in zip(("de", "en"), sides, strict=True)
    ]


def vector_file(folder, dimension=16, words=(), **changes):
    """Write target-language word vectors as text; `changes` replace rows, and an empty row omits a word."""
    rng = np.random.default_rng(3)
    rows = {word: " ".join(f"{x:.5f}" for x in rng.normal(size=dimension)) for word in [*WORDS.values(), *words]}
    rows = {word.replace("&apos;s", "'s"): row for word, row in rows.items()} | changes
    return write(folder / "vectors", "".join(f"{word} {row}\n" for word, row in rows.items() if row).encode())
