"""What vocabulary maps and shortlists cover, at equal candidates of a sentence, and how fast they are written.

For each language pair, a table (the reference run's, or one extracted here into the work folder), and its test sets:

    counts        as build-vmap.py of OpenNMT's WNMT 2018 papers chooses: the words of the N most frequently extracted
                  translations of each source phrase of up to three words
    vmap          `phrasetool export --to vmap`, by a least probability
    counts, words, and shortlist      the same for single words: the N most frequent translations, and `--to shortlist`

with the same words as candidates of every sentence.  From lists of several sizes follows, between them in a straight
line, how many reference tokens are covered at the mean number of candidates that the counts-only way has.

    python benchmarks/vocabulary_maps.py [PAIR ...] [--rounds 3]
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from augmenting import PAIRS
from engines import DATA, Corpus, command
from measuring import COMMAND, WORK, report, summary, usage

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.streams import Input
from phrasetool.vocabulary import unescape

LONGEST = 3
ALWAYS = 100
# Translations of a phrase, of the counts-only way; least probabilities, of ours.
DEPTHS = (1, 2, 3, 5, 8, 12, 20)
LEAST = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002, 0.001, 0.0005)
Map = dict[str, set[str]]


def table_of(corpus: Corpus, threads: str) -> Path:
    """The reference run's table, or one that is extracted if it is not there."""
    moses = DATA / corpus.name / "moses" / "phrase-table.gz"
    if moses.exists():
        return moses
    folder = WORK / "vocabulary_maps" / corpus.name / "engine"
    folder.mkdir(parents=True, exist_ok=True)
    aligned, table = folder / "aligned.gz", folder / "table.gz"
    if not aligned.exists():
        command("align", *corpus.train, "-o", aligned)
    if not table.exists():
        command("extract", *corpus.train, aligned, "-o", table, "--threads", threads)
    return table


def sentences(corpus: Corpus) -> tuple[list[list[str]], list[list[str]]]:
    """The test sets and their references, in words as they read."""

    def side(language: str) -> list[list[str]]:
        lines = (line for part in corpus.tests for line in read_text_lines(corpus.text(part, language)))
        return [unescape(line.encode()).decode().split() for line in lines]

    return side(corpus.source), side(corpus.target)


def runs(words: Sequence[str], longest: int = LONGEST) -> Iterable[str]:
    """The source phrases of a sentence."""
    for first, last in itertools.combinations(range(len(words) + 1), 2):
        if last - first <= longest:
            yield " ".join(words[first:last])


def by_counts(table: Path, needed: set[str]) -> tuple[dict[str, list[set[str]]], list[str]]:
    """The words of the translations of each phrase, the most frequent first; and all words from the most frequent on."""
    entries: defaultdict[str, list[tuple[float, set[str]]]] = defaultdict(list)
    frequencies: Counter[str] = Counter()
    with Input(str(table)) as source:
        for block in source.whole_lines():
            for line in unescape(block).decode("utf-8", "replace").splitlines():
                key, target, _, _, counts = line.split(" ||| ")[:5]
                words, joint = target.split(), float(counts.split()[2])
                if " " not in key:
                    frequencies.update({word: int(joint) for word in words})
                if key in needed:
                    entries[key].append((joint, set(words)))
    # Equally frequent ones stay in the order of the table.
    ranked = {key: [words for _, words in sorted(found, key=lambda one: -one[0])] for key, found in entries.items()}
    return ranked, [word for word, _ in frequencies.most_common(ALWAYS)]


def covered(sides: tuple[list[list[str]], list[list[str]]], chosen: Map, always: Iterable[str]) -> tuple[float, float]:
    """Mean candidates of a sentence, and the share of the reference tokens among them."""
    fixed, sizes, hits, tokens = set(always), 0, 0, 0
    for source, target in zip(*sides, strict=True):
        found = fixed.union(*(chosen[key] for key in runs(source) if key in chosen))
        sizes, tokens = sizes + len(found), tokens + len(target)
        hits += sum(word in found for word in target)
    return sizes / len(sides[0]), hits / tokens


