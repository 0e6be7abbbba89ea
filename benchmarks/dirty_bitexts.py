"""What dirt in a bitext costs, and what brings it back: filtering the bitext, pruning the table, or both.

    tatoeba-zh-en     all pairs, as many with the target of another, as many wrong by containment
    multi30k-de-en    half of the pairs with the target of another

The filter is a classifier of sentence pairs that has seen no clean pair but those of the development set: one is
trained on each half of the dirty bitext, and judges the other half; neither is told which pairs are wrong.  `filtered
twice` trains once more, on what the first round kept of each half, and judges all pairs of the other; `filtered
loosely` keeps whatever is parallel with a probability of at least a tenth, as a table bears noise.  Each bitext
makes a phrase-based model of its own (aligned, extracted, tuned), all with one language model, of the right targets;
its table is then pruned by several methods (`phrasetool experiment`).  Work that was interrupted goes on by its files.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from engines import DATA, SEARCH, command
from measuring import ROOT, WORK, report

from moses_compat.corpora.texts import read_text_lines
from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap, sentence_statistics
from phrasetool.training.parallel.containment import containment_negatives
from phrasetool.training.parallel.known_translations import KnownTranslations

CORPORA = {
    "tatoeba-zh-en": ("zh", "en", ("test",)),
    "multi30k-de-en": ("de", "en", ("test_2016_flickr", "test_2017_flickr")),
}
METHODS = ("semantic", "significance", "count", "composition", "composition+count", "composition+semantic")
SIZES = (0.5, 0.3, 0.1, 0.05)
# What is pruned, by which methods; of the others the full table is what counts.
_SOME = ("count", "composition+count", "composition+semantic")
PRUNED = {"dirty": METHODS, "filtered": _SOME, "filtered twice": _SOME, "filtered loosely": _SOME}
SEED = 1
LOOSE = 0.1
# What a pair of the dirty bitext is.
CLEAN, MISALIGNED, CONTAINED = 0, 1, 2


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", "utf-8")


def shifted(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same rows, none where it was."""
    order = rng.permutation(len(rows))
    found = rows.copy()
    found[order] = rows[np.roll(order, 1)]
    return found


