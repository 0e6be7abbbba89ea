"""n-best lists of an artificial language pair, and translators trained on it in both directions."""

import numpy as np

from tests.neural_models import learnt_model, random_model

WORDS = 12
SOURCE = [b"s%d" % i for i in range(WORDS)]
TARGET = [b"t%d" % i for i in range(WORDS)]


def make(folder):
    """Write `dev` and `test` as .src, .ref and .nbest, and models `forward`, `backward` and `untrained` to a folder.

    The decoder's score is weakly correlated with the share of correct words.
    """
    rng = np.random.default_rng(7)
    sentences = [rng.integers(0, WORDS, rng.integers(3, 6)).tolist() for _ in range(300)]
    for name, words in (("forward", (SOURCE, TARGET)), ("backward", (TARGET, SOURCE))):
        learnt_model(*words, sentences, folder / name)
    random_model(SOURCE, TARGET).save(folder / "untrained")
    for name, count in (("dev", 40), ("test", 30)):
        lines = [rng.integers(0, WORDS, rng.integers(4, 7)) for _ in range(count)]
        for language, words in (("src", SOURCE), ("ref", TARGET)):
            text = b"".join(b" ".join(words[i] for i in line) + b"\n" for line in lines)
            (folder / f"{name}.{language}").write_bytes(text)
        (folder / f"{name}.nbest").write_text("".join(_list(number, line, rng) for number, line in enumerate(lines)))
    for name, words in (("target.arpa", TARGET), ("source.arpa", SOURCE)):
        (folder / name).write_bytes(_language_model(words, rng))


def _language_model(words, rng):
    """Return a bigram model of all words, with random probabilities."""
    unigrams = [
        b"-2\t<unk>",
        b"-99\t<s>\t-0.5",
        b"-1\t</s>",
        *(b"-%.4f\t%b\t-0.25" % (rng.uniform(0.2, 2), w) for w in words),
    ]
    bigrams = [
        b"-%.4f\t%b %b" % (rng.uniform(0.1, 2), a, b) for a in (b"<s>", *words) for b in words if rng.random() < 0.5
    ]
    counts = [b"\\data\\", b"ngram 1=%d" % len(unigrams), b"ngram 2=%d" % len(bigrams)]
    lines = [*counts, b"", b"\\1-grams:", *unigrams, b"", b"\\2-grams:", *bigrams, b"", b"\\end\\", b""]
    return b"\n".join(lines)


def _list(number, line, rng):
    """Return eight hypotheses, best total first; it is 0.5 TM0 + 0.25 WordPenalty0 and a constant of the sentence."""
    collected = []
    for _ in range(8):
        correct = rng.random(len(line)) < rng.random()
        words = np.where(correct, line, rng.integers(0, WORDS, len(line)))
        first, second = round(correct.mean() + 0.5 * rng.normal(), 4), round(float(rng.normal()), 4)
        text = " ".join(f"t{word}" for word in words)
        collected.append((0.5 * first + 0.25 * second - number, text, first, second))
    return "".join(
        f"{number} ||| {text}  ||| TM0= {first:g} WordPenalty0= {second:g} ||| {total:.6g} ||| 0=0\n"
        for total, text, first, second in sorted(collected, reverse=True)
    )
