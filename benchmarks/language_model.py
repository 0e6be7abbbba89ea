"""Comparison of the built-in estimator with lmplz's files of the reference run, and of the automaton with kenlm.

Estimates both language models of the reference with `phrasetool lm --estimator built-in` and compares every n-gram;
then scores every sentence of the test sets, and as many of the other language (mostly unknown words), with both
language models and with kenlm, word by word.  Time is given in seconds and as a ratio to `zcat | gzip -6` of the same
corpus and, if lmplz is on the PATH, to lmplz.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import kenlm
import numpy as np
from measuring import COMMAND, ROOT, WORK, reference, report, run, summary

sys.path.insert(1, str(ROOT))
from moses_compat.engine.arpa import load_language_model, read_arpa
from moses_compat.files.streams import Input
from phrasetool.smt.language_model.ngrams import BackoffModel
from tests.scored_words import score_words

ROUNDS = 3
TEST_SETS = ("dev", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")


def read(path: Path) -> BackoffModel:
    with Input(str(path)) as source:
        return read_arpa(source)


def compare(ours: BackoffModel, theirs: BackoffModel) -> dict:
    """Return the largest differences of log10 probabilities and back-offs if words and n-grams are equal."""
    same = ours.words == theirs.words
    probabilities = backoffs = 0.0
    for our_table, lmplz_table in zip(ours.tables, theirs.tables, strict=True):
        same = same and np.array_equal(our_table.words, lmplz_table.words)
        if not same:
            break
        probabilities = max(
            probabilities, float(abs(our_table.log_probabilities - lmplz_table.log_probabilities).max())
        )
        backoffs = max(backoffs, float(abs(our_table.backoffs - lmplz_table.backoffs).max()))
    return {
        "ngrams_of_the_reference": [len(table) for table in theirs.tables],
        "same_ngrams": same,
        "largest_difference_log10_probability": probabilities if same else None,
        "largest_difference_log10_backoff": backoffs if same else None,
    }


def estimate(name: str, corpora: list[str], options: list[str], expected: Path) -> dict:
    """Estimate a model several times, and compare it with the reference's file."""
    output = WORK / f"{name}.arpa.gz"
    command = [COMMAND, "lm", *corpora, *options, "-o", str(output), "-q", "--estimator"]
    commands: dict = {"built-in": [*command, "built-in"], "zcat_gzip": f"zcat {' '.join(corpora)} | gzip -6"}
    if shutil.which("lmplz"):
        commands["lmplz"] = [*command, "lmplz"]
    times: dict[str, list[float]] = {key: [] for key in commands}
    peak = 0
    for number in range(ROUNDS + 1):
        # The built-in estimator runs last, because its file is compared.
        for key in reversed(commands):
            seconds, memory = run(commands[key])
            if number:
                times[key].append(seconds)
            if key == "built-in":
                peak = max(peak, memory)
    least = {key: min(values) for key, values in times.items()}
    figures = {
        "command": " ".join(["phrasetool lm", *options]),
        **compare(read(output), read(expected)),
        "seconds": {key: summary(values) for key, values in times.items()},
        "ratio_to_zcat_gzip": round(least["built-in"] / least["zcat_gzip"], 2),
        "peak_mb": round(peak / 1e6),
        "size_ratio_to_reference_file": round(output.stat().st_size / expected.stat().st_size, 3),
    }
    if "lmplz" in least:
        figures["ratio_to_lmplz"] = round(least["built-in"] / least["lmplz"], 2)
    return figures


def score(path: Path, sentences: list[bytes]) -> dict:
    """Load a model several times (the first may compile), and score sentences with it and with kenlm."""
    seconds = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        model = load_language_model(str(path))
        seconds.append(time.process_time() - start)
    config = kenlm.Config()
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    start = time.process_time()
    peer = kenlm.Model(str(path), config)
    peer_seconds = time.process_time() - start
    ids = [np.append(model.ids(sentence.split()), np.int32(model.end_word)) for sentence in sentences]
    difference, words, unknown = 0.0, 0, 0
    for sentence, numbers in zip(sentences, ids, strict=True):
        expected = list(peer.full_scores(sentence.decode()))
        word_scores, _ = score_words(model, numbers, model.begin_state)
        difference = max(difference, float(abs(word_scores - np.array([score for score, _, _ in expected])).max()))
        words += len(expected)
        unknown += sum(oov for _, _, oov in expected)
    text = np.concatenate(ids)
    text = np.tile(text, -(-5_000_000 // len(text)))
    start = time.process_time()
    score_words(model, text, model.begin_state)
    query = (time.process_time() - start) / len(text)
    return {
        "words_scored": words,
        "unknown_words": unknown,
        "largest_difference_to_kenlm": difference,
        "load_cpu_seconds": summary(seconds[1:]),
        "load_ratio_to_kenlm": round(min(seconds[1:]) / peer_seconds, 2),
        "nanoseconds_a_word": round(query * 1e9, 1),
        "automaton_mb": round(sum(a.nbytes for a in (model.automaton.arcs, model.automaton.signatures)) / 1e6, 1),
    }


def main() -> None:
    folder = reference()
    data = folder.parent
    train, mono = str(data / "train.en.gz"), str(data / "mono" / "mono.en.gz")
    WORK.mkdir(parents=True, exist_ok=True)
    models = {
        "lm3.train": ([train], ["--order", "3"]),
        "lm5.pruned": ([train, mono], ["--order", "5", "--prune", "0", "0", "1", "1", "2"]),
    }
    sentences = [
        line
        for language in ("en", "de")
        for name in TEST_SETS
        for line in (data / f"{name}.{language}").read_bytes().split(b"\n")[:-1]
    ]
    figures = {}
    for name, (corpora, options) in models.items():
        path = folder / f"{name}.arpa.gz"
        figures[name] = {**estimate(name, corpora, options, path), "scores": score(path, sentences)}
    report("language_model", figures)


if __name__ == "__main__":
    main()
