"""Coverage of vocabulary maps and shortlists at an equal number of candidates per sentence, and speed of writing them.

For each language pair, a table (the reference run's, or one extracted here into the work folder) and its test sets are
used to compare

    counts        as build-vmap.py of OpenNMT's WNMT 2018 papers: the words of the N most frequently extracted
                  translations of each source phrase of up to three words
    vmap          `phrasetool export --to vmap`, by a minimum probability
    counts, words, and shortlist      the same for single words: the N most frequent translations, and `--to shortlist`

with the same words as candidates of every sentence.  The coverage of reference tokens at the mean number of candidates
of `counts` is interpolated linearly between lists of several sizes.

    python benchmarks/vocabulary_maps.py [PAIR ...] [--rounds 3]
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from augmenting import PAIRS
from engines import Corpus, command
from measuring import COMMAND, DATA, WORK, report, summary, usage

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.streams import Input
from phrasetool.vocabulary import unescape

LONGEST = 3
ALWAYS = 100
# Translations per phrase, for `counts`; minimum probabilities, for `vmap` and `shortlist`.
DEPTHS = (1, 2, 3, 5, 8, 12, 20)
LEAST = (0.7, 0.55, 0.45, 0.37, 0.3, 0.2, 0.1, 0.05, 0.03, 0.015, 0.007, 0.003, 0.0015, 0.0007)
Map = dict[str, set[str]]


def table_of(corpus: Corpus, threads: str) -> Path:
    """Return the reference run's table, or one that is extracted if missing."""
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
    """Return the test sets and their references as unescaped words."""

    def side(language: str) -> list[list[str]]:
        lines = (line for part in corpus.tests for line in read_text_lines(corpus.text(part, language)))
        return [unescape(line.encode()).decode().split() for line in lines]

    return side(corpus.source), side(corpus.target)


def runs(words: Sequence[str], longest: int = LONGEST) -> Iterable[str]:
    """Yield the source phrases of a sentence."""
    for first, last in itertools.combinations(range(len(words) + 1), 2):
        if last - first <= longest:
            yield " ".join(words[first:last])


def by_counts(table: Path, needed: set[str]) -> dict[str, list[set[str]]]:
    """Return the words of the translations of each phrase, most frequent first."""
    entries: defaultdict[str, list[tuple[float, set[str]]]] = defaultdict(list)
    with Input(str(table)) as source:
        for block in source.whole_lines():
            for line in unescape(block).decode("utf-8", "replace").split("\n"):
                key, _, rest = line.partition(" ||| ")
                if key in needed and rest:
                    target, _, _, counts = rest.split(" ||| ")[:4]
                    entries[key].append((float(counts.split()[2]), set(target.split())))
    # Equally frequent translations keep the order of the table.
    return {
        key: [words for _, words in sorted(candidates, key=lambda candidate: -candidate[0])]
        for key, candidates in entries.items()
    }


def covered(sides: tuple[list[list[str]], list[list[str]]], chosen: Map, always: Iterable[str]) -> tuple[float, float]:
    """Return the mean number of candidates of a sentence, and the share of reference tokens among them."""
    fixed, sizes, hits, tokens = set(always), 0, 0, 0
    for source, target in zip(*sides, strict=True):
        candidates = fixed.union(*(chosen[key] for key in runs(source) if key in chosen))
        sizes, tokens = sizes + len(candidates), tokens + len(target)
        hits += sum(word in candidates for word in target)
    return sizes / len(sides[0]), hits / tokens


def vocabulary_map(table: Path, least: float, work: Path, needed: set[str]) -> tuple[Map, list[str]]:
    """Return the candidates of the needed phrases in a vocabulary map, and the candidates of all sentences."""
    path = work / "vmap.txt"
    command(
        "export", table, "--to", "vmap", "-o", path, "--always", ALWAYS, "--min-probability", least, "--targets", 1000
    )
    chosen: Map = {}
    for line in path.read_text("utf-8").split("\n")[:-1]:
        key, _, words = line.partition("\t")
        if not key or key in needed:
            chosen[key] = set(words.split(" "))
    return chosen, sorted(chosen.pop(""))


