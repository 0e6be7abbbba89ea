"""Value of new entries for unknown words: BLEU of tables tuned with them, and precision of the entries.

For each language pair, a phrase-based model (the reference run's, or one built and tuned here) is measured with

    plain          its own table
    augmented      entries for the unknown words of the development set and the test sets, from all sources of evidence
    NAME           the same, from one source of evidence alone
    rare           as augmented, with additional entries for words that occur once or twice
    composed       entries for n-grams of these texts without one, composed from their parts' (composed_entries.py)
    alike          the half of these with the most similar source and target, by a model of the reference run

with the weights of the ini unchanged, and tuned from them with three seeds each.  BLEU statistics of all test sentences
are stored in benchmarks/results/augmenting/.  Files in the work folder and stored results are not computed again.

Precision is the share of the unknown tokens of the test sets for which an entry, or the best entry, has a target whose
words are all in the reference, for each source of evidence.  Two rules that need no further data are measured as well:
copying the word, and splitting a compound (the shortest known first part with a known rest) or else taking the known
word with the longest common prefix.
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
# Name -> the corpus; here Japanese is the source language.
PAIRS = {
    **{name: CORPORA[name] for name in ("multi30k-de-en", "multi30k-cs-en", "tatoeba-zh-en", "pydocs-es-en")},
    "pydocs-zh-en": Corpus("pydocs-zh-en", "zh", "en", ("test",)),
    "enja-small": Corpus("enja-small", "ja", "en", ("test",)),
}
SEEDS = (1, 2, 3)
# In place of a seed: the weights of the ini, not tuned.
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
    output_ini = folder / f"{system}.ini"
    if not output_ini.exists() and system in ("composed", "alike"):
        texts = [corpus.text(part, corpus.source) for part in ("dev", *corpus.tests)]
        entries = composed_entries(table, texts, corpus)
        if system == "alike":
            entries = alike(entries, work, threads)
        with_entries(table, entries, folder / f"{system}.gz")
        print(f"{len(entries):,} entries {system}", flush=True)
        command("moses-ini", ini, "--table", folder / f"{system}.gz", "-o", output_ini)
    if not output_ini.exists():
        evidence = system if system in EVIDENCE else ",".join(EVIDENCE)
        texts = [corpus.text(part, corpus.source) for part in ("dev", *corpus.tests)]
        command(
            "augment", table, *(word for text in texts for word in ("--text", text)), "--evidence", evidence,
            *(["--rare", "2"] if system == "rare" else []),
            "--moses-ini", ini, "--moses-ini-out", output_ini, "-o", folder / f"{system}.gz", "--threads", threads,
        )  # fmt: skip
    return output_ini


def composed_entries(table: Path, texts: Sequence[Path], corpus: Corpus) -> list[tuple[str, Entry]]:
    """Return entries for n-grams of texts that the table lacks."""
    grams = lacking(table, texts, corpus.train[0])
    parts = parts_of(table, grams)
    return [entry for gram in grams for entry in composed(gram, parts)]


def alike(entries: Sequence[tuple[str, Entry]], work: Path, threads: str) -> list[tuple[str, Entry]]:
    """Return the half of the entries with the highest mean similarity of both directions."""
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
    best = {known: entries[known][0].target for known in (word[:end] for end in range(len(word))) if known in entries}
    for first in range(_SHORTEST, len(word) - _SHORTEST + 1):
        if word[:first] in best and word[first:] in entries:
            return [f"{best[word[:first]]} {entries[word[first:]][0].target}"]
    known = max(entries.ordered, key=lambda candidate: (shared_beginning(word, candidate), -len(candidate)))
    return [entries[known][0].target] if shared_beginning(word, known) >= _SHORTEST else []


def rightness(corpus: Corpus, work: Path, threads: str) -> dict[str, Any]:
    """Count the unknown tokens of the test sets that have an entry whose target words are in the reference."""
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
    """Return the stored run of a system tuned with a seed."""
    return RUNS.run(f"{pair}/{system}-{seed}")


def figures_of(pair: str, all_seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Return BLEU of the systems of a pair, and differences to its plain table tuned with the same seeds."""
    samples: dict[str, dict[int, BleuSamples]] = {}
    for system, seed in itertools.product(SYSTEMS, all_seeds):
        if (run := stored_run(pair, system, seed)).exists():
            statistics = run.read()
            samples.setdefault(system, {})[seed] = Bootstrap(len(statistics))(statistics)
    figures: dict[str, Any] = {}
    for system, by_seed in samples.items():
        seeds = sorted(by_seed.keys() & samples.get("plain", {}).keys())
        figures[system] = {"BLEU": [round(by_seed[seed].bleu, 2) for seed in seeds]}
        if system != "plain" and seeds:
            both = ([samples[name][seed] for seed in seeds] for name in ("plain", system))
            figures[system]["to plain"] = compared(*both)
    return figures


def measure(pair: str, work: Path, systems: Sequence[str], seeds: Sequence[int], threads: str) -> None:
    """Build, tune and store the missing systems of a pair."""
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
