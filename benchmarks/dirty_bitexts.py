"""What dirt in a bitext costs, and what brings it back: filtering the bitext, pruning the table, or both.

    tatoeba-zh-en     all pairs, as many with the target of another, as many wrong by containment
    multi30k-de-en    half of the pairs with the target of another

The filter is a classifier of sentence pairs that has seen no clean pair but those of the development set: one is
trained on each half of the dirty bitext, and judges the other half.  Each bitext makes a phrase-based model of its own
(`phrasetool experiment`: aligned, extracted, tuned), whose table is then pruned by several methods.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from engines import DATA, command
from measuring import WORK, report

from moses_compat.corpora.texts import read_text_lines
from phrasetool.phrases import Phrases
from phrasetool.smt.evaluation.bootstrap import BleuSamples, Bootstrap, sentence_statistics
from phrasetool.training.parallel.containment import containment_negatives
from phrasetool.training.parallel.known_translations import KnownTranslations

CORPORA = {
    "tatoeba-zh-en": ("zh", "en", ("test",)),
    "multi30k-de-en": ("de", "en", ("test_2016_flickr", "test_2017_flickr")),
}
METHODS = ("semantic", "significance", "count", "composition+count", "composition+semantic")
SIZES = (0.5, 0.3, 0.1, 0.05)
SEED = 1
# How often a pair of the dirty bitext is what.
CLEAN, MISALIGNED, CONTAINED = 0, 1, 2


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", "utf-8")


def bitexts(name: str, work: Path) -> dict[str, tuple[Path, Path]]:
    """The clean and the dirty bitexts, a file a side, and `kinds.npy` of the dirty one."""
    source, target, _ = CORPORA[name]
    sides = [read_text_lines(str(DATA / name / f"train.{side}.gz")) for side in (source, target)]
    made = {kind: (work / f"{kind}.{source}", work / f"{kind}.{target}") for kind in ("dirty", "clean half", "clean")}
    made = {kind: tuple(Path(str(path).replace(" ", "-")) for path in paths) for kind, paths in made.items()}  # type: ignore[misc]
    if name != "multi30k-de-en":
        del made["clean half"]
    if (work / "kinds.npy").exists():
        return made
    rng = np.random.default_rng(SEED)
    n = len(sides[0])
    shifted = np.roll(rng.permutation(n), 1)
    if name == "multi30k-de-en":
        spoilt = np.sort(rng.permutation(n)[: n // 2])
        places = np.arange(n)
        places[spoilt] = np.roll(rng.permutation(spoilt), 1)
        # A permutation may leave some where they were.
        kinds = np.where(places == np.arange(n), CLEAN, MISALIGNED)
        dirty = sides[0], [sides[1][i] for i in places]
        kept = np.flatnonzero(kinds == CLEAN)
        for path, side in zip(made["clean half"], sides, strict=True):
            _write(path, [side[i] for i in kept])
    else:
        words: dict[str, int] = {}
        ids = [
            Phrases.from_lists([[words.setdefault(word, len(words)) for word in line.split()] for line in side])
            for side in sides
        ]
        wrong, of = containment_negatives(ids[1], np.arange(n), KnownTranslations(*ids), rng)
        spelt = list(words)
        contained = [" ".join(spelt[i] for i in text) for text in wrong]
        order = rng.permutation(2 * n + len(of))
        dirty = tuple(  # type: ignore[assignment]
            [lines[i] for i in order]
            for lines in (
                [*sides[0], *sides[0], *(sides[0][i] for i in of)],
                [*sides[1], *(sides[1][i] for i in shifted), *contained],
            )
        )
        kinds = np.concatenate([np.full(n, CLEAN), np.full(n, MISALIGNED), np.full(len(of), CONTAINED)])[order]
    for kind, texts in (("dirty", dirty), ("clean", sides)):
        for path, lines in zip(made[kind], texts, strict=True):
            _write(path, list(lines))
    np.save(work / "kinds.npy", kinds)
    return made


def filtered(name: str, work: Path, dirty: tuple[Path, Path], threads: str) -> tuple[tuple[Path, Path], dict[str, Any]]:
    """The dirty bitext without what classifiers of its other half reject; and how right they are."""
    source, target, _ = CORPORA[name]
    kept = (work / f"filtered.{source}", work / f"filtered.{target}")
    dev = [DATA / name / f"dev.{side}" for side in (source, target)]
    texts = [read_text_lines(str(path)) for path in dirty]
    # Neighbours in the file may be alike, so every second one.
    halves = [np.arange(half, len(texts[0]), 2) for half in (0, 1)]
    for half, rows in enumerate(halves):
        for path, side in zip(dirty, texts, strict=True):
            _write(work / f"half-{half}{path.suffix}", [side[i] for i in rows])
    keep = np.zeros(len(texts[0]), np.bool_)
    for half, rows in enumerate(halves):
        model, scores = work / f"classifier-{half}", work / f"scores-{half}.tsv"
        mine, other = ([work / f"half-{h}{path.suffix}" for path in dirty] for h in (half, 1 - half))
        if not (model / "config.json").exists():
            command("train", "--model", "parallel", *mine, "--dev", *dev, "-o", model, "--threads", threads)
        if not scores.exists():
            output = [work / f"kept-{half}.{side}" for side in (source, target)]
            command("filter-bitext", *other, "-m", model, "-o", *output, "--scores", scores, "--threads", threads)
        lines = read_text_lines(str(scores))
        keep[halves[1 - half]] = [float(line.split("\t")[0]) >= 0.5 for line in lines[-len(halves[1 - half]) :]]
        del rows
    for path, side in zip(kept, texts, strict=True):
        _write(path, [side[i] for i in np.flatnonzero(keep)])
    kinds = np.load(work / "kinds.npy")
    clean = kinds == CLEAN
    return kept, {
        "precision": round(float(clean[keep].mean()), 4), "recall": round(float(keep[clean].mean()), 4),
        **{
            f"kept of {kind}": round(float(keep[kinds == number].mean()), 4)
            for kind, number in (("misaligned", MISALIGNED), ("contained", CONTAINED))
            if (kinds == number).any()
        },
    }  # fmt: skip


def experiment(name: str, work: Path, kind: str, bitext: tuple[Path, Path], threads: str) -> Path:
    """Run the laboratory on a bitext; its folder."""
    source, target, tests = CORPORA[name]
    folder = work / f"experiment-{kind.replace(' ', '-')}"
    there = DATA / name
    lines = [
        f'name = "{name}, {kind}"', f'output = "{folder}"', "[data.bitext]", f'source = "{bitext[0]}"',
        f'target = "{bitext[1]}"', "[build]", f'lm_text = "{there}/train.{target}.gz"', "[data.dev]",
        f'source = "{there}/dev.{source}"', f'target = "{there}/dev.{target}"',
    ]  # fmt: skip
    for test in tests:
        lines += [f"[data.tests.{test}]", f'source = "{there}/{test}.{source}"', f'target = "{there}/{test}.{target}"']
    lines += ["[prune]", f"methods = {json.dumps(METHODS)}", f"sizes = {list(SIZES)}", 'protect = ["words"]']
    config = work / f"{folder.name}.toml"
    _write(config, lines)
    if not (folder / "report.md").exists():
        command("experiment", config, "--threads", threads)
    return folder


def samples(name: str, folder: Path) -> dict[str, BleuSamples]:
    """All test sets as one text: the system -> its BLEU."""
    _, target, tests = CORPORA[name]
    truth = [line for test in tests for line in read_text_lines(str(DATA / name / f"{test}.{target}"))]
    test_of = Bootstrap(len(truth))
    found = {}
    for path in sorted((folder / "runs").glob("*.json")):
        record: Mapping[str, Any] = json.loads(path.read_text())
        if "system" in record:
            lines = [line for test in tests for line in record["translations"][test]]
            found[record["system"]] = test_of(sentence_statistics(lines, truth))
    return found


def compared(one: BleuSamples, other: BleuSamples) -> dict[str, float]:
    """A system beside another."""
    return {"difference": round(one.bleu - other.bleu, 2), "p": round(one.p_value(other), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--work", type=Path, default=WORK / "dirty")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name in options.corpora:
        work = options.work / name
        work.mkdir(parents=True, exist_ok=True)
        made = bitexts(name, work)
        made["filtered"], quality = filtered(name, work, made["dirty"], options.threads)
        found = {
            kind: samples(name, experiment(name, work, kind, paths, options.threads)) for kind, paths in made.items()
        }
        aim = found.get("clean half", found["clean"])["full"]
        figures[name] = {"filter": quality}
        for kind, systems in found.items():
            figures[name][kind] = {
                system: {"BLEU": round(sample.bleu, 2), "to the clean table": compared(sample, aim)}
                for system, sample in systems.items()
            }
        dirty = found["dirty"]["full"].bleu
        cost = aim.bleu - dirty
        figures[name]["BLEU that the dirt costs"] = round(cost, 2)
        figures[name]["recovered by the filter"] = round(
            (found["filtered"]["full"].bleu - found["dirty"]["full"].bleu) / cost, 3
        )
    report("dirty_bitexts", {"pairs": figures})


if __name__ == "__main__":
    main()
