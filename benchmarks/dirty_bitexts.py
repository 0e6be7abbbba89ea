"""Cost of noise in a bitext, and recovery by filtering the bitext, pruning the table, or both.

    tatoeba-zh-en     all pairs, as many pairs with the target of another pair, as many wrong by containment
    multi30k-de-en    half of the pairs have the target of another pair

The filter is a sentence-pair classifier without clean training pairs except those of the development set: one is
trained on each half of the dirty bitext and scores the other half, without labels of wrong pairs.  `filtered loosely`
keeps pairs that are parallel with a probability of at least 0.1, because a table tolerates noise.  `fluent` keeps as
many pairs as `filtered`, those with the largest cross-entropy difference of both sides (Moore and Lewis 2010) between
language models of the development set and of as many pairs of the dirty bitext.  For each bitext, a separate
phrase-based model is built (aligned, extracted, tuned); all share one language model, of the clean targets.

The tables of the dirty and of the filtered bitext are pruned as in `pruning_study.py`, with models of the default loss
and of BRAE's that are trained on leave-one-out forced decoding of the same bitext.  benchmarks/results/dirty_bitexts/
holds the BLEU statistics of every sentence of every system.  Interrupted work continues from the files in the work
folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from engines import SEARCH, command
from measuring import DATA, ROOT, WORK
from study import DEFAULT_LOSS, Results
from trial import MODELS, NEEDS, SEEDS, Trial, at_thresholds, of_size

from moses_compat.corpora.texts import read_text_lines
from moses_compat.experiments.config import read_experiment_config
from moses_compat.experiments.settings import ExperimentConfig, PruningSystem
from phrasetool.pair_classifier.labelled_pairs import KnownTranslations, containment_negatives
from phrasetool.phrases import Phrases
from phrasetool.pruning.measures import COUNTS

RESULTS = ROOT / "benchmarks" / "results" / "dirty_bitexts"
TITLES = {"tatoeba-zh-en": "Tatoeba Chinese-English", "multi30k-de-en": "Multi30k German-English"}
# Loss -> seeds of its models.
LOSSES = {DEFAULT_LOSS: SEEDS, "max-margin": SEEDS[:1]}
CORPORA = {
    "tatoeba-zh-en": ("zh", "en", ("test",)),
    "multi30k-de-en": ("de", "en", ("test_2016_flickr", "test_2017_flickr")),
}
WITHOUT = ("count", "significance", "composition", "composition+count", "count+usage", "composition+usage")
WITH = (
    "semantic", "count+semantic", "composition+semantic", "count+semantic+usage", "composition+semantic+usage",
)  # fmt: skip
# Bitexts whose tables are pruned; for the others, only the full table is measured.
PRUNED = ("dirty", "filtered")
SEED = 1
LOOSE = 0.1
# Kinds of pairs of the noisy bitext.
CLEAN, MISALIGNED, CONTAINED = 0, 1, 2


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", "utf-8")


def shifted(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a permutation of the rows that leaves none in its position."""
    order = rng.permutation(len(rows))
    dirty_rows = rows.copy()
    dirty_rows[order] = rows[np.roll(order, 1)]
    return dirty_rows


