"""Mining comparable text: a thousand true pairs among three thousand sentences per side without a translation.

    python benchmarks/mining.py --make                        # writes the corpora and the remaining training text
    phrasetool train classifier work/mining/train.zh work/mining/train.en --dev ... -o model
    python benchmarks/mining.py model [MODEL ...]             # models of several seeds

There are Chinese and English texts of two kinds: everyday sentences (Tatoeba) and social media (Microtopia).  True
pairs are those of the development and the test set, filled up with training pairs; no sentence occurs in two of them.
Sentences without a translation come from training pairs: the Chinese side of one half and the English side of the
other half, and the reverse for the development corpus, so that the two corpora share no sentence of a side.  None of
these sentences is in the training text.

The results of each model and margin, with and without reranking, are F1 on the test corpus, at the threshold and with
the weight of the classifier's probabilities that are best on the development corpus; and accuracy@1, the share of true
sources whose best target is correct, among all targets and among the true ones.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROOT, WORK, report

from moses_compat.jobs.mine import WEIGHTS, MinedTexts, MiningSettings, mine_texts, settings_from_gold
from phrasetool.bitext.mining_quality import evaluate_mining
from phrasetool.pair_classifier.bitext_scores import PairEncoder, find_pair_encoder, load_pair_model
from phrasetool.text_encoders.encoders import find_text_encoder

FOLDER = WORK / "mining"
DATA = ROOT.parent / "shared" / "data"
SETS = {"tatoeba": "tatoeba-zh-en", "microtopia": "microtopia-zh-en"}
TRUE, OTHERS = 1000, 3000
MARGINS = ("absolute", "ratio", "distance")
BAR = {"accuracy_at_1": 0.75, "f1": {"tatoeba": 0.60, "microtopia": 0.75}}
_Pairs = list[tuple[str, str]]


def pairs(name: str, part: str) -> _Pairs:
    """Return the pairs of a part of a data set."""
    sides = []
    for side in ("zh", "en"):
        path = DATA / name / f"{part}.{side}"
        data = path.read_bytes() if path.is_file() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
        sides.append([" ".join(line.split()) for line in data.decode().splitlines()])
    return list(zip(*sides, strict=True))


def single(found: _Pairs) -> _Pairs:
    """Return the pairs whose sides occur in no earlier returned pair."""
    used: set[str] = set()
    kept = []
    for pair in found:
        if not used.intersection(pair):
            used.update(pair)
            kept.append(pair)
    return kept


def make(seed: int) -> None:
    """Write the development and the test corpus of each kind, and the training text."""
    remaining: _Pairs = []
    held: set[str] = set()
    for name, folder in SETS.items():
        rng = np.random.default_rng(seed)
        train = list(dict.fromkeys(pairs(folder, "train")))
        train = [train[i] for i in rng.permutation(len(train))]
        # Training pairs fill up sets with fewer than a thousand pairs of distinct sentences.
        true: dict[str, _Pairs] = {}
        known: set[str] = set()
        for part in ("dev", "test"):
            fresh = [pair for pair in pairs(folder, part) + train if not known.intersection(pair)]
            true[part] = single(fresh)[:TRUE]
            known |= {text for pair in true[part] for text in pair}
        known |= {text for part in true for pair in pairs(folder, part) for text in pair}
        unused = [pair for pair in train if not known.intersection(pair)]
        others = single(unused)[: 2 * OTHERS]
        halves = others[:OTHERS], others[OTHERS:]
        remaining += unused
        held |= known | {text for pair in others for text in pair}
        for part, (first, second) in (("test", halves), ("dev", halves[::-1])):
            corpus = FOLDER / f"{name}-{part}"
            corpus.mkdir(parents=True, exist_ok=True)
            texts = ([s for s, _ in true[part] + first], [t for _, t in true[part] + second])
            for side, lines in zip(("zh", "en"), texts, strict=True):
                shuffled = [lines[i] for i in rng.permutation(len(lines))]
                (corpus / side).write_text("\n".join(shuffled) + "\n")
            (corpus / "gold.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in true[part]))
            print(f"{corpus}: {len(true[part])} true pairs, {len(first)} + {len(second)} others")
    train = [pair for pair in remaining if not held.intersection(pair)]
    for side, name in enumerate(("zh", "en")):
        (FOLDER / f"train.{name}").write_text("\n".join(pair[side] for pair in train) + "\n")
    print(f"{FOLDER}/train.*: {len(train)} pairs to train on")


def gold(place: Path) -> set[tuple[bytes, bytes]]:
    return {tuple(line.split(b"\t")) for line in (place / "gold.tsv").read_bytes().splitlines()}  # type: ignore[misc]


def search(place: Path, encoder: PairEncoder, store: str, settings: MiningSettings) -> MinedTexts:
    return mine_texts(str(place / "zh"), str(place / "en"), encoder, lambda text, side: text, "", store, settings)


def listed(found: MinedTexts) -> tuple[Any, list[tuple[bytes, bytes]]]:
    return found.pairs.scores, [found.texts(row, False) for row in range(len(found.pairs))]


def figures(name: str, encoder: PairEncoder, settings: MiningSettings, store: str) -> dict[str, float]:
    """Return the results on one corpus with one margin, with or without reranking."""
    dev, test = FOLDER / f"{name}-dev", FOLDER / f"{name}-test"
    dev_pairs = search(dev, encoder, f"{store}-dev", settings)
    chosen = settings_from_gold(dev_pairs, str(dev / "gold.tsv"), settings, WEIGHTS)
    settings, threshold = chosen, chosen.threshold
    scores, mined = listed(search(test, encoder, f"{store}-test", settings))
    gold_pairs = gold(test)
    accepted = [row for row in range(len(mined)) if scores[row] >= threshold]
    final = evaluate_mining(scores[accepted], [mined[row] for row in accepted], gold_pairs)
    best = evaluate_mining(scores, mined, gold_pairs).best
    forward = evaluate_mining(
        *listed(search(test, encoder, f"{store}-test", replace(settings, retrieval="forward"))), gold_pairs
    )
    return {
        "f1": round(final.all.f1, 4), "precision": round(final.all.precision, 4), "recall": round(final.all.recall, 4),
        "f1_best_threshold": round(best.f1, 4) if best else 0.0, "accuracy_at_1": round(forward.accuracy_at_1, 4),
        "weight": settings.weight if settings.rerank else 0.0,
    }  # fmt: skip


def among_true(name: str, encoder: PairEncoder, settings: MiningSettings) -> float:
    """Return accuracy@1 if every sentence has a translation."""
    gold_pairs = sorted(gold(FOLDER / f"{name}-test"))
    with tempfile.TemporaryDirectory() as folder:
        for side, file in enumerate(("zh", "en")):
            Path(folder, file).write_bytes(b"".join(pair[side] + b"\n" for pair in gold_pairs))
        mined = search(Path(folder), encoder, f"{folder}/store", replace(settings, retrieval="forward"))
        return round(evaluate_mining(*listed(mined), set(gold_pairs)).accuracy_at_1, 4)


def of_model(folder: str, elsewhere: bool, threads: int, k: int) -> dict[str, Any]:
    encoder = find_pair_encoder(folder) if elsewhere else load_pair_model(folder)
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as stores:
        for name in SETS:
            for margin in MARGINS:
                for rerank in (0, 4) if encoder.model else (0,):
                    settings = MiningSettings(k=k, margin=margin, rerank=rerank, threads=threads)
                    row = figures(name, encoder, settings, f"{stores}/{name}")
                    row["accuracy_at_1_true_only"] = among_true(name, encoder, settings)
                    configuration = f"{margin}, reranked" if rerank else margin
                    results.setdefault(name, {})[configuration] = row
                    print(folder, name, configuration, row, flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="folders of classifiers, or of sentence encoders with --elsewhere")
    parser.add_argument("--make", action="store_true", help="write the corpora")
    parser.add_argument("--seed", type=int, default=1, help="of the corpora")
    parser.add_argument("--elsewhere", action="store_true", help="the folders hold external sentence encoders")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--name", default="mining", help="of the file of results")
    options = parser.parse_args()
    if options.make or not (FOLDER / "train.zh").is_file():
        make(options.seed)
    if not options.models:
        return
    each = [of_model(folder, options.elsewhere, options.threads, options.k) for folder in options.models]
    finder = find_text_encoder if options.elsewhere else load_pair_model
    identities = [
        getattr(finder(folder), "identity", None) or finder(folder).identities[0] for folder in options.models
    ]
    means = {
        name: {
            configuration: {
                metric: {
                    "mean": round(statistics.mean(values), 4), "min": min(values), "max": max(values),
                } for metric in row if (values := [results[name][configuration][metric] for results in each])
            } for configuration, row in rows.items()
        } for name, rows in each[0].items()
    }  # fmt: skip
    report(options.name, {"bar": BAR, "k": options.k, "models": identities, "all": means, "each": each})


if __name__ == "__main__":
    main()
