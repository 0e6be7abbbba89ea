"""Comparison of the decoder with a real Moses run: model, search, speed, forced decoding.

* model: every derivation of the reference n-best list is rescored, feature by feature;
* search: with the same table, weights, stack size and limits, is the model score of our best translation at least that
  of Moses?  It is if the words are the same; where they differ, Moses' words are forced-decoded to obtain their best
  score;
* BLEU on the four test sets, with plain stacks and with cube pruning;
* forced decoding of the training set;
* with `moses` and `moses2` on the PATH, their CPU time, start-up time and model scores compared with ours, in the same
  run.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import ROOT, TESTS, bleu, machine, reference, report

sys.path.insert(1, str(ROOT))
from real_decoders import SEARCHES, beside_moses

from moses_compat.engine.decoder_tables import InputPhrases
from moses_compat.engine.model import MosesModel
from phrasetool.phrases import Phrases
from phrasetool.smt.corpus.symbols import Symbols
from phrasetool.smt.decoder.forced import REASONS, ForcedDecoder, ForcedOptions, count_pairs
from phrasetool.smt.decoder.translator import Translator
from tests.n_best_lists import read_n_best
from tests.scored_words import score_sentence

MOSES_REACHED = 26272
TOLERANCE = 1e-3


def rescored(translator: Translator, sentences: Phrases, path: Path) -> dict[str, float]:
    """Return the largest difference of each feature and of the total over an n-best list."""
    table, features = translator.table, translator.features
    worst: dict[str, float] = {}
    count = missing = 0
    for candidate in read_n_best(str(path)):
        sentence = sentences[candidate.sentence]
        steps = []
        for first, last, target_first, target_last in candidate.spans:
            target_ids = [table.target_symbols.id(w) for w in candidate.words[target_first : target_last + 1]]
            span = table.source_symbols.join(sentence[first : last + 1])
            entry = find_entry(table, span, target_ids)
            steps.append((entry, first, last))
        count += 1
        if any(entry < 0 for entry, _, _ in steps):
            missing += 1
            continue
        values = translator.score_steps(np.array([0, len(steps)]), np.array(steps, np.int32).T)[0]
        copies = sum(bool(table.copies[entry]) for entry, _, _ in steps)
        for feature, part in features.slices.items():
            named = candidate.features[features.name(feature)]
            worst[feature] = max(worst.get(feature, 0.0), float(np.abs(values[part] - named).max()))
        total = float(values @ translator.weights) - 100 * copies
        worst["total"] = max(worst.get("total", 0.0), abs(total - candidate.total))
    return {"derivations": count, "not found in the table": missing, **{k: float(f"{v:.2e}") for k, v in worst.items()}}


_SOURCES: dict[bytes, dict[tuple[int, ...], int]] = {}


def find_entry(table, span: bytes, target: list[int]) -> int:
    """Return the entry with this source text and these target words, or -1."""
    if not _SOURCES:
        for source in range(len(table.first) - 1):
            first, last = table.index.offsets[source : source + 2]
            _SOURCES[table.source_symbols.join(table.index.words[first:last])] = {
                tuple(table.targets[e].tolist()): e for e in range(table.first[source], table.first[source + 1])
            }
    return _SOURCES.get(span, {}).get(tuple(target), -1)


def search(data: Path, folder: Path, model: MosesModel) -> dict:
    """Translate all four test sets with both search algorithms."""
    results_by_test: dict = {}
    cpu = {"stack": [0.0, 0], "cube": [0.0, 0]}
    at_least = sentences = same = 0
    for test in TESTS:
        translator, text = model.load((data / f"{test}.de").read_bytes(), threads=2)
        references = (data / f"{test}.en").read_text().splitlines()
        moses = (folder / f"{test}.moses.en").read_text().splitlines()
        moses = [line.strip() for line in moses]
        if test == "test_2016_flickr":
            _SOURCES.clear()
            results_by_test["model"] = rescored(translator, text.sentences, folder / f"{test}.first300.nbest50.gz")
        figures = {"moses": bleu(moses, references)}
        for algorithm, options in (
            ("stack", model.search),
            ("cube", replace(model.search, algorithm="cube", stack_size=400, pop_limit=400)),
        ):
            translator.translate(text.sentences[0], options)
            start = time.process_time()
            results = list(translator.translate_all(text.sentences, options))
            cpu[algorithm][0] += time.process_time() - start
            cpu[algorithm][1] += len(results)
            lines = [translator.text(result).decode() for result in results]
            figures[algorithm] = bleu(lines, references)
            if algorithm == "stack":
                forced = [i for i, line in enumerate(lines) if line != moses[i]]
                same += len(lines) - len(forced)
                sentences += len(lines)
                at_least += len(lines) - len(forced)
                at_least += sum(
                    float(results[i].steps.scores[0]) >= best_score(translator, text.sentences[i], moses[i]) - TOLERANCE
                    for i in forced
                )
        results_by_test[test] = figures
    results_by_test["search"] = {
        "sentences": sentences,
        "same words as Moses": same,
        "model score at least that of Moses' words": at_least,
        "share": round(at_least / sentences, 5),
    }
    for algorithm, (total, count) in cpu.items():
        results_by_test[f"{algorithm}: CPU ms a sentence"] = round(1000 * total / count, 2)
    return results_by_test


def best_score(translator: Translator, sentence: np.ndarray, words: str) -> float:
    """Return the best model score of all derivations of these words."""
    model = translator.language_model
    decoder = _DECODERS.get(id(translator))
    if decoder is None:
        _DECODERS.clear()
        decoder = _DECODERS[id(translator)] = ForcedDecoder(
            translator.table, translator.features, translator.weights, ForcedOptions(stack_size=2000)
        )
    tokens = words.encode().split()
    ids = np.array([translator.table.target_symbols.id(t) for t in tokens], np.int32)
    derivation = decoder.decode(sentence, ids)
    weight = translator.weights[translator.features.slices["LM"]][0]
    return derivation.score + weight * float(score_sentence(model, tokens).sum(dtype=np.float64)) * np.log(10)


_DECODERS: dict[int, ForcedDecoder] = {}


def forced(data: Path, model: MosesModel) -> dict:
    """Force-decode the training set to its references on two threads."""
    start, wall = time.process_time(), time.perf_counter()
    text = InputPhrases.of(gzip.decompress((data / "train.de.gz").read_bytes()))
    symbols = Symbols()
    target = gzip.decompress((data / "train.en.gz").read_bytes())
    table = model.load_table(text, symbols, threads=2)
    references = symbols.read_lines(target, add=False)
    loaded = time.process_time() - start
    decoder = ForcedDecoder(table, model.features, model.weights, ForcedOptions())
    decoder.decode(text.sentences[0], references[0])
    start, wall = time.process_time(), time.perf_counter()
    derivations = list(decoder.decode_all(text.sentences, references, threads=2))
    uses = count_pairs(derivations, table)
    outcomes = np.bincount([d.outcome for d in derivations], minlength=len(REASONS))
    return {
        "loading CPU seconds": round(loaded, 2),
        "CPU seconds": round(time.process_time() - start, 2),
        "wall seconds": round(time.perf_counter() - wall, 2),
        "sentences": len(derivations),
        "outcomes": {reason: int(n) for reason, n in zip(REASONS, outcomes, strict=True) if n},
        "reached by Moses": MOSES_REACHED,
        "distinct pairs": int((uses > 0).sum()),
        "uses": int(uses.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["search", "forced", "moses"])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="comparison with moses: each Nth sentence")
    parser.add_argument("--rounds", type=int, default=3, help="comparison with moses: rounds")
    parser.add_argument(
        "--searches", nargs="+", choices=list(SEARCHES), default=list(SEARCHES), help="comparison with moses"
    )
    parser.add_argument("--no-scores", action="store_true", help="comparison with moses: keep earlier model scores")
    options = parser.parse_args()
    folder = reference()
    model = MosesModel.read(str(folder / "moses.ini"))
    # New measurements replace earlier ones.
    kept = ROOT / "benchmarks" / "results" / "decoder.json"
    figures: dict = json.loads(kept.read_text()) if options.only and kept.exists() else {}
    if options.only in (None, "search"):
        figures |= search(folder.parent, folder, model)
    if options.only in (None, "forced"):
        figures["forced decoding"] = forced(folder.parent, model)
    if options.only in (None, "moses"):
        sentences = [line for test in TESTS for line in (folder.parent / f"{test}.de").read_text().splitlines()]
        comparison = beside_moses(
            folder, sentences[:: options.every], options.rounds, options.searches, not options.no_scores
        )
        kept_figures = figures.get("beside Moses", {})
        for name in options.searches:
            comparison[name] = kept_figures.get(name, {}) | comparison[name]
        figures["beside Moses"] = kept_figures | {"machine": machine()} | comparison
    report("decoder", {name: value for name, value in figures.items() if name not in ("benchmark", "machine")})


if __name__ == "__main__":
    main()