def contained(sides: list[list[str]], rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Targets cut or joined, and which pairs they are of."""
    words: dict[str, int] = {}
    ids = [
        Phrases.from_lists([[words.setdefault(word, len(words)) for word in line.split()] for line in side])
        for side in sides
    ]
    wrong, of = containment_negatives(ids[1], np.arange(len(sides[0])), KnownTranslations(*ids), rng)
    spelt = list(words)
    return [" ".join(spelt[i] for i in text) for text in wrong], of


def spoilt(name: str, sides: list[list[str]]) -> tuple[list[str], list[str], np.ndarray]:
    """The dirty bitext, and what each of its pairs is."""
    rng = np.random.default_rng(SEED)
    n = len(sides[0])
    if name == "multi30k-de-en":
        half, places = np.sort(rng.permutation(n)[: n // 2]), np.arange(n)
        places[half] = shifted(half, rng)
        source, target = sides[0], [sides[1][i] for i in places]
        kinds = np.where(places == np.arange(n), CLEAN, MISALIGNED)
    else:
        parts, of = contained(sides, rng)
        source = [*sides[0], *sides[0], *(sides[0][i] for i in of)]
        target = [*sides[1], *(sides[1][i] for i in shifted(np.arange(n), rng)), *parts]
        kinds = np.concatenate([np.full(n, CLEAN), np.full(n, MISALIGNED), np.full(len(of), CONTAINED)])
        order = rng.permutation(len(kinds))
        source, target, kinds = [source[i] for i in order], [target[i] for i in order], kinds[order]
    # Another sentence's translation may be right.
    known = set(zip(*sides, strict=True))
    kinds[[pair in known for pair in zip(source, target, strict=True)]] = CLEAN
    return source, target, kinds


def bitexts(name: str, work: Path, pairs: int | None) -> dict[str, tuple[Path, Path]]:
    """The clean and the dirty bitexts, a file a side, and `kinds.npy` of the dirty one."""
    source, target, _ = CORPORA[name]
    kinds = ["dirty", "clean half", "clean"] if name == "multi30k-de-en" else ["dirty", "clean"]
    made = {kind: tuple(work / f"{kind.replace(' ', '-')}.{side}" for side in (source, target)) for kind in kinds}
    if not (work / "kinds.npy").exists():
        sides = [read_text_lines(str(DATA / name / f"train.{side}.gz"))[:pairs] for side in (source, target)]
        *dirty, labels = spoilt(name, sides)
        right = np.flatnonzero(labels == CLEAN)
        texts = {"dirty": dirty, "clean half": [[side[i] for i in right] for side in dirty], "clean": sides}
        for kind, paths in made.items():
            for path, lines in zip(paths, texts[kind], strict=True):
                _write(path, lines)
        np.save(work / "kinds.npy", labels)
    return made  # type: ignore[return-value]


def filtered(
    name: str, work: Path, dirty: tuple[Path, Path], threads: str
) -> tuple[dict[str, tuple[Path, Path]], dict[str, Any]]:
    """The dirty bitext without what classifiers of its other half reject, in two rounds; and how right they are.

    The threshold of the first two is the one that was best on the development set: what learns from wrong pairs is
    sure of few.
    """
    texts = [read_text_lines(str(path)) for path in dirty]
    # Neighbours in the file may be alike, so every second one.
    halves = [np.arange(half, len(texts[0]), 2) for half in (0, 1)]
    kinds = np.load(work / "kinds.npy")
    learnt_from = np.ones(len(kinds), np.bool_)
    made, found = {}, {}
    for kind in ("filtered", "filtered twice"):
        folder = work if kind == "filtered" else work / "twice"
        folder.mkdir(exist_ok=True)
        for half, rows in enumerate(halves):
            for path, side in zip(dirty, texts, strict=True):
                _write(folder / f"half-{half}{path.suffix}", [side[i] for i in rows])
                _write(folder / f"learnt-{half}{path.suffix}", [side[i] for i in rows if learnt_from[i]])
        keep, probabilities = judged(name, folder, halves, threads)
        kept = {kind: keep} if kind == "filtered" else {kind: keep, "filtered loosely": probabilities >= LOOSE}
        for which, rows in kept.items():
            made[which] = tuple(work / f"{which.replace(' ', '-')}{path.suffix}" for path in dirty)
            for path, side in zip(made[which], texts, strict=True):
                _write(path, [side[i] for i in np.flatnonzero(rows)])
            found[which] = quality(rows, kinds)
        learnt_from = keep
    return made, found  # type: ignore[return-value]


def judged(name: str, folder: Path, halves: list[np.ndarray], threads: str) -> tuple[np.ndarray, np.ndarray]:
    """For each pair whether the classifier of the other half keeps it, and the probability that it gives."""
    source, target, _ = CORPORA[name]
    dev = [DATA / name / f"dev.{side}" for side in (source, target)]
    keep, probabilities = (np.zeros(sum(map(len, halves)), kind) for kind in (np.bool_, np.float64))
    for half in (0, 1):
        model, scores = folder / f"classifier-{half}", folder / f"scores-{half}.tsv"
        mine = [folder / f"learnt-{half}.{side}" for side in (source, target)]
        other = [folder / f"half-{1 - half}.{side}" for side in (source, target)]
        if not (model / "config.json").exists():
            command(
                "train", "--model", "parallel", *mine, "--dev", *dev, "-o", model, "--threads", threads, "--device",
                "cpu", "--overwrite",
            )  # fmt: skip
        if not scores.exists():
            output = [folder / f"kept-{half}.{side}" for side in (source, target)]
            # Two pairs of three are wrong on purpose.
            command(
                "filter-bitext", *other, "-m", model, "-o", *output, "--scores", scores, "--threads", threads,
                "--threshold", "best", "--force",
            )  # fmt: skip
        lines = [line.split("\t")[:2] for line in read_text_lines(str(scores))]
        keep[halves[1 - half]] = [verdict == "kept" for _, verdict in lines]
        probabilities[halves[1 - half]] = [float(probability) for probability, _ in lines]
    return keep, probabilities


def quality(keep: np.ndarray, kinds: np.ndarray) -> dict[str, float]:
    """Of what stays: how much is clean, and how much stays of each kind."""
    clean = kinds == CLEAN
    shares = {"precision": clean[keep].mean() if keep.any() else 0.0, "recall": keep[clean].mean()}
    for kind, number in (("misaligned", MISALIGNED), ("contained", CONTAINED)):
        if (kinds == number).any():
            shares[f"kept of {kind}"] = keep[kinds == number].mean()
    return {name: round(float(share), 4) for name, share in shares.items()}


def engine(name: str, work: Path, kind: str, bitext: tuple[Path, Path], threads: str, iterations: str) -> Path:
    """The tuned ini of a bitext's own model."""
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
        command("extract", *bitext, aligned, "-o", table, "--reordering-table", reordering, "--threads", threads)
    if not start.exists():
        command("moses-ini", "--table", table, "--reordering-table", reordering, "--lm", lm, "-o", start)
    if not ini.exists():
        dev = [DATA / name / f"dev.{side}" for side in (source, target)]
        command(
            "tune", "--moses-ini", start, "--source", dev[0], "-r", dev[1], *SEARCH, "--iterations", iterations,
            "--threads", threads, "--force", "-o", ini,
        )  # fmt: skip
    return ini


def experiment(
    name: str, work: Path, kind: str, bitext: tuple[Path, Path], threads: str, pairs: int | None = None
) -> Path:
    """Run the laboratory on a bitext; its folder."""
    source, target, tests = CORPORA[name]
    folder = work / f"experiment-{kind.replace(' ', '-')}"
    there = DATA / name
    ini = engine(name, work, kind, bitext, threads, "1" if pairs else "8")
    methods, sizes = (PRUNED[kind], SIZES) if kind in PRUNED else (("count",), SIZES[:1])
    lines = [
        f'name = "{name}, {kind}"', f'output = "{folder}"', "[moses]",
        f'ini = "{ini}"', "[data.bitext]", f'source = "{bitext[0]}"',
        f'target = "{bitext[1]}"', "[data.dev]", f'source = "{there}/dev.{source}"', f'target = "{there}/dev.{target}"',
    ]  # fmt: skip
    for test in tests:
        lines += [f"[data.tests.{test}]", f'source = "{there}/{test}.{source}"', f'target = "{there}/{test}.{target}"']
    lines += ["[prune]", f"methods = {json.dumps(methods)}", f"sizes = {list(sizes)}", 'protect = ["words"]']
    config = work / f"{folder.name}.toml"
    _write(config, lines)
    # Where only a part was asked for, to see whether all is well.
    quick = ["--quick"] if pairs else []
    folder = folder / "quick" if pairs else folder
    if not (folder / "report.md").exists():
        command("experiment", config, "--threads", threads, "--force", *quick)
    return folder


def samples(name: str, folder: Path) -> dict[str, BleuSamples]:
    """All test sets as one text: the system -> its BLEU."""
    _, target, tests = CORPORA[name]
    records = [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))]
    texts = {record["system"]: record["translations"] for record in records if "system" in record}
    # A quick experiment translates the first sentences of a set.
    sizes = {test: len(texts["full"][test]) for test in tests}
    truth = [line for test in tests for line in read_text_lines(str(DATA / name / f"{test}.{target}"))[: sizes[test]]]
    test_of = Bootstrap(len(truth))
    return {
        system: test_of(sentence_statistics([line for test in tests for line in lines[test]], truth))
        for system, lines in texts.items()
    }