def shortlist(table: Path, work: Path, needed: set[str]) -> list[tuple[str, str, float]]:
    """Return source, target and probability of the needed words in a shortlist."""
    path = work / "shortlist.txt"
    command("export", table, "--to", "shortlist", "-o", path, "--min-probability", LEAST[-1], "--targets", 100_000)
    fields = (line.split(" ") for line in path.read_text("utf-8").split("\n")[:-1])
    return [(source, target, float(share)) for target, source, share in fields if source in needed]


def curves(corpus: Corpus, threads: str) -> dict[str, Any]:
    """Return candidates and coverage of `counts` for all sizes, and coverage of ours with as many candidates."""
    table, sides = table_of(corpus, threads), sentences(corpus)
    work = WORK / "vocabulary_maps" / corpus.name
    work.mkdir(parents=True, exist_ok=True)
    needed = {key for line in sides[0] for key in runs(line)}
    ranked = by_counts(table, needed)
    maps = [vocabulary_map(table, least, work, needed) for least in LEAST]
    always = maps[0][1]
    listed = shortlist(table, work, needed)
    lists: list[Map] = []
    for least in LEAST:
        lists.append(defaultdict(set))
        for source, target, share in listed:
            if share >= least:
                lists[-1][source].add(target)
    results: dict[str, Any] = {}
    for kind, maps_by_size, longest in (("vmap", [chosen for chosen, _ in maps], LONGEST), ("shortlist", lists, 1)):
        sizes, shares = zip(*(covered(sides, chosen, always) for chosen in maps_by_size), strict=True)
        counts = [
            covered(sides, {k: set().union(*v[:depth]) for k, v in ranked.items() if k.count(" ") < longest}, always)
            for depth in DEPTHS
        ]
        results[kind] = {
            "candidates": [round(size, 2) for size, _ in counts],
            "counts": [round(100 * share, 2) for _, share in counts],
            "ours": [round(100 * float(np.interp(size, sizes, shares)), 2) for size, _ in counts],
            "outside": [not sizes[0] <= size <= sizes[-1] for size, _ in counts],
        }
    return results


def rightness(corpus: Corpus, threads: str) -> dict[str, Any]:
    """Return the number of pairs of the lexicon, and how many are correct in the first test set."""
    document = WORK / "vocabulary_maps" / corpus.name / "lexicon.json"
    texts = [corpus.text(corpus.tests[0], language) for language in (corpus.source, corpus.target)]
    command(
        "export", table_of(corpus, threads), "--to", "lexicon", "-o", document.with_suffix(".tsv"), "--json", document,
        "--evaluate", *texts, "--threads", threads,
    )  # fmt: skip
    report = json.loads(document.read_text())
    right = report["rightness"]
    return {"pairs": report["pairs"], "seen": right.pop("pairs"), **right}


def speed(corpus: Corpus, threads: str, rounds: int) -> dict[str, Any]:
    """Return seconds and memory of whole processes, after a warm-up run."""
    table, work = table_of(corpus, threads), WORK / "vocabulary_maps" / corpus.name
    work.mkdir(parents=True, exist_ok=True)
    lines = int(subprocess.run(f"zcat {table} | wc -l", shell=True, check=True, capture_output=True).stdout)
    results: dict[str, Any] = {"entries": lines, "threads": int(threads)}
    for kind in ("vmap", "shortlist", "lexicon", "bicleaner"):
        arguments = ["export", table, "--to", kind, "-o", work / f"{kind}.out.gz", "--threads", threads, "-q"]
        usages = [usage([COMMAND, *map(str, arguments)]) for _ in range(rounds + 1)][1:]
        results[kind] = {
            "wall": summary([process.wall for process in usages]), "cpu": summary([process.cpu for process in usages]),
            "peak": max(process.peak for process in usages),
        }  # fmt: skip
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    # Speed is measured first, because the peak memory of a process includes that of the process that starts it.
    timed = {options.pairs[0]: speed(PAIRS[options.pairs[0]], options.threads, options.rounds)}
    figures: dict[str, Any] = {"always": ALWAYS, "speed": timed, "pairs": {}}
    for name in options.pairs:
        corpus = PAIRS[name]
        figures["pairs"][name] = {**curves(corpus, options.threads), "lexicon": rightness(corpus, options.threads)}
    report("vocabulary_maps", figures)


if __name__ == "__main__":
    main()
