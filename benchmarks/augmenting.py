"""Value of new entries for unknown words: BLEU of tables tuned with them, and precision of the entries.

For each language pair a phrase-based model (the reference run's, or one built and tuned here), and

    plain          its table
    augmented      entries for the unknown words of the development set and the test sets, from all sources of evidence
    NAME           the same, from one source of evidence alone
    rare           as augmented, with more entries for words that were seen once or twice
    composed       entries for n-grams of these texts that have none, made of those of their parts (composed_entries.py)
    alike          of these, the half whose source and target mean most alike, by a model of the reference run

with the weights of the ini as they are, and tuned from them with three seeds each.  What is in the work folder is not
made again, nor what is finished: BLEU statistics of all test sentences, in benchmarks/results/augmenting/.

How right entries are: the share of the unknown tokens of the test sets of which some entry, or the best, stands in the
reference, for each source of evidence; and of two rules that need nothing: copying the word, and taking the parts of a
compound (the shortest first part that is known, with a known rest), else the known word with the longest shared
beginning.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from composed_entries import Entry, composed, lacking, line_of, parts_of, with_entries
from engines import CORPORA, SEARCH, Corpus, command, decoder
from measuring import WORK, reference, report
from neural_columns import compared, keep_statistics, tune
from stored import StoredRun, StoredStudy

from moses_compat.corpora.texts import read_text_lines
from moses_compat.files.streams import Input
from moses_compat.jobs.augmented_tables import read_words
from moses_compat.tables.blocks import TableScan
from phrasetool.augment.evidence import EVIDENCE, WordEntries, has_letter
from phrasetool.augment.relatives import shared_beginning
from phrasetool.smt.evaluation.bleu import BleuSamples, Bootstrap

RUNS = StoredStudy("augmenting")
# Name -> the corpus; Japanese is read here, and not written.
PAIRS = {
    **{name: CORPORA[name] for name in ("multi30k-de-en", "multi30k-cs-en", "tatoeba-zh-en", "pydocs-es-en")},
    "pydocs-zh-en": Corpus("pydocs-zh-en", "zh", "en", ("test",)),
    "enja-small": Corpus("enja-small", "ja", "en", ("test",)),
}
SEEDS = (1, 2, 3)
# In the place of a seed, for weights as they were.
AS_IT_WAS = 0
SYSTEMS = ("plain", "augmented", *EVIDENCE, "rare", "composed", "alike")
_SHORTEST = 3


def augmented(corpus: Corpus, work: Path, system: str, threads: str) -> Path:
    """Return the ini of a system; the report of `augment` is next to its table."""
    ini, table = decoder(corpus, work, threads)
    if system == "plain":
        return ini
    folder = work / "augmented"
    folder.mkdir(exist_ok=True)
    written = folder / f"{system}.ini"
    if not written.exists() and system in ("composed", "alike"):
        texts = [corpus.text(part, corpus.source) for part in ("dev", *corpus.tests)]
        entries = composed_entries(table, texts, corpus)
        if system == "alike":
            entries = alike(entries, work, threads)
        with_entries(table, entries, folder / f"{system}.gz")
        print(f"{len(entries):,} entries {system}", flush=True)
        command("moses-ini", ini, "--table", folder / f"{system}.gz", "-o", written)
    if not written.exists():
        evidence = system if system in EVIDENCE else ",".join(EVIDENCE)
        texts = [corpus.text(part, corpus.source) for part in ("dev", *corpus.tests)]
        command(
            "augment", table, *(word for text in texts for word in ("--text", text)), "--evidence", evidence,
            *(["--rare", "2"] if system == "rare" else []),
            "--moses-ini", ini, "--moses-ini-out", written, "-o", folder / f"{system}.gz", "--threads", threads,
        )  # fmt: skip
    return written


def composed_entries(table: Path, texts: Sequence[Path], corpus: Corpus) -> list[tuple[str, Entry]]:
    """Of n-grams of texts that the table lacks."""
    grams = lacking(table, texts, corpus.train[0])
    parts = parts_of(table, grams)
    return [entry for gram in grams for entry in composed(gram, parts)]


def alike(entries: Sequence[tuple[str, Entry]], work: Path, threads: str) -> list[tuple[str, Entry]]:
    """The half of them whose similarities, both ways, have the highest mean."""
    folder, table, annotated = work / "brae", work / "composed-alone.gz", work / "composed-annotated.gz"
    if not (folder / "config.json").exists():
        command("train", reference() / "forced-pairs.gz", "-o", folder, "--threads", threads)
    table.write_bytes(gzip.compress("".join(line_of(*entry) for entry in entries).encode("utf-8", "surrogateescape")))
    command("annotate", table, "-m", folder, "--scale", "raw", "-o", annotated, "--threads", threads)
    lines = read_text_lines(str(annotated))
    mean_similarities = np.array([list(map(float, line.split(" ||| ")[2].split()[-2:])) for line in lines]).mean(1)
    return [
        entry
        for entry, similarity in zip(entries, mean_similarities, strict=True)
        if similarity >= np.median(mean_similarities)
    ]


def two_rules(word: str, entries: WordEntries) -> list[str]:
    """Return the translations of the parts of a compound, or else the word with the longest common prefix."""
    best = {
        known: entries[known][0].target for known in (word[:place] for place in range(len(word))) if known in entries
    }
    for first in range(_SHORTEST, len(word) - _SHORTEST + 1):
        if word[:first] in best and word[first:] in entries:
            return [f"{best[word[:first]]} {entries[word[first:]][0].target}"]
    known = max(entries.ordered, key=lambda other: (shared_beginning(word, other), -len(other)))
    return [entries[known][0].target] if shared_beginning(word, known) >= _SHORTEST else []


def rightness(corpus: Corpus, work: Path, threads: str) -> dict[str, Any]:
    """Of the unknown tokens of the test sets, how many have entries that stand in the reference."""
    _, table = decoder(corpus, work, threads)
    rightness_file, texts = work / "rightness.json", []
    for part in corpus.tests:
        texts += ["--text", corpus.text(part, corpus.source), "--reference", corpus.text(part, corpus.target)]
    command("augment", table, *texts, "-o", work / "tests.gz", "--json", rightness_file, "--threads", threads)
    rightness = json.loads(rightness_file.read_text())
    with Input(str(table)) as source:
        known = read_words(source, len(EVIDENCE), TableScan())
    tokens: dict[str, list[set[str]]] = {}
    running = 0
    for part in corpus.tests:
        sides = [read_text_lines(corpus.text(part, language)) for language in (corpus.source, corpus.target)]
        for line, truth in zip(*sides, strict=True):
            for word in line.split():
                running += 1
                if word not in known.known and has_letter(word) and "|" not in word:
                    tokens.setdefault(word, []).append(set(truth.split()))

    def right(proposed: Iterable[tuple[str, list[str]]]) -> int:
        return sum(
            any(set(target.split()) <= truth for target in targets)
            for word, targets in proposed
            for truth in tokens[word]
        )

    rules = {"copying": right((word, [word]) for word in tokens)}
    rules["two rules"] = right((word, two_rules(word, known.entries)) for word in tokens)
    assert sum(map(len, tokens.values())) == rightness["tokens"]
    return {"running tokens": running, "rules": rules, **rightness}


def stored_run(pair: str, system: str, seed: int) -> StoredRun:
    """The results of a system tuned with a seed."""
    return RUNS.run(f"{pair}/{system}-{seed}")


def figures_of(pair: str, all_seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """BLEU of the systems of a pair, and differences to its plain table, tuned with the same seeds."""
    samples: dict[str, dict[int, BleuSamples]] = {}
    for system, seed in itertools.product(SYSTEMS, all_seeds):
        if (run := stored_run(pair, system, seed)).exists():
            statistics = run.read()
            samples.setdefault(system, {})[seed] = Bootstrap(len(statistics))(statistics)
    figures: dict[str, Any] = {}
    for system, found in samples.items():
        seeds = sorted(found.keys() & samples.get("plain", {}).keys())
        figures[system] = {"BLEU": [round(found[seed].bleu, 2) for seed in seeds]}
        if system != "plain" and seeds:
            both = ([samples[name][seed] for seed in seeds] for name in ("plain", system))
            figures[system]["to plain"] = compared(*both)
    return figures


def measure(pair: str, work: Path, systems: Sequence[str], seeds: Sequence[int], threads: str) -> None:
    """Make, tune and keep what is missing of a pair."""
    corpus = PAIRS[pair]
    work.mkdir(parents=True, exist_ok=True)
    if RUNS.record(pair) is None:
        RUNS.put(pair, record=rightness(corpus, work, threads))
    for system in systems:
        if not (run := stored_run(pair, system, AS_IT_WAS)).exists():
            keep_statistics(augmented(corpus, work, system, threads), corpus, work / "as-it-was", threads, run)
            print(pair, system, figures_of(pair, (AS_IT_WAS,)).get(system), flush=True)
    for seed, system in itertools.product(seeds, systems):
        if not (run := stored_run(pair, system, seed)).exists():
            ini = augmented(corpus, work, system, threads)
            tune(ini, corpus, work / "tuned" / f"{system}-{seed}", seed, threads, run)
            print(pair, system, seed, figures_of(pair).get(system), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK / "augmenting")
    parser.add_argument("--pairs", nargs="+", default=list(PAIRS), choices=PAIRS)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), choices=SEEDS)
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    for pair in options.pairs:
        measure(pair, options.work / pair, options.systems, options.seeds, options.threads)
        results = {
            name: {
                "entries": RUNS.record(name),
                "as it was": figures_of(name, (AS_IT_WAS,)), "BLEU": figures_of(name),
            } for name in PAIRS if RUNS.record(name) is not None
        }  # fmt: skip
        report("augmenting", {"search": SEARCH, "pairs": results})


if __name__ == "__main__":
    main()
