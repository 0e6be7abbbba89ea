"""A small model with one changed setting in its moses.ini, decoded by a real Moses and by phrasetool."""

import math
import random
import subprocess
from dataclasses import dataclass

from tests.commands import run_inside

INI = """\
[input-factors]
0
[mapping]
0 T 0
[distortion-limit]
4
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
Distortion
LexicalReordering name=RO num-features=6 type=wbe-msd-bidirectional-fe-allff input-factor=0 output-factor=0 path=ro
PhraseDictionaryMemory name=TM num-features=2 path=table input-factor=0 output-factor=0
KENLM name=LM factor=0 path=lm.arpa order=2
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -0.3
PhrasePenalty0= 0.1
Distortion0= 0.1
RO= 0.1 0.1 0.2 0.1 0.1 0.2
TM= 0.3 0.4
LM= 0.6
"""
# No table contains `q1`; Moses treats `,` as punctuation.
WORDS = ["a", "b", "c", "d", ","]
TARGETS = ["v", "w", "x", "y", ","]
TEXT = "a b c , d q1 a b\nb , c a\nd c b a , b\n\nq1\na b c d a b c d\n"
TOLERANCE = 1e-3


def write_files(folder):
    """Write the model and the text to a folder."""
    rng = random.Random(11)
    pairs = {}
    sources = [(word,) for word in WORDS] + [(s, t) for s in WORDS for t in WORDS if rng.random() < 0.5]
    sources += [("a", "b", "c"), ("c", ",", "d")]
    for source in sources:
        for _ in range(3):
            pairs[source, tuple(rng.choices(TARGETS, k=rng.choice([1, 1, 2, 2, 3])))] = rng.uniform(0.05, 1)
    lines, orders = [], []
    for (source, target), score in sorted(pairs.items()):
        pair = f"{' '.join(source)} ||| {' '.join(target)} |||"
        points = " ".join(f"{i}-{min(i, len(target) - 1)}" for i in range(len(source)))
        lines.append(f"{pair} {score:.4f} {rng.uniform(0.05, 1):.4f} ||| {points} ||| 2 2 1 ||| |||\n")
        orders.append(f"{pair} {' '.join(f'{rng.uniform(0.1, 1):.3f}' for _ in range(6))}\n")
    (folder / "table").write_text("".join(lines))
    (folder / "ro").write_text("".join(orders))
    bigrams = [f"{-rng.uniform(0.1, 2):.3f}\t{s} {t}\n" for s in TARGETS for t in TARGETS if rng.random() < 0.6]
    unigrams = [f"{-rng.uniform(0.5, 2):.3f}\t{word}\t{-rng.uniform(0, 1):.3f}\n" for word in TARGETS]
    unigrams += ["-2\t<unk>\t0\n", "-99\t<s>\t-0.3\n", "-1\t</s>\t0\n"]
    head = f"\\data\\\nngram 1={len(unigrams)}\nngram 2={len(bigrams)}\n\n\\1-grams:\n"
    (folder / "lm.arpa").write_text(head + "".join(unigrams) + "\n\\2-grams:\n" + "".join(bigrams) + "\n\\end\\\n")
    (folder / "text").write_text(TEXT)
    (folder / "file").write_text("")
    (folder / "folder").mkdir(exist_ok=True)


def with_section(name, *values):
    """Return the ini with an additional section, which replaces an existing section of the same name."""
    kept, in_section = [], False
    for line in INI.splitlines():
        in_section = line == f"[{name}]" if line.startswith("[") else in_section
        if not in_section:
            kept.append(line)
    return "\n".join([*kept, f"[{name}]", *values, ""])


def with_argument(kind, argument):
    """Return the ini with an additional argument of a feature, which replaces an argument of the same name."""
    key = argument.split("=")[0]
    lines = []
    for line in INI.splitlines():
        if line.split(" ")[0] == kind:
            line = " ".join([*(word for word in line.split(" ") if not word.startswith(f"{key}=")), argument])
        lines.append(line)
    return "\n".join([*lines, ""])


@dataclass
class Answer:
    """Result of one decoder: its translations and the best scores by sentence, or an error message."""

    lines: list | None
    totals: dict
    message: str = ""


def of_moses(program, ini):
    """Run a real Moses on the file `text` with the ini in `moses.ini`, both in the working directory."""
    with open("moses.ini", "w", encoding="utf-8") as file:
        file.write(ini)
    with open("text", "rb") as text, open("moses.out", "wb") as out:
        arguments = [program, "-f", "moses.ini", "-n-best-list", "moses.nbest", "1"]
        try:
            outcome = subprocess.run(arguments, stdin=text, stdout=out, stderr=subprocess.PIPE, timeout=30, check=False)
        except subprocess.TimeoutExpired:
            return Answer(None, {}, "does not end")
    errors = outcome.stderr.decode(errors="replace")
    if outcome.returncode:
        return Answer(None, {}, (errors.strip().splitlines() or [f"exit code {outcome.returncode}"])[-1])
    with open("moses.out", "rb") as out:
        return Answer([line.rstrip() for line in out], _totals("moses.nbest"))


def of_ours(ini):
    """Run phrasetool's decoder on the file `text` with the ini in `ours.ini`."""
    with open("ours.ini", "w", encoding="utf-8") as file:
        file.write(ini)
    outcome = run_inside(
        "decode", "--moses-ini", "ours.ini", "text", "-q", "--n-best-list", "ours.nbest", "1", "--threads", "1"
    )
    if outcome.code:
        return Answer(None, {}, outcome.message)
    return Answer([line.rstrip() for line in outcome.out.splitlines()], _totals("ours.nbest"))


def _totals(path):
    with open(path, "rb") as file:
        fields = [line.split(b"|||") for line in file]
    return {int(line[0]): float(line[3]) for line in fields}


def verdict(theirs, ours):
    """Return `same`, `refused`, `both stop`, or a description of the difference."""
    if ours.lines is None:
        return "both stop" if theirs.lines is None else "refused"
    if theirs.lines is None:
        return f"Moses stops: {theirs.message}"
    if theirs.lines != ours.lines:
        return f"{theirs.lines} but ours {ours.lines}"
    if theirs.totals.keys() != ours.totals.keys():
        return "other sentences in the n-best list"
    worst = max((abs(theirs.totals[i] - ours.totals[i]) for i in theirs.totals), default=0.0)
    return "same" if worst < TOLERANCE and not math.isnan(worst) else f"scores differ by {worst:g}"