def compared(one: BleuSamples, other: BleuSamples) -> dict[str, float]:
    """A system beside another, by a paired bootstrap."""
    return {"difference": round(one.bleu - other.bleu, 2), "p": round(one.p_value(other), 4)}


def figures_of(found: Mapping[str, Mapping[str, BleuSamples]]) -> dict[str, Any]:
    """BLEU of every system, beside its own full table and the full tables of the dirty and of the clean bitext."""
    aim, dirty = found.get("clean half", found["clean"])["full"], found["dirty"]["full"]
    cost = aim.bleu - dirty.bleu
    figures: dict[str, Any] = {"BLEU that the dirt costs": round(cost, 2)}
    for kind, systems in found.items():
        figures[kind] = {
            system: {
                "BLEU": round(sample.bleu, 2), "to its full table": compared(sample, systems["full"]),
                "to the dirty table": compared(sample, dirty), "to the clean table": compared(sample, aim),
                "recovered": round((sample.bleu - dirty.bleu) / cost, 3) if cost else None,
            } for system, sample in systems.items()
        }  # fmt: skip
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--work", type=Path, default=WORK / "dirty")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--pairs", type=int, help="so many alone, and quick experiments; nothing is kept of it")
    options = parser.parse_args()
    results = ROOT / "benchmarks" / "results" / "dirty_bitexts.json"
    figures: dict[str, Any] = json.loads(results.read_text())["pairs"] if results.exists() else {}
    for name in options.corpora:
        work = options.work / name
        work.mkdir(parents=True, exist_ok=True)
        made = bitexts(name, work, options.pairs)
        kept, found_quality = filtered(name, work, made["dirty"], options.threads)
        made |= kept
        print(name, "filter", found_quality, flush=True)
        found = {}
        for kind, paths in made.items():
            found[kind] = samples(name, experiment(name, work, kind, paths, options.threads, options.pairs))
            print(name, kind, {system: round(sample.bleu, 2) for system, sample in found[kind].items()}, flush=True)
        figures[name] = {"filter": found_quality, **figures_of(found)}
        if options.pairs:
            print(json.dumps(figures[name], indent=1))
        else:
            report("dirty_bitexts", {"pairs": figures})


if __name__ == "__main__":
    main()
