"""Files of an experiment: a small random model, texts that it can translate, and a configuration."""

import gzip
import random

import numpy as np

from phrasetool.phrase_encoder.kinds import Rae
from phrasetool.phrase_encoder.model import BilingualModel
from phrasetool.vocabulary import Vocabulary
from tests.conftest import random_parameters
from tests.decoder_models import SOURCE, TARGET, random_arpa

INI = """\
[distortion-limit]
3

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0 output-factor=0
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=3

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.3
PhrasePenalty0= 0.1
TranslationModel0= 0.3 0.2 0.4 0.1
Distortion0= 0.2
LM0= 0.4
"""

TEXTS = """\
[data.dev]
source = "dev.src"
target = "dev.trg"
[data.tests.one]
source = "one.src"
target = "one.trg"
"""
SECOND_TEST = """\
[data.tests.two]
source = "two.src"
target = "two.trg"
"""
DATA = f"""\
[data.bitext]
source = "train.src"
target = "train.trg"
{TEXTS}"""
CONFIG = f"""\
output = "out"
samples = 50
[moses]
ini = "moses.ini"
{DATA}{SECOND_TEST}[model]
folder = "model"
"""


def table_lines(seed=1):
    """Return some hundred table lines with sources of one and two words."""
    rng = random.Random(seed)
    sources = [[word] for word in SOURCE] + [[first, second] for first in SOURCE for second in SOURCE]
    lines = []
    for source in sorted(sources):
        targets = {tuple(rng.choices(TARGET, k=rng.randint(1, 3))) for _ in range(rng.randint(2, 14))}
        for target in sorted(targets):
            scores = b" ".join(b"%.4f" % rng.uniform(0.01, 1) for _ in range(4))
            points = b" ".join(b"%d-%d" % (i, i) for i in range(min(len(source), len(target))))
            joint = rng.randint(1, 9)
            counts = b"%d %d %d" % (joint + rng.randint(0, 9), joint + rng.randint(0, 9), joint)
            sides = b" ".join(source), b" ".join(target)
            lines.append(b"%s ||| %s ||| %s ||| %s ||| %s\n" % (*sides, scores, points, counts))
    return lines


def write_texts(folder, name, sentences, rng):
    """Write a random text and a random text of the same number of lines as its translation."""
    for side, words in (("src", SOURCE), ("trg", TARGET)):
        lines = [b" ".join(rng.choices(words, k=rng.randint(2, 7))) for _ in range(sentences)]
        (folder / f"{name}.{side}").write_bytes(b"\n".join(lines) + b"\n")


def small_model(seed=1, dimension=6):
    words = [b"<unk>", *SOURCE], [b"<unk>", *TARGET]
    sides = [random_parameters(len(side), dimension, seed + i) for i, side in enumerate(words)]
    return BilingualModel(*map(Vocabulary, words), *sides, Rae(), {"loss": "max-margin"})


def write_experiment(folder, more="", seed=1):
    """Write all files; return the path of the configuration, to which `more` is appended."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    (folder / "table.gz").write_bytes(gzip.compress(b"".join(table_lines(seed)), 1, mtime=0))
    (folder / "lm.arpa").write_bytes(random_arpa(rng))
    (folder / "moses.ini").write_text(INI)
    for name, sentences in (("train", 60), ("dev", 12), ("one", 15), ("two", 10)):
        write_texts(folder, name, sentences, rng)
    small_model(seed).save(folder / "model")
    path = folder / "experiment.toml"
    path.write_text(CONFIG + more)
    return path


def naive_bleu(hypothesis, reference):
    """Return standard corpus BLEU, smoothed like sacrebleu."""
    from collections import Counter

    matches, totals = np.zeros(4), np.zeros(4)
    length = reference_length = 0
    for translation, gold in zip(hypothesis, reference, strict=True):
        translation, gold = translation.split(), gold.split()
        length, reference_length = length + len(translation), reference_length + len(gold)
        for n in range(4):
            grams, gold_grams = (
                Counter(tuple(words[i : i + n + 1]) for i in range(len(words) - n)) for words in (translation, gold)
            )
            matches[n] += sum(min(count, gold_grams[gram]) for gram, count in grams.items())
            totals[n] += sum(grams.values())
    if not matches.any() or not totals.all():
        return 0.0
    smoothing = 1.0
    for n in range(4):
        if matches[n] == 0:
            smoothing *= 2
            matches[n] = 1 / smoothing
    brevity = min(0.0, 1 - reference_length / length)
    return float(100 * np.exp(np.mean(np.log(matches / totals)) + brevity))
