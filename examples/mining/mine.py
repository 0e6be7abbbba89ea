"""From two texts that are no translations of each other to a phrase table, in a minute or two:

    python examples/mining/mine.py

Two German and English newspapers, so to say, report on the same things: some sentences of one are translations of
some of the other, most are not.  A classifier learns from a few trusted pairs what a translation is.  `mine` finds
pairs, `filter-bitext` looks at each again, and a phrase table is made of what is left.  The texts are made by rules,
see `toy_german.py`, so that it is known which pairs are right.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from toy_german import KNOWN_THINGS, Pair, sentences

TRUSTED, DEV, TRUE, OTHERS, TEST = 1500, 200, 1000, 1000, 200
_THREADED = ("train", "mine", "filter-bitext", "extract", "tune", "decode")


def say(text: str) -> None:
    """Print an explanation."""
    print(f"\n{text}", flush=True)


class Mining:
    """The steps, in the order in which they are shown.

    Args:
        out: folder for everything that is made.
        threads: the option of it, or nothing.
    """

    def __init__(self, out: Path, threads: Sequence[str] = ()) -> None:
        self.out, self.threads = out, threads
        self.right: set[Pair] = set()

    def run(self, *arguments: str | Path) -> None:
        """Print and run a phrasetool command."""
        words = [str(argument) for argument in arguments]
        if words[0] in _THREADED:
            words += self.threads
        print("\n$ phrasetool " + " ".join(words), flush=True)
        subprocess.run([sys.executable, "-m", "phrasetool", *words], check=True)

    def text(self, name: str) -> tuple[Path, Path]:
        """The files of a text in both languages."""
        return self.out / f"{name}.de", self.out / f"{name}.en"

    def write(self, name: str, sides: Iterable[Iterable[str]]) -> None:
        """Write a text in both languages."""
        for path, lines in zip(self.text(name), sides, strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def make(self, seed: int) -> None:
        """All texts."""
        self.out.mkdir(parents=True, exist_ok=True)
        rng, known = Random(seed), set[str]()
        for name, count, things in (("trusted", TRUSTED, KNOWN_THINGS), ("dev", DEV, KNOWN_THINGS)):
            self.write(name, zip(*(pair for pair, _ in sentences(rng, count, known, things)), strict=True))
        self.write("test", zip(*(pair for pair, _ in sentences(rng, TEST, known)), strict=True))
        true = [pair for pair, _ in sentences(rng, TRUE, known)]
        # What the other newspaper has in place of a translation: nothing like it, or a part of it.
        alone = sentences(rng, OTHERS, known)
        english = [part for _, part in alone[: OTHERS // 2]]
        english += [pair[1] for pair, _ in sentences(rng, OTHERS - OTHERS // 2, known)]
        sides = [side for side, _ in true] + [pair[0] for pair, _ in alone], [side for _, side in true] + english
        for side in sides:
            rng.shuffle(side)
        self.write("news", sides)
        self.right = set(true)
        say(
            f"1. THE TEXTS, in {self.out}/: {TRUSTED} trusted pairs; and two newspapers of {TRUE + OTHERS:,} sentences "
            f"each,\nof which {TRUE:,} have a translation in the other, in any order."
        )

    def learn(self) -> None:
        """The classifier."""
        say(
            "2. LEARN from the trusted pairs what a translation is. (So few of them want more epochs than the default.)"
        )
        self.run(
            "train", "classifier", *self.text("trusted"), "--dev", *self.text("dev"), "--epochs", "10",
            "--batch-size", "32", "--min-count", "1", "-o", self.out / "parallel", "--overwrite", "--quiet",
        )  # fmt: skip

    def mine(self) -> set[Pair]:
        """Pairs in the newspapers."""
        say("3. MINE the newspapers: for each sentence its nearest ones in the other language, the best pairs first.")
        mined = self.out / "mined.tsv"
        self.run("mine", *self.text("news"), "-m", self.out / "parallel", "-o", mined, "--quiet")
        pairs = [tuple(line.split("\t")[1:3]) for line in mined.read_text("utf-8").splitlines()]
        self.write("mined", zip(*pairs, strict=True))
        return self.told("mined")

    def filter(self) -> set[Pair]:
        """What stays of them."""
        say(
            "4. FILTER: the classifier judges each pair by itself, its lengths included. `best` is a threshold from\n"
            "the development set, where most pairs are wrong."
        )
        self.run(
            "filter-bitext", *self.text("mined"), "-m", self.out / "parallel", "-o", *self.text("kept"), "--rejected",
            self.out / "rejected.tsv", "--threshold", "best", "--quiet",
        )  # fmt: skip
        return self.told("kept")

    def told(self, name: str) -> set[Pair]:
        """Say how good pairs are; returns them."""
        german, english = (path.read_text("utf-8").splitlines() for path in self.text(name))
        found = set(zip(german, english, strict=True))
        right = len(found & self.right)
        print(
            f"\n{name}: {len(found):,} pairs, {right:,} of them right ({right / len(found):.0%}); "
            f"{right / TRUE:.0%} of the {TRUE:,} that there are"
        )
        return found

    def build(self, name: str, bitext: str) -> Path:
        """A phrase table and tuned weights, from a bitext; returns the translations of the test text."""
        engine = self.out / name
        engine.mkdir(exist_ok=True)
        aligned, table, reordering, ini = (
            engine / file for file in ("aligned.gz", "phrase-table.gz", "reordering.gz", "moses.ini")
        )
        source, target = self.text(bitext)
        self.run("align", source, target, "-o", aligned, "--quiet")
        self.run("extract", source, target, aligned, "-o", table, "--reordering-table", reordering, "--quiet")
        lm, tuned = self.out / "lm.arpa.gz", engine / "tuned.ini"
        self.run("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", ini)
        dev = self.text("dev")
        self.run(
            "tune", "--moses-ini", ini, "--dev", dev[0], dev[1], "--search", "cube", "--iterations",
            "4", "-o", tuned, "--quiet",
        )  # fmt: skip
        self.run("decode", "--moses-ini", tuned, self.out / "test.de", "-o", engine / "test.en", "--quiet")
        with gzip.open(table, "rt", encoding="utf-8") as lines:
            print(f"\n{name}: a phrase table of {sum(1 for _ in lines):,} entries")
        return engine / "test.en"

    def translate(self) -> None:
        """Tables of the trusted pairs alone, and with those that were found; BLEU of each."""
        say(
            "5. BUILD phrase tables: from the trusted pairs, and from them with what was mined, and what was kept of "
            "it.\nThe English newspaper is what the language model learns from."
        )
        self.run("lm", self.out / "news.en", "--order", "3", "-o", self.out / "lm.arpa.gz", "--quiet")
        translations = [self.build("by-trusted", "trusted")]
        for name in ("mined", "kept"):
            parts = [[path.read_text("utf-8").splitlines() for path in self.text(part)] for part in ("trusted", name)]
            self.write(f"trusted-{name}", [a + b for a, b in zip(*parts, strict=True)])
            translations.append(self.build(f"by-{name}", f"trusted-{name}"))
        say(f"6. TRANSLATE {TEST} sentences that nothing was learnt from, half of whose things the trusted pairs lack.")
        self.run("evaluate", *translations, "--reference", self.out / "test.en", "--metrics", "bleu", "--quiet")


def main() -> None:
    """Everything, from text to BLEU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("mining-output"), help="folder for what is made")
    parser.add_argument("--seed", type=int, default=1, help="of the texts")
    parser.add_argument("--threads", help="of each command; all processors if nothing is said")
    options = parser.parse_args()
    began = time.monotonic()
    steps = Mining(options.output, ("--threads", options.threads) if options.threads else ())
    steps.make(options.seed)
    steps.learn()
    mined = steps.mine()
    kept = steps.filter()
    gone = mined - kept
    wrong = len(gone - steps.right)
    print(
        f"filtering removed {wrong:,} of {len(mined - steps.right):,} wrong pairs, and {len(gone) - wrong:,} right ones"
    )
    steps.translate()
    say(f"Done in {time.monotonic() - began:.0f} s.")


if __name__ == "__main__":
    main()