def contained(sides: list[list[str]], rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return truncated or joined targets, and the index of the pair of each."""
    words: dict[str, int] = {}
    ids = [
        Phrases.from_lists([[words.setdefault(word, len(words)) for word in line.split()] for line in side])
        for side in sides
    ]
    wrong, of = containment_negatives(ids[1], np.arange(len(sides[0])), KnownTranslations(*ids), rng)
    spelt = list(words)
    return [" ".join(spelt[i] for i in text) for text in wrong], of


def spoilt(name: str, sides: list[list[str]]) -> tuple[list[str], list[str], np.ndarray]:
    """Return the dirty bitext and the kind of each pair."""
    rng = np.random.default_rng(SEED)
    n = len(sides[0])
    if name == "multi30k-de-en":
        half, target_rows = np.sort(rng.permutation(n)[: n // 2]), np.arange(n)
        target_rows[half] = shifted(half, rng)
        source, target = sides[0], [sides[1][i] for i in target_rows]
        kinds = np.where(target_rows == np.arange(n), CLEAN, MISALIGNED)
    else:
        parts, of = contained(sides, rng)
        source = [*sides[0], *sides[0], *(sides[0][i] for i in of)]
        target = [*sides[1], *(sides[1][i] for i in shifted(np.arange(n), rng)), *parts]
        kinds = np.concatenate([np.full(n, CLEAN), np.full(n, MISALIGNED), np.full(len(of), CONTAINED)])
        order = rng.permutation(len(kinds))
        source, target, kinds = [source[i] for i in order], [target[i] for i in order], kinds[order]
    # The translation of another sentence may be correct.
    known = set(zip(*sides, strict=True))
    kinds[[pair in known for pair in zip(source, target, strict=True)]] = CLEAN
    return source, target, kinds


def bitexts(name: str, work: Path, pairs: int | None) -> dict[str, tuple[Path, Path]]:
    """Write the clean and the dirty bitexts and `kinds.npy` of the dirty one; return the files of each bitext."""
    source, target, _ = CORPORA[name]
    kinds = ["dirty", "clean half", "clean"] if name == "multi30k-de-en" else ["dirty", "clean"]
    files = {kind: tuple(work / f"{kind.replace(' ', '-')}.{side}" for side in (source, target)) for kind in kinds}
    if not (work / "kinds.npy").exists():
        sides = [read_text_lines(str(DATA / name / f"train.{side}.gz"))[:pairs] for side in (source, target)]
        *dirty, labels = spoilt(name, sides)
        right = np.flatnonzero(labels == CLEAN)
        texts = {"dirty": dirty, "clean half": [[side[i] for i in right] for side in dirty], "clean": sides}
        for kind, paths in files.items():
            for path, lines in zip(paths, texts[kind], strict=True):
                _write(path, lines)
        np.save(work / "kinds.npy", labels)
    return files  # type: ignore[return-value]


def filtered(
    name: str, work: Path, dirty: tuple[Path, Path], threads: str
) -> tuple[dict[str, tuple[Path, Path]], dict[str, Any]]:
    """Filter the dirty bitext by classifiers trained on its other half; return the bitexts and their quality.

    The threshold is the best on the development set, because a classifier trained on wrong pairs gives few pairs a
    high probability.
    """
    texts = [read_text_lines(str(path)) for path in dirty]
    # Every second pair, because neighbours in the file may be similar.
    halves = [np.arange(half, len(texts[0]), 2) for half in (0, 1)]
    kinds = np.load(work / "kinds.npy")
    for half, rows in enumerate(halves):
        for path, side in zip(dirty, texts, strict=True):
            _write(work / f"half-{half}{path.suffix}", [side[i] for i in rows])
    keep, probabilities = judged(name, work, halves, threads)
    bitext_files, shares = {}, {}
    for kind, rows in {"filtered": keep, "filtered loosely": probabilities >= LOOSE}.items():
        bitext_files[kind] = tuple(work / f"{kind.replace(' ', '-')}{path.suffix}" for path in dirty)
        for path, side in zip(bitext_files[kind], texts, strict=True):
            _write(path, [side[i] for i in np.flatnonzero(rows)])
        shares[kind] = quality(rows, kinds)
    bitext_files["fluent"], rows = fluent(name, work, dirty, float(keep.mean()), threads)
    shares["fluent"] = quality(rows, kinds)
    return bitext_files, shares  # type: ignore[return-value]


def fluent(
    name: str, work: Path, dirty: tuple[Path, Path], share: float, threads: str
) -> tuple[tuple[Path, Path], np.ndarray]:
    """Return the files of the most fluent pairs of the dirty bitext, and which of its pairs they are."""
    kept, scores, options = tuple(work / f"fluent{path.suffix}" for path in dirty), work / "fluency.tsv", []
    for path, (good, general) in zip(
        dirty, (("--source-lm", "--general-source-lm"), ("--lm", "--general-lm")), strict=True
    ):
        text = read_text_lines(str(DATA / name / f"dev{path.suffix}"))
        every = read_text_lines(str(path))
        for option, lines in ((good, text), (general, every[:: len(every) // len(text)][: len(text)])):
            sample, model = work / f"fluency{option}{path.suffix}", work / f"fluency{option}.arpa"
            _write(sample, lines)
            if not model.exists():
                command("lm", sample, "--order", "3", "-o", model)
            options += [option, model]
    if not scores.exists():
        command(
            "filter-bitext", *dirty, *options, "--keep", str(share), "-o", *kept, "--scores", scores, "--threads",
            threads,
        )  # fmt: skip
    return kept, np.array([line.split("\t")[1] == "kept" for line in read_text_lines(str(scores))])  # type: ignore[return-value]


def judged(name: str, folder: Path, halves: list[np.ndarray], threads: str) -> tuple[np.ndarray, np.ndarray]:
    """Return for each pair whether the classifier of the other half keeps it, and its probability."""
    source, target, _ = CORPORA[name]
    dev = [DATA / name / f"dev.{side}" for side in (source, target)]
    keep, probabilities = (np.zeros(sum(map(len, halves)), kind) for kind in (np.bool_, np.float64))
    for half in (0, 1):
        model, scores = folder / f"classifier-{half}", folder / f"scores-{half}.tsv"
        training_files = [folder / f"half-{half}.{side}" for side in (source, target)]
        other_files = [folder / f"half-{1 - half}.{side}" for side in (source, target)]
        if not (model / "config.json").exists():
            command(
                "train", "classifier", *training_files, "--dev", *dev, "-o", model, "--threads", threads, "--device",
                "cpu", "--overwrite",
            )  # fmt: skip
        if not scores.exists():
            output = [folder / f"kept-{half}.{side}" for side in (source, target)]
            # --force: up to two pairs of three are wrong on purpose.
            command(
                "filter-bitext", *other_files, "-m", model, "-o", *output, "--scores", scores, "--threads", threads,
                "--threshold", "best", "--force",
            )  # fmt: skip
        lines = [line.split("\t")[:2] for line in read_text_lines(str(scores))]
        keep[halves[1 - half]] = [verdict == "kept" for _, verdict in lines]
        probabilities[halves[1 - half]] = [float(probability) for probability, _ in lines]
    return keep, probabilities


def quality(keep: np.ndarray, kinds: np.ndarray) -> dict[str, float]:
    """Return precision and recall of the kept pairs, and the share kept of each kind of wrong pair."""
    clean = kinds == CLEAN
    shares = {"precision": clean[keep].mean() if keep.any() else 0.0, "recall": keep[clean].mean()}
    for kind, number in (("misaligned", MISALIGNED), ("contained", CONTAINED)):
        if (kinds == number).any():
            shares[f"kept of {kind}"] = keep[kinds == number].mean()
    return {name: round(float(share), 4) for name, share in shares.items()}


def engine(name: str, work: Path, kind: str, bitext: tuple[Path, Path], threads: str) -> Path:
    """Build and tune the model of a bitext; return its ini."""
    source, target, _ = CORPORA[name]
    folder = work / f"engine-{kind.replace(' ', '-')}"
    folder.mkdir(exist_ok=True)
    files = ("aligned.gz", "table.gz", "reordering.gz", "start.ini", "moses.ini")
    aligned, table, reordering, start, ini = (folder / file for file in files)
    lm = work / "lm.arpa.gz"
    if not lm.exists():
        command("lm", work / f"clean.{target}", "--order", "5", "-o", lm)
    if not aligned.exists():
        command("align", *bitext, "-o", aligned)
    if not (table.exists() and reordering.exists()):
        command("extract", *bitext, aligned, "-o", table, "--reordering-out", reordering, "--threads", threads)
    if not start.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", start)
    if not ini.exists():
        dev = [DATA / name / f"dev.{side}" for side in (source, target)]
        command(
            "tune", "--moses-ini", start, "--dev", dev[0], dev[1], *SEARCH, "--iterations", "8",
            "--threads", threads, "--force", "-o", ini,
        )  # fmt: skip
    return ini


def config_of(name: str, work: Path, kind: str, bitext: tuple[Path, Path], ini: Path) -> ExperimentConfig:
    """Return the experiment configuration with the texts and the decoder of a bitext's model."""
    source, target, tests = CORPORA[name]
    data = DATA / name
    lines = [
        f'name = "{TITLES[name]}, {kind}"', f'output = "{work / kind.replace(" ", "-")}"', "[moses]",
        f'ini = "{ini}"', "[data.bitext]", f'source = "{bitext[0]}"',
        f'target = "{bitext[1]}"', "[data.dev]", f'source = "{data}/dev.{source}"', f'target = "{data}/dev.{target}"',
    ]  # fmt: skip
    for test in tests:
        lines += [f"[data.tests.{test}]", f'source = "{data}/{test}.{source}"', f'target = "{data}/{test}.{target}"']
    # Only tables that are pruned need forced decoding.
    method = "count+semantic+usage" if kind in PRUNED else "count"
    lines += ["[prune]", f'methods = ["{method}"]', "sizes = [0.1]"]
    path = work / f"{kind.replace(' ', '-')}.toml"
    _write(path, lines)
    return read_experiment_config(str(path))


def systems_with(loss: str) -> list[PruningSystem]:
    """Return the tables pruned with the similarities of a model."""
    if loss != DEFAULT_LOSS:
        return [*at_thresholds("semantic", (0.7,)), *of_size("semantic", (0.28, 0.1))]
    return [*at_thresholds("semantic", (0.7,)), *(system for method in WITH for system in of_size(method))]


def measure(name: str, work: Path, made: Mapping[str, tuple[Path, Path]], results: Results, threads: str) -> None:
    """Translate with the full table of every bitext, and with the pruned tables of those in `PRUNED`."""
    for kind, paths in made.items():
        ini = engine(name, work, kind, paths, threads)
        config = config_of(name, work, kind, paths, ini)
        needs = NEEDS if kind in PRUNED else frozenset({COUNTS})
        trial_folder = work / f"trial-{kind.replace(' ', '-')}"
        trial = Trial(config, trial_folder, results, int(threads), needs, facts={"bitext": kind})
        if kind == next(iter(made)):
            results.take_over(trial.full_statistics(), MODELS)
        trial.translate([PruningSystem()], trial.measures)
        if kind in PRUNED:
            trial.translate([system for method in WITHOUT for system in of_size(method)], trial.measures)
            for loss, seeds in LOSSES.items():
                for seed in seeds:
                    if trial.lacks(systems_with(loss), loss, seed):
                        trial.translate(systems_with(loss), trial.similarities(loss, seed), loss, seed)
        results.save()
        print(name, kind, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--work", type=Path, default=WORK / "dirty")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--pairs", type=int, help="use only the first N pairs, and store nothing")
    options = parser.parse_args()
    for name in options.corpora:
        work = options.work / name / (str(options.pairs) if options.pairs else "")
        work.mkdir(parents=True, exist_ok=True)
        files = bitexts(name, work, options.pairs)
        filtered_files, shares = filtered(name, work, files["dirty"], options.threads)
        results = Results(work if options.pairs else RESULTS, name)
        results.facts = {"name": TITLES[name], "filter": shares, "models": MODELS}
        measure(name, work, files | filtered_files, results, options.threads)


if __name__ == "__main__":
    main()