def exported(table: Path, kind: str, least: float, work: Path, needed: set[str]) -> tuple[Map, list[str]]:
    """What a list that was exported says of the phrases that are needed, and what is always a candidate."""
    path = work / f"{kind}.txt"
    command("export", table, "--to", kind, "-o", path, "--always", ALWAYS, "--min-prob", least, "--targets", 1000)
    chosen: Map = defaultdict(set)
    always: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if kind == "vmap":
            key, _, words = line.partition("\t")
            if not key:
                always = words.split(" ")
            elif key in needed:
                chosen[key].update(words.split(" "))
        else:
            target, key, _ = line.split(" ")
            if key in needed:
                chosen[key].add(target)
    return chosen, always


def curves(corpus: Corpus, threads: str) -> dict[str, Any]:
    """Candidates and coverage of lists of all sizes, and ours at the candidates of the counts-only way."""
    table, sides = table_of(corpus, threads), sentences(corpus)
    work = WORK / "vocabulary_maps" / corpus.name
    work.mkdir(parents=True, exist_ok=True)
    needed = {key for line in sides[0] for key in runs(line)}
    ranked, _ = by_counts(table, needed)
    found: dict[str, Any] = {}
    for kind, longest in (("vmap", LONGEST), ("shortlist", 1)):
        ours, always = [], exported(table, "vmap", 1, work, needed)[1]
        for least in LEAST:
            ours.append(covered(sides, exported(table, kind, least, work, needed)[0], always))
        counts = []
        for depth in DEPTHS:
            chosen = {k: set().union(*v[:depth]) for k, v in ranked.items() if k.count(" ") < longest}
            counts.append(covered(sides, chosen, always))
        sizes, shares = zip(*ours, strict=True)
        at_equal = [float(np.interp(size, sizes, shares)) for size, _ in counts]
        found[kind] = {
            "candidates": [round(size, 2) for size, _ in counts],
            "counts": [round(100 * share, 2) for _, share in counts],
            "ours": [round(100 * share, 2) for share in at_equal],
            "outside": [not sizes[0] <= size <= sizes[-1] for size, _ in counts],
        }
    return found


def rightness(corpus: Corpus, threads: str) -> dict[str, Any]:
    """How many pairs of the lexicon are right in the first test set."""
    document = WORK / "vocabulary_maps" / corpus.name / "lexicon.json"
    texts = [corpus.text(corpus.tests[0], language) for language in (corpus.source, corpus.target)]
    command(
        "export", table_of(corpus, threads), "--to", "lexicon", "-o", document.with_suffix(".tsv"), "--json", document,
        "--evaluate", *texts, "--threads", threads,
    )  # fmt: skip
    told = json.loads(document.read_text())
    return {"pairs": told["pairs"], **told["rightness"]}


def speed(corpus: Corpus, threads: str, rounds: int) -> dict[str, Any]:
    """Seconds and memory of whole processes, after one that is not counted."""
    table, work = table_of(corpus, threads), WORK / "vocabulary_maps" / corpus.name
    lines = int(subprocess.run(f"zcat {table} | wc -l", shell=True, check=True, capture_output=True).stdout)
    found: dict[str, Any] = {"entries": lines, "threads": int(threads)}
    for kind in ("vmap", "shortlist", "lexicon", "bicleaner"):
        arguments = ["export", table, "--to", kind, "-o", work / f"{kind}.out.gz", "--threads", threads, "-q"]
        used = [usage([COMMAND, *map(str, arguments)]) for _ in range(rounds + 1)][1:]
        found[kind] = {
            "wall": summary([one.wall for one in used]), "cpu": summary([one.cpu for one in used]),
            "peak": max(one.peak for one in used),
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    figures: dict[str, Any] = {"always": ALWAYS, "pairs": {}}
    for name in given.pairs:
        corpus = PAIRS[name]
        figures["pairs"][name] = {**curves(corpus, given.threads), "lexicon": rightness(corpus, given.threads)}
    figures["speed"] = {given.pairs[0]: speed(PAIRS[given.pairs[0]], given.threads, given.rounds)}
    report("vocabulary_maps", figures)


if __name__ == "__main__":
    main()
